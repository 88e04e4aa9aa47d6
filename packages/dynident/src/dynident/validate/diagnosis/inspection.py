"""`inspect`: faults of a log, found in its signals and, with a robot, by the equations of its motion.

On a few hundred samples the data are compared with themselves (`faults.py`) and with the description (`description.py`), which
predicts torques of the measured motion: r_ij is the correlation of measured torque i with described torque j, and the factor
between them, given rotor inertia and friction, is a gain.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array
from dynident.errors import DynidentWarning, LogError
from dynident.identify.base import BaseParameters, base_parameters, columns_of
from dynident.identify.fit import Fit
from dynident.identify.regression.factor import check_finite
from dynident.identify.regression.logs import dead_efforts, preparation_for, same_band
from dynident.identify.regression.rows import Rows
from dynident.mechanics.functions import Motion
from dynident.mechanism.elements import Joint
from dynident.mechanism.mechanism import Mechanism
from dynident.parallel import one_blas_thread
from dynident.signals.log import Log
from dynident.signals.matching import Matched, match
from dynident.signals.preparation import Prepared
from dynident.signals.quality import LONGEST_HOLE, Finding, Quality, diagnose
from dynident.validate.diagnosis.delay import aligned, delays_of
from dynident.validate.diagnosis.description import (
    ALONE,
    KNOWN,
    SURE,
    Explained,
    doubted_gain,
    doubted_gravity,
    explain,
    long_links,
    no_gravity,
    odd_gains,
    other_gravities,
    other_units,
    outside,
    shares,
    significant_correlation,
    too_strong,
    turned_gravity,
)
from dynident.validate.diagnosis.excitation import motion_findings, parameter_findings, short_finding
from dynident.validate.diagnosis.faults import (
    JOINT,
    POOR,
    ROBOT,
    Change,
    Data,
    Faults,
    best_zero,
    errors_of,
    exchanged,
    find_faults,
    nearest,
    other_gravity,
    reachable,
    shifted,
    wrong_zero,
)
from dynident.validate.diagnosis.left_out import believed, left_out_errors
from dynident.validate.diagnosis.noise import noise_floor
from dynident.validate.diagnosis.residuals import clipped, contact_finding, contacts
from dynident.validate.diagnosis.sample import Sample, bare, channels_of, false_channels, fault, has_masses, on_joints, torques
from dynident.validate.verdict import feeding_joints

EXCHANGED = 0.25  # of the error: largest error ratio of two joints fitted crosswise
CONTRADICTS = 2.5  # times the error of joints alone: common model after correction
UNEXPLAINED, NOISE = 0.35, 2.0  # relative error (geometric mean of the joints) and ratio to the noise beyond any healthy log
LENGTHS = (0.75, 1.33)  # times the described ones, tried first
TOLD = 3.0  # fall of the log product of variances not explained by described torques, for a wrong zero
SPOILED = ("fixed_joint", "held", "lost_rows")  # findings that end the search
SURE_SHARE = 5.0  # deviations
ABSENT = 0.1  # of the described torques: no wrong masses explain less
TOUCHES = 0.2  # of the RMS effort: least magnitude of a window in which the sign changes
HALF = 0.5  # of the description's error, if larger than the efforts: limit for another gravity
CONSEQUENCES = ("gap", "nan", "negative_terms", "description")  # of contacts and other faults, which come first
ORDER = {"error": 0, "warning": 1, "info": 2}
NUMBER = re.compile(r"(?<![\w.])-?\d[\d.]*(?:e[+-]?\d+)?(?!\w)")  # not part of a name


@dataclass(frozen=True)
class Inspection(Quality):
    """Findings of one log, most serious first.

    Parameters
    ----------
    name : str
        Name of the log.
    findings : tuple of Finding
        Findings.
    duration : float
        Length of the log [s].
    short : bool
        True if the log has fewer independent rows than the robot has base parameters, so contradictions occur by chance.
    noise : float
        Relative noise of the efforts in the band of the fit; NaN if the log does not show it.
    noise_source : str
        Origin of the noise estimate.
    """

    duration: float = 0.0
    short: bool = False
    noise: float = float("nan")
    noise_source: str = ""
    derived: ClassVar[tuple[str, ...]] = ("ok", "usable")

    @property
    def usable(self) -> bool:
        """Whether a fit of this log is reliable: it has no finding of severity "error"."""
        return all(finding.severity != "error" for finding in self.findings)


def inspect(
    log: Log,
    robot: Mechanism | None = None,
    base: BaseParameters | None = None,
    absent: Sequence[str] = (),
    excitation: bool = True,
    **options: Any,
) -> Inspection:
    """Look for faults of a log: clock, units, channels; with a robot order, sign, gain, zero, delay, mounting and excitation.

    Parameters
    ----------
    log : Log
        Measured signals.
    robot : Mechanism, optional
        The robot; without it only the signals themselves are checked.
    base : BaseParameters, optional
        Base parameters of the robot; found when omitted.
    absent : sequence of str
        Bodies of the robot absent in this log.
    excitation : bool
        Whether to look for parameters that the motion does not excite; a fit reports them too (`Fit.observability`).
    **options
        Options of `dynident.signals.prepare`.

    Returns
    -------
    Inspection
        Findings with numbers and advice, most serious first.
    """
    quality = diagnose(log)
    few = motion_findings(log, quality)
    if robot is None or log.effort_kind == "none" or few:
        return _sorted(log, [*few, *quality.findings])
    matched = match(robot, log)
    moved = matched.mechanism
    base = base_parameters(moved) if base is None else base
    few = parameter_findings(moved, matched.log, base, **options) if excitation else []
    rows = Rows(moved, "gls", absent=tuple(columns_of(moved, tuple(absent))))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DynidentWarning)  # the findings report it
        prepared = preparation_for(rows, matched.piece, options).part()
    dead = dead_efforts(prepared)
    late: list[Finding] = []
    found = [note for note in (*matched.notes, *quality.findings) if note.kind in SPOILED and note.severity == "error"]
    independent = prepared.decimator.length(len(prepared)) * prepared.decimator.independence
    signals = rows.signals(prepared.temperature, None, prepared.motion)
    noise = noise_floor(prepared)
    with one_blas_thread():
        if not found:
            sample = Sample.of(rows, base.columns, prepared.motion, _efforts(moved, prepared), signals, dead)
            found = false_channels(matched.log, prepared.quality, sample)
            if not found and (pushed := contacts(sample)):
                free = inspect(_without(log, pushed), robot, base, absent, excitation, **options)
                others = [finding for finding in free.findings if finding.kind != "nan"]
                pushes = contact_finding(log.name, pushed, log.duration)
                return replace(free, findings=_sorted(log, [pushes, *others]).findings)
            found = found or clipped(sample)
        delays = delays_of(rows, base, prepared, dead) if not found else ()
        late = [delay.finding(prepared.joints) for delay in delays]
        short = not found and independent < base.rank
        if not found:
            sizes = [note for note in quality.of("unit_suspect") if note.channel.startswith("position:")]
            units = [fault("unit", f.channel, f"{f.channel.replace(':', ' of ')} {f.sentence}", f.value) for f in sizes]

            def compared(effort: Array) -> tuple[list[Finding], float]:
                sample = Sample.of(rows, base.columns, prepared.motion, effort, signals, dead)
                return _compare(rows, on_joints(moved, prepared.motion), sample, independent, noise[0], units)

            found, left = compared(_efforts(moved, aligned(prepared, delays)))
            if delays:  # another, dominant fault makes efforts look late
                others, less = compared(_efforts(moved, prepared))
                found, late = (others, []) if others and less < left else (found, late)
    found = [*late, *found]
    if any(finding.kind in SPOILED for finding in quality.findings):  # they explain it
        found = [finding for finding in found if finding.kind != "contradiction"]
    if excitation and short:
        few = few or [short_finding(log, independent, base.rank)]
    told = {finding.channel for finding in found if finding.kind in ("stuck", "clipped", *SPOILED)}
    rest = [finding for finding in quality.findings if finding.channel not in told]
    return _sorted(log, [*few, *found, *rest] if short else [*found, *few, *rest], short, noise)


def _without(log: Log, stretches: Sequence[tuple[float, float]]) -> Log:
    """Return a log without efforts in some stretches of time."""
    inside = np.zeros(len(log), dtype=bool)
    for start, end in stretches:
        inside |= (log.t >= start) & (log.t <= end)
    return replace(log, effort=np.where(inside[:, None], np.nan, log.effort))


def without_contacts(
    logs: Sequence[Log], robot: Mechanism, base: BaseParameters | None = None, **options: Any
) -> tuple[list[Log], tuple[Finding, ...]]:
    """Return logs without stretches of time with external forces, and the findings about them."""
    kept, findings, known = list[Log](), list[Finding](), base
    for log in logs:
        matched = match(robot, log)
        quality, pushed = matched.piece.quality, list[tuple[float, float]]()
        spoiled = any(quality.of(kind) for kind in ("stuck", *SPOILED))
        if not (log.effort_kind == "none" or spoiled or motion_findings(log, quality)):
            if known is None or (base is None and known.mechanism is not matched.mechanism):
                known = base_parameters(matched.mechanism)
            pushed = _contacts(matched, known, options)
        kept.append(_without(log, pushed) if pushed else log)
        findings += [contact_finding(log.name, pushed, log.duration)] if pushed else []
    return kept, tuple(findings)


def _contacts(matched: Matched, base: BaseParameters, options: dict[str, Any]) -> list[tuple[float, float]]:
    """Return the stretches of time [s] with external forces; none for a log that cannot be fitted."""
    rows = Rows(matched.mechanism, "gls")
    with warnings.catch_warnings(), one_blas_thread():
        warnings.simplefilter("ignore", DynidentWarning)  # the fit reports it
        try:
            prepared = preparation_for(rows, matched.piece, options).part()
        except LogError:  # so does the fit
            return []
        signals = rows.signals(prepared.temperature, None, prepared.motion)
        return contacts(
            Sample.of(
                rows, base.columns, prepared.motion, _efforts(matched.mechanism, prepared), signals, dead_efforts(prepared)
            )
        )


def _efforts(robot: Mechanism, prepared: Prepared) -> Array:
    """Return the efforts to compare; those of loops, whose motion may exceed the cut-off, are low-passed like the positions."""
    return prepared.filtered if robot.loops else prepared.effort


def _sorted(
    log: Log, findings: Sequence[Finding], short: bool = False, noise: tuple[float, str] = (float("nan"), "")
) -> Inspection:
    """Return findings of a log, most serious first, dead channels before their consequences, otherwise in order."""
    ordered = tuple(sorted(findings, key=lambda finding: (ORDER[finding.severity], finding.kind != "dead")))
    return Inspection(log.name, ordered, log.duration, short, *noise)


def inspect_fit(fit: Fit) -> tuple[Inspection, ...]:
    """Return the inspections of the training logs of a fit in memory, in the band of the fit."""
    return tuple(
        inspect(log, fit.mechanism, fit.base, absent, excitation=False, **{**fit.options, **same_band(fit.sources, log.rate)})
        for log, absent in fit.data.logs
    )


def findings_of(fit: Fit) -> tuple[Finding, ...]:
    """Return faults of the training logs of a fit and warnings about them, the likeliest cause first.

    Logs in memory are inspected; the notes of a fit have earlier findings. Joints whose friction feeds energy are reported
    if the fit has no other error.
    """
    notes = with_findings(fit).notes if fit.data.logs else fit.notes
    noted = [note for note in notes if note.severity == "error" or (note.severity == "warning" and note.kind in FAULTS)]
    every = sorted(noted, key=lambda finding: (ORDER[finding.severity], finding.kind in CONSEQUENCES))
    return tuple(every) if every and every[0].severity == "error" else (*feeding_joints(fit), *every)


def with_findings(fit: Fit) -> Fit:
    """Return a fit with the findings of its training logs in its notes, which are saved with it."""
    found = inspect_fit(fit)
    mild = {f.sentence: f for each in reversed(found) for f in reversed(each.findings) if f.kind == "masses"}
    data = replace(fit.data, logs=())  # they have been inspected
    seen = [each for each in found if np.isfinite(each.noise)]
    if seen:
        noise, source = float(np.sqrt(np.mean([each.noise**2 for each in seen]))), seen[0].noise_source
        floor = min(noise, fit.training_relative)  # a controller that feeds noise back makes true efforts above the motion
        said = f"noise floor of the efforts {floor:.2%}, by {source if floor == noise else 'the training error, its bound'}"
        mild["noise"] = Finding("noise_floor", "effort", "info", said, floor)
    told = (*suspicions(found), *suspicions(found, "warning"), *reversed(mild.values()))
    known = {note.sentence for note in fit.notes}
    return replace(fit, data=data, notes=(*fit.notes, *(finding for finding in told if finding.sentence not in known)))


def _short_gap(finding: Finding) -> bool:
    """Return whether a finding is about interpolated gaps of the clock."""
    return finding.kind == "gap" and finding.value is not None and finding.value <= LONGEST_HOLE


def _complete(finding: Finding) -> Finding:
    """Return a finding of a signal with the channel in its sentence."""
    if finding.kind not in ("held", "nan", "quantised"):
        return finding
    quantity, _, joint = finding.channel.partition(":")
    return replace(finding, sentence=f"{quantity} of {joint} (or more channels): {finding.sentence}")


def suspicions(inspections: Sequence[Inspection], severity: str = "error") -> tuple[Finding, ...]:
    """Return the faults of these logs with one severity; equal ones once, with the names of the logs unless in all.

    A fault of clock, gravity, axis, length or gear is in every log. A log with fewer rows than parameters contradicts itself
    by chance only. Such faults count only if logs of half of the total time agree.
    """
    faults: dict[str, Finding] = {}
    where: dict[str, list[Inspection]] = {}
    for inspection in inspections:
        for finding in inspection.findings:
            if finding.severity == severity and finding.kind in FAULTS and not _short_gap(finding):
                key = NUMBER.sub("#", finding.sentence)
                faults.setdefault(key, _complete(finding))
                where.setdefault(key, []).append(inspection)
    whole = sum(inspection.duration for inspection in inspections)

    def believed(key: str) -> bool:
        found = where[key]
        wired = faults[key].kind in WIRED and severity == "error"
        return not (wired or all(x.short for x in found)) or sum(x.duration for x in found) >= 0.5 * whole

    def named(key: str) -> str:
        return ", ".join(dict.fromkeys(x.name for x in where[key]))

    return tuple(
        finding if len(where[key]) == len(inspections) else replace(finding, sentence=f"{finding.sentence} (in {named(key)})")
        for key, finding in faults.items()
        if believed(key)
    )


WIRED = ("clock", "gravity", "axis", "lengths", "gear", "drift")
#: Codes of the findings reported by a verdict, and their meaning. Errors fail a fit unless they are accepted.
FAULTS = {
    "clock": "the time stamps run too fast or too slow",
    "lost_rows": "rows were lost or doubled and the time stamps rewritten",
    "held": "values are refreshed less often than they are logged",
    "gap": "the clock has gaps",
    "nan": "samples are missing",
    "outliers": "single samples far from their neighbours; they are excluded",
    "contact": "segments with external forces; they are excluded",
    "stuck": "a channel is constant while its joint moves",
    "clipped": "efforts saturate",
    "quantised": "efforts have only a few levels",
    "unit": "positions, speeds or efforts are in a different unit",
    "sign": "a channel has the opposite sign; friction of its joint may feed energy",
    "order": "channels of two joints are exchanged",
    "gain": "efforts of a joint, or of all, are a multiple of the torques",
    "gear": "a gear ratio is missing or counted twice",
    "drift": "efforts drift with time or have an offset",
    "changes": "the efforts of equal motions change during the log: a payload, gains, the clock",
    "delay": "efforts are delayed or early relative to the positions",
    "zero": "the position of a joint has an offset",
    "axis": "the axis of a joint differs from the description",
    "gravity": "efforts do not contain gravity torques, for example because the controller compensates them",
    "mounting": "the direction of gravity differs from the description",
    "fixed_joint": "a joint moves that the description fixes or couples",
    "lengths": "lengths of the description are others, or have another unit",
    "limits": "positions are outside the described limits",
    "contradiction": "the motion does not explain the efforts",
    "description": "the bodies that explain the efforts are far from the described ones",
    "negative_terms": "friction or rotor inertia would be negative without the condition that they are not",
    "misfit": "most of the error is not noise",
    "computed": "the efforts are those of the description, closer than any measurement",
}


def _compare(
    rows: Rows, motion: Motion, sample: Sample, independent: float, noise: float, units: list[Finding]
) -> tuple[list[Finding], float]:
    """Return findings about a log from the equations of the robot and its description, and L of the corrected data.

    `independent` is the number of rows of a joint, `noise` the noise floor, and `units` are positions of suspicious magnitude.
    """
    robot, part, measured = rows.mechanism, sample.motion, sample.effort
    names, joints = sample.names, channels_of(robot).values()
    if found := long_links(robot) or other_units(robot, motion) or _magnitudes(sample):
        return found, -np.inf
    found = outside(robot, motion)
    described = torques(sample.robot, part)
    for name, values in zip(names, described.T, strict=True):
        check_finite(values, name)
    order, crossed = _exchanged(names, measured, described)
    measured = measured[:, order]
    free = robot.loops or not robot.couplings
    angles = [i for i, name in enumerate(joints) if free and robot.joint(name).kind == "revolute"]
    faults = find_faults(
        Data.of(sample, measured),
        names,
        independent,
        angles,
        lambda data: _other_geometry(robot, data),
    )
    error = float(np.linalg.norm(measured - described))
    contradicted = error > np.linalg.norm(measured)
    doubtful = bool(faults.findings) or faults.poor() or contradicted or bool(np.isnan(faults.misfit))
    enough = HALF * error if contradicted else 0.0
    other = _turned_gravity(rows, part, measured, sample, independent, faults, enough) if doubtful else None
    mounting: Finding | None = None
    if other is not None:
        faults, robot, described, mounting = other
        crossed = []
    if unexplained := _contradicts(faults, noise):
        return [*found, *(units or [unexplained])], faults.misfit
    if mounting is None and (not faults.findings or faults.data.gravity != 1.0) and no_gravity(robot, part, measured):
        return [*found, other_gravity(0.0)], faults.misfit
    if faults.data.gravity != 1.0 and mounting is None:
        return [*found, *_clock_or_gravity(robot, part, measured, faults)], faults.misfit
    if any(finding.kind in FINAL for finding in faults.findings):  # described torques have a different shape
        return [*found, *([mounting] if mounting else faults.findings)], faults.misfit
    turned, moved, mended = np.isin(np.arange(len(names)), faults.turned), faults.data.motion, faults.data.effort
    if not has_masses(robot):
        told = _turned(names, turned, np.ones_like(turned))
    else:
        if moved is not part:
            described = torques(bare(robot), moved)
        own, explained = np.diag(_correlations(mended, described)), explain(moved, mended, described)
        least = significant_correlation(part)
        seen = np.abs(own) > max(SURE, least)
        turned ^= (seen & (own < 0.0)) | (~seen & _feeding(explained, moved, mended, described))
        absent = _absent(explained, moved, mended, described)
        known = absent | (explained.needed & (explained.deviation < KNOWN * explained.gain))
        told = odd_gains(robot, names, explained.gain, seen | absent, known) or too_strong(robot, sample.effort)
        if not faults.findings and all(finding.severity == "info" for finding in told):
            told = doubted_gain(faults.data, names, independent, explained) or doubted_gravity(faults.data) or told
        told = _turned(names, turned, seen) + told
        if doubtful or told:
            zero = _wrong_zero(sample, measured, faults, angles)
            if zero and not mounting:
                return [*found, zero], faults.misfit
            if zero and mounting:
                mounting = replace(mounting, sentence=f"{mounting.sentence}; or {zero.sentence}")
    return [*found, *([mounting] if mounting else []), *crossed, *faults.findings, *told], faults.misfit


FINAL = ("zero", "axis", "lengths", "gravity", "clock")


def _magnitudes(sample: Sample) -> list[Finding]:
    """Return the finding about efforts without signs; where the sign of an effort changes, its magnitude touches zero."""
    touches = np.min(sample.effort, axis=0) < TOUCHES * np.sqrt(np.mean(sample.effort**2, axis=0))
    if len(sample.names) < 2 or np.min(sample.effort) < 0.0 or not touches.any() or Data.of(sample).error < POOR:
        return []
    said = "no effort is ever negative, and the motion does not explain them: are they magnitudes? Log them with their signs"
    return [fault("sign", "effort", said)]


def _clock_or_gravity(robot: Mechanism, motion: Motion, measured: Array, faults: Faults) -> list[Finding]:
    """Return the findings; the described bodies decide between faults of clock and gravity."""
    if not has_masses(robot):
        return list(faults.findings)
    (inertia, _), (deviation, _) = shares(robot, motion, measured)
    bodies = float(inertia) if inertia > SURE_SHARE * deviation else 1.0
    told = other_gravity(faults.data.gravity, bodies)
    return [told if finding.kind in ("clock", "gravity") else finding for finding in faults.findings]


def _with(robot: Mechanism, joint: Joint, **fields: Any) -> Callable[[Data], Data]:
    """Return the correction of a described joint."""
    other = robot.altered(joints=tuple(replace(each, **fields) if each is joint else each for each in robot.joints))
    return lambda data: replace(data, sample=data.sample.altered(other))


def _other_geometry(robot: Mechanism, data: Data) -> Iterator[Change]:
    """Yield changes of joint axes to other axes of their frame, and the likeliest change of a joint distance."""

    def longer(joint: Joint, factor: float) -> Change:
        placement = replace(joint.placement, translation=factor * joint.placement.translation)
        said = f"the efforts suit a joint {joint.name} that is {factor:.2f} times as far from the one before; check its origin"
        found = fault("lengths", f"description:{joint.name}", said, factor)
        return Change(found, _with(robot, joint, placement=placement), numbers=1)

    def misfit(joint: Joint) -> Callable[[float], float]:
        return lambda factor: data.misfit_with(longer(joint, factor))

    if apart := [joint for joint in robot.joints if np.any(joint.placement.translation)]:
        best = min(apart, key=lambda joint: min(map(misfit(joint), LENGTHS)))
        yield longer(best, nearest(misfit(best), LENGTHS)[1])
    for joint in () if robot.loops else robot.joints:  # loops hardly close with another axis
        if joint.kind not in ("revolute", "prismatic", "continuous") or joint.name not in robot.coordinate_names:
            continue
        for axis in (axis for axis in np.eye(3) if abs(axis @ joint.axis) < HALF):
            described, better = (",".join(f"{x:g}" for x in each) for each in (joint.axis, axis))
            said = f"the efforts suit the axis {better} of {joint.name} better than the described {described}; check it"
            found = fault("axis", f"position:{joint.name}", said)
            yield Change(found, _with(robot, joint, axis=axis))


def _contradicts(faults: Faults, noise: float) -> Finding | None:
    """Return the finding about efforts unexplained after all corrections, otherwise None.

    Joints contradict each other strongly, or the likeliest fault explains hardly anything: naming it would mislead.
    """
    error = faults.error
    unexplained = error > max(UNEXPLAINED, NOISE * np.nan_to_num(noise))
    if not (faults.poor() and faults.contradiction > CONTRADICTS) and not unexplained:
        return None
    said = (
        f"the motion does not explain the efforts ({error:.0%} remain in one model, {error / faults.contradiction:.0%} "
        "joint by joint) and no single fault does; check robot, geometry, order and signs"
    )
    return fault("contradiction", "description", said, error)


def _wrong_zero(sample: Sample, measured: Array, faults: Faults, angles: Sequence[int]) -> Finding | None:
    """Return the finding about a zero with which the described torques explain the efforts much better, otherwise None.

    Bodies may absorb the angle of a joint, so joints do not contradict each other and only the description shows it. The data
    must be consistent with it; inverted efforts have a similar effect, but their friction feeds energy.
    """

    def explained(joint: int, angle: float) -> Explained:
        moved = shifted(sample.motion, joint, angle)
        return explain(moved, measured, torques(sample.robot, moved))

    def misfit(joint: int, angle: float) -> float:
        return reachable(lambda: float(np.sum(np.log(explained(joint, angle).left))))

    before = explained(0, 0.0)
    start = float(np.sum(np.log(before.left)))
    best, joint, angle = best_zero(misfit, angles, start)
    after = explained(joint, angle)
    if not angle or best > start - TOLD or np.sum(after.friction[after.left < HALF * before.left]) <= 0.0:
        return None
    left = replace(Data.of(sample, measured), motion=shifted(sample.motion, joint, angle)).misfit()
    return wrong_zero(sample.names[joint], angle) if left < faults.misfit + faults.limit else None


def _turned_gravity(
    rows: Rows, part: Motion, measured: Array, sample: Sample, independent: float, faults: Faults, enough: float
) -> tuple[Faults, Mechanism, Array, Finding] | None:
    """Return the remaining faults with another direction of gravity, the robot, its torques and the finding, or None."""
    best: tuple[Faults, Mechanism, Array, Finding] | None = None
    for g in other_gravities(rows.mechanism, part, measured):
        robot = rows.mechanism.with_gravity(g)
        other = find_faults(Data.of(sample.altered(robot), measured), sample.names, independent)
        spared = len(faults.findings) + len(faults.turned) > len(other.findings) + len(other.turned)
        described = torques(bare(robot), part)
        suits = spared or np.linalg.norm(measured - described) < enough
        slack = other.limit if suits else -other.limit
        finding = turned_gravity(rows.mechanism, g)
        # A log too short to contradict itself leaves the description alone, which must show gravity along another axis.
        alone = np.isnan(faults.misfit) and np.count_nonzero(g) == 1 and (finding.value or 0.0) > 45.0
        if not (alone or suits or believed(errors_of(faults.data), errors_of(other.data), 2 * ROBOT)):
            continue
        fits = alone or other.misfit < faults.misfit + slack
        if fits and (best is None or other.misfit < best[0].misfit + other.limit):
            best = (other, robot, described, finding)
    return best


def _feeding(explained: Explained, motion: Motion, measured: Array, described: Array) -> NDArray[np.bool_]:
    """Return the joints whose friction feeds energy, and whose inverted efforts predict left-out stretches better.

    Either sign is explained by the terms with possible coefficients: those of body, rotor and friction are not negative.
    """
    feeding = (explained.friction < 0.0) & (explained.left < 1.0 - SURE**2)
    for i in np.flatnonzero(feeding).tolist():
        errors = []
        for y in (measured[:, i], -measured[:, i]):
            columns = np.column_stack([described[:, i], *_joint_terms(motion, i)])
            while np.any((c := np.linalg.lstsq(columns, y, rcond=None)[0])[:-1] < 0.0):
                columns = np.delete(columns, np.argmin(c[:-1] * np.linalg.norm(columns[:, :-1], axis=0)), axis=1)
            errors.append(left_out_errors(columns.T[None], y[:, None], _of_joint(motion, i), friction=False))
        feeding[i] = believed(errors[0], errors[1], 2 * JOINT * len(feeding))
    return feeding


def _absent(explained: Explained, motion: Motion, measured: Array, described: Array) -> NDArray[np.bool_]:
    """Return the joints whose efforts hardly contain the described torques, with which they predict stretches worse."""
    absent = explained.gain + SURE_SHARE * explained.deviation < ABSENT
    for i in np.flatnonzero(absent).tolist():
        W, own = np.stack(_joint_terms(motion, i))[None], _of_joint(motion, i)
        with_it, without = (measured[:, [i]] - share * described[:, [i]] for share in (1.0 / ALONE, 0.0))
        before, after = (left_out_errors(W, y, own, friction=False) for y in (with_it, without))
        absent[i] = believed(before, after, 2 * JOINT * len(absent))
    return absent


def _joint_terms(motion: Motion, i: int) -> list[Array]:
    """Return the columns of rotor inertia, friction and offset of a joint."""
    return [motion.a[:, i], motion.v[:, i], np.sign(motion.v[:, i]), np.ones(len(motion))]


def _of_joint(motion: Motion, i: int) -> Motion:
    return Motion(motion.t, motion.q[:, [i]], motion.v[:, [i]], motion.a[:, [i]])


def _exchanged(names: tuple[str, ...], measured: Array, described: Array) -> tuple[NDArray[np.int64], list[Finding]]:
    """Return the order of efforts that fits the description, and findings about pairs that look exchanged."""
    r = _correlations(measured, described)
    apart = np.var(measured[:, :, None] - described[:, None, :], axis=0)
    own = np.minimum(np.diag(apart), np.var(measured + described, axis=0))  # efforts may be inverted too
    order, found = np.arange(len(names)), list[Finding]()
    for j, i in combinations(range(len(names)), 2):
        straight, crossed = own[i] + own[j], apart[i, j] + apart[j, i]
        if min(r[i, j], r[j, i]) > SURE and crossed < EXCHANGED * straight and order[i] == i and order[j] == j:
            order[[i, j]] = j, i
            found.append(exchanged(names[j], names[i]))
    return order, found


def _turned(names: tuple[str, ...], turned: NDArray[np.bool_], seen: NDArray[np.bool_]) -> list[Finding]:
    """Return the finding about inverted efforts."""
    flipped = [name for name, own in zip(names, turned, strict=True) if own]
    if not flipped:
        return []
    which = "all joints" if len(flipped) > 1 and seen.sum() > 1 and turned[seen].all() else ", ".join(flipped)
    said = f"the efforts of {which} have the opposite sign of what other joints or the description need; invert them (gain=-1)"
    return [fault("sign", ",".join(f"effort:{name}" for name in flipped), said, -1.0)]


def _correlations(measured: Array, described: Array) -> Array:
    """Return correlations of measured (rows) with described (columns) torques."""
    y, x = measured - measured.mean(axis=0), described - described.mean(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        r: Array = y.T @ x / np.outer(np.linalg.norm(y, axis=0), np.linalg.norm(x, axis=0))
    return np.asarray(np.nan_to_num(r))
