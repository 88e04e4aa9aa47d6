"""Runs are reproducible by their seed; a payload compiles nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from simulate_cases import arm, excitation, geared_arm, noisy_arm, same

from dynident.control import ComputedTorque
from dynident.mechanics.dynamics import forward_kinematics, jacobian, mass_matrix
from dynident.mechanics.functions import geometry_key
from dynident.mechanism.elements import Body, Joint, Placement
from dynident.mechanism.mechanism import Mechanism
from dynident.mechanism.parameters import from_com
from dynident.simulate import machine

CURVE = excitation(2, 0.3, size=0.1)


def test_the_same_seed_gives_the_same_bits() -> None:
    robot = noisy_arm()
    assert same(robot.simulate(CURVE, seed=4), robot.simulate(CURVE, seed=4))
    assert not same(robot.simulate(CURVE, seed=4), robot.simulate(CURVE, seed=5))


def test_a_payload_compiles_nothing_and_is_a_heavier_link() -> None:
    robot = noisy_arm()
    robot.simulate(CURVE)
    known = dict(machine._codes)
    centre, inertia = np.array([0.05, 0.02, 0.0]), np.diag([1e-3, 2e-3, 2.5e-3])
    loaded = robot.mechanism.with_payload(0.7, centre, inertia)
    run = replace(robot, mechanism=loaded).simulate(CURVE)
    assert machine._codes == known
    heavier = robot.mechanism.parameters.values.copy()
    last = 10 * (len(robot.mechanism.tree.bodies) - 1)
    heavier[last : last + 10] += from_com(0.7, centre, inertia)
    other = replace(robot, mechanism=robot.mechanism.with_parameters(robot.mechanism.parameters.replace(heavier))).simulate(
        CURVE
    )
    assert np.abs(run.truth.motion.q - other.truth.motion.q).max() < 1e-12
    assert not np.array_equal(run.truth.motion.q, robot.simulate(CURVE).truth.motion.q)


def test_machines_that_share_code_keep_their_own_numbers() -> None:
    robot = geared_arm(2)
    light, heavy = (robot.mechanism.with_payload(mass) for mass in (0.1, 3.0))
    believing = [replace(robot, controller=ComputedTorque(model, 400.0, 40.0, cycle=1e-3)) for model in (light, heavy)]
    first, second = (machine_.simulate(CURVE).truth.motor_torque for machine_ in believing)
    assert np.abs(first - second).max() > 0.1 * np.abs(first).max()  # the models differ, the robot does not
    again = replace(robot, controller=ComputedTorque(light, 400.0, 40.0, cycle=1e-3)).simulate(CURVE).truth.motor_torque
    assert np.array_equal(first, again)


def test_robots_that_differ_in_a_frame_share_their_mass_matrix_but_not_their_jacobian() -> None:
    def with_tool(length: float) -> Mechanism:
        robot = arm(2)
        mount = Joint("mount", "fixed", robot.bodies[-1].name, "tool", Placement(translation=np.array([length, 0.0, 0.0])))
        return replace(robot, bodies=(*robot.bodies, Body("tool")), joints=(*robot.joints, mount))

    short, long = with_tool(0.1), with_tool(0.3)
    q, v = np.array([[0.3, -0.7]]), np.array([0.4, 0.9])
    assert geometry_key(short, frames=False) == geometry_key(long, frames=False)
    assert np.array_equal(mass_matrix(short, q), mass_matrix(long, q))
    for robot in (short, long):
        step = 1e-6
        ends = [forward_kinematics(robot, q + way * step * v, "tool")[1][0] for way in (1.0, -1.0)]
        speed = jacobian(robot, q, "tool", "world")[0, :3] @ v
        assert np.allclose(speed, (ends[0] - ends[1]) / (2.0 * step), atol=1e-8)
