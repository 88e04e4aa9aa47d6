"""What a person would suspect who knows the robot: torques of the wrong sign, exchanged channels, wrong units, gains or gears.

On some hundred samples the data are compared with themselves (`dynident.identify.hypotheses`) and with the description, which
predicts torques of the measured motion: r_ij is the correlation of measured torque i with described torque j, and the factor
between them, beside rotor inertia and friction, is a gain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dynident.errors import IdentificationError
from dynident.identify.base import BaseParameters, base_parameters
from dynident.identify.described import KNOWN, SURE, Explained, doubted_gain, explain, odd_gains
from dynident.identify.findings import HEAD
from dynident.identify.gravity import other_gravities, turned_gravity
from dynident.identify.hypotheses import Equations, Faults, Products, exchanged, find_faults
from dynident.identify.regression.rows import Rows
from dynident.identify.specimen import Specimen
from dynident.identify.zeros import best_zero, shifted, wrong_zero
from dynident.mechanics.motion import Motion
from dynident.mechanism.elements import Joint
from dynident.mechanism.mechanism import Mechanism

Array = NDArray[np.float64]

EXCHANGED = 0.25  # of the error: so much better two joints must fit crosswise
CONTRADICTS = 2.5  # times the error of joints alone, which one model of all leaves after mending
UNEXPLAINED = 0.35  # relative error (geometric mean of the joints) that no mended fault leaves
TOLD = 3.0  # fall of the logarithm of the product of all variances that described torques do not explain, for a wrong zero
HALF = 0.5  # of the description's error, where that is worse than nothing: so much less another gravity must leave
OUTSIDE = 0.1  # of their range, by which positions may leave it without a note
BEYOND = 3.0  # limits that positions and speeds must not exceed by this factor, ...
STRONG = 10.0  # ... and those of efforts: gears are larger
MEAN = 0.8  # mean of |v| over its root mean square, as for normal or sinusoidal motions
FEEDS = 5.0  # deviations by which the power of friction must be negative


def suspicions(
    rows: Rows, base: BaseParameters, motion: Motion, effort: Array, specimen: Specimen, independent: float
) -> tuple[str, ...]:
    """Return sentences beginning with "suspicion: ", and a note about what may be right; none when nothing is wrong.

    `base` are the base parameters of the rows, `motion` and `effort` (N, n) are the whole log, and `independent` counts the
    independent rows of a joint.
    """
    robot, part, measured = rows.mechanism, specimen.motion, specimen.effort
    found = _other_units(robot, motion)
    names = robot.coordinate_names
    if found:
        return found
    found = _outside(robot, motion)
    described = _described(robot, specimen.equations, base, part)
    for name, values in zip(names, described.T, strict=True):
        check_finite(values, name)
    order, sentences = _exchanged(names, measured, described)
    measured = measured[:, order]
    angles = [i for i, name in enumerate(names) if robot.joint(name).kind == "revolute"] if not robot.couplings else []

    def later(delay: float) -> Array:
        """The efforts of the samples, as they were logged some seconds later."""
        there = [np.interp(part.t + delay, motion.t, y) - np.interp(part.t, motion.t, y) for y in effort.T]
        return np.asarray((specimen.effort + np.stack(there, axis=1) * np.any(specimen.effort, axis=0))[:, order])

    faults = find_faults(names, specimen.equations, part, measured, independent, later, angles)
    error = float(np.linalg.norm(measured - described))
    contradicted = error > np.linalg.norm(measured)
    doubtful = bool(faults.sentences) or faults.poor() or contradicted
    enough = HALF * error if contradicted else 0.0
    other = _turned_gravity(rows, part, measured, specimen, independent, faults, enough) if doubtful else None
    said = ""
    if other is not None:
        faults, robot, described, said = other
        sentences = ()
    if unexplained := _contradicts(faults):
        return (*found, f"{HEAD}{unexplained}")
    if faults.motion is not part and np.array_equal(faults.motion.v, part.v):  # a zero: what is described has another shape
        return found + tuple(f"{HEAD}{sentence}" for sentence in ((said,) if said else faults.sentences))
    turned = np.isin(np.arange(len(names)), faults.turned)
    mended = measured[:, faults.order] * faults.factor
    if not np.any(robot.tree.inertias):
        told = _turned(names, turned, turned)
    else:
        if faults.motion is not part:
            described = _described(robot, specimen.equations, base, faults.motion)
        own, explained = np.diag(_correlations(mended, described)), explain(faults.motion, mended, described)
        seen = np.abs(own) > SURE
        turned ^= (seen & (own < 0.0)) | (~seen & explained.backwards)
        known = explained.deviation < KNOWN * explained.gain
        told = odd_gains(robot, names, explained.gain, seen, known) or _too_strong(robot, specimen.effort)
        if not told and not faults.sentences:
            told = doubted_gain(names, specimen.equations, faults.motion, mended, independent, explained)
        told = _turned(names, turned, seen) + told
        if doubtful or told:
            zero = _wrong_zero(rows.mechanism, base, specimen, measured, faults, angles)
            if zero and not said:
                return (*found, f"{HEAD}{zero}")
            said += f"; or {zero}" if zero else ""
    found += (f"{HEAD}{said}",) if said else ()
    return found + tuple(f"{HEAD}{sentence}" for sentence in (*sentences, *faults.sentences)) + told


def _contradicts(faults: Faults) -> str:
    """Return the sentence about efforts that stay unexplained whatever is mended; "" where they do not.

    Joints contradict each other by far, or the likeliest fault mends next to nothing: to name it would mislead.
    """
    error = faults.error
    if not (faults.poor() and faults.contradiction > CONTRADICTS) and not (faults.sentences and error > UNEXPLAINED):
        return ""
    return (
        f"the motion does not explain the efforts: one model of all joints leaves {error:.0%} of them, joints fitted alone "
        f"{error / faults.contradiction:.0%}, and no single fault mends it; does this log belong to this robot? Check the "
        "description's geometry, and order, signs and zeros of the joints"
    )


def _described(robot: Mechanism, equations: Equations, base: BaseParameters, motion: Motion) -> Array:
    """Return the torques (S, n) of the described bodies, without joint terms."""
    phi = robot.parameters.values.copy()
    phi[robot.tree.inertias.size :] = 0.0
    return np.asarray(np.einsum("nbt,b->tn", equations(motion), base.values(phi)))


def _wrong_zero(
    robot: Mechanism, base: BaseParameters, specimen: Specimen, measured: Array, faults: Faults, angles: Sequence[int]
) -> str:
    """Return the sentence about a zero with which the described torques explain the efforts much better; "" without one.

    Bodies may take up the angle of a joint, so that joints do not contradict each other and the description alone can tell. The
    data must allow it, and efforts that are turned round, which look alike, are known by friction that feeds energy.
    """

    def explained(joint: int, angle: float) -> Explained:
        moved = shifted(specimen.motion, joint, angle)
        return explain(moved, measured, _described(robot, specimen.equations, base, moved))

    def misfit(joint: int, angle: float) -> float:
        return float(np.sum(np.log(explained(joint, angle).left)))

    before = explained(0, 0.0)
    start = float(np.sum(np.log(before.left)))
    best, joint, angle = best_zero(misfit, angles, start)
    after = explained(joint, angle)
    if not angle or best > start - TOLD or np.sum(after.friction[after.left < HALF * before.left]) <= 0.0:
        return ""
    left = Products.of(specimen.equations(shifted(specimen.motion, joint, angle)), measured).misfit()
    return wrong_zero(specimen.names[joint], angle) if left < faults.misfit + faults.limit else ""


def _turned_gravity(
    rows: Rows, part: Motion, measured: Array, specimen: Specimen, independent: float, faults: Faults, enough: float
) -> tuple[Faults, Mechanism, Array, str] | None:
    """Return the faults left when gravity acts elsewhere, the robot, its torques and the sentence; None where it does not."""
    best: tuple[Faults, Mechanism, Array, str] | None = None
    alive = np.any(specimen.effort, axis=0)
    for g in other_gravities(rows.mechanism, part, measured):
        robot = rows.mechanism.with_gravity(g)
        own, base = replace(rows, mechanism=robot), base_parameters(robot)

        def equations(moved: Motion, step: int = 1, own: Rows = own, base: BaseParameters = base) -> Array:
            return np.asarray(own.equations(moved, None, base.columns)[0] * alive[:, None, None])

        other = find_faults(robot.coordinate_names, equations, part, measured, independent)
        spared = len(faults.sentences) + len(faults.turned) > len(other.sentences) + len(other.turned)
        described = _described(robot, equations, base, part)
        slack = other.limit if spared or np.linalg.norm(measured - described) < enough else -other.limit
        if other.misfit < faults.misfit + slack and (best is None or other.misfit < best[0].misfit + other.limit):
            best = (other, robot, described, turned_gravity(rows.mechanism, g))
    return best


def _exchanged(names: tuple[str, ...], measured: Array, described: Array) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Return the order in which efforts suit the description, and sentences about pairs that look exchanged."""
    r = _correlations(measured, described)
    apart = np.var(measured[:, :, None] - described[:, None, :], axis=0)
    own = np.minimum(np.diag(apart), np.var(measured + described, axis=0))  # efforts may be turned round as well
    order, found = np.arange(len(names)), []
    for j, i in combinations(range(len(names)), 2):
        straight, crossed = own[i] + own[j], apart[i, j] + apart[j, i]
        if min(r[i, j], r[j, i]) > SURE and crossed < EXCHANGED * straight and order[i] == i and order[j] == j:
            order[[i, j]] = j, i
            found.append(exchanged(names[j], names[i]))
    return order, tuple(found)


def _turned(names: tuple[str, ...], turned: NDArray[np.bool_], seen: NDArray[np.bool_]) -> tuple[str, ...]:
    """Return the sentence about efforts that were turned round."""
    flipped = [name for name, own in zip(names, turned, strict=True) if own]
    if not flipped:
        return ()
    which = "all joints" if len(flipped) > 1 and seen.sum() > 1 and turned[seen].all() else ", ".join(flipped)
    return (
        f"{HEAD}the efforts of {which} have the opposite sign of what other joints or the description need; turn them round "
        "(gain=-1)",
    )


def check_finite(values: Array, joint: str) -> None:
    """Refuse equations that a user's expression makes NaN or infinite."""
    if not np.isfinite(values).all():
        raise IdentificationError(
            f"the equations of joint '{joint}' are not finite along this motion; check the expressions of its friction and "
            "forces, such as log or sqrt of what becomes negative"
        )


def _correlations(measured: Array, described: Array) -> Array:
    """Return correlations of measured (rows) with described (columns) torques."""
    y, x = measured - measured.mean(axis=0), described - described.mean(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        r: Array = y.T @ x / np.outer(np.linalg.norm(y, axis=0), np.linalg.norm(x, axis=0))
    return np.asarray(np.nan_to_num(r))


def _other_units(robot: Mechanism, motion: Motion) -> tuple[str, ...]:
    """Return whether positions or speeds leave the limits as degrees taken for radians, or millimetres for metres, do."""
    names, peaks = robot.coordinate_names, np.max(np.abs(motion.q), axis=0)
    wide: dict[str, list[str]] = {"revolute": [], "prismatic": []}
    degrees = False
    for name, joint in _limited(robot).items():
        low, high = joint.limits.lower, joint.limits.upper
        least = 1.0 if joint.kind == "revolute" else 0.0
        largest = BEYOND * max(abs(high), abs(low), least)
        if peaks[names.index(name)] > largest:
            wide[joint.kind].append(name)
            degrees |= joint.kind == "revolute" and peaks[names.index(name)] < np.rad2deg(largest)
    angle = "degrees taken for radians (position=deg)?" if degrees else "encoder counts taken for radians (position=counts)?"
    unit = {"revolute": angle, "prismatic": "millimetres taken for metres (position=mm)?"}
    found = tuple(
        f"{HEAD}positions of {', '.join(some)} leave their limits by far; {unit[kind]}" for kind, some in wide.items() if some
    )
    speeds = np.percentile(np.abs(motion.v), 99, axis=0)
    fast = [] if found else _far_above(robot, "velocity", speeds, BEYOND)
    if fast:
        listed = ", ".join(f"{name} ({peak:.3g} where the description allows {limit:.3g})" for name, peak, limit in fast)
        found = (f"{HEAD}speeds of {listed} leave their limits by far; check the unit of positions (position=deg) and clock",)
    return found


def _outside(robot: Mechanism, motion: Motion) -> tuple[str, ...]:
    """Return the note about positions outside of the description's limits, which say that unit, sign or zero may be others."""
    names, found = robot.coordinate_names, []
    for name, joint in _limited(robot).items():
        low, high = joint.limits.lower, joint.limits.upper
        q = motion.q[:, names.index(name)]
        if max(np.max(q) - high, low - np.min(q)) > OUTSIDE * (high - low):
            found.append(f"{name} ({np.min(q):.3g} to {np.max(q):.3g}, limits {low:.3g} to {high:.3g})")
    if not found:
        return ()
    return (f"positions are outside of the description's limits: {', '.join(found)}; check their unit, sign and zero",)


def _limited(robot: Mechanism) -> dict[str, Joint]:
    """Return the joints of one axis that have a range."""
    return {
        joint.name: joint
        for joint in robot.joints
        if joint.kind in ("revolute", "prismatic")
        and joint.name in robot.coordinate_names
        and np.isfinite([joint.limits.lower, joint.limits.upper]).all()
        and joint.limits.upper > joint.limits.lower
    }


def _far_above(robot: Mechanism, kind: str, peaks: Array, factor: float) -> list[tuple[str, float, float]]:
    """Return name, peak and limit of the coordinates whose peak is above `factor` limits of a kind (velocity, effort).

    Limits that are the same number for all joints are a placeholder of the description, and tell nothing.
    """
    own = {joint.name: getattr(joint.limits, kind) for joint in robot.joints}
    limits = np.array([own.get(name, np.inf) for name in robot.coordinate_names])
    if np.unique(limits).size < 2:
        return []
    above = np.flatnonzero((limits > 0.0) & (peaks > factor * limits))
    return [(robot.coordinate_names[i], float(peaks[i]), float(limits[i])) for i in above]


def _too_strong(robot: Mechanism, measured: Array) -> tuple[str, ...]:
    """Return whether efforts are far above what the joints can give, as with a gear that is counted twice."""
    strong = _far_above(robot, "effort", np.max(np.abs(measured), axis=0), STRONG)
    if not strong:
        return ()
    listed = ", ".join(f"{name} ({peak:.3g} where the description allows {limit:.3g})" for name, peak, limit in strong)
    return (f"{HEAD}efforts of {listed} leave their limits by far; check unit, gain and gear ratio",)


def feeding_joints(base: BaseParameters, values: Array, covariance: Array, speeds: Mapping[str, float]) -> tuple[str, ...]:
    """Return the sentence about joints whose friction feeds energy beyond doubt.

    The mean power of friction fv v + fc sign(v) at the speeds of the training data is linear in both; where it is negative by
    many deviations, effort or position is turned round, whatever the joint carries.
    """
    found = []
    names = list(base.names)
    for joint, speed in speeds.items():
        own = {symbol: names.index(f"{symbol}_{joint}") for symbol in ("fv", "fc") if f"{symbol}_{joint}" in names}
        if not own or speed <= 0.0:
            continue
        weight = np.array([{"fv": speed, "fc": MEAN}[symbol] for symbol in own])
        at = list(own.values())
        power = float(weight @ values[at])
        deviation = float(np.sqrt(max(weight @ covariance[np.ix_(at, at)] @ weight, 0.0)))
        if power < -FEEDS * deviation and deviation > 0.0:
            found.append(joint)
    if not found:
        return ()
    return (
        f"friction of {', '.join(found)} feeds energy beyond doubt: efforts or positions of "
        f"{'these joints look' if len(found) > 1 else 'this joint look'} turned round (gain=-1), or one is late",
    )
