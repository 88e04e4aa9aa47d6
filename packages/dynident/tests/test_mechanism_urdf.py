"""URDF reader against Pinocchio, and every sentence it refuses a file with."""

from __future__ import annotations

import builtins
import re
from pathlib import Path

import numpy as np
import pytest
from mechanism_oracles import poses, quietly, random_motion, shared_urdfs

from dynident.errors import DescriptionError, DescriptionWarning
from dynident.mechanics import inverse_dynamics
from dynident.mechanism import Mechanism
from dynident.mechanism.parameters import to_com
from dynident.mechanism.urdf import read_urdf

RICH = Path(__file__).parent / "robots" / "rich.urdf"
URDFS = shared_urdfs()

LINK = '<link name="{}"><inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>'
JOINT = '<joint name="{}" type="{}"><parent link="{}"/><child link="{}"/>{}</joint>'


def urdf(*parts: str) -> str:
    return '<robot name="r">' + "".join(parts) + "</robot>"


def two_links(inside: str = "", kind: str = "revolute") -> str:
    return urdf(LINK.format("a"), LINK.format("b"), JOINT.format("j", kind, "a", "b", inside))


def write(tmp_path: Path, content: str | bytes, name: str = "robot.urdf") -> Path:
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


# ---- against Pinocchio ----------------------------------------------------------------------------------------------


def assert_agrees_with_pinocchio(path: Path, robot: Mechanism) -> None:
    pin = pytest.importorskip("pinocchio")
    # Mimics are ordinary joints for both here: the tree is what is compared.
    model = pin.buildModelFromUrdf(str(path))
    data = model.createData()
    rng = np.random.default_rng(0)
    positions = dict(zip(robot.tree.coordinates, rng.uniform(-1.0, 1.0, len(robot.tree.coordinates)), strict=True))
    q = pin.neutral(model)
    for i in range(1, model.njoints):
        joint, start = model.joints[i], model.joints[i].idx_q
        if joint.shortname().startswith("JointModelPlanar"):
            x, y, angle = (positions[f"{model.names[i]}.{s}"] for s in ("x", "y", "rz"))
            q[start : start + 4] = [x, y, np.cos(angle), np.sin(angle)]
        elif joint.nq == 2:  # continuous: cosine and sine
            q[start : start + 2] = np.cos(positions[model.names[i]]), np.sin(positions[model.names[i]])
        else:
            q[start] = positions[model.names[i]]
    pin.framesForwardKinematics(model, data, q)
    mine = poses(robot, positions)
    for frame in model.frames:
        if frame.type == pin.FrameType.BODY:
            there = data.oMf[model.getFrameId(frame.name, pin.FrameType.BODY)]
            assert np.allclose(mine[frame.name].translation, there.translation, atol=1e-12), frame.name
            assert np.allclose(mine[frame.name].rotation, there.rotation, atol=1e-12), frame.name
    groups = dict(zip(robot.tree.bodies, robot.tree.inertias.reshape(-1, 10), strict=True))
    for i in range(1, model.njoints):
        body = robot.joint(model.names[i]).child
        mass, com, inertia = to_com(groups[body])
        there = model.inertias[i]
        assert mass == pytest.approx(there.mass, rel=1e-12)
        if mass > 0.0:
            assert np.allclose(com, there.lever, atol=1e-12)
            assert np.allclose(inertia, there.inertia, atol=1e-12 * max(1.0, np.max(np.abs(inertia))))


def test_rich_robot_agrees_with_pinocchio():
    assert_agrees_with_pinocchio(RICH, read_urdf(RICH))


@pytest.mark.real
@pytest.mark.skipif(not URDFS, reason="no shared data: set DYNIDENT_DATA to its folder")
@pytest.mark.parametrize("path", URDFS, ids=lambda path: path.stem)
def test_shared_robots_agree_with_pinocchio(path, tmp_path):
    # Pinocchio refuses negative friction, which one of the files has.
    text = re.sub(r'friction="-[^"]*"', 'friction="0"', path.read_text())
    assert_agrees_with_pinocchio(write(tmp_path, text), quietly(read_urdf, path))


def test_floating_base_agrees_with_pinocchio(tmp_path):
    pin = pytest.importorskip("pinocchio")
    path = write(tmp_path, two_links('<origin xyz="0.1 0.2 0.3" rpy="1 2 3"/><axis xyz="1 1 0"/>', "continuous"))
    robot = read_urdf(path, floating=True)
    assert robot.root == "world"
    assert robot.coordinate_names[:6] == tuple(f"floating_base.{s}" for s in ("x", "y", "z", "rx", "ry", "rz"))
    assert robot.tree.bodies == ("a", "b")
    model = pin.buildModelFromUrdf(str(path), pin.JointModelFreeFlyer())
    data = model.createData()
    motion = random_motion(robot, samples=3)
    tau = inverse_dynamics(robot, motion)
    for k in range(3):
        R = pin.exp3(motion.q[k, 3:6])
        q = np.concatenate([motion.q[k, :3], pin.Quaternion(R).coeffs(), [np.cos(motion.q[k, 6]), np.sin(motion.q[k, 6])]])
        assert np.allclose(tau[k], pin.rnea(model, data, q, motion.v[k], motion.a[k]), atol=1e-9)


# ---- what is read ---------------------------------------------------------------------------------------------------


def test_what_is_read_from_the_rich_robot():
    robot = Mechanism.from_urdf(RICH)
    pan = robot.joint("pan")
    assert dict(pan.terms) == {"fv": 0.5, "fc": 0.1, "ia": 0.05, "off": 0.2, "k": 3.0}
    assert (pan.limits.lower, pan.limits.upper, pan.limits.velocity, pan.limits.effort) == (-1.5, 2.0, 3.0, 40.0)
    assert np.allclose(pan.axis, [0.0, 0.0, 1.0])
    assert np.allclose(robot.joint("reach").axis, [1.0, 0.0, 0.0])  # URDF's default axis
    assert dict(robot.joint("reach").terms) == {"fv": 0.0, "fvp": 1.0, "fvn": 2.0, "fcp": 3.0, "fcn": 4.0}
    assert dict(robot.joint("drive").terms) == {"fv": 0.1, "fv.rz": 0.7}
    assert robot.parameters["fv_drive.x"] == 0.1
    assert robot.parameters["fv_drive.rz"] == 0.7
    (grip,) = robot.couplings
    assert (grip.joint, dict(grip.of), grip.offset) == ("grip", {"spin": -0.01}, 0.02)
    assert [(a.name, a.ratio) for a in robot.actuators] == [("m1", -100.0), ("reach", 1.0), ("spin", 1.0)]
    base = next(body for body in robot.bodies if body.name == "base")
    assert base.inertia is not None and base.inertia[0] == 5.0  # kept, although it has no parameters
    assert robot.source == "rich.urdf"


def test_default_namespace_and_byte_order_mark(tmp_path):
    text = two_links().replace("<robot", '<robot xmlns="http://example.org/robot"', 1)
    assert read_urdf(write(tmp_path, b"\xef\xbb\xbf" + text.encode())).dof == 1


def test_xacro_is_expanded(tmp_path):
    head = '<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro"><xacro:property name="l" value="0.5"/>'
    joint = JOINT.format("j", "revolute", "a", "b", '<origin xyz="${2*l} 0 0"/>')
    path = write(tmp_path, head + LINK.format("a") + LINK.format("b") + joint + "</robot>", "robot.xacro")
    assert np.allclose(read_urdf(path).joint("j").placement.translation, [1.0, 0.0, 0.0])
    broken = write(tmp_path, head + '<link name="${nobody}"/></robot>', "broken.xacro")
    with pytest.raises(DescriptionError, match=r"broken.xacro: '\$\{nobody\}' uses 'nobody', which is not defined"):
        read_urdf(broken)


def test_xacro_needs_no_package(tmp_path, monkeypatch):
    path = write(tmp_path, two_links(), "robot.xacro")
    real = builtins.__import__

    def without_xacro(name, *args, **kwargs):
        if name == "xacro":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_xacro)
    assert read_urdf(path).dof == 1


def test_mass_on_a_fixed_child_is_enough(tmp_path):
    """A moving link without inertia whose fixed child has it is complete: no warning, and it names the group."""
    parts = (LINK.format("a"), '<link name="frame"/>', LINK.format("b"))
    joints = (JOINT.format("j", "revolute", "a", "frame", ""), JOINT.format("f", "fixed", "frame", "b", ""))
    robot = read_urdf(write(tmp_path, urdf(*parts, *joints)))
    assert robot.tree.bodies == ("frame",)
    assert robot.parameters["m_frame"] == 1.0


# ---- warnings -------------------------------------------------------------------------------------------------------


def inertial(mass: str, inertia: str) -> str:
    return f'<inertial><mass value="{mass}"/><inertia ixx="{inertia}" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>'


def moving(content: str) -> str:
    return urdf('<link name="a"/>', f'<link name="b">{content}</link>', JOINT.format("j", "revolute", "a", "b", ""))


def zero_inertial() -> str:
    return '<inertial><mass value="0"/><inertia ixx="0" ixy="0" ixz="0" iyy="0" iyz="0" izz="0"/></inertial>'


@pytest.mark.parametrize(
    ("text", "word"),
    [
        (moving(""), "'b'.*no <inertial>"),
        (moving(zero_inertial()), "'b'.*prior is zero"),
        (moving(inertial("1", "5")), "'b' is physically impossible.*triangle"),
        (
            two_links().replace("</robot>", '<transmission name="t"><joint name="j"/><joint name="k"/></transmission></robot>'),
            "2 joints",
        ),
        (two_links().replace("</robot>", '<transmission name="t"><joint name="k"/></transmission></robot>'), "'k'"),
        (
            two_links().replace("</robot>", '<transmission name="t"><joint name="j"/></transmission>' * 2 + "</robot>"),
            "already",
        ),
    ],
)
def test_doubtful_files_are_read_with_a_warning(tmp_path, text, word):
    with pytest.warns(DescriptionWarning, match=word) as caught:
        robot = read_urdf(write(tmp_path, text))
    assert robot.dof == 1
    assert len(robot.parameters) == 14
    assert caught[0].filename == __file__


# ---- errors ---------------------------------------------------------------------------------------------------------

BOMB = '<!DOCTYPE b [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;">]><robot name="&b;"/>'
OUTSIDE = '<!DOCTYPE r [<!ENTITY x SYSTEM "file:///etc/hostname">]><robot name="r">&x;</robot>'
THREE = urdf(*(LINK.format(n) for n in "abc"), JOINT.format("j", "revolute", "a", "b", ""), "{}")

BAD = {
    "empty": ("", "is empty"),
    "blank": (" \n ", "is empty"),
    "truncated": (two_links()[:-20], "not well-formed"),
    "not xml": ("joint1: 5", "not well-formed"),
    "binary": (bytes(range(256)), "not well-formed"),
    "not utf-8": (two_links().encode().replace(b'"r"', b'"\xff\xfe"'), "not well-formed"),
    "unknown encoding": ('<?xml version="1.0" encoding="klingon"?>' + two_links(), "not well-formed"),
    "entity bomb": (BOMB, "entities"),
    "outside entity": (OUTSIDE, "entities"),
    "wrong root": ("<sdf/>", "<sdf>, but <robot>"),
    "too deep": ("<robot>" + "<a>" * 1000 + "</a>" * 1000 + "</robot>", "nested more than"),
    "no links": (urdf(), "no <link>"),
    "link without name": (urdf("<link/>"), "<link> number 1 has no attribute 'name'"),
    "joint without name": (two_links().replace('name="j" ', ""), "<joint> number 1"),
    "joint without type": (two_links().replace(' type="revolute"', ""), "'j' has no attribute 'type'"),
    "unknown type": (two_links(kind="screw"), "type is 'screw'; known types"),
    "no parent": (two_links().replace('<parent link="a"/>', ""), "'j' has no <parent>"),
    "child without link": (two_links().replace('<child link="b"/>', "<child/>"), "no attribute 'link'"),
    "unknown link": (two_links().replace('<child link="b"/>', '<child link="x"/>'), "child link 'x' does not exist"),
    "same link twice": (two_links().replace('link name="a"', 'link name="b"'), "twice|does not exist"),
    "same joint twice": (THREE.format(JOINT.format("j", "revolute", "b", "c", "")), "'j' is used twice"),
    "two parents": (THREE.format(JOINT.format("k", "revolute", "c", "b", "")), "child of two joints"),
    "two bases": (THREE.format(""), "2 bases"),
    "cycle": (
        urdf(
            LINK.format("a"),
            LINK.format("b"),
            JOINT.format("j", "fixed", "a", "b", ""),
            JOINT.format("k", "fixed", "b", "a", ""),
        ),
        "cycle",
    ),
    "own parent": (two_links().replace('<parent link="a"/>', '<parent link="b"/>'), "bases|cycle|not connected"),
    "two numbers": (two_links('<origin xyz="0 1"/>'), "xyz is '0 1' .2 numbers.; give 3"),
    "words": (two_links('<origin xyz="a b c"/>'), "'a b c'; give 3 numbers"),
    "underscore": (two_links('<origin xyz="1_0 0 0"/>'), "1_0"),
    "nan": (two_links('<origin rpy="0 nan 0"/>'), "finite"),
    "infinite": (two_links('<axis xyz="inf 0 0"/>'), "finite"),
    "huge": (two_links('<origin xyz="1e200 0 0"/>'), "below"),
    "zero axis": (two_links('<axis xyz="0 0 0"/>'), "axis is .* not zero"),
    "limits swapped": (two_links('<limit lower="1" upper="-1"/>'), "swap"),
    "limit not a number": (two_links('<limit lower="low"/>'), "lower is 'low'"),
    "negative velocity limit": (two_links('<limit velocity="-1"/>'), "velocity is -1"),
    "damping word": (two_links('<dynamics damping="much"/>'), "damping is 'much'"),
    "mimic of nobody": (two_links('<mimic joint="x"/>'), "mimics joint 'x'"),
    "mimic of itself": (two_links('<mimic joint="j"/>'), "cycle"),
    "negative mass": (moving(inertial("-1", "1")), "mass is -1.0 kg"),
    "no mass": (moving(inertial("1", "1").replace('<mass value="1"/>', "")), "no <mass>"),
    "mass without value": (moving(inertial("1", "1").replace('<mass value="1"/>', "<mass/>")), "no attribute 'value'"),
    "no inertia": (moving('<inertial><mass value="1"/></inertial>'), "no <inertia>"),
    "ixy missing": (moving(inertial("1", "1").replace('ixy="0"', "")), "no attribute 'ixy'"),
    "zero mass with inertia": (moving(inertial("0", "1")), "mass 0 but an inertia"),
    "zero reduction": (
        two_links().replace(
            "</robot>",
            '<transmission name="t"><joint name="j"/><actuator name="m">'
            "<mechanicalReduction>0</mechanicalReduction></actuator></transmission></robot>",
        ),
        "gear ratio",
    ),
    "reduction word": (
        two_links().replace(
            "</robot>",
            '<transmission name="t"><joint name="j"/><mechanicalReduction>big</mechanicalReduction></transmission></robot>',
        ),
        "mechanicalReduction is 'big'",
    ),
}


def test_bad_files_are_refused_in_one_sentence(tmp_path, subtests):
    for case, (content, word) in BAD.items():
        with subtests.test(case):
            with pytest.raises(DescriptionError, match=word) as caught:
                quietly(read_urdf, write(tmp_path, content))
            sentence = str(caught.value)
            assert "robot.urdf" in sentence
            assert "\n" not in sentence
            assert ";" in sentence  # the remedy


def test_missing_files_and_folders(tmp_path):
    for path in (tmp_path / "nobody.urdf", tmp_path, "bad\0name"):
        with pytest.raises(DescriptionError, match="cannot read URDF file"):
            read_urdf(path)
