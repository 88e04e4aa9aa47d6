"""What a recorder makes of the true signals: noise, counts, delay, a clock that jitters, samples that get lost; and the log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.arrays import Array
from dynident.checks import choice, flag, gain, per_actuator, whole
from dynident.drive.encoder import sensed_current, sensed_position
from dynident.errors import SimulationError
from dynident.mechanism.mechanism import Mechanism
from dynident.signals.log import MINIMUM_SAMPLES, Log

if TYPE_CHECKING:
    from dynident.simulate.record import Truth
    from dynident.simulate.robot import VirtualRobot

EFFORTS = ("motor_current", "motor_torque", "joint_torque", "voltage")
SIDES = ("motor", "joint")
CLOCKS = ("stamps", "sampling")
MISSING = ("rows", "nan")
#: A jittering clock still runs forward: stamps stray by less than half a cycle.
LARGEST_STRAY = 0.45
WHOLE = 1e-6  # of a cycle, by which a time may miss a tick
#: What is drawn at random, each from a stream of its own, so that one more noise leaves the others as they were.
STREAMS = ("loop", "encoder", "current", "position", "velocity", "effort", "clock", "loss", "temperature", "loop_current")


@dataclass(frozen=True)
class Sensors:
    """How the signals of a run are recorded, beside what the encoders and current sensors of the drives do to them.

    Noise is white and normal; numbers are standard deviations, one for all channels or one each.

    Parameters
    ----------
    position_noise : float or array_like (k,)
        Added to the logged positions [rad or m on their side].
    velocity_noise : float or array_like (k,), optional
        Noise of the logged velocities [rad/s or m/s]; 0 logs the true ones, None logs no velocities.
    effort_noise : float or array_like (k,)
        Added to the logged efforts [A, N m, N or V].
    effort : {"motor_current", "motor_torque", "joint_torque", "voltage"}
        What is logged as effort. A motor torque is torque constant times sensed current, a joint torque that times the
        ratio: what a drive knows, rotor inertia and motor friction included.
    side : {"motor", "joint"}
        Where the logged positions are: motor angles, or joint (slide) positions behind the gear.
    delay : float or array_like (k,)
        Time by which the logged efforts are older than the positions of the same row [s].
    jitter : float
        Standard deviation of the clock [s].
    clock : {"stamps", "sampling"}
        What jitters: only the time stamps, because messages arrive late (samples are uniform), or the sampling itself
        (samples are taken at the stamped, irregular times).
    dropped : float
        Share of samples that get lost, 0 to below 1.
    missing : {"rows", "nan"}
        What a lost sample leaves: nothing (as real recorders do) or a row of NaN.
    temperature_noise : float or array_like (k,)
        Noise of the logged temperatures [K].
    averaged : bool
        True logs efforts averaged over the cycle of the log around each sample, as drives do that filter before they sample;
        False samples the current as it is, with the ripple of the control loops folded into the band of the motion. The
        noise of a current sensor is in both cases that of one reading.

    Examples
    --------
    >>> from dynident.simulate import Sensors
    >>> Sensors(effort_noise=0.02, dropped=0.001).effort
    'motor_current'
    """

    position_noise: ArrayLike = 0.0
    velocity_noise: ArrayLike | None = None
    effort_noise: ArrayLike = 0.0
    effort: str = "motor_current"
    side: str = "motor"
    delay: ArrayLike = 0.0
    jitter: float = 0.0
    clock: str = "stamps"
    dropped: float = 0.0
    missing: str = "rows"
    temperature_noise: ArrayLike = 0.0
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


class Readings(NamedTuple):
    """Noise of the current sensors at the ticks at which a controller reads them."""

    cycle: float  # time between two ticks [s]; the first is at zero
    noise: Array  # (T, k) Noise of every reading [A]
    first: int = 0  # number of its first tick

    def into(self, fresh: Array, when: Array) -> Array:
        """Return noise in which readings at a tick have that of the controller's reading: one instant has one reading."""
        tick = np.round(when / self.cycle) - self.first
        same = (np.abs(when / self.cycle - tick - self.first) < WHOLE) & (tick >= 0) & (tick < self.noise.shape[0])
        rows = np.where(same, tick, 0).astype(np.int64)
        return np.where(same, np.take_along_axis(self.noise, rows, axis=0), fresh)


class Stream:
    """A source of random numbers for the rows of a run; the last rows do not count where another run goes on."""

    def __init__(self, seed: np.random.SeedSequence) -> None:
        self._rng = np.random.Generator(np.random.PCG64(seed))
        self.state: dict[str, Any] = dict(self._rng.bit_generator.state)

    def go_on(self, state: dict[str, Any]) -> None:
        """Begin where another stream was."""
        self._rng.bit_generator.state = self.state = state

    def _rows(self, draw: Any, shape: int | tuple[int, ...], ahead: int) -> Array:
        rows, *rest = (shape,) if isinstance(shape, int) else shape
        first = draw((rows - ahead, *rest))
        self.state = dict(self._rng.bit_generator.state)
        return np.concatenate([first, draw((ahead, *rest))])

    def standard_normal(self, shape: int | tuple[int, ...], ahead: int = 1) -> Array:
        """Return normal numbers; the last `ahead` rows belong to the next run too."""
        return self._rows(self._rng.standard_normal, shape, ahead)

    def random(self, count: int = 1) -> Array:
        """Return numbers between 0 and 1; the last one belongs to the next run too."""
        return self._rows(self._rng.random, count, 1)


def streams(seed: int | np.random.SeedSequence) -> dict[str, Stream]:
    """Return the random streams of a run by the names of `STREAMS`: the same for the same seed on every machine."""
    if isinstance(seed, np.random.SeedSequence):
        root = np.random.SeedSequence(seed.entropy, spawn_key=seed.spawn_key)  # spawning counts: never change the caller's
    else:
        root = np.random.SeedSequence(whole("seed", seed, least=0, most=np.inf, kind=SimulationError))
    return {name: Stream(child) for name, child in zip(STREAMS, root.spawn(len(STREAMS)), strict=True)}


def noisy(rng: Stream, values: Array, deviation: Array) -> Array:
    """Return values with white noise; nothing is drawn where there is none."""
    return values + rng.standard_normal(values.shape) * deviation if np.any(deviation) else values


def sample_times(sensors: Sensors, t: Array, rng: Stream) -> tuple[Array, Array]:
    """Return when samples are taken, and what the recorder writes as their time."""
    if not sensors.jitter or t.size < 2:
        return t, t
    cycle = t[1] - t[0]
    stray = np.clip(rng.standard_normal(t.size) * sensors.jitter, -LARGEST_STRAY * cycle, LARGEST_STRAY * cycle)
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


def kept_rows(sensors: Sensors, samples: int, rng: Stream) -> NDArray[np.bool_]:
    """Return which samples survive."""
    kept = rng.random(samples) >= sensors.dropped
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
    """Refuse a log of voltages of a motor without a resistance: nothing tells its current."""
    ideal = [drive.actuator for drive in robot.drives if drive.motor.resistance == 0.0]
    if robot.sensors.effort == "voltage" and ideal:
        raise SimulationError(
            f"sensors: a voltage is logged but the motor of '{ideal[0]}' has no resistance; give it, or log currents"
        )


def check_channels(robot: VirtualRobot) -> None:
    """Refuse sensors whose channels no log of this robot can have."""
    mechanism, sensors = robot.mechanism, robot.sensors
    count = len(channel_names(mechanism, sensors.side))
    check_voltage(robot)
    if not mechanism.loops:
        plain = _one_to_one(mechanism)
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
    for field in ("position_noise", "effort_noise", "temperature_noise", "delay"):
        size = len(robot.drives) if field == "delay" else count
        channel_numbers(sensors, field, size)
    if sensors.velocity_noise is not None:
        channel_numbers(sensors, "velocity_noise", count)


def _one_to_one(mechanism: Mechanism) -> bool:
    """Tell whether every coordinate has one motor of its own."""
    driven = [next(iter(actuator.coupling)) for actuator in mechanism.actuators if len(actuator.coupling) == 1]
    return len(driven) == len(mechanism.actuators) and sorted(driven) == sorted(mechanism.coordinate_names)


def channel_names(mechanism: Mechanism, side: str) -> tuple[str, ...]:
    """Return the channels of a log."""
    if side == "joint" and not mechanism.loops:
        return mechanism.coordinate_names
    return tuple(actuator.name for actuator in mechanism.actuators)


def record(
    robot: VirtualRobot,
    truth: Truth,
    streams: Mapping[str, Stream],
    provenance: Mapping[str, Any],
    facts: Mapping[str, Any],
    readings: Readings | None = None,
) -> Log:
    """Return the log that the robot's sensors would have written; its channels are checked before the run."""
    sensors, mechanism, t = robot.sensors, robot.mechanism, truth.t
    names = channel_names(mechanism, sensors.side)
    taken, stamped = sample_times(sensors, t, streams["clock"])
    kept = kept_rows(sensors, t.size, streams["loss"]) if sensors.dropped else None

    def left(values: Array) -> Array:
        """Without the samples that were lost."""
        if kept is None:
            return values
        return np.where(kept[:, None], values, np.nan) if sensors.missing == "nan" else values[kept]

    def logged(name: str, values: Array) -> Array:
        return left(noisy(streams[name], values, channel_numbers(sensors, f"{name}_noise", len(names))))

    position = _on_side(robot, _positions(robot, truth, taken, streams["encoder"]))
    effort, gain = _efforts(robot, truth, taken, streams, readings)
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
        truth={"parameters": truth.parameters.to_dict(), **facts, "signals_sha256": truth.checksum()},
    )


def _at_motor(robot: VirtualRobot) -> NDArray[np.bool_]:
    """Return which encoders are in front of their gear."""
    return np.array([drive.encoder.side == "motor" for drive in robot.drives])


def _positions(robot: VirtualRobot, truth: Truth, taken: Array, rng: Stream) -> Array:
    """Return rho as the encoders read it, each rounded on its own side of the gear."""
    encoders = [drive.encoder for drive in robot.drives]
    theta, rho = truth.theta, truth.rho
    if taken is not truth.t:
        theta, rho = at_times(truth.t, theta, truth.omega, taken), at_times(truth.t, rho, truth.rho_v, taken)
    noise = noisy(rng, np.zeros_like(rho), np.array([encoder.noise for encoder in encoders]))
    resolution = np.array([encoder.resolution for encoder in encoders])
    ratio = np.array([drive.transmission.ratio for drive in robot.drives])
    return np.asarray(sensed_position(theta, rho, noise, resolution, _at_motor(robot), ratio))


def _velocities(robot: VirtualRobot, truth: Truth, taken: Array) -> Array:
    """Return the velocities of rho where the encoders are."""
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


def _efforts(
    robot: VirtualRobot, truth: Truth, taken: Array, streams: Mapping[str, Stream], readings: Readings | None
) -> tuple[Array, Array | None]:
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
    noise = noisy(streams["current"], np.zeros_like(seen), np.array([meter.noise for meter in meters]))
    if readings is not None:
        noise = readings.into(noise, when)
    gain, resolution = (np.array(x) for x in zip(*((1.0 + m.gain_error, m.resolution) for m in meters), strict=True))
    seen = np.asarray(sensed_current(seen, noise, resolution, gain))
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
    """Return the temperature of every coordinate: of a motor that drives it alone, else of the surroundings."""
    out = np.full((heat.shape[0], mechanism.dof), ambient)
    for j, actuator in enumerate(mechanism.actuators):
        if len(actuator.coupling) == 1:
            out[:, mechanism.coordinate_names.index(next(iter(actuator.coupling)))] = heat[:, j]
    return out


def _gain(values: Array) -> Array | None:
    """Return drive gains, or None where a motor gives no torque."""
    return values if np.all(values > 0.0) else None
