"""Robots that are the same robot described in another way must move the same way."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from random_mechanisms import (
    ALL_TERMS,
    BRANCHED,
    PROPERTY,
    SCALAR_KINDS,
    build,
    close,
    coupled,
    every_kind,
    mechanisms,
    random_inertia,
    random_motion,
    random_placement,
)
from scipy.spatial.transform import Rotation

from dynident.graph import Graph
from dynident.graph.expression import evaluate_nodes
from dynident.mechanics import (
    Motion,
    coriolis_matrix,
    energy_regressor,
    forward_dynamics,
    forward_kinematics,
    frame_motion,
    gravity,
    inverse_dynamics,
    jacobian,
    mass_matrix,
    regressor,
)
from dynident.mechanics.newton_euler import position_rates
from dynident.mechanism import Body, Coupling, Joint, Mechanism, from_com
from dynident.mechanism.parameters import transform

SAMPLES = 6


def columns(robot: Mechanism, motion: Motion, of: Mechanism) -> Motion:
    """Return the motion of the coordinates of another robot, by name."""
    pick = [robot.coordinate_names.index(name) for name in of.coordinate_names]
    return Motion(motion.t, motion.q[:, pick], motion.v[:, pick], motion.a[:, pick])


# ---- massless frames and lumped bodies -------------------------------------------------------------------------------


def test_a_massive_body_behind_a_massless_frame_equals_the_body_in_the_joint_frame() -> None:
    rng = np.random.default_rng(0)
    base, pose, phi = Body("base"), random_placement(rng), random_inertia(rng)
    turn = Joint("j", "revolute", "base", "frame", random_placement(rng), axis=rng.normal(size=3))
    mount = Joint("mount", "fixed", "frame", "mass", pose)
    behind = Mechanism("behind", (base, Body("frame"), Body("mass", phi)), (turn, mount), terms=())
    moved = transform(phi, pose.rotation, pose.translation)
    direct = Mechanism("direct", (base, Body("frame", moved)), (turn,), terms=())
    assert behind.tree.to_node is not None
    assert direct.tree.to_node is None
    assert behind.tree.bodies == ("mass",)
    close(behind.parameters.values, phi, 1e-15)  # in the frame of the body that has the mass
    motion = random_motion(direct, SAMPLES)
    close(inverse_dynamics(behind, motion), inverse_dynamics(direct, motion), 1e-13)
    close(mass_matrix(behind, motion.q), mass_matrix(direct, motion.q), 1e-13)
    close(coriolis_matrix(behind, motion.q, motion.v), coriolis_matrix(direct, motion.q, motion.v), 1e-13)
    tau = motion.a * 3.0
    ours, theirs = (forward_dynamics(r, motion.q, motion.v, tau) for r in (behind, direct))
    close(ours, theirs, 1e-12)
    for Y in (regressor, lambda r, m: energy_regressor(r, m)[0], lambda r, m: energy_regressor(r, m)[1]):
        close(Y(behind, motion) @ phi, Y(direct, motion) @ moved, 1e-13)
    R, p = forward_kinematics(behind, motion.q, "mass")
    R0, p0 = forward_kinematics(direct, motion.q, "frame")
    close(R, R0 @ pose.rotation, 1e-14)
    close(p, p0 + R0 @ pose.translation, 1e-14)


@PROPERTY
@given(mechanisms())
def test_frame_motion_is_jacobian_times_velocity(robot: Mechanism) -> None:
    motion = random_motion(robot, SAMPLES)
    for body in robot.bodies:
        J = jacobian(robot, motion.q, body.name)
        close(frame_motion(robot, motion, body.name)[0], np.einsum("sij,sj->si", J, motion.v), 1e-12)
        R, _ = forward_kinematics(robot, motion.q, body.name)
        world = jacobian(robot, motion.q, body.name, "world")
        close(world, np.concatenate([R @ J[:, :3], R @ J[:, 3:]], axis=1), 1e-12)


@PROPERTY
@given(mechanisms(terms=ALL_TERMS))
def test_order_of_the_description_does_not_matter(robot: Mechanism) -> None:
    shuffled = replace(robot, bodies=robot.bodies[::-1], joints=robot.joints[::-1], actuators=())
    motion = random_motion(robot, SAMPLES)
    other = columns(robot, motion, shuffled)
    pick = [robot.coordinate_names.index(name) for name in shuffled.coordinate_names]
    close(inverse_dynamics(shuffled, other), inverse_dynamics(robot, motion)[:, pick], 1e-12)
    close(mass_matrix(shuffled, other.q), mass_matrix(robot, motion.q)[:, pick][:, :, pick], 1e-12)


# ---- couplings -------------------------------------------------------------------------------------------------------


def test_couplings_equal_explicit_substitution() -> None:
    robot = replace(coupled(), actuators=())
    tree = replace(robot, couplings=(), actuators=())
    motion = random_motion(robot, SAMPLES)
    independent = {name: i for i, name in enumerate(robot.coordinate_names)}

    def substitute(x: np.ndarray, constant: float) -> np.ndarray:
        values = {name: x[:, i] for name, i in independent.items()}
        values["J2"] = 0.7 * values["J0"] - 0.3 * values["J3.r1"] + 0.2 * constant
        values["J6"] = -0.5 * values["J2"] + 0.1 * constant
        return np.column_stack([values[name] for name in tree.coordinate_names])

    G = substitute(np.eye(robot.dof), 0.0).T  # tree coordinates x independent ones
    whole = Motion(motion.t, substitute(motion.q, 1.0), substitute(motion.v, 0.0), substitute(motion.a, 0.0))
    close(robot.parameters.values, tree.parameters.values, 0.0)
    close(inverse_dynamics(robot, motion), inverse_dynamics(tree, whole) @ G, 1e-12)
    close(gravity(robot, motion.q), gravity(tree, whole.q) @ G, 1e-12)
    close(mass_matrix(robot, motion.q), G.T @ mass_matrix(tree, whole.q) @ G, 1e-12)
    close(coriolis_matrix(robot, motion.q, motion.v), G.T @ coriolis_matrix(tree, whole.q, whole.v) @ G, 1e-12)
    close(regressor(robot, motion), np.einsum("tn,stp->snp", G, regressor(tree, whole)), 1e-12)
    for ours, theirs in zip(energy_regressor(robot, motion), energy_regressor(tree, whole), strict=True):
        close(ours, theirs, 1e-12)
    for link in ("L2", "L6", "L5"):
        close(jacobian(robot, motion.q, link), jacobian(tree, whole.q, link) @ G, 1e-12)
        for ours, theirs in zip(frame_motion(robot, motion, link), frame_motion(tree, whole, link), strict=True):
            close(ours, theirs, 1e-12)
        close(forward_kinematics(robot, motion.q, link)[1], forward_kinematics(tree, whole.q, link)[1], 1e-12)
    wrench = {"L6": np.arange(6.0)}
    close(inverse_dynamics(robot, motion, wrenches=wrench), inverse_dynamics(tree, whole, wrenches=wrench) @ G, 1e-12)


def test_coupled_motor_terms_are_those_of_a_rotor_that_turns_with_both_joints() -> None:
    robot = coupled(terms=("ia", "fv", "fc"))
    motion = random_motion(robot, SAMPLES)
    bare = replace(robot, actuators=()).with_terms(("ia", "fv", "fc"))
    expected = inverse_dynamics(bare, motion)
    first, second = (robot.coordinate_names.index(name) for name in ("J3.r1", "J3.r2"))
    for sign in (1.0, -1.0):  # on the joint side: rho = q1 +- 0.8 q2, whatever the gear ratio
        rho_v = motion.v[:, first] + sign * 0.8 * motion.v[:, second]
        rho_a = motion.a[:, first] + sign * 0.8 * motion.a[:, second]
        torque = 0.1 * rho_a + 0.15 * rho_v + 0.2 * np.sign(rho_v)
        expected[:, first] += torque
        expected[:, second] += sign * 0.8 * torque
    close(inverse_dynamics(robot, motion), expected, 1e-12)


# ---- lock, payload, changed parameters -------------------------------------------------------------------------------


@PROPERTY
@given(mechanisms(terms=("ia", "fv"), largest=5))
def test_lock_equals_holding_the_joint(robot: Mechanism) -> None:
    rng = np.random.default_rng(9)
    moving = [joint for joint in robot.joints if joint.kind != "fixed"]
    held = moving[int(rng.integers(len(moving)))]
    where = rng.normal(size=len(held.coordinates)) * 0.7
    locked = robot.lock({held.name: where if where.size > 1 else float(where[0])})
    assert locked.dof == robot.dof - where.size
    free = random_motion(robot, SAMPLES)
    q, v, a = (np.array(x) for x in (free.q, free.v, free.a))
    c = [robot.coordinate_names.index(name) for name in held.coordinates]
    q[:, c], v[:, c], a[:, c] = where, 0.0, 0.0
    motion = Motion(np.arange(float(SAMPLES)), q, v, a)
    rest = columns(robot, motion, locked)
    pick = [robot.coordinate_names.index(name) for name in locked.coordinate_names]
    close(inverse_dynamics(locked, rest), inverse_dynamics(robot, motion)[:, pick], 1e-12)
    close(mass_matrix(locked, rest.q), mass_matrix(robot, q)[:, pick][:, :, pick], 1e-12)
    close(coriolis_matrix(locked, rest.q, rest.v), coriolis_matrix(robot, q, v)[:, pick][:, :, pick], 1e-12)
    for body in robot.bodies:
        close(forward_kinematics(locked, rest.q, body.name)[1], forward_kinematics(robot, q, body.name)[1], 1e-12)


def test_lock_of_a_leader_moves_into_the_offset_of_its_followers() -> None:
    robot = build(BRANCHED, 12, ("ia", "fv"))
    robot = replace(robot, couplings=(Coupling("J2", {"J0": 0.7, "J1": -0.3}, 0.2),), actuators=())
    locked = robot.lock({"J0": 0.4})
    motion = random_motion(robot, SAMPLES)
    q, v, a = (np.array(x) for x in (motion.q, motion.v, motion.a))
    q[:, 0], v[:, 0], a[:, 0] = 0.4, 0.0, 0.0
    held = Motion(motion.t, q, v, a)
    close(inverse_dynamics(locked, columns(robot, held, locked)), inverse_dynamics(robot, held)[:, 1:], 1e-12)


@PROPERTY
@given(mechanisms(largest=5))
def test_payload_equals_another_body(robot: Mechanism) -> None:
    rng = np.random.default_rng(10)
    link = robot.joints[-1].child
    com, about_com = rng.normal(size=3) * 0.2, np.diag([0.02, 0.03, 0.04])
    carrying = robot.with_payload(1.5, com, about_com, body=link)
    phi = from_com(1.5, com, about_com)
    mounted = replace(
        robot,
        bodies=(*robot.bodies, Body("tool", phi)),
        joints=(*robot.joints, Joint("tool_mount", "fixed", link, "tool")),
    )
    motion = random_motion(robot, SAMPLES)
    close(inverse_dynamics(carrying, motion), inverse_dynamics(mounted, motion), 0.0)
    # The weight and inertia it adds, by Newton and Euler at the payload's centre of mass.
    J = jacobian(robot, motion.q, link)
    v, a = frame_motion(robot, motion, link)
    R, _ = forward_kinematics(robot, motion.q, link)
    w, al = v[:, 3:], a[:, 3:]
    acceleration = a[:, :3] + np.cross(al, com) + np.cross(w, np.cross(w, com))
    force = 1.5 * (acceleration - np.einsum("sji,j->si", R, robot.gravity))
    moment = al @ about_com + np.cross(w, w @ about_com) + np.cross(com, force)
    added = np.einsum("sij,si->sj", J, np.hstack([force, moment]))
    close(inverse_dynamics(carrying, motion) - inverse_dynamics(robot, motion), added, 1e-11)
    close(inverse_dynamics(carrying.without("payload"), motion), inverse_dynamics(robot, motion), 0.0)


@PROPERTY
@given(mechanisms(terms=ALL_TERMS))
def test_with_parameters_equals_passing_them(robot: Mechanism) -> None:
    motion = random_motion(robot, SAMPLES)
    values = robot.parameters.replace(np.random.default_rng(11).normal(size=len(robot.parameters)))
    changed = robot.with_parameters(values)
    close(changed.parameters.values, values.values, 1e-12)
    close(inverse_dynamics(changed, motion), inverse_dynamics(robot, motion, values), 1e-11)


@pytest.mark.parametrize("robot", [every_kind(), coupled()])
def test_terms_switched_off_leave_rigid_bodies(robot: Mechanism) -> None:
    rigid = robot.with_terms(())
    motion = random_motion(robot, SAMPLES)
    bare = robot.parameters.values.copy()
    bare[robot.tree.inertias.size :] = 0.0
    assert len(rigid.parameters) == robot.tree.inertias.size
    close(inverse_dynamics(rigid, motion), inverse_dynamics(robot, motion, bare), 1e-13)


@PROPERTY
@given(mechanisms(kinds=SCALAR_KINDS))
def test_turning_base_and_gravity_together_changes_nothing(robot: Mechanism) -> None:
    turn = random_placement(np.random.default_rng(12))
    joints = tuple(
        replace(joint, placement=turn @ joint.placement) if joint.parent == "base" else joint for joint in robot.joints
    )
    turned = replace(robot, joints=joints, gravity=turn.rotation @ robot.gravity)
    motion = random_motion(robot, SAMPLES)
    close(inverse_dynamics(turned, motion), inverse_dynamics(robot, motion), 1e-12)


def test_rates_of_a_free_joint_are_those_of_its_pose():
    """Linear velocity and angular velocity are in the moving frame: R(r + h dr) = R(r) exp(h [w]x) and dp/dt = R v."""
    robot = Mechanism(
        "boat", (Body("sea"), Body("boat", from_com(1.0, np.zeros(3), np.eye(3)))), (Joint("j", "free", "sea", "boat"),)
    )
    graph, rng = Graph(), np.random.default_rng(3)
    rates = position_rates(robot, graph.symbols("q", 6), graph.symbols("v", 6))
    for size in (1.0, 1e-6):
        q, v = size * rng.normal(size=6), rng.normal(size=6)
        values = {f"{name}[{i}]": x[i] for name, x in (("q", q), ("v", v)) for i in range(6)}
        found = np.array([float(x) for x in evaluate_nodes(rates, values)])
        turned = Rotation.from_rotvec(q[3:])
        np.testing.assert_allclose(found[:3], turned.apply(v[:3]), atol=1e-12)
        h = 1e-6
        ahead, behind = (Rotation.from_rotvec(q[3:] + s * h * found[3:]) for s in (1.0, -1.0))
        np.testing.assert_allclose((behind.inv() * ahead).as_rotvec() / (2.0 * h), v[3:], atol=1e-8)
