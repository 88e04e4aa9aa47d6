"""Criteria and their gradients against finite differences and plain linear algebra."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from identify_cases import LWR, PLANAR, RRR, UR10, arm
from random_mechanisms import build
from small_robots import five_bar, platform

from dynident.errors import DynidentError
from dynident.excitation.objective import (
    Criterion,
    Objective,
    RobotEquations,
    expected_deviations,
    prior_factor,
)
from dynident.friction import TERMS
from dynident.friction.terms import ASYMMETRIC, SYMMETRIC
from dynident.identify import OLS, Regression, base_parameters
from dynident.mechanics import Motion, inverse_dynamics
from dynident.mechanism import Coupling, Mechanism
from dynident.trajectory import BSpline, Fourier


def objective(robot, criterion="d", eps=0.1, samples=120, family=None, **kw):
    fam = family or Fourier(0.2, 4)
    t = np.linspace(0, fam.duration, samples)
    return Objective(RobotEquations(base_parameters(robot), eps), fam, Criterion.parse(criterion, **kw), t)


def gradient_error(f, x, seed=0, h=1e-4):
    """Worst relative difference between the gradient and fourth-order central differences along random directions."""
    rng = np.random.default_rng(seed)
    _, g = f(x)
    worst = 0.0
    for _ in range(3):
        d = rng.normal(size=x.size)
        d /= np.linalg.norm(d)
        e = [f.cost(x + k * h * d) for k in (-2, -1, 1, 2)]
        worst = max(worst, abs((e[0] - 8 * e[1] + 8 * e[2] - e[3]) / (12 * h) - g @ d) / np.linalg.norm(g))
    return worst


def stacked(equations, q, v, a):
    """W with a row per equation and sample."""
    W = np.zeros((*equations.seen.shape, len(q)))
    W[equations.seen] = equations.rows(equations.positions(q), v, a)
    return W.transpose(2, 0, 1).reshape(-1, len(equations.names))


def start(f, seed=0):
    return np.random.default_rng(seed).normal(size=f.equations.dof * f.family.size) * 0.5


@pytest.mark.parametrize("criterion", ["cond", "sigma_min", "e", "d", "inverse_det", "a", "correlation", "cond:1,d:0.5"])
@pytest.mark.parametrize("scale", [None, "column"])
def test_gradient_of_every_criterion(criterion, scale):
    f = objective(arm(RRR), criterion, scale=scale)
    assert gradient_error(f, start(f)) < 1e-6


@pytest.mark.parametrize("rows", [PLANAR, UR10, LWR], ids=["planar", "ur10", "lwr"])
@pytest.mark.parametrize("terms", [(), SYMMETRIC, ASYMMETRIC], ids=["bodies", "symmetric", "asymmetric"])
def test_gradient_on_arms(rows, terms):
    f = objective(arm(rows, terms=terms), "d")
    assert gradient_error(f, start(f, 1), h=2e-4 if terms != ASYMMETRIC else 1e-5) < (1e-6 if terms != ASYMMETRIC else 1e-4)


def test_gradient_on_random_trees():
    kinds = [
        ("revolute", -1, False),
        ("prismatic", 0, False),
        ("universal", 1, True),
        ("fixed", 2, False),
        ("planar", 1, False),
    ]
    for seed in range(3):
        f = objective(build(kinds, seed, terms=("ia", "fv", "fc")), "d", family=BSpline(3.0, 8))
        assert gradient_error(f, start(f, seed)) < 1e-6


def test_gradient_with_quasi_velocities():
    f = objective(build([("revolute", -1, False), ("spherical", 0, False)], 0), "d", samples=60)
    assert gradient_error(f, start(f) * 0.3) < 1e-6


def bent(x):
    return 0.8 * np.sin(x[:, 0]) + 0.3 * x[:, 0] * x[:, 1]


COUPLINGS = {
    "linear": Coupling("J2", {"J0": 0.7, "J1": -0.3}, 0.2),
    "function": Coupling("J2", {"J0": 0.0, "J1": 0.0}, function=bent),
}


def coupled(kind):
    robot = build([("revolute", -1, False), ("revolute", 0, False), ("revolute", 1, False)], 4, terms=("ia", "fv", "fc", "k"))
    return replace(robot, couplings=(COUPLINGS[kind],), actuators=())


@pytest.mark.parametrize("kind", COUPLINGS)
def test_gradient_of_coupled_joints(kind):
    f = objective(coupled(kind), "d", samples=60)
    assert gradient_error(f, start(f, 3)) < 1e-6


LOOPS = {
    "five_bar": (five_bar, "gls"),
    "five_bar rows": (five_bar, "independent"),
    "five_bar motors": (five_bar, "motors"),
    "platform": (platform, "gls"),
}


def looped(name, criterion="d", eps=0.1):
    make, projection = LOOPS[name]
    robot = make()
    motors = tuple(actuator.name for actuator in robot.actuators)
    equations = RobotEquations(base_parameters(robot), eps, motors if projection == "motors" else projection)
    family = Fourier(0.4, 3, rest=False)
    t = np.arange(60) / 60 * family.duration
    f = Objective(equations, family, Criterion.parse(criterion), t)
    home = robot.closure.home[robot.closure.independent]
    shape = np.random.default_rng(1).normal(size=f.equations.dof * family.size) * 0.02
    return f, np.outer(home, family.constant()).ravel() + shape


@pytest.mark.parametrize("name", LOOPS)
def test_gradient_of_robots_with_loops(name):
    f, x = looped(name)
    assert gradient_error(f, x, h=2e-5) < 1e-6


@pytest.mark.parametrize("name", LOOPS)
def test_a_regression_then_collects_what_the_design_expected(name):
    """The information of the designed rows is that of `Regression`, which projects by itself."""
    f, x = looped(name, eps=0.0)
    motion = Motion(f.t, *f.states(x))
    robot, efforts = f.equations.mechanism, len(f.equations.mechanism.actuators)
    effort = np.zeros((len(motion), efforts))
    evidence = Regression.from_motion(robot, motion, effort, f.equations.base, projection=f.equations.projection)
    R, collected = f.factor(x), prior_factor(evidence, 1.0)
    M = collected.T @ collected
    assert np.abs(R.T @ R - M).max() < 1e-9 * np.abs(M).max()


@pytest.mark.parametrize("symbol", sorted(TERMS))
def test_smooth_terms(symbol):
    """True signs with eps = 0, the same up to eps far from rest, and always between them and rest."""
    robot = arm(PLANAR, terms=(symbol,) if TERMS[symbol].rotor else ("ia", symbol))
    base = base_parameters(robot)
    q, v, a = np.random.default_rng(0).normal(size=(3, 50, robot.dof))
    v[:25] *= 0.05
    wanted = {robot.parameters.names.index(f"{symbol}_{joint}"): j for j, joint in enumerate(robot.coordinate_names)}
    columns = [(k, wanted[int(c)]) for k, c in enumerate(base.columns) if int(c) in wanted]
    assert columns
    sharp, soft = (stacked(RobotEquations(base, eps), q, v, a).reshape(50, robot.dof, -1) for eps in (0.0, 0.01))
    for k, j in columns:
        column = TERMS[symbol].column(q[:, j], v[:, j], a[:, j])
        assert sharp[:, j, k] == pytest.approx(column)
        slow = np.abs(v[:, j]) < 0.1
        assert soft[~slow, j, k] == pytest.approx(column[~slow], abs=1e-8)
        assert np.all(np.abs(soft[:, j, k]) <= np.abs(column) + np.where(slow, 1.0, 1e-8))


def test_goal_is_the_schur_complement_and_has_a_gradient():
    f = objective(arm(RRR), "d", goal=(0, 3, 7))
    x = start(f)
    R = f.factor(x)
    C = np.linalg.inv(R.T @ R)
    g = [0, 3, 7]
    assert f.value(x)["d"] == pytest.approx(-np.linalg.slogdet(C[np.ix_(g, g)])[1])
    for name in ("a", "e", "d", "cond"):
        h = replace(f, criterion=Criterion.parse(name, goal=(0, 3, 7)))
        assert gradient_error(h, x) < 1e-6
    assert replace(f, criterion=Criterion.parse("a", goal=g)).value(x)["a"] == pytest.approx(np.trace(C[np.ix_(g, g)]))


def test_values_are_those_of_linear_algebra():
    f = objective(arm(RRR), "cond", eps=0.0)
    x = start(f)
    W = stacked(f.equations, *f.states(x))
    s = np.linalg.svd(W, compute_uv=False)
    unit = np.linalg.inv(np.corrcoef(W, rowvar=False) * 0 + (W / np.linalg.norm(W, axis=0)).T @ (W / np.linalg.norm(W, axis=0)))
    expected = {"cond": s[0] / s[-1], "sigma_min": s[-1], "e": s[-1] ** 2, "d": 2 * np.log(s).sum(), "a": np.sum(s**-2.0)}
    expected |= {"inverse_det": np.exp(-2 * np.log(s).sum()), "correlation": np.trace(unit) / s.size}
    for name, value in expected.items():
        assert replace(f, criterion=Criterion.parse(name)).value(x)[name] == pytest.approx(value, rel=1e-8)
    bound = replace(Criterion.parse("cond"), power=64.0).evaluate(f.factor(x))[1]
    assert 0 <= bound - np.log(s[0] / s[-1]) < np.log(s.size) / 64


def test_long_motions_are_folded_in_tiles():
    """Information adds up over samples, also where threads share the tiles, and so do gradients."""
    f = objective(arm(PLANAR), "d", samples=5000)
    x = start(f)
    M = [R.T @ R for R in (replace(f, t=t).factor(x) for t in (f.t, f.t[:2100], f.t[2100:]))]
    assert np.abs(M[0] - M[1] - M[2]).max() < 1e-11 * np.abs(M[0]).max()
    assert gradient_error(f, x) < 1e-6


@pytest.mark.parametrize("size", [1.0, 1e-2, 1e-3])
def test_values_do_not_suffer_where_columns_are_nearly_dependent(size):
    """The smaller the motion, the worse its condition: 2e1, 2e5 and 2e7 here, with unit columns."""
    f = objective(arm(RRR), "cond", eps=0.0, scale="column")
    x = start(f) * size
    W = stacked(f.equations, *f.states(x))
    s = np.linalg.svd(W / np.linalg.norm(W, axis=0), compute_uv=False)
    assert f.value(x)["cond"] == pytest.approx(s[0] / s[-1], rel=1e-9 if size == 1.0 else 1e-6)


def test_expected_deviations_and_sequential_design():
    robot = arm(RRR)
    base = base_parameters(robot)
    equations = RobotEquations(base)
    f = objective(robot)
    q, v, a = f.states(start(f))
    motion = Motion(f.t, q, v, a)
    effort = inverse_dynamics(robot, motion) + np.random.default_rng(0).normal(size=q.shape)
    evidence = Regression.from_motion(robot, motion, effort, base)
    fit = OLS().fit(evidence).result_
    ours = expected_deviations(equations, motion, np.ones(3))
    assert fit.std == pytest.approx(ours, rel=0.2)  # the fit estimates the noise, here it is known to be 1
    prior = prior_factor(evidence, np.ones(3))
    again = expected_deviations(equations, motion, np.ones(3), prior)
    assert again == pytest.approx(ours / np.sqrt(2), rel=1e-6)
    f2 = replace(f, prior=prior)
    assert gradient_error(f2, start(f2, 2)) < 1e-6


def test_a_regressor_of_ones_own():
    def columns(q, v, a):
        return np.stack([np.sin(q), v**2, a], axis=2)

    equations = RobotEquations(base_parameters(Mechanism.from_regressor(("s", "v2", "a2"), columns, ("q",))))
    f = Objective(equations, Fourier(0.5, 3), Criterion.parse("d"), np.linspace(0, 2, 50))
    x = start(f)
    assert gradient_error(f, x) < 1e-6
    q, v, a = (y[:, 0] for y in f.states(x))
    W = np.column_stack([np.sin(q), v**2, a])
    assert f.value(x)["d"] == pytest.approx(np.linalg.slogdet(W.T @ W)[1])


def test_bad_input(subtests):
    for make, words in [
        (lambda: Criterion.parse("x"), "criterion is 'x'"),
        (lambda: Criterion.parse("d:-1"), "weight"),
        (lambda: Criterion.parse("d:k"), "weight of criterion 'd' is 'k'"),
        (lambda: Criterion.parse("d", scale="row"), "scale"),
        (lambda: objective(arm(RRR), "d", scale=[1.0]).value(start(objective(arm(RRR)))), "scale has 1"),
        (lambda: objective(arm(RRR), "d", goal=[99]).value(start(objective(arm(RRR)))), "goal"),
        (lambda: replace(objective(arm(RRR)), noise=np.zeros(3)), "noise"),
    ]:
        with subtests.test(str(words)), pytest.raises(DynidentError, match=words):
            make()


def test_a_goal_behind_the_last_parameter_is_refused():
    last = objective(arm(RRR)).equations.base.rank
    for goal, good in ((last - 1, True), (last, False)):
        f = objective(arm(RRR), "d", goal=[goal])
        if good:
            assert np.isfinite(f.value(start(f))["d"])
        else:
            with pytest.raises(DynidentError, match=f"name different parameters out of {last}"):
                f.value(start(f))
