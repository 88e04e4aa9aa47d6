"""Fingerprint of a training log: what a fit keeps of its samples, to recognise them in other logs.

Rows of low-passed positions and efforts, about 70 for one oscillation, and 32 snippets of 64 efforts as they were logged. Both
are rounded to 16 bits: for a robot with six joints about 55 kB for 20 s, and at most 0.4 MB for a long log.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any

import numpy as np

from dynident.arrays import Array
from dynident.errors import DynidentError
from dynident.results import stored
from dynident.signals.filters import Decimator
from dynident.signals.preparation import Prepared

LEVELS = 65535  # uint16: positions and efforts to 1.5e-5 of their range
ROW = 0.08  # path per row at the usual speed: 70 rows for one oscillation, whose path is 4 sqrt(2)
REACH = 3  # rows that the low-pass takes on either side
PIECE = 512  # rows of a piece of a long log, of which ...
MOST_PIECES = 20  # ... so many are kept, evenly spaced
SNIPPETS, SNIPPET = 32, 64  # stretches of samples as they were logged, for the noise, and samples of each
LARGEST = 1e100  # squares and products of such numbers stay finite


def fingerprint(prepared: Prepared) -> dict[str, Any]:
    """Return rows of positions and efforts of a prepared log, and some samples of its efforts, as JSON can hold them."""
    motion, rate = prepared.motion, prepared.rate
    speed = np.linalg.norm(motion.v / scale_of(np.std(motion.q, axis=0)), axis=1)
    usual = np.sum(speed**2) / max(np.sum(speed), 1e-300)  # mean along the path: standstill does not count
    low_pass = Decimator(int(np.clip(ROW / max(usual, 1e-300) * rate, 1.0, len(prepared) // 50 + 1)), rate, REACH)
    rows = np.hstack([low_pass.apply(motion.q), low_pass.apply(prepared.effort)])
    start, step = float(motion.t[low_pass.taps.size // 2]), low_pass.factor / rate
    places = np.linspace(0, len(prepared) - SNIPPET, min(SNIPPETS, len(prepared) // SNIPPET)).astype(int)
    return {
        "rows": _thinned(
            [_packed(start + i * step, step, rows[i : i + PIECE]) for i in range(0, len(rows), PIECE)], MOST_PIECES
        ),
        "total": len(rows),
        "samples": [_packed(float(motion.t[i]), 1.0 / rate, prepared.effort[i : i + SNIPPET]) for i in places],
    }


def both(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fingerprint of two pieces of one log."""
    return {
        "rows": _thinned([*one["rows"], *other["rows"]], MOST_PIECES),
        "total": one["total"] + other["total"],
        "samples": _thinned([*one["samples"], *other["samples"]], SNIPPETS),
    }


def _thinned(pieces: list[dict[str, Any]], most: int) -> list[dict[str, Any]]:
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
