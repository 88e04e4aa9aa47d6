"""Forces through the joints of the tree: against the motors, and against the momentum of the whole robot."""

from __future__ import annotations

import numpy as np
import pytest
from loop_cases import CASES, bennett, four_bar, opened, rssr, slider_crank, states

import dynident as di
from dynident.mechanics import actuator_torques, close_motion
from dynident_lab.joint_reactions import closure_conditioning, joint_reactions, reactions


def along(mechanism: di.Mechanism, motion: di.Motion, name: str, wrench: np.ndarray) -> np.ndarray:
    """What a wrench does along (prismatic) or about (revolute) the axis of a joint."""
    joint = mechanism.joint(name)
    axis = di.forward_kinematics(mechanism, motion.q, joint.child)[0] @ joint.axis
    return np.sum(axis * wrench[:, :3] if joint.kind == "prismatic" else axis * wrench[:, 3:], axis=1)


@pytest.mark.parametrize("case", [name for name in CASES if name not in ("three cranks", "spherical")])
def test_passive_joints_pass_nothing_about_their_axis_and_driven_ones_the_motor(case: str) -> None:
    mechanism = CASES[case]().with_terms(())
    motion = states(mechanism)
    tau = actuator_torques(mechanism, motion.q, di.inverse_dynamics(mechanism, motion))
    found = joint_reactions(mechanism, motion, tau)
    driven = next(iter(mechanism.actuators[0].coupling))
    size = max(float(np.max(np.abs(wrench))) for wrench in found.values())
    for name, wrench in found.items():
        expected = tau[:, 0] if name == driven else np.zeros(len(motion))
        np.testing.assert_allclose(along(mechanism, motion, name, wrench), expected, atol=1e-9 * size, err_msg=name)


@pytest.mark.parametrize("build", [four_bar, slider_crank, rssr, bennett])
def test_what_the_base_carries_is_the_momentum_of_all_bodies(build: object) -> None:
    mechanism = build().with_terms(())
    home = mechanism.closure.home[mechanism.closure.independent]
    h = 1e-3
    t = h * np.arange(-2.0, 3.0)
    q = home + 0.7 * np.sin(2.0 * t)[:, None]
    motion = di.Motion(t, q, 1.4 * np.cos(2.0 * t)[:, None], -2.8 * np.sin(2.0 * t)[:, None])
    tau = actuator_torques(mechanism, motion.q, di.inverse_dynamics(mechanism, motion))
    found = joint_reactions(mechanism, motion, tau)
    carried = sum(found[joint.name][:, :3] for joint in mechanism.joints if joint.parent == mechanism.root)
    for loop in mechanism.loops:
        force = reactions(mechanism, motion, tau)[loop.name][:, :3]
        carried = carried - force * (loop.body_a == mechanism.root) + force * (loop.body_b == mechanism.root)
    moment, mass = np.zeros((5, 3)), 0.0
    for body in mechanism.bodies:
        if body.inertia is not None and body.name != mechanism.root:
            R, x = di.forward_kinematics(mechanism, q, body.name)
            moment, mass = moment + body.inertia[0] * x + R @ body.inertia[1:4], mass + body.inertia[0]
    second = (-moment[0] + 16 * moment[1] - 30 * moment[2] + 16 * moment[3] - moment[4]) / (12 * h**2)
    np.testing.assert_allclose(carried[2], second - mass * mechanism.gravity, atol=1e-5 * np.abs(carried).max())


def test_a_serial_arm_needs_no_torques() -> None:
    arm = di.Mechanism.from_dh(
        [(0.3, 0.4, 0.1, 0.0), (0.2, -0.3, 0.0, 0.2), (0.1, 0.2, 0.3, 0.0, "prismatic")], convention="modified"
    )
    rng = np.random.default_rng(0)
    arm = arm.with_terms(())
    motion = di.Motion(np.arange(5.0), *(rng.normal(size=(5, 3)) for _ in range(3)))
    values = rng.uniform(0.1, 1.0, len(arm.parameters))
    tau = di.inverse_dynamics(arm, motion, values)
    found = joint_reactions(arm, motion, parameters=values)
    for i, name in enumerate(arm.joint_names):
        np.testing.assert_allclose(along(arm, motion, name, found[name]), tau[:, i], atol=1e-10)


@pytest.mark.parametrize("case", ["point", "spherical", "revolute", "weld", "prismatic"])
def test_reactions_replace_the_cut_joint(case: str) -> None:
    """The opened tree, driven by the motors and by the reactions as external wrenches, moves as the closed robot does."""
    mechanism = CASES[case]()
    motion = states(mechanism)
    closed = close_motion(mechanism, motion)
    tau = actuator_torques(mechanism, motion.q, di.inverse_dynamics(mechanism, motion))
    found = reactions(mechanism, motion, tau)
    tree = opened(mechanism)
    whole = di.Motion(motion.t, closed.q, closed.v, closed.a)
    load = di.inverse_dynamics(tree, whole) - tau @ mechanism.actuator_matrix[0]
    for loop in mechanism.loops:
        force, moment = found[loop.name][:, :3], found[loop.name][:, 3:]
        Ja, Jb = (di.jacobian(tree, closed.q, f"{loop.name}:{side}", "world") for side in "ab")
        gap = (
            di.forward_kinematics(tree, closed.q, f"{loop.name}:b")[1]
            - di.forward_kinematics(tree, closed.q, f"{loop.name}:a")[1]
        )
        back = moment - np.cross(gap, force)  # the same wrench, at the point of body b
        load -= np.einsum("nij,ni->nj", Ja, np.hstack([force, moment])) - np.einsum("nij,ni->nj", Jb, np.hstack([force, back]))
    assert np.max(np.abs(load)) < 1e-8


def test_distance_to_singularities() -> None:
    """The rocker of a four-bar as coordinate is lost where crank and coupler are in line."""
    crank, coupler, rocker, ground = 0.3, 0.8, 0.6, 0.9
    mechanism = four_bar(independent=("c",), actuators=(di.Actuator("m", {"a": 1.0}),))
    cosine = ((crank + coupler) ** 2 - rocker**2 - ground**2) / (2.0 * rocker * ground)
    limit = np.arccos(cosine)
    start = float(mechanism.closure.home[2])
    q = np.linspace(start, np.sign(start) * limit, 30)[:-1]
    found = closure_conditioning(mechanism, q[:, None])
    assert np.all(np.diff(found.serial[5:]) < 0.0)
    assert found.serial[-1] < 0.5 * found.serial[0]
    assert np.min(found.constraint) > 0.05
