"""The data of a report's pictures: signals thinned without losing a peak, packed as base64 of float32."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.identify.score import Score
from dynident.pages import percent, printable
from dynident.signals.dependence import autocorrelation

Array = NDArray[np.float64]

BUDGET = 700_000  # numbers of all signals of a page together, about 4 MB
FEWEST = 800  # samples of a signal that are kept in any case
BINS = 33
LAGS = 60
SCRIPTS = ("core.js", "plots.js", "robot.js", "page.js")


@cache
def script() -> str:
    """Return the script of the page."""
    folder = resources.files("dynident.report") / "assets"
    parts = [(folder / name).read_text(encoding="utf-8") for name in SCRIPTS]
    return '"use strict";\n' + "\n".join(parts)


def packed(values: ArrayLike, kind: str = "<f4") -> str:
    """Return numbers as base64 of little-endian float32 (or another kind)."""
    return base64.b64encode(np.ascontiguousarray(values, dtype=kind).tobytes()).decode("ascii")


def clean(values: ArrayLike) -> list[float]:
    """Return numbers with six digits for JSON; what is not finite becomes zero."""
    return [float(f"{x:.6g}") if np.isfinite(x) else 0.0 for x in np.asarray(values, dtype=float).ravel()]


def kept_samples(signals: Sequence[Array], most: int) -> NDArray[np.int64]:
    """Return which samples to keep so that every signal keeps the extremes of every stretch of time."""
    size = signals[0].size
    if size <= most:
        return np.arange(size)
    length = -(-size * 2 * len(signals) // most)  # samples of a stretch, of which each signal keeps two
    starts = np.arange(0, size, length)
    kept = [np.array([0, size - 1])]
    for y in signals:
        stretches = np.pad(y, (0, starts.size * length - size), mode="edge").reshape(-1, length)
        kept += [starts + np.argmin(stretches, axis=1), starts + np.argmax(stretches, axis=1)]
    return np.unique(np.minimum(np.concatenate(kept), size - 1))


def log_data(
    score: Score,
    units: Sequence[str],
    most: int,
    other: Array | None = None,
    labels: tuple[str, str] = ("predicted", "description"),
) -> dict[str, Any]:
    """Return a scored log for the page: efforts and residuals per joint; `other` is a second prediction, drawn beside."""
    before = score.described if other is None else other
    series, residual = [], []
    step = float(np.median(np.diff(score.t))) if score.t.size > 1 else 1.0
    for j in range(len(score.joints)):
        y, hat, std = score.measured[:, j], score.predicted[:, j], np.nan_to_num(score.std[:, j])
        e = y - hat
        keep = kept_samples((y, e), most)
        beside = None if before is None else before[:, j]
        series.append(
            {
                "t": packed(score.t[keep]),
                "measured": packed(y[keep]),
                "predicted": packed(hat[keep]),
                "std": packed(std[keep]),
                "other": None if beside is None else packed(beside[keep]),
                "before": None if beside is None else percent(share(y, beside), 1),
                "after": percent(share(y, hat), 1),
            }
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            z = e / std
        counts, edges = np.histogram(np.clip(z[np.isfinite(z)], -4.0, 4.0), bins=BINS, range=(-4.0, 4.0))
        residual.append(
            {
                "counts": clean(counts / max(counts.sum(), 1) / (edges[1] - edges[0])),
                "lags": clean(autocorrelation(e, LAGS)),
                "step": step,
                "white": 2.0 / float(np.sqrt(e.size)),
            }
        )
    return {
        "name": printable(score.name),
        "joints": [printable(name) for name in score.joints],
        "units": list(units),
        "labels": {"predicted": printable(labels[0]), "other": printable(labels[1])},
        "series": series,
        "residual": residual,
        "motion": None,
    }


def share(measured: Array, predicted: Array) -> float:
    """Return the relative error ||e|| / ||tau|| of one joint."""
    size = float(np.linalg.norm(measured))
    return float(np.linalg.norm(measured - predicted)) / size if size > 0.0 else float("nan")


def samples_per_signal(scores: Sequence[Score]) -> int:
    """Return how many samples of each signal the page can hold."""
    signals = 5 * sum(len(score.joints) for score in scores)
    return max(BUDGET // max(signals, 1), FEWEST)
