"""The 5R five-bar: closed forms against the general solver and each other, modes, singularities, Table 4.1."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import dynident as di
from dynident.errors import DynidentError
from dynident.mechanics import actuator_jacobian, actuator_torques, close_motion, coordinates_from_actuators
from dynident_papers.robots import five_bar

MASSES, PLATFORM = (1.8, 1.0, 1.1, 1.7), 0.8
MODES = list(itertools.product((-1, 1), repeat=2))


def _circle(radius: float = 0.15, centre: tuple[float, float] = (0.05, 0.9), samples: int = 200) -> di.Motion:
    """The circle of test T2 and T3: counter-clockwise at constant speed, 0.5 rev/s."""
    t = np.arange(samples) / samples * 2.0
    w = np.pi
    e, n = np.stack([np.cos(w * t), np.sin(w * t)], axis=1), np.stack([-np.sin(w * t), np.cos(w * t)], axis=1)
    return di.Motion(t, np.array(centre) + radius * e, radius * w * n, -radius * w**2 * e)


def _general(mode: tuple[int, int], coordinates: str = "platform", **changes: float) -> di.Mechanism:
    geometry = five_bar.Geometry(working_mode=mode, **changes)
    return five_bar.mechanism(geometry, MASSES, PLATFORM, coordinates, start=(0.05, 0.9))


@pytest.mark.parametrize("mode", MODES)
def test_closed_forms_agree_with_the_general_closure(mode: tuple[int, int]) -> None:
    g, motion, robot = five_bar.Geometry(working_mode=mode), _circle(), _general(mode)
    assert robot.closure.dof == 2
    assert robot.closure.redundant_equations == 6  # two spatial revolute cuts in a planar robot
    closed = close_motion(robot, motion)
    angles = five_bar.inverse_kinematics(motion.q, g)
    names = robot.tree.coordinates
    q, v, a = ({name: x[:, i] for i, name in enumerate(names)} for x in (closed.q, closed.v, closed.a))
    expected = np.stack([q["alpha1"], q["alpha1"] + q["elbow2"], q["alpha4"] + q["elbow3"], q["alpha4"]], axis=1)
    np.testing.assert_allclose(angles, expected, atol=1e-9)
    J_x, J_q = five_bar.jacobians(angles, g)
    driven = np.stack([v["alpha1"], v["alpha4"]], axis=1)
    np.testing.assert_allclose(np.einsum("nij,nj->ni", J_x, motion.v), J_q * driven, atol=1e-12)
    pushed = np.stack([a["alpha1"], a["alpha4"]], axis=1)
    rates, accelerations = five_bar.passive_rates(angles, driven, pushed, g)
    np.testing.assert_allclose(rates, np.stack([v["alpha1"] + v["elbow2"], v["alpha4"] + v["elbow3"]], axis=1), atol=1e-9)
    np.testing.assert_allclose(
        accelerations, np.stack([a["alpha1"] + a["elbow2"], a["alpha4"] + a["elbow3"]], axis=1), atol=1e-9
    )


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("assembly", [-1, 1])
def test_forward_kinematics_inverts_the_inverse_in_every_mode(mode: tuple[int, int], assembly: int) -> None:
    """By geometry: |AP| = l2 and |BP| = l3, also with unequal bars."""
    rng = np.random.default_rng(0)
    g = five_bar.Geometry(l2=0.8, l3=0.65, l4=0.55, working_mode=mode, assembly_mode=assembly)
    P = rng.uniform([-0.4, 0.4], [0.4, 1.0], (300, 2)) * np.stack([np.ones(300), rng.choice([-1.0, 1.0], 300)], axis=1)
    angles = five_bar.inverse_kinematics(P, g)
    signs = [np.sin(angles[:, 1] - angles[:, 0]), np.sin(angles[:, 2] - angles[:, 3])]
    np.testing.assert_array_equal(np.sign(signs), np.broadcast_to(np.array(mode)[:, None], (2, 300)))
    back, again = five_bar.forward_kinematics(angles[:, [0, 3]], g)
    e = lambda a: np.stack([np.cos(a), np.sin(a)], axis=1)  # noqa: E731
    A, B = g.bases[0] + g.l1 * e(angles[:, 0]), g.bases[1] + g.l4 * e(angles[:, 3])
    np.testing.assert_allclose(np.linalg.norm(back - A, axis=1), g.l2, atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(back - B, axis=1), g.l3, atol=1e-12)
    same = np.sign(np.sin(angles[:, 2] - angles[:, 1])) == assembly  # the others are the mirror assembly of these motors
    assert same.any() or mode == (-assembly, assembly)[::-1]  # elbows (-1, 1) always assemble to +1, (1, -1) to -1
    np.testing.assert_allclose(back[same], P[same], atol=1e-9)
    np.testing.assert_allclose(np.cos(again[same] - angles[same]), 1.0, atol=1e-12)
    assert np.min(np.linalg.norm(back[~same] - P[~same], axis=1), initial=1.0) > 1e-6


def test_printed_quadratic_after_its_correction() -> None:
    """(B.18)-(B.22) with M as reconstructed and phi = 1 + (...)^2 give P; with the printed minus sign they do not."""
    g, motion = five_bar.Geometry(), _circle()
    angles = five_bar.inverse_kinematics(motion.q, g)
    e = lambda a: np.stack([np.cos(a), np.sin(a)])  # noqa: E731
    xa, ya = g.bases[0][:, None] + g.l1 * e(angles[:, 0])
    xb, yb = g.bases[1][:, None] + g.l4 * e(angles[:, 3])
    M = g.l2**2 - g.l3**2 - ya**2 + yb**2 - xa**2 + xb**2
    s = (ya - yb) / (xb - xa)
    beta = s / (xb - xa) * M - 2 * xa * s - 2 * ya
    gamma = M**2 / (4 * (xb - xa) ** 2) - xa / (xb - xa) * M + ya**2 + xa**2 - g.l2**2
    roots = {}
    for sign in (1.0, -1.0):
        phi = 1.0 + sign * s**2
        y = (-beta + np.sqrt(beta**2 - 4 * phi * gamma)) / (2 * phi)
        roots[sign] = np.stack([(M + 2 * y * (ya - yb)) / (2 * (xb - xa)), y], axis=1)
    np.testing.assert_allclose(roots[1.0], motion.q, atol=1e-9)
    assert np.max(np.abs(roots[-1.0] - motion.q)) > 1e-3


def test_energy_equivalence_is_the_general_inverse_dynamics() -> None:
    """Sum of J_b^T M_b (J_b a + Jdot_b v) over the bars, against the projected tree, in motor coordinates."""
    g, circle = five_bar.Geometry(), _circle()
    robot = _general((-1, 1), "motors")
    angles = five_bar.inverse_kinematics(circle.q, g)
    platform = close_motion(_general((-1, 1)), circle)
    columns = [robot.tree.coordinates.index(name) for name in ("alpha1", "alpha4")]
    motion = di.Motion(circle.t, platform.q[:, columns], platform.v[:, columns], platform.a[:, columns])
    bodies = robot.parameters.replace({name: 0.0 for name in robot.parameters.names if name[:2] in ("ia", "fv", "fc")})
    tau = di.inverse_dynamics(robot, motion, bodies)
    mine = five_bar.inverse_dynamics(angles, motion.v, motion.a, MASSES, PLATFORM, g)
    np.testing.assert_allclose(tau, mine, rtol=1e-9, atol=1e-9)
    J = five_bar.body_jacobians(angles, g)
    inertia = [m * length**2 / 12.0 for m, length in zip(MASSES, (g.l1, g.l2, g.l3, g.l4), strict=True)]
    weights = [np.diag([m, m, i]) for m, i in zip((*MASSES, PLATFORM), (*inertia, 0.0), strict=True)]
    M = sum(np.swapaxes(J[:, b], 1, 2) @ W @ J[:, b] for b, W in enumerate(weights))
    np.testing.assert_allclose(di.mass_matrix(robot, motion.q, bodies), M, rtol=1e-9, atol=1e-9)


def test_platform_and_motor_coordinates_are_the_same_robot() -> None:
    motors, platform, circle = _general((-1, 1), "motors"), _general((-1, 1)), _circle()
    closed = close_motion(platform, circle)
    columns = [platform.tree.coordinates.index(name) for name in ("alpha1", "alpha4")]
    motion = di.Motion(circle.t, closed.q[:, columns], closed.v[:, columns], closed.a[:, columns])
    torques = [actuator_torques(r, m.q, di.inverse_dynamics(r, m)) for r, m in ((motors, motion), (platform, circle))]
    np.testing.assert_allclose(torques[0], torques[1], rtol=1e-9, atol=1e-9)
    rho = 40.0 * motion.q
    np.testing.assert_allclose(coordinates_from_actuators(platform, rho), circle.q, atol=1e-9)
    np.testing.assert_allclose(coordinates_from_actuators(motors, rho), motion.q, atol=1e-9)
    np.testing.assert_allclose(actuator_jacobian(motors, motion.q), np.broadcast_to(40.0 * np.eye(2), (len(motion), 2, 2)))
    base = [di.base_parameters(r).rank for r in (motors, platform)]
    assert base == [15, 15]  # 7 inertial, 8 friction


def test_numbers_of_the_document() -> None:
    robot = five_bar.mechanism()
    assert robot.parameters["ia_alpha1"] == pytest.approx(13e-4 * 1600)
    assert robot.parameters["fc_alpha4"] == pytest.approx(0.478 * 40)
    k_p, k_i = five_bar.VELOCITY_PI
    omega = np.sqrt(five_bar.TORQUE_CONSTANT * k_i / five_bar.MOTOR_INERTIA)
    damping = (five_bar.MOTOR_VISCOUS + five_bar.TORQUE_CONSTANT * k_p) / (2.0 * five_bar.MOTOR_INERTIA * omega)
    assert omega == pytest.approx(112.2, abs=0.05)  # test vector 10
    assert damping == pytest.approx(0.692, abs=5e-4)


def test_singularities_have_small_sines() -> None:
    g = five_bar.Geometry()
    y = np.linspace(0.9, np.sqrt(1.3**2 - 0.01) - 1e-6, 50)  # up to where both legs are stretched
    angles = five_bar.inverse_kinematics(np.stack([0.0 * y, y], axis=1), g)
    near = five_bar.singularities(angles).serial
    assert np.all(near[49] < 0.05)
    assert np.all(near.argmin(axis=0) == 49)
    healthy = five_bar.singularities(five_bar.inverse_kinematics([0.0, 0.9], g))
    assert min(healthy.serial.min(), healthy.parallel.min()) > 0.05
    # Distal bars in line: A and B are 1.4 m apart and P between them.
    half = np.arccos((0.7 - 0.15) / 0.6 - 1e-9)
    flat, all_angles = five_bar.forward_kinematics([np.pi - half, half], five_bar.Geometry(base=0.3))
    found = five_bar.singularities(all_angles)
    assert found.parallel.min() < 0.05 < found.serial.min()
    np.testing.assert_allclose(flat, [[0.0, 0.6 * np.sin(half)]], atol=1e-3)
    # The general solver sees both: motors cannot open the elbows beyond the distal bars, P cannot go beyond the legs.
    robot = five_bar.mechanism(five_bar.Geometry(base=0.3))
    opened = np.linspace(2.0, np.pi, 60)
    q = np.stack([opened, np.pi - opened], axis=1)
    limit = int(np.argmax(opened > np.pi - half))
    with pytest.raises(DynidentError, match=f"at sample {limit} .*singularity"):
        close_motion(robot, di.Motion(np.arange(60.0), q, 0 * q, 0 * q))
    robot = _general((-1, 1))
    q = np.stack([np.linspace(0.05, 1.6, 80), np.full(80, 0.9)], axis=1)
    with pytest.raises(DynidentError, match="at sample"):
        close_motion(robot, di.Motion(np.arange(80.0), q, 0 * q, 0 * q))


def test_passive_rates_are_regular_at_serial_singularities() -> None:
    g = five_bar.Geometry()
    angles = np.array([[1.3, 1.3, 1.9, 2.1]])  # leg 1 stretched
    rates = five_bar.passive_rates(angles, [[1.0, 0.5]], [[0.0, 0.0]], g)
    assert np.all(np.isfinite(rates))


def test_bad_input_is_named() -> None:
    with pytest.raises(DynidentError, match="l2 is 0"):
        five_bar.Geometry(l2=0)
    with pytest.raises(DynidentError, match="working_mode is \\(2, 1\\)"):
        five_bar.Geometry(working_mode=(2, 1))
    with pytest.raises(DynidentError, match="assembly_mode is 0"):
        five_bar.Geometry(assembly_mode=0)
    with pytest.raises(DynidentError, match=r"leg of alpha1 cannot reach .* at sample 1"):
        five_bar.inverse_kinematics([[0.0, 0.9], [2.0, 0.9]])
    with pytest.raises(DynidentError, match="do not meet at sample 0"):
        five_bar.forward_kinematics([np.pi, 0.0], five_bar.Geometry(base=0.6))
    with pytest.raises(DynidentError, match="coordinates is 'tip'"):
        five_bar.mechanism(coordinates="tip")
    with pytest.raises(DynidentError, match="masses are"):
        five_bar.mechanism(masses=(1.0, 2.0))
    with pytest.raises(DynidentError, match="parallel singularity at sample 0"):
        five_bar.passive_rates([[2.0, 1.0, 1.0, 0.5]], [[1.0, 0.0]], [[0.0, 0.0]])
    with pytest.raises(DynidentError, match="not finite at sample 1"):
        five_bar.inverse_kinematics([[0.0, 0.9], [np.inf, 0.9]])
