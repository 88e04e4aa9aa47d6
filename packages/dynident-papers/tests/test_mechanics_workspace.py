"""Workspace maps and singularity indices against the closed forms of the robots that have them."""

from __future__ import annotations

import numpy as np
import pytest

import dynident as di
from dynident.errors import DynidentError
from dynident.mechanism import Actuator
from dynident_papers.robots import five_bar, mast, prr2
from dynident_papers.workspace import WorkspaceMap, singularity_indices, workspace_map

LENGTH = 0.7


@pytest.fixture(scope="module")
def five() -> WorkspaceMap:
    robot = five_bar.mechanism(coordinates="platform")
    return workspace_map(robot, "platform", ("x", "y"), ((-1.3, 1.3), (-1.3, 1.3)), size=41, length=LENGTH)


def _gains(P: np.ndarray) -> np.ndarray:
    """Singular values of dP/d(alpha1, alpha4) by the thesis' Jacobians, over the length."""
    J_x, J_q = five_bar.jacobians(five_bar.inverse_kinematics(P))
    return np.linalg.svd(np.linalg.solve(J_x, J_q[:, :, None] * np.eye(2)), compute_uv=False) / LENGTH


def test_indices_of_the_five_bar_are_those_of_its_printed_jacobians(five: WorkspaceMap) -> None:
    """Type 1 = g_min / sqrt(1 + g_min^2), type 2 = 1 / sqrt(1 + g_max^2) with g = svd(J_x^-1 J_q): cosine and sine."""
    clear = five.reached & (five.type1 > 1e-3) & (five.type2 > 1e-3)
    g = _gains(five.position[clear][:, :2])
    np.testing.assert_allclose(five.dexterity[clear], g[:, 1] / g[:, 0], rtol=1e-8)
    np.testing.assert_allclose(five.type1[clear], g[:, 1] / np.hypot(1.0, g[:, 1]), rtol=1e-8)
    np.testing.assert_allclose(five.type2[clear], 1.0 / np.hypot(1.0, g[:, 0]), rtol=1e-8)


def test_the_map_of_the_five_bar_is_the_region_its_inverse_problem_has(five: WorkspaceMap) -> None:
    grid = np.stack(np.meshgrid(five.first, five.second, indexing="ij"), axis=-1)
    g = five_bar.Geometry()
    away = np.stack([np.linalg.norm(grid - base, axis=2) for base in g.bases])
    possible = np.all((away < g.l1 + g.l2) & (away > abs(g.l1 - g.l2)), axis=0)
    assert not np.any(five.reached & ~possible)
    missing = possible & ~five.reached
    # Only cells between the two inner circles may be cut off from home: the strip is narrower than a cell.
    assert np.all(np.linalg.norm(grid[missing], axis=1) < 0.25)
    np.testing.assert_allclose(five.position[five.reached][:, :2], grid[five.reached], atol=1e-9)


def test_indices_do_not_depend_on_the_coordinates() -> None:
    P = np.array([0.1, 0.8]) + np.linspace(0.0, 0.3, 7)[:, None] * [1.0, -0.4]
    by_platform = singularity_indices(five_bar.mechanism(coordinates="platform"), P, "platform", length=LENGTH)
    alpha = five_bar.inverse_kinematics(P)[:, [0, 3]]
    by_motors = singularity_indices(five_bar.mechanism(coordinates="motors"), alpha, "platform", length=LENGTH)
    for kind in ("type1", "type2", "dexterity"):
        np.testing.assert_allclose(getattr(by_platform, kind), getattr(by_motors, kind), rtol=1e-9)


def test_both_kinds_of_singularity_of_the_scissor() -> None:
    """Horizontal bars: the motors no longer hold the platform; upright ones: it no longer moves sideways or up with both."""
    span = prr2.RAIL - prr2.SPACING
    low = singularity_indices(prr2.mechanism(), [[0.2, 0.25], [0.5 * (span - 2.0 * prr2.BAR * np.cos(0.005))] * 2], "platform")
    assert low.type2[1] < 0.02
    assert low.type2[0] > 0.4
    high = singularity_indices(
        prr2.mechanism(), [[0.2, 0.25], [0.5 * (span - 2.0 * prr2.BAR * np.cos(1.5702))] * 2], "platform"
    )
    assert high.type1[1] < 0.01
    assert high.type1[0] > 0.2
    assert high.singular()["type 1"] == [1]
    assert high.singular()["type 2"] == []


def test_spatial_table_against_its_printed_jacobian() -> None:
    """Velocities of the platform per slider, (z, psi, theta) with the parasitic x: J_G and J_R of the thesis."""
    x = mast.TRIPOD.home + np.array([[0.0, 0.0, 0.0], [0.01, 0.05, 0.02], [0.02, 0.15, -0.2]])
    found = singularity_indices(mast.mechanism(passive="ideal"), x, "platform", length=0.3)
    J_G, J_R = mast.platform_jacobians(x)
    g = np.linalg.svd(np.concatenate([J_G / 0.3, J_R], axis=1) * 0.3, compute_uv=False)
    np.testing.assert_allclose(found.dexterity, g[:, -1] / g[:, 0], rtol=1e-9)
    np.testing.assert_allclose(found.type2, 1.0 / np.hypot(1.0, g[:, 0]), rtol=1e-9)


def test_a_serial_arm_is_singular_where_it_is_stretched(tmp_path) -> None:
    """|det J| = l1 l2 |sin q2| is the product of both gains."""
    arm = di.Mechanism.from_dh([(0.5, 0, 0, 0), (0.4, 0, 0, 0)], gravity=(0, 0, 0))
    found = workspace_map(arm, arm.bodies[-1].name, ranges=((-1.0, 1.0), (-1.6, 1.6)), size=17, outputs="position", length=1.0)
    assert found.reached.all()
    g_min = found.type1 / np.sqrt(1.0 - found.type1**2)
    g_max = np.sqrt(1.0 / found.type2**2 - 1.0)
    expected = np.broadcast_to(0.2 * np.abs(np.sin(found.second)), found.type1.shape)
    np.testing.assert_allclose(g_min * g_max, expected, atol=1e-12)
    assert found.plot().axes and found.plot("frame").axes
    again = di.load(found.save(tmp_path / "map.json"))
    np.testing.assert_array_equal(again.type1, found.type1)
    assert "100.0 %" in again.summary()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda r: workspace_map(r, "platform", ("x", "q9")), "name two different of"),
        (lambda r: workspace_map(r, "platform"), "two finite pairs"),
        (lambda r: workspace_map(r, "platform", ("x", "y"), ((-1, 1), (1, -1))), "two finite pairs"),
        (
            lambda r: workspace_map(r, "platform", ("x", "y"), ((-1, 1), (0, 1)), held={"alpha1": 0.0}),
            "positions of 0 coordinates",
        ),
        (lambda r: workspace_map(r, "platform", ("x", "y"), ((3, 4), (3, 4))), "does not reach the cell nearest"),
        (lambda r: singularity_indices(r, [[0.0, 0.9]], "platform", outputs="speed"), "pose, position"),
    ],
)
def test_bad_input_is_one_sentence(call, words: str) -> None:
    with pytest.raises(DynidentError, match=words):
        call(five_bar.mechanism(coordinates="platform"))


def test_a_robot_without_motors_is_told_so() -> None:
    arm = di.Mechanism.from_dh([(0.5, 0, 0, 0), (0.4, 0, 0, 0)])
    bare = di.Mechanism(arm.name, arm.bodies, arm.joints, actuators=(Actuator("m", {"joint_1": 1.0}),))
    found = singularity_indices(bare, [[0.1, 0.4]], arm.bodies[-1].name)
    assert found.type2[0] == 0.0  # one motor holds one of two freedoms only
