"""SDF against Drake's own reader and against closed forms; models of Pinocchio and MuJoCo in memory against their programs."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest

import dynident as di
from dynident.errors import DescriptionError
from dynident.mechanism.text_writers import mjcf_text, urdf_text

INERTIA = "<inertia><ixx>0.05</ixx><ixy>0.001</ixy><ixz>0</ixz><iyy>0.06</iyy><iyz>-0.002</iyz><izz>0.03</izz></inertia>"
ARM = f"""<sdf version="1.9"><model name="arm"><pose>0 0 0.3 0 0 0.2</pose>
<link name="base"/>
<link name="upper"><pose>0.1 0 0.2 0.3 -0.2 0.1</pose>
 <inertial><pose>0.05 0.02 0.1 0.1 0.2 0.3</pose><mass>2.5</mass>{INERTIA}</inertial></link>
<link name="fore"><pose relative_to="upper">0 0.1 0.4 0 0.5 0</pose>
 <inertial><mass>1.5</mass>{INERTIA}</inertial></link>
<link name="tool"><pose relative_to="mount"/><inertial><mass>0.5</mass>{INERTIA}</inertial></link>
<frame name="mount" attached_to="fore"><pose degrees="true">0 0 0.3 0 90 0</pose></frame>
<joint name="ground" type="fixed"><parent>world</parent><child>base</child></joint>
<joint name="shoulder" type="revolute"><pose>0 0 -0.1 0.2 0 0</pose><parent>base</parent><child>upper</child>
 <axis><xyz>0 1 0.2</xyz><limit><lower>-2</lower><upper>2</upper><effort>80</effort></limit>
 <dynamics><damping>0.4</damping></dynamics></axis></joint>
<joint name="elbow" type="prismatic"><parent>upper</parent><child>fore</child>
 <axis><xyz expressed_in="__model__">0 0.3 1</xyz><limit><lower>-1e16</lower><upper>1e16</upper></limit></axis></joint>
<joint name="wrist" type="continuous"><parent>fore</parent><child>tool</child><axis><xyz>1 0 0</xyz></axis></joint>
</model></sdf>"""


def write(tmp_path, text, name="robot.sdf"):
    file = tmp_path / name
    file.write_text(text)
    return file


def test_an_arm_moves_as_in_drake(tmp_path):
    """Poses relative to other frames, joints away from their links, axes in other frames: torques as Drake's."""
    parsing = pytest.importorskip("pydrake.multibody.parsing", reason="Drake is an oracle of the tests")
    from pydrake.multibody.plant import MultibodyPlant
    from pydrake.multibody.tree import MultibodyForces

    file = write(tmp_path, ARM)
    robot = di.Mechanism.from_sdf(file)
    assert robot.coordinate_names == ("shoulder", "elbow", "wrist")
    shoulder, elbow = (robot.joint(name).limits for name in ("shoulder", "elbow"))
    assert (shoulder.lower, shoulder.upper, shoulder.velocity, shoulder.effort) == (-2.0, 2.0, np.inf, 80.0)
    assert (elbow.lower, elbow.upper) == (-np.inf, np.inf)
    plant = MultibodyPlant(time_step=0.0)
    parsing.Parser(plant).AddModels(str(file))
    plant.mutable_gravity_field().set_gravity_vector(robot.gravity)
    plant.Finalize()
    context, rng = plant.CreateDefaultContext(), np.random.default_rng(0)
    q, v, a = (rng.normal(size=(6, 3)) for _ in range(3))
    ours = di.inverse_dynamics(robot, di.Motion(np.arange(6.0), q, v, a))
    for k in range(6):
        plant.SetPositions(context, q[k])
        plant.SetVelocities(context, v[k])
        forces = MultibodyForces(plant)
        plant.CalcForceElementsContribution(context, forces)
        np.testing.assert_allclose(plant.CalcInverseDynamics(context, a[k], forces), ours[k], atol=1e-11)


def bar(name, place, mass=1.0, izz=0.1):
    inertia = f"<inertia><ixx>{izz}</ixx><iyy>{izz}</iyy><izz>{izz}</izz></inertia>"
    return f'<link name="{name}"><pose>{place} 0 0 0</pose><inertial><mass>{mass}</mass>{inertia}</inertial></link>'


def hinge(name, parent, child, at="0 0 0"):
    return (
        f'<joint name="{name}" type="revolute"><pose>{at} 0 0 0</pose><parent>{parent}</parent><child>{child}</child>'
        "<axis><xyz>0 0 1</xyz></axis></joint>"
    )


PARALLELOGRAM = f"""<sdf version="1.9"><world name="w"><gravity>0 -10 0</gravity><model name="parallelogram">
<link name="base"/><joint name="ground" type="fixed"><parent>world</parent><child>base</child></joint>
{bar("left", "0 0.3 0", 2.0, 0.2)}{bar("top", "0.5 0.6 0", 3.0)}{bar("right", "1 0.3 0", 2.5, 0.3)}
{hinge("crank", "base", "left", "0 -0.3 0")}{hinge("b", "left", "top", "-0.5 0 0")}
{hinge("d", "base", "right", "0 -0.3 0")}{hinge("c", "top", "right", "0 0.3 0")}
<plugin name="drive" filename="x"><joint_name>crank</joint_name></plugin></model></world></sdf>"""


def test_a_loop_is_closed(tmp_path):
    """The coupler of a parallelogram only translates: tau = (I1 + I3 + (m1 + m3) c^2 + m2 l^2) a - g (...) sin q."""
    robot = di.Mechanism.from_sdf(write(tmp_path, PARALLELOGRAM))
    assert [loop.name for loop in robot.loops] == ["c"] and [a.name for a in robot.actuators] == ["crank"]
    q = np.linspace(-0.8, 0.8, 9)[:, None]
    v, a = 0.5 + 0.1 * q, 1.0 - q
    tau = di.inverse_dynamics(robot.with_terms(()), di.Motion(np.arange(9.0), q, v, a))
    inertia = 0.2 + 0.3 + (2.0 + 2.5) * 0.3**2 + 3.0 * 0.6**2
    gravity = -10.0 * ((2.0 + 2.5) * 0.3 + 3.0 * 0.6) * np.sin(q)
    np.testing.assert_allclose(tau, inertia * a + gravity, atol=1e-9)


def test_what_is_wrong_is_one_sentence(tmp_path, subtests):
    for old, new, words in [
        ('type="continuous"', 'type="screw"', "joint 'wrist': type is 'screw'; known types are"),
        ("<parent>fore</parent>", "<parent>gone</parent>", "parent link 'gone' does not exist"),
        ('relative_to="upper"', 'relative_to="elbow"', "refers to itself"),
        ("<mass>2.5</mass>", "<mass>-1</mass>", "mass is -1.0 kg"),
        ("<xyz>1 0 0</xyz>", "<xyz>1 x 0</xyz>", "give 3 numbers"),
        ("</model>", "<include><uri>model://x</uri></include></model>", "flatten it"),
        ("</sdf>", "<model name='b'/></sdf>", "2 models"),
        (
            '<joint name="wrist" type="continuous">',
            '<joint name="wrist" type="continuous"><pose relative_to="no"/>',
            "no link, joint or frame 'no'",
        ),
    ]:
        with subtests.test(str(words)):
            assert old in ARM
            with pytest.raises(DescriptionError, match=words):
                di.Mechanism.from_sdf(write(tmp_path, ARM.replace(old, new)))


def torques(robot, other):
    """Torques of both at the same random states."""
    rng = np.random.default_rng(1)
    motion = di.Motion(np.arange(6.0), *(rng.normal(size=(6, robot.dof)) for _ in range(3)))
    assert robot.coordinate_names == other.coordinate_names
    return di.inverse_dynamics(robot, motion), di.inverse_dynamics(other, motion)


def arm():
    rows = [(0.1, 1.2, 0.3, 0.0), (0.5, 0.0, 0.0, 0.2), (0.2, -1.5, 0.1, 0.0)]
    robot = di.Mechanism.from_dh(rows).with_terms(["ia", "fv", "fc"])
    robot = replace(robot, joints=tuple(replace(j, limits=di.mechanism.Limits(-3, 3, 9, 99)) for j in robot.joints))
    values = np.random.default_rng(2).uniform(0.1, 0.5, robot.parameters.values.size)
    for k in range(3):
        inner = di.mechanism.from_com(2.0 + k, [0.1, 0.05 * k, -0.1], np.diag([0.1, 0.12, 0.15]))
        values[10 * k : 10 * k + 10] = inner
    return robot.with_parameters(robot.parameters.replace(values))


def test_models_of_pinocchio_both_ways():
    pin = pytest.importorskip("pinocchio")
    robot = arm()
    model = robot.to_pinocchio()
    back = di.Mechanism.from_pinocchio(model)
    np.testing.assert_allclose(*torques(robot.with_terms(["ia", "fv", "fc"]), back.with_terms(["ia", "fv", "fc"])), atol=1e-10)
    q, v, a = (np.random.default_rng(3).normal(size=3) for _ in range(3))
    ours = di.inverse_dynamics(robot.with_terms(["ia"]), di.Motion([0.0], [q], [v], [a]))[0]
    np.testing.assert_allclose(pin.rnea(model, model.createData(), q, v, a), ours, atol=1e-10)
    made = pin.Model()  # by Pinocchio's own calls, an axis of its own
    joint = made.addJoint(0, pin.JointModelRevoluteUnaligned(0.0, 0.6, 0.8), pin.SE3(np.eye(3), np.array([0, 0, 0.5])), "j")
    made.appendBodyToJoint(joint, pin.Inertia(2.0, np.array([0.1, 0.2, 0.3]), np.diag([0.2, 0.3, 0.25])), pin.SE3.Identity())
    theirs = pin.rnea(made, made.createData(), q[:1], v[:1], a[:1])
    found = di.inverse_dynamics(di.Mechanism.from_pinocchio(made), di.Motion([0.0], [q[:1]], [v[:1]], [a[:1]]))[0]
    np.testing.assert_allclose(found, theirs, atol=1e-12)
    with pytest.raises(DescriptionError, match=r"give a pinocchio\.Model"):
        di.Mechanism.from_pinocchio(3)


MJCF = """<mujoco><compiler angle="radian"/><worldbody><body name="a" pos="0 0 .5" euler=".1 .2 .3">
<joint name="j" axis="0 1 1" pos=".1 0 .2" ref=".3" stiffness="4" springref=".5" damping=".7" armature=".2"/>
<geom type="box" size=".1 .2 .3" density="700"/>
<body name="b" pos=".3 0 0"><joint name="s" type="slide" axis="1 0 0"/><joint name="t" axis="0 0 1"/>
<geom type="capsule" size=".05 .2" mass="2" pos="0 .1 0"/></body></body></worldbody></mujoco>"""


def test_models_of_mujoco_both_ways():
    mujoco = pytest.importorskip("mujoco")
    model = mujoco.MjModel.from_xml_string(MJCF)
    robot = di.Mechanism.from_mujoco(model)
    data = mujoco.MjData(model)
    rng = np.random.default_rng(4)
    for _ in range(4):
        q, v, a = (rng.normal(size=3) for _ in range(3))
        data.qpos[:], data.qvel[:], data.qacc[:] = q, v, a
        mujoco.mj_inverse(model, data)
        ours = di.inverse_dynamics(robot, di.Motion([0.0], [q], [v], [a]))[0]
        np.testing.assert_allclose(ours, data.qfrc_inverse, atol=1e-10)
    np.testing.assert_allclose(*torques(robot, di.Mechanism.from_mujoco(robot.to_mujoco())), atol=1e-10)
    np.testing.assert_allclose(*torques(di.Mechanism.from_text(MJCF), robot), atol=1e-10)
    with pytest.raises(DescriptionError, match="equality constraints"):
        text = MJCF.replace("</worldbody>", '</worldbody><equality><joint joint1="j" joint2="t"/></equality>')
        di.Mechanism.from_mujoco(mujoco.MjModel.from_xml_string(text))


def test_a_description_in_memory(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        robot = di.Mechanism.from_text(ARM)
    np.testing.assert_array_equal(*torques(robot, di.Mechanism.from_sdf(write(tmp_path, ARM))))
    assert di.Mechanism.from_text(urdf_text(arm()), floating=True).dof == 9
    for text in ("robot.urdf", "", 3):
        with pytest.raises(DescriptionError, match="give the text of"):
            di.Mechanism.from_text(text)


def test_loops_go_to_mujoco_as_constraints(tmp_path):
    """At positions that dynident closes, MuJoCo's constraints are closed; read back, the robot has the same torques."""
    mujoco = pytest.importorskip("mujoco")
    robot = di.Mechanism.from_sdf(write(tmp_path, PARALLELOGRAM))
    model = robot.to_mujoco()
    data = mujoco.MjData(model)
    q = np.linspace(-0.6, 0.6, 5)[:, None]
    closed = di.mechanics.close_positions(robot, q)
    for x in closed:
        for name, value in zip(robot.tree.coordinates, x, strict=True):
            data.qpos[model.joint(name).qposadr[0]] = value
        mujoco.mj_forward(model, data)
        assert data.nefc == 6 and np.abs(data.efc_pos).max() < 1e-9
    back = di.Mechanism.from_text(mjcf_text(robot))
    motion = di.Motion(np.arange(5.0), q, 1.0 + q, 0.5 - q)
    np.testing.assert_allclose(di.inverse_dynamics(back, motion), di.inverse_dynamics(robot, motion), atol=1e-9)
