"""Every result of dynident-papers has the same methods, comes back from its file, and is copied and pickled."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from result_checks import check_drawn, check_former_kinds, check_kinds, check_result, results_of, shown_otherwise

import dynident as di
from dynident import friction
from dynident_papers import reproduce
from dynident_papers.flexures import FlexureRequirements
from dynident_papers.identify import Individual, JointReduction, Reduction
from dynident_papers.properties import RobotCheck, check
from dynident_papers.robots import dualv
from dynident_papers.servo import ActuatorFit, Gains, ModalFit, Trial, ZoneTuning, fit_modal
from dynident_papers.workspace import Acceleration, Singularity, WorkspaceMap, workspace_map

T = np.linspace(0.0, 1.0, 300)
WAVE = np.column_stack([np.sin(T), np.cos(T)])
ONES = np.ones(2)


def modal_fit() -> ModalFit:
    s = 2j * np.pi * np.linspace(2.0, 40.0, 80)
    peak = 0.5 + 0.3 * s**2 / (s**2 + 2.0 * 0.02 * 80.0 * s + 80.0**2)
    return fit_modal(s.imag / (2.0 * np.pi), peak)


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


def workspace() -> WorkspaceMap:
    robot = di.Mechanism.from_dh([(0.3, 0, 0, 0), (0.2, 0, 0, 0)])
    return workspace_map(robot, robot.bodies[-1].name, ranges=[(-1.0, 1.0), (0.2, 1.0)], size=4)


def reduction() -> Reduction:
    part = JointReduction("a", ("x", "y"), ONES, np.eye(2), ("y",), (10.0, 1.0))
    return Reduction("arm", ("x", "y"), ONES[:, None], 0.1, 10.0, (part,))


def robot_check() -> RobotCheck:
    robot = di.Mechanism.from_dh([(0.3, 0, 0, 0)]).with_payload(1.0)
    return check(robot, samples=5)


def zone() -> ZoneTuning:
    gains = Gains(2.0, 0.5)
    return ZoneTuning(gains, 0.03, 0.2, (Trial(gains, "integral", True, 0.03, 0.2),), "")


def table() -> reproduce.Table:
    return reproduce.Table.of("masses", ("m1", "m2"), (1.04, 2.0), (1.0, None), "kg", "rounded")


CASES: dict[str, Callable[[], Any]] = {
    "RobotCheck": robot_check,
    "ZoneTuning": zone,
    "ActuatorFit": lambda: ActuatorFit(
        ("J", "fc"), ONES, np.eye(2), friction.Coulomb(), 0.1, 0.01, 300, T, WAVE[:, 0], WAVE[:, 0]
    ),
    "ModalFit": modal_fit,
    "Individual": individual,
    "JointReduction": lambda: reduction().joints[0],
    "Reduction": reduction,
    "Statistics": lambda: individual().statistics(),
    "FlexureRequirements": lambda: FlexureRequirements(
        "arm", ("a",), ("N m/rad",), ONES[:1], ("m",), ("N m",), WAVE[:, :1], WAVE[:, :1], WAVE[:, 1:]
    ),
    "Acceleration": lambda: Acceleration("arm", "tool", np.array([0.0, 0.0, 1.0]), 250.0, ONES, ONES, 2.0 * ONES),
    "Singularity": lambda: Singularity(ONES, ONES, ONES, np.array([0.5, np.nan])),
    "WorkspaceMap": workspace,
    "Reproduction": lambda: reproduce.Reproduction((table(),), {}, ("note",), "one", "numbers", "[Key]"),
    "Table": table,
}


def test_no_result_is_forgotten() -> None:
    assert results_of("dynident_papers") == set(CASES)


def test_what_is_summed_up_or_drawn_is_a_result() -> None:
    assert shown_otherwise("dynident_papers") == {"BlockRun"}


def test_names_in_files_old_and_new_are_of_one_class_each() -> None:
    check_former_kinds("dynident_papers")
    check_kinds("dynident_papers")


@pytest.mark.parametrize("name", CASES)
def test_results_are_saved_loaded_copied_pickled_and_shown(name: str, tmp_path: Path) -> None:
    check_result(CASES[name](), tmp_path)


@pytest.mark.parametrize("name", [name for name in CASES if name != "Reproduction"])
def test_results_are_drawn_without_arguments(name: str) -> None:
    check_drawn(CASES[name]())


def test_a_modal_fit_is_not_drawn_over_a_response_without_frequencies() -> None:
    with pytest.raises(di.DynidentError, match="frf is given without frequency"):
        modal_fit().plot(frf=[1.0])


def test_a_robot_with_loops_from_its_file_moves_as_before(tmp_path: Path) -> None:
    robot = dualv.mechanism()
    again = di.Mechanism.load(robot.save(tmp_path / "robot.json"))
    rng = np.random.default_rng(0)
    q = 0.05 * rng.normal(size=(5, robot.dof))
    motion = di.Motion(np.arange(5.0), q, rng.normal(size=q.shape), rng.normal(size=q.shape))
    np.testing.assert_array_equal(di.inverse_dynamics(again, motion), di.inverse_dynamics(robot, motion))
