"""Which fault of the data would explain them better: efforts turned, exchanged, scaled; positions turned, exchanged, off.

Joints share parameters, so that data with a fault contradict each other whatever the description says. Each fault is
undone on some hundred samples, the model is fitted again, and the residuals are compared by

    L = sum_i log(||e_i||^2 / ||tau_i||^2),

the likelihood of normal residuals whose size is not known. The best fault is taken if L falls by more than `FALL`, that is,
if the product of all residual variances falls to a fifth, and the search goes on with the data mended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array
from dynident.mechanics.functions import Motion
from dynident.signals.quality import Finding
from dynident.validate.diagnosis.sample import Equations, fault

FALL = 1.5
CROSSED = 0.6  # of its squared error: so much better each of two exchanged efforts must be explained by the other joint's rows
THIN = 3  # of the samples, one: enough to see which change of the positions is worth a closer look
WORTH = 0.5  # of the fall that is needed
SURE = 20.0  # times the number of rows, the fall of twice the log-likelihood at least
FREE = 0.5  # of its rows: what a joint's parameters must leave for its error alone to be known
DOUBTED = 1.25  # times the error of joints alone from which on positions are doubted, ...
POOR = 0.05  # ... or relative error (geometric mean of the joints) from which on they are
SCALED = 1.15  # a gain that differs by less is no suspicion
RIDGE = 1e-6  # of a column's square: directions that these samples do not show stay near zero
FLOOR = 1e-6  # of a variance: smaller is not plausible
PASSES, FAULTS = 4, 4
# Tried first; the ends tell nothing.
GAINS = (1e-3, 1e-2, 0.03, 0.1, 0.2, 0.35, 0.5, 0.7, 0.85, 1.18, 1.4, 2.0, 2.8, 5.0, 10.0, 30.0, 1e2, 1e3)
REFINED = 1.2  # and then about the best of them
WIDE = 2.0 * np.pi  # [rad], range of a revolute joint from which on degrees are thought of
# Zeros of the positions: angles tried first, ...
TRIED = tuple(np.radians((-135.0, -90.0, -45.0, 45.0, 90.0, 135.0, 180.0)))  # first ...
STEPS = tuple(np.radians((22.5, 11.0, 5.5, 2.7, 1.4, 0.7)))  # ... and then about the best of them
LEAST = np.radians(10.0)  # less is a matter of calibration
RIGHT, NEAR = np.radians(90.0), np.radians(5.0)  # a multiple of a right angle so near is what is meant


@dataclass(frozen=True, eq=False)
class Products:
    """Cross products of rows and efforts of n joints."""

    P: Array  # (n, b, b) W_i W_i^T over the samples
    C: Array  # (n, b, n) W_i tau_j
    Y: Array  # (n,) ||tau_j||^2

    @classmethod
    def of(cls, W: Array, effort: Array) -> Products:
        """Return the products of W (n, b, S) and efforts (S, n)."""
        size = np.sqrt(np.sum(W**2, axis=(0, 2)))
        scaled = W / np.where(size > 0.0, size, 1.0)[:, None]
        return cls(scaled @ scaled.transpose(0, 2, 1), scaled @ effort, np.sum(effort**2, axis=0))

    def mended(self, order: NDArray[np.int64], factor: Array) -> Products:
        """Return the products with efforts in another order, each times a factor."""
        return replace(self, C=self.C[:, :, order] * factor, Y=self.Y[order] * factor**2)

    def variances(self) -> Array:
        """Return ||e_i||^2 / ||tau_i||^2 (n,) of the model that all joints share, by iterated weights."""
        square = np.where(self.Y > 0.0, self.Y, 1.0)
        variance, own = square, np.arange(len(square))
        target = self.C[own, :, own]
        for _ in range(PASSES):
            G = np.tensordot(1.0 / variance, self.P, axes=1)
            diagonal = np.diagonal(G)
            x = np.linalg.solve(G + RIDGE * np.diag(np.where(diagonal > 0.0, diagonal, 1.0)), (1.0 / variance) @ target)
            rest = self.Y - 2.0 * target @ x + np.einsum("b,ibc,c->i", x, self.P, x)
            variance = np.maximum(rest, FLOOR * square)
        return np.asarray(variance / square)

    def misfit(self) -> float:
        """Return L of the model that all joints share."""
        return float(np.sum(np.log(self.variances())))

    def scaled(self, i: int) -> tuple[float, float]:
        """Return L with joint i's efforts times the factor that suits best, and the factor."""
        own = np.arange(len(self.Y)) == i

        def misfit(factor: float) -> float:
            return self.mended(np.arange(len(self.Y)), np.where(own, factor, 1.0)).misfit()

        best, ratio = min((misfit(factor), factor) for factor in GAINS), REFINED
        for _ in range(3):
            if GAINS[0] < best[1] < GAINS[-1]:
                best = min(best, *((misfit(f), f) for f in (best[1] * ratio, best[1] / ratio)))
            ratio = float(np.sqrt(ratio))
        return best

    def apart(self) -> Array:
        """Return ||e||^2 / ||tau||^2 of efforts j explained by the rows of joint i alone, (n, n)."""
        found = np.empty((len(self.P), self.C.shape[2]))
        for i, P in enumerate(self.P):
            diagonal = np.diagonal(P)
            x = np.linalg.solve(P + RIDGE * np.diag(np.where(diagonal > 0.0, diagonal, 1.0)), self.C[i])
            found[i] = self.Y - 2.0 * np.sum(x * self.C[i], axis=0) + np.sum(x * (P @ x), axis=0)
        return np.maximum(found / np.where(self.Y > 0.0, self.Y, 1.0), FLOOR)


@dataclass(frozen=True, eq=False)
class Faults:
    """What was found, and the data without it: the mended efforts are ``effort[:, order] * factor``."""

    findings: tuple[Finding, ...]  # one per fault
    turned: tuple[int, ...]  # joints whose efforts were turned round
    order: NDArray[np.int64]  # (n,)
    factor: Array  # (n,)
    motion: Motion  # the mended one
    misfit: float = np.nan  # L of the mended data; NaN where there are too few to tell
    limit: float = FALL  # by how much L must fall for a fault
    contradiction: float = 1.0  # error of the model that joints share, over that of joints alone, geometric mean

    def poor(self) -> bool:
        """Return whether the data contradict themselves still, as far as these samples show."""
        return self.error > POOR

    @property
    def error(self) -> float:
        """Relative error of the mended data, geometric mean of the joints."""
        return float(np.exp(0.5 * self.misfit / len(self.factor)))


def find_faults(
    names: Sequence[str],
    rows: Equations,
    motion: Motion,
    effort: Array,
    independent: float,
    angles: Sequence[int] = (),
) -> Faults:
    """Return the faults that the data betray by contradicting themselves.

    `rows` gives W (n, b, S) of a motion of S samples, or of every k-th of them, `effort` is (S, n), `independent` counts the
    rows of a joint, and `angles` are the revolute joints.
    """
    n = len(names)
    none = found = Faults((), (), np.arange(n), np.ones(n), motion)
    W = rows(motion)
    left = rows_left(W, independent)
    if not left:
        return found
    limit = max(FALL, SURE / left)
    start = products = Products.of(W, effort)
    lowest = products.misfit()
    none = found = replace(none, misfit=lowest, limit=limit)
    others: list[tuple[float, Finding, Motion, NDArray[np.int64]]] = []
    for turn in range(FAULTS):
        options = list(_of_efforts(products, names, lowest - limit))
        if turn == 0 and (options or none.poor() or _contradiction(W, products, independent) > DOUBTED):
            others = list(_of_positions(names, rows, motion, effort, products.variances(), limit, angles))
        if not options:
            break
        best, finding, order, factor = min(options, key=lambda option: option[0])
        if others and turn == 0 and min(others, key=lambda other: other[0])[0] < best - limit:
            break
        turned = (*found.turned, *np.flatnonzero(factor == -1.0).tolist())
        order, factor = found.order[order], found.factor[order] * factor
        products = start.mended(order, factor)
        lowest = products.misfit()
        findings = (*found.findings, *([] if finding is None else [finding]))
        found = replace(found, findings=findings, turned=turned, order=order, factor=factor, misfit=lowest)
    if others:
        L, finding, changed, order = min(others, key=lambda other: other[0])
        if lowest - limit > L:
            W, products = (W, products) if changed is motion else (moved := rows(changed), Products.of(moved, effort[:, order]))
            found = replace(none, findings=(finding,), motion=changed, order=order, misfit=L)
    return replace(found, contradiction=_contradiction(W, products, independent))


def _contradiction(W: Array, products: Products, independent: float) -> float:
    """Return by how much larger the error of the model that joints share is than that of joints alone, geometric mean.

    Alone, each joint fits its b_i parameters to its noise as well: that lowers its squared error to 1 - b_i / rows.
    """
    free = 1.0 - np.count_nonzero(np.any(W, axis=2), axis=1) / independent
    known = free > FREE
    if not known.any():
        return 1.0
    alone = np.diagonal(products.apart())[known] / free[known]
    return float(np.exp(0.5 * np.mean(np.log(products.variances()[known] / alone))))


def rows_left(W: Array, independent: float) -> float:
    """Return how many independent rows of a joint its parameters leave; 0 for too few to tell faults."""
    n, b, samples = W.shape
    left = independent - b / n
    return 0.0 if n < 2 or left < SURE or b > 0.5 * samples * n else left


def likely_gain(products: Products, i: int, left: float) -> float:
    """Return the gain of joint i's efforts against the other joints where the likelihood is sure of it, else 1."""
    best, factor = products.scaled(i)
    sure = left * (products.misfit() - best) > SURE and GAINS[0] < factor < GAINS[-1]
    return 1.0 / factor if sure else 1.0


def exchanged(one: str, other: str, what: str = "efforts") -> Finding:
    """Return the finding about two channels that look exchanged."""
    said = f"the {what} of {one} and {other} look exchanged; check the order of the columns"
    return fault("order", f"{what}:{one},{other}", said)


def _of_efforts(
    products: Products, names: Sequence[str], wanted: float
) -> Iterator[tuple[float, Finding | None, NDArray[np.int64], Array]]:
    """Yield L, finding, order and factor of every fault of efforts that reaches a wanted L."""
    n = len(names)
    usual = np.arange(n)
    apart = products.apart()
    for i, j in combinations(range(n), 2):
        if apart[i, j] < CROSSED * apart[j, j] and apart[j, i] < CROSSED * apart[i, i]:
            order = usual.copy()
            order[[i, j]] = j, i
            L = products.mended(order, np.ones(n)).misfit()
            if wanted > L:
                yield L, exchanged(names[i], names[j]), order, np.ones(n)
    if np.sum(np.log(np.diagonal(apart))) > wanted:  # even joints that share nothing would not be so much better
        return
    for i in range(n):
        factor = np.where(usual == i, -1.0, 1.0)
        L = products.mended(usual, factor).misfit()
        if wanted > L:
            yield L, None, usual, factor
        L, gain = products.scaled(i)
        if wanted > L and GAINS[0] < gain < GAINS[-1] and not 1.0 / SCALED < gain < SCALED:
            said = f"the efforts of {names[i]} are {1.0 / gain:.3g} times what the other joints need; check gain, unit and gear"
            found = fault("gain", f"effort:{names[i]}", said, 1.0 / gain)
            yield L + FALL, found, usual, np.where(usual == i, gain, 1.0)  # a number that was fitted counts


def _of_positions(
    names: Sequence[str],
    rows: Equations,
    motion: Motion,
    effort: Array,
    before: Array,
    limit: float,
    angles: Sequence[int],
) -> Iterator[tuple[float, Finding, Motion, NDArray[np.int64]]]:
    """Yield L, finding, motion and order of the efforts of the faults of positions that may make L fall by a limit.

    `before` are the variances of the data as they are. Each of two exchanged joints must be explained better: what one joint
    gains by the richer rows of another is no exchange.
    """
    n, b, samples = rows(motion).shape
    step = THIN if b < 0.5 * n * (samples // THIN) else 1
    few, some = motion[::step], effort[::step]

    def misfit(changed: Motion, order: NDArray[np.int64]) -> float:
        return Products.of(rows(changed, step), some[:, order]).misfit()

    usual = np.arange(n)
    start = misfit(few, usual)
    for finding, changed, order, pair in _motions(names, motion, angles):
        if misfit(changed[::step], order) < start - WORTH * limit:
            after = Products.of(rows(changed), effort[:, order]).variances()
            if all(after[i] < CROSSED * before[order[i]] for i in pair):
                yield float(np.sum(np.log(after))), finding, changed, order
    L, i, angle = best_zero(lambda i, angle: misfit(shifted(few, i, angle), usual), angles, start)
    if angle and start - WORTH * limit > L:
        changed = shifted(motion, i, angle)
        # a number that was fitted counts
        yield Products.of(rows(changed), effort).misfit() + FALL, wrong_zero(names[i], angle), changed, usual


def _motions(
    names: Sequence[str], motion: Motion, angles: Sequence[int]
) -> Iterator[tuple[Finding, Motion, NDArray[np.int64], tuple[int, ...]]]:
    """Yield findings about positions, motions that undo what they say, the order of efforts with them, joints exchanged."""
    n = len(names)
    usual = np.arange(n)
    for i in range(n):
        sign = np.where(np.arange(n) == i, -1.0, 1.0)
        said = f"the positions of {names[i]} look inverted; check their sign"
        yield fault("sign", f"position:{names[i]}", said, -1.0), _scaled(motion, sign), usual, ()
    for i, j in combinations(range(n), 2):
        order = np.arange(n)
        order[[i, j]] = j, i
        changed = Motion(motion.t, motion.q[:, order], motion.v[:, order], motion.a[:, order])
        yield exchanged(names[i], names[j], "positions"), changed, usual, (i, j)
        yield exchanged(names[i], names[j], "positions and efforts"), changed, order, (i, j)
    if np.any(np.ptp(motion.q[:, list(angles)], axis=0) > WIDE):
        radians = np.where(np.isin(np.arange(n), angles), np.pi / 180.0, 1.0)
        said = "positions look like degrees taken for radians (position=deg)"
        yield fault("unit", "position", said, 180.0 / np.pi), _scaled(motion, radians), usual, ()


def _scaled(motion: Motion, factor: Array) -> Motion:
    return Motion(motion.t, motion.q * factor, motion.v * factor, motion.a * factor)


# ---- zeros -----------------------------------------------------------------------------------------------------------------
# A wrong zero bends the robot elsewhere. Joints between others then contradict each other whatever the description says; the
# last joint and those of planar arms pass it on to the first moments of their bodies, and only described masses can tell.


def shifted(motion: Motion, joint: int, angle: float) -> Motion:
    """Return the motion with an angle added to the positions of a joint."""
    q = motion.q.copy()
    q[:, joint] += angle
    return Motion(motion.t, q, motion.v, motion.a)


def best_zero(misfit: Callable[[int, float], float], joints: Sequence[int], start: float) -> tuple[float, int, float]:
    """Return the least misfit(joint, angle), with joint and angle in (-pi, pi]; angle 0 where none is below `start`."""
    best = (start, 0, 0.0)
    for joint in joints:
        own = min((start, joint, 0.0), *((misfit(joint, angle), joint, angle) for angle in TRIED))
        best = min(best, own, _closer(misfit, own, STEPS[0]))
    for step in STEPS[1:] if best[2] else ():
        best = _closer(misfit, best, step)
    value, joint, angle = best
    right = RIGHT * round(angle / RIGHT)
    if abs(angle - right) < NEAR:
        value, angle = misfit(joint, right) if right else start, right
    angle = float(np.pi - (np.pi - angle) % (2.0 * np.pi))
    return value, joint, angle if abs(angle) >= LEAST else 0.0


def _closer(misfit: Callable[[int, float], float], best: tuple[float, int, float], step: float) -> tuple[float, int, float]:
    _, joint, angle = best
    return min(best, *((misfit(joint, angle + d), joint, angle + d) for d in (-step, step)))


def wrong_zero(name: str, angle: float) -> Finding:
    """Return the finding about a zero that is off by an angle [rad]."""
    degrees = round(float(np.degrees(angle)))
    twist = " (a twist alpha of the wrong sign before it looks the same)" if abs(degrees) == 180 else ""
    said = (
        f"the zero of {name} looks {abs(degrees)} degrees off{twist}; add {degrees} degrees to its positions, or turn the "
        "joint's origin in the description about its axis by as much"
    )
    return fault("zero", f"position:{name}", said, angle)
