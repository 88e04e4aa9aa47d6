"""Excitation: value and exact gradient against finite differences through a Pinocchio loop, and designs against the literature.

Run:  python -m benchmarks.excitation [gradient|prr2|replalink|cft|arm|proof ...]
"""

from __future__ import annotations

import sys
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

import dynident as di
from benchmarks.arms import URDF, arm
from dynident.excitation import (
    Criterion,
    FunctionEquations,
    MotionLimits,
    Objective,
    Problem,
    RobotEquations,
    design,
    expected_deviations,
    feasible_start,
    optimise,
)
from dynident.identify.factor import one_blas_thread
from dynident.trajectory import Fourier, Multisine, Trajectory

Array = NDArray[np.float64]
LIMITS = {"default": {"lower": -2.5, "upper": 2.5, "velocity": 2.0, "acceleration": 8.0}}
TONES = 0.1 * np.arange(1, 7)
SINES = Multisine(tuple(TONES.tolist()), (0.0,) * 6, 10.0, 1.0)
HAND = np.column_stack([np.zeros(6), np.diag(np.minimum(1.5, 1.3 / (2.0 * np.pi * TONES)))])
"""A motion made by hand: every joint swings at its own frequency for 10 s, as far as the limits allow."""


def gradient() -> None:
    """Six axes, five harmonics, 1000 samples."""
    import pinocchio as pin

    robot = arm()
    base = di.base_parameters(robot)
    family = Fourier(0.1, 5)
    t = np.arange(1000) / 100.0
    objective = Objective(RobotEquations(base, 0.04), family, Criterion.parse("cond"), t)
    x = np.random.default_rng(0).normal(size=6 * family.size) * 0.3
    objective(x)
    ours = min(_timed(lambda: objective(x)) for _ in range(10))
    model = pin.buildModelFromUrdf(str(URDF))
    data = model.createData()
    q, v, a = objective.states(x)
    inertial = [c for c in base.columns if c < robot.tree.inertias.size]

    def once() -> float:
        Y = np.empty((1000, 6, 10 * (model.njoints - 1)))
        for s in range(1000):
            Y[s] = pin.computeJointTorqueRegressor(model, data, q[s], v[s], a[s])
        return float(np.linalg.cond(np.linalg.qr(Y.reshape(6000, -1)[:, inertial], mode="r")))

    with one_blas_thread():
        peer = min(_timed(once) for _ in range(5)) * (x.size + 1)
    print(
        f"gradient: ours {1e3 * ours:.1f} ms; Pinocchio loop, {x.size + 1} evaluations: {1e3 * peer:.0f} ms; "
        f"{peer / ours:.0f} x"
    )


def _timed(work: object) -> float:
    start = perf_counter()
    work()  # type: ignore[operator]
    return perf_counter() - start


def prr2(budget: float = 28.0) -> None:
    """Document 4: 20.78 by pattern search, 28.23 by a local method."""
    from dynident.robots import prr2 as robot

    mechanism = robot.mechanism()
    base = di.base_parameters(mechanism, order=[robot.STANDARD_NAMES[name] for name in robot.BASE_LEADERS])
    settings = {"default": {"acceleration": robot.ACCELERATION_LIMIT}, "margin": 0.0}
    family = Fourier(robot.FUNDAMENTAL, robot.HARMONICS, rest=False)
    found = design(mechanism, settings, "cond", budget, family, base=base)
    worst = min(found.margins().values())
    print(f"2-PRR: cond {found.values()['cond']:.2f} in {found.optimum.seconds:.1f} s, worst margin {worst:.1e}")


def replalink(budget: float = 28.0) -> None:
    """Document 4: box limits; at most 9."""
    from dynident.robots import replalink as robot

    mechanism = robot.mechanism()
    base = di.base_parameters(mechanism, order=[robot.STANDARD_NAMES[name] for name in robot.BASE_LEADERS])
    settings = {"default": {"acceleration": robot.ACCELERATION_LIMIT}, "margin": 0.0, "singularity": 0.02}
    found = design(mechanism, settings, "cond", budget, Fourier(robot.FUNDAMENTAL, robot.HARMONICS, rest=False), base=base)
    print(f"RePlaLink: cond {found.values()['cond']:.2f} in {found.optimum.seconds:.1f} s")


def cft(budget: float = 28.0) -> None:
    """Document 0: Cartesian Fourier series, four harmonics, inside Table 5; 277.33 with the published coefficients."""
    from dynident.robots import cft as robot

    def rows(x: Array, v: Array, a: Array) -> Array:
        return np.asarray(robot.regressor(*robot.joint_motion(x, v, a)).transpose(1, 2, 0))

    t = np.arange(100) / 10.0
    equations = FunctionEquations(rows, 4, tuple(robot.THETA_NAMES[:12]), 4)
    x, v, a = robot.excitation(np.arange(400) / 40.0)
    published = np.linalg.cond(rows(x, v, a).transpose(2, 0, 1).reshape(-1, 12))
    speed, push = np.abs(v).max(axis=0), np.abs(a).max(axis=0)  # no faster than the published motion
    box = robot.LIMITS.T
    objective = Objective(equations, Fourier(0.1, 4, rest=False, convention="position"), Criterion.parse("cond"), t)
    for label, factor in (("no faster than it", 1.0), ("Cartesian limits only", 1e3)):
        limits = MotionLimits(robot.CARTESIAN, box[0], box[1], factor * speed, factor * push, np.full(4, np.inf))
        found = optimise(Problem(objective, limits), time_budget=0.5 * budget)
        ours = objective.value(found.x)["cond"]
        print(f"CFT: published {published:.2f}, ours {ours:.2f} ({label}), {published / ours:.2f} x better")


def six_axes(budget: float = 18.0) -> None:
    """D-optimal motion of the six-axis arm against harmonic sines and the best of 10 000 random feasible motions."""
    robot = arm()
    base = di.base_parameters(robot)
    found = design(robot, LIMITS, "d", budget, Fourier(0.1, 5), base=base, samples=1000, starts=2)
    problem = found.problem
    small = Problem(
        Objective(problem.objective.equations, problem.family, Criterion.parse("d"), np.arange(80) / 8.0), problem.limits
    )
    generator = np.random.default_rng(0)
    best = max((feasible_start(small, generator) for _ in range(1000)), key=lambda x: -small.objective.cost(x))
    random = found.values(Trajectory.from_vector(problem.family, best))
    ours = found.values()
    print(f"arm: D {ours['d']:.1f} in {found.optimum.seconds:.1f} s, cond {ours['cond']:.0f}")
    hand = found.values(Trajectory(SINES, HAND))
    for label, other in (("best of 1000 random", random), ("sines by hand", hand)):
        better, more = other["cond"] / ours["cond"], ours["d"] - other["d"]
        print(f"arm: {label}: D {other['d']:.1f}, cond {other['cond']:.0f}; ours {better:.1f} x lower cond, D +{more:.1f}")
    print(f"arm: margin {min(found.margins().values()):.3f}")


def proof(budget: float = 18.0) -> None:
    """Mean relative standard deviation of base parameters: designed against a hand-made motion of equal length."""
    robot = arm()
    base = di.base_parameters(robot)
    size = np.maximum(np.abs(base.values(robot.parameters.values)), 0.01)
    found = design(robot, LIMITS, "a", budget, Fourier(0.1, 10), base=base, starts=2, scale=size.tolist())
    hand = Trajectory(SINES, HAND)
    equations = RobotEquations(base)
    ratio = [expected_deviations(equations, c.sample(100.0), np.ones(6)) / size for c in (hand, found.trajectory)]
    print(f"proof: mean relative deviation hand-made {ratio[0].mean():.3g}, designed {ratio[1].mean():.3g}: "
          f"{ratio[0].mean() / ratio[1].mean():.1f} x smaller (median {np.median(ratio[0] / ratio[1]):.1f} x)")  # fmt: skip


CASES = {"gradient": gradient, "prr2": prr2, "replalink": replalink, "cft": cft, "arm": six_axes, "proof": proof}

if __name__ == "__main__":
    for case in sys.argv[1:] or CASES:
        CASES[case]()
