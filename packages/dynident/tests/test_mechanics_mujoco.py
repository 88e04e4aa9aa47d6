"""Trees of hinge, slide, ball and free joints against MuJoCo, with armature, damping and springs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from random_mechanisms import PROPERTY, MujocoRobot, close, mechanisms, random_motion

from dynident.mechanics import energy_regressor, forward_dynamics, forward_kinematics, inverse_dynamics, mass_matrix, regressor
from dynident.mechanism import Mechanism

mujoco = pytest.importorskip("mujoco")

SAMPLES = 5
TERMS = ("ia", "fv", "k")
# A ball spring's torque is its rotation vector only up to half a turn, hence small turns.
TURN = 0.5
robots = mechanisms(terms=TERMS)


@PROPERTY
@given(robots)
def test_poses(robot: Mechanism) -> None:
    oracle = MujocoRobot(robot)
    motion = random_motion(robot, SAMPLES, turn=TURN)
    poses = {body.name: forward_kinematics(robot, motion.q, body.name) for body in robot.bodies[1:]}
    for s in range(SAMPLES):
        oracle.set(motion.q[s], motion.v[s], motion.a[s])
        mujoco.mj_kinematics(oracle.model, oracle.data)
        for name, (R, p) in poses.items():
            body = oracle.data.body(name)
            close(R[s], body.xmat.reshape(3, 3), 1e-12)
            close(p[s], body.xpos, 1e-12)


@PROPERTY
@given(robots)
def test_inverse_dynamics_and_mass_matrix(robot: Mechanism) -> None:
    oracle = MujocoRobot(robot)
    motion = random_motion(robot, SAMPLES, turn=TURN)
    tau, M = inverse_dynamics(robot, motion), mass_matrix(robot, motion.q)
    fitted = regressor(robot, motion) @ robot.parameters.values
    for s in range(SAMPLES):
        B = oracle.set(motion.q[s], motion.v[s], motion.a[s])
        mujoco.mj_inverse(oracle.model, oracle.data)
        theirs = B.T @ oracle.data.qfrc_inverse
        close(tau[s], theirs, 1e-9)
        close(fitted[s], theirs, 1e-9)
        for j in range(robot.dof):  # mj_mulM, because the arguments of mj_fullM changed between versions
            column = np.zeros(oracle.model.nv)
            mujoco.mj_mulM(oracle.model, oracle.data, column, B[:, j].copy())
            close(M[s, :, j], B.T @ column, 1e-9)


@PROPERTY
@given(robots)
def test_forward_dynamics(robot: Mechanism) -> None:
    oracle = MujocoRobot(robot)
    motion = random_motion(robot, SAMPLES, turn=TURN)
    tau = np.random.default_rng(1).normal(size=motion.q.shape) * 10.0
    a = forward_dynamics(robot, motion.q, motion.v, tau)
    for s in range(SAMPLES):
        B = oracle.set(motion.q[s], motion.v[s], motion.a[s])
        oracle.data.qfrc_applied[:] = np.linalg.solve(B.T, tau[s])
        mujoco.mj_forward(oracle.model, oracle.data)
        close(a[s], np.linalg.solve(B, oracle.data.qacc - oracle.extra), 1e-9)


@PROPERTY
@given(robots)
def test_energies_with_springs(robot: Mechanism) -> None:
    oracle = MujocoRobot(robot)
    motion = random_motion(robot, SAMPLES, turn=TURN)
    kinetic, potential = (Y @ robot.parameters.values for Y in energy_regressor(robot, motion))
    theirs = np.empty((SAMPLES, 2))
    for s in range(SAMPLES):
        oracle.set(motion.q[s], motion.v[s], motion.a[s])
        mujoco.mj_forward(oracle.model, oracle.data)
        theirs[s] = oracle.data.energy
    close(kinetic, theirs[:, 1], 1e-9)
    # MuJoCo also counts the bodies fixed to the world, a constant.
    close(potential - potential[0], theirs[:, 0] - theirs[0, 0], 1e-9)
