"""Robots of the literature, written as files and read again, have the same equations."""

import warnings
from pathlib import Path

import numpy as np
import pytest

import dynident as di
from dynident.cli.robots import find_robot, known_robots
from dynident.errors import DescriptionError, DescriptionWarning
from dynident.mechanism.files import read_robot


@pytest.mark.parametrize("name", known_robots())
def test_named_robots_keep_their_equations(name: str, tmp_path: Path) -> None:
    robot = find_robot(name).mechanism()
    n = robot.dof
    middle = robot.closure.home[list(robot.closure.independent)] if robot.loops else np.zeros(n)
    rng = np.random.default_rng(0)
    q, v, a = (rng.uniform(-size, size, (5, n)) for size in (0.005, 1.0, 3.0))
    motion = di.Motion(np.arange(5.0), middle + q, v, a)
    values = np.random.default_rng(1).uniform(0.5, 1.0, len(robot.parameters))
    for ending in (".json", ".urdf", ".xml"):
        file = tmp_path / f"robot{ending}"
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DescriptionWarning)
                robot.save(file)
                sidecar = file.with_suffix(".toml")
                again = read_robot(file, sidecar if ending != ".json" and sidecar.exists() else None)
        except DescriptionError as error:  # published numbers that are no bodies, functions, joints that a format has not
            assert "json" in str(error) or "no file holds" in str(error) or "MJCF does not have" in str(error)
            assert ending != ".json" or "no file holds" in str(error)
            continue
        finally:
            file.with_suffix(".toml").unlink(missing_ok=True)
        order = [robot.coordinate_names.index(x) for x in again.coordinate_names]
        turned = di.Motion(motion.t, *(x[:, order] for x in (motion.q, motion.v, motion.a)))
        given = values if again.parameters.names == robot.parameters.names else None
        one, two = (di.inverse_dynamics(each, m, given) for each, m in ((robot, motion), (again, turned)))
        assert np.max(np.abs(one[:, order] - two)) <= 1e-12 * max(np.max(np.abs(one)), 1.0)
