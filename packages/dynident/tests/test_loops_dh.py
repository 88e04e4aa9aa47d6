"""A parallelogram from a DH table with antecedents and a cut joint."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import dynident as di
from dynident.mechanism import Actuator, Loop, Mechanism, Placement


def test_a_parallelogram_from_a_table_keeps_its_coupler_parallel() -> None:
    """Two cranks of 0.2 m on pivots 0.5 m apart and a coupler: the coupler does not turn, the cranks turn alike."""
    rows = [
        {"a": 0.0, "alpha": 0.0, "d": 0.0, "theta": 0.0, "joint": "left"},
        {"a": 0.2, "alpha": 0.0, "d": 0.0, "theta": 0.0, "joint": "coupler"},
        {"a": 0.5, "alpha": 0.0, "d": 0.0, "theta": 0.0, "joint": "right", "antecedent": 0},
    ]
    pin = Loop("pin", "revolute", "link_2", "link_3", Placement(np.eye(3), (0.5, 0, 0)), Placement(np.eye(3), (0.2, 0, 0)))
    motor = Actuator("motor", {"left": 1.0})
    home = {"left": 1.0, "coupler": -1.0, "right": 1.0}
    robot = replace(Mechanism.from_dh(rows, convention="modified"), loops=(pin,), actuators=(motor,), home=home)
    assert robot.dof == 1
    assert robot.coordinate_names == ("left",)
    q = np.linspace(1.0, 2.0, 20)[:, None]
    R, p = di.forward_kinematics(robot, q, "link_2")
    np.testing.assert_allclose(R, np.broadcast_to(np.eye(3), R.shape), atol=1e-10)
    np.testing.assert_allclose(p[:, :2], 0.2 * np.column_stack([np.cos(q), np.sin(q)]), atol=1e-10)
