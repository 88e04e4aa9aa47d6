"""One band for all logs of a fit, chosen by what it does to the model.

The spectra of all positions give a cut-off that holds the motion and that noise does not reach (`common_cutoff`). It is
confirmed by the model itself: a narrower band (drives and sensors are late at high frequencies) and, where noise was the limit,
wider ones are fitted too, each stretch of time is predicted by the model of the others, and the errors are compared in
the same, narrowest band. Another band is taken only if it is better by more than a standard error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from dynident.arrays import Array
from dynident.errors import IdentificationError
from dynident.identify.base import BaseParameters, base_parameters
from dynident.identify.estimators.least_squares import WLS
from dynident.identify.posterior.posterior import estimate, squares
from dynident.identify.posterior.prior import prior_of
from dynident.identify.regression.factor import RowGroup
from dynident.identify.regression.matching import match
from dynident.identify.regression.regression import Regression, joined_source, same_band
from dynident.identify.regression.rows import Projection
from dynident.identify.regression.stretches import BLOCKS, Repeats, repeated_stretches
from dynident.mechanism.mechanism import Mechanism
from dynident.signals.filters import Cutoff
from dynident.signals.log import Log
from dynident.signals.preparation import common_cutoff
from dynident.signals.quality import note
from dynident.signals.stream import LogStream

STEP = 1.6  # ratio of neighbouring cut-offs that are tried
FEWEST = 7.0  # band times length of the shortest log: some rows are left when the ends are gone
RATIO, EDGE = 2.5, 1.25  # cut-off over band: as wanted, and at least
REPEATED = "the motion repeats itself: what it does again counts once, since an error of the model is the same every time"


def evidence_in_one_band(
    mechanism: Mechanism,
    logs: Sequence[Log] | LogStream,
    base: BaseParameters | None,
    projection: Projection | Sequence[str],
    absent: Sequence[str],
    options: Mapping[str, Any],
) -> Regression:
    """Return the evidence of all logs in one band; `Regression.from_logs` is the public way."""
    if isinstance(logs, LogStream):
        return _evidence_of_stream(mechanism, logs, base, projection, absent, options)
    if not logs:
        raise IdentificationError("there is no log to identify from; give one at least")
    robots = [match(mechanism, log) for log in logs]
    if base is None:
        base = base_parameters(robots[0].mechanism)

    def compress(stretches: int | tuple[Repeats, ...] | None = None, **chosen: float) -> Regression:
        parts = [
            Regression.from_log(mechanism, log, base, projection, absent, cut, **{**options, **chosen})
            for log, cut in zip(logs, stretches if isinstance(stretches, tuple) else [stretches] * len(logs), strict=True)
        ]
        whole = reduce(add, parts)
        if isinstance(stretches, tuple):  # those of all logs are the same ones
            whole = replace(whole, groups=_together(whole.groups, parts))
        # The band is a matter of the evidence, not an option of the user: other logs are put into it by `same_band`.
        return replace(whole, options={k: v for k, v in options.items() if k != "like"})

    if options.get("cutoff", "auto") != "auto" or "like" in options:
        return compress()
    found = common_cutoff([each.log for each in robots])
    repeated = repeated_stretches([each.log for each in robots], found, BLOCKS * len(logs))
    shortest = min(log.duration for log in logs)
    asked = options.get("band", "auto")

    def width(cutoff: float) -> float:
        wanted = found.band if cutoff == found.frequency else cutoff / RATIO
        if cutoff > found.frequency:
            wanted = max(wanted, min(found.motion_band, cutoff / EDGE))
        wanted = max(wanted, min(FEWEST / shortest, cutoff))
        return wanted if asked == "auto" else float(asked)

    def said(evidence: Regression, cutoff: float, tried: str) -> Regression:
        head = f"one band for all logs: cut-off {cutoff:.4g} Hz, rows up to {width(cutoff):.4g} Hz"
        again = () if repeated is None else (note("repeated", REPEATED),)
        band = note("band", f"{head}{tried}; by the spectra: {found.explanation}")
        return replace(evidence, notes=(band, *again, *evidence.notes))

    tried = _candidates(found)
    if len(tried) == 1:
        alone = len(logs) == 1 and asked == "auto"
        own = {} if alone else {"cutoff": found.frequency, "band": width(found.frequency)}
        return said(compress(repeated, **own), found.frequency, "")
    stretches = repeated or max(2, -(-BLOCKS // len(logs)))  # the same for all, so that they can be compared
    evidence = [compress(stretches, cutoff=cutoff, band=width(cutoff)) for cutoff in tried]
    while len(evidence) > 1 and not _comparable(evidence[0], evidence[-1]):
        tried, evidence = tried[1:], evidence[1:]
    if len(evidence) == 1:
        return said(evidence[0], tried[0], "")
    usual = max(found.frequency, tried[0])
    # A cut-off below that of the spectra changes the motion itself: rows that it makes know only the models of its own.
    judged = evidence[0] if tried[0] == usual else compress(stretches, cutoff=usual, band=width(tried[0]))
    errors = np.array([_errors(own, judged) for own in evidence])
    chosen, sentence = _choose(tried, errors, tried.index(usual))
    return said(evidence[chosen], tried[chosen], sentence)


def _together(groups: Sequence[RowGroup], parts: Sequence[Regression]) -> tuple[RowGroup, ...]:
    """Return the evidence of all logs, whose stretches with the same number are one."""
    result = []
    for group in groups:
        own = [each for part in parts for each in part.groups if each.name == group.name]
        counts = np.sum([each.counts for each in own], axis=0)
        products = np.sum([each.products for each in own], axis=0)
        result.append(replace(group, products=products, counts=tuple(counts.tolist()), phases=()))
    return tuple(result)


def _evidence_of_stream(
    mechanism: Mechanism,
    logs: LogStream,
    base: BaseParameters | None,
    projection: Projection | Sequence[str],
    absent: Sequence[str],
    options: Mapping[str, Any],
) -> Regression:
    """Return the evidence of a stream, piece by piece in the band of the first one."""
    whole: Regression | None = None
    rate = 0.0
    for piece in logs:
        if whole is None:
            whole, rate = evidence_in_one_band(mechanism, [piece], base, projection, absent, options), piece.rate
        elif piece.duration > FEWEST / whole.sources[0]["bandwidth"]:  # a short end shows nothing in this band
            own = {**options, **same_band(whole.sources[:1], rate)}
            more = Regression.from_log(mechanism, piece, whole.base, projection, absent, **own)
            whole = replace(whole + more, sources=(joined_source(whole.sources[0], more.sources[0]),))
    if whole is None:
        raise IdentificationError("the stream holds no samples; nothing can be identified")
    band = note("band", "a long recording: the band is that of its first piece")
    return replace(whole, notes=(band, *whole.notes))


def _candidates(found: Cutoff) -> list[float]:
    """Return the cut-offs to try, rising: the one that the spectra give, lower and higher ones as far as they are worth it."""
    below = [found.lowest] if found.lowest * STEP < found.frequency else []
    if found.lowest * STEP**2 < found.frequency:
        below.append(float(np.sqrt(found.lowest * found.frequency)))
    above = [found.highest] if found.highest > STEP * found.frequency else []
    if found.highest > STEP**2 * found.frequency:
        above = [STEP * found.frequency, min(STEP**3 * found.frequency, found.highest)]
    return [*below, found.frequency, *above]


def _comparable(narrow: Regression, wide: Regression) -> bool:
    """Return whether a band has rows enough for a fit and for the same stretches of time; a short log may have too few."""
    same = all(len(a.counts) == len(b.counts) for a, b in zip(narrow.groups, wide.groups, strict=True))
    return same and narrow.rows > narrow.base.rank


def _errors(own: Regression, judged: Regression) -> Array:
    """Return ||e||^2 of every joint and stretch of `judged` under the fit of `own` without that stretch, (groups, K)."""
    free = WLS().fit(own)
    betas = estimate(own, prior_of(own), free.sigma_).left_out
    return np.array([squares(group, betas) for group in judged.groups])


def _choose(tried: Sequence[float], errors: Array, usual: int) -> tuple[int, str]:
    """Return the cut-off of the spectra, unless another is better by more than a standard error of the difference."""
    size = errors[usual].sum(axis=1)
    relative = np.sum(errors / np.where(size > 0.0, size, 1.0)[None, :, None], axis=1)  # (candidates, K)
    mean = relative.mean(axis=1)
    best = int(np.argmin(mean))
    gain = relative[usual] - relative[best]
    chosen = best if gain.mean() > gain.std(ddof=1) / np.sqrt(gain.size) else usual
    listed = ", ".join(f"{f:.3g} Hz {np.sqrt(m / mean[usual]):.2f}" for f, m in zip(tried, mean, strict=True))
    return chosen, f" (relative error of stretches that were left out, in the narrowest band: {listed})"
