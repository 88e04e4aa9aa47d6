"""Control laws of actuators and coordinates: cascades, PID, computed torque, open loop.

    Cascade          rho_v0 = kv (rho_ref - rho) + share rho_v_ref                    every position cycle
                     e = ratio rho_v0 - omega,   i0 = kP e + kI int e dt + i_ff       every velocity cycle,  omega: motor speed
                     V = kPC (i0 - i) + kIC int (i0 - i) dt                           every current cycle; without it i = i0
    PID              tau = kp e + kd e' + ki int e dt + tau_ff(reference)             e = rho_ref - rho
    ComputedTorque   a = a_ref + kp e + kd e' + ki int e dt,    A^T tau = ID_model(x, v, a)      e = x_ref - x
    OpenLoop         tabulated torques, currents or voltages

[Roldan2017, section 3.3; Briot2015; Kostic2002, eq. 15]. rho_v0 is used `position_delay` after its tick, V (or i0) acts at the
motor `delay` after its own. Torques of over-actuated robots have minimum norm, plus a preload. Dry friction in the model of a
computed torque has the sign of the reference velocity: with the measured velocity it would be a positive feedback around
rest, unstable at any gain if the real friction is smaller.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.checks import choice, finite_rows, flag, gain, number, numbers
from dynident.errors import DynidentError, require
from dynident.friction.dynamic import DynamicLaw
from dynident.friction.law import Friction
from dynident.mechanism.mechanism import Mechanism

if TYPE_CHECKING:
    from dynident.drive.drive import Drive


@dataclass(frozen=True, eq=False)
class Setpoint:
    """Reference at one time."""

    q: Array  #: (n,), positions of the coordinates
    v: Array  #: (n,), their velocities
    a: Array  #: (n,), their accelerations
    rho: Array  #: (k,), positions of the actuator coordinates
    rho_v: Array  #: (k,), their velocities


@dataclass(frozen=True, eq=False)
class Measurement:
    """Sensor readings at one time."""

    rho: Array  #: (k,), sensed positions of the actuator coordinates
    rho_v: Array  #: (k,), their velocities as estimated by the drive
    x: Array  #: (n,), corresponding positions of the coordinates
    v: Array  #: (n,), their velocities
    current: Array  #: (k,), sensed motor currents [A]


class Machine(Protocol):
    """Interface of the robot of a controller, such as `VirtualRobot`."""

    @property
    def mechanism(self) -> Mechanism:
        """The robot."""

    @property
    def drives(self) -> Sequence[Drive]:
        """One drive per actuator, in the order of ``mechanism.actuators``."""


class Controller(Protocol):
    """A control law in Python: reset once, then one update per cycle.

    An optional attribute `delay` [s] is the time from the measurement to the command at the motors.
    """

    @property
    def cycle(self) -> float:
        """Time between two updates [s]."""

    @property
    def command(self) -> Literal["torque", "current", "voltage"]:
        """Kind of command that `update` returns: torques behind the gear [N m, N], motor currents [A] or motor voltages [V]."""

    def reset(self, robot: Machine, start: Measurement) -> None:
        """Clear the memory and prepare for a run: called once before the first update."""

    def update(self, t: float, reference: Setpoint, measurement: Measurement) -> Array:
        """Return the command, held until the next update."""


WHOLE = 1e-6  # tolerance of a whole-number ratio of cycle times


def check_preload(owner: str, preload: ArrayLike, mechanism: Mechanism) -> None:
    """Refuse a preload on a robot that is not over-actuated."""
    k, n = len(mechanism.actuators), mechanism.dof
    if np.any(np.asarray(preload, dtype=np.float64)) and k <= n:
        raise DynidentError(
            f"{owner}: preload requires more motors than degrees of freedom; robot '{mechanism.name}' has {k} and {n}"
        )


def whole_ratio(owner: str, slow: tuple[str, float], fast: tuple[str, float]) -> int:
    """Return the number of inner cycles in one cycle of the outer loop, a whole number of at least one."""
    ratio = slow[1] / fast[1]
    if ratio < 1.0 - WHOLE:
        raise DynidentError(
            f"{owner}: {fast[0]} = {fast[1]} s is longer than {slow[0]} = {slow[1]} s; the inner loop must not be slower"
        )
    if not math.isfinite(ratio) or abs(ratio - round(ratio)) > WHOLE * ratio:
        raise DynidentError(
            f"{owner}: {slow[0]} = {slow[1]} s is {ratio:.6g} times {fast[0]} = {fast[1]} s; make it a whole multiple"
        )
    return round(ratio)


def check_gains(owner: str, law: Any) -> None:
    """Check gains, filter, cycle, preload and delay of a law that commands torques."""
    for field in ("kp", "kd", "ki", "derivative_filter"):
        object.__setattr__(law, field, gain(owner, field, getattr(law, field)))
    object.__setattr__(law, "cycle", number(f"{owner}: cycle", law.cycle, above=0.0, unit="s"))
    object.__setattr__(law, "preload", gain(owner, "preload", law.preload, signed=True))
    object.__setattr__(law, "delay", number(f"{owner}: delay", law.delay, least=0.0, unit="s"))


def optional_model(owner: str, field: str, value: object) -> None:
    """Refuse a model that is neither None nor a Mechanism."""
    if value is not None:
        require(value, Mechanism, f"{owner}: {field}")


@dataclass(frozen=True)
class CurrentLoop:
    """PI loop from current error to voltage: V = gain e + integral int e dt.

    Numbers are scalars, or one per actuator.

    Examples
    --------
    >>> from dynident.control import CurrentLoop
    >>> CurrentLoop(2.0, 500.0, 62.5e-6).cycle
    6.25e-05
    """

    gain: ArrayLike  #: (k,), proportional gain kPC [V/A]
    integral: ArrayLike  #: (k,), integral gain kIC [V/(A s)]
    cycle: float  #: Cycle time [s]

    def __post_init__(self) -> None:
        object.__setattr__(self, "gain", gain("current loop", "gain", self.gain))
        object.__setattr__(self, "integral", gain("current loop", "integral", self.integral))
        object.__setattr__(self, "cycle", number("current loop: cycle", self.cycle, above=0.0, unit="s"))


@dataclass(frozen=True)
class Cascade:
    """P position, PI velocity and PI current loops of every actuator, with feed-forwards, filters and limits.

    Numbers are scalars, or one per actuator.

    Examples
    --------
    >>> from dynident.control import Cascade
    >>> loops = Cascade(19.2, 0.14, 11.45, position_cycle=5e-3, velocity_cycle=250e-6)
    >>> loops.velocity_ticks
    20
    """

    #: (k,), kv [1/s]: error of the actuator coordinate rho to its speed setpoint, the motor speed over the gear ratio
    position_gain: ArrayLike
    velocity_gain: ArrayLike  #: (k,), kP [A s/rad]: error of the motor speed to current
    velocity_integral: ArrayLike  #: (k,), kI [A/rad]: integral of the error of the motor speed to current
    _: KW_ONLY
    position_cycle: float  #: Cycle time of the position loop [s], a whole multiple of the velocity loop's
    velocity_cycle: float  #: Cycle time of the velocity loop [s], a whole multiple of the current loop's
    current: CurrentLoop | None = None  #: Current loop; None for an ideal loop without delay
    #: (k,), share of the reference velocity that is added to the speed setpoint, 0 to 1
    velocity_feedforward: ArrayLike = 0.0
    torque_feedforward: Mechanism | None = None  #: Model whose inverse dynamics on the reference is added as current
    #: (k,), corner frequency of a first-order low-pass on the wanted speed, behind the position loop [Hz]; 0 is none
    position_filter: ArrayLike = 0.0
    #: (k,), the same on the wanted current, behind the velocity loop
    velocity_filter: ArrayLike = 0.0
    speed_limit: ArrayLike = float("inf")  #: (k,), largest wanted speed of rho [rad/s, m/s]
    anti_windup: bool = True  #: True stops the integrators while their output is at its limit
    #: Time from the sampling of the innermost loop to its command at the motor [s]: computation, transport, amplifier.
    #: In a simulation a whole multiple of its step; no command acts before the first has arrived.
    delay: float = 0.0
    #: Time from the sampling of the position to the use of the wanted speed in the velocity loop [s], such as
    #: when a bus connects the position loop to drives with the other loops; a whole multiple of the velocity cycle.
    #: The torque feed-forward is not delayed.
    position_delay: float = 0.0

    def __post_init__(self) -> None:
        gains = ("position_gain", "velocity_gain", "velocity_integral", "position_filter", "velocity_filter")
        for field in (*gains, "velocity_feedforward"):
            object.__setattr__(self, field, gain("cascade", field, getattr(self, field)))
        object.__setattr__(self, "speed_limit", gain("cascade", "speed_limit", self.speed_limit, above=True, infinite=True))
        for field in ("position_cycle", "velocity_cycle"):
            object.__setattr__(self, field, number(f"cascade: {field}", getattr(self, field), above=0.0, unit="s"))
        if self.current is not None and not isinstance(self.current, CurrentLoop):
            raise DynidentError(
                f"cascade: current is a {type(self.current).__name__}; give a CurrentLoop, or None for an ideal one"
            )
        optional_model("cascade", "torque_feedforward", self.torque_feedforward)
        flag("cascade", "anti_windup", self.anti_windup)
        for field in ("delay", "position_delay"):
            object.__setattr__(self, field, number(f"cascade: {field}", getattr(self, field), least=0.0, unit="s"))
        _ = self.velocity_ticks, self.current_ticks, self.late_ticks

    @property
    def cycle(self) -> float:
        """Cycle time of the outermost loop, the position loop [s]."""
        return self.position_cycle

    @property
    def cycles(self) -> dict[str, float]:
        """Cycle times of the position, velocity and current loop [s]; an ideal current has that of the velocity loop."""
        inner = self.velocity_cycle if self.current is None else self.current.cycle
        return {"position": self.position_cycle, "velocity": self.velocity_cycle, "current": inner}

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

    @cached_property
    def late_ticks(self) -> int:
        """Cycles of the velocity loop in the position delay."""
        if self.position_delay == 0.0:
            return 0
        return whole_ratio("cascade", ("position_delay", self.position_delay), ("velocity_cycle", self.velocity_cycle))


@dataclass(frozen=True)
class PID:
    """PID on the actuator coordinates rho; torques are those of rho, behind the gear.

    Numbers are scalars, or one per actuator.

    Examples
    --------
    >>> from dynident.control import PID
    >>> PID(2000.0, 15.0, cycle=1e-3, derivative_filter=70.0).ki
    0.0
    """

    kp: ArrayLike  #: (k,), proportional gain [N m/rad, N/m]
    kd: ArrayLike  #: (k,), gain of the error's derivative, reference velocity less measured velocity [N m s/rad, N s/m]
    ki: ArrayLike = 0.0  #: (k,), integral gain [N m/(rad s), N/(m s)]
    _: KW_ONLY
    cycle: float  #: Cycle time [s]
    #: (k,), corner frequency of a first-order low-pass on the error's derivative [Hz]; 0 is none
    derivative_filter: ArrayLike = 0.0
    feedforward: Mechanism | None = None  #: Model whose inverse dynamics on the reference is added
    #: True removes the internal part of the torques, tau - sum (u^T tau) u [Briot2015, eq. 50], before the preload.
    project: bool = False
    preload: ArrayLike = 0.0  #: (k,), torques whose internal part is added: internal stress of an over-actuated robot [N m, N]
    #: Laws by actuator or coordinate, added to the feed-forward at the reference's speed, u^f of [Kostic2002]; they need
    #: `feedforward`, whose joint terms should not contain the same friction
    friction: Mapping[str, Friction | DynamicLaw] | None = None
    #: Time from the sampling of the sensors to the command at the motors [s], a whole multiple of the simulation's step;
    #: no command acts before the first has arrived
    delay: float = 0.0

    def __post_init__(self) -> None:
        check_gains("PID", self)
        optional_model("PID", "feedforward", self.feedforward)
        flag("PID", "project", self.project)
        if self.friction is not None and self.feedforward is None:
            raise DynidentError("PID: friction is given without feedforward; give the model whose feed-forward it completes")


@dataclass(frozen=True)
class ComputedTorque:
    """Inverse dynamics of a model with accelerations from a PID.

    The model must contain everything that the motors move, including rotor and gear inertia and friction as joint terms
    (ia, fv, fc); omissions act as disturbances. `VirtualRobot.model` is such a model. Gains are scalars, or one per coordinate.

    Examples
    --------
    >>> from dynident.control import ComputedTorque, gains_for
    >>> import dynident as di
    >>> arm = di.Mechanism.from_dh([(0.3, 0, 0, 0)], convention="standard")
    >>> law = ComputedTorque(arm, *gains_for(10.0, 0.7), cycle=1e-3)
    >>> law.on
    'measurement'
    """

    model: Mechanism  #: Model of the controller; its coordinates are those of the robot
    kp: ArrayLike  #: (n,), gain of the position error [1/s^2], one for all coordinates or one each
    kd: ArrayLike  #: (n,), gain of the velocity error [1/s]
    ki: ArrayLike = 0.0  #: (n,), gain of the error's integral [1/s^3]
    _: KW_ONLY
    cycle: float  #: Cycle time [s]
    #: (n,), corner frequency of a first-order low-pass on the velocity error [Hz]; 0 is none
    derivative_filter: ArrayLike = 0.0
    preload: ArrayLike = 0.0  #: (k,), torques whose internal part is added [N m, N]; over-actuated robots only
    #: State at which the model is evaluated: measured x and v, or those of the reference. Dry friction always has the
    #: sign of the reference velocity.
    on: Literal["measurement", "reference"] = "measurement"
    #: Time from the sampling of the sensors to the command at the motors [s], a whole multiple of the simulation's step;
    #: no command acts before the first has arrived
    delay: float = 0.0

    def __post_init__(self) -> None:
        require(self.model, Mechanism, "computed torque: model")
        check_gains("computed torque", self)
        choice("computed torque: on", self.on, ("measurement", "reference"))


@dataclass(frozen=True, eq=False)
class OpenLoop:
    """A table of commands; give exactly one of the three.

    Examples
    --------
    >>> from dynident.control import OpenLoop
    >>> OpenLoop(voltage=[24.0, 0.0]).command
    'voltage'
    """

    #: (N, k), torques of the actuator coordinates, behind the gear, at the reference's own times [N m, N]; one row is
    #: held
    torque: ArrayLike | None = None
    current: ArrayLike | None = None  #: (N, k), motor currents [A]
    voltage: ArrayLike | None = None  #: (N, k), motor voltages [V]

    def __post_init__(self) -> None:
        given = [name for name in ("torque", "current", "voltage") if getattr(self, name) is not None]
        if len(given) != 1:
            raise DynidentError(f"open loop: {' and '.join(given) or 'nothing'} is given; give one of torque, current, voltage")
        table = np.array(np.atleast_2d(numbers(getattr(self, given[0]), f"open loop: {given[0]}")))
        if table.ndim != 2 or table.size == 0:
            raise DynidentError(f"open loop: {given[0]} has shape {table.shape}; give (samples, actuators)")
        finite_rows(f"open loop: {given[0]}", table)
        table.flags.writeable = False
        object.__setattr__(self, given[0], table)

    @property
    def command(self) -> Literal["torque", "current", "voltage"]:
        """Kind of the command."""
        if self.torque is not None:
            return "torque"
        return "current" if self.current is not None else "voltage"

    @property
    def table(self) -> Array:
        """The commands, (N, k), or (1, k) when held."""
        return np.asarray(getattr(self, self.command))
