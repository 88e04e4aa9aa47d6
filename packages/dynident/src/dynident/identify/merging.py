"""Evidence of several logs, of pieces of one, and in the band of another: what is merged, and what may be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dynident.errors import IdentificationError, require
from dynident.identify.findings import DESCRIBED, HEAD, in_log
from dynident.identify.regression import Regression, same_robot
from dynident.identify.rows import Rows
from dynident.identify.specimen import added
from dynident.signals.log import Log
from dynident.signals.preparation import Prepared
from dynident.signals.quality import split_at_gaps

WORTH = 0.25  # of the longest piece of a log with gaps: a shorter one would widen the band of all


def merged(one: Regression, other: Regression) -> Regression:
    """Return the evidence of both; `one + other` is the public way."""
    if one.mechanism.parameters.names != other.mechanism.parameters.names:
        raise IdentificationError(
            f"evidence of robot '{one.mechanism.name}' and of '{other.mechanism.name}' cannot be merged: parameters differ"
        )
    if not np.array_equal(one.base.columns, other.base.columns):
        raise IdentificationError("these two Regressions use different base parameters; build both with the same base=")
    if not same_robot(other.base, one.mechanism):
        raise IdentificationError(
            f"evidence of robot '{one.mechanism.name}' and of '{other.mechanism.name}' cannot be merged: geometry, "
            "gravity or terms differ"
        )
    mine = {group.name: group for group in one.groups}
    theirs = {group.name: group for group in other.groups}
    if one.projection != other.projection:
        raise IdentificationError(f"evidence projected on {one.projection} and on {other.projection} cannot be merged")
    names = [name for name in Rows(one.mechanism, one.projection).names if name in mine or name in theirs]
    before, after = (max(len(group.counts) for group in part.groups) for part in (one, other))
    groups = []
    for name in names:
        if name in mine and name in theirs:
            groups.append(mine[name].merge(theirs[name]).fewer())
        elif name in mine:
            groups.append(mine[name].padded(0, after).fewer())
        else:
            groups.append(theirs[name].padded(before, 0).fewer())
    return replace(
        one,
        groups=tuple(groups),
        sources=(*one.sources, *other.sources),
        notes=tuple(dict.fromkeys((*_named(one), *_named(other)))),
    )


def _named(part: Regression) -> tuple[str, ...]:
    """Return the notes of a part; suspicions name its log, which is no longer the only one."""
    if len(part.sources) != 1:
        return part.notes
    log = part.sources[0].get("name", "")
    return tuple(in_log(note, str(log)) if note.startswith((HEAD, DESCRIBED)) else note for note in part.notes)


def joined_sources(sources: Sequence[Mapping[str, Any]]) -> tuple[Mapping[str, Any], ...]:
    """Return sources of which pieces of the same log are one."""
    found: dict[str, Mapping[str, Any]] = {}
    for source in sources:
        key = str(source["sha256"])
        found[key] = joined_source(found[key], source) if key in found else dict(source)
    return tuple(found.values())


def joined_source(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Return two pieces of a log as one source."""
    start, end = min(one["start"], other["start"]), max(one["end"], other["end"])
    samples = one["samples"] + other["samples"]
    return {**one, "start": start, "end": end, "samples": samples, "resting": added(one, other)}


def long_pieces(logs: Sequence[Log]) -> tuple[list[Log], list[str]]:
    """Return logs of which those with gaps are cut into their long pieces, and what is used of these in words."""
    found, notes = [], []
    for log in logs:
        require(log, Log, "log")
        pieces = split_at_gaps(log)
        longest = max((len(piece) for piece in pieces), default=0)
        worth = [piece for piece in pieces if len(piece) >= WORTH * longest]
        if len(worth) < 2:
            found.append(log)
            continue
        found += worth
        used = sum(piece.duration for piece in worth)
        notes.append(f"log '{log.name}' has gaps: {len(worth)} pieces, {used:.4g} s of {log.duration:.4g} s, are used")
    return found, notes


def part_of(prepared: Prepared, first: float, last: float) -> Prepared:
    """Return what was prepared of the samples between two times."""
    t, half = prepared.motion.t, 0.5 / prepared.rate
    own = slice(int(np.searchsorted(t, first - half)), int(np.searchsorted(t, last + half)))
    if prepared.decimator.length(own.stop - own.start) < 1:
        raise IdentificationError(
            f"between {first:.6g} s and {last:.6g} s {own.stop - own.start} samples can be used, fewer than the "
            f"{prepared.decimator.taps.size} that a row of the decimation needs; give a longer part"
        )
    return replace(
        prepared,
        motion=prepared.motion[own],
        effort=prepared.effort[own],
        filtered=prepared.filtered[own],
        temperature=None if prepared.temperature is None else prepared.temperature[own],
        moving=None if prepared.moving is None else prepared.moving[own],
    )


def same_band(sources: tuple[Mapping[str, Any], ...], rate: float) -> dict[str, Any]:
    """Return the options of `prepare` that put another log into the band in which the evidence was taken."""
    if not sources:
        return {}
    cutoff = max(float(s["cutoff"]) for s in sources)
    bandwidth = max(float(s["bandwidth"]) for s in sources)
    return {"cutoff": min(cutoff, 0.4 * rate), "band": min(bandwidth, 0.5 * rate), "decimation": "auto"}
