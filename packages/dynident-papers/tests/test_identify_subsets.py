"""Individual parameters from subsets of trusted ones: Tables 6.2 and 6.4, and Jacobi's weights against least squares."""

from __future__ import annotations

import numpy as np
import pytest

import dynident as di
from dynident.errors import IdentificationError
from dynident_papers.identify import Individual, enumerate_subsets, individual_parameters
from dynident_papers.robots import prr2, replalink


def table_6_2() -> Individual:
    C, V = prr2.thesis_system()
    return enumerate_subsets(C, V, prr2.PARAMETER_NAMES, {name: prr2.THEORETICAL[name] for name in prr2.TRUSTED})


def table_6_4(C: np.ndarray | None = None) -> Individual:
    printed, V = replalink.thesis_system()
    trusted = {name: replalink.THEORETICAL[name] for name in replalink.TRUSTED}
    return enumerate_subsets(printed if C is None else C, V, replalink.PARAMETER_NAMES, trusted)


def test_table_6_2() -> None:
    found = table_6_2()
    assert (found.considered, found.solvable, int(found.feasible.sum())) == (21, 15, 15)
    statistics = found.statistics()
    for name, mean, std in zip(found.names, statistics.mean, statistics.std, strict=True):
        # all printed digits but two last ones (m3 to m5 std 1.4458, m6 mean 4.2581: inputs are rounded)
        assert mean == pytest.approx(prr2.TABLE_6_2[name][0], rel=1e-4), name
        assert std == pytest.approx(prr2.TABLE_6_2[name][1], rel=1e-4, abs=5.1e-5), name
    exact = [round(m, 4) == prr2.TABLE_6_2[n][0] for n, m in zip(found.names, statistics.mean, strict=True)]
    assert sum(exact) == 12
    # a mean over different subsets breaks the base equations; every solution and the best one do not
    assert np.max(np.abs(statistics.residual)) > 1.0
    np.testing.assert_allclose(found.solutions @ found.regrouping.T, np.tile(found.beta, (15, 1)), atol=1e-9)
    np.testing.assert_allclose(found.regrouping @ found.best, found.beta, atol=1e-9)
    drawn = found.plot().axes[0].lines  # one row of dots per subset, then the best
    assert len(drawn) == 16
    np.testing.assert_allclose(drawn[-1].get_xdata(), found.best / np.median(np.abs(found.solutions), axis=0))


def test_the_three_kinds_of_solution_of_the_digest() -> None:
    found = table_6_2()
    column = {name: i for i, name in enumerate(found.names)}
    for opened, values in (
        (("m6", "m3"), (4.2168, 1.1923)),
        (("m6", "I4"), (4.2994, 0.0188)),
        (("m5", "I3"), (4.0839, 0.3472)),
    ):
        free = [column[name] for name in opened]
        row = np.flatnonzero(~found.held[:, free].any(axis=1))
        assert row.size == 1
        np.testing.assert_allclose(found.solutions[row[0], free], values, atol=1e-4)


def test_table_6_4() -> None:
    for found in (table_6_4(), table_6_4(replalink.base_matrix())):
        assert (found.considered, found.solvable) == (210, 64)
        assert not found.feasible.any()  # the fifth base parameter was identified negative: no possible robot has it
        statistics = found.statistics(include_held=True, keep="values")
        for name, mean, std in zip(found.names, statistics.mean, statistics.std, strict=True):
            assert mean == pytest.approx(replalink.TABLE_6_4[name][0], rel=1e-4, abs=5.1e-5), name
            assert std == pytest.approx(replalink.TABLE_6_4[name][1], rel=1e-4, abs=5.1e-5), name


def test_ranges_of_the_digest() -> None:
    found = table_6_4()
    ranges = found.statistics(include_held=True)
    low, high = dict(zip(found.names, ranges.low, strict=True)), dict(zip(found.names, ranges.high, strict=True))
    expected = {
        **{"m1": (-19.2482, 3.2150), "m2": (-7.1061, 231.0084), "m3": (-516.2164, 1.89), "m4": (-30.2856, 2067.9199)},
        **{"m5": (-3.9520, 10.2039), "I1": (-0.6857, 0.1257), "I2": (-0.7921, 0.8678), "I3": (-30.5652, 1.2224)},
        **{"I4": (-0.8375, 58.7283), "I6": (-0.8073, 0.0041), "I7": (-0.9394, 58.6264)},
    }
    for name, (least, largest) in expected.items():
        assert (low[name], high[name]) == pytest.approx((least, largest), abs=5.1e-5), name


def test_bounded_fit_pins_what_the_thesis_pins() -> None:
    """Table 6.4, "Opt.": m1, m3, I1, I6 have no positive value but the trusted one, so any bounded fit returns it."""
    found = table_6_4()
    best = dict(zip(found.names, found.bounded(np.eye(9)), strict=True))
    for name in ("m1", "m3", "I1", "I6"):
        assert best[name] == pytest.approx(replalink.TABLE_6_4[name][2], abs=1e-6)
    ranges = found.statistics(include_held=True, keep="values")
    values = np.array(list(best.values()))
    assert np.all((values >= ranges.low - 1e-9) & (values <= ranges.high + 1e-6))
    error = found.regrouping @ values - found.beta
    generator = np.random.default_rng(0)
    for _ in range(200):  # nothing in the box fits better
        other = generator.uniform(ranges.low, np.minimum(ranges.high, 3.0 * ranges.low + 1.0))
        assert np.linalg.norm(found.regrouping @ other - found.beta) >= np.linalg.norm(error) - 1e-6


def least_squares(K: np.ndarray, beta: np.ndarray, v: np.ndarray, s: np.ndarray) -> np.ndarray:
    """Minimise sum ((phi - v)/s)^2 over entries with finite s, subject to K phi = beta."""
    p, b = K.shape[1], K.shape[0]
    D = np.diag(np.where(np.isfinite(s), 1.0 / s**2, 0.0))
    system = np.block([[D, K.T], [K, np.zeros((b, b))]])
    return np.linalg.solve(system, np.concatenate([D @ v, beta]))[:p]


@pytest.mark.parametrize("seed", range(3))
def test_weighted_mean_of_subsets_is_least_squares(seed: int) -> None:
    generator = np.random.default_rng(seed)
    K, truth = generator.normal(size=(4, 9)), generator.uniform(1.0, 3.0, 9)
    names = [f"x{i}" for i in range(9)]
    s = np.array([*generator.uniform(0.1, 2.0, 7), np.inf, np.inf])
    v = truth + np.where(np.isfinite(s), generator.normal(size=9), 0.0)
    covariance = np.diag(generator.uniform(0.1, 0.3, 4))
    trusted, deviations = dict(zip(names[:7], v, strict=False)), dict(zip(names[:7], s, strict=False))
    found = enumerate_subsets(K, K @ truth, names, trusted, deviations, covariance)
    assert found.considered == 21  # 7 trusted, 5 held
    np.testing.assert_allclose(found.best, least_squares(K, K @ truth, v, s), atol=1e-8)
    # covariance by the derivative of that estimate
    h = 1e-6
    J = [(least_squares(K, K @ truth + h * e, v, s) - found.best) / h for e in np.eye(4)]
    L = [(least_squares(K, K @ truth, v + h * e, s) - found.best) / h for e in np.eye(9)[:7]]
    P = np.transpose(J) @ covariance @ np.array(J) + np.transpose(L) * s[:7] ** 2 @ np.array(L)
    np.testing.assert_allclose(found.best_std, np.sqrt(np.diag(P)), rtol=1e-5)


def test_best_beats_the_plain_mean() -> None:
    """Mean squared error over 300 drawings of the trusted values, deviations as stated."""
    generator = np.random.default_rng(5)
    K = prr2.base_matrix()
    truth = np.array([prr2.THEORETICAL.get(name, 1.0) for name in prr2.PARAMETER_NAMES])
    deviations = {name: 0.1 * prr2.THEORETICAL[name] for name in prr2.TRUSTED}
    errors = []
    for _ in range(300):
        trusted = {n: prr2.THEORETICAL[n] + d * generator.normal() for n, d in deviations.items()}
        found = enumerate_subsets(K, K @ truth, prr2.PARAMETER_NAMES, trusted, deviations)
        errors.append([found.best - truth, found.statistics(include_held=True).mean - truth])
    best, mean = np.sqrt(np.mean(np.square(errors), axis=0))[:, :9]
    assert np.all(best <= 1.02 * mean)
    np.testing.assert_allclose(best, found.best_std[:9], rtol=0.15)  # and its deviation is the predicted one


def test_truth_comes_back_from_every_subset_of_a_fitted_robot() -> None:
    robot = prr2.mechanism(values={"Fc1": 44.0, "Fc2": 41.0, "c1": 6.0, "c2": 2.0, "I5": 0.05, "m4": 1.2})
    motion = prr2.fourier(
        np.linspace(0, 2.4, 300), prr2.START, [[0.1, 0.04], [0.07, -0.05]], [[0.02, 0.08], [-0.06, 0.03]], 0.4
    )
    fit = di.WLS().fit(di.Regression.from_motion(robot, motion, di.inverse_dynamics(robot, motion))).result_
    truth = robot.parameters
    trusted = {prr2.STANDARD_NAMES[name]: truth[prr2.STANDARD_NAMES[name]] for name in prr2.TRUSTED}
    found = individual_parameters(fit.base, fit.values, trusted, covariance=fit.covariance)
    assert (found.considered, found.solvable, int(found.feasible.sum())) == (21, 15, 15)
    expected = np.array([truth[name] for name in found.names])
    np.testing.assert_allclose(found.solutions, np.tile(expected, (15, 1)), rtol=1e-6, atol=1e-6)


def test_known_parameters_are_held_always() -> None:
    robot = prr2.mechanism("full")
    base = di.base_parameters(robot)
    truth = robot.parameters
    known = {f"my_bar{i}": 0.0 for i in (3, 4, 5)} | {f"mx_bar{i}": truth[f"mx_bar{i}"] for i in (3, 4, 5)}
    trusted = {name: truth[name] for name in ("m_bar3", "m_bar4", "m_bar5", "Izz_bar3", "Izz_bar4", "Izz_bar5")}
    beta = base.values(truth.values)
    # nothing is left of the two equations about my; the other eight have 7 untrusted unknowns, so 5 of the 6 trusted are held
    found = individual_parameters(base, beta, trusted, known=known)
    assert (found.considered, found.solvable) == (6, 3)  # a moment is left open: masses of bars appear with the sliders only
    expected = np.array([truth[name] for name in found.names])
    np.testing.assert_allclose(found.solutions, np.tile(expected, (found.solvable, 1)), atol=1e-8)
    assert found.held[:, [found.names.index(name) for name in known]].all()


def test_superfluous_equations_are_averaged_with_their_covariance() -> None:
    # x + y = 3.0 +- 1 and 2 x = 2.4 +- 0.1 with y known to be 2: x by weighted least squares
    known, covariance = {"y": 2.0}, np.diag([1.0, 0.01])
    found = enumerate_subsets([[1.0, 1.0], [2.0, 0.0]], [3.0, 2.4], ("x", "y"), {}, known=known, covariance=covariance)
    weights = np.array([1.0, 100.0])
    A, b = np.array([1.0, 2.0]), np.array([1.0, 2.4])
    assert found.best[0] == pytest.approx(np.sum(weights * A * b) / np.sum(weights * A * A))
    assert found.best_std[0] == pytest.approx(1.0 / np.sqrt(np.sum(weights * A * A)))
    assert (found.considered, found.solvable) == (1, 1)


def test_keep_whole_solutions() -> None:
    found = enumerate_subsets([[1.0, 1.0, 1.0]], [3.0], ["x", "y", "z"], {"x": 1.0, "y": 4.0, "z": 1.0})
    assert found.solvable == 3
    np.testing.assert_array_equal(np.sort(found.feasible), [False, False, True])
    whole = found.statistics(keep="solutions")
    np.testing.assert_array_equal(whole.count, [0, 1, 0])
    assert whole.mean[1] == pytest.approx(1.0)
    assert np.isnan(whole.mean[0])
    assert np.isnan(whole.std[1])


K3 = [[1.0, 1.0, 0.0], [0.0, 1.0, 1.0]]
NAMES = ("x", "y", "z")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: enumerate_subsets(K3, [1.0], NAMES, {"x": 1.0}), "one row per base parameter"),
        (lambda: enumerate_subsets(K3, [1.0, np.nan], NAMES, {"x": 1.0}), "give finite numbers"),
        (lambda: enumerate_subsets(K3, [1.0, 2.0], NAMES, {"w": 1.0}), "trusted parameter 'w' does not exist"),
        (lambda: enumerate_subsets(K3, [1.0, 2.0], NAMES, {"x": np.inf}), "'x' is inf"),
        (lambda: enumerate_subsets(K3, [1.0, 2.0], NAMES, {}), "trust more of x, y, z"),
        (lambda: enumerate_subsets(K3, [1.0, 2.0], NAMES, {"x": 1.0}, {"x": 0.0}), "give one above zero"),
        (lambda: enumerate_subsets(K3, [1.0, 2.0], NAMES, {"x": 1.0}, {"y": 1.0}), "'x' is None"),
        (lambda: enumerate_subsets(K3, [1.0, 2.0], NAMES, {"x": 1.0}, covariance=np.eye(3)), "that of beta"),
        (lambda: enumerate_subsets([[1, 1, 2], [0, 1, 1]], [1, 2], NAMES, {"x": 1.0}, known={"w": 1.0}), "known parameter 'w'"),
        (lambda: enumerate_subsets([[1, 1, 1, 0]], [1.0], "xyzw", {"x": 1.0, "w": 1.0}), "trust more of y, z"),
        (lambda: table_6_2().statistics(keep="some"), "keep is 'some'"),
        (lambda: table_6_2().bounded(np.eye(3)), "one row per equation"),
        (lambda: table_6_2().bounded(-np.eye(8)), "not positive definite"),
        (
            lambda: enumerate_subsets(np.eye(20, 40) + np.eye(20, 40, 20), np.ones(20), [f"x{i}" for i in range(40)],
                                      {f"x{i}": 1.0 for i in range(40)}),
            "137846528820 subsets",
        ),
    ],
)  # fmt: skip
def test_bad_input_is_one_sentence(call: object, words: str) -> None:
    with pytest.raises(IdentificationError, match=words) as caught:
        call()  # type: ignore[operator]
    assert "\n" not in str(caught.value)
