"""Residuals near rest: friction may be anything within its limits there, so their variance is larger than in motion.

With w = exp(-(v / v0)^2), 1 at rest and 0 in motion, the variance is  a + b w.  a and b follow from the sums of 1, w, w^2, e^2
and e^2 w over some hundred samples; the sums add over logs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynident.identify.base import BaseParameters
from dynident.identify.regression.rows import Rows, Signals
from dynident.mechanics.motion import Motion

Array = NDArray[np.float64]

SAMPLES = 300
SLOW = 0.05  # of the RMS speed in training: below, friction is not known
RESTING = 15.0  # samples at rest that tell something about residuals there
LARGER = 0.5  # of the variance in motion: what rests add at least to be told from chance
CALMEST = 0.1  # of the mean variance: residuals in motion are not believed to be smaller


def resting_of(
    rows: Rows, base: BaseParameters, motion: Motion, effort: Array, signals: Signals | None, dead: Sequence[str]
) -> dict[str, list[float]]:
    """Return `resting` of some hundred samples of a prepared log of a tree; `dead` are joints without usable efforts."""
    step = slice(0, None, max(len(motion) // SAMPLES, 1))
    own = None if signals is None else {name: x[step] for name, x in signals.items()}
    part, names = motion[step], rows.mechanism.coordinate_names
    alive = np.array([name not in dead for name in names])
    W, y = rows.equations(part, effort[step], base.columns, signals=own)
    return resting(names, part.v, W * alive[:, None, None], y.T * alive)


def resting(names: Sequence[str], v: Array, W: Array, effort: Array) -> dict[str, list[float]]:
    """Return the sums of 1, w, w^2, e^2 and e^2 w of joints that move and rest; v and effort (S, n), W (n, b, S)."""
    w = nearness(v, np.sqrt(np.mean(v**2, axis=0)))
    some = (w.sum(axis=0) >= RESTING) & np.any(v, axis=0) & np.any(effort, axis=0)
    n, b, samples = W.shape
    if not some.any() or b >= 0.5 * n * samples:
        return {}
    size = np.sqrt(np.mean(effort**2, axis=0))
    weight = np.where(size > 0.0, 1.0 / np.where(size > 0.0, size, 1.0), 0.0)
    A = (W * weight[:, None, None]).transpose(2, 0, 1).reshape(-1, b)
    scale = np.linalg.norm(A, axis=0)
    scale = np.where(scale > 0.0, scale, 1.0)
    x = np.linalg.lstsq(A / scale, (effort * weight).ravel(), rcond=1e-9)[0] / scale
    square = (effort - np.einsum("nbt,b->tn", W, x)) ** 2
    sums = np.stack([np.ones_like(w), w, w**2, square, square * w]).sum(axis=1)
    return {name: sums[:, j].tolist() for j, name in enumerate(names) if some[j]}


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
