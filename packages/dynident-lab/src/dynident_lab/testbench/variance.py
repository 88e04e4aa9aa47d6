"""Variance components of a scatter: cycles, tests and robots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dynident.errors import DynidentError
from dynident.results import Result
from dynident_lab.checks import samples


@dataclass(frozen=True)
class Spread(Result):
    """Variance components of one parameter.

    Parameters
    ----------
    mean : float
        Mean of the robots' means.
    cycles, tests, robots : float
        Standard deviation between cycles of a test, between tests of a robot, and between robots; NaN for only one
        test or robot, zero if the lower level explains the scatter.
    tests_p, robots_p : float
        Probability of such differences without a difference of tests, or robots; NaN for only one.
    count : int
        Number of values.
    """

    mean: float
    cycles: float
    tests: float
    robots: float
    tests_p: float
    robots_p: float
    count: int


def nested_spread(groups: Sequence[Sequence[ArrayLike]]) -> Spread:
    """Split a scatter into cycles within tests, tests within robots, and robots (unbalanced nested analysis of variance)."""
    from scipy.stats import f as fisher  # noqa: PLC0415 - slow to import

    values = [[samples("groups[robot][test]", x) for x in tests] for tests in groups]
    if not values or not all(values):
        raise DynidentError("groups is empty or a robot has no tests; give values of at least one robot and one test")
    n = [np.array([x.size for x in tests], dtype=np.float64) for tests in values]
    total, b, a = float(sum(x.sum() for x in n)), sum(x.size for x in n), len(n)
    means = [np.array([x.mean() for x in tests]) for tests in values]
    robot = np.array([float(w @ m / w.sum()) for w, m in zip(n, means, strict=True)])
    weight = np.array([x.sum() for x in n])
    grand = float(weight @ robot / total)
    within = sum(float(np.sum((x - x.mean()) ** 2)) for tests in values for x in tests)
    between = sum(float(w @ (m - r) ** 2) for w, m, r in zip(n, means, robot, strict=True))
    across = float(weight @ (robot - grand) ** 2)
    inner = sum(float(np.sum(w**2) / w.sum()) for w in n)
    nan = float("nan")
    e, cycles = nan, nan
    if total > b:
        e = within / (total - b)
        cycles = float(np.sqrt(e))
    tests, tests_p, robots, robots_p = nan, nan, nan, nan
    if b > a and total > b:
        k1, ms = (total - inner) / (b - a), between / (b - a)
        tests = float(np.sqrt(max((ms - e) / k1, 0.0)))
        tests_p = float(fisher.sf(ms / e, b - a, total - b)) if e > 0.0 else 0.0
        if a > 1:
            k2 = (inner - sum(float(np.sum(w**2)) for w in n) / total) / (a - 1)
            k3 = (total - float(np.sum(weight**2)) / total) / (a - 1)
            top, mix = across / (a - 1), k2 / k1
            # Mean square of robots without differences, mixed from the levels below; degrees of freedom by Satterthwaite.
            bottom = max(mix * ms + (1.0 - mix) * e, 1e-300)
            free = bottom**2 / max((mix * ms) ** 2 / (b - a) + ((1.0 - mix) * e) ** 2 / (total - b), 1e-300)
            robots = float(np.sqrt(max((top - bottom) / k3, 0.0)))
            robots_p = float(fisher.sf(top / bottom, a - 1, free))
    return Spread(float(robot.mean()), cycles, tests, robots, tests_p, robots_p, int(total))
