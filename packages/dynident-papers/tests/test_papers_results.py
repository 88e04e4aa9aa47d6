"""Results of this package by the name in their file: they are saved, loaded, copied, pickled and shown."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from result_cases import check_result

import dynident as di
from dynident import friction
from dynident_papers import reproduce
from dynident_papers.flexures import FlexureRequirements
from dynident_papers.identify import Individual, JointReduction, Reduction
from dynident_papers.servo import ActuatorFit, Gains, ModalFit, Trial, ZoneTuning, fit_modal
from dynident_papers.workspace import Singularity, WorkspaceMap, workspace_map

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


def zone() -> ZoneTuning:
    gains = Gains(2.0, 0.5)
    return ZoneTuning(gains, 0.03, 0.2, (Trial(gains, "integral", True, 0.03, 0.2),), "")


def table() -> reproduce.Table:
    return reproduce.Table.of("masses", ("m1", "m2"), (1.04, 2.0), (1.0, None), "kg", "rounded")


CASES: dict[str, Callable[[], Any]] = {
    "dynident_papers.servo.ZoneTuning": zone,
    "dynident_papers.servo.ActuatorFit": lambda: ActuatorFit(
        ("J", "fc"), ONES, np.eye(2), friction.Coulomb(), 0.1, 0.01, 300, T, WAVE[:, 0], WAVE[:, 0]
    ),
    "dynident_papers.servo.ModalFit": modal_fit,
    "dynident_papers.identify.Individual": individual,
    "dynident_papers.identify.JointReduction": lambda: reduction().joints[0],
    "dynident_papers.identify.Reduction": reduction,
    "dynident_papers.identify.Statistics": lambda: individual().statistics(),
    "dynident_papers.flexures.FlexureRequirements": lambda: FlexureRequirements(
        "arm", ("a",), ("N m/rad",), ONES[:1], ("m",), ("N m",), WAVE[:, :1], WAVE[:, :1], WAVE[:, 1:]
    ),
    "dynident_papers.workspace.Singularity": lambda: Singularity(ONES, ONES, ONES, np.array([0.5, np.nan])),
    "dynident_papers.workspace.WorkspaceMap": workspace,
    "dynident_papers.reproduce.Reproduction": lambda: reproduce.Reproduction(
        (table(),), {}, ("note",), "one", "numbers", "[Key]"
    ),
    "dynident_papers.reproduce.Table": table,
}


@pytest.mark.parametrize("kind", CASES)
def test_results_are_saved_loaded_copied_pickled_and_shown(kind: str, tmp_path: Path) -> None:
    check_result(CASES[kind](), kind, tmp_path)


@pytest.mark.parametrize("kind", [kind for kind in CASES if not kind.endswith("Reproduction")])
def test_results_with_curves_are_drawn_without_arguments(kind: str) -> None:
    pytest.importorskip("matplotlib", reason="figures need matplotlib: pip install 'dynident[report]'")
    made = CASES[kind]()
    if hasattr(made, "plot"):
        assert made.plot().axes


def test_a_modal_fit_is_not_drawn_over_a_response_without_frequencies() -> None:
    with pytest.raises(di.DynidentError, match="frf is given without frequency"):
        modal_fit().plot(frf=[1.0])
