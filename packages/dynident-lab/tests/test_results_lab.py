"""Every result of dynident-lab has the same methods, comes back from its file, and is copied and pickled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from identify_cases import RRR, arm, evidence
from result_cases import ONES, WAVE, population, verdict
from result_cases import T as SECOND
from result_checks import check_drawn, check_former_kinds, check_kinds, check_result, results_of, shown_otherwise
from test_testbench_plateaus import campaign

import dynident as di
from dynident import drive
from dynident.friction import Coulomb, LuGre
from dynident_lab import fleet
from dynident_lab import testbench as bench
from dynident_lab.joint_reactions import Conditioning
from dynident_lab.servo import Bode, MachineFit, Margins, MotorLoad, SineResponse, Sizing, Sweep, TorqueSplit, step_metrics
from dynident_lab.servo.chain import modes
from dynident_lab.thermal import SecondOrder, WarmFriction, Warming

T = np.arange(0.0, 3600.0, 240.0)


def history(name: str, start: float = 2.0) -> bench.FrictionHistory:
    rng = np.random.default_rng(len(name))
    return bench.FrictionHistory(t=T, friction=start * np.exp(-T / 900.0) + 5.0 + 0.01 * rng.normal(size=T.size), name=name)


@cache
def study() -> bench.FrictionStudy:
    robot = di.Mechanism("bench", (di.Body("base"), di.Body("link")), (di.Joint("axis", "revolute", "base", "link"),))
    return bench.friction_study(robot, campaign(np.random.default_rng(3), cycles=5))


def maintenance() -> bench.Maintenance:
    return bench.FaultDetector(bench.WarmupTime()).fit([history("a"), history("bb")]).check(history("ccc", 2.5))


def repeatability() -> bench.Repeatability:
    return bench.repeatability([e for h in (history("a"), history("bb")) for e in bench.estimates_of(h)])


def thermal() -> bench.ThermalFit:
    model = SecondOrder(alpha=-0.01, beta=1.0, K1=2.0, K2=1.0, C1=500.0, C2=2000.0)
    test = bench.ThermalTest(T, 1.0 - 0.2 * (1.0 - np.exp(-T / 900.0)), 5.0)
    return bench.ThermalFit(
        model, True, {"beta": 1.0}, {"beta": float("inf")}, (test.ratio,), 0.01, 0.02, 1e-3, 5, ("note",), (test,)
    )


def single_axis() -> bench.SingleAxis:
    return bench.SingleAxis("axis", ("J", "Qa"), ("kg m^2", "N m"), np.array([1.0, 0.0]), np.array([0.1, 0.2]), 0.01, 3.0)


def lugre() -> bench.LuGreFit:
    v = np.linspace(-1.0, 1.0, 400)
    static = bench.fit_static(v, np.sign(v) * (1.0 + 0.5 * np.exp(-((v / 0.1) ** 2))) + 0.3 * v)
    law = LuGre(sigma0=1e4, sigma1=10.0, fc=1.0, fs=1.5, vs=0.1)
    return bench.LuGreFit(law, {"sigma0": 10.0, "sigma1": float("inf")}, static, 0.01, 20.0, ("note",))


def proof() -> bench.TrackingProof:
    t = np.linspace(0.0, 1.0, 300)
    wave = np.sin(np.outer(t, np.arange(1.0, 4.0)))
    names = ("feedback alone", "catalogue model", "identified model")
    trials = tuple(bench.TrackingTrial(name, "sweep", t, wave / (k + 1), wave, 0.1 * wave) for k, name in enumerate(names))
    fit = di.OLS().fit(evidence(arm(RRR), 400, noise=0.1)[0]).result_
    return bench.TrackingProof("arm", ("a", "b", "c"), ("rad",) * 3, "N m", trials, fit)


def heating() -> bench.JointHeating:
    t = np.arange(0.0, 3600.0, 300.0)
    fits = (thermal(),)
    return bench.JointHeating("axis", "N m", 5.0, (1.0, 0.5), t, 1.0 - 1e-5 * t, 0.01 + 0.0 * t, t, 5.0 + 0.0 * t, fits)


def whole() -> bench.CampaignStudy:
    return bench.CampaignStudy(study(), (heating(),), ("note",))


def cycle_fits() -> bench.CycleFits:
    values = np.array([[1.0, 2.0], [1.1, 2.0]])
    errors = np.array([0.01, float("nan")])
    return bench.CycleFits(
        "arm", "run", "polynomial", (0, 1), 300.0 * np.arange(2), ("a", "b"), values, 0.1 * values, *[errors] * 2
    )


def sizing() -> Sizing:
    load = MotorLoad("m1", *[1.0 / 3.0] * 10, float("inf"), {"current": 0.5})
    return Sizing((load, replace(load, use={})), 2.0)


def robot_estimate() -> fleet.RobotEstimate:
    period = fleet.RobotPeriod("may", 1.0, 20.0, ONES, np.eye(2))
    numbers = (np.eye(2), ONES, ONES, 0.1 * ONES, 0.1, float("nan"))
    return fleet.RobotEstimate("s1", "arm", ("run.csv",), 100, *numbers, verdict(), 20.0, 0.0, (period,))


def fleet_type() -> fleet.FleetType:
    one = fleet.Deviation("s1", "arm", "m_1", "kg", 0.1, 0.01, 1.0, 10.0)
    return fleet.FleetType("arm", population(), ("a", "b"), ONES, (one,), (), 4.0, 4.0, 0.01, {"s1": 0.1}, {"s1": 20.0})


def fleet_result() -> fleet.FleetResult:
    log = fleet.LogRecord("run.csv", "arm", "s1", True, 100, 1000, "00", "key", "", "2026-01-01")
    return fleet.FleetResult((robot_estimate(),), (log,), (fleet_type(),), {"arm": {"band": 5.0}}, {"x.csv": "no"}, {}, "")


def sines() -> SineResponse:
    answer = np.array([1.0 + 0.0j, 0.5 - 0.5j])
    others = (answer[:, None], 0.1 * ONES, 0.1 * ONES, 0.0 * ONES)
    return SineResponse(np.array([1.0, 2.0]), answer, *others, "a", 0.1, "arm", False, ("m",), name="loop")


def cooled() -> WarmFriction:
    return WarmFriction(ONES, 2.0 * ONES, warming())


def warming() -> Warming:
    return Warming(np.array([0.0, 1.0]), 20.0 * ONES, ONES, ONES, np.full((2, 1), 20.0))


def sweep() -> Sweep:
    settings = (
        {"gain": 2, "limit": np.inf, "law": Coulomb()},
        {"gain": 3, "limit": 0.1, "law": np.array([1.0, 2.0])},
    )
    return Sweep(settings, ({"value": 1.5}, {"value": float("nan")}), ("", "unstable"))


CASES: dict[str, Callable[[], Any]] = {
    "CampaignStudy": whole,
    "Checkup": lambda: bench.check_robot(study(), [study()], compensation="time"),
    "CycleFits": cycle_fits,
    "FrictionCompensation": lambda: bench.FrictionCompensation.of(whole()),
    "JointHeating": heating,
    "FrictionCurve": lambda: study().joints[0].curves.curves[0],
    "FrictionCurves": lambda: study().joints[0].curves,
    "FrictionHistory": lambda: history("a"),
    "FrictionStudy": study,
    "JointStudy": lambda: study().joints[0],
    "LuGreFit": lugre,
    "Maintenance": maintenance,
    "Plateaus": lambda: bench.find_plateaus(campaign(np.random.default_rng(3), cycles=1)[0], "axis"),
    "Repeatability": repeatability,
    "SingleAxis": single_axis,
    "Spread": lambda: bench.Spread(1.0, 0.1, 0.2, 0.3, 0.5, float("nan"), 12),
    "ThermalFit": thermal,
    "ThermalTest": lambda: thermal().tests[0],
    "TrackingProof": proof,
    "Warmup": lambda: bench.fit_warmup(T, history("a").friction),
    "Margins": lambda: Margins(float("inf"), 60.0, float("nan"), 5.0),
    "Bode": lambda: Bode(np.array([1.0, 2.0]), np.array([1.0 + 0.0j, 0.5 - 0.5j]), name="plant"),
    "Modes": lambda: modes(drive.Chain((1.0, 2.0), (100.0,), (0.1,))),
    "FleetResult": fleet_result,
    "FleetType": fleet_type,
    "RobotEstimate": robot_estimate,
    "WarmFriction": cooled,
    "Warming": warming,
    "Conditioning": lambda: Conditioning(ONES, 2.0 * ONES, np.array([1.0, np.inf])),
    "MachineFit": lambda: MachineFit(
        ("gain",), ONES[:1], ONES[:1], 0.1 * ONES[:1], 0.2, 0.1, ("a", "b"), SECOND, WAVE, WAVE, WAVE, True
    ),
    "SineResponse": sines,
    "Sizing": sizing,
    "Sweep": sweep,
    "TorqueSplit": lambda: TorqueSplit(("a", "b"), SECOND, {"inertia": 0.6 * WAVE, "gravity": 0.3 * WAVE}, WAVE),
    "StepMetrics": lambda: step_metrics(SECOND, 1.0 - np.exp(-SECOND)),
}


def test_no_result_is_forgotten() -> None:
    assert results_of("dynident_lab") == {*CASES, "TemperatureComparison"}  # whose fits are those of dynident.identify


def test_a_sweep_from_its_file_has_numbers_and_texts(tmp_path: Path) -> None:
    again = di.load(CASES["Sweep"]().save(tmp_path / "sweep.json"))
    assert again.settings[0] == {"gain": 2, "limit": np.inf, "law": str(Coulomb())}
    assert again.settings[1]["law"] == [1.0, 2.0] and np.isnan(again.column()[1])


def test_what_is_summed_up_or_drawn_is_a_result() -> None:
    assert shown_otherwise("dynident_lab") == {"CampaignLog", "KalmanResult", "TipMotion", "TransferFunction"}


def test_names_in_files_old_and_new_are_of_one_class_each() -> None:
    check_former_kinds("dynident_lab")
    check_kinds("dynident_lab")


@pytest.mark.parametrize("name", CASES)
def test_results_are_saved_loaded_copied_pickled_and_shown(name: str, tmp_path: Path) -> None:
    check_result(CASES[name](), tmp_path)


@pytest.mark.parametrize("name", CASES)
def test_results_are_drawn_without_arguments(name: str) -> None:
    check_drawn(CASES[name]())
