"""One small example of every public result by the name in its file; test_testbench_results has those of the test bench."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from identify_cases import RRR, arm, simulated_log

import dynident as di
from dynident import drive, excitation, friction, simulate, validate
from dynident.friction.dynamic import Response
from dynident.friction.passivity import Dissipation
from dynident.identify import DriveGains, Payload, Population, Prediction, Score, choose_law, fit_axis
from dynident.identify.estimators.bias import BiasDiagnosis
from dynident.identify.estimators.output_error import Visible
from dynident.identify.friction.axis import AxisFit
from dynident.identify.friction.choice import Choice, FrictionChoice
from dynident.identify.partitions import Partition, Partitions
from dynident.monitor import Monitor, MonitorRecord
from dynident.report import Identification
from dynident.trajectory import Fourier, Trajectory
from dynident.validate.comparison import ComparisonRow
from dynident_lab import fleet
from dynident_lab.joint_reactions import Conditioning
from dynident_lab.servo import Bode, MachineFit, Margins, MotorLoad, SineResponse, Sizing, step_metrics
from dynident_lab.servo.chain import modes
from dynident_lab.thermal import WarmFriction, Warming
from dynident_papers import reproduce
from dynident_papers.flexures import FlexureRequirements
from dynident_papers.identify import Individual, JointReduction, Reduction
from dynident_papers.robots import dualv, rrr
from dynident_papers.servo import ActuatorFit, Gains, ModalFit, Trial, ZoneTuning, fit_modal
from dynident_papers.workspace import Singularity, WorkspaceMap, workspace_map

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
    return rrr.machine().simulate(di.Motion([0.0, 0.1], q, 0.0 * q, 0.0 * q))


def modal_fit() -> ModalFit:
    s = 2j * np.pi * np.linspace(2.0, 40.0, 80)
    peak = 0.5 + 0.3 * s**2 / (s**2 + 2.0 * 0.02 * 80.0 * s + 80.0**2)
    return fit_modal(s.imag / (2.0 * np.pi), peak)


def sizing() -> Sizing:
    load = MotorLoad("m1", *[1.0 / 3.0] * 10, float("inf"), {"current": 0.5})
    return Sizing((load, replace(load, use={})), 2.0)


def sweep() -> simulate.Sweep:
    settings = (
        {"gain": 2, "limit": np.inf, "law": friction.Coulomb()},
        {"gain": 3, "limit": 0.1, "law": np.array([1.0, 2.0])},
    )
    return simulate.Sweep(settings, ({"value": 1.5}, {"value": float("nan")}), ("", "unstable"))


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
    laws = {"dry": friction.Coulomb(), "usual": friction.Coulomb() + friction.Viscous()}
    return choose_law(tau, laws, v)


def axis_fit() -> AxisFit:
    v = np.sin(np.linspace(0.0, 20.0, 400))
    return fit_axis(np.sign(v) + 0.3 * v + 0.01 * np.cos(7.0 * v), friction.Coulomb() + friction.Viscous(), v)


def individual() -> Individual:
    return Individual(
        ("m1", "m2", "m3"),
        np.array([[1.0, 0.5, 0.0], [0.0, 1.0, 2.0]]),
        ONES,
        3,
        np.array([[0.5, 1.0, 0.0], [1.0, 0.0, 0.5]]),
        np.array([[True, True, False], [True, False, True]]),
        np.array([0.5, 0.5]),
        np.eye(2),
        np.array([True, True, True]),
    )


def bias() -> BiasDiagnosis:
    shares = {"joint_1": 0.1}
    return BiasDiagnosis(("a", "b"), ONES, 0.1 * ONES, shares, {"joint_1": (0.5, np.nan)}, 0.1 * ONES, 2.0, 2, 0.4, ("fine",))


def comparison() -> validate.Comparison:
    fit, _ = fitted()
    rows = ComparisonRow("WLS", fit, 0.1, 0.2, 0.9, 1.0, ""), ComparisonRow("IV", None, *[np.nan] * 4, "no")
    return validate.Comparison("arm", ("run",), ("other",), rows, bias(), 0.5)


def robot_estimate() -> fleet.RobotEstimate:
    period = fleet.RobotPeriod("may", 1.0, 20.0, ONES, np.eye(2))
    numbers = (np.eye(2), ONES, ONES, 0.1 * ONES, 0.1, float("nan"))
    return fleet.RobotEstimate("s1", "arm", ("run.csv",), 100, *numbers, verdict(), 20.0, 0.0, (period,))


def population() -> Population:
    return Population("arm", ("a", "b"), ONES, np.eye(2), 5, np.ones((2, 2)))


def fleet_type() -> fleet.FleetType:
    one = fleet.Deviation("s1", "arm", "m_1", "kg", 0.1, 0.01, 1.0, 10.0)
    return fleet.FleetType("arm", population(), ("a", "b"), ONES, (one,), (), 4.0, 4.0, 0.01, {"s1": 0.1}, {"s1": 20.0})


def fleet_result() -> fleet.FleetResult:
    log = fleet.LogRecord("run.csv", "arm", "s1", True, 100, 1000, "00", "key", "", "2026-01-01")
    return fleet.FleetResult((robot_estimate(),), (log,), (fleet_type(),), {"arm": {"band": 5.0}}, {"x.csv": "no"}, {}, "")


def workspace() -> WorkspaceMap:
    robot = di.Mechanism.from_dh([(0.3, 0, 0, 0), (0.2, 0, 0, 0)])
    return workspace_map(robot, robot.bodies[-1].name, ranges=[(-1.0, 1.0), (0.2, 1.0)], size=4)


def reduction() -> Reduction:
    part = JointReduction("a", ("x", "y"), ONES, np.eye(2), ("y",), (10.0, 1.0))
    return Reduction("arm", ("x", "y"), ONES[:, None], 0.1, 10.0, (part,))


def sines() -> SineResponse:
    answer = np.array([1.0 + 0.0j, 0.5 - 0.5j])
    others = (answer[:, None], 0.1 * ONES, 0.1 * ONES, 0.0 * ONES)
    return SineResponse(np.array([1.0, 2.0]), answer, *others, "a", 0.1, "arm", False, ("m",), name="loop")


def cooled() -> WarmFriction:
    return WarmFriction(ONES, 2.0 * ONES, warming())


def warming() -> Warming:
    return Warming(np.array([0.0, 1.0]), 20.0 * ONES, ONES, ONES, np.full((2, 1), 20.0))


def zone() -> ZoneTuning:
    gains = Gains(2.0, 0.5)
    return ZoneTuning(gains, 0.03, 0.2, (Trial(gains, "integral", True, 0.03, 0.2),), "")


def table() -> reproduce.Table:
    return reproduce.Table.of("masses", ("m1", "m2"), (1.04, 2.0), (1.0, None), "kg", "rounded")


CASES: dict[str, Callable[[], Any]] = {
    "control.Margins": lambda: Margins(float("inf"), 60.0, float("nan"), 5.0),
    "control.ZoneTuning": zone,
    "drive.ActuatorFit": lambda: ActuatorFit(
        ("J", "fc"), ONES, np.eye(2), friction.Coulomb(), 0.1, 0.01, 300, T, WAVE[:, 0], WAVE[:, 0]
    ),
    "drive.Bode": lambda: Bode(np.array([1.0, 2.0]), np.array([1.0 + 0.0j, 0.5 - 0.5j]), name="plant"),
    "drive.ModalFit": modal_fit,
    "drive.Modes": lambda: modes(drive.Chain((1.0, 2.0), (100.0,), (0.1,))),
    "excitation.Design": design,
    "excitation.Plan": plan,
    "export.Exported": lambda: di.export.Exported("mujoco", ("robot.xml",), "mujoco", 1e-12, ("note",)),
    "fleet.FleetResult": fleet_result,
    "fleet.FleetType": fleet_type,
    "fleet.RobotEstimate": robot_estimate,
    "friction.Dissipation": lambda: Dissipation(((0.0, 0.1),), -0.2, 0.05, 3.0),
    "friction.Response": lambda: Response(T, WAVE[:, 0], WAVE[:, 1], WAVE),
    "friction.WarmFriction": cooled,
    "friction.Warming": warming,
    "identify.AxisFit": axis_fit,
    "identify.BaseParameters": lambda: fitted()[0].base,
    "identify.BiasDiagnosis": bias,
    "identify.Choice": choice,
    "identify.DriveGains": lambda: DriveGains(("a", "b"), ONES, 0.01 * np.eye(2), ONES, 0.1 * ONES),
    "identify.Fit": lambda: fitted()[0],
    "identify.FrictionChoice": lambda: FrictionChoice({"a": friction.Coulomb()}, {"a": choice()}),
    "identify.Individual": individual,
    "identify.JointReduction": lambda: reduction().joints[0],
    "identify.Metrics": lambda: fitted()[1].metrics,
    "identify.Partitions": lambda: Partitions("arm", (Partition(("a",), 1.0, 2.0, np.nan),)),
    "identify.Payload": payload,
    "identify.Population": population,
    "identify.Prediction": lambda: Prediction(T, WAVE, np.where(WAVE > 0.5, np.nan, 0.1)),
    "identify.Reduction": reduction,
    "identify.Score": lambda: fitted()[1],
    "identify.Statistics": lambda: individual().statistics(),
    "identify.Visible": lambda: Visible(("a", "b"), ONES, ({"a": 1.0, "b": -1.0},), ("a and b together",)),
    "mechanics.Conditioning": lambda: Conditioning(ONES, 2.0 * ONES, np.array([1.0, np.inf])),
    "mechanics.FlexureRequirements": lambda: FlexureRequirements(
        "arm", ("a",), ("N m/rad",), ONES[:1], ("m",), ("N m",), WAVE[:, :1], WAVE[:, :1], WAVE[:, 1:]
    ),
    "mechanics.Singularity": lambda: Singularity(ONES, ONES, ONES, np.array([0.5, np.nan])),
    "mechanics.WorkspaceMap": workspace,
    "mechanism.Mechanism": dualv.mechanism,
    "monitor.MonitorRecord": record,
    "report.Identification": lambda: Identification(fitted()[0], (fitted()[1],), verdict()),
    "reproduce.Reproduction": lambda: reproduce.Reproduction((table(),), {}, ("note",), "one", "numbers", "[Key]"),
    "reproduce.Table": table,
    "signals.Prepared": lambda: di.signals.prepare(simulated_log(arm(RRR), 5.0, noise=0.01)),
    "signals.Quality": lambda: di.signals.diagnose(di.Log(T, ("a", "b"), WAVE, 0.0 * WAVE, "joint_torque")),
    "simulate.MachineFit": lambda: MachineFit(
        ("gain",), ONES[:1], ONES[:1], 0.1 * ONES[:1], 0.2, 0.1, ("a", "b"), T, WAVE, WAVE, WAVE, True
    ),
    "simulate.Run": run,
    "simulate.SineResponse": sines,
    "simulate.Sizing": sizing,
    "simulate.StepMetrics": lambda: step_metrics(T, 1.0 - np.exp(-T)),
    "simulate.Sweep": sweep,
    "simulate.TorqueSplit": lambda: simulate.TorqueSplit(("a", "b"), T, {"inertia": 0.6 * WAVE, "gravity": 0.3 * WAVE}, WAVE),
    "simulate.TrackingError": tracking,
    "validate.Comparison": comparison,
    "validate.CrossValidation": lambda: validate.CrossValidation(("a", "b"), 0.1 * ONES, np.array([[1.0, np.nan], ONES]), 0.2),
    "validate.HoldOut": lambda: validate.HoldOut(*fitted()),
    "validate.RobotCheck": lambda: validate.RobotCheck(
        "arm", ("a",), verdict().checks, {"low": np.inf}, WAVE[:, :1], WAVE[:, 0], ("note",)
    ),
    "validate.Verdict": verdict,
}
