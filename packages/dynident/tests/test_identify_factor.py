"""The triangle of all rows: LAPACK's QR and least squares of the rows at once are the oracle, whatever way was taken."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import dynident as di
from dynident.identify.regression.factor import RowGroup, Tile, Workspace, accumulate, triangle
from dynident.signals.filters import Decimator

CUTS = (0, 7, 400, 401, 1000, 2000)  # tiles of very different length, some shorter than the triangle is wide


class Tiles:
    """Rows [W, y] of some groups in tiles that write into the memory they are given, and how often they were asked for."""

    def __init__(self, groups: Sequence[np.ndarray], cuts: Sequence[int] = CUTS) -> None:
        self.groups, self.calls = groups, list[int]()
        self.tiles: list[Tile] = [self._tile(a, b) for a, b in pairwise(cuts)]

    def _tile(self, a: int, b: int) -> Tile:
        def compute(work: Workspace) -> np.ndarray:
            self.calls.append(a)
            both = work.rows("rows", sum(rows.shape[1] for rows in self.groups), b - a)
            both[:] = np.hstack([rows[a:b] for rows in self.groups]).T
            return both

        return compute

    def reduce(self) -> tuple[RowGroup, ...]:
        columns = [np.arange(rows.shape[1] - 1) for rows in self.groups]
        return accumulate([f"joint {i}" for i in range(len(self.groups))], columns, self.tiles, 0.5)

    @property
    def folded_again(self) -> bool:
        """Whether the rows were asked for a second time, which only reflections need."""
        return len(self.calls) == 2 * len(self.tiles)


def rows_of(condition: float, noise: float, seed: int = 0, width: int = 12) -> tuple[np.ndarray, np.ndarray]:
    """Rows [W, W beta + noise] with a given condition number of W, and beta."""
    rng = np.random.default_rng(seed)
    U, _ = np.linalg.qr(rng.normal(size=(CUTS[-1], width)))
    V, _ = np.linalg.qr(rng.normal(size=(width, width)))
    W = np.sqrt(CUTS[-1]) * U * np.geomspace(1.0, 1.0 / condition, width) @ V.T
    beta = rng.normal(size=width)
    return np.column_stack([W, W @ beta + noise * rng.normal(size=CUTS[-1])]), beta


def solution(group: RowGroup) -> np.ndarray:
    return np.linalg.lstsq(group.R[:, :-1], group.R[:, -1], rcond=None)[0]


def error(x: np.ndarray, reference: np.ndarray) -> float:
    return float(np.linalg.norm(x - reference) / np.linalg.norm(reference))


def test_cross_products_agree_with_reflections() -> None:
    wide, _ = rows_of(30.0, 0.1, seed=1)
    narrow, _ = rows_of(5.0, 0.5, seed=2, width=3)
    data = Tiles([wide, narrow * np.array([1e6, 1.0, 1e-6, 1e3])])  # units must not matter
    groups = data.reduce()
    assert not data.folded_again
    for group, rows in zip(groups, data.groups, strict=True):
        reference = triangle(rows)
        scale = np.linalg.norm(rows, axis=0)
        np.testing.assert_allclose(group.R.T @ group.R / np.outer(scale, scale), (rows / scale).T @ (rows / scale), atol=1e-13)
        # R is unique but for the signs of its rows.
        np.testing.assert_allclose(np.abs(group.R) / scale, np.abs(reference) / scale, atol=1e-11)
        expected = np.linalg.lstsq(rows[:, :-1] / scale[:-1], rows[:, -1], rcond=None)[0]
        assert error(solution(group) * scale[:-1], expected) < 1e-9
        rest = rows[:, :-1] @ (expected / scale[:-1]) - rows[:, -1]
        assert group.residual(expected / scale[:-1]) == pytest.approx(rest @ rest, rel=1e-9)
        assert group.effort_square == pytest.approx(rows[:, -1] @ rows[:, -1], rel=1e-12)
        assert (group.count, group.independence) == (CUTS[-1], 0.5)


@pytest.mark.parametrize(("condition", "noise"), [(1e6, 0.0), (1e6, 1e-9), (30.0, 0.0), (30.0, 1e-6)])
def test_badly_conditioned_and_noise_free_rows_are_reflected(condition: float, noise: float) -> None:
    rows, beta = rows_of(condition, noise)
    data = Tiles([rows])
    (group,) = data.reduce()
    assert data.folded_again
    W, y = rows[:, :-1], rows[:, -1]
    expected = np.linalg.lstsq(W, y, rcond=None)[0]
    assert error(solution(group), expected) < 1e-9
    if noise == 0.0:
        assert error(solution(group), beta) < 1e-9
        assert np.sqrt(group.residual(beta)) < 1e-13 * np.linalg.norm(y)
    else:  # a residual far below the square root of the rounding error of cross products
        assert np.sqrt(group.residual(expected)) == pytest.approx(np.linalg.norm(W @ expected - y), rel=1e-5)
    if condition == 1e6:  # what the choice is for
        assert error(np.linalg.solve(W.T @ W, W.T @ y), expected) > 1e-7


def test_a_bad_group_does_not_change_a_good_one() -> None:
    good, bad = rows_of(10.0, 0.1, seed=3)[0], rows_of(1e6, 0.0, seed=4)[0]
    together, alone = Tiles([good, bad]), Tiles([good])
    first, second = together.reduce()
    (same,) = alone.reduce()
    assert together.folded_again and not alone.folded_again
    np.testing.assert_array_equal(first.R, same.R)
    assert error(solution(second), np.linalg.lstsq(bad[:, :-1], bad[:, -1], rcond=None)[0]) < 1e-9
    assert (first.name, second.name) == ("joint 0", "joint 1")


@pytest.mark.parametrize(("condition", "noise"), [(10.0, 0.1), (1e6, 0.0)])
def test_columns_of_zeros_stay_zero(condition: float, noise: float) -> None:
    rows, _ = rows_of(condition, noise)
    padded = np.insert(rows, [0, 5, 12], 0.0, axis=1)
    (group,) = Tiles([padded]).reduce()
    zero = np.flatnonzero(~padded.any(axis=0))
    assert not group.R[:, zero].any() and np.isfinite(group.R).all()
    assert error(solution(group), np.linalg.lstsq(padded[:, :-1], padded[:, -1], rcond=None)[0]) < 1e-9
    (empty,) = Tiles([np.zeros_like(rows)]).reduce()
    assert not empty.R.any()


def test_merged_triangles_are_those_of_all_rows() -> None:
    rows, _ = rows_of(20.0, 0.2)
    halves = [Tiles([part], (0, 300, 1000)).reduce()[0] for part in (rows[:1000], rows[1000:])]
    merged = halves[0].merge(halves[1])
    np.testing.assert_allclose(merged.R.T @ merged.R, rows.T @ rows, rtol=1e-11, atol=1e-9)
    assert merged.count == CUTS[-1]


@pytest.mark.parametrize("factor", [2, 3, 10])
@pytest.mark.parametrize("outputs", [1, 15, 16, 17, 50])
def test_decimation_of_rows_is_that_of_columns(factor: int, outputs: int) -> None:
    decimator = Decimator(factor, 1000.0)
    samples = decimator.taps.size + (outputs - 1) * factor + factor - 1  # as many as give no further output
    x = Workspace().rows("x", 5, samples)
    x[:] = np.random.default_rng(factor).normal(size=x.shape)
    out = Workspace().rows("out", 5, outputs)
    out[:] = 0.0
    for at in range(0, samples, 7):  # inputs may come in pieces of any length
        decimator.add_rows(x[:, at : at + 7], at, out)
    np.testing.assert_allclose(out, decimator.apply(x.T).T, atol=1e-14)
    direct = [[np.dot(decimator.taps, row[k * factor :][: decimator.taps.size]) for k in range(outputs)] for row in x]
    np.testing.assert_allclose(out, direct, atol=1e-14)


def test_workspace_gives_rows_of_their_own_and_the_same_memory_again() -> None:
    work = Workspace()
    for height, width in ((3, 5), (7, 64), (2, 1), (4, 8)):
        a, b = work.rows("a", height, width), work.rows("b", height, width)
        assert a.shape == b.shape == (height, width)
        for i in range(height):
            a[i], b[i] = i, -1.0 - i
        assert (a == np.arange(height)[:, None]).all() and (b == -1.0 - np.arange(height)[:, None]).all()
        assert not np.shares_memory(a, b)
    large = work.rows("a", 7, 64)
    assert np.shares_memory(large, work.rows("a", 3, 5))


def test_columns_that_one_joint_sees_only_together_lose_nothing() -> None:
    """The first joint of an arm on a vertical axis sees base parameters in fixed combinations only."""
    robot = di.Mechanism.from_urdf(Path(__file__).parents[3] / "examples" / "demo" / "robot.urdf")
    rng = np.random.default_rng(4)
    q, v, a = (rng.uniform(-2.0, 2.0, (3000, robot.dof)) for _ in range(3))
    motion = di.Motion(np.arange(3000) * 1e-3, q, v, a)
    effort = di.inverse_dynamics(robot, motion) + rng.normal(0.0, 0.3, q.shape)
    evidence = di.Regression.from_motion(robot, motion, effort)
    W = di.regressor(robot, motion)[:, :, evidence.base.columns].transpose(1, 2, 0)
    for group, rows, y in zip(evidence.groups, W, effort.T, strict=True):
        stacked = np.vstack([rows[group.columns], y])
        products = stacked @ stacked.T
        np.testing.assert_allclose(group.R.T @ group.R, products, rtol=0.0, atol=1e-11 * np.abs(products).max())
    whole = np.linalg.lstsq(W.transpose(0, 2, 1).reshape(-1, W.shape[1]), effort.T.ravel(), rcond=None)[0]
    np.testing.assert_allclose(di.OLS().fit(evidence).result_.values, whole, rtol=0.0, atol=1e-9 * np.abs(whole).max())
