"""Starts of a virtual robot; what cannot be is refused in one sentence."""

from __future__ import annotations

import numpy as np
import pytest
from small_robots import arm3, five_bar

import dynident as di
from dynident.errors import SimulationError
from dynident.trajectory.reference import start_state


def arm() -> di.Mechanism:
    """Three axes of which the last two are parallel, with 2 kg at the tool."""
    rows = [(0.0, np.pi / 2, 0.3, 0.0), (0.4, 0.0, 0.0, 0.0), (0.35, 0.0, 0.0, 0.0)]
    return di.Mechanism.from_dh(rows, name="arm").with_payload(2.0, com=(-0.1, 0.0, 0.0))


FIRST = (np.array([0.3, 0.5, -0.9]), np.array([0.1, 0.0, -0.2]))


def test_without_a_start_the_run_begins_on_the_reference() -> None:
    x, nu = start_state(arm(), None, FIRST)
    assert np.array_equal(x, FIRST[0])
    assert np.array_equal(nu, FIRST[1])


def test_joint_starts_take_vectors_and_names() -> None:
    x, nu = start_state(arm(), {"q": [0.1, 0.2, 0.3], "velocity": [1.0, 2.0, 3.0]}, FIRST)
    assert x.tolist() == [0.1, 0.2, 0.3]
    assert nu.tolist() == [1.0, 2.0, 3.0]
    name = arm().coordinate_names[1]
    x, nu = start_state(arm(), {"q": {name: 0.7}}, FIRST)
    assert x.tolist() == [0.3, 0.7, -0.9]
    assert not nu.any()


def test_impossible_starts_are_refused_in_one_sentence(subtests: pytest.Subtests) -> None:
    for start, sentence in [
        ([0.0, 0.0, 0.0], "give a mapping"),
        ({}, "give q, and velocity"),
        ({"q": [0, 0, 0], "pose": [0, 0, 0]}, "has the keys q, pose; give q"),
        ({"q": [0, 0, 0], "speed": [0, 0, 0]}, "has the keys q, speed; give q"),
        ({"q": [0.0, 0.0]}, "give 3 numbers"),
        ({"q": [0.0, np.nan, 0.0]}, "must be finite"),
        ({"q": {"nobody": 1.0}}, "coordinates are"),
        ({"q": [0, 0, 0], "velocity": [1.0]}, "velocity has shape"),
    ]:
        with subtests.test(str(sentence)):
            with pytest.raises(SimulationError, match=sentence) as caught:
                start_state(arm(), start, FIRST)  # type: ignore[arg-type]
            assert "\n" not in str(caught.value)


def test_starts_outside_the_limits_or_where_loops_cannot_close_are_refused() -> None:
    robot = five_bar("platform")
    with pytest.raises(SimulationError, match="cannot close"):
        start_state(robot, {"q": [0.0, 9.0]}, (np.zeros(2), np.zeros(2)))
    with pytest.raises(SimulationError, match="cannot close"):
        start_state(robot, None, (np.array([0.0, 9.0]), np.zeros(2)))
    limited = arm3()
    from dataclasses import replace

    joints = tuple(replace(j, limits=di.Limits(lower=-1.0, upper=1.0)) if j.kind == "revolute" else j for j in limited.joints)
    with pytest.raises(SimulationError, match="outside its limits"):
        start_state(replace(limited, joints=joints), {"q": [2.0, 0.0, 0.0]}, (np.zeros(3), np.zeros(3)))
