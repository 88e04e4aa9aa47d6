"""What a recorder makes of the true signals: noise, quantisation, delay, a clock that jitters, samples that get lost."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.checks import flag, gain, per_actuator
from dynident.errors import SimulationError
from dynident.signals import MINIMUM_SAMPLES

Array = NDArray[np.float64]

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
            if getattr(self, label) not in choices:
                raise SimulationError(f"sensors: {label} is {getattr(self, label)!r}; it is one of {', '.join(choices)}")

    def to_dict(self) -> dict[str, Any]:
        """Return plain data.

        Returns
        -------
        dict
            Every setting by name.
        """
        return {f.name: getattr(self, f.name) for f in fields(self)}


class Readings(NamedTuple):
    """Noise of the current sensors at the ticks at which a controller reads them.

    Parameters
    ----------
    cycle : float
        Time between two ticks [s]; the first is at zero.
    noise : ndarray, (T, k)
        Noise of every reading [A].
    first : int
        Number of its first tick.
    """

    cycle: float
    noise: Array
    first: int = 0

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
        if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
            raise SimulationError(f"seed is {seed!r}; give a whole number, 0 or above")
        root = np.random.SeedSequence(int(seed))
    return {name: Stream(child) for name, child in zip(STREAMS, root.spawn(len(STREAMS)), strict=True)}


def noisy(rng: Stream, values: Array, deviation: Array) -> Array:
    """Return values with white noise; nothing is drawn where there is none."""
    return values + rng.standard_normal(values.shape) * deviation if np.any(deviation) else values


def quantised(values: Array, resolution: Array) -> Array:
    """Return values rounded to whole counts."""
    size = np.where(resolution > 0.0, resolution, 1.0)
    return np.where(resolution > 0.0, np.round(values / size) * size, values)


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
    if not sensors.dropped:
        return np.ones(samples, dtype=bool)
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
