"""PID in actuator space, with feed-forward from a model: PD + feed-forward [Briot2015] [Kostic2002, eq. 15].

tau = kp e + kd e' + ki int e dt + tau_ff(reference),     e = rho_ref - rho
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass

from numpy.typing import ArrayLike

from dynident.checks import flag, gain
from dynident.control.checks import cycle_time, dead_time, optional_model
from dynident.errors import DynidentError
from dynident.friction import DynamicLaw, Friction
from dynident.mechanism import Mechanism


@dataclass(frozen=True)
class PID:
    """PID on the actuator coordinates rho; torques are those of rho, behind the gear.

    Numbers are scalars, or one per actuator.

    Parameters
    ----------
    kp : float or array_like (k,)
        Proportional gain [N m/rad, N/m].
    kd : float or array_like (k,)
        Gain of the error's derivative, reference velocity less measured velocity [N m s/rad, N s/m].
    ki : float or array_like (k,)
        Integral gain [N m/(rad s), N/(m s)].
    cycle : float
        Cycle time [s].
    derivative_filter : float or array_like (k,)
        Corner frequency of a first-order low-pass on the error's derivative [Hz]; 0 is none.
    feedforward : Mechanism, optional
        Model whose inverse dynamics on the reference is added.
    project : bool
        True removes the internal part of the torques, tau - sum (u^T tau) u [Briot2015, eq. 50], before the preload.
    preload : float or array_like (k,)
        Torques whose internal part is added: they press a redundant robot against itself [N m, N]; refused on any other.
    friction : mapping of str to Friction or DynamicLaw, optional
        Laws by actuator or coordinate that the feed-forward adds at the reference's speed, u^f of [Kostic2002]; they need
        `feedforward`, and what they say should not be in its joint terms too.
    delay : float
        Time from the sampling of the sensors to the command at the motors [s], a whole multiple of the simulation's step;
        nothing flows before the first command has arrived.

    Examples
    --------
    >>> from dynident.control import PID
    >>> PID(2000.0, 15.0, cycle=1e-3, derivative_filter=70.0).ki
    0.0
    """

    kp: ArrayLike
    kd: ArrayLike
    ki: ArrayLike = 0.0
    _: KW_ONLY
    cycle: float
    derivative_filter: ArrayLike = 0.0
    feedforward: Mechanism | None = None
    project: bool = False
    preload: ArrayLike = 0.0
    friction: Mapping[str, Friction | DynamicLaw] | None = None
    delay: float = 0.0

    def __post_init__(self) -> None:
        for field in ("kp", "kd", "ki", "derivative_filter"):
            object.__setattr__(self, field, gain("PID", field, getattr(self, field)))
        object.__setattr__(self, "cycle", cycle_time("PID", "cycle", self.cycle))
        optional_model("PID", "feedforward", self.feedforward)
        flag("PID", "project", self.project)
        object.__setattr__(self, "preload", gain("PID", "preload", self.preload, signed=True))
        if self.friction is not None and self.feedforward is None:
            raise DynidentError("PID: friction is given without feedforward; give the model whose feed-forward it completes")
        object.__setattr__(self, "delay", dead_time("PID", "delay", self.delay))
