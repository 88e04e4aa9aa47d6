"""Cascade of a servo drive: P on position, PI on velocity and current, each with its own cycle [Roldan2017, section 3.3.1].

rho_v0  = kv (rho_ref - rho) + share rho_v_ref                    every position cycle
e       = ratio rho_v0 - omega,   i0 = kP e + kI int e dt + i_ff  every velocity cycle,  omega: motor speed
V       = kPC (i0 - i) + kIC int (i0 - i) dt                      every current cycle; without it i = i0 at once

rho_v0 is used `position_delay` after its tick, V (or i0) acts at the motor `delay` after its own.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from numpy.typing import ArrayLike

from dynident.checks import flag, gain
from dynident.control.checks import cycle_time, dead_time, optional_model, whole_ratio
from dynident.errors import DynidentError
from dynident.mechanism import Mechanism


@dataclass(frozen=True)
class CurrentLoop:
    """The PI loop that turns a current error into a voltage: V = gain e + integral int e dt.

    Parameters
    ----------
    gain : float or array_like (k,)
        Proportional gain kPC [V/A].
    integral : float or array_like (k,)
        Integral gain kIC [V/(A s)].
    cycle : float
        Cycle time [s].

    Examples
    --------
    >>> from dynident.control import CurrentLoop
    >>> CurrentLoop(2.0, 500.0, 62.5e-6).cycle
    6.25e-05
    """

    gain: ArrayLike
    integral: ArrayLike
    cycle: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "gain", gain("current loop", "gain", self.gain))
        object.__setattr__(self, "integral", gain("current loop", "integral", self.integral))
        object.__setattr__(self, "cycle", cycle_time("current loop", "cycle", self.cycle))


@dataclass(frozen=True)
class Cascade:
    """P position, PI velocity and PI current loops of every actuator, with feed-forwards, filters and limits.

    Numbers are scalars, or one per actuator.

    Parameters
    ----------
    position_gain : float or array_like (k,)
        kv [1/s]: error of the actuator coordinate rho to its wanted speed, which times the gear ratio is a motor speed.
    velocity_gain : float or array_like (k,)
        kP [A s/rad]: error of the motor speed to current.
    velocity_integral : float or array_like (k,)
        kI [A/rad]: integral of the error of the motor speed to current.
    position_cycle : float
        Cycle time of the position loop [s], a whole multiple of the velocity loop's.
    velocity_cycle : float
        Cycle time of the velocity loop [s], a whole multiple of the current loop's.
    current : CurrentLoop, optional
        Current loop; None is an ideal one, in which the wanted current flows at once.
    velocity_feedforward : float or array_like (k,)
        Share of the reference velocity that is added to the wanted speed; 1 is all of it.
    torque_feedforward : Mechanism, optional
        Model whose inverse dynamics on the reference is added as current.
    position_filter, velocity_filter : float or array_like (k,)
        Corner frequency of a first-order low-pass on the output of the position loop (the wanted speed) and on that of
        the velocity loop (the wanted current) [Hz]; 0 is none.
    speed_limit : float or array_like (k,)
        Largest wanted speed of rho [rad/s, m/s].
    anti_windup : bool
        True stops the integrators while their output is at its limit.
    delay : float
        Time from the sampling of the innermost loop to its command at the motor [s]: computation, transport, amplifier. In a
        simulation a whole multiple of its step; nothing flows before the first command has arrived.
    position_delay : float
        Time from the sampling of the position to the use of the wanted speed in the velocity loop [s], as where one computer
        has the position loop and a bus leads to drives with the others; a whole multiple of the velocity cycle. The torque
        feed-forward does not take this way.

    Examples
    --------
    >>> from dynident.control import Cascade
    >>> loops = Cascade(19.2, 0.14, 11.45, position_cycle=5e-3, velocity_cycle=250e-6)
    >>> loops.velocity_ticks
    20
    """

    position_gain: ArrayLike
    velocity_gain: ArrayLike
    velocity_integral: ArrayLike
    _: KW_ONLY
    position_cycle: float
    velocity_cycle: float
    current: CurrentLoop | None = None
    velocity_feedforward: ArrayLike = 0.0
    torque_feedforward: Mechanism | None = None
    position_filter: ArrayLike = 0.0
    velocity_filter: ArrayLike = 0.0
    speed_limit: ArrayLike = float("inf")
    anti_windup: bool = True
    delay: float = 0.0
    position_delay: float = 0.0

    def __post_init__(self) -> None:
        for field in ("position_gain", "velocity_gain", "velocity_integral", "position_filter", "velocity_filter"):
            object.__setattr__(self, field, gain("cascade", field, getattr(self, field)))
        share = gain("cascade", "velocity_feedforward", self.velocity_feedforward)
        object.__setattr__(self, "velocity_feedforward", share)
        object.__setattr__(self, "speed_limit", gain("cascade", "speed_limit", self.speed_limit, above=True, infinite=True))
        for field in ("position_cycle", "velocity_cycle"):
            object.__setattr__(self, field, cycle_time("cascade", field, getattr(self, field)))
        if self.current is not None and not isinstance(self.current, CurrentLoop):
            raise DynidentError(
                f"cascade: current is a {type(self.current).__name__}; give a CurrentLoop, or None for an ideal one"
            )
        optional_model("cascade", "torque_feedforward", self.torque_feedforward)
        flag("cascade", "anti_windup", self.anti_windup)
        for field in ("delay", "position_delay"):
            object.__setattr__(self, field, dead_time("cascade", field, getattr(self, field)))
        _ = self.velocity_ticks, self.current_ticks, self.late_ticks

    @property
    def cycle(self) -> float:
        """Cycle time of the outermost loop, the position loop [s]."""
        return self.position_cycle

    @property
    def velocity_ticks(self) -> int:
        """Cycles of the velocity loop in one of the position loop."""
        return whole_ratio("cascade", ("position_cycle", self.position_cycle), ("velocity_cycle", self.velocity_cycle))

    @property
    def current_ticks(self) -> int:
        """Cycles of the current loop in one of the velocity loop; 1 for an ideal current."""
        if self.current is None:
            return 1
        return whole_ratio("cascade", ("velocity_cycle", self.velocity_cycle), ("current.cycle", self.current.cycle))

    @property
    def late_ticks(self) -> int:
        """Cycles of the velocity loop in the position delay."""
        if self.position_delay == 0.0:
            return 0
        return whole_ratio("cascade", ("position_delay", self.position_delay), ("velocity_cycle", self.velocity_cycle))
