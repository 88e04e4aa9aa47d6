"""RePlaLink: closed forms against the general solver, equations 6.51 to 6.55 from the recovered geometry."""

from __future__ import annotations

import numpy as np
import pytest

import dynident as di
from dynident_papers.robots import replalink
from dynident_papers.trajectories import FourBar

FRICTION = {"Fc1": 0.9342, "Fc4": 0.1672, "c1": 2.6334, "c4": 4.7132}  # Table 6.4
PRINTED = {  # (6.51) to (6.55) with the decimals printed
    ("m1", "I1"): (27.686, 3),
    ("m1", "I6"): (27.686, 3),
    ("m1", "I2"): (13.533, 3),
    ("m1", "I3"): (0.51015, 5),
    ("m2", "I2"): (-6.8439, 4),
    ("m2", "I3"): (7.2328, 4),
    ("m3", "I3"): (-16.299, 3),
    ("m4", "I4"): (35.225, 3),
    ("m4", "I7"): (35.225, 3),
    ("m4", "I3"): (66.007, 3),
    ("m5", "I2"): (4.43, 2),
    ("m5", "I3"): (-0.27833, 5),
}


def motion(samples_time: float = 0.02) -> di.Motion:
    return replalink.initial_motion(samples_time)


@pytest.mark.parametrize("assembly", replalink.ASSEMBLY_MODES)
def test_kinematics_close(assembly: str) -> None:
    q = motion().q
    g = replalink.RECOVERED
    pose = replalink.forward_kinematics(q, assembly)
    for start, end, length in ((pose.A, pose.C, g.ac), (pose.B, pose.C, g.bc), (pose.A, pose.D, g.ad)):
        np.testing.assert_allclose(np.linalg.norm(end - start, axis=1), length)
    AB, AC = pose.B - pose.A, pose.C - pose.A
    side = AB[:, 0] * AC[:, 1] - AB[:, 1] * AC[:, 0]
    assert np.all((side > 0) == (assembly == "up"))
    found = replalink.inverse_kinematics(pose.D)
    turned = np.arctan2(np.sin(q), np.cos(q))
    error = np.nanmin(np.max(np.abs(found - turned[:, None]), axis=2), axis=1)
    assert np.max(error) < 1e-9  # one of the four working modes is the one we came from


def test_working_modes_bend_as_named() -> None:
    tool = replalink.forward_kinematics(motion().q).D[:5]
    for mode, q in zip(replalink.WORKING_MODES, np.moveaxis(replalink.inverse_kinematics(tool), 1, 0), strict=True):
        for assembly in replalink.ASSEMBLY_MODES:
            pose = replalink.forward_kinematics(q, assembly)
            same = np.linalg.norm(pose.D - tool, axis=1) < 1e-9
            a1, a2, a3, a4 = pose.angles[same].T
            assert np.all((np.sin(a2 - a1) > 0) == (mode[0] == "+"))
            assert np.all((np.sin(a3 - a4) > 0) == (mode[1] == "+"))
    assert np.isnan(replalink.inverse_kinematics([3.0, 0.0])).all()


@pytest.mark.parametrize("assembly", replalink.ASSEMBLY_MODES)
def test_jacobians_are_derivatives(assembly: str) -> None:
    q, v = motion().q, motion().v
    h = 1e-6
    J, J_dot = replalink.body_jacobians(q, v, assembly)
    ahead, behind = (replalink.forward_kinematics(q + s * h * v, assembly) for s in (1, -1))
    np.testing.assert_allclose(np.einsum("sij,sj->si", J[:, 4, :2], v), (ahead.D - behind.D) / (2 * h), atol=1e-8)
    turn = (ahead.angles - behind.angles) / (2 * h)
    np.testing.assert_allclose(np.einsum("sbj,sj->sb", J[:, :4, 2], v), turn, atol=1e-8)
    rate = (replalink.body_jacobians(q + h * v, v, assembly)[0] - replalink.body_jacobians(q - h * v, v, assembly)[0]) / (2 * h)
    np.testing.assert_allclose(J_dot, rate, atol=1e-7)


@pytest.mark.parametrize("assembly", replalink.ASSEMBLY_MODES)
@pytest.mark.parametrize("parameters", ["paper", "full"])
def test_dynamics_equal_the_general_solver(parameters: str, assembly: str) -> None:
    path = motion()
    robot = replalink.mechanism(parameters, FRICTION, assembly)
    torques = replalink.inverse_dynamics(path.q, path.v, path.a, FRICTION, assembly)
    np.testing.assert_allclose(di.inverse_dynamics(robot, path), torques, rtol=0, atol=1e-9)
    M, C = replalink.dynamics_matrices(path.q, path.v, FRICTION, assembly)
    np.testing.assert_allclose(di.mass_matrix(robot, path.q), M, atol=1e-9)
    np.testing.assert_allclose(di.coriolis_matrix(robot, path.q, path.v), C, atol=1e-9)


@pytest.mark.parametrize("base", [0.2, 0.4])
def test_gravity_equals_the_general_solver(base: float) -> None:
    g = replalink.Geometry(base=base)
    path = motion()
    robot = replalink.mechanism("full", gravity=9.81, geometry=g)
    phi = [replalink.THEORETICAL.get(name, 0.0) for name in replalink.PARAMETER_NAMES]
    torques = replalink.regressor(path.q, path.v, path.a, gravity=9.81, geometry=g) @ phi
    np.testing.assert_allclose(di.inverse_dynamics(robot, path), torques, rtol=0, atol=1e-9)


def test_equations_6_51_to_6_55() -> None:
    K = replalink.base_matrix()
    for (leader, name), (coefficient, decimals) in PRINTED.items():
        value = K[replalink.BASE_LEADERS.index(leader), replalink.PARAMETER_NAMES.index(name)]
        assert round(value, decimals) == coefficient, (leader, name)
    printed, _ = replalink.thesis_system()
    np.testing.assert_array_equal(printed != 0.0, K != 0.0)  # and nothing else is in them
    np.testing.assert_allclose(replalink.base_matrix(replalink.Geometry(base=0.7)), K)


@pytest.mark.parametrize("base", [0.25, 0.4])
def test_base_parameters_come_out_of_the_mechanism(base: float) -> None:
    robot = replalink.mechanism(geometry=replalink.Geometry(base=base))
    found = di.base_parameters(robot, order=[replalink.STANDARD_NAMES[name] for name in replalink.BASE_LEADERS])
    assert found.rank == 9
    columns = [robot.parameters.index(replalink.STANDARD_NAMES[name]) for name in replalink.PARAMETER_NAMES]
    np.testing.assert_allclose(found.regrouping[:, columns], replalink.base_matrix(), atol=1e-8)
    assert len(found.unidentifiable) == len(robot.parameters) - 15


def test_free_centres_of_mass_and_gravity_add_base_parameters() -> None:
    assert di.base_parameters(replalink.mechanism("full")).rank == 11
    assert di.base_parameters(replalink.mechanism(gravity=9.81)).rank == 11


def test_identification_recovers_the_base_parameters() -> None:
    robot = replalink.mechanism(values=FRICTION)
    path = motion(0.005)
    base = di.base_parameters(robot, order=[replalink.STANDARD_NAMES[name] for name in replalink.BASE_LEADERS])
    fit = di.WLS().fit(di.Regression.from_motion(robot, path, di.inverse_dynamics(robot, path), base=base)).result_
    truth = replalink.base_matrix() @ [FRICTION.get(n, replalink.THEORETICAL.get(n, 0.0)) for n in replalink.PARAMETER_NAMES]
    np.testing.assert_allclose(fit.values, truth, rtol=1e-8)


def test_the_validation_emulates_a_four_bar_linkage() -> None:
    """The tool, by the closed forms, is where a coupler of the assumed lengths puts it; the derivatives are those of time."""
    path = replalink.four_bar_motion(turns=1.0)
    crank, coupler, rocker, ground = replalink.ASSUMPTIONS["four_bar"].value
    tool = replalink.forward_kinematics(path.q).D
    for rates, values in ((path.v, path.q), (path.a, path.v)):
        np.testing.assert_allclose(rates[3:-3], np.gradient(values, path.t, axis=0)[3:-3], atol=2e-3)
    np.testing.assert_allclose(path.q[[0, -1]], [replalink.START] * 2, atol=1e-4)
    linkage = FourBar(crank, coupler, rocker, [[0.0, 0.0], [ground, 0.0]], (0.5 * coupler, 0.1), turn=2.0 * np.pi)
    curve = linkage(np.linspace(0.0, 2.0 * np.pi, 2001))[0][:, :2]
    curve += tool[0] - curve[0]
    away = np.min(np.linalg.norm(tool[:, None] - curve[None], axis=2), axis=1)
    assert away.max() < 3e-4  # spacing of the 2001 points


def test_initial_motion_is_the_table_of_the_thesis() -> None:
    path = motion(0.001)
    assert np.max(np.abs(path.v), axis=0) == pytest.approx([2.04, 1.79], abs=0.01)  # of Table 6.3
    assert np.max(np.abs(path.a), axis=0) == pytest.approx([13.9, 13.4], abs=0.1)
    for column, (low, high) in zip(path.q.T, replalink.POSITION_LIMITS, strict=True):
        assert low < column.min() < column.max() < high


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: replalink.Geometry(ac=-0.1), "ac is -0.1"),
        (lambda: replalink.Geometry(com2=0.9), "not on bars"),
        (lambda: replalink.forward_kinematics([[3.14, 0.0]]), "cannot bridge"),
        (lambda: replalink.forward_kinematics([[2.0, 1.0]], "left"), "it is one of up, down"),
        (lambda: replalink.mechanism("some"), "it is one of paper, full"),
        (lambda: replalink.mechanism(values={"I5": 1.0}), "unknown parameter 'I5'"),
        (lambda: replalink.regressor([[2.0, 1.0]], [[np.inf, 0.0]], [[0.0, 0.0]]), "v is not finite"),
    ],
)
def test_bad_input_is_one_sentence(call: object, words: str) -> None:
    with pytest.raises(di.DynidentError, match=words) as caught:
        call()  # type: ignore[operator]
    assert "\n" not in str(caught.value)
