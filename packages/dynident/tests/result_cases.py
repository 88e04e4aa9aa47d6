"""One small example of every result of the core, by the name of its class."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from identify_cases import RRR, arm, simulated_log
from small_robots import arm3_machine, platform

import dynident as di
from dynident import excitation, friction, simulate, validate
from dynident.excitation.experiment import Experiment
from dynident.friction.dynamic import Response
from dynident.friction.law import Dissipation
from dynident.identify import DriveGains, Payload, Population, Prediction, Score, fit_friction
from dynident.identify.estimators.bias import LeastSquaresBias
from dynident.identify.estimators.output_error import Visible
from dynident.identify.friction.choice import Choice, FrictionChoice
from dynident.identify.friction.fitting import Axis, AxisFit
from dynident.mechanics.partitions import Partition, Partitions
from dynident.monitor import Monitor, MonitorRecord
from dynident.report import Identification
from dynident.trajectory import Fourier, Trajectory
from dynident.validate.comparison import ComparisonRow

T = np.linspace(0.0, 1.0, 300)
WAVE = np.column_stack([np.sin(T), np.cos(T)])
ONES = np.ones(2)


@cache
def fitted() -> tuple[di.Fit, Score]:
    robot = arm(RRR)
    fit = di.WLS().fit(di.Regression.from_log(robot, simulated_log(robot, noise=0.1))).result_
    return fit, fit.score(simulated_log(robot, seed=2, noise=0.1))


def verdict() -> validate.Verdict:
    fit, score = fitted()
    return validate.judge(fit, [score])


def plan() -> di.Plan:
    curve = Trajectory.from_vector(Fourier(0.25, 2), np.full(3, 0.1))
    return di.Plan("arm", ("a",), [excitation.Stage("one", "training", curve)], 2, 100.0, [1.0], [5.0], [0.0])


@cache
def design() -> excitation.Design:
    limits = {"lower": -1.5, "upper": 1.5, "velocity": 2.0, "acceleration": 8.0, "torque": 60.0}
    return excitation.design(arm(RRR), {"default": limits}, family=Fourier(0.25, 2), starts=1, workers=1, iterations=2)


@cache
def run() -> simulate.Run:
    q = np.array([[0.0, 0.3, 0.3], [0.1, 0.4, 0.3]])
    return arm3_machine().simulate(di.Motion([0.0, 0.1], q, 0.0 * q, 0.0 * q))


def tracking() -> simulate.TrackingError:
    still = di.Motion(T, 0.0 * WAVE, WAVE, WAVE)
    return simulate.tracking_error(still, di.Motion(T, WAVE, WAVE, WAVE), ("a", "b"))


def record() -> MonitorRecord:
    fit, _ = fitted()
    return Monitor(fit).run(simulated_log(fit.mechanism, 3.0, seed=3, noise=0.1))


def payload() -> Payload:
    known = np.array([2.0, 0.1, 0.0, 0.2, 0.05, 0.0, -0.01, 0.06, 0.0, 0.04])
    return Payload(known, 1e-6 * np.eye(10), ("m_tool",), np.array([2.0]), np.array([1e-3]), "tool", 1.0)


@cache
def choice() -> Choice:
    v = np.sin(np.linspace(0.0, 20.0, 400))
    tau = np.sign(v) + 0.3 * v + 0.01 * np.random.default_rng(0).normal(size=v.size)
    return fit_friction(None, Axis(tau, v), ("coulomb", "coulomb + viscous")).choice


def axis_fit() -> AxisFit:
    v = np.sin(np.linspace(0.0, 20.0, 400))
    return fit_friction(None, Axis(np.sign(v) + 0.3 * v + 0.01 * np.cos(7.0 * v), v), friction.Coulomb() + friction.Viscous())


def bias() -> LeastSquaresBias:
    shares = {"joint_1": 0.1}
    white = {"joint_1": (0.5, np.nan)}
    return LeastSquaresBias(("a", "b"), ONES, 0.1 * ONES, shares, white, 0.1 * ONES, 2.0, 2, 0.4, ("fine",))


def comparison() -> validate.Comparison:
    fit, _ = fitted()
    rows = ComparisonRow("WLS", fit, 0.1, 0.2, 0.9, 1.0, ""), ComparisonRow("IV", None, *[np.nan] * 4, "no")
    return validate.Comparison("arm", ("run",), ("other",), rows, bias(), 0.5)


def population() -> Population:
    return Population("arm", ("a", "b"), ONES, np.eye(2), 5, np.ones((2, 2)))


CASES: dict[str, Callable[[], Any]] = {
    "Design": design,
    "Experiment": lambda: Experiment(design(), {"plan": plan()}, "limits of the test", ("assumed",)),
    "Plan": plan,
    "Exported": lambda: di.export.Exported("mujoco", ("robot.xml",), "mujoco", 1e-12, ("note",)),
    "Dissipation": lambda: Dissipation(((0.0, 0.1),), -0.2, 0.05, 3.0),
    "Response": lambda: Response(T, WAVE[:, 0], WAVE[:, 1], WAVE),
    "AxisFit": axis_fit,
    "BaseParameters": lambda: fitted()[0].base,
    "LeastSquaresBias": bias,
    "Choice": choice,
    "DriveGains": lambda: DriveGains(("a", "b"), ONES, 0.01 * np.eye(2), ONES, 0.1 * ONES),
    "Fit": lambda: fitted()[0],
    "FrictionChoice": lambda: FrictionChoice({"a": friction.Coulomb()}, {"a": choice()}),
    "Inspection": lambda: di.inspect(di.Log(T, ("a", "b"), WAVE, 0.0 * WAVE, "joint_torque")),
    "Metrics": lambda: fitted()[1].metrics,
    "Partitions": lambda: Partitions("arm", (Partition(("a",), 1.0, 2.0, np.nan),)),
    "Payload": payload,
    "Population": population,
    "Prediction": lambda: Prediction(T, WAVE, np.where(WAVE > 0.5, np.nan, 0.1)),
    "Score": lambda: fitted()[1],
    "Visible": lambda: Visible(("a", "b"), ONES, ({"a": 1.0, "b": -1.0},), ("a and b together",)),
    "Mechanism": platform,
    "MonitorRecord": record,
    "Identification": lambda: Identification(fitted()[0], (fitted()[1],), verdict()),
    "Prepared": lambda: di.signals.prepare(simulated_log(arm(RRR), 5.0, noise=0.01)),
    "Quality": lambda: di.signals.diagnose(di.Log(T, ("a", "b"), WAVE, 0.0 * WAVE, "joint_torque")),
    "Run": run,
    "TrackingError": tracking,
    "Comparison": comparison,
    "CrossValidation": lambda: validate.CrossValidation(("a", "b"), 0.1 * ONES, np.array([[1.0, np.nan], ONES]), 0.2),
    "Verdict": verdict,
}
