"""Contributions add up to the torques, and each has the dependence that defines it."""

from __future__ import annotations

import numpy as np
import pytest

from dynident import mechanics
from dynident.mechanics import Motion
from dynident.mechanism import Mechanism
from dynident.symbolic import contributions
from random_mechanisms import build, close, coupled, random_motion

TERMS = ("ia", "fv", "fc", "off", "k")
ARM = (("revolute", -1, False), ("revolute", 0, False), ("revolute", 1, False))


@pytest.mark.parametrize("robot", [build(ARM, 1, TERMS), coupled(TERMS)], ids=["arm", "coupled"])
def test_parts_add_up_and_scale_as_they_should(robot: Mechanism) -> None:
    motion = random_motion(robot, 9, 2)
    parts = contributions(robot, motion)
    close(parts.total, mechanics.inverse_dynamics(robot, motion), 1e-12)
    close(parts["inertial"], np.einsum("sij,sj->si", mechanics.mass_matrix(robot, motion.q), motion.a), 1e-12)
    velocity = np.einsum("sij,sj->si", mechanics.coriolis_matrix(robot, motion.q, motion.v), motion.v)
    close(parts["centrifugal"] + parts["coriolis"], velocity, 1e-12)
    close(parts["gravity"], mechanics.gravity(robot, motion.q), 1e-12)
    # Reversing one velocity leaves v_i^2 alone and changes v_i v_j.
    signs = np.where(np.arange(robot.dof) == 0, -1.0, 1.0)
    other = contributions(robot, Motion(motion.t, motion.q, motion.v * signs, motion.a))
    close(other["centrifugal"], parts["centrifugal"], 1e-12)
    assert np.max(np.abs(other["coriolis"] - parts["coriolis"])) > 1e-3
    # Doubling all velocities multiplies both by four, and viscous friction by two.
    double = contributions(robot, Motion(motion.t, motion.q, 2.0 * motion.v, motion.a))
    close(double["centrifugal"], 4.0 * parts["centrifugal"], 1e-12)
    close(double["coriolis"], 4.0 * parts["coriolis"], 1e-12)


def test_coriolis_is_the_christoffel_cross_term() -> None:
    robot = build(ARM, 4)
    motion = random_motion(robot, 6, 0)
    expected = np.zeros_like(motion.q)
    for i in range(3):
        alone = np.zeros_like(motion.v)
        alone[:, i] = motion.v[:, i]
        expected += np.einsum("sij,sj->si", mechanics.coriolis_matrix(robot, motion.q, alone), alone)
    close(contributions(robot, motion)["centrifugal"], expected, 1e-12)


def test_the_figure_has_a_panel_per_joint() -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install 'dynident[report]'")
    robot = build(ARM[:2], 1, TERMS)
    parts = contributions(robot, random_motion(robot, 20))
    figure = parts.plot()
    assert len(figure.axes) == 2
    assert {line.get_label() for line in figure.axes[0].lines} >= {"inertial", "gravity", "coriolis", "total"}
    assert set(parts.shares) == {"inertial", "centrifugal", "coriolis", "gravity", "friction", "spring_and_offset"}
