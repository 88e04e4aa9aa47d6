"""Files that other programs write: loop_closures.yaml beside a URDF, and limits of URDF 1.2."""

from dataclasses import astuple
from pathlib import Path

import numpy as np
import pytest
from loop_cases import states
from test_mechanism_save import same_equations

import dynident as di
from dynident.cli import run
from dynident.errors import DescriptionError
from dynident.excitation import limits_of
from dynident.mechanism.files import read_robot

BARS = {"crank": 0.1, "coupler": 0.3, "rocker": 0.25}
TOML = """
[[loop]]
name = "pin"
kind = "revolute"
body_a = "coupler"
body_b = "rocker"
xyz_a = [0.3, 0.0, 0.0]
xyz_b = [0.25, 0.0, 0.0]

[[actuator]]
name = "q1"
coupling = { q1 = 1.0 }
"""


def four_bar() -> tuple[str, np.ndarray]:
    """Return a URDF that is closed at q = 0, and where its pin is then."""
    elbow = BARS["crank"] * np.array([np.cos(1.0), np.sin(1.0)])
    between = np.array([0.3, 0.0]) - elbow
    far = np.linalg.norm(between)
    inner = np.arccos((BARS["coupler"] ** 2 + far**2 - BARS["rocker"] ** 2) / (2.0 * BARS["coupler"] * far))
    coupler = np.arctan2(between[1], between[0]) + inner
    pin = elbow + BARS["coupler"] * np.array([np.cos(coupler), np.sin(coupler)])
    rocker = np.arctan2(pin[1], pin[0] - 0.3)
    links = "".join(
        f'<link name="{name}"><inertial><origin xyz="{size / 2} 0 0"/><mass value="{size * 3}"/>'
        '<inertia ixx="1e-4" ixy="0" ixz="0" iyy="1e-3" iyz="0" izz="1e-3"/></inertial></link>'
        for name, size in BARS.items()
    )
    joints = "".join(
        f'<joint name="{name}" type="continuous"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="{x} 0 0" rpy="0 0 {float(angle)!r}"/><axis xyz="0 0 1"/></joint>'
        for name, parent, child, x, angle in (
            ("q1", "base_link", "crank", 0.0, 1.0),
            ("q2", "crank", "coupler", 0.1, coupler - 1.0),
            ("q3", "base_link", "rocker", 0.3, rocker),
        )
    )
    return f'<robot name="bars"><link name="base_link"/>{links}{joints}</robot>', np.array([*pin, 0.0])


@pytest.fixture
def bars(tmp_path: Path) -> Path:
    pytest.importorskip("yaml", reason="YAML files need pyyaml: pip install 'dynident[yaml]'")
    text, pin = four_bar()
    (tmp_path / "bars.urdf").write_text(text, encoding="utf-8")
    (tmp_path / "bars.toml").write_text(TOML, encoding="utf-8")
    closures = f"closures:\n- link_a: coupler\n  link_b: rocker\n  point: {pin.tolist()}\n  axis: [0, 0, 1]\n"
    (tmp_path / "loop_closures.yaml").write_text(f"{closures}independent: [q1]\ndependent: [q2, q3]\n", encoding="utf-8")
    return tmp_path


def test_loop_closures_are_the_loops_of_a_sidecar(bars: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wanted = read_robot(bars / "bars.urdf", bars / "bars.toml")
    found = read_robot(bars / "bars.urdf", bars / "loop_closures.yaml")
    assert found.coordinate_names == ("q1",) and [motor.name for motor in found.actuators] == ["q1"]
    assert found.parameters.names == wanted.parameters.names  # joints without a motor have no terms
    assert same_equations(wanted, found, states(wanted, 5, 0.2)) < 1e-12
    assert run(["describe", str(bars / "bars.urdf"), "--sidecar", str(bars / "loop_closures.yaml")]) == 0
    assert "1 degree of freedom" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("independent: [q1]", "no list 'closures'"),
        ("closures: [{link_a: coupler, link_b: bench, point: [0, 0, 0], axis: [0, 0, 1]}]", "link 'bench' is not"),
        ("closures: [{link_a: coupler, link_b: rocker, point: [0, 0], axis: [0, 0, 1]}]", "closure 1: point"),
        (
            "closures: [{link_a: coupler, link_b: rocker, point: [0, 0, 0], axis: [0, 0, 1]}]\nindependent: [q9]",
            "'q9' is not a moving",
        ),
        ("closures: [", "cannot read the loop closures"),
    ],
)
def test_wrong_loop_closures_are_refused_in_one_sentence(bars: Path, text: str, sentence: str) -> None:
    (bars / "wrong.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(DescriptionError, match=sentence):
        read_robot(bars / "bars.urdf", bars / "wrong.yaml")


def test_urdf_1_2_limits_of_acceleration_and_jerk_are_kept_and_used(tmp_path: Path) -> None:
    text, _ = four_bar()
    limit = '<limit velocity="2" effort="9" acceleration="8" deceleration="5" jerk="70"/><axis xyz="0 0 1"/></joint>'
    file = tmp_path / "arm.urdf"
    file.write_text(
        text.replace('<axis xyz="0 0 1"/></joint>', limit).replace("<robot ", '<robot version="1.2" '), encoding="utf-8"
    )
    robot = di.Mechanism.from_urdf(file)
    limits = limits_of(robot, {"default": {"lower": -1.0, "upper": 1.0}})
    assert limits.acceleration.tolist() == [5.0] * 3 and limits.jerk.tolist() == [70.0] * 3
    robot.save(tmp_path / "again.urdf")
    again = read_robot(tmp_path / "again.urdf")
    assert [astuple(joint.limits) for joint in again.joints] == [astuple(joint.limits) for joint in robot.joints]
    file.write_text(file.read_text(encoding="utf-8").replace('jerk="70"', 'jerk="-1"'), encoding="utf-8")
    with pytest.raises(DescriptionError, match="jerk is -1"):
        di.Mechanism.from_urdf(file)


def test_missing_effort_kind_of_a_ur_log_says_what_its_driver_publishes() -> None:
    names = ("shoulder_pan_joint", "elbow_joint")
    table = {"time": np.arange(10.0) / 100.0} | {
        f"{what}_{j}": np.arange(10.0) for j in names for what in ("position", "effort")
    }
    with pytest.raises(di.DynidentError, match=r"one of: .*\. Universal Robots drivers log motor_current"):
        di.Log.read(table)
    with pytest.raises(di.DynidentError) as other:
        di.Log.read({name.replace("shoulder_pan", "waist"): values for name, values in table.items()})
    assert "Universal" not in str(other.value)
