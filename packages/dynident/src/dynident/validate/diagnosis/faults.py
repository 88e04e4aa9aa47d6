"""Search for faults of the data: channels inverted, exchanged, scaled or with offset; wrong clock, gravity or axis.

Joints share parameters, so data with a fault contradict each other, independent of the description. Each fault is
corrected on a few hundred samples, the model is fitted again, and the residuals are compared by

    L = sum_i log(||e_i||^2 / ||tau_i||^2),

the likelihood of normal residuals of unknown variance. Among the faults that decrease L most, the one that best explains
left-out stretches of time is accepted if significant (`left_out.py`); the search continues with the corrected data.

Time stamps that are c times too long make accelerations c^2 times too small, so

    tau = M a + h + g = c^2 (M a' + h' + g / c^2):

a wrong clock is a gravity of 1 / c^2 with heavier bodies. Efforts without gravity torques are a gravity of zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array
from dynident.errors import DynidentError
from dynident.mechanics.functions import Motion
from dynident.signals.quality import Finding
from dynident.validate.diagnosis.left_out import (
    CHANCE,
    FEWEST,
    Flexible,
    believed,
    estimated,
    fall_of,
    falls,
    left_out_errors,
    limit_of,
    only_noise,
    weighted,
)
from dynident.validate.diagnosis.sample import Project, Sample, fault, has_masses, holding, torques

FALL = 1.5
WORSE = 0.02  # of the squared error of all joints in N m: tolerated increase by a correction
THIN = 3  # every third sample: enough to select changes of the positions for closer study
LITTLE, CLOSER = 0.1, 4  # fall of L for a test by left-out stretches, and number of faults tested
JOINT, ROBOT = 20, 6  # hypotheses about each joint and about the robot, with half of the false alarms each
TINY_SHARE = 0.05  # of gravity: less counts as none
SURE = 20.0  # least fall of twice the log-likelihood, in numbers of rows
FREE = 0.5  # of a joint's rows: least degrees of freedom for its error alone
DOUBTED = 1.25  # times the error of joints alone above which positions are doubted, ...
SOME, CONTRADICTED = 1.1, 1.4  # and above which axes are tried (each another robot), for poor and for good data
POOR = 0.05  # ... or relative error (geometric mean of the joints) of poor data
SCALED = 1.15  # smallest gain error that is reported
RIDGE = 1e-6  # of a column's square: directions that these samples do not show stay near zero
FLOOR = 1e-6  # of a variance: smaller is not plausible
PASSES, FAULTS = 4, 4
CHANGED = 0.4  # least fall for a change of the bodies: their columns absorb other errors of the model, too
REPEATS = 0.5  # of the variance of a change in time: least share that the positions do not tell
JUMPS = (-0.5, 0.0, 0.5)  # of the time of a log from -1 to 1: sudden changes tried
FEW = 8  # joints whose positions are always doubted: more have too many pairs
# Tried first; an optimum at the ends is not accepted.
GAINS = (1e-3, 1e-2, 0.03, 0.1, 0.2, 0.35, 0.5, 0.7, 0.85, 1.18, 1.4, 2.0, 2.8, 5.0, 10.0, 30.0, 1e2, 1e3)
REFINED = 1.2  # then refined about the best
STEP, LARGEST_STEP = 1e-4, 0.5  # of the size of a fault
KNOWN_GAIN, GAIN_SURE = 0.1, 4.0  # deviation of the logarithm of a known gain; significant deviations from one
GUESS = 1.0  # prior standard deviation of the logarithm of a gain
WIDE = 2.0 * np.pi  # [rad], range of a revolute joint above which degrees are suspected
UNITS = {"degrees": np.pi / 180.0, "turns": 2.0 * np.pi, "grads": np.pi / 200.0, "milliradians": 1e-3}
GEARS = (0.01, np.pi / 180.0, 0.1, 1.0 / 3.0, 0.5, 0.7, 1.5, 2.0, 3.0, 2.0 * np.pi)
GRAVITIES = (0.0, 0.25, 0.5, 0.7, 0.83, 1.2, 1.45, 2.0, 4.0, 16.0)
LEAST_GRAVITY = 1.1  # smallest gravity ratio that is reported
# Zeros of the positions: angles tried first, ...
TRIED = tuple(np.radians((-135.0, -90.0, -45.0, 45.0, 90.0, 135.0, 180.0)))  # first ...
STEPS = tuple(np.radians((22.5, 11.0, 5.5, 2.7, 1.4, 0.7)))  # ... and then about the best of them
LEAST = np.radians(10.0)  # smaller angles are calibration errors
RIGHT, NEAR = np.radians(90.0), np.radians(5.0)  # rounded to a multiple of a right angle within this distance


def reachable(misfit: Callable[[], float]) -> float:
    """Return a misfit, infinite for positions or lengths that a robot with loops cannot reach."""
    try:
        return misfit()
    except DynidentError:
        return np.inf


def nearest(misfit: Callable[[float], float], tried: Sequence[float], steps: int = 4) -> tuple[float, float]:
    """Return the least misfit and its factor: the best of those tried, then refined."""
    best, ratio = min((misfit(factor), factor) for factor in tried), REFINED
    for _ in range(steps if best[1] else 0):
        best = min(best, *((misfit(factor), factor) for factor in (best[1] * ratio, best[1] / ratio)))
        ratio = float(np.sqrt(ratio))
    return best


@dataclass(frozen=True, eq=False)
class Products:
    """Cross products of rows and efforts of n joints."""

    P: Array  # (n, b, b) W_i W_i^T over the samples
    C: Array  # (n, b, n) W_i tau_j
    Y: Array  # (n,) ||tau_j||^2
    W: Array  # (n, b, S), columns of unit length
    effort: Array  # (S, n) before the projection
    project: Project | None = None

    @classmethod
    def of(cls, W: Array, effort: Array, project: Project | None = None) -> Products:
        """Return the products of W (n, b, S) and efforts (S, n), from which `project` removes the preload."""
        size = np.sqrt(np.sum(W**2, axis=(0, 2)))
        W = W / np.where(size > 0.0, size, 1.0)[:, None]
        tau = effort if project is None else project(effort)
        return cls(W @ W.transpose(0, 2, 1), W @ tau, np.sum(tau**2, axis=0), W, effort, project)

    def mended(self, order: NDArray[np.int64], factor: Array) -> Products:
        """Return the products with reordered efforts, each times a factor."""
        effort = self.effort[:, order] * factor
        if self.project is None:
            return replace(self, C=self.C[:, :, order] * factor, Y=self.Y[order] * factor**2, effort=effort)
        tau = self.project(effort)
        return replace(self, C=self.W @ tau, Y=np.sum(tau**2, axis=0), effort=effort)

    def variances(self) -> Array:
        """Return ||e_i||^2 / ||tau_i||^2 (n,) of the common model of all joints, by iterated weights."""
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
        """Return L of the common model of all joints."""
        return float(np.sum(np.log(self.variances())))

    def scaled(self, i: int) -> tuple[float, float]:
        """Return L with joint i's efforts times the best factor, and the factor; 1 if the best is at the ends."""
        own = np.arange(len(self.Y)) == i

        def misfit(factor: float) -> float:
            return self.mended(np.arange(len(self.Y)), np.where(own, factor, 1.0)).misfit()

        best, factor = nearest(misfit, GAINS, 3)
        return (best, factor) if 2.0 * GAINS[0] < factor < 0.5 * GAINS[-1] else (self.misfit(), 1.0)

    def apart(self) -> Array:
        """Return ||e||^2 / ||tau||^2 of efforts j explained by the rows of joint i alone, (n, n)."""
        found = np.empty((len(self.P), self.C.shape[2]))
        for i, P in enumerate(self.P):
            diagonal = np.diagonal(P)
            x = np.linalg.solve(P + RIDGE * np.diag(np.where(diagonal > 0.0, diagonal, 1.0)), self.C[i])
            found[i] = self.Y - 2.0 * np.sum(x * self.C[i], axis=0) + np.sum(x * (P @ x), axis=0)
        return np.maximum(found / np.where(self.Y > 0.0, self.Y, 1.0), FLOOR)

    def gains(self, rows: float) -> Array:
        """Return the best factors of all efforts, 1 if not significant; `rows` is the number of rows of a joint.

        Gauss-Newton steps of tau_i = g_i W_i x, where the prior deviation of log g_i is `GUESS`.
        """
        n = len(self.Y)
        if self.project is not None:  # its rows mix the gains
            return np.ones(n)
        own = np.arange(n)
        target, g = self.C[own, :, own], np.ones(n)
        weight, deviation = 1.0 / np.where(self.Y > 0.0, self.Y, 1.0), np.full(n, np.inf)
        for _ in range(2 * PASSES):
            for _ in range(2):
                A = np.tensordot(weight * g**2, self.P, axes=1)
                diagonal = np.diagonal(A)
                ridge = RIDGE * np.diag(np.where(diagonal > 0.0, diagonal, 1.0))
                x = np.linalg.solve(A + ridge, (weight * g) @ target)
                px = self.P @ x
                left = self.Y - 2.0 * g * (target @ x) + g**2 * (px @ x)
                weight = rows / np.maximum(left, FLOOR * np.where(self.Y > 0.0, self.Y, 1.0))
            N = np.block(
                [[np.tensordot(weight * g**2, self.P, axes=1), ((weight * g**2)[:, None] * px).T], [np.zeros((n, n + len(x)))]]
            )
            N[len(x) :, : len(x)] = N[: len(x), len(x) :].T
            N[len(x) :, len(x) :] = np.diag(weight * g**2 * (px @ x) + 1.0 / GUESS**2)
            right = np.concatenate(
                [(weight * g) @ (target - g[:, None] * px), weight * g * (target @ x - g * (px @ x)) - np.log(g) / GUESS**2]
            )
            diagonal = np.diagonal(N)
            N = N + RIDGE * np.diag(np.where(diagonal > 0.0, diagonal, 1.0))
            inverse = np.linalg.inv(N)
            g = g * np.exp(np.clip((inverse @ right)[len(x) :], -0.5, 0.5))
            deviation = np.sqrt(np.maximum(np.diagonal(inverse)[len(x) :], 0.0))
        sure = deviation < KNOWN_GAIN
        if not sure.any():
            return np.ones(n)
        g = g / np.median(g[sure])
        return np.where(sure & (np.abs(np.log(g)) > GAIN_SURE * deviation), 1.0 / g, 1.0)


@dataclass(frozen=True, eq=False)
class Data:
    """A sample of a log, as logged or corrected."""

    sample: Sample
    motion: Motion
    effort: Array  # (S, n)
    square: Array  # (n,) mean square of the efforts that normalises residuals
    gravity: float = 1.0  # times the described one
    drifting: tuple[int, ...] = ()  # joints whose efforts may drift
    complete: bool = False  # described gravity torques were added

    @classmethod
    def of(cls, sample: Sample, effort: Array | None = None) -> Data:
        """Return the data as logged."""
        effort = sample.effort if effort is None else effort
        return cls(sample, sample.motion, effort, np.mean(effort**2, axis=0))

    def rows(self, step: int = 1) -> Array:
        """Return W (n, b, S) of every `step`-th sample."""
        own, moved = self.sample.equations, self.motion[::step]
        W = own(moved, step)
        if self.gravity != 1.0:
            rest = own(Motion(moved.t, moved.q, np.zeros_like(moved.v), np.zeros_like(moved.a)), step)
            W = W - (1.0 - self.gravity) * rest * self.sample.bodies[:, None]
        for joint in self.drifting:
            time = np.zeros((W.shape[0], 2, W.shape[2]))
            time[joint] = np.ones(W.shape[2]), np.linspace(-1.0, 1.0, W.shape[2])
            W = np.concatenate([W, time], axis=1)
        return np.asarray(W)

    def right(self) -> Array:
        """Return the right sides (S, n): efforts without preload."""
        project = self.sample.project(self.motion)
        return self.effort if project is None else project(self.effort)

    def misfit(self, step: int = 1) -> float:
        """Return L of every `step`-th sample, relative to `square`."""
        return self.misfit_of(self.products(step))

    def misfit_with(self, change: Change, step: int = 1) -> float:
        """Return L of every `step`-th sample after a correction, infinite for positions out of reach."""
        return reachable(lambda: change.mend(self).misfit(step))

    def misfit_of(self, products: Products) -> float:
        """Return L of the products of some samples, relative to `square`."""
        own, wanted = products.Y / len(products.effort), self.square
        seen = (own > 0.0) & (wanted > 0.0)
        return products.misfit() + float(np.sum(np.log(own[seen] / wanted[seen])))

    @property
    def error(self) -> float:
        """Relative error of the common model of all joints, geometric mean of the joints."""
        return float(np.exp(0.5 * self.misfit() / self.effort.shape[1]))

    def products(self, step: int = 1) -> Products:
        """Return the products of every `step`-th sample."""
        return Products.of(self.rows(step), self.effort[::step], self.sample.project(self.motion[::step]))


class Change(NamedTuple):
    """A possible fault and its correction."""

    finding: Finding | None  # None for inverted efforts, which are reported together
    mend: Callable[[Data], Data]
    turned: tuple[int, ...] = ()  # joints with inverted efforts
    pair: tuple[int, ...] = ()  # exchanged joints: the fit of each must improve
    order: tuple[int, ...] = ()  # of the efforts
    numbers: int = 0  # number of fitted values; each costs `FALL` in comparisons
    family: Callable[[float], Change] | None = None  # faults of any size, such as the logarithm of a gain; 0 for none ...
    size: float = 0.0  # ... and the size of this one
    least: float = 0.0  # smallest size that is reported


@dataclass(frozen=True, eq=False)
class Faults:
    """Faults found, and the corrected data."""

    findings: tuple[Finding, ...]  # one per fault
    turned: tuple[int, ...]  # joints with inverted efforts
    data: Data  # corrected data
    misfit: float = np.nan  # L of the corrected data; NaN for too few data
    limit: float = FALL  # least fall of L for a fault
    contradiction: float = 1.0  # error of the common model over that of joints alone, geometric mean

    def poor(self) -> bool:
        """Return whether the corrected data still contradict themselves in these samples."""
        return self.error > POOR

    @property
    def error(self) -> float:
        """Relative error of the corrected data, geometric mean of the joints."""
        return float(np.exp(0.5 * self.misfit / self.data.effort.shape[1]))


def find_faults(
    data: Data,
    names: Sequence[str],
    independent: float,
    angles: Sequence[int] = (),
    geometry: Callable[[Data], Iterator[Change]] | None = None,
) -> Faults:
    """Return the faults shown by contradictions within the data.

    `independent` is the number of rows of a joint, `angles` are the revolute joints, and `geometry` gives faults of the
    description, which are tried if the data contradict themselves.
    """
    none = found = Faults((), (), data)
    W = data.rows()
    left = rows_left(W, independent)
    if not left:
        return found
    limit = max(FALL, SURE / left)
    products = Products.of(W, data.effort, data.sample.project(data.motion))
    lowest = data.misfit_of(products)
    found = replace(none, misfit=lowest, limit=limit)
    doubted = len(names) <= FEW or found.poor() or _contradiction(W, products, independent) > DOUBTED
    for _ in range(FAULTS):
        if data.sample.adjacent and only_noise(W, data.right(), data.motion):
            return _with_offset(found, names)
        other = found.misfit - products.misfit()  # efforts may have been added
        options = [(L + other, change) for L, change in _of_efforts(products, names, left)]
        doubted = doubted or any(lowest - limit > L for L, _ in options)
        options += _of_motion(found.data, names, angles, doubted)
        best = _best(options, lowest, limit, found.data)
        contradicted = best is not None or _contradiction(W, products, independent) > (SOME if found.poor() else CONTRADICTED)
        if geometry is not None and contradicted:
            options += [(found.data.misfit_with(change), change) for change in geometry(found.data)]
            best = _best(options, lowest, limit, found.data)
            geometry = None
        if best is None:
            break
        data = best.mend(found.data)
        W = data.rows()
        products = Products.of(W, data.effort, data.sample.project(data.motion))
        lowest = data.misfit_of(products)
        findings = (*found.findings, *([] if best.finding is None else [best.finding]))
        found = replace(found, findings=findings, turned=(*found.turned, *best.turned), data=data, misfit=lowest)
    findings = found.findings if found.findings or found.turned else _changes(found.data, W, products, names, independent)
    return replace(found, findings=findings, contradiction=_contradiction(W, products, independent))


def _with_offset(found: Faults, names: Sequence[str]) -> Faults:
    """Return the faults and, for poor data, the joint whose offset explains them: smooth friction may be one too."""
    data, n = found.data, len(names)
    options = [(data.misfit_with(change), change) for change in _additions(data, names) if change.numbers]
    L, change = min(options, key=lambda option: option[0], default=(np.inf, None))
    if change is None or change.finding is None or not found.poor() or found.misfit - found.limit < L:
        return found
    mended = change.mend(data)
    before, after = (left_out_errors(each.rows(), each.right(), each.motion, friction=False) for each in (data, mended))
    if not believed(before, after, 2 * JOINT * n):
        return found
    said = f"{change.finding.sentence}; friction that differs between the directions would look alike"
    finding = replace(change.finding, severity="warning", sentence=said)
    return replace(found, findings=(*found.findings, finding), data=mended, misfit=L)


def _best(options: list[tuple[float, Change]], lowest: float, limit: float, data: Data) -> Change | None:
    """Return the fault that best explains left-out stretches, None if not significant; the likeliest for too few stretches."""
    likely = sorted((option for option in options if lowest - LITTLE > option[0]), key=lambda option: option[0])
    simple = sorted(likely, key=lambda option: option[0] + FALL * option[1].numbers)
    before, sure = errors_of(data), list[tuple[float, float, Change]]()
    if len(before) < FEWEST:
        return simple[0][1] if simple and simple[0][0] + FALL * simple[0][1].numbers < lowest - limit else None
    tried = {id(change): change for _, change in (*likely[:CLOSER], *simple[:CLOSER])}
    slow = [_clock(0.0)] if data.gravity == 1.0 else []  # friction of slow motions hides the clock unless it is flexible
    for each in (*tried.values(), *slow):
        change = each
        order, mended = list(change.order) or list(range(before.shape[1])), change.mend(data)
        was, after, square = before[:, order], errors_of(mended), data.square[order]
        single = change.finding is None or ":" in change.finding.channel
        hypotheses = 2 * (JOINT * before.shape[1] if single else ROBOT)
        if not believed(was, after, hypotheses):
            better = _known(change, mended, limit_of(len(was), hypotheses))
            if better is None:
                continue
            change, mended = better, better.mend(data)
            after = errors_of(mended)
            if falls(was, after)[0] < fall_of(1.0 / before.shape[1]):
                continue
        worse = np.sum(after @ square) > (1.0 + WORSE) * np.sum(was @ square)  # errors of small efforts must not decide alone
        # An improvement by the richer rows of one joint alone is no exchange.
        worse |= any(after[:, i].mean() > was[:, i].mean() for i in change.pair)
        if not worse and not _refuted(data, mended, order):
            sure.append((*falls(was, after)[:2], change))
    if not sure:
        return None
    best, error, _ = max(sure, key=lambda each: each[0])
    alike = sorted((each for each in sure if each[0] > best - 2.0 * error), key=_simplest)
    first = alike[0][2]
    others = [each[2].finding for each in alike[1:] if each[2].finding is not None and each[2].numbers == first.numbers]
    if first.finding is None or not others:
        return first
    said = "; or ".join([first.finding.sentence, *(other.sentence for other in others)])
    return first._replace(finding=replace(first.finding, sentence=said))


def _known(change: Change, mended: Data, limit: float) -> Change | None:
    """Return a fault with its best size, None unless it exceeds `limit` standard deviations and the smallest that counts.

    A further correction, of efforts without noise, changes the right sides less the model by its size times a column.
    """
    if change.family is None:
        return None
    W, right, motion = mended.rows(), mended.right(), mended.motion
    smooth = replace(mended, effort=mended.effort - Flexible.of(W, right, motion).residual())
    further = change.family(STEP).mend(smooth)
    moved = np.einsum("nbt,b->tn", further.rows() - W, weighted(W, right)[0])
    x, deviation = estimated(W, right, motion, (moved - further.right() + smooth.right()) / STEP)
    size = change.size + float(np.clip(x, -LARGEST_STEP, LARGEST_STEP))
    return change.family(size) if abs(size) > max(limit * deviation, change.least) else None


def _simplest(sure: tuple[float, float, Change]) -> tuple[int, bool, float]:
    """Return the sort key of equally good faults: few fitted numbers first, faults of the log before the description."""
    fall, _, change = sure
    described = change.finding is not None and change.finding.channel.startswith("description:")
    return change.numbers, described, -fall


def errors_of(data: Data) -> Array:
    """Return the squared errors of left-out stretches over the squared efforts (K, n)."""
    return left_out_errors(data.rows(), data.right(), data.motion) / np.where(data.square > 0.0, data.square, 1.0)


def _refuted(data: Data, mended: Data, order: Sequence[int]) -> bool:
    """Return whether the described torques of corrected positions or axes explain left-out stretches worse than before.

    The described bodies are independent of the log: with true positions they explain the efforts better, or are too wrong.
    Each joint has a multiple of the described torque, rotor inertia, friction and an offset.
    """
    if mended.motion is data.motion and mended.sample is data.sample:
        return False

    def errors(data: Data) -> Array:
        (S, n), m = data.effort.shape, data.motion
        columns = np.stack([torques(data.sample.robot, m), m.a, m.v, np.sign(m.v), np.ones((S, n))])  # (5, S, n)
        W = np.einsum("csi,ij->ijcs", columns, np.eye(n)).reshape(n, 5 * n, S)
        return left_out_errors(W, data.effort, m, friction=False) / np.where(data.square > 0.0, data.square, 1.0)

    return has_masses(data.sample.robot) and believed(errors(mended), errors(data)[:, order], 1)


def _contradiction(W: Array, products: Products, independent: float) -> float:
    """Return the ratio of the error of the common model to that of joints alone, geometric mean.

    Alone, each joint also fits its b_i parameters to its noise, which reduces its squared error by the factor 1 - b_i / rows.
    """
    free = 1.0 - np.count_nonzero(np.any(W, axis=2), axis=1) / independent
    known = free > FREE
    if not known.any():
        return 1.0
    alone = np.diagonal(products.apart())[known] / free[known]
    return float(np.exp(0.5 * np.mean(np.log(products.variances()[known] / alone))))


def rows_left(W: Array, independent: float) -> float:
    """Return the degrees of freedom of a joint (independent rows less parameters); 0 if too few to detect faults."""
    n, b, samples = W.shape
    left = independent - b / n
    return 0.0 if n < 2 or left < SURE or b > 0.5 * samples * n else left


def _changes(data: Data, W: Array, products: Products, names: Sequence[str], independent: float) -> tuple[Finding, ...]:
    """Return the finding about torques that change during the log, if there is one: an error if it halves the squared error.

    With u(t) from -1 to 1, W (beta + u gamma) must predict left-out stretches better than W beta, than a model in which all
    columns but those of bodies change, because friction and offsets change with temperature, and than a change that goes
    back. Where the positions tell most of u, no motion repeats, and any u absorbs the errors of a model that depend on them.
    """
    tau, motion, time = data.right(), data.motion, np.linspace(-1.0, 1.0, len(data.effort))
    if not rows_left(np.repeat(W, 2, axis=1), independent):
        return ()
    courses = {"gradually": time}
    courses |= {f"at about {np.interp(jump, time, motion.t):.3g} s": np.sign(time - jump) for jump in JUMPS}
    L = {when: Products.of(np.hstack([W, W * u]), tau).misfit() for when, u in courses.items()}
    when = min(L, key=lambda when: L[when])
    poses = np.column_stack([np.ones_like(time), motion.q, motion.q**2])
    unforeseen = courses[when] - poses @ np.linalg.lstsq(poses, courses[when], rcond=1e-9)[0]
    if L[when] > products.misfit() - fall_of(len(names), CHANGED) or np.var(unforeseen) < REPEATS * np.var(courses[when]):
        return ()
    changing, bodies = np.hstack([W, W * courses[when]]), data.sample.bodies
    models = (changing, W, changing[:, np.r_[np.ones_like(bodies), ~bodies]], np.hstack([W, W * (2.0 * np.abs(time) - 1.0)]))
    after, *others = (left_out_errors(each, tau, motion) for each in models)
    if not all(believed(other, after, 2 * ROBOT, CHANGED) for other in others):
        return ()
    x, change = np.split(weighted(changing, tau)[0], 2)
    first, last = (np.einsum("nbt,b->nt", W, each) for each in (x - change, x + change))
    growth = np.sum(first * last, axis=1) / np.maximum(np.sum(first**2, axis=1), 1e-300) - 1.0
    said = (
        f"the efforts of equal motions change {when} ({', '.join(map('{} {:+.0%}'.format, names, growth))}); check payload, "
        "gain of the amplifiers, clock and temperature, and identify the parts of the log alone"
    )
    severity = "error" if believed(others[0], after, 2 * ROBOT, np.log(2.0)) else "warning"
    return (Finding("changes", "effort", severity, said, float(growth[np.argmax(np.abs(growth))])),)


def likely_gain(products: Products, i: int, left: float) -> float:
    """Return the gain of joint i's efforts relative to the other joints if significant, otherwise 1.

    Twice the log-likelihood changes by more than the limit in `CHANCE` of all healthy logs.
    """
    best, factor = products.scaled(i)
    limit = NormalDist().inv_cdf(1.0 - 0.5 * CHANCE / len(products.Y)) ** 2
    return 1.0 / factor if left * (products.misfit() - best) > limit else 1.0


def exchanged(one: str, other: str, what: str = "efforts") -> Finding:
    """Return the finding about two channels that look exchanged."""
    said = f"the {what} of {one} and {other} look exchanged; check the order of the columns"
    return fault("order", f"{what}:{one},{other}", said)


def _of_efforts(products: Products, names: Sequence[str], left: float) -> Iterator[tuple[float, Change]]:
    """Yield L and correction of the faults of efforts."""
    n = len(names)
    usual = np.arange(n)
    apart = products.apart()
    for i, j in combinations(range(n), 2):
        if products.project is not None or (apart[i, j] < apart[j, j] and apart[j, i] < apart[i, i]):
            order = usual.copy()
            order[[i, j]] = j, i
            yield products.mended(order, np.ones(n)).misfit(), _reordered(exchanged(names[i], names[j]), order)
    lowest = products.misfit()
    if np.sum(np.log(np.diagonal(apart))) > lowest - LITTLE:  # even separate models of the joints would hardly be better
        return
    for i in range(n):
        factor = np.where(usual == i, -1.0, 1.0)
        yield products.mended(usual, factor).misfit(), Change(None, times(factor), turned=(i,))
        L, gain = products.scaled(i)
        if not 1.0 / SCALED < gain < SCALED:
            yield L, _gain(names, i, float(np.log(gain)))
    factors = products.gains(left)
    if np.sum(np.abs(np.log(factors)) > np.log(SCALED)) > 1:
        yield products.mended(usual, factors).misfit(), _gains(names, np.log(factors))


def _gain(names: Sequence[str], i: int, size: float) -> Change:
    gain = float(np.exp(-size))
    said = f"the efforts of {names[i]} are {gain:.3g} times what the other joints need; check gain, unit and gear"
    found = fault("gain", f"effort:{names[i]}", said, gain)
    mend = times(np.where(np.arange(len(names)) == i, 1.0 / gain, 1.0))
    return Change(found, mend, (), (), (), 1, partial(_gain, names, i), size, np.log(SCALED))


def _gains(names: Sequence[str], sizes: Array) -> Change:
    gains, odd = np.exp(-sizes), [i for i in range(len(names)) if abs(sizes[i]) > np.log(SCALED)]
    listed = ", ".join(f"{names[i]} {gains[i]:.3g}" for i in odd)
    said = f"the efforts of single joints are multiples of what the other joints need: {listed}; check the gain of each motor"
    found = fault("gain", ",".join(f"effort:{names[i]}" for i in odd), said, gains[odd[0]] if odd else None)
    return Change(found, times(np.exp(sizes)), (), (), (), 2, lambda x: _gains(names, x * sizes), 1.0)


def times(factor: Array) -> Callable[[Data], Data]:
    """Return the correction of efforts by factors (n,)."""
    return lambda data: replace(data, effort=data.effort * factor, square=data.square * factor**2)


def _rescaled(positions: Array, efforts: Array | float = 1.0) -> Callable[[Data], Data]:
    return lambda data: replace(data, motion=_scaled(data.motion, positions), effort=data.effort * efforts)


def _drifting(joint: int) -> Callable[[Data], Data]:
    return lambda data: replace(data, drifting=(*data.drifting, joint))


def _reordered(finding: Finding, order: NDArray[np.int64], positions: bool = False, efforts: bool = True) -> Change:
    """Return the exchange of two joints' channels."""

    def mend(data: Data) -> Data:
        m = data.motion
        moved = Motion(m.t, m.q[:, order], m.v[:, order], m.a[:, order]) if positions else m
        if not efforts:
            return replace(data, motion=moved)
        return replace(data, motion=moved, effort=data.effort[:, order], square=data.square[order])

    pair = tuple(np.flatnonzero(order != np.arange(order.size)).tolist())
    return Change(finding, mend, pair=pair, order=tuple(order.tolist()) if efforts else ())


def _of_motion(data: Data, names: Sequence[str], angles: Sequence[int], doubted: bool) -> list[tuple[float, Change]]:
    """Return L and correction of the faults of positions, clock and gravity."""
    n, b, samples = len(names), data.rows(THIN).shape[1], len(data.motion)
    step = THIN if b < 0.5 * n * (samples // THIN) else 1
    start, found = data.misfit(step), [(data.misfit_with(change), change) for change in _additions(data, names)]

    def misfit(change: Change) -> float:
        return data.misfit_with(change, step)

    def of_family(family: Callable[[float], Change]) -> Callable[[float], float]:
        return lambda x: misfit(family(x))

    def scaled(i: int) -> Callable[[float], Change]:
        return lambda factor: _gear(names[i], i, n, factor)

    families: list[tuple[Callable[[float], Change], tuple[float, ...], float]] = []
    if data.gravity == 1.0:
        families.append((lighter, GRAVITIES, LEAST_GRAVITY))
    if doubted:
        families += [(scaled(i), GEARS, SCALED) for i in range(n)]
        for change in _motions(
            names, data.motion, range(n) if data.sample.robot.loops else angles, bool(data.sample.robot.loops)
        ):
            if misfit(change) < start - LITTLE:
                found.append((data.misfit_with(change), change))
    for family, tried, least in families:
        best, value = nearest(of_family(family), tried)
        if best < start - LITTLE and not 1.0 / least < value < least:
            found.append((data.misfit_with(family(value)), family(value)))
    if doubted:
        L, i, angle = best_zero(lambda i, angle: misfit(_turned_zero(names[i], i, angle)), angles, start)
        if angle and start - LITTLE > L:
            change = _turned_zero(names[i], i, angle)
            found.append((data.misfit_with(change), change))
    return found


def _additions(data: Data, names: Sequence[str]) -> Iterator[Change]:
    """Yield corrections of subtracted gravity torques and of drifts."""
    robot, own = data.sample.robot, data.sample.motion
    if data.gravity == 1.0 and not data.complete and has_masses(robot) and np.any(robot.gravity):
        yield Change(other_gravity(0.0), lambda data: replace(data, effort=data.effort + holding(robot, own), complete=True))
    for i in (i for i in range(len(names)) if i not in data.drifting):
        said = f"the efforts of {names[i]} drift with time, or have another zero; let the robot warm up, and check the sensor"
        found = fault("drift", f"effort:{names[i]}", said)
        yield Change(found, _drifting(i), numbers=1)


def _turned_zero(name: str, joint: int, angle: float) -> Change:
    return Change(wrong_zero(name, angle), lambda data: replace(data, motion=shifted(data.motion, joint, angle)), numbers=1)


def _gear(name: str, joint: int, n: int, factor: float) -> Change:
    said = (
        f"the positions of {name} look {1.0 / factor:.3g} times too large; check their unit (degrees, turns), and whether they "
        "are those of the motor before a gear"
    )
    scale = np.where(np.arange(n) == joint, factor, 1.0)
    found = fault("gear", f"position:{name}", said, 1.0 / factor)
    return Change(found, _rescaled(scale), numbers=1)


def lighter(share: float) -> Change:
    """Return the correction of efforts with a share of gravity."""
    found = Change(other_gravity(share), lambda data: replace(data, gravity=data.gravity * share), numbers=int(share > 0.0))
    if not share:
        return found
    return found._replace(family=_clock, size=float(np.log(share)), least=np.log(SCALED))


def _clock(size: float) -> Change:
    return lighter(float(np.exp(size)))


def other_gravity(share: float, bodies: float = 1.0) -> Finding:
    """Return the finding about efforts with a share of gravity relative to inertia, or about a wrong clock.

    A wrong clock gives bodies with the correct weight, compensated efforts give bodies with the correct inertia: `bodies`,
    the ratio of identified to described inertia, distinguishes them.
    """
    clock = 1.0 / np.sqrt(share) if share > 0.0 else np.inf
    compensated = share < TINY_SHARE or (share < 1.0 and abs(np.log(bodies)) < abs(np.log(bodies * share)))
    if compensated:
        said = (
            f"the efforts contain {share:.0%} of the expected gravity torques, perhaps because the controller compensates "
            "gravity; log the complete motor torques"
        )
        other = "" if share < TINY_SHARE else f". A clock whose seconds are {clock:.3g} s long would look alike"
        return fault("gravity", "effort", said + other, share)
    said = (
        f"inertia and gravity torques agree if time stamps are {clock:.3g} times too long; check the clock, or whether "
        f"efforts contain only {share:.0%} of the gravity torques"
    )
    return fault("clock", "time", said, clock)


def _motions(names: Sequence[str], motion: Motion, angles: Sequence[int], geared: bool) -> Iterator[Change]:
    """Yield corrections of inverted or exchanged positions, inverted axes, and units.

    Behind a gear the range of the positions does not tell their unit.
    """
    n = len(names)
    for i in range(n):
        sign = np.where(np.arange(n) == i, -1.0, 1.0)
        said = f"the positions of {names[i]} look inverted; check their sign"
        found = fault("sign", f"position:{names[i]}", said, -1.0)
        yield Change(found, _rescaled(sign))
        said = (
            f"positions and efforts of {names[i]} look inverted together: invert the axis of the joint in the description, "
            "or both channels"
        )
        found = fault("axis", f"position:{names[i]}", said, -1.0)
        yield Change(found, _rescaled(sign, sign))
    for i, j in combinations(range(n), 2):
        order = np.arange(n)
        order[[i, j]] = j, i
        yield _reordered(exchanged(names[i], names[j], "positions"), order, positions=True, efforts=False)
        yield _reordered(exchanged(names[i], names[j], "positions and efforts"), order, positions=True)
    span = float(np.max(np.ptp(motion.q[:, list(angles)], axis=0), initial=0.0))
    for unit, factor in UNITS.items():
        if (geared or (span > WIDE) == (factor < 1.0)) and span > 0.0:
            scale = np.where(np.isin(np.arange(n), angles), factor, 1.0)
            option = " (position=deg)" if unit == "degrees" else ""
            said = f"positions look like {unit} taken for radians{option}"
            found = fault("unit", "position", said, 1.0 / factor)
            yield Change(found, _rescaled(scale))


def _scaled(motion: Motion, factor: Array) -> Motion:
    return Motion(motion.t, motion.q * factor, motion.v * factor, motion.a * factor)


# ---- zeros -----------------------------------------------------------------------------------------------------------------
# A wrong zero changes the pose of the robot. Inner joints then contradict each other, independent of the description; the
# last joint and those of planar arms absorb it in the first moments of their bodies, and only described masses show it.


def shifted(motion: Motion, joint: int, angle: float) -> Motion:
    """Return the motion with an angle added to the positions of a joint."""
    q = motion.q.copy()
    q[:, joint] += angle
    return Motion(motion.t, q, motion.v, motion.a)


def best_zero(misfit: Callable[[int, float], float], joints: Sequence[int], start: float) -> tuple[float, int, float]:
    """Return the least misfit(joint, angle), with joint and angle in (-pi, pi]; angle 0 if none is below `start`."""
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
    """Return the finding about a zero with an angular error [rad]."""
    degrees = round(float(np.degrees(angle)))
    twist = " (a twist alpha of the wrong sign before it looks the same)" if abs(degrees) == 180 else ""
    said = (
        f"the zero of {name} looks {abs(degrees)} degrees off{twist}; add {degrees} degrees to its positions, or turn the "
        "joint's origin in the description about its axis by as much"
    )
    return fault("zero", f"position:{name}", said, angle)
