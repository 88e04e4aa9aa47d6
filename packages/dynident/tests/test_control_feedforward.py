"""Feed-forward tables: inverse dynamics and friction on a reference, down to the currents of the motors."""

from __future__ import annotations

import numpy as np
import pytest
from small_robots import arm3, platform, platform_angles

from dynident.control import feedforward_torques
from dynident.control.feedforward import actuator_motion, actuator_rows, motor_torques
from dynident.drive import Drive, Motor, Transmission
from dynident.errors import DynidentError
from dynident.friction import Coulomb, LuGre, Viscous
from dynident.mechanics import Motion, inverse_dynamics

T = np.linspace(0.0, 1.0, 41)


def _motion(dof: int, size: float) -> Motion:
    phase, rate = np.arange(dof), 2.0 * np.pi
    angle = rate * T[:, None] + phase
    return Motion(T, size * np.sin(angle), size * rate * np.cos(angle), -size * rate**2 * np.sin(angle))


def test_a_serial_arm_gets_its_inverse_dynamics() -> None:
    robot, motion = arm3(), _motion(3, 0.4)
    np.testing.assert_allclose(feedforward_torques(robot, motion), inverse_dynamics(robot, motion), atol=1e-12)


def test_a_redundant_robot_gets_the_least_torque_and_its_preload() -> None:
    robot, motion = platform(), _motion(3, 0.03)
    f, A = inverse_dynamics(robot, motion), actuator_rows(robot, motion.q)
    tau = feedforward_torques(robot, motion)
    pressed = feedforward_torques(robot, motion, preload=[5.0, -5.0, 5.0, -5.0])
    for torques in (tau, pressed):
        np.testing.assert_allclose(np.einsum("tkn,tk->tn", A, torques), f, atol=1e-10)
    assert np.all(np.linalg.norm(pressed, axis=1) >= np.linalg.norm(tau, axis=1) - 1e-12)
    assert np.abs(pressed - tau).max() > 1.0


def test_the_motion_of_the_actuators_is_consistent() -> None:
    robot, motion = platform(), _motion(3, 0.03)
    rho = actuator_motion(robot, motion)
    np.testing.assert_allclose(rho.q, platform_angles(motion.q)[:, :, 0], atol=1e-8)
    fine = Motion(T, motion.q, motion.v, motion.a)
    np.testing.assert_allclose(rho.v, np.einsum("tkn,tn->tk", actuator_rows(robot, fine.q), fine.v), atol=1e-10)
    h = 1e-5
    ahead, behind = (
        actuator_motion(
            robot, Motion(T, motion.q + s * h * motion.v + 0.5 * h * h * motion.a, motion.v + s * h * motion.a, motion.a)
        ).v
        for s in (1.0, -1.0)
    )
    np.testing.assert_allclose(rho.a, (ahead - behind) / (2.0 * h), rtol=1e-4, atol=1e-3)


def test_friction_is_compensated_at_its_own_speed() -> None:
    robot, motion = platform(), _motion(3, 0.03)
    law = (Coulomb() + Viscous()).using(fc=0.4, fv=0.05)
    plain, rho = feedforward_torques(robot, motion), actuator_motion(robot, motion)
    name = robot.actuators[1].name
    tau = feedforward_torques(robot, motion, friction={name: law})
    extra = np.zeros_like(plain)
    extra[:, 1] = 0.4 * np.sign(rho.v[:, 1]) + 0.05 * rho.v[:, 1]
    np.testing.assert_allclose(tau - plain, extra, atol=1e-12)
    # A coordinate's friction is a generalised force, which all actuators share.
    x = robot.coordinate_names[0]
    shared = feedforward_torques(robot, motion, friction={x: law})
    f = np.einsum("tkn,tk->tn", actuator_rows(robot, motion.q), shared - plain)
    np.testing.assert_allclose(f[:, 0], law(motion.v[:, 0]), atol=1e-10)
    np.testing.assert_allclose(f[:, 1:], 0.0, atol=1e-10)


def test_a_dynamic_law_counts_with_its_steady_part() -> None:
    robot, motion = arm3(), _motion(3, 0.4)
    law = LuGre(sigma0=1e4, sigma1=1.0, fc=0.3, fs=0.5, vs=0.1, fv=0.2)
    name = robot.coordinate_names[2]
    extra = feedforward_torques(robot, motion, friction={name: law}) - feedforward_torques(robot, motion)
    np.testing.assert_allclose(extra[:, 2], law.steady(motion.v[:, 2]), atol=1e-12)


def test_motors_carry_their_own_inertia_and_friction() -> None:
    rho = _motion(2, 0.5)
    drives = [
        Drive(
            "a",
            Motor(0.5, inertia=1e-3),
            Transmission(20.0, inertias=(5e-4,)),
            friction=(Coulomb() + Viscous()).using(fc=0.1, fv=1e-3),
        ),
        Drive("b", Motor(0.25, inertia=2e-3), Transmission(-30.0, efficiency=0.8)),
    ]
    tau = np.column_stack([np.full(T.size, 6.0), np.full(T.size, 9.0)])
    motor = motor_torques(drives, rho, tau)
    omega = 20.0 * rho.v[:, 0]
    np.testing.assert_allclose(motor[:, 0], 0.3 + 1.5e-3 * 20.0 * rho.a[:, 0] + 0.1 * np.sign(omega) + 1e-3 * omega, atol=1e-12)
    back = np.where(rho.v[:, 1] > 0.0, 1.0 / 0.8, 0.8)  # power to the joint where torque and speed agree
    moving = np.abs(rho.v[:, 1]) > 1e-9
    np.testing.assert_allclose(motor[moving, 1], (-0.3 * back - 2e-3 * 30.0 * rho.a[:, 1])[moving], atol=1e-12)


@pytest.mark.parametrize(
    ("friction", "sentence"),
    [
        (1.0, "friction is a float"),
        ({"knee": Coulomb().using(fc=1.0)}, "friction names 'knee', which does not exist"),
        ({"joint_1": Coulomb()}, "is a Coulomb; give a law with numbers"),
    ],
)
def test_bad_friction_is_refused(friction: object, sentence: str) -> None:
    robot = arm3()
    if isinstance(friction, dict) and "joint_1" in friction:
        friction = {robot.coordinate_names[0]: friction["joint_1"]}
    with pytest.raises(DynidentError, match=sentence):
        feedforward_torques(robot, _motion(3, 0.4), friction=friction)  # type: ignore[arg-type]


def test_bad_shapes_are_refused() -> None:
    drive = Drive("a", Motor(0.5, inertia=1e-3))
    with pytest.raises(DynidentError, match=r"torques have shape \(41, 2\)"):
        motor_torques([drive], _motion(1, 0.5), np.zeros((41, 2)))
    with pytest.raises(DynidentError, match="rho is a list"):
        motor_torques([drive], [1.0], np.zeros((1, 1)))  # type: ignore[arg-type]
