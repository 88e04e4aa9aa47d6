"""MJCF reader against MuJoCo itself: masses, inertias, poses, forces; and its refusals."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from mechanism_oracles import poses, quietly

from dynident.errors import DescriptionError, DescriptionWarning
from dynident.mechanics import Motion, inverse_dynamics
from dynident.mechanism import Mechanism, from_com
from dynident.mechanism.elements import rotation_exp
from dynident.mechanism.mjcf import read_mjcf
from dynident.mechanism.parameters import transform

mujoco = pytest.importorskip("mujoco")

BALL, SLIDE, HINGE = 1, 2, 3  # mjtJoint
# MuJoCo writes its log into the current folder.
pytestmark = pytest.mark.usefixtures("elsewhere")
RICH = Path(__file__).parent / "robots" / "rich.xml"


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def rotation_vector(quaternion):
    w, xyz = quaternion[0], quaternion[1:]
    length = np.linalg.norm(xyz)
    return xyz / length * 2.0 * np.arctan2(length, w) if length > 0 else np.zeros(3)


def joint_name(model, j):
    return model.joint(j).name or f"{model.body(model.jnt_bodyid[j]).name}_joint"


def random_state(model, seed=0):
    """Return MuJoCo data at a random state, and our q, v, a by coordinate name."""
    rng = np.random.default_rng(seed)
    data = mujoco.MjData(model)
    ours: dict[str, tuple[float, float, float]] = {}
    data.qvel[:] = rng.normal(size=model.nv)
    data.qacc[:] = rng.normal(size=model.nv)
    for j in range(model.njnt):
        kind, adr, dof = int(model.jnt_type[j]), model.jnt_qposadr[j], model.jnt_dofadr[j]
        name = joint_name(model, j)
        if kind in (SLIDE, HINGE):
            data.qpos[adr] = rng.normal()
            ours[name] = (data.qpos[adr], data.qvel[dof], data.qacc[dof])
            continue
        quaternion = rng.normal(size=4)
        quaternion /= np.linalg.norm(quaternion)
        vector = rotation_vector(quaternion)
        if kind == BALL:
            data.qpos[adr : adr + 4] = quaternion
            for k, s in enumerate(("rx", "ry", "rz")):
                ours[f"{name}.{s}"] = (vector[k], data.qvel[dof + k], data.qacc[dof + k])
            continue
        position = rng.normal(size=3)
        data.qpos[adr : adr + 7] = [*position, *quaternion]
        R = rotation_exp(vector)
        # MuJoCo's linear velocity of a free joint is in the world, ours in the body: v_w = R v_b.
        v, w = R.T @ data.qvel[dof : dof + 3], data.qvel[dof + 3 : dof + 6]
        a = R.T @ data.qacc[dof : dof + 3] - np.cross(w, v)
        for k, s in enumerate(("x", "y", "z")):
            ours[f"{name}.{s}"] = (position[k], v[k], a[k])
            ours[f"{name}.r{s}"] = (vector[k], w[k], data.qacc[dof + 3 + k])
    return data, ours


def assert_agrees(path, check_torque=True, tolerance=1e-9):
    """Compare masses, inertias, poses and inverse dynamics of a file with MuJoCo's."""
    model = mujoco.MjModel.from_xml_path(str(path))
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_LIMIT
    robot = quietly(read_mjcf, path)
    bodies = {body.name: body for body in robot.bodies}
    data, ours = random_state(model)
    mujoco.mj_forward(model, data)
    mine = poses(robot, {name: x[0] for name, x in ours.items()})
    for i in range(1, model.nbody):
        name = model.body(i).name
        assert np.allclose(mine[name].translation, data.xpos[i], atol=tolerance), name
        assert np.allclose(mine[name].rotation, data.xmat[i].reshape(3, 3), atol=tolerance), name
        if model.body_weldid[i] == 0:
            continue  # fixed to the world: no parameters
        R = np.zeros(9)
        mujoco.mju_quat2Mat(R, model.body_iquat[i])
        phi = transform(
            from_com(model.body_mass[i], np.zeros(3), np.diag(model.body_inertia[i])),
            R.reshape(3, 3),
            model.body_ipos[i],
        )
        found = bodies[name].inertia if bodies[name].inertia is not None else np.zeros(10)
        assert np.allclose(found, phi, rtol=tolerance, atol=tolerance), (name, found - phi)
    if check_torque:
        state = random_state(model)[0]
        acceleration = state.qacc.copy()
        mujoco.mj_forward(model, state)
        state.qacc[:] = acceleration
        mujoco.mj_inverse(model, state)
        want = {}
        for j in range(model.njnt):
            dof, name = model.jnt_dofadr[j], joint_name(model, j)
            if model.jnt_type[j] in (SLIDE, HINGE):
                want[name] = state.qfrc_inverse[dof]
            elif model.jnt_type[j] == BALL:
                want |= {f"{name}.{s}": state.qfrc_inverse[dof + k] for k, s in enumerate(("rx", "ry", "rz"))}
            else:
                R = rotation_exp([ours[f"{name}.r{s}"][0] for s in "xyz"])
                force = R.T @ state.qfrc_inverse[dof : dof + 3]
                for k, s in enumerate("xyz"):
                    want |= {f"{name}.{s}": force[k], f"{name}.r{s}": state.qfrc_inverse[dof + 3 + k]}
        q, v, a = (np.array([[ours[c][k] for c in robot.coordinate_names]]) for k in range(3))
        # MuJoCo models dry friction as a constraint; take ours out to compare the smooth part.
        smooth = {name: 0.0 for name in robot.parameters if name.startswith("fc_")}
        tau = inverse_dynamics(robot, Motion(np.zeros(1), q, v, a), robot.parameters.replace(smooth))[0]
        reference = np.array([want[c] for c in robot.coordinate_names])
        assert np.allclose(tau, reference, rtol=1e-8, atol=1e-8 * np.max(np.abs(reference))), tau - reference
    return robot


def write(tmp_path, text, name="robot.xml"):
    path = tmp_path / name
    path.write_text(text)
    return path


def body(inner, attributes="", head=""):
    return f"<mujoco>{head}<worldbody><body name='b'>{inner}</body></worldbody></mujoco>"


def test_rich_robot_agrees_with_mujoco(tmp_path):
    # Dry friction is a constraint for MuJoCo's inverse dynamics; leave it out of the compared copy.
    path = write(tmp_path, RICH.read_text().replace('frictionloss="0.4"', ""))
    assert_agrees(path)


GEOMS = {
    "sphere": '<geom type="sphere" size="0.2" pos="0.1 0 0"/>',
    "box": '<geom type="box" size="0.1 0.2 0.3" pos="0 0.3 0" euler="10 20 30"/>',
    "capsule": '<geom type="capsule" size="0.1 0.4" zaxis="1 1 0" density="300"/>',
    "capsule fromto": '<geom type="capsule" size="0.1" fromto="0 0 0 0.3 0.2 -0.4"/>',
    "cylinder": '<geom type="cylinder" size="0.1 0.4" mass="3" pos="0 0 1"/>',
    "cylinder fromto": '<geom type="cylinder" size="0.1" fromto="0 0 0.3 0 0 0"/>',
    "ellipsoid": '<geom type="ellipsoid" size="0.1 0.4 0.2" axisangle="1 2 3 40"/>',
    "ellipsoid fromto": '<geom type="ellipsoid" size="0.1" fromto="1 0 0.3 0 0 0"/>',
    "box fromto": '<geom type="box" size="0.1" fromto="1 0 0.3 0 0.5 0"/>',
    "two, and one without mass": '<geom size="0.1"/><geom size="0.2" pos="1 0 0"/><geom mass="0" size="0.3"/>',
    "a group that does not count": '<geom size="0.1" group="1"/><geom size="0.2" pos="1 0 0" group="3"/>',
}


@pytest.mark.parametrize("case", GEOMS)
def test_inertia_from_geoms_agrees_with_mujoco(tmp_path, case):
    head = '<compiler inertiagrouprange="0 2"/>'
    assert_agrees(write(tmp_path, body("<joint/>" + GEOMS[case], head=head)), check_torque=False)


@pytest.mark.parametrize("sequence", ["xyz", "ZYX", "zxz", "XYx", "yZx"])
@pytest.mark.parametrize("unit", ["degree", "radian"])
def test_euler_sequences_agree_with_mujoco(tmp_path, sequence, unit):
    head = f'<compiler eulerseq="{sequence}" angle="{unit}"/>'
    inner = '<joint axis="1 2 3" ref="0.3"/><geom size="0.1"/><body name="c" euler="0.5 -1 20"><joint/><geom size="1"/></body>'
    assert_agrees(write(tmp_path, body(inner, head=head)), check_torque=False)


@pytest.mark.parametrize(
    "head",
    [
        '<compiler inertiafromgeom="true"/>',
        '<compiler inertiafromgeom="false"/>',
        '<compiler settotalmass="7"/>',
        '<option gravity="1 2 3"/>',
        '<option><flag gravity="disable"/></option>',
    ],
)
def test_compiler_and_options_agree_with_mujoco(tmp_path, head):
    inner = (
        '<joint axis="1 0 0"/><inertial pos="1 2 3" euler="10 20 30" mass="2" diaginertia="1 2 2.5"/><geom size="0.3"/>'
        '<body name="c" pos="0 0 1"><joint type="slide"/><inertial pos="0 0 0" mass="1" fullinertia="1 2 2 .1 .2 .3"/>'
        '<geom size="0.1"/></body>'
    )
    assert_agrees(write(tmp_path, body(inner, head=head)))


def test_what_is_read_from_the_rich_robot():
    robot = Mechanism.from_mjcf(RICH)
    degree = np.pi / 180.0
    assert robot.name == "rich"
    assert np.allclose(robot.gravity, [0.5, 0.0, -9.7])
    assert robot.tree.bodies == ("shoulder", "upper", "tool", "ball", "drone")
    lift, pan = robot.joint("lift"), robot.joint("pan")
    assert dict(lift.terms) == pytest.approx({"ia": 0.02, "fv": 0.3, "fc": 0.4, "k": 3.0, "off": -3.0 * 25.0 * degree})
    assert dict(pan.terms) == {"fv": 0.3}
    assert (pan.limits.lower, pan.limits.upper) == pytest.approx((-170 * degree, 170 * degree))
    assert (robot.joint("reach").limits.lower, robot.joint("reach").limits.upper) == (-0.1, 0.2)
    assert [(a.name, dict(a.coupling), a.ratio) for a in robot.actuators] == [
        ("m_pan", {"pan": 1.0}, 50.0),
        ("m_lift", {"lift": 1.0}, 7.0),  # every kind of actuator shares one default
    ]
    assert robot.joint_names == ("pan", "lift", "roll", "reach", "twist", "neck", "fly")


def test_unnamed_bodies_and_joints_get_names(tmp_path):
    inner = "<body><joint/><joint axis='1 0 0'/><geom size='1'/><body><geom size='1'/></body></body>"
    text = f"<mujoco><worldbody>{inner}</worldbody></mujoco>"
    robot = read_mjcf(write(tmp_path, text))
    assert robot.joint_names == ("body1_joint", "body1_joint_2")
    assert robot.tree.bodies == ("body1",)


EQUALITY = """<mujoco><compiler angle="radian"/><worldbody>
<body name="a" pos="0 0 1"><joint name="ja" axis="0 1 0" ref="0.2"/><geom size="0.1"/>
  <body name="b" pos="1 0 0" euler="0.1 0 0"><joint name="jb" axis="0 1 0" ref="-0.4"/><geom size="0.1"/>
    <site name="sb" pos="0.5 0 0" euler="0 0.2 0"/></body></body>
<body name="c" pos="2 0 0.5"><joint name="jc" axis="0 1 0"/><geom size="0.1"/><site name="sc" pos="0 0 0.5"/></body>
</worldbody><equality>{}</equality>{}</mujoco>"""


def test_connect_and_weld_become_loops(tmp_path):
    text = EQUALITY.format(
        '<connect name="c1" body1="b" body2="c" anchor="0.5 0 0"/><connect body1="c" anchor="0 0 1"/>'
        '<weld name="w" body1="a" body2="c" relpose="1 2 3 0 1 0 0"/><weld body1="b" body2="c"/>'
        '<connect site1="sb" site2="sc" active="true"/><connect body1="a" body2="b" anchor="0 0 0" active="false"/>',
        "",
    )
    path = write(tmp_path, text)
    robot = read_mjcf(path)
    assert [(loop.name, loop.kind, loop.body_a, loop.body_b) for loop in robot.loops] == [
        ("c1", "point", "b", "c"),
        ("connect", "point", "c", "world"),
        ("w", "weld", "a", "c"),
        ("weld", "weld", "b", "c"),
        ("connect_2", "point", "b", "c"),
    ]
    assert robot.actuators == ()  # none is declared, and in loops none is guessed
    model = mujoco.MjModel.from_xml_path(str(path))
    for i in (0, 1):
        assert np.allclose(robot.loops[i].placement_a.translation, model.eq_data[i][:3])
        assert np.allclose(robot.loops[i].placement_b.translation, model.eq_data[i][3:6])
    # At qpos0 what the file leaves out is closed.
    here = poses(robot, {"ja": 0.2, "jb": -0.4})
    for loop in (robot.loops[0], robot.loops[1], robot.loops[3]):
        a, b = here[loop.body_a] @ loop.placement_a, here[loop.body_b] @ loop.placement_b
        assert np.allclose(a.translation, b.translation)
        if loop.kind == "weld":
            assert np.allclose(a.rotation, b.rotation)
    assert np.allclose(robot.loops[2].placement_a.translation, [1.0, 2.0, 3.0])
    assert np.allclose(robot.loops[2].placement_a.rotation, np.diag([1.0, -1.0, -1.0]))


def test_joint_equalities_become_couplings(tmp_path):
    motors = '<tendon><fixed name="t"><joint joint="ja" coef="2"/><joint joint="jc" coef="-1"/></fixed></tendon>'
    motors += '<actuator><motor name="m" joint="jb" gear="10"/><motor name="mt" tendon="t"/></actuator>'
    robot = read_mjcf(write(tmp_path, EQUALITY.format('<joint joint1="jb" joint2="ja" polycoef="0.3 -2"/>', motors)))
    (coupling,) = robot.couplings
    # jb - (-0.4) = 0.3 - 2 (ja - 0.2)
    assert (coupling.joint, dict(coupling.of)) == ("jb", {"ja": -2.0})
    assert coupling.offset == pytest.approx(-0.4 + 0.3 + 2.0 * 0.2)
    first, second = robot.actuators
    # The motor of the follower turns with what it follows.
    assert (dict(first.coupling), first.ratio, first.offset) == ({"ja": -2.0}, 10.0, pytest.approx(10.0 * coupling.offset))
    assert dict(second.coupling) == {"ja": 2.0, "jc": -1.0}
    held = read_mjcf(write(tmp_path, EQUALITY.format('<joint joint1="ja" polycoef="0.5"/>', "")))
    assert held.joint_names == ("jb", "jc")
    assert np.allclose(poses(held, {})["a"].rotation, rotation_exp([0.0, 0.5, 0.0]))


def test_includes(tmp_path):
    (tmp_path / "parts").mkdir()
    write(tmp_path, "<mujocoinclude><joint name='x'/><geom size='0.1'/></mujocoinclude>", "parts/inside.xml")
    path = write(tmp_path, body("<include file='parts/inside.xml'/>"))
    assert assert_agrees(path, check_torque=False).joint_names == ("x",)


@pytest.mark.parametrize(
    ("inner", "word"),
    [
        ("<joint/><geom type='mesh' mesh='m'/>", "is a mesh"),
        ("<joint/><geom size='1' shellinertia='true'/>", "shellinertia"),
        ("<joint/>", "no inertia"),
        ("<joint/><inertial pos='0 0 0' mass='1' diaginertia='1 1 5'/>", "triangle"),
    ],
)
def test_doubtful_bodies_are_read_with_a_warning(tmp_path, inner, word):
    with pytest.warns(DescriptionWarning, match=word):
        robot = read_mjcf(write(tmp_path, body(inner)))
    assert robot.tree.bodies == ("b",)
    assert robot.dof == 1


@pytest.mark.parametrize(
    ("rest", "word"),
    [
        ("<actuator><motor site='s'/></actuator>", "does not act on moving joints"),
        ("<actuator><motor name='a' joint='j'/><velocity name='b' joint='j'/></actuator>", "drives the same coordinate as 'a'"),
        ("<equality><tendon tendon1='t'/></equality>", "<equality><tendon> is ignored"),
        ("<equality><weld name='hand' body1='b' body2='pen'/></equality>", "<weld name='hand'> to a mocap body is ignored"),
        ("<option density='1000'/>", "forces of the fluid"),
        (
            "<default><tendon stiffness='3'/></default><tendon><fixed name='t'><joint joint='j' coef='1'/></fixed></tendon>",
            "forces of tendons 't'",
        ),
        ("<worldbody><body name='c' gravcomp='1'><joint/><geom size='1'/></body></worldbody>", "gravcomp of 'c' is ignored"),
        ("<compiler balanceinertia='true'/>", "balanceinertia"),
        ("<compiler boundmass='0.1'/>", "boundmass"),
    ],
)
def test_what_is_ignored_is_said(tmp_path, rest, word):
    pen = "<worldbody><body name='pen' mocap='true'/></worldbody>"
    text = body("<joint name='j'/><geom size='1'/>").replace("</mujoco>", pen + rest + "</mujoco>")
    with pytest.warns(DescriptionWarning, match=word):
        read_mjcf(write(tmp_path, text))


GOOD = "<joint name='j'/><geom size='1'/>"
BAD = {
    "wrong root": ("<robot/>", "<robot>, but <mujoco>"),
    "no body": ("<mujoco/>", "no <body>"),
    "a part": ("<mujocoinclude/>", "give the file that includes it"),
    "truncated": (body(GOOD)[:-5], "not well-formed"),
    "bomb": ('<!DOCTYPE b [<!ENTITY a "a">]>' + body(GOOD), "entities"),
    "too deep": ("<mujoco><worldbody>" + "<body>" * 600 + "</body>" * 600 + "</worldbody></mujoco>", "nested"),
    "global frames": (body(GOOD, head="<compiler coordinate='global'/>"), "coordinate is 'global'"),
    "angle": (body(GOOD, head="<compiler angle='grad'/>"), "angle is 'grad'"),
    "eulerseq": (
        body(GOOD, head="<compiler eulerseq='xyq'/>").replace("name='b'", "name='b' euler='1 2 3'"),
        "eulerseq is 'xyq'",
    ),
    "autolimits": (body("<joint range='0 1'/><geom size='1'/>", head="<compiler autolimits='maybe'/>"), "autolimits"),
    "inertiafromgeom": (body(GOOD, head="<compiler inertiafromgeom='2'/>"), "inertiafromgeom"),
    "no such class": (body("<joint class='x'/>"), "default class 'x'"),
    "class twice": (body(GOOD, head="<default><default class='x'/><default class='x'/></default>"), "'x' is declared twice"),
    "class without name": (body(GOOD, head="<default><default/></default>"), "nested <default>"),
    "type": (body("<joint type='screw'/>"), "type is 'screw'"),
    "zero axis": (body("<joint axis='0 0 0'/><geom size='1'/>"), "not zero"),
    "zero quaternion": (body(GOOD).replace("name='b'", "name='b' quat='0 0 0 0'"), "quat is .* not zero"),
    "two orientations": (body(GOOD).replace("name='b'", "name='b' quat='1 0 0 0' euler='1 2 3'"), "both quat and euler"),
    "two numbers": (body(GOOD).replace("name='b'", "name='b' pos='1 2'"), "pos is '1 2'"),
    "polynomial damping": (body("<joint damping='1 2'/><geom size='1'/>"), "polynomial"),
    "body twice": (body(GOOD + "<body name='b'/>"), "'b' is used twice"),
    "joint twice": (body(GOOD + "<joint name='j'/>"), "'j' is used twice"),
    "free inside": (body("<body name='c'><freejoint/></body>"), "directly in <worldbody>"),
    "free armature": (body("<joint type='free' armature='1'/><geom size='1'/>"), "armature of a free joint"),
    "replicate": (body("<replicate count='3'/>"), "<replicate> is not supported"),
    "no size": (body("<joint/><geom/>"), "needs 1 numbers"),
    "negative size": (body("<joint/><geom size='-1'/>"), "positive lengths"),
    "unknown geom": (body("<joint/><geom type='torus' size='1'/>"), "type is 'torus'"),
    "negative density": (body("<joint/><geom size='1' density='-1'/>"), "negative"),
    "negative mass": (body("<joint/><inertial pos='0 0 0' mass='-1' diaginertia='1 1 1'/>"), "mass is -1"),
    "no mass": (body("<joint/><inertial pos='0 0 0' diaginertia='1 1 1'/>"), "no attribute 'mass'"),
    "no inertia": (body("<joint/><inertial pos='0 0 0' mass='1'/>"), "no attribute 'diaginertia'"),
    "absolute include": (body("<include file='/etc/x.xml'/>"), "outside the robot's folder"),
    "include of nobody": (body("<include file='nobody.xml'/>"), "nobody.xml"),
    "include of itself": (body("<include file='robot.xml'/>"), "includes itself"),
    "unknown motor": (body(GOOD).replace("</mujoco>", "<actuator><engine/></actuator></mujoco>"), "<engine> is unknown"),
    "motor of nobody": (body(GOOD).replace("</mujoco>", "<actuator><motor joint='x'/></actuator></mujoco>"), "joint 'x'"),
    "gear": (body(GOOD).replace("</mujoco>", "<actuator><motor joint='j' gear='0'/></actuator></mujoco>"), "gear ratio"),
    "coupling without numbers": (EQUALITY.format('<joint joint1="ja" joint2="jb" polycoef="0 x"/>', ""), "polycoef"),
    "coupling of nobody": (EQUALITY.format('<joint joint1="x"/>', ""), "joint1 'x'"),
    "loop of nobody": (EQUALITY.format('<connect body1="x" anchor="0 0 0"/>', ""), "body1 'x'"),
    "site of nobody": (EQUALITY.format('<weld site1="x" site2="sb"/>', ""), "site1 'x'"),
    "custom": (
        body(GOOD).replace("</mujoco>", "<custom><numeric name='dynident_offset_j' data='1 2'/></custom></mujoco>"),
        "2 numbers",
    ),
}


def test_bad_files_are_refused_in_one_sentence(tmp_path, subtests):
    for case, (content, word) in BAD.items():
        with subtests.test(case):
            with pytest.raises(DescriptionError, match=word) as caught:
                quietly(read_mjcf, write(tmp_path, content))
            sentence = str(caught.value)
            assert sentence.startswith("robot.xml: ")
            assert "\n" not in sentence
            assert ";" in sentence  # the remedy


def test_a_free_base_is_independent_of_the_loops_it_carries():
    """Loops move with a base: rounding errors in its columns of the constraints must not choose its coordinates."""
    body = '<inertial pos="0 0 -0.1" mass="1" diaginertia="0.01 0.01 0.01"/>'
    robot = Mechanism.from_text(
        f"""<mujoco model="walker"><worldbody><body name="pelvis" pos="0.3 0.2 1"><freejoint name="root"/>{body}
        <body name="crank" pos="0.1 0.13 -0.05" euler="10 20 30"><joint name="crank" axis="0 1 0"/>{body}
        <body name="coupler" pos="0 0 -0.2"><joint name="coupler" axis="0 1 0"/>{body}</body></body>
        <body name="side" pos="0.1 0.13 -0.05" euler="10 20 30"><body name="arm" pos="0.3 0 0">
        <joint name="rocker" axis="0 1 0"/>{body}</body></body></body></worldbody>
        <equality><connect body1="coupler" body2="arm" anchor="0.3 0 0"/></equality></mujoco>"""
    )
    assert robot.dof == 7
    assert robot.coordinate_names[:6] == tuple(f"root.{c}" for c in ("x", "y", "z", "rx", "ry", "rz"))
