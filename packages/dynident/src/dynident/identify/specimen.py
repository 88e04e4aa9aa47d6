"""Some hundred samples of a log with their rows: enough to see what is wrong with it, and how its residuals depend on speed.

Near standstill friction may be anything within its limits, so that residuals are larger there. With w = exp(-(v / v0)^2), 1 at
rest and 0 in motion, their variance is  a + b w;  a and b follow from the sums of 1, w, w^2, e^2 and e^2 w, which add over
logs. Channels that froze or were cut off while the robot moved say what did not happen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynident.identify.base import BaseParameters
from dynident.identify.hypotheses import Equations
from dynident.identify.regression.rows import Rows, Signals
from dynident.mechanics.motion import Motion
from dynident.signals.log import Log
from dynident.signals.quality import Quality

Array = NDArray[np.float64]

SAMPLES = 300
SLOW = 0.05  # of the RMS speed in training: below, friction is not known
RESTING = 15.0  # samples at rest that tell something about residuals there
LARGER = 0.5  # of the variance in motion: what rests add at least to be told from chance
CALMEST = 0.1  # of the mean variance: residuals in motion are not believed to be smaller
SLOWEST = 1.0  # samples per second: no robot is identified from fewer
MANY = 0.01  # of the moving samples at a limit: fewer do little harm
AT_LIMIT = 5  # samples at a limit, to compare with
MORE = 4.0  # times the squared residual elsewhere: a drive that really gives no more leaves no more than others


@dataclass(frozen=True, eq=False)
class Specimen:
    """S samples of n joints."""

    motion: Motion
    equations: Equations  # rows (n, b, S) of a motion; zero for joints without usable efforts
    effort: Array  # (S, n) right sides
    names: tuple[str, ...]  # joints

    @classmethod
    def of(
        cls, rows: Rows, base: BaseParameters, motion: Motion, effort: Array, signals: Signals | None, dead: Sequence[str]
    ) -> Specimen:
        """Return every k-th sample of a prepared log of a tree; `dead` are the joints without usable efforts."""
        step = slice(0, None, max(len(motion) // SAMPLES, 1))
        part = Motion(motion.t[step], motion.q[step], motion.v[step], motion.a[step])
        own = None if signals is None else {name: x[step] for name, x in signals.items()}
        names = rows.mechanism.coordinate_names
        alive = np.array([name not in dead for name in names])

        def equations(moved: Motion, step: int = 1) -> Array:
            there = None if own is None else {name: x[::step] for name, x in own.items()}
            return np.asarray(rows.equations(moved, None, base.columns, signals=there)[0] * alive[:, None, None])

        measured = rows.equations(part, effort[step], base.columns, signals=own)[1].T * alive
        return cls(part, equations, measured, names)

    def resting(self) -> dict[str, list[float]]:
        """Return the sums of 1, w, w^2, e^2 and e^2 w of every joint that both moves and rests."""
        v = self.motion.v
        w = nearness(v, np.sqrt(np.mean(v**2, axis=0)))
        some = (w.sum(axis=0) >= RESTING) & np.any(v, axis=0) & np.any(self.effort, axis=0)
        W = self.equations(self.motion)
        n, b, samples = W.shape
        if not some.any() or b >= 0.5 * n * samples:
            return {}
        size = np.sqrt(np.mean(self.effort**2, axis=0))
        weight = np.where(size > 0.0, 1.0 / np.where(size > 0.0, size, 1.0), 0.0)
        A = (W * weight[:, None, None]).transpose(2, 0, 1).reshape(-1, b)
        scale = np.linalg.norm(A, axis=0)
        scale = np.where(scale > 0.0, scale, 1.0)
        x = np.linalg.lstsq(A / scale, (self.effort * weight).ravel(), rcond=1e-9)[0] / scale
        square = (self.effort - np.einsum("nbt,b->tn", W, x)) ** 2
        sums = np.stack([np.ones_like(w), w, w**2, square, square * w]).sum(axis=1)
        return {name: sums[:, j].tolist() for j, name in enumerate(self.names) if some[j]}


def nearness(v: Array, rms: Array) -> Array:
    """Return w = exp(-(v / v0)^2), v0 a twentieth of the RMS speed: 1 at rest, 0 in motion."""
    slow = SLOW * rms
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(slow > 0.0, np.exp(-((v / slow) ** 2)), np.asarray(v == 0.0, dtype=float))


def added(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, list[float]]:
    """Return the sums of two pieces of a log, given as sources."""
    a, b = one.get("resting", {}), other.get("resting", {})
    return {name: np.sum([each[name] for each in (a, b) if name in each], axis=0).tolist() for name in {**a, **b}}


def shares(sources: Iterable[Mapping[str, Any]], name: str) -> tuple[float, float]:
    """Return a and b over the mean variance of a joint's residuals: (1, 0) where logs do not tell."""
    sums = np.sum([s["resting"][name] for s in sources if name in s.get("resting", {})] or [np.zeros(5)], axis=0)
    count, w, ww, square, rested = sums
    spread = ww * count - w * w
    if w < RESTING or square <= 0.0 or spread <= 0.0:
        return 1.0, 0.0
    mean = square / count
    b = (rested * count - square * w) / spread
    a = max((square - b * w) / count, CALMEST * mean)
    if b < LARGER * a:
        return 1.0, 0.0
    return float(a / mean), float(b / mean)


def false_channels(log: Log, quality: Quality, specimen: Specimen) -> tuple[str, ...]:
    """Return sentences about clocks, channels that keep a value while their joint moves, and efforts that were cut off.

    Efforts at a limit are true where the drive gives no more, and false where the recorder shows no more: there the residuals
    of the model that the other samples determine are larger.
    """
    if log.rate < SLOWEST:
        return (f"the clock says {log.rate:.3g} samples per second; are its stamps milliseconds taken for seconds (time=ms)?",)
    found = [
        f"the {channel.partition(':')[0]} of {channel.partition(':')[2]} {sentence}; leave that stretch of time out"
        for channel, sentence in ((f.channel, f.sentence) for f in quality.of("stuck"))
        if channel.startswith(("position:", "effort:"))
    ]
    limited = [f.channel for f in quality.of("saturated") if f.value > MANY]
    for j, joint in enumerate(log.joints):
        if f"effort:{joint}" in limited and joint in specimen.names and _cut_off(log.t, log.effort[:, j], specimen, joint):
            found.append(
                f"the efforts of {joint} are cut off at their limit {np.nanmax(np.abs(log.effort[:, j])):.4g}, where other "
                "samples tell that more acted; record a wider range, or leave these stretches of time out"
            )
    return tuple(found)


def _cut_off(t: Array, effort: Array, specimen: Specimen, joint: str) -> bool:
    """Tell whether the residuals of a joint are larger where its effort is at a limit."""
    at_limit = (effort == np.nanmax(effort)) | (effort == np.nanmin(effort))
    cut = np.interp(specimen.motion.t, t, at_limit.astype(float)) > 0.0
    i, W = specimen.names.index(joint), specimen.equations(specimen.motion)
    A, y = W[i].T, specimen.effort[:, i]
    if np.sum(cut) < AT_LIMIT or np.sum(~cut) < 2 * A.shape[1]:
        return False
    scale = np.linalg.norm(A, axis=0)
    A = A[:, scale > 0.0] / scale[scale > 0.0]
    x = np.linalg.lstsq(A[~cut], y[~cut], rcond=1e-9)[0]
    square = (y - A @ x) ** 2
    return bool(np.mean(square[cut]) > MORE * np.mean(square[~cut]))
