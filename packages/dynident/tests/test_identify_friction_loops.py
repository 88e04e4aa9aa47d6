"""Friction laws of robots with loops, and rotor inertias that only some joints state, as in a virtual robot's model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from small_robots import arm6_machine, five_bar_machine

import dynident as di
from dynident.errors import IdentificationError
from dynident.friction import Coulomb, Tanh, Viscous
from dynident.identify import Recording, fit_friction
from dynident.mechanics import Motion, actuator_torques, close_motion
from dynident.trajectory import random_motion

TRUTH = {"viscous.fv": 1.7e-3, "tanh.fc": 0.478, "tanh.beta": 10.78}


def swinging(robot: di.Mechanism, seed: int, seconds: float = 4.0) -> Motion:
    """Return an exact motion of the five-bar's platform about its home."""
    home = [robot.home[name] for name in robot.coordinate_names]
    return random_motion(home, [0.3, 0.25], seed=seed, duration=seconds).sample(500.0)


def test_friction_of_motors_and_bodies_of_a_five_bar_together():
    robot = five_bar_machine().model
    joints = [next(iter(actuator.coupling)) for actuator in robot.actuators]
    bare = robot.with_friction(dict.fromkeys(joints, Viscous())).without_friction()
    motion = swinging(robot, 3)
    closed = close_motion(bare, motion)
    N, _ = bare.actuator_matrix
    law = (Viscous() + Tanh()).using(TRUTH)
    # The oracle does not use the projection of the fit: minimum-norm motor torques of the bodies, and friction on top.
    effort = actuator_torques(bare, motion.q, di.inverse_dynamics(bare, motion)) + law(closed.v @ N.T)
    fit = fit_friction(robot, Recording(motion, effort), {"motor1": Viscous() + Tanh(), "motor4": Viscous() + Tanh()})
    assert list(fit.friction) == joints
    for actuator, joint in zip(robot.actuators, joints, strict=True):
        r = actuator.ratio * actuator.coupling[joint]  # the law of the joint has r f_m(r v)
        found = fit.friction[joint].parameters
        wanted = {"viscous.fv": r**2 * 1.7e-3, "tanh.fc": r * 0.478, "tanh.beta": r * 10.78}
        assert found == pytest.approx(wanted, rel=1e-6)
    known = dict(zip(bare.parameters.names, bare.parameters.values, strict=True))
    truth = [known.get(name, fit.standard[name]) for name in fit.mechanism.parameters.names]
    wanted = fit.base.values(truth)
    np.testing.assert_allclose(fit.values, wanted, atol=1e-6 * np.linalg.norm(wanted))
    other = swinging(robot, 4)
    speed = close_motion(bare, other).v @ N.T
    wanted = actuator_torques(bare, other.q, di.inverse_dynamics(bare, other)) + law(speed)
    np.testing.assert_allclose(fit.predict(other).effort, wanted, atol=1e-6)


def test_passive_joints_keep_their_terms_and_driven_ones_lose_only_friction():
    robot = five_bar_machine().model
    laws = {"motor1": Viscous() + Tanh(), "motor4": Viscous() + Tanh()}
    names = robot.with_friction(laws).without_friction().parameters.names
    assert {"ia_alpha1", "ia_alpha4", "fv_elbow2", "fc_elbow3"} <= set(names)
    assert not {"fv_alpha1", "fc_alpha1", "fc_alpha4"} & set(names)
    shared = replace(robot, joints=tuple(replace(j, terms={}) for j in robot.joints), terms=("ia", "fv", "fc"))
    kept = shared.with_friction(laws).parameters.names
    assert {"fv_elbow2", "ia_alpha1", "fc_alpha1"} & set(kept) == {"fv_elbow2", "ia_alpha1"}
    assert "tanh.beta_alpha1" in kept
    assert "fc_alpha4" not in kept


def test_a_tree_keeps_the_rotor_inertia_that_only_its_joints_state():
    model = arm6_machine().model
    assert model.terms == ()
    names = model.with_friction(dict.fromkeys(model.coordinate_names, Coulomb())).without_friction().parameters.names
    assert [n for n in names if n.startswith("ia_")] == [f"ia_joint{i}" for i in range(1, 7)]
    assert not [n for n in names if n.startswith(("fc_", "fv_"))]


def test_law_of_an_unknown_motor_names_the_motors():
    machine = five_bar_machine()
    log = machine.simulate(swinging(machine.mechanism, 1, 2.0), duration=1.0).log
    with pytest.raises(IdentificationError, match="motor1, motor4"):
        fit_friction(machine.model, log, {"motor7": Coulomb()})
