"""A saved robot is the same robot: URDF or MJCF with its sidecar, and JSON, have its equations."""

import warnings
from pathlib import Path

import loop_cases
import numpy as np
import pytest
import small_robots
from hypothesis import given, settings
from hypothesis import strategies as st
from random_mechanisms import coupled, mechanisms, random_motion

import dynident as di
from dynident.cli import run
from dynident.errors import DescriptionError, DescriptionWarning
from dynident.mechanism.files import read_robot
from dynident.mechanism.sidecar import write_sidecar

TREE = ("revolute", "continuous", "prismatic", "fixed")


def reread(robot: di.Mechanism, file: Path) -> di.Mechanism:
    sidecar = file.with_suffix(".toml")
    sidecar.unlink(missing_ok=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DescriptionWarning)
        robot.save(file)
        return di.Mechanism.load(file, sidecar if sidecar.exists() else None)


def same_equations(one: di.Mechanism, other: di.Mechanism, motion: di.Motion) -> float:
    """Return the largest difference of torques over the largest torque; coordinates may be in another order."""
    order = [one.coordinate_names.index(name) for name in other.coordinate_names]
    turned = di.Motion(motion.t, *(x[:, order] for x in (motion.q, motion.v, motion.a)))
    wanted, found = di.inverse_dynamics(one, motion)[:, order], di.inverse_dynamics(other, turned)
    return float(np.max(np.abs(wanted - found)) / np.max(np.abs(wanted)))


@settings(max_examples=12, deadline=None)
@given(mechanisms(TREE, ("ia", "fv", "fc", "off"), largest=5), st.sampled_from([".urdf", ".xml", ".json"]))
def test_random_trees_keep_their_equations(tmp_path_factory: pytest.TempPathFactory, robot: di.Mechanism, ending: str) -> None:
    again = reread(robot, tmp_path_factory.mktemp("saved") / f"robot{ending}")
    assert same_equations(robot, again, random_motion(robot, 5)) < 1e-12


@pytest.mark.parametrize("ending", [".urdf", ".xml", ".json"])
@pytest.mark.parametrize(
    "make",
    [
        loop_cases.four_bar,
        loop_cases.welded_four_bar,
        loop_cases.slider_crank,
        loop_cases.cardan,
        loop_cases.bennett,
        loop_cases.parallelogram,
        small_robots.five_bar,
    ],
)
def test_robots_with_loops_keep_their_equations(tmp_path: Path, make, ending: str) -> None:
    robot = make()
    again = reread(robot, tmp_path / f"robot{ending}")
    assert [motor.name for motor in again.actuators] == [motor.name for motor in robot.actuators]
    assert same_equations(robot, again, loop_cases.states(robot, 5, 0.1)) < 1e-12


@pytest.mark.parametrize("ending", [".urdf", ".json"])
def test_laws_forces_couplings_and_motors_are_kept(tmp_path: Path, ending: str) -> None:
    tree = small_robots.arm3()
    first, second = tree.coordinate_names[:2]
    robot = (
        tree.with_friction({first: "stribeck + viscous"})
        .with_forces(di.Force("spring", second, "q - 0.3", value=12.0))
        .with_gravity((0.0, 3.0, -9.0))
    )
    again = reread(robot, tmp_path / f"robot{ending}")
    assert again.parameters.to_dict() == pytest.approx(robot.parameters.to_dict(), rel=1e-12, abs=1e-15)
    assert same_equations(robot, again, random_motion(robot, 5)) < 1e-12
    both = coupled(("ia", "fv", "fc"))
    assert same_equations(both, reread(both, tmp_path / "coupled.json"), random_motion(both, 5)) < 1e-12


def test_the_sidecar_names_what_the_format_does_not_hold(tmp_path: Path) -> None:
    loop_cases.four_bar().save(tmp_path / "bars.urdf")
    first = (tmp_path / "bars.toml").read_text(encoding="utf-8").splitlines()[0]
    assert first.startswith("# Additions to the description of") and "loop" in first and "actuator" in first


def test_a_robot_is_loaded_by_its_ending_and_a_sidecar_that_is_not_given_is_named(tmp_path: Path) -> None:
    robot = loop_cases.four_bar()
    robot.save(tmp_path / "robot.json")
    motion = loop_cases.states(robot, 5, 0.1)
    assert same_equations(robot, di.load(tmp_path / "robot.json"), motion) < 1e-12
    robot.save(tmp_path / "robot.urdf")
    with pytest.warns(DescriptionWarning, match=r"robot\.toml' is not read"):
        assert di.load(tmp_path / "robot.urdf").loops == ()
    assert same_equations(robot, di.Mechanism.load(tmp_path / "robot.urdf", tmp_path / "robot.toml"), motion) < 1e-12


def test_other_endings_and_functions_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DescriptionError, match="known endings are"):
        small_robots.arm3().save(tmp_path / "robot.dae")
    own = di.Mechanism.from_regressor(("a",), lambda q, v, a: a[:, :, None])
    with pytest.raises(DescriptionError, match="function, which no file holds"):
        own.save(tmp_path / "own.urdf")


def test_comments_of_a_sidecar_stay_in_the_identified_one(tmp_path: Path) -> None:
    robot = loop_cases.four_bar()
    robot.save(tmp_path / "bars.urdf")
    sidecar = tmp_path / "bars.toml"
    text = sidecar.read_text(encoding="utf-8").replace("[[loop]]", "# measured on 3 May\n[[loop]]", 1)
    sidecar.write_text(f"# our bench\n{text}", encoding="utf-8")
    plain = read_robot(tmp_path / "bars.urdf")
    heavier = read_robot(tmp_path / "bars.urdf", sidecar).with_gravity((0.0, 0.0, -1.62))
    written = write_sidecar(heavier, tmp_path / "moon.toml", plain, sidecar)
    kept = written.read_text(encoding="utf-8")
    assert "# our bench" in kept and "# measured on 3 May\n[[loop]]" in kept and "-1.62" in kept
    again = read_robot(tmp_path / "bars.urdf", written)
    assert same_equations(heavier, again, loop_cases.states(robot, 5, 0.1)) < 1e-12


def test_two_sidecars_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    loop_cases.four_bar().save(tmp_path / "bars.urdf")
    file, sidecar = str(tmp_path / "bars.urdf"), str(tmp_path / "bars.toml")
    assert run(["describe", file, "--sidecar", sidecar, "--sidecar", sidecar]) == 2
    assert "--sidecar" in capsys.readouterr().err
