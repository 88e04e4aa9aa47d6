"""Comparison of log and description: gains, gears and masses by the torques, direction of gravity, limits."""

from __future__ import annotations

from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array
from dynident.mechanics.dynamics import unit_gravity
from dynident.mechanics.functions import Motion
from dynident.mechanism.elements import Joint
from dynident.mechanism.mechanism import Mechanism
from dynident.signals.quality import Finding
from dynident.validate.diagnosis.delay import band_of
from dynident.validate.diagnosis.faults import (
    LEAST_GRAVITY,
    Data,
    errors_of,
    lighter,
    likely_gain,
    nearest,
    other_gravity,
    rows_left,
    times,
)
from dynident.validate.diagnosis.left_out import CHANCE, judged
from dynident.validate.diagnosis.sample import bare, channels_of, fault, has_masses, holding, of_channels, torques

SURE = 0.7  # correlation above which a described torque counts as seen
GAIN = 1.5  # common ratio of measured to described torques that wrong masses do not explain ...
ALONE = 3.0  # ... and of a single joint, relative to the others if several are known
SEVERAL = 3  # joints
KNOWN = 0.1  # largest relative deviation of a known ratio, ...
ROUGHLY = 0.2  # ... and of a ratio that can support a gain found from the data alone, ...
LEAST = 0.2  # ... if its logarithm differs this much from that of the others, and it is this gain up to wrong masses
ALIKE = 1.25  # ratios that are equal up to wrong masses
TINY = 1e-6  # smallest plausible relative variance
# Gravity
TILTED = np.radians(10.0)  # from the described direction: wrong masses cause less
UPRIGHT = np.radians(15.0)  # from an axis of the root frame, which is then assumed
GRAVITY_SURE = 7.0  # deviations of the direction, whose residuals are correlated
WEAKEST, STRONGEST = 0.4, 2.5  # times the described magnitude: outside, the estimate is not gravity
ABSENT, SURELY = 0.15, 5.0  # share of the described gravity that counts as none, in deviations
FRICTION_COLUMN = 2  # of the columns of a joint: fv and, next, fc
# Lengths and limits
LONG = 30.0  # [m], beyond the reach of any arm
OUTSIDE = 0.1  # of the range: tolerated excess of positions without a note
BEYOND = 3.0  # largest plausible ratio of positions and speeds to their limits, ...
WHOLE = 1.5  # of the effort: largest plausible share of described torques
STRONG = 10.0  # ... and of efforts: gear ratios are larger


class Explained(NamedTuple):
    """Efforts as c0 tau + c1 a + c2 v + c3 sign(v) + c4: descriptions lack rotor and friction, hence separate terms."""

    gain: Array  # (n,) c0
    deviation: Array  # (n,) standard deviation of c0
    friction: Array  # (n,) power of friction over RMS speed times RMS effort
    left: Array  # (n,) relative variance not explained with c0 >= 0
    needed: NDArray[np.bool_]  # (n,) without the described torque the residual variance doubles


def explain(motion: Motion, measured: Array, described: Array) -> Explained:
    """Return the explanation of the efforts of each joint by the described torques."""
    n = measured.shape[1]
    found = Explained(np.ones(n), np.full(n, np.inf), np.zeros(n), np.ones(n), np.zeros(n, dtype=np.bool_))
    for i in range(n):
        v = motion.v[:, i]
        columns = np.column_stack([described[:, i], motion.a[:, i], v, np.sign(v), np.ones(v.size)])
        c, _, rank, _ = np.linalg.lstsq(columns, measured[:, i], rcond=None)
        error, whole = np.var(measured[:, i] - columns @ c), np.var(measured[:, i])
        if whole > 0.0:
            alone = np.var(measured[:, i] - columns[:, 1:] @ np.linalg.lstsq(columns[:, 1:], measured[:, i], rcond=None)[0])
            found.left[i] = max((error if c[0] >= 0.0 else alone) / whole, TINY)
            # A share above the whole effort is a combination of columns that are nearly dependent.
            found.needed[i] = error < 0.5 * alone and abs(c[0]) * np.std(described[:, i]) < WHOLE * np.sqrt(whole)
        friction = np.mean(v * (c[2] * v + c[3] * np.sign(v)))
        size = np.sqrt(np.mean(v**2) * whole)
        found.friction[i] = friction / size if size > 0.0 else 0.0
        if rank == columns.shape[1]:
            found.gain[i] = abs(c[0])
            found.deviation[i] = np.sqrt(error * np.linalg.inv(columns.T @ columns)[0, 0])
    return found


def significant_correlation(motion: Motion) -> float:
    """Return the partial correlation exceeded by chance in `CHANCE` of all logs, given friction (Fisher's z).

    Torques of a motion of duration T with frequencies up to B have 2 B T independent values.
    """
    moves = np.ptp(motion.q, axis=0) > 0.0
    if not moves.any():
        return 1.0
    independent = 2.0 * band_of(motion.q[:, moves], motion.v[:, moves]) * float(motion.t[-1] - motion.t[0])
    free = independent - 3.0 - 4.0  # rotor, two frictions and offset
    return float(np.tanh(NormalDist().inv_cdf(1.0 - CHANCE / moves.size) / np.sqrt(free))) if free > 0.0 else 1.0


def odd_gains(
    robot: Mechanism, names: tuple[str, ...], slope: Array, seen: NDArray[np.bool_], known: NDArray[np.bool_]
) -> list[Finding]:
    """Return findings about constant factors between measured and described torques.

    `known` marks joints with a known factor, `seen` those with the described torque in the effort, whose factor may be a fault.
    """
    known = known & (slope != 0.0)  # dead efforts are another finding
    several, usual = int(known.sum()) >= SEVERAL, float(np.median(slope[known])) if np.any(known) else 1.0
    seen = seen & known
    ratios = {name: abs(a.ratio) for a in robot.actuators for name in (a.name, *a.coupling)}
    found: list[Finding] = []
    off = [i for i in np.flatnonzero(seen) if not 1.0 / GAIN < slope[i] < GAIN]
    gears = [i for i in off if ratios.get(names[i], 1.0) > 2.0 and _alike(max(slope[i], 1 / slope[i]), ratios[names[i]])]
    if gears:
        listed = ", ".join(f"{names[i]} ({slope[i]:.3g})" for i in gears)
        said = f"efforts over described torques are the gear ratio: {listed}; a gear is missing or counted twice"
        found.append(fault("gear", "effort", said, slope[gears[0]]))
    rest = [i for i in off if i not in gears]
    typical = float(np.median(slope[seen])) if np.any(seen) else 1.0
    common = len(rest) > 1 and len(off) == int(seen.sum()) and all(_alike(slope[i], typical) for i in rest)
    alone = [i for i in rest if not 1.0 / ALONE < slope[i] / (usual if several else 1.0) < ALONE]
    factor = typical if common else usual
    if alone and not common:
        listed = ", ".join(f"{names[i]} {slope[i]:.3g}" for i in alone)
        said = f"efforts are a constant times what the description needs: {listed}; check unit, gain and payload"
        found.append(fault("gain", ",".join(f"effort:{names[i]}" for i in alone), said, slope[alone[0]]))
    elif (common or (several and not gears)) and not 1.0 / GAIN < factor < GAIN:
        listed = ", ".join(f"{names[i]} {slope[i]:.3g}" for i in np.flatnonzero(known))
        said = f"all efforts are {factor:.3g} times what the description needs ({listed})"
        if 1.0 / ALONE < factor < ALONE:  # an error of the description, corrected by the fit
            masses = "small (is a tool or payload missing?)" if factor > 1.0 else "large"
            said = f"{said}; its masses look too {masses}, or the efforts have one wrong gain"
            found.append(Finding("masses", "description", "info", said, factor))
        else:
            found.append(fault("gain", "effort", f"{said}; check their unit or gain, and its masses", factor))
    return found


def doubted_gain(data: Data, names: tuple[str, ...], independent: float, ratios: Explained) -> list[Finding]:
    """Return the joint whose gain is doubted by both the other joints and the description, neither being sufficient.

    Descriptions are wrong by tens of per cent, and the likelihood assumes a correct model: either alone would give false
    alarms. It is an error if the corrected efforts reduce the errors of left-out stretches.
    """
    known = ratios.deviation < ROUGHLY * ratios.gain
    ratio = np.log(np.where(known, ratios.gain, 1.0))
    others = {int(i): known & ratios.needed & (np.arange(len(names)) != i) for i in np.flatnonzero(known)}
    beside = {i: float(ratio[i] - np.median(ratio[own])) for i, own in others.items() if own.any()}
    beside = {i: x for i, x in beside.items() if abs(x) > LEAST}
    left = rows_left(data.rows(), independent) if beside else 0.0
    if not left:
        return []
    products, found = data.products(), list[tuple[float, Finding]]()
    for i, x in beside.items():
        gain = likely_gain(products, i, left)
        if not 1.0 / GAIN < gain < GAIN and _alike(np.exp(x), gain, ALONE):
            said = (
                f"the efforts of {names[i]} look about {gain:.2g} times what the other joints need, and "
                f"{np.exp(x):.2g} times what the description needs beside them; check gain, unit and gear"
            )
            mended = times(np.where(np.arange(len(names)) == i, 1.0 / gain, 1.0))(data)
            finding = fault("gain", f"effort:{names[i]}", said, gain)
            told = judged(finding, errors_of(data), errors_of(mended), len(beside))
            found += [(abs(ratio[i] - np.log(gain)), finding) for finding in told]
    # If two joints contradict each other, the described one stays.
    return [min(found, key=lambda pair: pair[0])[1]] if found else []


def _alike(a: float, b: float, limit: float = ALIKE) -> bool:
    return b > 0.0 and 1.0 / limit < a / b < limit


# ---- gravity ---------------------------------------------------------------------------------------------------------------
# The torques that hold a robot are linear in gravity g. With the described bodies and, for each joint, rotor and friction,
#     tau = M a + h(q, v) + J(q) g + ia a + fv v + fc sign(v) + off,
# so efforts and a description determine g. Wrong masses affect its magnitude, and hardly its direction.


def other_gravities(robot: Mechanism, motion: Motion, measured: Array) -> tuple[Array, ...]:
    """Return directions of gravity that fit efforts (S, n) better than the described one, (3,) each; usually none.

    The first is the estimate, the second the nearest axis of the root frame. Inverted efforts give none: friction distinguishes
    them from an inverted robot.
    """
    down = np.asarray(robot.gravity)
    size = float(np.linalg.norm(down))
    if size == 0.0 or not has_masses(robot):
        return ()
    bodies = bare(robot)
    unit = of_channels(bodies, motion, lambda own: unit_gravity(bodies, own.q))
    rest = measured - torques(bodies, motion) + unit @ down
    found, deviation, power = _beside_friction(unit, rest, motion, measured)
    strength = float(np.linalg.norm(found))
    if not WEAKEST * size < strength < STRONGEST * size:
        return ()
    if power <= 0.0 or _angle(found, down) < max(TILTED, GRAVITY_SURE * np.max(deviation) / strength):
        return ()
    axis = np.eye(3)[np.argmax(np.abs(found))] * np.sign(found[np.argmax(np.abs(found))])
    straight = (size * axis,) if _angle(found, axis) < UPRIGHT else ()
    return (size * found / strength, *straight)


def shares(robot: Mechanism, motion: Motion, measured: Array) -> tuple[Array, Array]:
    """Return the shares of the described inertia and gravity torques in efforts (S, n), given friction; their deviations."""
    bodies = bare(robot)
    static = holding(bodies, motion)
    parts = np.stack([torques(bodies, motion) - static, static], axis=2)
    found, deviation, _ = _beside_friction(parts, measured, motion, measured)
    return found, deviation


def no_gravity(robot: Mechanism, motion: Motion, measured: Array) -> bool:
    """Return whether the described gravity torques, although dominant, are missing in the efforts.

    A slow motion shows no other torque, and a fit would only give light bodies.
    """
    if not np.any(robot.gravity) or not has_masses(robot):
        return False
    (inertia, share), (unsure, deviation) = shares(robot, motion, measured)
    light = abs(inertia) + SURELY * unsure < WEAKEST  # the described masses are wrong, not gravity
    seen = np.std(holding(bare(robot), motion), axis=0) > np.std(measured, axis=0)
    return bool(abs(share) < ABSENT and SURELY * deviation < ABSENT and np.any(seen) and not light)


def _beside_friction(columns: Array, y: Array, motion: Motion, measured: Array) -> tuple[Array, Array, float]:
    """Return the coefficients (c,) of columns (S, n, c) given friction, their deviations, and the power of friction."""
    samples, n, c = columns.shape
    spread = np.std(measured, axis=0)
    weight = np.where(spread > 0.0, 1.0 / np.where(spread > 0.0, spread, 1.0), 0.0)
    A = np.zeros((samples, n, c + 4 * n))
    A[:, :, :c] = columns
    for j in range(n):
        v = motion.v[:, j]
        A[:, j, c + 4 * j : c + 4 * j + 4] = np.column_stack([motion.a[:, j], v, np.sign(v), np.ones(samples)])
    A = (A * weight[:, None]).reshape(samples * n, -1)
    scale = np.linalg.norm(A, axis=0)
    scale = np.where(scale > 0.0, scale, 1.0)
    y = (y * weight).ravel()
    inverse = np.linalg.pinv(A / scale, rcond=1e-9)
    x = inverse @ y
    deviation = np.sqrt(np.mean((y - A / scale @ x) ** 2) * np.sum(inverse[:c] ** 2, axis=1)) / scale[:c]
    friction = (x[c:] / scale[c:]).reshape(n, 4)[:, FRICTION_COLUMN - 1 : FRICTION_COLUMN + 1]
    power = np.sum(friction * np.stack([np.mean(motion.v**2, axis=0), np.mean(np.abs(motion.v), axis=0)], axis=1), axis=1)
    return x[:c] / scale[:c], deviation, float(np.sum(power * weight))


def doubted_gravity(data: Data) -> list[Finding]:
    """Return the finding about a share of gravity that both the data and the description doubt, neither being sufficient."""
    robot = data.sample.robot
    (inertia, weight), (deviation, _) = shares(robot, data.motion, data.effort)
    if not np.any(robot.gravity) or inertia < SURELY * deviation or not 0.0 < weight / inertia < 1.0 / GAIN:
        return []
    share = nearest(lambda x: lighter(x).mend(data).misfit(), (weight / inertia, np.sqrt(weight / inertia)))[1]
    if share > 1.0 / LEAST_GRAVITY:
        return []
    mended = lighter(share).mend(data)
    return judged(other_gravity(share, inertia), errors_of(data), errors_of(mended), 1, supported=False)


def turned_gravity(robot: Mechanism, other: Array) -> Finding:
    """Return the finding about a robot that is not mounted as described."""
    down = np.asarray(robot.gravity)
    angle = np.degrees(_angle(other, down))
    where = "from a ceiling" if angle > 150.0 else "on a wall" if 60.0 < angle < 120.0 else "on a slope"
    found, described = (",".join(f"{x:.3g}" for x in np.where(np.abs(g) < 1e-9, 0.0, g)) for g in (other, down))
    said = (
        f"gravity acts along {found} in the root frame, {angle:.0f} degrees from the described {described} (robot mounted "
        f"{where}?); state it with --gravity={found} or in the sidecar"
    )
    return fault("mounting", "description", said, angle)


def _angle(one: Array, other: Array) -> float:
    return float(np.arccos(np.clip(one @ other / (np.linalg.norm(one) * np.linalg.norm(other)), -1.0, 1.0)))


# ---- lengths and limits ----------------------------------------------------------------------------------------------------


def long_links(robot: Mechanism) -> list[Finding]:
    """Return the finding about lengths of a description that look like millimetres."""
    longest = max((float(np.linalg.norm(joint.placement.translation)) for joint in robot.joints), default=0.0)
    if longest < LONG:
        return []
    said = f"a joint of the description is {longest:.3g} m from the one before; are its lengths millimetres? Give metres"
    return [fault("lengths", "description", said, longest)]


def other_units(robot: Mechanism, motion: Motion) -> list[Finding]:
    """Return findings about positions or speeds far beyond their limits, such as degrees read as radians."""
    names, peaks = list(channels_of(robot)), np.max(np.abs(motion.q), axis=0)
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
    found = [
        fault("unit", "position", f"positions of {', '.join(some)} leave their limits by far; {unit[kind]}")
        for kind, some in wide.items()
        if some
    ]
    speeds = np.percentile(np.abs(motion.v), 99, axis=0)
    fast = [] if found else _far_above(robot, "velocity", speeds, BEYOND)
    if fast:
        listed = ", ".join(f"{name} ({peak:.3g} where the description allows {limit:.3g})" for name, peak, limit in fast)
        said = f"speeds of {listed} leave their limits by far; check the unit of positions (position=deg) and clock"
        found = [fault("unit", "velocity", said)]
    return found


def outside(robot: Mechanism, motion: Motion) -> list[Finding]:
    """Return the warning about positions outside the described limits: unit, sign or zero may be wrong."""
    names, found = list(channels_of(robot)), []
    for name, joint in _limited(robot).items():
        low, high = joint.limits.lower, joint.limits.upper
        q = motion.q[:, names.index(name)]
        if max(np.max(q) - high, low - np.min(q)) > OUTSIDE * (high - low):
            found.append(f"{name} ({np.min(q):.3g} to {np.max(q):.3g}, limits {low:.3g} to {high:.3g})")
    if not found:
        return []
    said = f"positions are outside of the description's limits: {', '.join(found)}; check their unit, sign and zero"
    return [Finding("limits", "position", "warning", said)]


def _limited(robot: Mechanism) -> dict[str, Joint]:
    """Return the channels with a finite range and their single-axis joints."""
    joints = {joint.name: joint for joint in robot.joints if joint.kind in ("revolute", "prismatic")}
    driven = {name: joints[own] for name, own in channels_of(robot).items() if own in joints}
    return {
        name: joint
        for name, joint in driven.items()
        if np.isfinite([joint.limits.lower, joint.limits.upper]).all() and joint.limits.upper > joint.limits.lower
    }


def _far_above(robot: Mechanism, kind: str, peaks: Array, factor: float) -> list[tuple[str, float, float]]:
    """Return name, peak and limit of the coordinates whose peak is above `factor` limits of a kind (velocity, effort).

    Equal limits of all joints are placeholders of the description and are ignored.
    """
    own = {joint.name: getattr(joint.limits, kind) for joint in robot.joints}
    names = list(channels_of(robot))
    limits = np.array([own.get(joint, np.inf) for joint in channels_of(robot).values()])
    if np.unique(limits).size < 2:
        return []
    above = np.flatnonzero((limits > 0.0) & (peaks > factor * limits))
    return [(names[i], float(peaks[i]), float(limits[i])) for i in above]


def too_strong(robot: Mechanism, measured: Array) -> list[Finding]:
    """Return the finding about efforts far above the joint limits, as with a gear ratio counted twice."""
    strong = _far_above(robot, "effort", np.max(np.abs(measured), axis=0), STRONG)
    if not strong:
        return []
    listed = ", ".join(f"{name} ({peak:.3g} where the description allows {limit:.3g})" for name, peak, limit in strong)
    return [fault("gain", "effort", f"efforts of {listed} leave their limits by far; check unit, gain and gear ratio")]
