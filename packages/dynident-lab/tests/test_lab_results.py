"""Results of this package by the name in their file: they are saved, loaded, copied, pickled and shown."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from result_cases import check_result, population, verdict

import dynident as di
from dynident import drive
from dynident_lab import fleet
from dynident_lab.joint_reactions import Conditioning
from dynident_lab.servo import Bode, MachineFit, Margins, MotorLoad, SineResponse, Sizing, step_metrics
from dynident_lab.servo.chain import modes
from dynident_lab.thermal import WarmFriction, Warming

T = np.linspace(0.0, 1.0, 300)
WAVE = np.column_stack([np.sin(T), np.cos(T)])
ONES = np.ones(2)


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


CASES: dict[str, Callable[[], Any]] = {
    "dynident_lab.servo.Margins": lambda: Margins(float("inf"), 60.0, float("nan"), 5.0),
    "dynident_lab.servo.Bode": lambda: Bode(np.array([1.0, 2.0]), np.array([1.0 + 0.0j, 0.5 - 0.5j]), name="plant"),
    "dynident_lab.servo.Modes": lambda: modes(drive.Chain((1.0, 2.0), (100.0,), (0.1,))),
    "dynident_lab.fleet.FleetResult": fleet_result,
    "dynident_lab.fleet.FleetType": fleet_type,
    "dynident_lab.fleet.RobotEstimate": robot_estimate,
    "dynident_lab.thermal.WarmFriction": cooled,
    "dynident_lab.thermal.Warming": warming,
    "dynident_lab.joint_reactions.Conditioning": lambda: Conditioning(ONES, 2.0 * ONES, np.array([1.0, np.inf])),
    "dynident_lab.servo.MachineFit": lambda: MachineFit(
        ("gain",), ONES[:1], ONES[:1], 0.1 * ONES[:1], 0.2, 0.1, ("a", "b"), T, WAVE, WAVE, WAVE, True
    ),
    "dynident_lab.servo.SineResponse": sines,
    "dynident_lab.servo.Sizing": sizing,
    "dynident_lab.servo.StepMetrics": lambda: step_metrics(T, 1.0 - np.exp(-T)),
}


@pytest.mark.parametrize("kind", CASES)
def test_results_are_saved_loaded_copied_pickled_and_shown(kind: str, tmp_path: Path) -> None:
    check_result(CASES[kind](), kind, tmp_path)


@pytest.mark.parametrize("kind", CASES)
def test_results_with_curves_are_drawn_without_arguments(kind: str) -> None:
    pytest.importorskip("matplotlib", reason="figures need matplotlib: pip install 'dynident[report]'")
    made = CASES[kind]()
    if hasattr(made, "plot"):
        assert made.plot().axes


@pytest.mark.parametrize(("old", "new"), [("fleet.FleetType", "fleet.FleetType"), ("control.Margins", "servo.Margins")])
def test_files_from_before_the_split_are_read(old: str, new: str, tmp_path: Path) -> None:
    made = CASES[f"dynident_lab.{new}"]()
    path = made.save(tmp_path / "x.json")
    path.write_text(path.read_text(encoding="utf-8").replace(f'"dynident_lab.{new}"', f'"{old}"', 1), encoding="utf-8")
    assert json.dumps(di.load(path).to_dict()) == json.dumps(made.to_dict())
