"""Any tree against Pinocchio: kinematics, dynamics, regressor, energies and external wrenches."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from random_mechanisms import PROPERTY, PinRobot, close, mechanisms, pin_inertia, random_inertia, random_motion

from dynident.mechanics import (
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
from dynident.mechanism import Mechanism

pin = pytest.importorskip("pinocchio")

SAMPLES = 5
EXACT = 1e-12  # relative to the largest entry


@PROPERTY
@given(mechanisms())
def test_poses_velocities_and_accelerations_of_every_link(robot: Mechanism) -> None:
    oracle = PinRobot(robot)
    motion = random_motion(robot, SAMPLES)
    model, data = oracle.model, oracle.data
    ours = {b.name: (forward_kinematics(robot, motion.q, b.name), frame_motion(robot, motion, b.name)) for b in robot.bodies}
    for s in range(SAMPLES):
        x = oracle.state(motion.q[s], motion.v[s], motion.a[s])
        pin.forwardKinematics(model, data, x.q, x.v, x.a)
        pin.updateFramePlacements(model, data)
        for link, ((R, p), (v, a)) in ours.items():
            if link == "base":
                close(R[s], np.eye(3), 0.0)
                close(np.concatenate([p[s], v[s], a[s]]), np.zeros(15), 0.0)
                continue
            frame = model.getFrameId(link)
            close(R[s], data.oMf[frame].rotation, EXACT)
            close(p[s], data.oMf[frame].translation, EXACT)
            close(v[s], pin.getFrameVelocity(model, data, frame, pin.LOCAL).vector, EXACT)
            close(a[s], pin.getFrameClassicalAcceleration(model, data, frame, pin.LOCAL).vector, EXACT)


@PROPERTY
@given(mechanisms())
def test_jacobians_of_every_link(robot: Mechanism) -> None:
    oracle = PinRobot(robot)
    motion = random_motion(robot, SAMPLES)
    axes = {"local": pin.LOCAL, "world": pin.LOCAL_WORLD_ALIGNED}
    for link in (body.name for body in robot.bodies):
        for reference, theirs in axes.items():
            J = jacobian(robot, motion.q, link, reference)
            for s in range(SAMPLES):
                x = oracle.state(motion.q[s], motion.v[s], motion.a[s])
                pin.computeJointJacobians(oracle.model, oracle.data, x.q)
                pin.updateFramePlacements(oracle.model, oracle.data)
                frame = oracle.model.getFrameId(link) if link != "base" else 0
                Jp = pin.getFrameJacobian(oracle.model, oracle.data, frame, theirs).reshape(6, -1)
                close(J[s], Jp @ x.B, EXACT)


@PROPERTY
@given(mechanisms())
def test_inverse_dynamics_gravity_mass_and_coriolis(robot: Mechanism) -> None:
    oracle = PinRobot(robot)
    motion = random_motion(robot, SAMPLES)
    tau, g, M = inverse_dynamics(robot, motion), gravity(robot, motion.q), mass_matrix(robot, motion.q)
    C = coriolis_matrix(robot, motion.q, motion.v)
    for s in range(SAMPLES):
        x = oracle.state(motion.q[s], motion.v[s], motion.a[s])
        model, data = oracle.model, oracle.data
        close(tau[s], x.B.T @ pin.rnea(model, data, x.q, x.v, x.a), EXACT)
        held = x.B.T @ pin.computeGeneralizedGravity(model, data, x.q)
        close(g[s], held, EXACT)
        crba = np.triu(pin.crba(model, data, x.q))
        close(M[s], x.B.T @ (crba + np.triu(crba, 1).T) @ x.B, EXACT)
        # What is left at a = 0 in OUR coordinates (a planar joint's own acceleration differs in Pinocchio).
        still = oracle.state(motion.q[s], motion.v[s], np.zeros(robot.dof))
        close(C[s] @ motion.v[s] + held, x.B.T @ pin.rnea(model, data, still.q, still.v, still.a), EXACT)


@PROPERTY
@given(mechanisms())
def test_forward_dynamics(robot: Mechanism) -> None:
    oracle = PinRobot(robot)
    motion = random_motion(robot, SAMPLES)
    tau = np.random.default_rng(1).normal(size=motion.q.shape) * 10.0
    a = forward_dynamics(robot, motion.q, motion.v, tau)
    for s in range(SAMPLES):
        x = oracle.state(motion.q[s], motion.v[s], np.zeros(robot.dof))
        theirs = pin.aba(oracle.model, oracle.data, x.q, x.v, np.linalg.solve(x.B.T, tau[s]))
        close(a[s], np.linalg.solve(x.B, theirs - x.a), 1e-9)


@PROPERTY
@given(mechanisms())
def test_regressor_of_every_rigid_group(robot: Mechanism) -> None:
    oracle = PinRobot(robot)
    motion = random_motion(robot, SAMPLES)
    rng = np.random.default_rng(2)
    Y = regressor(robot, motion)
    trials = [np.array([random_inertia(rng) for _ in range(11)]) for _ in robot.tree.bodies]  # 11 bodies span all ten
    for s in range(SAMPLES):
        x = oracle.state(motion.q[s], motion.v[s], motion.a[s])
        Yp = pin.computeJointTorqueRegressor(oracle.model, oracle.data, x.q, x.v, x.a)
        Yp = x.B.T @ Yp.reshape(oracle.model.nv, -1)
        for i, name in enumerate(robot.tree.bodies):
            joint, pose = oracle.where[name]
            for phi in trials[i]:
                lumped = pose.act(pin_inertia(phi)).toDynamicParameters()
                theirs = Yp[:, 10 * (joint - 1) : 10 * joint] @ lumped
                close(Y[s, :, 10 * i : 10 * i + 10] @ phi, theirs, EXACT)


@PROPERTY
@given(mechanisms())
def test_energies(robot: Mechanism) -> None:
    oracle = PinRobot(robot)
    motion = random_motion(robot, SAMPLES)
    kinetic, potential = (Y @ robot.parameters.values for Y in energy_regressor(robot, motion))
    for s in range(SAMPLES):
        x = oracle.state(motion.q[s], motion.v[s], motion.a[s])
        close(kinetic[s], pin.computeKineticEnergy(oracle.model, oracle.data, x.q, x.v), EXACT)
        close(potential[s], pin.computePotentialEnergy(oracle.model, oracle.data, x.q), EXACT)


@PROPERTY
@given(mechanisms())
def test_external_wrenches(robot: Mechanism) -> None:
    oracle = PinRobot(robot)
    motion = random_motion(robot, SAMPLES)
    rng = np.random.default_rng(3)
    wrenches = {body.name: rng.normal(size=(SAMPLES, 6)) * 5.0 for body in robot.bodies}
    wrenches["L0"] = rng.normal(size=6)
    tau = inverse_dynamics(robot, motion, wrenches=wrenches)
    back = forward_dynamics(robot, motion.q, motion.v, tau, wrenches=wrenches)
    close(back, motion.a, 1e-8)
    for s in range(SAMPLES):
        x = oracle.state(motion.q[s], motion.v[s], motion.a[s])
        forces = [pin.Force.Zero() for _ in range(oracle.model.njoints)]
        for link, w in wrenches.items():
            if link != "base":
                joint, pose = oracle.where[link]
                forces[joint] = forces[joint] + pose.act(pin.Force(np.broadcast_to(w, (SAMPLES, 6))[s].copy()))
        fext = pin.StdVec_Force()
        fext.extend(forces)
        close(tau[s], x.B.T @ pin.rnea(oracle.model, oracle.data, x.q, x.v, x.a, fext), EXACT)
