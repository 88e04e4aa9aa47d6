"""Robots with loops: DualV (4 motors, 3 degrees of freedom) against the same equations through per-sample NumPy."""

from __future__ import annotations

from time import perf_counter

import numpy as np
from numpy.typing import NDArray

import dynident as di
from benchmarks.cases import Result, agree, compare
from benchmarks.timing import peak_extra
from dynident.mechanics import actuator_torques, close_positions
from dynident_papers.robots import dualv

Array = NDArray[np.float64]


def motion(samples: int) -> di.Motion:
    """Return a smooth motion of the platform at 1 kHz."""
    t = np.arange(samples) * 1e-3
    rates, sizes, phases = np.array([3.0, 5.0, 4.0]), np.array([0.05, 0.04, 0.4]), np.array([0.0, 1.0, 0.5])
    angle = t[:, None] * rates + phases
    q = sizes * (np.sin(angle) - np.sin(phases))
    return di.Motion(t, q, sizes * rates * np.cos(angle), -sizes * rates**2 * np.sin(angle))


def per_sample(run: di.Motion, torques: Array) -> Array:
    """Return the estimate of the usual method: sample by sample in NumPy, then base columns and least squares."""
    rows, targets = [], []
    for q, v, a, tau in zip(run.q, run.v, run.a, torques, strict=True):
        projector, regressor = dualv.case_1(q[None], v[None], a[None])
        rows.append(regressor[0])
        targets.append(projector[0] @ tau)
    W, y = np.concatenate(rows), np.concatenate(targets)
    beta: Array = W @ np.linalg.lstsq(W, y, rcond=None)[0]
    return beta.reshape(-1, 3)


def loops(samples: int, repeats: int) -> list[Result]:
    """Projected regressor, base parameters and WLS of DualV; closure alone; memory."""
    robot = dualv.mechanism()
    run = motion(samples)
    base = di.base_parameters(robot)
    torques = actuator_torques(robot, run.q, di.inverse_dynamics(robot, run))
    torques = torques + np.random.default_rng(0).normal(0.0, 0.05, torques.shape)

    def ours() -> di.Fit:
        return di.WLS().fit(di.Regression.from_motion(robot, run, torques, base, projection="independent")).result_

    few = max(200, samples // 50)
    share = samples // few
    short, measured = run[::share], torques[::share]  # over the whole motion, otherwise the equations are nearly singular
    estimate = di.OLS().fit(di.Regression.from_motion(robot, short, measured, base, projection="independent")).result_
    agree(estimate.predict(short).effort, per_sample(short, measured), 1e-6, "DualV")
    result = compare("DualV: regression data + WLS", lambda: per_sample(short, measured), ours, repeats, None, "NumPy")
    slow, fast = (float(x.split()[-2]) for x in result.detail.split(","))
    results = [Result("DualV: regression data + WLS", slow * share / fast, "x", 20.0, f"{few} samples scaled; {result.detail}")]
    best = np.inf
    for _ in range(max(repeats, 3)):
        start = perf_counter()
        close_positions(robot, run.q)
        best = min(best, perf_counter() - start)
    results.append(Result("DualV: closure per sample", best / samples * 1e6, "us", 5.0, f"{samples} samples, one thread"))
    results.append(Result("DualV: extra memory", peak_extra(ours), "MB", 50.0, f"{samples} samples"))
    return results
