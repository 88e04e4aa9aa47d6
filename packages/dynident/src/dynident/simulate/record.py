"""Results of a run: log, true signals, energies, notes, and the final state for a continuation."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.arrays import Array
from dynident.checks import choice, flag, gain, per_actuator, whole
from dynident.drive.drive import sensed_current, sensed_position
from dynident.errors import DynidentError, SimulationError, SimulationWarning, warn
from dynident.files import write_atomic
from dynident.mechanics.dynamics import forward_kinematics
from dynident.mechanics.functions import Motion
from dynident.mechanism.mechanism import Mechanism
from dynident.mechanism.parameters import Parameters
from dynident.results import Result, stored
from dynident.signals.log import MINIMUM_SAMPLES, Log
from dynident.simulate.analysis import TrackingError, plot_tracking, tool_of, tracking_error
from dynident.simulate.layout import Signals

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dynident.simulate.friction import Owner
    from dynident.simulate.robot import VirtualRobot


@dataclass(frozen=True, eq=False, repr=False)
class Truth:
    """True signals of a run at the nominal times of the log: n coordinates, k actuators, n_tree tree coordinates."""

    t: Array  #: (N,), time [s]
    motion: Motion  #: Coordinates of the robot with velocities and accelerations
    rho: Array  #: (N, k), actuator coordinates, behind the gears
    rho_v: Array  #: (N, k), their velocities
    theta: Array  #: (N, k), rotor angles [rad]
    omega: Array  #: (N, k), rotor speeds [rad/s]
    torques: Array  #: (N, k), torques of the transmissions on the mechanism, inertia of a rigid drive included [N m, N]
    #: (N, k), gear losses by efficiency, as torques behind the gears [N m, N]
    gear_loss: Array
    motor_torque: Array  #: (N, k), torque constant times current [N m]
    current: Array  #: (N, k), currents of the motors [A]
    voltage: Array  #: (N, k), voltages of the motors [V]
    friction: Array  #: (N, k), friction torque of the drives on their rotors [N m]
    joint_friction: Array  #: (N, n_tree), friction of the tree's joints: joint terms and laws [N m, N]
    external: Array  #: (N, k), disturbance torques at the actuators [N m, N]
    parameters: Parameters  #: Parameters of `VirtualRobot.model`
    energy: Array  #: (N, 2), kinetic and potential energy of mechanism and drives [J]
    mean_current: Array  #: (N, k), mean over one cycle of the log around each sample [A]
    mean_voltage: Array  #: (N, k), the same of the voltage [V]
    wrenches: Mapping[str, Array] = field(default_factory=dict)  #: (N, 6), external wrenches by link
    temperature: Array | None = None  #: (N, k), of the friction surfaces, when the robot has thermal models [degree Celsius]
    #: (N, m), temperatures of all zones of every thermal model, by joint or actuator [degree Celsius]
    zones: Mapping[str, Array] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Truth({self.t.size} samples of {', '.join(self.arrays())})"

    def arrays(self) -> dict[str, Array]:
        """Return all signals by name, time first."""
        out = {"t": self.t, "q": self.motion.q, "v": self.motion.v, "a": self.motion.a}
        out |= {name: values for name, values in vars(self).items() if isinstance(values, np.ndarray)}
        out |= {f"zones_{name}": values for name, values in self.zones.items()}
        return out | {f"wrench_{link}": values for link, values in self.wrenches.items()}

    def checksum(self) -> str:
        """Return the SHA-256 checksum of the signals."""
        whole = hashlib.sha256()
        for name, values in self.arrays().items():
            whole.update(name.encode())
            whole.update(np.ascontiguousarray(values).data)
        return whole.hexdigest()

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write all signals to an .npz file (no pickle)."""
        if not str(path).endswith(".npz"):
            raise SimulationError(f"cannot write the truth to '{path}'; the name must end in .npz")
        buffer = io.BytesIO()
        names = np.array(self.parameters.names)
        content = {**self.arrays(), "parameter_names": names, "parameter_values": self.parameters.values}
        np.savez_compressed(buffer, allow_pickle=False, **content)
        return write_atomic(path, buffer.getvalue())


class Heat(Protocol):
    """Temperatures of joints and drives during a run, and their effect on friction (`dynident_lab.thermal`)."""

    @property
    def temperature(self) -> Array:
        """Temperature behind every actuator, (k,) [degree Celsius]."""

    def zones(self) -> dict[str, Array]:
        """Return the temperatures of all zones of all thermal models, by joint or actuator."""

    def scales(self, owners: Sequence[Owner]) -> tuple[Array, Array]:
        """Return friction ratio and temperature of every owner of friction."""

    def add(self, joint_power: Array, drive_power: Array, current: Array) -> None:
        """Add friction powers (N, n_tree), (N, k) [W] and currents (N, k) [A] of further samples."""

    def advance(self, dt: float) -> None:
        """Heat the robot by the mean powers of dt seconds."""

    def rested(self, duration: float) -> Heat:
        """Return a copy after some time [s] without losses."""

    def memory(self) -> dict[str, Any]:
        """Return the complete state as plain data for `remember`."""

    def remember(self, memory: Mapping[str, Any]) -> None:
        """Restore a state of `memory`."""


class Heating(Protocol):
    """Thermal model of a joint or drive, such as those of `dynident_lab.thermal`."""

    def heating(self) -> Any:
        """Return an object whose ``begin(robot)`` is the `Heat` of all thermal models of a robot at the start of a run."""


def heat_of(robot: VirtualRobot) -> Heat | None:
    """Return the temperatures of a robot at the start; None without thermal models."""
    found: Heat | None = next(iter(robot.thermal.values())).heating().begin(robot) if robot.thermal else None
    return found


@dataclass(frozen=True, eq=False, repr=False)
class End:
    """Complete state at the end of a run; ``simulate(..., start=run.end)`` continues it."""

    time: float  # End time from the start of the first run [s]
    state: Mapping[str, Array]
    origin: Array  # Start pose of the first run
    noise: Mapping[str, dict[str, Any]]  # States of the random generators
    heat: Heat | None = None  # Temperatures of all thermal zones
    tail: Array = field(default_factory=lambda: np.zeros((0, 0)))
    last_noise: Array | None = None  # Noise of the last sensor tick, if the run ended between two ticks

    def __repr__(self) -> str:
        return f"End(t = {self.time:g} s, {', '.join(self.state)})"

    def rested(self, duration: float) -> End:
        """Return the state after a rest of some duration, which changes only temperatures."""
        return replace(self, heat=None if self.heat is None else self.heat.rested(duration))

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that `from_dict` restores bit by bit; infinity in Python's notation."""
        return {
            "time": self.time,
            "state": {name: np.asarray(values).tolist() for name, values in self.state.items()},
            "origin": self.origin.tolist(),
            "noise": {name: dict(state) for name, state in self.noise.items()},
            "heat": None if self.heat is None else self.heat.memory(),
            "tail": {"shape": list(self.tail.shape), "values": self.tail.ravel().tolist()},
            "last_noise": None if self.last_noise is None else self.last_noise.tolist(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], robot: VirtualRobot) -> End:
        """Return the state of a dictionary from `to_dict`."""
        hints = {"time": float, "state": dict[str, Array | float], "origin": Array, "noise": dict[str, dict[str, Any]]}
        try:
            given = {name: stored(data, name, hint, "end") for name, hint in hints.items()}
            warm, last = (stored(data, name, hint, "end") for name, hint in (("heat", Any), ("last_noise", Array | None)))
            tail = stored(data, "tail", dict[str, Any], "end")
            shape, values = stored(tail, "shape", list[int], "tail"), stored(tail, "values", Array, "tail")
        except DynidentError as error:
            raise SimulationError(f"the state of the machine cannot be read ({error}); start the run again") from error
        if min(shape, default=0) < 0 or np.prod(shape) != values.size:
            raise SimulationError(f"the state of the machine is damaged (its tail is not {shape}); start the run again")
        heat = None if warm is None else heat_of(robot)
        if heat is not None:
            heat.remember(warm)
        given["state"] = {name: np.asarray(values) for name, values in given["state"].items()}
        return cls(**given, heat=heat, tail=values.reshape(shape), last_noise=last)


@dataclass(frozen=True, eq=False, repr=False)
class Run(Result):
    """One run of a virtual robot; its file holds the machine, all signals and the end state for a continuation."""

    _less: ClassVar[str] = "save run.log, or simulate it in pieces (start=run.end)"

    log: Log  #: Recorded log, with the same contract as a log of a real robot
    truth: Truth  #: True signals
    robot: VirtualRobot  #: The machine
    reference: Motion  #: Reference motion at the times of the truth
    #: Share of time that each actuator was at a limit of its motor or amplifier: ``{"motor1": 0.12, ...}``
    saturation: Mapping[str, float]
    #: (k,), ``electric`` (voltage times current), ``mechanical`` (of the rotors), ``copper``, ``friction`` (of the rotors)
    #: and ``gear`` losses [J]
    energy: Mapping[str, Array]
    settings: Mapping[str, Any]  #: Settings of the run: seed, step, cycle times, method
    notes: tuple[str, ...] = ()  #: Warnings, one sentence each
    end: End | None = None  #: Complete state at the end: ``simulate(..., start=run.end)`` continues the run

    def __repr__(self) -> str:
        return f"Run({self.robot!r}, {self.truth.t[-1]:g} s, {self.log!r})"

    def _content(self) -> dict[str, Any]:
        return super()._content() | {"end": None if self.end is None else self.end.to_dict()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Run:
        """Return the run of a dictionary from `to_dict`."""
        run = super().from_dict({**data, "end": None})
        return run if data.get("end") is None else replace(run, end=End.from_dict(data["end"], run.robot))

    def log_with_reference(self) -> Log:
        """Return the log with the commanded positions, as written by most controllers.

        Instruments and closed-loop estimators need them. A log of motor positions is returned as it is.
        """
        names = self.robot.mechanism.coordinate_names
        if self.log.position_side != "joint" or not set(self.log.joints) <= set(names):
            return self.log
        wanted = [np.interp(self.log.t, self.reference.t, self.reference.q[:, names.index(j)]) for j in self.log.joints]
        return replace(self.log, reference=np.stack(wanted, axis=1))

    def tracking(self) -> TrackingError:
        """Return the tracking error of the joints."""
        return tracking_error(self.reference, self.truth.motion, self.robot.mechanism.coordinate_names)

    def tool_tracking(self) -> TrackingError | None:
        """Return the tracking error of the tool; None for a robot without a single last link."""
        robot = self.robot.mechanism
        name = tool_of(robot)
        if name is None:
            return None
        wanted, found = (forward_kinematics(robot, motion.q, name)[1] for motion in (self.reference, self.truth.motion))
        error = np.column_stack([found - wanted, np.linalg.norm(found - wanted, axis=1)])
        zero = np.zeros_like(error)
        columns = ("tool.x", "tool.y", "tool.z", "tool")
        return tracking_error(Motion(self.truth.t, zero, zero, zero), Motion(self.truth.t, error, zero, zero), columns)

    def plot(self, coordinates: Sequence[str] | None = None) -> Figure:
        """Draw reference, motion and tracking error of all or some coordinates."""
        return plot_tracking(self, coordinates)

    def summary(self) -> str:
        """Return the run in a few lines. Log, tracking errors, limits and notes."""
        lines = [repr(self.log), self.tracking().summary()]
        if (tool := self.tool_tracking()) is not None:
            lines += tool.summary().splitlines()[1:]
        hit = [f"{name} {100.0 * share:.3g} %" for name, share in self.saturation.items() if share > 0.0]
        if hit:
            lines.append(f"at a limit: {', '.join(hit)} of the time")
        return "\n".join([*lines, *self.notes])

    def numbers(self) -> dict[str, Any]:
        """Return key figures of a run: errors, limits, energies."""
        error, tool = self.tracking(), self.tool_tracking()
        names = [actuator.name for actuator in self.robot.mechanism.actuators]
        return {
            "robot": self.robot.name or self.robot.mechanism.name,
            "settings": dict(self.settings),
            "samples": len(self.log),
            "duration": float(self.truth.t[-1]),
            "tracking": _sizes(error),
            "tool": None if tool is None else _sizes(tool),
            "saturation": dict(self.saturation),
            "energy": {kind: dict(zip(names, values.tolist(), strict=True)) for kind, values in self.energy.items()},
            "truth_sha256": self.truth.checksum(),
            "notes": list(self.notes),
        }


def _sizes(error: TrackingError) -> dict[str, dict[str, float]]:
    """Return RMS and largest error by name."""
    rows = zip(error.names, error.rms, error.largest, strict=True)
    return {name: {"rms": float(rms), "largest": float(largest)} for name, rms, largest in rows}


# ---- warnings and energies -------------------------------------------------------------------------------------------


# Sentences, to be stored with the numbers of many runs.
COLLECTED: ContextVar[list[str] | None] = ContextVar("notices", default=None)
NOTICEABLE = 0.01  # share of time at a limit above which a warning is given


def notes_of(robot: VirtualRobot, truth: Truth, saturation: Mapping[str, float]) -> tuple[str, ...]:
    """Return the warnings of a run, and issue them."""
    notes = []
    speed = np.abs(truth.omega)
    fastest = float(speed.max())  # of all motors: single motors are rarely checked
    for j, drive in enumerate(robot.drives):
        share, motor = saturation[drive.actuator], drive.motor
        if share > NOTICEABLE:
            at = np.mean(np.abs(truth.current[:, j]) >= 0.999 * motor.current_limit)
            kind = "current" if at >= 0.5 * share or not np.isfinite(motor.voltage_limit) else "voltage"
            value = f"{motor.current_limit:g} A" if kind == "current" else f"{motor.voltage_limit:g} V"
            notes.append(f"motor of '{drive.actuator}' was at its {kind} limit of {value} {100.0 * share:.3g} % of the time")
        if fastest > motor.speed_limit and (fast := speed[:, j] > motor.speed_limit).any():
            notes.append(
                f"motor of '{drive.actuator}' was above its speed limit of {motor.speed_limit:g} rad/s "
                f"{100.0 * float(fast.mean()):.3g} % of the time, first at t = {truth.t[int(fast.argmax())]:.6g} s and with up "
                f"to {float(speed[:, j].max()):.4g} rad/s"
            )
    lower, upper = robot.mechanism.position_limits
    outside = (truth.motion.q < lower - 1e-6) | (truth.motion.q > upper + 1e-6)
    for i in np.flatnonzero(outside.any(axis=0)) if outside.any() else ():
        notes.append(
            f"joint '{robot.mechanism.coordinate_names[i]}' was outside its limits {lower[i]:.6g} to {upper[i]:.6g} for "
            f"{100.0 * outside[:, i].mean():.3g} % of the time; the simulation has no end stops"
        )
    if notes:
        title = robot.name or robot.mechanism.name
        notify(f"robot '{title}': {'; '.join(notes)}")
    return tuple(notes)


def notify(text: str) -> None:
    """Warn, and append the sentence to the notices that are being collected."""
    box = COLLECTED.get()
    if box is not None:
        box.append(text)
    warn(text, SimulationWarning)


def energies(signals: Signals[Array], motors: tuple[Array, Array, Array, Array], cycle: float) -> dict[str, Array]:
    """Return the energies of a run by kind [J]: electric, mechanical (of the rotors), copper, friction, and losses of gears.

    `motors` are resistances, inductances, torque constants and back-EMF constants; `cycle` is the time between two rows.

    The electric energy follows from the others, ``copper + (K_E / K_t) mechanical + L (i_end^2 - i_start^2) / 2``: the voltage
    of a current loop changes faster than the rows, the current does not.
    """
    R, L, Kt, Ke = motors
    theta, omega, current, voltage, friction = signals.theta, signals.omega, signals.current, signals.voltage, signals.friction
    coil = np.zeros(R.size, dtype=bool)
    if L.any():
        rest = np.abs(voltage - R * current - Ke * omega)
        coil = rest.max(axis=0, initial=0.0) > 1e-9 * np.abs(voltage).max(axis=0, initial=0.0)
    early = current[:-1]
    late = np.where(coil, current[1:], early) if coil.any() else early  # otherwise held between ticks
    turned = theta[1:] - theta[:-1]
    copper = R * cycle * (_summed(early, early) + _summed(late, late)) / 2.0
    mechanical = Kt * _summed(early + late, turned) / 2.0
    stored = np.where(coil, L, 0.0) * (current[-1] ** 2 - current[0] ** 2) / 2.0
    return {
        "electric": copper + Ke / Kt * mechanical + stored,
        "mechanical": mechanical,
        "copper": copper,
        "friction": _summed(friction[:-1] + friction[1:], turned) / 2.0,
        "gear": np.asarray(np.trapezoid(signals.gear_loss * signals.rho_v, dx=cycle, axis=0)),
    }


def _summed(x: Array, y: Array) -> Array:
    """Return the sums of products over the rows."""
    return np.asarray(np.einsum("ij,ij->j", x, y))


def means(values: Array, thin: int, before: Array) -> Array:
    """Return the means over one cycle of the log around every thin-th row, with rows held until the next.

    `before` are rows before the first, half a cycle of them in a continued run.
    """
    half = -(-thin // 2)
    early = min(before.shape[0], half)
    last = values.shape[0] - 1  # it is held for no time
    rows = np.zeros((half + last + half, values.shape[1]))
    rows[half - early : half] = before[before.shape[0] - early :]
    rows[half : half + last] = values[:-1]
    held = [rows[first : first + last + 1 : thin] for first in range(2 * half)]  # around every sample, in their order
    if thin % 2:  # the window begins and ends in the middle of a row
        held = [0.5 * (held[0] + held[-1]), *held[1:-1]]
    area = sum(held[1:], held[0])
    middle = np.arange(area.shape[0]) * thin
    time = np.minimum(middle + 0.5 * thin, last) - np.maximum(middle - 0.5 * thin, -early)
    return np.asarray(area / time[:, None])


EFFORTS = ("motor_current", "motor_torque", "joint_torque", "voltage")
SIDES = ("motor", "joint")
CLOCKS = ("stamps", "sampling")
MISSING = ("rows", "nan")
#: Jittering time stamps still increase: the jitter stays below half a cycle.
LARGEST_STRAY = 0.45
WHOLE = 1e-6  # of a cycle: tolerance of the time of a tick
#: Random quantities, each with a separate stream, so that a further noise does not change the others.
STREAMS = ("loop", "encoder", "current", "position", "velocity", "effort", "clock", "loss", "temperature", "loop_current")


@dataclass(frozen=True)
class Sensors:
    """Recording of the signals of a run, in addition to the encoders and current sensors of the drives.

    Noise is white and normal; numbers are standard deviations, one for all channels or one per channel.

    Examples
    --------
    >>> from dynident.simulate import Sensors
    >>> Sensors(effort_noise=0.02, dropped=0.001).effort
    'motor_current'
    """

    position_noise: ArrayLike = 0.0  #: (k,), added to the logged positions [rad or m on their side]
    #: (k,), noise of the logged velocities [rad/s or m/s]; 0 logs the true velocities, None logs none
    velocity_noise: ArrayLike | None = None
    effort_noise: ArrayLike = 0.0  #: (k,), added to the logged efforts [A, N m, N or V]
    #: {"motor_current", "motor_torque", "joint_torque", "voltage"}: logged effort. A motor torque is torque constant
    #: times sensed current, a joint torque is the motor torque times the gear ratio: as known to a drive, with rotor inertia
    #: and motor friction.
    effort: str = "motor_current"
    #: {"motor", "joint"}: side of the logged positions: motor angles, or joint (slide) positions behind the gear
    side: str = "motor"
    delay: ArrayLike = 0.0  #: (k,), delay of the logged efforts relative to the positions of the same row [s]
    jitter: float = 0.0  #: Standard deviation of the clock [s]
    #: {"stamps", "sampling"}: source of jitter: only the time stamps, because messages arrive late (samples are uniform), or
    #: the sampling itself (samples are taken at the stamped, irregular times)
    clock: str = "stamps"
    dropped: float = 0.0  #: Share of lost samples, 0 to below 1
    missing: str = "rows"  #: {"rows", "nan"}: form of a lost sample: a missing row (as in real recorders) or a row of NaN
    temperature_noise: ArrayLike = 0.0  #: (k,), noise of the logged temperatures [K]
    #: True logs efforts averaged over the cycle of the log around each sample, like drives that filter before sampling;
    #: False samples the current as it is, with the ripple of the control loops folded into the band of the motion. The noise
    #: of a current sensor is in both cases that of one reading.
    averaged: bool = True

    def __post_init__(self) -> None:
        for label in ("position_noise", "velocity_noise", "effort_noise", "delay", "temperature_noise"):
            value = getattr(self, label)
            if value is not None or label != "velocity_noise":
                object.__setattr__(self, label, gain("sensors", label, value))
        for label in ("jitter", "dropped"):
            value = gain("sensors", label, getattr(self, label))
            if not isinstance(value, float):
                raise SimulationError(f"sensors: {label} has {len(value)} numbers; give one for all channels")
            object.__setattr__(self, label, value)
        flag("sensors", "averaged", self.averaged)
        if self.dropped >= 1.0:
            raise SimulationError(f"sensors: dropped = {self.dropped} must be below 1; it is a share, not per cent")
        for label, choices in (("effort", EFFORTS), ("side", SIDES), ("clock", CLOCKS), ("missing", MISSING)):
            choice(f"sensors: {label}", getattr(self, label), choices, SimulationError)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data. Every setting by name."""
        return {f.name: getattr(self, f.name) for f in fields(self)}


class Noise:
    """Random numbers of a run, one stream per source (`STREAMS`): the same for the same seed on every machine.

    The last rows of every draw are used by the next run too: `states` are the generator states before them.
    """

    def __init__(self, seed: int | np.random.SeedSequence) -> None:
        if isinstance(seed, np.random.SeedSequence):
            root = np.random.SeedSequence(seed.entropy, spawn_key=seed.spawn_key)  # spawning counts: never change the caller's
        else:
            root = np.random.SeedSequence(whole("seed", seed, least=0, most=np.inf, kind=SimulationError))
        children = zip(STREAMS, root.spawn(len(STREAMS)), strict=True)
        self._rng = {name: np.random.Generator(np.random.PCG64(child)) for name, child in children}
        self.states: dict[str, Any] = {name: dict(rng.bit_generator.state) for name, rng in self._rng.items()}
        # Noise of the current sensors where a controller reads them: time between two ticks [s], (T, k) [A], the first's number
        self.readings: tuple[float, Array, int] | None = None

    def go_on(self, states: Mapping[str, dict[str, Any]]) -> None:
        """Continue the noise of another run."""
        for name, state in states.items():
            self._rng[name].bit_generator.state = self.states[name] = state

    def _rows(self, name: str, draw: Any, shape: int | tuple[int, ...], ahead: int) -> Array:
        rows, *rest = (shape,) if isinstance(shape, int) else shape
        first = draw((rows - ahead, *rest))
        self.states[name] = dict(self._rng[name].bit_generator.state)
        return np.concatenate([first, draw((ahead, *rest))])

    def normal(self, name: str, shape: int | tuple[int, ...], ahead: int = 1) -> Array:
        """Return normal numbers of a stream; the last `ahead` rows are used by the next run too."""
        return self._rows(name, self._rng[name].standard_normal, shape, ahead)

    def uniform(self, name: str, count: int = 1) -> Array:
        """Return numbers between 0 and 1; the last one is used by the next run too."""
        return self._rows(name, self._rng[name].random, count, 1)

    def added(self, name: str, values: Array, deviation: Array) -> Array:
        """Return values with white noise; without noise, nothing is drawn."""
        return values + self.normal(name, values.shape) * deviation if np.any(deviation) else values

    def as_read(self, fresh: Array, when: Array) -> Array:
        """Return noise of currents, at ticks equal to that of the controller: one instant has one reading."""
        if self.readings is None:
            return fresh
        cycle, noise, first = self.readings
        tick = np.round(when / cycle) - first
        same = (np.abs(when / cycle - tick - first) < WHOLE) & (tick >= 0) & (tick < noise.shape[0])
        rows = np.where(same, tick, 0).astype(np.int64)
        return np.where(same, np.take_along_axis(noise, rows, axis=0), fresh)


def sample_times(sensors: Sensors, t: Array, noise: Noise) -> tuple[Array, Array]:
    """Return the sampling times and the recorded time stamps."""
    if not sensors.jitter or t.size < 2:
        return t, t
    cycle = t[1] - t[0]
    stray = np.clip(noise.normal("clock", t.size) * sensors.jitter, -LARGEST_STRAY * cycle, LARGEST_STRAY * cycle)
    if sensors.clock == "stamps":
        return t, t + stray
    taken = np.clip(t + stray, t[0], t[-1])
    taken[0], taken[-1] = t[0], t[-1]
    return taken, taken


def at_times(t: Array, values: Array, rates: Array | None, when: Array) -> Array:
    """Return signals at other times: cubic where their rates are known, linear otherwise; the ends are held."""
    out = np.empty((when.shape[0], values.shape[1]))
    for j in range(values.shape[1]):
        at = np.clip(when if when.ndim == 1 else when[:, j], t[0], t[-1])
        if rates is None:
            out[:, j] = np.interp(at, t, values[:, j])
            continue
        left = np.clip(np.searchsorted(t, at, side="right") - 1, 0, t.size - 2)
        h = t[left + 1] - t[left]
        u = (at - t[left]) / h
        y0, y1, d0, d1 = values[left, j], values[left + 1, j], rates[left, j] * h, rates[left + 1, j] * h
        out[:, j] = y0 + u * (d0 + u * (3 * (y1 - y0) - 2 * d0 - d1 + u * (2 * (y0 - y1) + d0 + d1)))
    return out


def kept_rows(sensors: Sensors, samples: int, noise: Noise) -> NDArray[np.bool_]:
    """Return the mask of samples that are not lost."""
    kept = noise.uniform("loss", samples) >= sensors.dropped
    kept[[0, -1]] = True
    if kept.sum() < MINIMUM_SAMPLES:
        raise SimulationError(
            f"sensors: dropped = {sensors.dropped} leaves {int(kept.sum())} of {samples} samples; lower it or record longer"
        )
    return kept


def channel_numbers(sensors: Sensors, field: str, count: int) -> Array:
    """Return a setting as one number per channel."""
    return per_actuator(getattr(sensors, field), count, f"sensors: {field}")


def check_voltage(robot: VirtualRobot) -> None:
    """Refuse a log of voltages of a motor without a resistance: its current cannot be computed."""
    ideal = [drive.actuator for drive in robot.drives if drive.motor.resistance == 0.0]
    if robot.sensors.effort == "voltage" and ideal:
        raise SimulationError(
            f"sensors: a voltage is logged but the motor of '{ideal[0]}' has no resistance; give it, or log currents"
        )


def check_channels(robot: VirtualRobot) -> None:
    """Refuse sensors with impossible channels for this robot."""
    mechanism, sensors = robot.mechanism, robot.sensors
    count = len(channel_names(mechanism, sensors.side))
    check_voltage(robot)
    if not mechanism.loops:
        driven = [next(iter(actuator.coupling)) for actuator in mechanism.actuators if len(actuator.coupling) == 1]
        plain = len(driven) == len(mechanism.actuators) and sorted(driven) == sorted(mechanism.coordinate_names)
        joint_effort = sensors.effort == "joint_torque"
        mixed = joint_effort != (sensors.side == "joint")
        if mixed and not plain:
            raise SimulationError(
                f"sensors: side '{sensors.side}' and effort '{sensors.effort}' have different channels on robot "
                f"'{mechanism.name}', whose motors turn with several joints; log both on one side"
            )
        if sensors.side == "joint" and np.linalg.matrix_rank(mechanism.actuator_matrix[0]) < mechanism.dof:
            raise SimulationError(
                f"sensors: {len(mechanism.actuators)} encoders do not give the {mechanism.dof} joints of robot "
                f"'{mechanism.name}'; log side='motor'"
            )
    for name in ("position_noise", "effort_noise", "temperature_noise", "delay"):
        channel_numbers(sensors, name, len(robot.drives) if name == "delay" else count)
    if sensors.velocity_noise is not None:
        channel_numbers(sensors, "velocity_noise", count)


def channel_names(mechanism: Mechanism, side: str) -> tuple[str, ...]:
    """Return the channels of a log."""
    if side == "joint" and not mechanism.loops:
        return mechanism.coordinate_names
    return tuple(actuator.name for actuator in mechanism.actuators)


def record(
    robot: VirtualRobot,
    truth: Truth,
    noise: Noise,
    provenance: Mapping[str, Any],
    facts: Mapping[str, Any],
) -> Log:
    """Return the log written by the robot's sensors; its channels are checked before the run."""
    sensors, mechanism, t = robot.sensors, robot.mechanism, truth.t
    names = channel_names(mechanism, sensors.side)
    taken, stamped = sample_times(sensors, t, noise)
    kept = kept_rows(sensors, t.size, noise) if sensors.dropped else None

    def left(values: Array) -> Array:
        """Remove lost samples, or set them to NaN."""
        if kept is None:
            return values
        return np.where(kept[:, None], values, np.nan) if sensors.missing == "nan" else values[kept]

    def logged(name: str, values: Array) -> Array:
        return left(noise.added(name, values, channel_numbers(sensors, f"{name}_noise", len(names))))

    position = _on_side(robot, _positions(robot, truth, taken, noise))
    effort, gain = _efforts(robot, truth, taken, noise)
    heat = truth.temperature
    if heat is not None:
        heat = at_times(t, heat, None, taken)
        if sensors.side == "joint" and not mechanism.loops:
            heat = _by_joint(mechanism, heat, robot.ambient)
    velocity = None
    if sensors.velocity_noise is not None:
        velocity = logged("velocity", _on_side(robot, _velocities(robot, truth, taken)))
    title = robot.name or mechanism.name
    return Log(
        t=stamped if kept is None or sensors.missing == "nan" else stamped[kept],
        joints=names,
        position=logged("position", position),
        effort=logged("effort", effort),
        effort_kind=sensors.effort,
        gain=gain,
        velocity=velocity,
        temperature=None if heat is None else logged("temperature", heat),
        position_side=sensors.side,
        name=f"{title} (simulated)",
        provenance={"simulated": title, **provenance, "sensors": sensors.to_dict()},
        truth={"parameters": truth.parameters.to_dict(), **facts},
    )


def _at_motor(robot: VirtualRobot) -> NDArray[np.bool_]:
    """Return the mask of encoders in front of their gear."""
    return np.array([drive.encoder.side == "motor" for drive in robot.drives])


def _positions(robot: VirtualRobot, truth: Truth, taken: Array, noise: Noise) -> Array:
    """Return the encoder readings of rho, each rounded on its side of the gear."""
    encoders = [drive.encoder for drive in robot.drives]
    theta, rho = truth.theta, truth.rho
    if taken is not truth.t:
        theta, rho = at_times(truth.t, theta, truth.omega, taken), at_times(truth.t, rho, truth.rho_v, taken)
    strays = noise.added("encoder", np.zeros_like(rho), np.array([encoder.noise for encoder in encoders]))
    resolution = np.array([encoder.resolution for encoder in encoders])
    ratio = np.array([drive.transmission.ratio for drive in robot.drives])
    return np.asarray(sensed_position(theta, rho, strays, resolution, _at_motor(robot), ratio))


def _velocities(robot: VirtualRobot, truth: Truth, taken: Array) -> Array:
    """Return the velocities of rho on the side of the encoders."""
    motor, ratio = _at_motor(robot), np.array([drive.transmission.ratio for drive in robot.drives])
    velocity = np.where(motor, truth.omega, truth.rho_v)
    velocity = velocity if taken is truth.t else at_times(truth.t, velocity, None, taken)
    return velocity / np.where(motor, ratio, 1.0)


def _on_side(robot: VirtualRobot, rho: Array) -> Array:
    """Return positions or velocities of the log's channels."""
    mechanism = robot.mechanism
    if robot.sensors.side == "motor":
        return np.asarray(rho * np.array([drive.transmission.ratio for drive in robot.drives]))
    if mechanism.loops:
        return np.asarray(rho / np.array([next(iter(actuator.coupling.values())) for actuator in mechanism.actuators]))
    return np.asarray(rho @ np.linalg.pinv(mechanism.actuator_matrix[0]).T)


def _efforts(robot: VirtualRobot, truth: Truth, taken: Array, noise: Noise) -> tuple[Array, Array | None]:
    """Return the logged efforts and their drive gains."""
    mechanism, sensors, drives = robot.mechanism, robot.sensors, robot.drives
    delay = channel_numbers(sensors, "delay", len(drives))
    when = taken[:, None] - delay
    direct = taken is truth.t and not np.any(delay)
    constant = np.array([drive.motor.torque_constant for drive in drives])
    name = "voltage" if sensors.effort == "voltage" else "current"
    source: Array = getattr(truth, f"mean_{name}" if sensors.averaged else name)
    seen = source if direct else at_times(truth.t, source, None, when)
    if name == "voltage":
        order = _motor_order(mechanism, sensors.side)
        return seen[:, order], _gain((constant / np.array([drive.motor.resistance for drive in drives]))[order])
    meters = [drive.current_sensor for drive in drives]
    strays = noise.as_read(noise.added("current", np.zeros_like(seen), np.array([meter.noise for meter in meters])), when)
    gain, resolution = (np.array(x) for x in zip(*((1.0 + m.gain_error, m.resolution) for m in meters), strict=True))
    seen = np.asarray(sensed_current(seen, strays, resolution, gain))
    if sensors.effort != "joint_torque":
        order = _motor_order(mechanism, sensors.side)
        if sensors.effort == "motor_current":
            return seen[:, order], _gain(constant[order])
        return (seen * constant)[:, order], None
    behind = seen * constant * np.array([drive.transmission.ratio for drive in drives])
    if mechanism.loops:
        return behind * np.array([next(iter(actuator.coupling.values())) for actuator in mechanism.actuators]), None
    generalised = behind @ mechanism.actuator_matrix[0]
    if sensors.side == "joint":
        return generalised, None
    names = [next(iter(actuator.coupling)) for actuator in mechanism.actuators]
    return generalised[:, [mechanism.coordinate_names.index(name) for name in names]], None


def _motor_order(mechanism: Mechanism, side: str) -> list[int]:
    """Return the motor of every channel."""
    if side == "motor" or mechanism.loops:
        return list(range(len(mechanism.actuators)))
    driven = [next(iter(actuator.coupling)) for actuator in mechanism.actuators]
    return [driven.index(name) for name in mechanism.coordinate_names]


def _by_joint(mechanism: Mechanism, heat: Array, ambient: float) -> Array:
    """Return the temperature of every coordinate: of a motor that drives it alone, otherwise ambient."""
    out = np.full((heat.shape[0], mechanism.dof), ambient)
    for j, actuator in enumerate(mechanism.actuators):
        if len(actuator.coupling) == 1:
            out[:, mechanism.coordinate_names.index(next(iter(actuator.coupling)))] = heat[:, j]
    return out


def _gain(values: Array) -> Array | None:
    """Return drive gains, or None if a motor gives no torque."""
    return values if np.all(values > 0.0) else None
