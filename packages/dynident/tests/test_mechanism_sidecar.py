"""The TOML sidecar: what it adds to a URDF, what it refuses, and that it reads back what it writes."""

from __future__ import annotations

import numpy as np
import pytest

from dynident.errors import DescriptionError
from dynident.mechanism import Mechanism, apply_sidecar, write_sidecar
from dynident.mechanism.elements import rotation_exp
from dynident.mechanism.sidecar import rpy_of
from dynident.mechanism.urdf import read_urdf

LINKS = "".join(
    f'<link name="l{i}"><inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>'
    for i in range(4)
)
JOINTS = "".join(
    f'<joint name="q{i}" type="revolute"><parent link="l{i - 1}"/><child link="l{i}"/><dynamics damping="{i}"/></joint>'
    for i in range(1, 4)
)
MOTOR = '<actuator name="m1"><mechanicalReduction>9</mechanicalReduction></actuator>'
DRIVE = f'<transmission name="t"><joint name="q1"/>{MOTOR}</transmission>'

SIDECAR = """
gravity = [0, 0.0, 9.81]
terms = ["ia", "fc"]

[[loop]]
name = "cut"
kind = "revolute"
body_a = "l3"
body_b = "l0"
xyz_a = [0.3, 0.0, 0.0]
rpy_a = [0.1, -0.2, 0.3]
xyz_b = [0.2, 0.0, 0]
axis = [0.0, 2.0, 0.0]

[[coupling]]
joint = "q3"
of = { q1 = 1.0, q2 = -1 }
offset = 0.25

[[actuator]]
name = "shoulder"
coupling = { q1 = 1.0, q2 = 0.5 }
ratio = 100
gain = 0.05
offset = -0.1
"""


@pytest.fixture
def robot(tmp_path):
    path = tmp_path / "robot.urdf"
    path.write_text(f'<robot name="r">{LINKS}{JOINTS}{DRIVE}</robot>')
    return path


def read(robot, text: str) -> Mechanism:
    sidecar = robot.with_suffix(".toml")
    sidecar.write_text(text)
    return read_urdf(robot, sidecar=sidecar)


def test_everything_is_read(robot):
    m = read(robot, SIDECAR)
    assert np.array_equal(m.gravity, [0.0, 0.0, 9.81])
    assert m.terms == ("ia", "fc")
    assert "fv" not in m.joint("q1").terms  # terms are exactly the named ones
    (loop,), (coupling,), (motor,) = m.loops, m.couplings, m.actuators
    assert (loop.name, loop.kind, loop.body_a, loop.body_b) == ("cut", "revolute", "l3", "l0")
    assert np.allclose(loop.placement_a.translation, [0.3, 0.0, 0.0])
    assert np.allclose(rpy_of(loop.placement_a.rotation), [0.1, -0.2, 0.3])
    assert np.allclose(loop.axis, [0.0, 1.0, 0.0])
    assert (coupling.joint, dict(coupling.of), coupling.offset) == ("q3", {"q1": 1.0, "q2": -1.0}, 0.25)
    assert (motor.name, dict(motor.coupling), motor.ratio) == ("shoulder", {"q1": 1.0, "q2": 0.5}, 100.0)
    assert (motor.offset, motor.gain) == (-0.1, 0.05)


def test_a_motor_without_a_ratio_turns_with_its_joints(robot):
    (motor,) = read(robot, SIDECAR.replace("ratio = 100\n", "")).actuators
    assert (motor.ratio, dict(motor.coupling)) == (1.0, {"q1": 1.0, "q2": 0.5})


def test_actuators_without_a_word_about_them(robot):
    assert [a.name for a in read_urdf(robot).actuators] == ["m1", "q2", "q3"]
    follow = '[[coupling]]\njoint = "q3"\nof = { q1 = 1.0 }\n'
    assert [a.name for a in read(robot, follow).actuators] == ["m1", "q2"]
    # In a loop only what the description declares is known.
    loop = '[[loop]]\nname = "c"\nkind = "point"\nbody_a = "l3"\nbody_b = "l0"\n'
    assert [(a.name, a.ratio) for a in read(robot, loop).actuators] == [("m1", 9.0)]


def test_what_is_written_reads_back(robot, tmp_path):
    first = read(robot, SIDECAR)
    written = write_sidecar(first, tmp_path / "again.toml")
    second = read_urdf(robot, sidecar=written)
    assert np.array_equal(second.gravity, first.gravity)
    assert second.terms == first.terms
    for a, b in zip(first.loops, second.loops, strict=True):
        assert (a.name, a.kind, a.body_a, a.body_b) == (b.name, b.kind, b.body_a, b.body_b)
        for pose_a, pose_b in ((a.placement_a, b.placement_a), (a.placement_b, b.placement_b)):
            assert np.allclose(pose_a.rotation, pose_b.rotation, atol=1e-15)
            assert np.array_equal(pose_a.translation, pose_b.translation)
    assert [vars(c) for c in first.couplings] == [vars(c) for c in second.couplings]
    assert [vars(a) for a in first.actuators] == [vars(a) for a in second.actuators]


@pytest.mark.parametrize("angles", [(0.1, 0.2, 0.3), (0.4, np.pi / 2, 0.5), (0.4, -np.pi / 2, 0.5), (3.0, -1.0, -3.0)])
def test_rpy_gives_the_rotation_back(angles):
    def matrix(rpy):
        return rotation_exp([0, 0, rpy[2]]) @ rotation_exp([0, rpy[1], 0]) @ rotation_exp([rpy[0], 0, 0])

    assert np.allclose(matrix(rpy_of(matrix(angles))), matrix(angles), atol=1e-9)


def test_wrong_sidecars_are_refused_in_one_sentence(robot, subtests):
    for text, word in [
        ("", "empty"),
        ("gravity = [0, 0", "not valid TOML"),
        ("speed = 3", "unknown key 'speed'; known keys are gravity"),
        ("gravity = [0, 0]", "gravity has shape"),
        ('gravity = "down"', "gravity"),
        ("gravity = [0, 0, nan]", "finite"),
        (f"gravity = [0, 0, 1{'0' * 400}]", "gravity"),
        ('terms = ["drag"]', "unknown joint term 'drag'"),
        ('terms = "ia"', "terms is 'ia'"),
        ("terms = [1]", "terms is"),
        ("loop = 3", r"\[\[loop\]\]"),
        ("[loop]\nname = 'x'", r"\[\[loop\]\]"),
        ("[[loop]]\nname = 'x'", "kind is None"),
        ("[[loop]]\ncolour = 'x'", "unknown key 'colour'; known keys are name, kind"),
        (SIDECAR.replace('"revolute"', '"glue"'), "unknown kind 'glue'"),
        (SIDECAR.replace('"l3"', '"l9"'), "'l9' does not exist"),
        (SIDECAR.replace("[0.0, 2.0, 0.0]", "[0, 0, 0]"), "not zero"),
        (SIDECAR.replace('joint = "q3"', 'joint = "q9"'), "'q9'"),
        (SIDECAR.replace("q2 = -1 }", "q2 = true }"), "q2 is True"),
        (SIDECAR.replace("{ q1 = 1.0, q2 = -1 }", "{}"), "of is"),
        (SIDECAR.replace("{ q1 = 1.0, q2 = 0.5 }", "{ q3 = 1 }"), "'q3', which is not an independent joint"),
        (SIDECAR.replace("ratio = 100", "ratio = 0"), "gear ratio"),
        (SIDECAR.replace("ratio = 100", f"ratio = 1{'0' * 400}"), "hundreds of digits: .ratio = "),
        (SIDECAR.replace("gain = 0.05", "gain = inf"), "gain is inf"),
        (SIDECAR + '[[actuator]]\nname = "shoulder"\ncoupling = { q1 = 1 }', "used twice"),
    ]:
        with subtests.test(str(word)):
            with pytest.raises(DescriptionError, match=word) as caught:
                read(robot, text)
            assert "robot.toml" in str(caught.value)
            assert "\n" not in str(caught.value)


def test_missing_and_binary_sidecars(robot):
    with pytest.raises(DescriptionError, match="cannot read the sidecar"):
        read_urdf(robot, sidecar=robot.parent / "nobody.toml")
    binary = robot.with_suffix(".bin")
    binary.write_bytes(b"\xff\xfe\x00x")
    with pytest.raises(DescriptionError, match="not valid TOML"):
        apply_sidecar(read_urdf(robot), binary)
