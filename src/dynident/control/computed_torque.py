"""Computed torque in the robot's own coordinates x, with a model that may differ from the robot [Roldan2017, section 3.3.3].

a = a_ref + kp e + kd e' + ki int e dt,   e = x_ref - x
A^T tau = ID_model(x, v, a),              minimum norm (+ preload) when there are more motors than freedoms

Jumps of the model's friction follow the wanted velocity: with the sign of the measured one they push whatever moves about rest,
a positive feedback that no gains outweigh where the real friction is smaller.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Literal

from numpy.typing import ArrayLike

from dynident.checks import gain
from dynident.control.checks import cycle_time, dead_time
from dynident.errors import DynidentError, require
from dynident.mechanism import Mechanism


@dataclass(frozen=True)
class ComputedTorque:
    """Inverse dynamics of a model, driven by a PID that asks for accelerations.

    The model must hold everything that the motors move: rotor and gear inertia and friction as joint terms (ia, fv, fc)
    too, or they are felt as a disturbance. `VirtualRobot.model` is such a model.

    Parameters
    ----------
    model : Mechanism
        What the controller believes; its coordinates are those of the robot.
    kp : float or array_like (n,)
        Gain of the position error [1/s^2], one for all coordinates or one each.
    kd : float or array_like (n,)
        Gain of the velocity error [1/s].
    ki : float or array_like (n,)
        Gain of the error's integral [1/s^3].
    cycle : float
        Cycle time [s].
    derivative_filter : float or array_like (n,)
        Corner frequency of a first-order low-pass on the velocity error [Hz]; 0 is none.
    preload : float or array_like (k,)
        Torques whose internal part is added [N m, N]; refused on a robot without more motors than freedoms.
    on : {"measurement", "reference"}
        Where the model is evaluated: at the measured x and v, or at those of the reference. Dry friction always has the sign
        of the wanted velocity.
    delay : float
        Time from the sampling of the sensors to the command at the motors [s], a whole multiple of the simulation's step;
        nothing flows before the first command has arrived.

    Examples
    --------
    >>> from dynident.control import ComputedTorque, gains_for
    >>> from dynident.robots import rrr
    >>> law = ComputedTorque(rrr.mechanism(), *gains_for(10.0, 0.7), cycle=1e-3)
    >>> law.on
    'measurement'
    """

    model: Mechanism
    kp: ArrayLike
    kd: ArrayLike
    ki: ArrayLike = 0.0
    _: KW_ONLY
    cycle: float
    derivative_filter: ArrayLike = 0.0
    preload: ArrayLike = 0.0
    on: Literal["measurement", "reference"] = "measurement"
    delay: float = 0.0

    def __post_init__(self) -> None:
        require(self.model, Mechanism, "computed torque: model")
        for field in ("kp", "kd", "ki", "derivative_filter"):
            object.__setattr__(self, field, gain("computed torque", field, getattr(self, field)))
        object.__setattr__(self, "cycle", cycle_time("computed torque", "cycle", self.cycle))
        object.__setattr__(self, "preload", gain("computed torque", "preload", self.preload, signed=True))
        object.__setattr__(self, "delay", dead_time("computed torque", "delay", self.delay))
        if self.on not in ("measurement", "reference"):
            raise DynidentError(f"computed torque: on = {self.on!r} is unknown; use 'measurement' or 'reference'")
