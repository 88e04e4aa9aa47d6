"""From logs to regression data: preparation, compression, and one band for all logs of a fit.

The spectra of all positions give a cut-off above the motion and below the noise (`common_cutoff`). The model confirms it:
a narrower band (drives and sensors lag at high frequencies) and, if noise was the limit, wider ones are fitted too, each
stretch of time is predicted by the model of the others, and the errors are compared in the same, narrowest band. Another band
is used only if it is better by more than a standard error. Bands for which one of the logs is too short are not tried.

If accelerations reach far beyond the band of the positions (stepping drives, shaking structures), parameters at lower
cut-offs are compared. If they differ significantly from those of the lowest cut-off, the cut-off is used whose parameters
agree with the lowest and are the most precise. Such joints also stick and slip at reversals: if parameters without the rows
near standstill are clearly more precise despite fewer rows, these rows are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial, reduce
from inspect import signature
from operator import add
from typing import TYPE_CHECKING, Any

import numpy as np

from dynident import signals
from dynident.arrays import Array
from dynident.errors import IdentificationError, LogError, SignalWarning, warn
from dynident.identify.base import BaseParameters, base_parameters, columns_of
from dynident.identify.regression.factor import (
    BLOCKS,
    FEW,
    FEWEST_ROWS,
    Part,
    Repeats,
    RowGroup,
    Samples,
    factors_of,
    repeated_stretches,
)
from dynident.identify.regression.regression import (
    Recorded,
    Regression,
    Stretch,
    check_projection_of,
    joined_source,
    same_robot,
)
from dynident.identify.regression.rows import Projection, Rows, check_projection
from dynident.mechanics.closure import motion_from_actuators
from dynident.mechanics.functions import Motion
from dynident.mechanism.mechanism import Mechanism
from dynident.signals.filters import Cutoff
from dynident.signals.log import Log
from dynident.signals.matching import Matched, match
from dynident.signals.preparation import Options, Preparation, Prepared, common_cutoff, fingerprint
from dynident.signals.quality import Finding, Segment, note, split_at_gaps
from dynident.signals.stream import LogStream

if TYPE_CHECKING:
    from dynident.identify.posterior.posterior import MapEstimate

WORTH = 0.25  # of the longest piece of a log with gaps: a shorter one would widen the band of all
STEP = 1.6  # ratio of neighbouring cut-offs that are tried
SLOWEST = 1.0  # samples per second: fewer do not suffice for identification
FEWEST = 7.0  # band times length of the shortest log: some rows are left when the ends are gone
RATIO, EDGE = 2.5, 1.25  # cut-off over band: as wanted, and at least
BEYOND = 5.0  # band of accelerations over that of positions above which a cut-off is compared with lower ones
STANDSTILL = 0.02  # of the RMS speed, below which joints of such logs count as sticking
AGREED = 3.0  # standard deviations, up to which parameters of two cut-offs agree
CLEARLY = 1.0 - (2.0 / (BLOCKS - 1)) ** 0.5  # of a variance: its uncertainty from this number of stretches
EXACT = 1e-3  # of a parameter: accuracy of differentiation at high cut-offs
TINY = np.finfo(float).tiny
STICKING = f"rows below {STANDSTILL:g} of the RMS speed are excluded: joints stick there, which makes parameters less precise"
REPEATED = "the motion repeats: repetitions count as one observation because model errors repeat with them"


# ---- preparation -------------------------------------------------------------------------------------------------------


def preparation_notes(prepared: Prepared | Preparation) -> list[Finding]:
    """Return the decisions of the preparation of a log as findings."""
    return [Finding("preparation", "", "info", line) for line in prepared.explanation.splitlines()]


def prepared_for(rows: Rows, log: Log, options: Mapping[str, Any]) -> Prepared:
    """Return a prepared log, with shorter rows if too few long rows are free of stationary joints."""
    return preparation_for(rows, Segment(log), options).part()


def preparation_for(
    rows: Rows, piece: Segment, options: Mapping[str, Any], between: tuple[float, float] | None = None
) -> Preparation:
    """Return the decisions about a log.

    Rows are shortened if too few are free of stationary joints. A row of a robot with loops requires that all motors move,
    which is rare over the duration of a decimated row: its rows then are single samples. Rows of other robots are halved
    until enough are usable, so that they still average.
    """
    known = [each.name for each in fields(Options)]
    if unknown := sorted(set(options) - set(known)):
        raise IdentificationError(f"unknown option {', '.join(map(repr, unknown))}; options of prepare are {', '.join(known)}")
    if said := slow_clock(piece.whole):
        raise LogError(said)
    asked = Options(**options)
    found = Preparation(piece, asked, between)
    if found.moving is None or asked.decimation != "auto":
        return found
    first, long = _usable(rows, found), found.decimator.taps.size / found.decimator.rate
    share = first
    while share < FEW and found.decimator.factor > 1:
        shorter = 1 if rows.mechanism.loops else found.decimator.factor // 2
        found = Preparation(piece, replace(asked, decimation=shorter), between)
        share = _usable(rows, found)
    if share != first:
        now = found.decimator.taps.size / found.decimator.rate
        how = "rows are single samples" if found.decimator.factor == 1 else f"rows average over {now:.2g} s"
        text = f"{how}: only {first:.0%} of the rows of {long:.2g} s are free of stationary joints (decimation= overrides)"
        found.explanation += f"\n{text}"
    return found


def slow_clock(log: Log) -> str:
    """Return the fault of the clock of a log with too few samples per second for any motion, otherwise an empty text."""
    if len(log) < 2 or log.rate >= SLOWEST:
        return ""
    return (
        f"the clock of log '{log.name}' says {log.rate:.3g} samples per second; are its stamps milliseconds taken for seconds "
        "(time=ms)?"
    )


def _usable(rows: Rows, prepared: Preparation) -> float:
    """Return the smallest share over all joints of decimated rows without standstill."""
    assert prepared.moving is not None
    return float(prepared.decimator.usable(rows.usable(prepared.moving)).mean(axis=0).min())


def dead_efforts(prepared: Prepared | Preparation) -> tuple[str, ...]:
    """Return the joints with a dead effort channel."""
    dead = {finding.channel for finding in prepared.quality.findings if finding.kind == "dead"}
    joints = prepared.joints if isinstance(prepared, Prepared) else prepared.log.joints
    return tuple(joint for joint in joints if f"effort:{joint}" in dead)


def robot_motion(mechanism: Mechanism, measured: Motion) -> Motion:
    """Return the motion of the robot's coordinates: the measured motion for a tree, from the motors with loops."""
    return motion_from_actuators(mechanism, measured) if mechanism.loops else measured


def source_of(log: Log, prepared: Prepared | Preparation) -> dict[str, Any]:
    """Return the provenance of the samples used: name, checksum, time span, rate and band."""
    t = prepared.motion.t if isinstance(prepared, Prepared) else prepared.t
    return {
        "name": log.name,
        "sha256": log.checksum(),
        "start": float(t[0]),
        "end": float(t[-1]),
        "samples": len(prepared),
        "rate": prepared.rate,
        "cutoff": prepared.cutoff.frequency,
        "bandwidth": prepared.decimator.cutoff,
        "effort_kind": log.effort_kind,
    }


def long_pieces(logs: Sequence[Log]) -> tuple[list[Log], list[Finding]]:
    """Return the logs, those with gaps cut into their long pieces, and notes about the pieces used."""
    found, notes = [], list[Finding]()
    for log in logs:
        if not isinstance(log, Log):
            raise IdentificationError(f"a log is a {type(log).__name__}; give a dynident.Log")
        pieces = split_at_gaps(log)
        longest = max((piece.t.size for piece in pieces), default=0)
        worth = [piece for piece in pieces if piece.t.size >= WORTH * longest]
        if len(worth) < 2:
            found.append(log)
            continue
        found += worth
        used = sum(piece.duration for piece in worth)
        text = f"log '{log.name}' has gaps: {len(worth)} pieces, {used:.4g} s of {log.duration:.4g} s, are used"
        notes.append(note("gap", text, "warning"))
    return found, notes


def same_band(sources: tuple[Mapping[str, Any], ...], rate: float) -> dict[str, Any]:
    """Return the options of `prepare` for another log in the band of the regression data."""
    if not sources:
        return {}
    cutoff = max(float(s["cutoff"]) for s in sources)
    bandwidth = max(float(s["bandwidth"]) for s in sources)
    return {"cutoff": min(cutoff, 0.4 * rate), "band": min(bandwidth, 0.5 * rate), "decimation": "auto"}


# ---- rows of single logs -----------------------------------------------------------------------------------------------


def compressed_log(
    matched: Matched,
    log: Log,
    base: BaseParameters,
    projection: Projection | Sequence[str],
    absent: Sequence[str],
    options: Mapping[str, Any],
    stretches: int | Repeats | None = None,
    between: tuple[float, float] | None = None,
    keep_rows: bool = False,
) -> Regression:
    """Return the regression data of a log, converted to the robot in `matched`, in the band given by `options`.

    With `between`, first and last time [s], only rows of samples between them are used; samples around them serve the filters.
    Pieces of a long log that overlap by 16 periods of the cut-off give the data of the whole log.
    """
    robot = matched.mechanism
    rows = Rows(robot, check_projection(projection), tuple(columns_of(robot, absent)) if absent else ())
    prepared = preparation_for(rows, matched.piece, options, between)
    skip = dead_efforts(prepared)
    notes = [*matched.notes, *preparation_notes(prepared)]
    if skip:
        notes.append(note("dead_effort", f"efforts of {', '.join(skip)} are dead and their rows are not used", "warning"))
    if len(skip) == len(matched.log.joints):
        raise IdentificationError(f"log '{log.name}': all effort channels are dead; nothing can be identified")
    if prepared.still.all():
        raise IdentificationError(f"log '{log.name}': no joint moves, so nothing can be identified; record a motion")

    def part(first: int, last: int) -> Part:
        own = prepared.part(first, last)
        motion = robot_motion(robot, own.motion)
        return Part(motion, own.filtered, rows.signals(own.temperature, None, motion))

    period = np.inf if isinstance(stretches, Repeats) else prepared.period()
    given = Samples(prepared.t, prepared.decimator, part, period, moving=prepared.moving)
    whole = None
    if robot.loops or keep_rows:  # loops are closed, and rows are kept, for the whole log at once
        whole = part(0, len(prepared))
        check_projection_of(rows, whole.motion, skip)
        given = Samples.of(*whole, prepared.decimator, prepared.moving, period)
    groups, resting = factors_of(rows, base, given, skip, stretches)
    found = Regression(base, groups, projection=rows.projection)
    if keep_rows and whole is not None:
        found = found.with_stretch(rows, whole.motion, whole.effort, prepared.decimator, prepared.moving)
    source = {**source_of(log, prepared), "motion": fingerprint(prepared)}
    if not robot.loops:
        source["resting"] = resting
    if prepared.slowest is not None:
        source["slowest"] = prepared.slowest.tolist()
    return replace(
        found,
        sources=(source,),
        options={name: value for name, value in options.items() if name != "like"},  # the band is in the source
        notes=tuple(notes),
        logs=(Recorded(log, tuple(absent)),),
        stretches=tuple(with_log(part, matched, prepared.cutoff.frequency, options) for part in found.stretches),
    )


def regression_without_effort(
    mechanism: Mechanism, log: Log, base: BaseParameters | None, options: Mapping[str, Any]
) -> Regression:
    """Return the rows of a log without usable efforts, for `Regression.without_effort`."""
    if mechanism.loops:
        raise IdentificationError(f"robot '{mechanism.name}' has loops; logs without efforts are fitted for trees only")
    # Preparation refuses dead efforts; these are never used.
    kind = "motor_torque" if log.position_side == "motor" else "joint_torque"
    matched = match(mechanism, replace(log, effort=log.position, effort_kind=kind, gain=None))
    plan = Preparation(matched.piece, Options(**options))
    prepared = plan.part()
    zero = np.zeros_like(prepared.effort)
    found = Regression.from_motion(matched.mechanism, prepared.motion, zero, base, prepared.decimator, keep_rows=True)
    (stretch,) = found.stretches
    raw = _at(matched.log.t, matched.log.position, stretch.motion.t)
    motion = fingerprint(plan, efforts=False)
    source = {**source_of(log, prepared), "effort_kind": "none", "motion": motion}
    notes = (*matched.notes, *preparation_notes(prepared), note("no_effort", "efforts are not used"))
    stretch = replace(stretch, positions=raw, cutoff=prepared.cutoff.frequency, options=options)
    return replace(found, sources=(source,), options=dict(options), notes=notes, stretches=(stretch,))


def with_log(stretch: Stretch, matched: Matched, cutoff: float, options: Mapping[str, Any]) -> Stretch:
    """Return a stretch with further signals of its log: measured positions, their noise and the reference motion."""
    log, t = matched.log, stretch.motion.t
    measured = _differentiated(log.t, log.position, t, cutoff, options)
    raw = _at(log.t, log.position, t)
    # The low-pass removes the noise above the cut-off; white noise has the same density below it.
    share = max(1.0 - 2.0 * cutoff / stretch.rate, 0.1)
    smooth = _differentiated(log.t, log.position, t, cutoff, {**options, "phase": "zero"}).q
    noise = np.sqrt(np.var(raw - smooth, axis=0) / share)
    reference = None
    if log.reference is not None and np.isfinite(log.reference).all():
        reference = robot_motion(matched.mechanism, _differentiated(log.t, log.reference, t, cutoff, options))
    return replace(stretch, measured=measured, positions=raw, noise=noise, cutoff=cutoff, options=options, reference=reference)


def _at(t: Array, values: Array, wanted: Array) -> Array:
    """Return columns at other times, missing values bridged."""
    good = np.isfinite(values)
    return np.column_stack([np.interp(wanted, t[ok], x[ok]) for x, ok in zip(values.T, good.T, strict=True)])


def differentiated(rate: float, q: Array, cutoff: float, options: Mapping[str, Any] | None) -> tuple[Array, Array, Array]:
    """Return q, v, a of uniform samples by the method and the cut-off of a preparation."""
    given = dict(options or {})
    method = getattr(signals, str(given.get("method", "butterworth")))
    given["causal"] = given.get("phase", "zero") == "causal"
    q, v, a = method(rate, q, cutoff, **{k: given[k] for k in signature(method).parameters if k in given and k != "cutoff"})
    return q, v, a


def _differentiated(t: Array, q: Array, wanted: Array, cutoff: float, options: Mapping[str, Any]) -> Motion:
    """Return positions with their derivatives at wanted times, on a uniform clock of the same rate."""
    step = (wanted[-1] - wanted[0]) / (wanted.size - 1)
    before, after = int((wanted[0] - t[0]) / step + 1e-6), int((t[-1] - wanted[-1]) / step + 1e-6)
    clock = wanted[0] + step * np.arange(-before, wanted.size + after)
    even = _at(t, q, clock)
    keep = slice(before, before + wanted.size)
    return Motion(wanted, *(x[keep] for x in differentiated(1.0 / step, even, cutoff, options)))


# ---- one band ----------------------------------------------------------------------------------------------------------


def regression_of_logs(
    mechanism: Mechanism,
    logs: Sequence[Log] | LogStream | Iterator[Log],
    base: BaseParameters | None,
    projection: Projection | Sequence[str],
    absent: Sequence[str],
    keep_rows: bool,
    options: Mapping[str, Any],
) -> Regression:
    """Return the regression data of all logs in one band, for `Regression.from_logs`."""
    if isinstance(logs, LogStream | Iterator):
        if keep_rows:
            raise IdentificationError("rows of a stream are not kept; give logs, or an estimator that needs no rows")
        return _regression_of_stream(mechanism, logs, base, projection, absent, options)
    pieces, gaps = long_pieces(logs)
    for gap in gaps:
        warn(gap.sentence, SignalWarning)
    if not pieces:
        raise IdentificationError("the list of logs is empty; give at least one")
    found = _in_one_band(mechanism, pieces, base, projection, absent, keep_rows, options)
    return replace(found.joined(), notes=(*found.notes, *gaps)) if gaps else found


def _in_one_band(
    mechanism: Mechanism,
    logs: Sequence[Log],
    base: BaseParameters | None,
    projection: Projection | Sequence[str],
    absent: Sequence[str],
    keep_rows: bool,
    options: Mapping[str, Any],
) -> Regression:
    """Return the regression data of logs without gaps in the given band, or in the band confirmed by the model."""
    robots = [match(mechanism, log) for log in logs]
    known = base_parameters(robots[0].mechanism) if base is None else base
    if other := [each.mechanism.name for each in robots if not same_robot(known, each.mechanism)]:
        raise IdentificationError(f"the base parameters given belong to another robot than '{other[0]}'")

    def compress(
        stretches: int | tuple[Repeats, ...] | None = None, band: Mapping[str, float] | None = None, keep: bool = keep_rows
    ) -> Regression:
        cuts = stretches if isinstance(stretches, tuple) else [stretches] * len(logs)
        parts = [
            compressed_log(each, log, known, projection, absent, {**options, **(band or {})}, cut, keep_rows=keep)
            for each, log, cut in zip(robots, logs, cuts, strict=True)
        ]
        whole = reduce(add, parts)
        if isinstance(stretches, tuple):  # the same options for all logs
            whole = replace(whole, groups=_together(whole.groups, parts))
        # The band belongs to the regression data, not to the user's options: `same_band` applies it to other logs.
        return replace(whole, options={k: v for k, v in options.items() if k != "like"})

    if options.get("cutoff", "auto") != "auto" or "like" in options:
        return compress()
    found = common_cutoff([each.piece for each in robots])
    repeated = repeated_stretches([each.log for each in robots], found, BLOCKS * len(logs))
    shortest = min(float(log.t[-1] - log.t[0]) for log in logs)
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
        band = Finding("band", "", "info", f"{head}{tried}; by the spectra: {found.explanation}")
        return replace(evidence, notes=(band, *again, *evidence.notes))

    tried = _candidates(found)
    doubtful = found.motion_band > BEYOND * found.position_band
    if len(tried) == 1 and not doubtful:
        alone = len(logs) == 1 and asked == "auto"
        own = {} if alone else {"cutoff": found.frequency, "band": width(found.frequency)}
        return said(compress(repeated, own), found.frequency, "")
    stretches = repeated or max(2, -(-BLOCKS // len(logs)))  # the same for all, to allow comparison

    def of_band(cutoff: float, narrow: float | None = None) -> Regression:
        return compress(stretches, {"cutoff": cutoff, "band": width(narrow or cutoff)}, False)

    tried, evidence = _long_enough(tried, of_band)
    while len(evidence) > 1 and not _comparable(evidence[0], evidence[-1]):
        tried, evidence = tried[1:], evidence[1:]
    chosen, sentence = 0, ""
    if len(evidence) > 1:
        usual = min(tried, key=lambda cutoff: abs(np.log(cutoff / found.frequency)))
        # A cut-off below that of the spectra changes the motion itself: its rows can only judge models of this cut-off.
        judged = evidence[0] if tried[0] == usual else of_band(usual, tried[0])
        errors = np.array([_errors(own, judged) for own in evidence])
        chosen, sentence = _choose(tried, errors, tried.index(usual))
    cutoff, best, apart = tried[chosen], evidence[chosen], list[Finding]()
    if doubtful:
        # Deviations are reliable only with enough rows, whose rate is about the cut-off frequency.
        enough = BLOCKS * FEWEST_ROWS / sum(log.duration for log in logs)
        cutoff, best, apart = _agreeing(cutoff, best, of_band, max(BEYOND * found.position_band, enough))
        again = partial(_in_one_band, mechanism, logs, known, projection, absent, keep_rows)
        if (moving := _in_motion(best, again, options)) is not None:
            return moving
    final = compress(stretches, {"cutoff": cutoff, "band": width(cutoff)}) if keep_rows else best
    return said(replace(final, notes=(*apart, *final.notes)), cutoff, sentence)


def _long_enough(tried: Sequence[float], of_band: Callable[[float], Regression]) -> tuple[list[float], list[Regression]]:
    """Return the cut-offs for which all logs are long enough, with their regression data."""
    found: dict[float, Regression] = {}
    refused: LogError | None = None
    for cutoff in tried:
        try:
            found[cutoff] = of_band(cutoff)
        except LogError as error:
            refused = error
    if not found and refused is not None:
        raise refused
    return list(found), list(found.values())


def _agreeing(
    cutoff: float, data: Regression, of_band: Callable[[float], Regression], lowest: float
) -> tuple[float, Regression, list[Finding]]:
    """Return this cut-off, or a lower one if its parameters contradict those of a much lower one, with its data and a note."""
    below = [cutoff / STEP**k for k in range(1, 5) if cutoff / STEP**k >= lowest]
    if not below:
        return cutoff, data, []
    try:
        reference = of_band(below[-1])
    except LogError:  # the logs are too short
        return cutoff, data, []
    known = _parameters(reference)
    apart, name = _difference(_parameters(data), known, data)
    if not _comparable(reference, data) or apart <= AGREED:
        return cutoff, data, []
    used, found, least = below[-1], reference, known[1]
    for lower in below[:-1]:
        other = of_band(lower)
        own = _parameters(other)
        if _difference(own, known, other)[0] <= AGREED and _more_precise(own[1], least):
            used, found, least = lower, other, own[1]
    text = (
        f"parameters at cut-offs of {cutoff:.3g} and {below[-1]:.3g} Hz differ by up to {apart:.2g} standard deviations "
        f"({name}); {used:.3g} Hz is used, the highest that agrees with lower ones"
    )
    return used, found, [note("band_inconsistent", text, "warning")]


def _in_motion(data: Regression, again: Callable[..., Regression], options: Mapping[str, Any]) -> Regression | None:
    """Return the data without rows near standstill if they determine the parameters clearly better than all rows."""
    if "standstill" in options:
        return None
    try:
        moving = again({**options, "standstill": STANDSTILL})
    except (LogError, IdentificationError):  # too little is left
        return None
    if not _more_precise(_parameters(moving)[1], CLEARLY * _parameters(data)[1]):
        return None
    return replace(moving, notes=(note("standstill", STICKING), *moving.notes))


def _more_precise(own: Array, other: Array) -> bool:
    """Return whether variances of parameters are smaller than others in the geometric mean."""
    both = np.isfinite(own) & np.isfinite(other) & (other > 0.0) & (own > 0.0)
    return bool(np.sum(np.log(own[both] / other[both])) < 0.0)


def _parameters(data: Regression) -> tuple[Array, Array]:
    """Return the base parameters of the default fit without physical consistency, and their variances; inf if undetermined."""
    from dynident.identify.posterior.posterior import base_covariance  # noqa: PLC0415

    found = _estimate(data)
    covariance, determined = base_covariance(data, found)
    return data.base.values(found.standard()), np.where(determined, np.diag(covariance), np.inf)


def _difference(one: tuple[Array, Array], other: tuple[Array, Array], data: Regression) -> tuple[float, str]:
    """Return the largest difference of parameters in standard deviations, and the parameter.

    Columns of a law with shape parameters do not count: their initial values have errors that differ between bands.
    """
    laws = {joint: each.law for joint, each in data.mechanism.friction.items() if each.law.shape}
    guessed = {f"{name}_{joint}" for joint, law in laws.items() for name in law.parameters}
    z = np.abs(one[0] - other[0]) / np.sqrt(np.maximum(one[1] + other[1] + (EXACT * one[0]) ** 2, TINY))
    z[[name in guessed for name in data.base.names]] = 0.0
    worst = int(np.argmax(z))
    return float(z[worst]), data.base.names[worst]


def _together(groups: Sequence[RowGroup], parts: Sequence[Regression]) -> tuple[RowGroup, ...]:
    """Return the regression data of all logs, whose stretches with the same number are one."""
    result = []
    for group in groups:
        own = [each for part in parts for each in part.groups if each.name == group.name]
        counts = np.sum([each.counts for each in own], axis=0)
        products = np.sum([each.products for each in own], axis=0)
        result.append(replace(group, products=products, counts=tuple(counts.tolist()), phases=()))
    return tuple(result)


def _regression_of_stream(
    mechanism: Mechanism,
    logs: Iterable[Log],
    base: BaseParameters | None,
    projection: Projection | Sequence[str],
    absent: Sequence[str],
    options: Mapping[str, Any],
) -> Regression:
    """Return the regression data of a stream, piece by piece in the band of the first piece."""
    whole: Regression | None = None
    rate = 0.0
    for piece in logs:
        if whole is None:
            whole, rate = Regression.from_log(mechanism, piece, base, projection, absent, **options), piece.rate
        elif piece.duration > FEWEST / whole.sources[0]["bandwidth"]:  # a short end gives no rows in this band
            own = {**options, **same_band(whole.sources[:1], rate)}
            more = replace(Regression.from_log(mechanism, piece, whole.base, projection, absent, **own), logs=())
            *before, last, new = (*whole.sources, *more.sources)
            follows = new["start"] - last["end"] < 0.5 * piece.duration  # otherwise pieces between them are missing
            whole = replace(whole + more, sources=(*before, *((joined_source(last, new),) if follows else (last, new))))
    if whole is None:
        raise IdentificationError("the stream holds no samples; nothing can be identified")
    band = note("band", "a long recording: the band is that of its first piece")
    return replace(whole, notes=(band, *whole.notes))


def _candidates(found: Cutoff) -> list[float]:
    """Return the cut-offs to try in rising order: that of the spectra, and useful lower and higher ones."""
    below = [found.lowest] if found.lowest * STEP < found.frequency else []
    if found.lowest * STEP**2 < found.frequency:
        below.append(float(np.sqrt(found.lowest * found.frequency)))
    above = [found.highest] if found.highest > STEP * found.frequency else []
    if found.highest > STEP**2 * found.frequency:
        above = [STEP * found.frequency, min(STEP**3 * found.frequency, found.highest)]
    return [*below, found.frequency, *above]


def _comparable(narrow: Regression, wide: Regression) -> bool:
    """Return whether a band has enough rows for a fit and for the same stretches of time."""
    same = all(len(a.counts) == len(b.counts) for a, b in zip(narrow.groups, wide.groups, strict=True))
    return same and narrow.rows > narrow.base.rank


def _estimate(data: Regression) -> MapEstimate:
    """Return the default fit of regression data without physical consistency."""
    from dynident.identify.estimators.least_squares import WLS  # noqa: PLC0415 - estimators import logs
    from dynident.identify.posterior.posterior import estimate, prior_of  # noqa: PLC0415

    return estimate(data, prior_of(data), WLS().fit(data).sigma_)


def _errors(own: Regression, judged: Regression) -> Array:
    """Return ||e||^2 of every joint and stretch of `judged` under the fit of `own` without that stretch, (groups, K)."""
    from dynident.identify.posterior.posterior import squares  # noqa: PLC0415

    betas = _estimate(own).left_out
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
