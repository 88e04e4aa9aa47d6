"""Faults invented after `benchmarks.fault_kinds` was complete: ``python -m benchmarks.faults --recipes``.

No rule of the diagnosis was made with them in view. Causes are the codes that would be a right answer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.signal import butter, sosfilt, sosfiltfilt

import dynident as di
from benchmarks.fault_kinds import Kind, Subject

Array = NDArray[np.float64]
Change = Callable[[di.Log, int, Subject], di.Log]
RECIPES: dict[str, Kind] = {}


def recipe(name: str, *causes: str, least: int = 2, joints: bool = False) -> Callable[[Change], Change]:
    """Register a fault that spoils every log of a subject; the joint is given."""

    def register(change: Change) -> Change:
        def apply(s: Subject, j: int, rng: np.random.Generator) -> Subject:
            return s.changed(lambda log: change(log, j, s))

        RECIPES[name] = Kind(name, apply, causes, False, least, joints)
        return change

    return register


def _efforts(change: Callable[[Array], Array]) -> Change:
    """Return a change of one joint's effort."""
    return lambda log, j, s: _with(log, effort=_column(log.effort, j, change(np.array(log.effort[:, j]))))


def _column(x: Array, j: int, values: Array) -> Array:
    out = np.array(x)
    out[:, j] = values
    return out


def _with(log: di.Log, t: Array | None = None, position: Array | None = None, effort: Array | None = None) -> di.Log:
    """Return a log with some signals replaced."""
    given = [old if new is None else new for new, old in ((t, log.t), (position, log.position), (effort, log.effort))]
    return replace(log, t=given[0], position=given[1], effort=given[2], velocity=None, acceleration=None, reference=None)


def _motion(log: di.Log) -> di.Motion:
    """Return the motion of a log, low-passed at 15 Hz."""
    q = sosfiltfilt(butter(3, 15.0, output="sos", fs=log.rate), log.position, axis=0)
    v = np.gradient(q, log.t, axis=0)
    return di.Motion(log.t, q, v, np.gradient(v, log.t, axis=0))


@recipe("a fifth of the log reversed in time", "contradiction")
def _reversed(log: di.Log, j: int, s: Subject) -> di.Log:
    rows = np.arange(len(log))
    part = slice(int(0.4 * rows.size), int(0.6 * rows.size))
    rows[part] = rows[part][::-1].copy()
    return _with(log, position=log.position[rows], effort=log.effort[rows])


@recipe("efforts of two joints averaged", "gain", "order", "contradiction")
def _averaged(log: di.Log, j: int, s: Subject) -> di.Log:
    effort = np.array(log.effort)
    effort[:, :2] = effort[:, :2].mean(axis=1, keepdims=True)
    return _with(log, effort=effort)


recipe("effort of one joint two samples late", "delay")(_efforts(lambda x: np.r_[x[:1], x[:1], x[:-2]]))


@recipe("load on the last link in the second half", "changes", "contradiction", "drift", joints=True)
def _loaded(log: di.Log, j: int, s: Subject) -> di.Log:
    values = dict(zip(s.true.parameters.names, s.true.parameters.values, strict=True))
    last = [name for name in values if name.startswith("m_")][-1].removeprefix("m_")
    mass, z = 0.6 * max(1.0, values[f"m_{last}"]), 0.08
    for name, x in (("m", mass), ("mz", mass * z), ("Ixx", mass * z * z), ("Iyy", mass * z * z)):
        values[f"{name}_{last}"] += x
    motion, full = _motion(log), s.true.with_parameters(s.true.parameters.replace(list(values.values())))
    more = di.inverse_dynamics(full, motion) - di.inverse_dynamics(s.true, motion)
    more[: len(log) // 2] = 0.0
    return _with(log, effort=log.effort + more)


@recipe("velocities in the columns of positions", "unit", "contradiction")
def _velocities(log: di.Log, j: int, s: Subject) -> di.Log:
    return _with(log, position=np.gradient(log.position, log.t, axis=0))


def _dropouts(x: Array) -> Array:
    for start in np.random.default_rng(1).integers(0, x.size - 20, 25):
        x[start : start + 12] = 0.0
    return x


recipe("25 dropouts of an effort to zero, 12 samples each", "outliers", "stuck", "gap")(_efforts(_dropouts))


@recipe("efforts low-passed at 2 Hz", "delay")
def _slow(log: di.Log, j: int, s: Subject) -> di.Log:
    start = log.effort[0]
    return _with(log, effort=start + sosfilt(butter(2, 2.0, output="sos", fs=log.rate), log.effort - start, axis=0))


@recipe("efforts smoothed at 2 Hz", "filtered")
def _smooth(log: di.Log, j: int, s: Subject) -> di.Log:
    return _with(log, effort=sosfiltfilt(butter(2, 2.0, output="sos", fs=log.rate), log.effort, axis=0))


@recipe("position turned and shifted", "sign", "axis", "zero")
def _turned(log: di.Log, j: int, s: Subject) -> di.Log:
    return _with(log, position=_column(log.position, j, 0.5 - log.position[:, j]))


@recipe("position and effort turned", "axis", "mounting", joints=True)
def _mirrored(log: di.Log, j: int, s: Subject) -> di.Log:
    return _with(log, position=_column(log.position, j, -log.position[:, j]), effort=_column(log.effort, j, -log.effort[:, j]))


recipe("effort of one joint without sign", "sign", "contradiction")(_efforts(np.abs))


@recipe("power instead of efforts", "contradiction")
def _power(log: di.Log, j: int, s: Subject) -> di.Log:
    return _with(log, effort=log.effort * np.gradient(log.position, log.t, axis=0))


def _wrapped(x: Array) -> Array:
    top = 0.8 * float(np.abs(x).max())
    return np.asarray((x + top) % (2.0 * top) - top)


recipe("effort overflows at 80 %", "outliers", "clipped")(_efforts(_wrapped))
recipe("efforts below 10 % logged as zero", "stuck", "dead_band")(
    _efforts(lambda x: np.where(np.abs(x) < 0.1 * np.abs(x).max(), 0.0, x))
)
recipe("positive efforts 20 % too large", "gain")(_efforts(lambda x: np.where(x > 0.0, 1.2 * x, x)))


@recipe("efforts 20 % too small while a joint moves backwards", "gain", "contradiction")
def _hysteresis(log: di.Log, j: int, s: Subject) -> di.Log:
    return _with(log, effort=np.where(np.gradient(log.position, log.t, axis=0) < 0.0, 0.8, 1.0) * log.effort)


@recipe("gain drifts from 1 to 1.2", "changes", "gain", "drift")
def _drifting(log: di.Log, j: int, s: Subject) -> di.Log:
    return _with(log, effort=log.effort * np.linspace(1.0, 1.2, len(log))[:, None])


@recipe("clock drifts by 10 %", "changes", "clock")
def _clock(log: di.Log, j: int, s: Subject) -> di.Log:
    u = (log.t - log.t[0]) / (log.t[-1] - log.t[0])
    return _with(log, t=log.t[0] + (log.t[-1] - log.t[0]) * (u + 0.1 * u * u))


@recipe("efforts computed from the description", "computed", joints=True)
def _computed(log: di.Log, j: int, s: Subject) -> di.Log:
    return _with(log, effort=di.inverse_dynamics(s.robot, _motion(log)))


@recipe("position of the last joint holds that of the joint before", "gear", "contradiction", least=3)
def _coupled(log: di.Log, j: int, s: Subject) -> di.Log:
    return _with(log, position=_column(log.position, -1, log.position[:, -1] + log.position[:, -2]))
