"""The optimiser and the proof that it matters: quadratic programs, smoothing, and deviations against hand-made motions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from identify_cases import UR10
from small_robots import NOISE, arm6, arm6_limits

import dynident as di
from dynident.errors import DynidentError
from dynident.excitation import MotionLimits, design
from dynident.excitation.designs import check_motion, relative_sizes
from dynident.excitation.objective import Criterion, Objective, RobotEquations, expected_deviations
from dynident.excitation.optimise import Budget, Descent, Problem, feasible_start, quadratic_program, smoothed, typical, update
from dynident.trajectory import Fourier, Multisine, Trajectory, sample

FAMILY = Fourier(0.1, 5)


@pytest.fixture(scope="module")
def six():
    robot = arm6()
    return robot, arm6_limits(robot), di.base_parameters(robot)


def problem_of(six, criterion="d", samples=150, **options):
    _, limits, base = six
    t = np.arange(samples) / samples * FAMILY.duration
    return Problem(Objective(RobotEquations(base, 0.04), FAMILY, Criterion.parse(criterion, **options), t), limits)


@pytest.mark.parametrize("seed", range(6))
def test_quadratic_program_fulfils_its_optimality_conditions(seed):
    rng = np.random.default_rng(seed)
    n, m = 9, 25
    Q, A = rng.normal(size=(n, n)), rng.normal(size=(m, n))
    B, g, b = Q @ Q.T + 0.1 * np.eye(n), 5.0 * rng.normal(size=n), rng.uniform(0.0, 1.0, m)
    d, y = quadratic_program(B, g, A, b, -np.ones(n), np.ones(n))
    slack = b - A @ d
    assert slack.min() > -1e-6 and np.abs(d).max() <= 1.0 and y.min() >= 0.0 and np.abs(y * slack).max() < 1e-4
    rest = B @ d + g + A.T @ y  # what is left pushes against the bounds only
    inside = np.abs(d) < 1.0 - 1e-4
    assert np.abs(rest[inside]).max(initial=0.0) < 1e-3 and np.all(rest[~inside] * np.sign(d[~inside]) < 1e-6)
    # a random feasible point is never better
    for z in rng.uniform(-1.0, 1.0, (200, n)) * 0.2:
        if np.all(A @ z <= b):
            assert 0.5 * d @ B @ d + g @ d <= 0.5 * z @ B @ z + g @ z + 1e-6


def test_bfgs_update_learns_curvature_and_stays_positive():
    rng = np.random.default_rng(0)
    H = np.diag(np.arange(1.0, 6.0))
    B = np.eye(5)
    for _ in range(60):
        s = rng.normal(size=5)
        B = update(B, s, H @ s)
        assert (B @ s) == pytest.approx(H @ s)
    assert np.abs(B - H).max() < 0.05
    assert np.linalg.eigvalsh(update(B, np.ones(5), -np.ones(5))).min() > 0.0


def test_descent_finds_the_optimum_of_a_known_problem():
    """One joint, rows [v]: the largest D has the largest velocities that the velocity limit lets through, at every peak."""

    robot = di.Mechanism.from_regressor(("own",), lambda q, v, a: v[:, :, None], ("q",))
    family = Fourier(0.5, 1, rest=False)
    t = np.arange(40) / 20.0
    limits = MotionLimits(("q",), [-1.0], [1.0], [2.0], [100.0], [np.inf], margin=0.0)
    problem = Problem(Objective(RobotEquations(di.base_parameters(robot)), family, Criterion.parse("d"), t), limits)
    x = np.array([0.0, 0.3, 0.1])
    descent = Descent(limits, typical(problem), x)
    descent.run(problem, problem.objective, 60, Budget())
    _, a, b = family.amplitudes(descent.x)
    assert np.hypot(a, b)[0, 0] == pytest.approx(2.0, rel=2e-3)


def test_smoothing_is_left_at_the_end(six):
    objective = problem_of(six, "cond").objective
    soft = smoothed(objective, 4.0, 40.0)
    assert soft.equations.eps == 40.0 * objective.equations.eps and soft.criterion.power == 4.0
    assert smoothed(objective, np.inf, 1.0).criterion == objective.criterion
    plain = replace(objective, equations=replace(objective.equations, eps=0.0))
    assert smoothed(plain, 4.0, 40.0).equations is plain.equations


def test_every_step_is_better_and_inside(six):
    problem = problem_of(six)
    start = feasible_start(problem, np.random.default_rng(0))
    costs = []
    descent = Descent(problem.limits, typical(problem), start)
    for _ in range(4):
        descent.run(problem, problem.objective, 5, Budget())
        x = problem.shrink(descent.x)
        assert x is not None and problem.feasible(x, True)
        costs.append(problem.objective.cost(x))
    assert costs[-1] < costs[0] < problem.objective.cost(start)


def by_hand(limits):
    """Every joint swings at its own frequency for as long, as far as all limits allow."""
    tones = np.arange(1, 7) / FAMILY.duration
    family = Multisine(tuple(tones.tolist()), (0.0,) * 6, FAMILY.duration, 1.0)
    room = np.min([np.minimum(limits.upper, -limits.lower), limits.velocity / (2 * np.pi * tones)], axis=0)
    for scale in np.linspace(1.0, 0.1, 30):
        curve = Trajectory(family, np.column_stack([np.zeros(6), np.diag(scale * room)]))
        if min(check_motion(limits, curve).values()) >= limits.margin:
            return curve
    raise AssertionError("no size of the hand-made motion is inside the limits")


def test_the_proof_that_it_matters(six):
    """Mean relative deviation at least 2 x smaller after 100 steps from one start (benchmark: 3 x), as WLS finds."""
    robot, limits, base = six
    noise, size = NOISE, relative_sizes(base, 0.0)
    options = {"samples": 150, "noise": noise, "base": base, "starts": 1, "workers": 1, "seed": 1, "iterations": 100}
    found = design(robot, limits, "d", family=FAMILY, **options)
    assert min(found.margins().values()) >= limits.margin - 1e-6
    curves = {"hand": by_hand(limits), "ours": found.trajectory}
    expected = {k: expected_deviations(RobotEquations(base), sample(c, 100.0), noise) for k, c in curves.items()}
    assert (expected["hand"] / size).mean() > 2.0 * (expected["ours"] / size).mean()
    truth, rng = base.values(robot.parameters.values), np.random.default_rng(0)
    for k, curve in curves.items():
        motion = sample(curve, 100.0)
        clean = di.inverse_dynamics(robot, motion)
        errors = []
        for _ in range(12):
            evidence = di.Regression.from_motion(robot, motion, clean + rng.normal(size=clean.shape) * noise, base)
            errors.append((di.WLS().fit(evidence).result_.values - truth) / expected[k])
        assert 0.8 < np.sqrt(np.mean(np.square(errors))) < 1.25  # deviations are what was expected


def test_relative_scale(six):
    robot, _, base = six
    size, beta = relative_sizes(base), np.abs(base.values(robot.parameters.values))
    assert np.all(size >= beta) and np.all(size > 0.0) and np.array_equal(relative_sizes(base, 0.0), beta)
    inertia = np.array([robot.parameters.units[int(c)] == "kg m^2" for c in base.columns])
    assert size[inertia].min() == pytest.approx(1e-3 * beta[inertia].max())
    bare = di.Mechanism.from_dh(UR10)
    with pytest.raises(DynidentError, match="has no prior values of parameters in"):
        relative_sizes(di.base_parameters(bare))
    one = problem_of(six, "a", scale=size.tolist())
    x = feasible_start(one, np.random.default_rng(0))
    R = one.objective.factor(x)
    assert one.objective.value(x)["a"] == pytest.approx(np.sum(np.diag(np.linalg.inv(R.T @ R)) / size**2), rel=1e-6)


def test_bad_input(six, subtests):
    for changes, options, words in [
        ({"tool": {"frame": "link6", "height": 2.0}}, {}, "no feasible motion: limit 'position of link6.z' cannot be kept"),
        ({"margin": 0.99}, {}, "no feasible motion"),
        ({"bandwidth": 0.4}, {}, "frequencies up to 0.5 Hz but the drives follow 0.4 Hz only"),
        ({}, {"rate": 0.9}, "Nyquist"),
        ({}, {"start": np.full(6 * FAMILY.size, 9.0)}, "the start breaks limit"),
        ({}, {"start": np.zeros(4)}, "start has shape"),
        ({}, {"starts": 0}, "starts is 0; give a whole number from 1"),
        ({}, {"scale": "relativ"}, "scale is 'relativ'"),
    ]:
        with subtests.test(str(words)):
            robot, _, base = six
            with pytest.raises(DynidentError, match=words):
                design(robot, arm6_limits(robot, **changes), "d", 2.0, FAMILY, base=base, samples=60, workers=1, **options)


def test_limits_are_needed(six):
    robot = six[0]
    joints = tuple(replace(joint, limits=type(joint.limits)()) for joint in robot.joints)
    with pytest.raises(DynidentError, match="joint 'joint1' has no position limits"):
        design(replace(robot, joints=joints), None, "d", 2.0, FAMILY)
