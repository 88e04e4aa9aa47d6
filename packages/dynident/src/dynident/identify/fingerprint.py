"""Fingerprint of a training log: what a fit keeps of its samples, to recognise them in other logs.

Rows of low-passed positions and efforts, about 70 for one oscillation, and 32 snippets of 64 efforts as they were logged. Both
are rounded to 16 bits: for a robot with six joints about 55 kB for 20 s, and at most 0.4 MB for a long log.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np

from dynident.arrays import Array
from dynident.errors import DynidentError
from dynident.results import stored
from dynident.signals.filters import Decimator
from dynident.signals.preparation import Preparation

T = TypeVar("T")

LEVELS = 65535  # uint16: positions and efforts to 1.5e-5 of their range
ROW = 0.08  # path per row at the usual speed: 70 rows for one oscillation, whose path is 4 sqrt(2)
REACH = 3  # rows that the low-pass takes on either side
PIECE = 512  # rows of a piece of a long log, of which ...
MOST_PIECES = 20  # ... so many are kept, evenly spaced
SNIPPETS, SNIPPET = 32, 64  # stretches of samples as they were logged, for the noise, and samples of each
LARGEST = 1e100  # squares and products of such numbers stay finite


def fingerprint(log: Preparation, efforts: bool = True) -> dict[str, Any]:
    """Return rows of positions and efforts of a prepared log, and some samples of its efforts, as JSON can hold them.

    Without `efforts`, which were not measured, they are stored as zero.
    """
    q, v = log.states
    speed = np.linalg.norm(v / scale_of(np.std(q, axis=0)), axis=1)
    usual = np.sum(speed**2) / max(np.sum(speed), 1e-300)  # mean along the path: standstill does not count
    low_pass = Decimator(int(np.clip(ROW / max(usual, 1e-300) * log.rate, 1.0, len(log) // 50 + 1)), log.rate, REACH)
    factor, taps, total, t = low_pass.factor, low_pass.taps.size, low_pass.length(len(log)), log.t
    first = _thinned(list(range(0, total, PIECE)), MOST_PIECES)
    pieces = log.measured((i * factor, (min(i + PIECE, total) - 1) * factor + taps) for i in first)
    places = np.linspace(0, len(log) - SNIPPET, min(SNIPPETS, len(log) // SNIPPET)).astype(int)
    snippets = log.efforts(places, SNIPPET)
    if not efforts:
        pieces = [np.hstack([each[:, : q.shape[1]], np.zeros_like(each[:, q.shape[1] :])]) for each in pieces]
        snippets = [np.zeros_like(each) for each in snippets]
    rows = [
        _packed(float(t[taps // 2]) + i * factor / log.rate, factor / log.rate, low_pass.apply(piece))
        for i, piece in zip(first, pieces, strict=True)
    ]
    samples = [_packed(float(t[i]), 1.0 / log.rate, snippet) for i, snippet in zip(places, snippets, strict=True)]
    return {"rows": rows, "total": total, "samples": samples}


def both(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fingerprint of two pieces of one log."""
    return {
        "rows": _thinned([*one["rows"], *other["rows"]], MOST_PIECES),
        "total": one["total"] + other["total"],
        "samples": _thinned([*one["samples"], *other["samples"]], SNIPPETS),
    }


def _thinned(pieces: list[T], most: int) -> list[T]:
    """Return at most so many pieces, evenly spaced."""
    return [pieces[i] for i in np.unique(np.linspace(0, len(pieces) - 1, min(len(pieces), most)).astype(int))]


def _packed(start: float, step: float, rows: Array) -> dict[str, Any]:
    low, high = rows.min(axis=0), rows.max(axis=0)
    size = np.where(high > low, high - low, 1.0) / LEVELS
    text = base64.b64encode(np.rint((rows - low) / size).astype("<u2").tobytes()).decode("ascii")
    return {"start": start, "step": step, "low": low.tolist(), "size": size.tolist(), "levels": text}


def unpacked(piece: Mapping[str, Any]) -> tuple[Array, Array]:
    """Return times and rows of a stored piece."""
    low, size = np.asarray(piece["low"], dtype=float), np.asarray(piece["size"], dtype=float)
    levels = np.frombuffer(base64.b64decode(piece["levels"], validate=True), dtype="<u2").reshape(-1, low.size)
    t = float(piece["start"]) + float(piece["step"]) * np.arange(len(levels))
    return t.astype(np.float64), np.asarray(low + size * levels)


def is_whole(found: Any) -> bool:
    """Return whether a stored fingerprint can be compared with a log."""
    try:
        parts = [stored(found, key, list[dict[str, Any]], "motion") for key in ("rows", "samples")]
        if stored(found, "total", int, "motion") <= 0 or not all(_is_piece(each) for part in parts for each in part):
            return False
    except DynidentError:  # a file that was edited
        return False
    pieces = [[unpacked(each) for each in part] for part in parts]
    finite = all(np.all(np.abs(x) < LARGEST) for part in pieces for pair in part for x in pair)
    return finite and all(len({x.shape[1] for _, x in part}) <= 1 for part in pieces)


def _is_piece(each: dict[str, Any]) -> bool:
    """Return whether a stored piece can be unpacked."""
    low, size = (stored(each, name, Array, "piece") for name in ("low", "size"))
    step, _ = (stored(each, name, float, "piece") for name in ("step", "start"))
    text = stored(each, "levels", str, "piece").encode("utf-8", "replace")
    try:
        levels = base64.b64decode(text, validate=True)
    except binascii.Error:
        return False
    return bool(low.ndim == 1 and low.shape == size.shape and step > 0.0 and low.size) and len(levels) % (2 * low.size) == 0


def scale_of(spread: Array) -> Array:
    """Return what positions are divided by; a joint that hardly moves counts less, because it has noise only."""
    return np.asarray(np.sqrt(spread.size) * np.maximum(spread, max(0.01 * float(spread.max()), 1e-300)))
