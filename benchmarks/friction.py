"""Speed of friction identification: passes of variable projection against the linear problem, steps of the Kalman filter."""

from __future__ import annotations

from time import perf_counter

import numpy as np

import dynident as di
from benchmarks.arms import NOISE, RATE, arm, record, truth
from benchmarks.cases import Result
from benchmarks.timing import interleaved
from dynident.friction import Sigmoid, Tanh, Viscous
from dynident.identify import Recording, fit_friction
from dynident.identify.friction.problem import Evaluator, Scale, assemble, shape_bounds
from dynident.signals.filters import Decimator
from dynident_lab.testbench import FrictionFilter

BETA = np.array([12.0, 8.0, 20.0, 15.0, 30.0, 10.0])  # [s/rad]


def variable_projection(samples: int, repeats: int) -> list[Result]:
    """One iteration (residual and exact gradient of 6 shape parameters) against the whole linear fit, and a whole search."""
    robot, data = arm(), record(arm(), samples)
    phi = truth(robot)
    fc = np.array([phi[robot.parameters.index(f"fc_{joint}")] for joint in robot.joint_names])
    v = data.motion.v
    effort = data.effort + fc * (np.tanh(BETA * v) - np.sign(v))
    base = di.base_parameters(robot)
    laws = (Viscous() + Tanh(),) * robot.dof
    recording = Recording(data.motion, effort, Decimator(1, 1.0))
    rubbing = robot.with_friction(dict(zip(robot.joint_names, laws, strict=True)))
    problem, _ = assemble(rubbing, [recording], "gls").problem()
    scale = Scale(shape_bounds(laws, list(v.T), problem.names))
    evaluator = Evaluator(problem, scale, np.array(NOISE))
    step = iter(range(1_000_000))

    def iteration() -> object:
        return evaluator.projection(scale.u(BETA) + 1e-6 * next(step))  # never the same point: no cached result

    def linear() -> object:
        return di.WLS().fit(di.Regression.from_motion(robot, data.motion, effort, base))

    plain, bent = interleaved(linear, iteration, repeats)
    start = perf_counter()
    fit = fit_friction(robot, Recording(data.motion, effort), Viscous() + Tanh())
    whole = perf_counter() - start
    names = [f"tanh.beta_{joint}" for joint in robot.joint_names]
    shown = np.array([name in fit.base.leaders for name in names])  # the others are held: undetermined by these data
    at = [fit.base.leaders.index(name) for name, known in zip(names, shown, strict=True) if known]
    beta, std, wanted = fit.values[at], fit.std[at], np.asarray(BETA)[shown]
    if not np.all(np.abs(beta - wanted) < 5.0 * std):
        raise AssertionError(f"variable projection found beta = {beta} instead of {wanted}, beyond its uncertainty {std}")
    detail = f"iteration {1e3 * bent:.0f} ms = {bent / plain:.2f} linear fits of {1e3 * plain:.0f} ms (20 allowed)"
    return [
        Result(f"variable projection, iterations per 20 linear fits, {samples} samples", 20.0 * plain / bent, "x", 1.0, detail),
        Result(
            "variable projection, whole search from nothing",
            whole,
            "s",
            None,
            f"6 shape parameters, {len(at)} of which the data show, with their covariance",
        ),
    ]


def kalman(samples: int, repeats: int) -> list[Result]:
    """Steps per second of the filter of one axis with two sigmoids, against the required 50 000."""
    t = np.arange(samples) / RATE
    v, q = np.cos(0.9 * t) + 0.3 * np.cos(5.1 * t), np.sin(0.9 * t) / 0.9 + 0.3 * np.sin(5.1 * t) / 5.1
    a = -0.9 * np.sin(0.9 * t) - 1.53 * np.sin(5.1 * t)
    tau = 1.7 * a + Sigmoid(2).value(v, [9.1, 18.5, -11.2, 137.0, 170.0])
    noisy = q + 5e-6 * np.random.default_rng(0).normal(size=samples)
    ekf = FrictionFilter(1.3, float(np.abs(tau).max()), 1.7, 2, 5e-6)

    def run() -> object:
        return ekf.run(t, tau, noisy, passes=1)

    best, _ = interleaved(run, run, repeats)
    rate = 3 * samples / best  # three initial values, and often the best point again, which is not counted
    few = min(samples, 20_000)
    ekf.reset()
    start = perf_counter()
    for sample in zip(t[:few], tau[:few], noisy[:few], strict=True):
        ekf.step(*sample)
    single = few / (perf_counter() - start)
    detail = f"{rate:.0f} steps/s off line; {single:.0f} steps/s by single calls of step() on line"
    return [Result("Kalman filter, times 50 000 steps/s per axis", rate / 50_000.0, "x", 1.0, detail)]


def friction(samples: int, repeats: int) -> list[Result]:
    """Both, for the list of all benchmarks."""
    return [*variable_projection(samples, repeats), *kalman(samples, repeats)]
