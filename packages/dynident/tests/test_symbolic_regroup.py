"""Exact base parameters: recognised coefficients hold for lengths that the recognition never saw."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from random_mechanisms import close

from dynident.identify import base_parameters
from dynident.mechanism import Mechanism
from dynident.symbolic import Program, derive
from dynident.symbolic.program import Coefficient

RRR = [(0.0, np.pi / 2, 0.56, 0.0), (0.2, 0.0, 0.415, 0.0), (0.169, 0.0, 0.09, 0.0)]


def coefficients(program: Program, lengths: list[float]) -> np.ndarray:
    """K for given lengths, entry by entry from the polynomials."""
    grouping = program.regrouping
    assert grouping is not None
    K = np.zeros((grouping.rank, len(grouping.parameters)))
    for i, row in enumerate(grouping.coefficients):
        for j, entry in row.items():
            K[i, j] = sum(c * np.prod(np.array(lengths) ** np.array(powers, dtype=float)) for c, powers in entry.terms)
    return K


@pytest.mark.parametrize(("terms", "gravity", "rank"), [(("ia",), 9.81, 16), ((), 9.81, 15), (("ia",), 0.0, 14), ((), 0.0, 13)])
def test_rrr_has_the_papers_ranks(terms: tuple[str, ...], gravity: float, rank: int) -> None:
    robot = Mechanism.from_dh(RRR, convention="standard", gravity=(0, 0, -gravity)).with_terms(terms)
    for geometry in ("numeric", "symbolic"):
        grouping = derive(robot, ["base_regressor"], geometry=geometry).regrouping
        assert grouping is not None
        assert grouping.rank == rank
        assert grouping.exact
        assert grouping.columns == tuple(base_parameters(robot).columns)


def test_rrr_regrouping_is_exact_for_other_lengths() -> None:
    program = derive(Mechanism.from_dh(RRR, convention="standard").with_terms(("ia",)), ["base_regressor"], geometry="symbolic")
    assert program.inputs["geometry"] == ("d1", "a2", "d2", "a3", "d3", "g")
    rows = [(0.0, np.pi / 2, 0.3, 0.0), (-0.4, 0.0, 0.1, 0.0), (0.25, 0.0, -0.2, 0.0)]
    other = base_parameters(Mechanism.from_dh(rows, convention="standard").with_terms(("ia",)))
    close(coefficients(program, [0.3, -0.4, 0.1, 0.25, -0.2, 9.81]), other.regrouping, 1e-9)


def test_expressions_read_like_the_literature() -> None:
    program = derive(Mechanism.from_dh(RRR, convention="standard").with_terms(("ia",)), ["base_regressor"], geometry="symbolic")
    grouping = program.regrouping
    assert grouping is not None
    lines = dict(line.split(" = ") for line in grouping.expressions)
    assert lines["mx_link_2R"] == "mx_link_2 + a2 m_link_2 + a2 m_link_3"
    assert lines["Izz_link_3R"] == "Izz_link_3 - a3^2 m_link_3"
    assert "2 d2 mz_link_2" in lines["Iyy_link_1R"]
    assert lines["ia_joint_3"] == "ia_joint_3"
    assert str(Coefficient(((2.0, (-2,)),), ("L",))) == "2/L^2"
    assert str(Coefficient(((-0.5, (1, -1)), (1.0, (0, 0))), ("a", "b"))) == "-1/2 a/b + 1"


def test_a_vertical_slide_regroups_weight_into_its_offset() -> None:
    """The only coefficient with gravity in it: a constant force g m on a joint that has an offset."""
    robot = Mechanism.from_dh([(0.0, 0.0, 0.0, 0.0, "prismatic"), (0.3, 0.0, 0.2, 0.0)], convention="modified").with_terms(
        ("off",)
    )
    grouping = derive(robot, ["base_regressor"], geometry="symbolic").regrouping
    assert grouping is not None
    assert grouping.exact
    numbers = base_parameters(robot)
    assert grouping.columns == tuple(numbers.columns)


@pytest.mark.real
@pytest.mark.parametrize("file", ["ur10_petrone2025/ur10_robot", "kuka_lwr4_flobaroid/kuka_lwr4"])
def test_real_arms_are_regrouped_exactly(shared_data: Path, file: str) -> None:
    robot = Mechanism.from_urdf(shared_data / f"{file}.urdf")
    numbers = base_parameters(robot)
    program = derive(robot, ["base_regressor"], geometry="symbolic", columns=numbers.columns.tolist())
    assert program.regrouping is not None
    assert program.regrouping.exact
    close(coefficients(program, program.values["geometry"].tolist()), numbers.regrouping, 1e-8)


def test_base_forms_predict_the_torques_of_the_standard_ones() -> None:
    rows = [(0.0, 0.0, 0.3, 0.0), (0.1, np.pi / 2, 0.2, 0.3), (0.4, 0.3, 0.0, 0.0), (0.2, -np.pi / 2, 0.1, 0.0, "prismatic")]
    robot = Mechanism.from_dh(rows, convention="modified", gravity=(1.0, 2.0, -9.0))
    rng = np.random.default_rng(0)
    phi = rng.normal(size=len(robot.parameters))
    q, v, a = (rng.normal(size=(20, 4)) for _ in range(3))
    names = ["inverse_dynamics", "base_regressor", "base_inverse_dynamics", "base_parameters"]
    for geometry in ("numeric", "symbolic"):
        program = derive(robot, names, geometry=geometry)
        expected = program.evaluate("inverse_dynamics", q=q, v=v, a=a, phi=phi)
        beta = program.evaluate("base_parameters", phi=phi)
        close(program.evaluate("base_inverse_dynamics", q=q, v=v, a=a, beta=beta), expected, 1e-9)
        W = program.evaluate("base_regressor", q=q, v=v, a=a)
        close(W @ beta[0], expected, 1e-9)
