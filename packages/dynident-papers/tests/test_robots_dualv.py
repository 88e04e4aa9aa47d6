"""DualV: closed forms against the general solver, counts and regroupings, the published numbers."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import dynident as di
from dynident.errors import DynidentError
from dynident.mechanics import actuator_jacobian, actuator_torques, close_motion, coordinates_from_actuators, rank_partitions
from dynident.mechanics.closure import close_rates
from dynident_papers.robots import dualv

MODES = ("inward", "outward")
ROBOTS = {mode: dualv.mechanism(working_mode=mode) for mode in MODES}


def _geometry(mode: str) -> dualv.Geometry:
    return dualv.Geometry(working_mode=mode)


def _chi(seed: int = 0) -> np.ndarray:
    """All 52 parameters of the paper's list, none of them zero."""
    return np.random.default_rng(seed).uniform(0.5, 1.5, 52) * np.array([0.02, 0.05, 0.05, 2.0] + [0.04] * 48)


# ---- kinematics ---------------------------------------------------------------------------------------------------------


def test_table_1_and_the_inferred_radius() -> None:
    g = dualv.Geometry()
    expected = np.array([[0.39505, 0.10971], [-0.39505, 0.10971], [-0.39505, -0.10971], [0.39505, -0.10971]])
    np.testing.assert_allclose(g.anchors, expected, atol=6e-6)
    home = dualv.inverse_kinematics(np.zeros(3), g)
    np.testing.assert_allclose(np.abs(home[0, :, 1]), np.pi / 2, atol=5e-3)  # right-angle elbows with r_p = 0.11
    J = dualv.actuator_jacobian(np.zeros(3), g)[0] / np.array([1.0, 1.0, 0.1])
    assert np.linalg.cond(J) == pytest.approx(1.10, abs=0.01)


@pytest.mark.parametrize("mode", MODES)
def test_closed_forms_agree_with_the_general_closure(mode: str) -> None:
    g, robot, motion = _geometry(mode), ROBOTS[mode], dualv.excitation(3)
    closed = close_motion(robot, motion)
    assert robot.coordinate_names == ("platform.x", "platform.y", "platform.rz")
    assert robot.closure.dof == 3
    assert robot.closure.redundant_equations == 12  # four spatial welds, three of six equations each repeat themselves
    for mine, general in zip(dualv.joint_motion(motion.q, motion.v, motion.a, g), (closed.q, closed.v, closed.a), strict=True):
        np.testing.assert_allclose(general[:, 3:].reshape(-1, 4, 3), mine, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(dualv.jacobians(motion.q, g).G.reshape(-1, 12, 3), closed.G[:, 3:], atol=1e-9)
    np.testing.assert_allclose(actuator_jacobian(robot, motion.q), dualv.actuator_jacobian(motion.q, g), atol=1e-9)


@pytest.mark.parametrize("mode", MODES)
def test_forward_kinematics_inverts_the_inverse(mode: str) -> None:
    g = _geometry(mode)
    x = dualv.excitation(4, box=(0.1, 0.1, 1.0)).q
    q1 = dualv.inverse_kinematics(x, g)[:, :, 0]
    np.testing.assert_allclose(dualv.forward_kinematics(q1, g), x, atol=1e-12)
    np.testing.assert_allclose(dualv.measured_radius(q1, g), 0.11, atol=1e-12)
    near = dualv.excitation(4).q
    motors = dualv.inverse_kinematics(near, g)[:, :, 0]
    np.testing.assert_allclose(coordinates_from_actuators(ROBOTS[mode], motors), near, atol=1e-9)


@pytest.mark.parametrize("mode", MODES)
def test_printed_two_circle_formula_after_its_correction(mode: str) -> None:
    """(56)-(57) with the numerator of k_j repaired give the same points; signs (+, -) inward, (-, +) outward."""
    g, x = _geometry(mode), dualv.excitation(5).q
    q1 = dualv.inverse_kinematics(x, g)[:, :, 0]
    B = g.anchors + g.d2 * np.stack([np.cos(q1), np.sin(q1)], axis=2)
    points = []
    for j, sign in ((0, 1.0), (2, -1.0)):
        (xb, yb), (xn, yn) = B[:, j].T, B[:, j + 1].T
        f, k = -(yn - yb) / (xn - xb), (xn**2 + yn**2 - xb**2 - yb**2) / (2 * (xn - xb))
        p, r = 2 * f * (k - xb) - 2 * yb, xb**2 + yb**2 - g.d3**2 + k**2 - 2 * k * xb
        y = (-p + (sign if mode == "inward" else -sign) * np.sqrt(p**2 - 4 * (f**2 + 1) * r)) / (2 * (f**2 + 1))
        points.append(np.stack([f * y + k, y], axis=1))
    np.testing.assert_allclose(0.5 * (points[0] + points[1]), x[:, :2], atol=1e-12)


def test_jacobians_against_differences_and_the_misprints() -> None:
    g, motion = dualv.Geometry(), dualv.excitation(6)
    h = 1e-6
    step = [(dualv.inverse_kinematics(motion.q + s * h * motion.v, g)) for s in (1.0, -1.0)]
    numeric = (step[0] - step[1]) / (2 * h)
    _, v, _ = dualv.joint_motion(motion.q, motion.v, motion.a, g)
    np.testing.assert_allclose(v, numeric, atol=1e-8)
    J = dualv.jacobians(motion.q, g)
    closure = np.einsum("nij,nj->ni", J.A_p, motion.v) + J.B_p * v[:, :, 0]
    assert np.max(np.abs(closure)) < 1e-13  # (11)
    printed = np.einsum("nij,nj->ni", J.A_p, motion.v) - J.B_p * v[:, :, 0]  # sign of (60) as printed
    assert np.max(np.abs(printed)) > 0.05


def test_platform_motion_from_motors() -> None:
    motion = dualv.excitation(7)
    q, v, a = (x[:, :, 0] for x in dualv.joint_motion(motion.q, motion.v, motion.a))
    for solution in ("joint", "closure"):
        x, rate, acceleration = dualv.platform_motion(q, v, a, solution=solution)
        np.testing.assert_allclose(x, motion.q, atol=1e-12)
        np.testing.assert_allclose(rate, motion.v, atol=1e-11)
        np.testing.assert_allclose(acceleration, motion.a, rtol=1e-10, atol=1e-9)
    noisy = v + np.random.default_rng(0).normal(size=v.shape)  # then (21) and (64) weigh the motors differently
    first, second = (dualv.platform_motion(q, noisy, a, solution=s)[1] for s in ("joint", "closure"))
    assert np.max(np.abs(first - second)) > 1e-3


# ---- dynamics -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_case_1_is_the_general_projected_regressor(mode: str) -> None:
    g, robot, motion = _geometry(mode), ROBOTS[mode], dualv.excitation(8)
    projector, Y = dualv.case_1(motion.q, motion.v, motion.a, g)
    general = di.regressor(robot, motion)
    columns = [robot.parameters.index(name) for name in dualv.COLUMNS]
    np.testing.assert_allclose(general[:, :, columns], Y, rtol=1e-9, atol=1e-9)
    assert not np.delete(general, columns, axis=2).any()  # exactly the paper's 52 parameters act
    np.testing.assert_allclose(projector, np.swapaxes(dualv.actuator_jacobian(motion.q, g), 1, 2), atol=1e-12)


def test_the_printed_leg_model_is_wrong_and_the_corrected_one_conserves_power() -> None:
    """Without friction the power of the torques is the change of kinetic energy."""
    motion = dualv.excitation(9, rate=4000.0, duration=1.0)
    robot = ROBOTS["inward"]
    chi = _chi()
    chi[[i for i, name in enumerate(dualv.COLUMNS) if name.startswith("f")]] = 0.0
    values = robot.parameters.replace(dict(zip(dualv.COLUMNS, chi, strict=True)))
    force = dualv.case_1(motion.q, motion.v, motion.a)[1] @ chi
    energy = di.energy_regressor(robot, motion)[0] @ values.values
    power = np.sum(force * motion.v, axis=1)
    slope = np.gradient(energy, motion.t, edge_order=2)
    assert np.max(np.abs(slope - power)[2:-2]) < 1e-3 * np.max(np.abs(power))
    np.testing.assert_allclose(di.inverse_dynamics(robot, motion, values), force, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kept", [(1, 2, 3), (1, 2, 4), (1, 3, 4), (2, 3, 4)])
def test_case_2_is_case_1_times_a_matrix(mode: str, kept: tuple[int, ...]) -> None:
    """Gamma_2 = J_r^-T Gamma_1: the literal solution of (33) with its misprint repaired."""
    g, motion = _geometry(mode), dualv.excitation(10)
    P1, Y1 = dualv.case_1(motion.q, motion.v, motion.a, g)
    P2, Y2 = dualv.case_2(motion.q, motion.v, motion.a, g, kept)
    J_r = dualv.actuator_jacobian(motion.q, g)[:, [i - 1 for i in kept]]
    for mine, other in ((P2, P1), (Y2, Y1)):
        np.testing.assert_allclose(np.swapaxes(J_r, 1, 2) @ mine, other, atol=1e-9 * np.max(np.abs(mine)))
    u = dualv.preload_direction(motion.q, g)
    assert np.max(np.abs(np.einsum("nij,nj->ni", P2, u))) < 1e-9 * np.max(np.abs(P2))


def test_inward_is_the_mode_where_the_default_partition_is_well_conditioned() -> None:
    x = np.concatenate([dualv.excitation(seed).q for seed in range(8)])
    for mode in MODES:
        found = rank_partitions(ROBOTS[mode], x)
        J = dualv.actuator_jacobian(x, _geometry(mode))
        for choice in found.choices:  # noise of J_r^-T A^T tau over that of R^-T A^T tau, by the paper's Jacobian
            J_r = J[:, [int(motor[-1]) - 1 for motor in choice.motors]]
            covariance = np.linalg.inv(J_r @ np.linalg.inv(np.swapaxes(J, 1, 2) @ J) @ np.swapaxes(J_r, 1, 2))
            gain = np.sqrt(np.linalg.eigvalsh(covariance)[:, -1])
            assert choice.worst == pytest.approx(gain.max(), rel=1e-4)
            assert choice.typical == pytest.approx(np.sqrt(np.mean(gain**2)), rel=1e-4)
        assert (found.choices[-1].typical < 5.0) == (mode == "inward")
        assert ("badly conditioned" in found.summary()) == (mode == "outward")


def test_a_badly_conditioned_projection_is_told() -> None:
    motion = dualv.excitation(5)
    for mode, told in (("inward", False), ("outward", True)):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            kept = ("motor_1", "motor_2", "motor_3")
            di.Regression.from_motion(ROBOTS[mode], motion, np.ones((len(motion), 4)), projection=kept)
        texts = [str(w.message) for w in seen]
        assert any("badly conditioned" in text and "motor_2, motor_3, motor_4" in text for text in texts) == told


def test_internal_stress() -> None:
    g, motion, chi = dualv.Geometry(), dualv.excitation(11), _chi()
    robot = ROBOTS["inward"]
    u = dualv.preload_direction(motion.q, g)
    assert np.min(np.sum(u[1:] * u[:-1], axis=1)) > 0.9  # never jumps
    tau = dualv.idle_torques(motion.q, motion.v, motion.a, chi)
    multipliers = dualv.idle_torques(motion.q, motion.v, motion.a, chi, smallest="multipliers")
    stressed = tau + dualv.preload(motion.t, motion.q)
    np.testing.assert_allclose(dualv.remove_internal_stress(stressed, motion.q), tau, atol=1e-10)
    np.testing.assert_allclose(dualv.remove_internal_stress(multipliers, motion.q), tau, atol=1e-10)
    np.testing.assert_allclose(dualv.internal_stress(stressed, motion.q), 5.0 + 2.0 * np.sin(3.0 * motion.t), atol=1e-10)
    # The smallest multipliers (26) are not the smallest torques (50).
    norms = [np.linalg.norm(x, axis=1) for x in (tau, multipliers)]
    assert np.all(norms[0] <= norms[1] + 1e-12)
    assert np.max(norms[1] - norms[0]) > 1e-3
    force = di.inverse_dynamics(robot, motion, robot.parameters.replace(dict(zip(dualv.COLUMNS, chi, strict=True))))
    np.testing.assert_allclose(actuator_torques(robot, motion.q, force), tau, atol=1e-9)


def test_toy_example() -> None:
    """f1 + f2 = m a is unique, (f1, f2) is not; what they do against each other is the preload."""
    robot, a = dualv.toy(3.0), np.array([[2.0], [-1.0]])
    motion = di.Motion([0.0, 1.0], np.zeros((2, 1)), np.zeros((2, 1)), a)
    force = di.inverse_dynamics(robot, motion)
    np.testing.assert_allclose(force, 3.0 * a)
    A = actuator_jacobian(robot, motion.q)
    np.testing.assert_array_equal(A, np.ones((2, 2, 1)))
    for share in (0.0, 0.3, 2.0):
        f = 3.0 * a * np.array([1.0 - share, share])
        np.testing.assert_allclose(np.einsum("tkn,tk->tn", A, f), force)
    np.testing.assert_allclose(actuator_torques(robot, motion.q, force), 1.5 * a * np.ones(2))


# ---- published numbers --------------------------------------------------------------------------------------------------


def test_published_tables() -> None:
    text = dualv.essential_table()
    rows = {line.split()[0]: line.split()[1:] for line in text.splitlines()[2:]}
    assert list(rows) == ["zz_11R", "zz_12R", "zz_13R", "zz_14R", "zz_4", "m_4", "zz_5", "mx_5", "m_5"]
    assert rows["m_5"] == ["5.42", "0.30", "5.52", "0.29"]
    mass = [dualv.TABLE_2[case]["m_payload"][0] / dualv.PAYLOAD_WEIGHED - 1.0 for case in ("case 1", "case 2")]
    np.testing.assert_allclose(mass, [0.0093, 0.0279], atol=5e-5)
    ratios = [max(s) / min(s) for s in ([p for _, p in dualv.TABLE_2[c].values()] for c in ("case 1", "case 2"))]
    np.testing.assert_allclose(ratios, [5.7, 10.8], atol=0.05)  # the second is above the stated 10
    means = [np.mean(dualv.TABLE_3[case]) for case in ("case 1", "case 2")]
    np.testing.assert_allclose(means, [8.8, 9.09], atol=0.01)  # printed 9.2
    better = 100.0 * (1.0 - np.array([dualv.TABLE_4[c] for c in ("case 1", "case 2")]) / np.array(dualv.TABLE_4["PD"]))
    assert better.min() == pytest.approx(55.9, abs=0.1)
    assert better.max() == pytest.approx(76.6, abs=0.1)
    assert dualv.paper_symbol("fc_q3_2") == "fs_32"
    assert dualv.paper_symbol("my_platformR") == "my_4R"


def test_priors_are_table_2() -> None:
    values = ROBOTS["inward"].parameters
    assert values["m_platform"] == 1.92
    assert values["Izz_link1_4"] == 5.07e-2
    M = di.mass_matrix(ROBOTS["inward"], dualv.excitation(0).q)
    assert np.all(np.linalg.eigvalsh(M) > 0.0)


# ---- bad input ----------------------------------------------------------------------------------------------------------


def test_bad_input_is_named() -> None:
    with pytest.raises(DynidentError, match="working mode is 'sideways'"):
        dualv.mechanism(working_mode="sideways")
    with pytest.raises(DynidentError, match=r"r_p is -0\.1"):
        dualv.mechanism(r_p=-0.1)
    with pytest.raises(DynidentError, match="parameters is 'some'"):
        dualv.mechanism(parameters="some")
    with pytest.raises(DynidentError, match="leg 2 cannot reach the platform at sample 1"):
        dualv.inverse_kinematics([[0.0, 0.0, 0.0], [0.3, 0.0, 0.0]])
    with pytest.raises(DynidentError, match="do not meet at sample 0"):
        dualv.forward_kinematics([0.0, np.pi, np.pi, 0.0])
    with pytest.raises(DynidentError, match="not finite at sample 0"):
        dualv.inverse_kinematics([0.0, np.nan, 0.0])
    with pytest.raises(DynidentError, match="give \\(samples, 4\\)"):
        dualv.forward_kinematics([0.0, 1.0])
    motion = dualv.excitation(0)
    with pytest.raises(DynidentError, match="name three different ones"):
        dualv.case_2(motion.q, motion.v, motion.a, kept=(1, 1, 2))
    with pytest.raises(DynidentError, match="three positive"):
        dualv.excitation(box=(0.1, 0.1))
    with pytest.raises(DynidentError, match="'torque' \\(50\\) or 'multipliers'"):
        dualv.idle_torques(motion.q, motion.v, motion.a, _chi(), smallest="c")


def test_unreachable_motion_names_the_sample_in_the_general_solver_too() -> None:
    robot = ROBOTS["inward"]
    x = np.linspace(0.0, 0.3, 31)
    q = np.stack([x, 0.0 * x, 0.0 * x], axis=1)
    limit = int(np.argmax([np.hypot(0.395 + v, 0.0) > 0.56 for v in x]))  # legs 2 and 3 are stretched there
    with pytest.raises(DynidentError, match=f"at sample {limit} \\(platform.x = {x[limit]:.6g}"):
        close_motion(robot, di.Motion(x, q, 0.0 * q, 0.0 * q))
    home = close_rates(robot, robot.closure.home[None], np.zeros((1, 3)), np.zeros((1, 3)))
    assert home.pivot[0] > 0.01
