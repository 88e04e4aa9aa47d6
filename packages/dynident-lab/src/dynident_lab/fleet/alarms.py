"""Deviating robots: tests with a false-alarm rate that holds for fleets of any size.

A change d of standard parameter p moves beta by k_p d (k_p: column of K). With S_r = H_r^-1 + T its score is

    x_rp = k_p^T S_r^-1 (beta_r - mu) / sqrt(k_p^T S_r^-1 k_p),        t_rp = e_rp / (s_p(-r) sqrt(1 - l_r)),

e: residual of x_p over the robots on their covariates, l: leverage, s(-r): scatter of the others. T is estimated from all
robots equally. If all robots have the same information, T depends on them only by their total scatter, which is independent
of the directions of the residuals; then t has exactly Student's distribution, for any number of robots and parameters
[Laeuter1996]. z is the standard normal deviate of the same probability.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array
from dynident.errors import DynidentError
from dynident_lab.fleet.effect import Effect, Fleet, estimate, precision, scores, start

Flags = NDArray[np.bool_]

SEARCH = 0.1  # share of the rate of false alarms for robots that hide each other
MEDIAN = 0.37  # efficiency of a median: share of the degrees of freedom that it uses
DRAWS = 30_000  # for the number of independent tests, accurate to about 1 %
SAMPLED = 24  # robots that provide the correlations of parameters
QUANTILES = 2000  # for the average over a distribution
LEAST = 1e-300  # smallest probability represented
POWER = 0.9  # probability of reporting the stated smallest change


@dataclass(frozen=True, eq=False)
class Alarms:
    """Outcome of the tests.

    `named` (R,) are the deviating robots, `z` and `t` (R, p) the deviates of every robot among itself and those not named,
    `limit` the z above which a robot is named, `tests` the equivalent number of independent tests per robot, `effect`
    the common effect of the robots not named, `detectable` (p,) the result of `smallest_changes`, and
    `majority` is False if the largest permitted number of robots deviates, so that there may be more.
    """

    named: Flags
    z: Array
    t: Array
    limit: float
    tests: float
    effect: Effect
    detectable: Array
    majority: bool


def check_rate(false_alarms: float) -> None:
    """Refuse values that are no rate of false alarms."""
    if not isinstance(false_alarms, float | int) or not 0.0 < false_alarms < 0.5:
        raise DynidentError(f"false_alarms is {false_alarms!r}; give a probability between 0 and 0.5, such as 0.01")


def alarms_of(fleet: Fleet, K: Array, rate: float) -> Alarms:
    """Name robots: remove those beyond the limit and test the others again until none is beyond it.

    Robots with the same fault hide each other. Robots suspected by medians are therefore set aside together, and each is
    tested alone among the rest; this search has its own small share of the rate.
    """
    R = len(fleet.h)
    begin = start(fleet)
    suspects = _suspects(fleet, begin, K, rate)
    effect = estimate(fleet, begin)
    tests = independent_tests(fleet, effect, K, rate / R)
    limits, alone = limits_of(rate * (1.0 - SEARCH), R, tests), limits_of(rate * SEARCH, R, tests)[0]
    named, fewest = np.zeros(R, dtype=bool), max(4, R // 2)
    while True:
        effect = estimate(fleet.part(~named), effect)
        z, t = deviates(fleet.part(~named), effect, K)
        largest = np.zeros(R)
        largest[~named] = np.max(np.abs(z), axis=1)
        found = np.argsort(-largest)[: step_up(largest[~named], limits[named.sum() :])].tolist()
        healthy = ~(named | suspects)
        if not found and healthy.sum() >= fewest:
            aside = np.flatnonzero(suspects & ~named).tolist()
            alike = estimate(fleet.part(healthy), effect) if aside else effect
            found = [r for r in aside if np.max(np.abs(own_deviates(fleet, healthy, alike, r, fleet.h[r], K)[0])) > alone]
        room = R - int(named.sum()) - fewest
        if not found or room < 1:
            break
        # If no majority would be left, only the worst robot is removed, and the others are tested again.
        named[found if len(found) <= room else found[:1]] = True
    own = np.zeros((2, R, K.shape[1]))
    own[:, ~named] = z, t
    for r in np.flatnonzero(named).tolist():
        own[:, r] = own_deviates(fleet, ~named, effect, r, fleet.h[r], K)
    # A robot that is within the limit after removal of the others named is not named.
    largest = np.where(named, np.max(np.abs(own[0]), axis=1), 0.0)
    count = step_up(largest, limits)
    named = largest > (limits[count - 1] if count else np.inf)
    smallest = smallest_changes(fleet.part(~named), effect, K, float(limits[0]))
    return Alarms(named, own[0], own[1], float(limits[max(count, 1) - 1]), tests, effect, smallest, not found)


def own_deviates(fleet: Fleet, healthy: Flags, effect: Effect, r: int, h: Array, K: Array) -> tuple[Array, Array]:
    """Return z and t (p,) of one robot with the score vector h among healthy robots with approximately the given effect."""
    with_it = healthy.copy()
    with_it[r] = True
    changed = fleet.h.copy()
    changed[r] = h
    part = replace(fleet, h=changed).part(with_it)
    z, t = deviates(part, estimate(part, effect), K)
    at = int(with_it[:r].sum())
    return z[at], t[at]


def deviates(fleet: Fleet, effect: Effect, K: Array) -> tuple[Array, Array]:
    """Return z and t of every robot and parameter, (R, p)."""
    t, _, freedom = _tested(fleet, effect, K)
    return normal(t, freedom), t


def smallest_changes(fleet: Fleet, effect: Effect, K: Array, limit: float) -> Array:
    """Return the change of each parameter (p,) in one robot for |z| > limit with probability POWER; NaN if unobservable.

    A change d makes t of that robot noncentral by d over its standard deviation, taken from the fleet's middle robot.
    """
    _, deviation, freedom = _tested(fleet, effect, K)
    middle = [float(np.median(own[np.isfinite(own)])) if np.any(np.isfinite(own)) else np.nan for own in deviation.T]
    needed = {f: noncentrality(f, limit) for f in set(freedom.tolist())}
    return np.array([d * needed[f] for d, f in zip(middle, freedom.tolist(), strict=True)])


def noncentrality(freedom: float, limit: float) -> float:
    """Return m with P((g + m) / w > t) = POWER, g normal, f w^2 chi-square, t of the probability of the deviate `limit`."""
    from scipy.special import chdtri, ndtr, stdtrit  # noqa: PLC0415

    w = np.sqrt(chdtri(freedom, (np.arange(QUANTILES) + 0.5) / QUANTILES) / freedom)
    t = -float(stdtrit(freedom, ndtr(-limit)))
    low, high = 0.0, t * float(w[0]) + limit
    while high - low > 1e-6 * high:
        m = 0.5 * (low + high)
        low, high = (m, high) if np.mean(ndtr(m - t * w)) < POWER else (low, m)
    return high


def _tested(fleet: Fleet, effect: Effect, K: Array) -> tuple[Array, Array, Array]:
    """Return t and the standard deviation of a change, infinite if unobservable, (R, p), and degrees of freedom (p,)."""
    pull, size = scores(fleet, effect, K)
    seen = size > 0.0
    x = np.divide(pull, np.sqrt(size), out=np.zeros_like(pull), where=seen)
    t, scale, freedom = _studentised(x, seen, fleet.X)
    return t, np.divide(scale, np.sqrt(size), out=np.full_like(scale, np.inf), where=seen), freedom


def _studentised(x: Array, seen: Flags, X: Array) -> tuple[Array, Array, Array]:
    """Return residuals t over the scatter of all other robots and dx / dt, (R, p), and degrees of freedom (p,)."""
    t, scale, freedom = np.zeros_like(x), np.full_like(x, np.inf), np.ones(x.shape[1])
    patterns, which = np.unique(seen, axis=1, return_inverse=True)
    for number, rows in enumerate(patterns.T):
        own = np.flatnonzero(which.ravel() == number)
        Q, values, _ = np.linalg.svd(X[rows], full_matrices=False)
        Q = Q[:, values > 1e-9 * max(values, default=0.0)]
        f = int(rows.sum()) - Q.shape[1] - 1
        if f < 1:
            continue
        part = x[np.ix_(rows, own)]
        e = part - Q @ (Q.T @ part)
        free = 1.0 - np.sum(Q**2, axis=1)[:, None]
        tested = free > 1e-6  # a robot that alone determines the effect of temperature cannot deviate
        square = np.divide(e**2, free, out=np.zeros_like(e), where=tested)
        others = np.maximum((np.sum(e**2, axis=0) - square) / f, 0.0) * free
        told = tested & (others > 0.0)
        t[np.ix_(rows, own)] = np.divide(e, np.sqrt(others), out=np.zeros_like(e), where=told)
        scale[np.ix_(rows, own)] = np.divide(np.sqrt(others), free, out=np.full_like(e, np.inf), where=told)
        freedom[own] = f
    return t, scale, freedom


def normal(t: Array, freedom: Array | float) -> Array:
    """Return the standard normal deviates with the probabilities of Student's t."""
    from scipy.special import ndtri, stdtr  # noqa: PLC0415 - scipy costs import time

    return np.asarray(-np.sign(t) * ndtri(np.maximum(stdtr(freedom, -np.abs(t)), LEAST)))


def limits_of(rate: float, robots: int, tests: float) -> Array:
    """Return the z (R,) that the k-th robot must exceed, step up [Benjamini1995], k = 1 ... R.

    Without a fault the k-th limit is exceeded with probability k rate / R; `rate` bounds the share of false alarms.
    """
    from scipy.special import ndtri  # noqa: PLC0415

    share = rate * np.arange(1, robots + 1) / robots
    return np.asarray(-ndtri(np.minimum(share / max(tests, 1.0), 1.0) / 2.0))


def step_up(largest: Array, limits: Array) -> int:
    """Return the number of robots named: the largest k for which the k-th largest |z| is beyond the k-th limit."""
    return 1 + int(np.max(np.flatnonzero(np.sort(largest)[::-1] > limits[: len(largest)]), initial=-1))


def probability(z: float, tests: float) -> float:
    """Return the probability that a robot without a fault deviates by |z| or more in any parameter."""
    from scipy.special import ndtr  # noqa: PLC0415

    return float(min(1.0, 2.0 * tests * ndtr(-abs(z))))


def independent_tests(fleet: Fleet, effect: Effect, K: Array, share: float) -> float:
    """Return P(any |z_p| > L) / P(|z| > L) of a robot without a fault at the L with probability `share`.

    z_p of one robot are correlated. With N the number of parameters beyond L, P(any) = sum_p P(|z_p| > L) E[1/N | |z_p| > L]
    [Naiman2001]: only cases with a given parameter beyond L are drawn, so that far tails need no more draws.
    """
    from scipy.special import ndtri  # noqa: PLC0415

    P = effect.precision
    chosen = np.unique(np.linspace(0, len(fleet.h) - 1, SAMPLED).astype(int))
    rng, tests = np.random.default_rng(0), float(K.shape[1])
    roots = [_directions(precision(fleet.H[r], P), fleet.H[r], K) for r in chosen]
    for _ in range(2):  # L depends weakly on the number
        tail = 0.5 * share / max(tests, 1.0)
        found = []
        for root in roots:
            p = root.shape[1]
            each = max(1, DRAWS // (len(roots) * max(p, 1)))
            first = np.repeat(np.arange(p), each)
            g = rng.standard_normal((first.size, root.shape[0])) @ root
            wanted = -ndtri(tail * rng.uniform(size=first.size))
            correlation = (root.T @ root)[first]
            z = g + (wanted - g[np.arange(first.size), first])[:, None] * correlation
            limit = -ndtri(tail) * (1.0 - 1e-9)
            found.append(float(np.sum(1.0 / np.sum(np.abs(z) >= limit, axis=1)) / each))
        tests = float(np.mean(found))
    return max(tests, 1.0)


def _directions(N: Array, H: Array, K: Array) -> Array:
    """Return unit vectors (b, q) with the correlations of z over the observable parameters of a robot as products."""
    values, vectors = np.linalg.eigh(N)
    root = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T @ K
    size = np.sum(root**2, axis=0)
    seen = (np.einsum("ip,ij,jp->p", K, H, K) > 1e-9) & (size > 0.0)
    return np.asarray(root[:, seen] / np.sqrt(size[seen]))


def _suspects(fleet: Fleet, effect: Effect, K: Array, rate: float) -> Flags:
    """Return the robots far from the others by robust statistics (medians)."""
    pull, size = scores(fleet, effect, K)
    x = np.divide(pull, np.sqrt(size), out=np.zeros_like(pull), where=size > 0.0)
    away = np.abs(x - np.median(x, axis=0))
    scale = 1.4826 * np.median(away, axis=0)
    t = np.divide(away, scale, out=np.zeros_like(away), where=scale > 0.0)
    far = np.max(normal(t, MEDIAN * (len(x) - 1)), axis=1)
    return np.asarray(far > limits_of(rate, len(x), K.shape[1])[0])
