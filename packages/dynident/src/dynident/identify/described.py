"""Efforts beside the torques that the description predicts: factors between them are gains, units, gears or wrong masses."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynident.identify.findings import DESCRIBED, HEAD
from dynident.identify.hypotheses import Equations, Products, likely_gain, rows_left
from dynident.mechanics.motion import Motion
from dynident.mechanism.mechanism import Mechanism

Array = NDArray[np.float64]

SURE = 0.7  # correlation from which a described torque counts as seen
GAIN = 1.5  # ratio of measured to described torque of all joints alike from which on it is no matter of wrong masses ...
ALONE = 3.0  # ... and of a single joint, beside the others where several are known
SEVERAL = 3  # joints
KNOWN = 0.1  # relative deviation of such a ratio up to which it is known, ...
ROUGHLY = 0.2  # ... and up to which it can support what the data say themselves, ...
SUPPORTS = 0.5  # ... if it has the same logarithm but for this part
ALIKE = 1.25  # ratios that are equal up to wrong masses
TINY = 1e-6  # of a variance: better is not believed


class Explained(NamedTuple):
    """Efforts as c0 tau + c1 a + c2 v + c3 sign(v) + c4: rotor and friction, which descriptions leave out, stand apart."""

    gain: Array  # (n,) c0
    deviation: Array  # (n,) of c0
    backwards: NDArray[np.bool_]  # (n,) all signs are wrong, although neither inertia nor friction is ever negative
    friction: Array  # (n,) power of friction over what the whole effort could have
    left: Array  # (n,) variance that is not explained by c0 >= 0, over the whole


def explain(motion: Motion, measured: Array, described: Array) -> Explained:
    """Return how far the described torques explain the efforts of each joint."""
    n = measured.shape[1]
    found = Explained(np.ones(n), np.full(n, np.inf), np.zeros(n, dtype=np.bool_), np.zeros(n), np.ones(n))
    for i in range(n):
        v = motion.v[:, i]
        columns = np.column_stack([described[:, i], motion.a[:, i], v, np.sign(v), np.ones(v.size)])
        c, _, rank, _ = np.linalg.lstsq(columns, measured[:, i], rcond=None)
        error, whole = np.var(measured[:, i] - columns @ c), np.var(measured[:, i])
        if whole > 0.0:
            beside = error if c[0] >= 0.0 else np.var(measured[:, i] - _projected(columns[:, 1:], measured[:, i]))
            found.left[i] = max(beside / whole, TINY)
        friction = np.mean(v * (c[2] * v + c[3] * np.sign(v)))
        size = np.sqrt(np.mean(v**2) * whole)
        found.friction[i] = friction / size if size > 0.0 else 0.0
        found.backwards[i] = error < (1.0 - SURE**2) * whole and c[0] < 0.0 and c[1] < 0.0 and friction < 0.0
        if rank == columns.shape[1]:
            found.gain[i] = abs(c[0])
            found.deviation[i] = np.sqrt(error * np.linalg.inv(columns.T @ columns)[0, 0])
    return found


def _projected(columns: Array, values: Array) -> Array:
    return np.asarray(columns @ np.linalg.lstsq(columns, values, rcond=None)[0])


def odd_gains(
    robot: Mechanism, names: tuple[str, ...], slope: Array, seen: NDArray[np.bool_], known: NDArray[np.bool_]
) -> tuple[str, ...]:
    """Return what constant factors between measured and described torques look like.

    Factors of joints are `known`; where the described torque is `seen` in the effort, one may be a fault of its own.
    """
    several, usual = int(known.sum()) >= SEVERAL, float(np.median(slope[known])) if np.any(known) else 1.0
    seen = seen & known
    ratios = {joint: abs(a.ratio) for a in robot.actuators for joint in a.coupling}
    found: list[str] = []
    off = [i for i in np.flatnonzero(seen) if not 1.0 / GAIN < slope[i] < GAIN]
    gears = [i for i in off if ratios.get(names[i], 1.0) > 2.0 and _same(max(slope[i], 1 / slope[i]), ratios[names[i]])]
    if gears:
        listed = ", ".join(f"{names[i]} ({slope[i]:.3g})" for i in gears)
        found.append(f"{HEAD}efforts over described torques are the gear ratio: {listed}; a gear is missing or counted twice")
    rest = [i for i in off if i not in gears]
    typical = float(np.median(slope[seen])) if np.any(seen) else 1.0
    if len(rest) > 1 and len(off) == int(seen.sum()) and all(_same(slope[i], typical) for i in rest):
        found.append(
            f"{HEAD}all efforts are {typical:.3g} times what the description needs; check their unit or gain, and its masses"
        )
    elif rest := [i for i in rest if not 1.0 / ALONE < slope[i] / (usual if several else 1.0) < ALONE]:
        listed = ", ".join(f"{names[i]} {slope[i]:.3g}" for i in rest)
        found.append(f"{HEAD}efforts are a constant times what the description needs: {listed}; check unit, gain and payload")
    elif several and not gears and not 1.0 / GAIN < usual < GAIN:
        listed = ", ".join(f"{names[i]} {slope[i]:.3g}" for i in np.flatnonzero(known))
        masses = "small (is a tool or payload missing?)" if usual > 1.0 else "large"
        if 1.0 / ALONE < usual < ALONE:  # a matter of the description, which the fit mends
            found.append(f"{DESCRIBED}efforts are a multiple of what it needs: {listed}; its masses look too {masses}")
        else:
            found.append(f"{HEAD}efforts are a multiple of what the description needs: {listed}; check unit and gain")
    return tuple(found)


def doubted_gain(
    names: tuple[str, ...],
    equations: Equations,
    motion: Motion,
    measured: Array,
    independent: float,
    ratios: Explained,
) -> tuple[str, ...]:
    """Return the joint whose gain both the other joints and the description doubt, each too weakly alone.

    Descriptions are wrong by tens of per cent, and the likelihood believes in the model: one alone would accuse healthy robots.
    """
    known = ratios.deviation < ROUGHLY * ratios.gain
    ratio = np.log(np.where(known, ratios.gain, 1.0))
    others = {int(i): known & (np.arange(len(names)) != i) for i in np.flatnonzero(known)}
    beside = {i: float(ratio[i] - np.median(ratio[own])) for i, own in others.items() if own.any()}
    beside = {i: x for i, x in beside.items() if abs(x) > (1.0 - SUPPORTS) * np.log(GAIN)}
    W = equations(motion) if beside else np.zeros((0, 0, 0))
    left = rows_left(W, independent) if beside else 0.0
    if not left:
        return ()
    products, found = Products.of(W, measured), []
    for i, x in beside.items():
        gain = likely_gain(products, i, left)
        if not 1.0 / GAIN < gain < GAIN and abs(x - np.log(gain)) < SUPPORTS * abs(np.log(gain)):
            said = (
                f"{HEAD}the efforts of {names[i]} look about {gain:.2g} times what the other joints need, and "
                f"{np.exp(x):.2g} times what the description needs beside them; check gain, unit and gear"
            )
            found.append(
                (abs(ratio[i] - np.log(gain)), said)
            )  # of two joints that contradict each other, the described one stays
    return (min(found)[1],) if found else ()


def _same(a: float, b: float) -> bool:
    return b > 0.0 and 1.0 / ALIKE < a / b < ALIKE
