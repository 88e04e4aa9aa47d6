from __future__ import annotations

import numpy as np
import pytest
from identify_cases import DOWN_Y, PLANAR, RRR, UR10, arm, evidence, resting, smooth, truth
from scipy.optimize import minimize

from dynident.errors import IdentificationError
from dynident.identify import OLS, WLS, Regression, base_parameters, recover_standard
from dynident.identify.posterior.physical import MARGIN, cone_of, consistent
from dynident.mechanics import inverse_dynamics
from dynident.mechanism.parameters import natural_spread


@pytest.mark.parametrize("recovery", ["prior", "minimum_norm"])
def test_standard_parameters_give_the_base_parameters(recovery):
    robot = arm(UR10)
    regression, _ = evidence(robot, samples=800, noise=0.1)
    fit = WLS(recovery=recovery).fit(regression).result_
    np.testing.assert_allclose(fit.base.values(fit.standard.values), fit.values, rtol=1e-9, atol=1e-9)
    assert fit.standard.names == robot.parameters.names
    assert recovery in fit.standard.provenance
    motion = smooth(6, 50, seed=4)
    np.testing.assert_allclose(inverse_dynamics(fit.model, motion), fit.predict(motion).effort, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("recovery", ["prior", "minimum_norm"])
def test_the_closest_is_the_closest(recovery):
    robot = arm(PLANAR, ("fv",), DOWN_Y)
    base = base_parameters(robot)
    beta = base.values(truth(robot, 5))
    phi = recover_standard(base, beta, np.eye(base.rank), recovery).values
    spread = natural_spread(robot) if recovery == "prior" else np.ones(phi.size)
    start = robot.parameters.values if recovery == "prior" else np.zeros(phi.size)

    def distance(x: np.ndarray) -> float:
        return float(np.sum(((x - start) / spread) ** 2))

    found = minimize(
        lambda x: distance(start + spread * x),
        np.zeros(phi.size),
        constraints={"type": "eq", "fun": lambda x: base.values(start + spread * x) - beta},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert found.success
    assert distance(phi) == pytest.approx(found.fun, rel=1e-6)
    np.testing.assert_allclose(phi, start + spread * found.x, atol=1e-5)
    _, _, rows = np.linalg.svd(base.regrouping)
    for direction in rows[base.rank :]:  # any other solution is farther
        for step in (-1e-3, 1e-3):
            assert distance(phi + step * direction) > distance(phi)


def test_a_true_prior_stays():
    robot = arm(UR10)
    base = base_parameters(robot)
    phi = recover_standard(base, base.values(robot.parameters.values), np.eye(base.rank)).values
    np.testing.assert_allclose(phi, robot.parameters.values, atol=1e-9)


def test_what_is_not_known_stays_as_described():
    robot = arm(RRR)
    base = base_parameters(robot)
    known = np.eye(base.rank)[[base.leaders.index("fv_joint_2")]]
    phi = recover_standard(base, np.full(base.rank, 7.0), known)
    assert phi["fv_joint_2"] == pytest.approx(7.0)
    others = [i for i, name in enumerate(phi.names) if name != "fv_joint_2"]
    np.testing.assert_allclose(phi.values[others], robot.parameters.values[others], atol=1e-12)


def test_spread_follows_the_bodies():
    robot = arm(PLANAR, ("fv",))
    spread = natural_spread(robot)
    assert np.all(spread > 0)
    for i in range(2):
        phi = robot.parameters.values[10 * i : 10 * i + 10]
        r2 = 0.5 * (phi[4] + phi[7] + phi[9]) / phi[0]
        np.testing.assert_allclose(spread[10 * i : 10 * i + 5], phi[0] * np.array([1, r2**0.5, r2**0.5, r2**0.5, r2]))
    assert np.all(natural_spread(arm(PLANAR, prior=None)) > 0)  # no prior at all
    with pytest.raises(IdentificationError, match="recovery is 'nearest'"):
        base = base_parameters(robot)
        recover_standard(base, np.zeros(base.rank), np.eye(base.rank), "nearest")


@pytest.mark.parametrize("noise", [0.02, 0.3])
def test_physical_recovery_gives_possible_bodies(noise):
    robot = arm(RRR)
    regression, _ = evidence(robot, samples=500, noise=noise)
    described = arm(RRR, prior=6)  # the description is another robot of the same shape, the truth is `robot`
    groups = regression.groups
    regression = type(regression)(base_parameters(described), groups)
    plain, fit = OLS().fit(regression).result_, OLS(recovery="physical").fit(regression).result_
    np.testing.assert_array_equal(plain.values, fit.free)  # what least squares alone says is kept
    np.testing.assert_allclose(fit.exported().values, fit.values, rtol=1e-9, atol=1e-12)  # what is scored is what is exported
    assert all(verdict.ok for verdict in fit.consistency())
    assert "physically consistent" in fit.standard.provenance
    assert all(fit.standard[name] >= -1e-9 for name in fit.standard.names if name.startswith(("ia", "fv", "fc")))
    motion = smooth(3, 300, seed=4)
    free, bound = plain.predict(motion), fit.predict(motion)
    change = np.sqrt(np.mean((free.effort - bound.effort) ** 2, axis=0))
    assert np.all(change < 0.2 * noise)  # far below what one measurement shows
    shift = (fit.values - plain.values) / plain.std
    assert np.sqrt(np.mean(shift**2)) < 1.5


def test_physical_recovery_does_not_pull_friction_to_a_silent_description():
    # A prior of zero friction, as narrow as an inertia is small, once shrank fv and fc by ten standard deviations.
    robot = arm(RRR)
    terms = robot.tree.inertias.size
    motion, phi = smooth(3, 1500, seed=4), robot.parameters.values.copy()
    silent = np.where(np.arange(phi.size) < terms, phi, 0.0)
    robot = robot.with_parameters(robot.parameters.replace(silent))
    phi[terms:] = [0.5 if name.startswith("ia") else 20.0 for name in robot.parameters.names[terms:]]
    effort = inverse_dynamics(robot, motion, phi) + 0.5 * np.random.default_rng(4).normal(size=(1500, 3))
    fit = OLS(recovery="physical").fit(Regression.from_motion(robot, motion, effort)).result_
    moved = (fit.values - fit.free) / fit.std
    assert np.max(np.abs(moved[fit.base.columns >= terms])) < 1.0


def test_physical_recovery_with_a_resting_joint():
    robot = arm(RRR)
    motion = resting(smooth(3, 500), 1)
    tau = inverse_dynamics(robot, motion)
    noisy = tau + np.random.default_rng(0).normal(size=tau.shape) * 0.05
    fit = WLS(recovery="physical").fit(Regression.from_motion(robot, motion, noisy)).result_
    assert not fit.solved.all()
    assert all(verdict.ok for verdict in fit.consistency())
    assert np.sqrt(np.mean((fit.exported().predict(motion).effort - tau) ** 2)) < 0.05


def test_possible_bodies_are_the_minimum_of_the_programme():
    """Newton's method and an interior-point solver of somebody else find the same point."""
    cp = pytest.importorskip("cvxpy")
    robot = arm(PLANAR, gravity=DOWN_Y)
    rng = np.random.default_rng(2)
    p = len(robot.parameters)
    spread, phi0 = natural_spread(robot), robot.parameters.values
    root, free = np.linalg.qr(rng.normal(size=(3 * p, p)) * 3.0, mode="r"), rng.normal(size=p)
    cone = cone_of(robot, phi0, spread, spread, np.ones(p, dtype=bool))
    assert not cone.inside(free)
    found = consistent(root, root @ free, cone, free)
    assert cone.inside(found)
    x = cp.Variable(p)
    constraints = [x[cone.signed] >= cone.lowest]
    for own, basis, offset in zip(cone.columns, cone.basis, cone.offset, strict=True):
        P = offset + sum(x[int(k)] * basis[i] for i, k in enumerate(own))
        constraints.append(P >> MARGIN * np.eye(4))
    cp.Problem(cp.Minimize(cp.sum_squares(root @ x - root @ free)), constraints).solve(solver=cp.CLARABEL)
    costs = [np.sum((root @ (y - free)) ** 2) for y in (found, x.value)]
    assert costs[0] == pytest.approx(costs[1], rel=1e-4)
    np.testing.assert_allclose(found, x.value, atol=0.02)
    np.testing.assert_array_equal(consistent(root, root @ found, cone, found), found)  # what is possible stays


@pytest.mark.parametrize(("recovery", "scale"), [("prior", 1.0), ("minimum_norm", 1.0), ("minimum_norm", 1e5)])
def test_what_rounding_leaves_is_zero(recovery, scale):
    """Parameters that no torque shows are exactly zero when shortest, whatever the last bits of the estimate are."""
    robot = arm(UR10)
    base, rng = base_parameters(robot), np.random.default_rng(0)
    beta = base.values(truth(robot, 3))
    unseen = ~np.any(base.regrouping, axis=0)
    found = []
    for _ in range(20):
        noisy = beta * (1.0 + np.finfo(float).eps * rng.integers(-4, 5, beta.size))
        found.append(recover_standard(base, noisy, scale * np.eye(base.rank), recovery).values)
        np.testing.assert_allclose(base.values(found[-1]), beta, rtol=1e-11, atol=1e-11)
    signs = np.sign(found)
    assert np.array_equal(signs, np.broadcast_to(signs[0], signs.shape))
    if recovery == "minimum_norm":
        assert unseen.any() and not np.any(np.array(found)[:, unseen])
