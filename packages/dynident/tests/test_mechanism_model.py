"""`Mechanism`: names, couplings, actuators, and the changed copies (lock, keep, payload, parameters)."""

from __future__ import annotations

from pathlib import Path

import loop_cases
import numpy as np
import pytest
from mechanism_oracles import moved_joint, poses, random_motion, random_parameters, torque_difference

from dynident.errors import DescriptionError
from dynident.friction import TERMS
from dynident.mechanics import Motion, inverse_dynamics
from dynident.mechanism import Actuator, Body, Coupling, Joint, Loop, Mechanism, Parameters, Placement, description, from_com
from dynident.mechanism.describe import description_text
from dynident.mechanism.dh import read_dh
from dynident.mechanism.elements import COORDINATES
from dynident.mechanism.parameters import transform
from dynident.mechanism.tree import joint_transform, node_poses
from dynident.mechanism.urdf import read_urdf

ROBOTS = Path(__file__).parent / "robots"


@pytest.fixture
def rich() -> Mechanism:
    return read_urdf(ROBOTS / "rich.urdf")


def chain(**more) -> Mechanism:
    """Four revolute joints a, b, c, d in a row."""
    names = "abcd"
    bodies = [Body("base"), *(Body(f"l{n}", from_com(1.0, [0.1, 0.2, 0.0], 0.1 * np.eye(3))) for n in names)]
    parents = ["base", "la", "lb", "lc"]
    place = Placement.from_rpy([0.3, 0.0, 0.1], [0.3, 0.2, 0.1])
    joints = [Joint(n, "revolute", p, f"l{n}", place) for n, p in zip(names, parents, strict=True)]
    return Mechanism("chain", tuple(bodies), tuple(joints), **more)


def test_names_and_sizes(rich):
    assert rich.root == "base"
    assert rich.coordinate_names == ("pan", "reach", "spin", "drive.x", "drive.y", "drive.rz")
    assert rich.joint_names == ("pan", "reach", "spin", "drive")
    assert rich.tree.bodies == ("shoulder", "slider", "wheel", "finger", "cart")
    assert len(rich.parameters) == len(set(rich.parameters.names))
    units = dict(zip(rich.parameters.names, rich.parameters.units, strict=True))
    assert (units["fv_reach"], units["fv_pan"], units["Ixx_wheel"]) == ("N s/m", "N m s/rad", "kg m^2")


def test_fixed_links_are_lumped_into_the_moving_link(rich):
    inertia = {body.name: body.inertia for body in rich.bodies}
    bolt = rich.joint("bolt").placement
    group = inertia["shoulder"] + transform(inertia["plate"], bolt.rotation, bolt.translation)
    assert np.allclose([rich.parameters[f"{s}_shoulder"] for s in ("m", "mx", "my", "mz", "Ixx")], group[:5])


def test_coupling_map_follows_chains():
    robot = chain(couplings=(Coupling("c", {"b": 2.0}, 0.5), Coupling("b", {"a": -1.0, "d": 3.0}, 0.1)))
    G, g0 = robot.coupling_map
    assert robot.coordinate_names == ("a", "d")
    q = np.array([0.7, -0.2])
    b = -q[0] + 3.0 * q[1] + 0.1
    assert np.allclose(G @ q + g0, [q[0], b, 2.0 * b + 0.5, q[1]])


@pytest.mark.parametrize(
    ("couplings", "word"),
    [
        ((Coupling("a", {"b": 1.0}), Coupling("b", {"a": 1.0})), "cycle"),
        ((Coupling("a", {"a": 1.0}),), "cycle"),
        ((Coupling("a", {"x": 1.0}),), "'x'"),
        ((Coupling("a", {"b": 1.0}), Coupling("a", {"c": 1.0})), "two couplings"),
    ],
)
def test_wrong_couplings_are_refused(couplings, word):
    with pytest.raises(DescriptionError, match=word):
        chain(couplings=couplings)


def test_actuator_matrix():
    motors = (Actuator("m1", {"a": 1.0}, 50.0, 0.2), Actuator("m2", {"b": 1.0, "c": -0.5}, -10.0))
    robot = chain(actuators=motors)
    N, n0 = robot.actuator_matrix
    assert np.array_equal(N, [[50.0, 0.0, 0.0, 0.0], [0.0, -10.0, 5.0, 0.0]])
    assert np.array_equal(n0, [0.2, 0.0])
    assert [name for name in robot.parameters if name.endswith("_m2")] == ["ia_m2", "fv_m2", "fc_m2"]
    with pytest.raises(DescriptionError, match="'nobody'"):
        chain(actuators=(Actuator("m", {"nobody": 1.0}),))


def test_lock_gives_the_same_torques_as_standing_still():
    robot = chain()
    locked = robot.lock({"b": 0.4, "d": -1.1})
    assert locked.coordinate_names == ("a", "c")
    q, v, a = (np.zeros((10, 4)) for _ in range(3))
    rng = np.random.default_rng(3)
    for x in (q, v, a):
        x[:, [0, 2]] = rng.normal(size=(10, 2))
    q[:, 1], q[:, 3] = 0.4, -1.1
    t = np.arange(10.0)
    full = inverse_dynamics(robot, Motion(t, q, v, a))[:, [0, 2]]
    assert np.allclose(inverse_dynamics(locked, Motion(t, q[:, [0, 2]], v[:, [0, 2]], a[:, [0, 2]])), full)


def test_lock_carries_through_couplings_and_motors():
    robot = chain(
        couplings=(Coupling("c", {"b": 2.0}, 0.5), Coupling("b", {"a": 1.0}, 0.1)),
        actuators=(Actuator("m", {"a": 1.0, "d": 2.0}, 10.0, 1.0),),
    )
    locked = robot.lock({"a": 0.3})
    assert locked.coordinate_names == ("d",)
    assert locked.actuators[0].offset == pytest.approx(1.0 + 10.0 * 0.3)
    full = poses(robot, {"a": 0.3, "b": 0.4, "c": 1.3, "d": 0.9})
    assert np.allclose(poses(locked, {"d": 0.9})["ld"].translation, full["ld"].translation)
    partly = chain(couplings=(Coupling("d", {"a": 1.0, "b": 2.0}, 0.5),)).lock({"b": 0.25})
    assert dict(partly.couplings[0].of) == {"a": 1.0}
    assert partly.couplings[0].offset == pytest.approx(1.0)


def test_keep_holds_the_others_at_zero_but_not_the_followers():
    robot = chain(couplings=(Coupling("c", {"b": 2.0}), Coupling("b", {"a": 1.0})))
    kept = robot.keep(["a"])
    assert kept.coordinate_names == ("a",)
    assert kept.tree.coordinates == ("a", "b", "c")
    with pytest.raises(DescriptionError, match="no joint 'x'"):
        robot.keep(["x"])


def test_lock_holds_what_a_function_follows():
    def curve(x):
        return np.sin(x[:, 0]) * x[:, 1] ** 2

    robot = chain(couplings=(Coupling("c", ("a", "b"), 0.1, function=curve),))
    (left,) = robot.lock({"b": 0.4}).couplings
    x = np.array([[0.3], [-1.2]])
    assert left.offset == 0.1
    np.testing.assert_allclose(left.function(x), np.sin(x[:, 0]) * 0.16, rtol=1e-14)
    np.testing.assert_allclose(left.function(x + 1e-30j).imag, np.cos(x[:, 0]) * 0.16e-30, rtol=1e-14)
    assert robot.keep(["a", "b"]).couplings == robot.couplings  # nothing is held
    held = robot.lock({"a": 0.3, "b": 0.4})
    turn = held.joint("c").placement.rotation @ np.linalg.inv(robot.joint("c").placement.rotation)
    assert np.arccos((np.trace(turn) - 1.0) / 2.0) == pytest.approx(0.1 + np.sin(0.3) * 0.16)


def test_lock_of_several_axes(rich):
    locked = rich.lock({"drive": [0.1, 0.2, 0.3]})
    assert locked.joint_names == ("pan", "reach", "spin")
    with pytest.raises(DescriptionError, match="'drive'"):
        rich.lock({"drive": 0.1})


@pytest.mark.parametrize("convention", ["standard", "modified"])
def test_payload_is_added_to_the_last_link_and_removable(convention):
    robot = read_dh([(0.1, 0.3, 0.2, 0.0)] * 3, convention)
    loaded = robot.with_payload(2.0, [0.1, 0.0, 0.3])
    assert np.allclose(loaded.tree.inertias[20:], from_com(2.0, [0.1, 0.0, 0.3], np.zeros((3, 3))))
    assert loaded.parameters.names == robot.parameters.names
    again = loaded.without("payload")
    assert np.array_equal(again.parameters.values, robot.parameters.values)
    with pytest.raises(DescriptionError, match="cannot be removed"):
        loaded.without("link_1")
    with pytest.raises(DescriptionError, match="positive"):
        robot.with_payload(-1.0)


def test_payload_needs_a_body_when_there_are_several_ends(rich):
    with pytest.raises(DescriptionError, match="name the body"):
        rich.with_payload(1.0)
    assert rich.with_payload(1.0, body="wheel").parameters["m_wheel"] == pytest.approx(1.7)


def test_with_parameters_round_trips(rich):
    phi = random_parameters(rich)
    again = rich.with_parameters(phi)
    assert np.allclose(again.parameters.values, phi.values, rtol=1e-12)
    assert torque_difference(rich, again, phi) < 1e-12
    plate = {body.name: body.inertia for body in again.bodies}["plate"]
    assert np.array_equal(plate, next(b.inertia for b in rich.bodies if b.name == "plate"))
    with pytest.raises(DescriptionError, match="do not belong"):
        chain().with_parameters(phi)


def test_terms_are_laid_out_from_names_not_positions(rich):
    """FIGAROH #12: switching terms off must not shift the others."""
    for terms in ((), ("fc",), ("k", "ia"), ("fvp", "fvn", "fcp", "fcn")):
        few = rich.with_terms(terms)
        assert {name.split("_")[0] for name in few.parameters.names[50:]} == set(terms)
        motion = random_motion(few)
        zero = few.parameters.replace(np.zeros(len(few.parameters)))
        for symbol in terms:
            i = few.coordinate_names.index("reach")
            column = TERMS[symbol].column(motion.q[:, i], motion.v[:, i], motion.a[:, i])
            tau = inverse_dynamics(few, motion, zero.replace({f"{symbol}_reach": 2.0}))
            assert np.allclose(tau[:, i], 2.0 * column)
            assert not np.any(np.delete(tau, i, axis=1))


def test_dots_in_joint_names_are_just_letters():
    robot = Mechanism("r", (Body("b"), Body("l", np.zeros(10))), (Joint("left.elbow", "revolute", "b", "l"),))
    assert robot.joint_names == ("left.elbow",)
    assert [a.name for a in robot.actuators] == ["left.elbow"]
    assert robot.lock({"left.elbow": 0.3}).dof == 0


def test_two_joints_with_one_coordinate_name_are_refused():
    bodies = (Body("b"), Body("l", np.zeros(10)), Body("k", np.zeros(10)))
    with pytest.raises(DescriptionError, match=r"a\.rx"):
        Mechanism("r", bodies, (Joint("a", "spherical", "b", "l"), Joint("a.rx", "revolute", "l", "k")))


def test_wrong_elements_are_refused_in_one_sentence(subtests):
    for make, word in [
        (lambda: Mechanism("r", (), ()), "no body"),
        (lambda: Mechanism("r", (Body("a"), Body("a")), ()), "twice"),
        (lambda: Mechanism("r", (Body("a"), Body("b")), ()), "2 bases"),
        (lambda: Mechanism("r", (Body("a"),), (), gravity=[0.0, np.nan, 0.0]), "finite"),
        (lambda: Mechanism("r", (Body("a"),), (), terms=("ia", "ia")), "twice"),
        (lambda: Mechanism("r", (Body("a"),), (), loops=(Loop("x", "point", "a", "z"),)), "'z'"),
        (lambda: Joint("j", "screw", "a", "b"), "known kinds"),
        (lambda: Joint("j", "revolute", "a", "b", axis=[0.0, 0.0, 0.0]), "not zero"),
        (lambda: Joint("j", "revolute", "a", "b", terms={"drag": 1.0}), "unknown joint term"),
        (lambda: Joint("j", "revolute", "a", "b", terms={"fv": np.inf}), "finite"),
        (lambda: Loop("x", "glue", "a", "b"), "known kinds"),
        (lambda: Loop("x", "revolute", "a", "b", axis=[0.0, 0.0, 0.0]), "not zero"),
        (lambda: Placement(2.0 * np.eye(3)), "rotation matrix"),
        (lambda: Placement(1e200 * np.eye(3)), "rotation matrix"),  # R R^T overflows
        (lambda: Placement(np.eye(3), [0.0, 10**400, 0.0]), "numbers"),
        (lambda: Body("b", np.zeros(9)), "shape"),
        (lambda: Actuator("m", {"a": 1.0}, 0.0), "gear ratio"),
        (lambda: Coupling("a", {}), "ratios"),
        (lambda: Parameters(("a", "a"), np.zeros(2)), "twice"),
    ]:
        with subtests.test(str(word)):
            with pytest.raises(DescriptionError, match=word) as caught:
                make()
            assert "\n" not in str(caught.value)


def test_a_robot_hangs_as_it_stands():
    robot, q = chain(terms=()), np.array([[0.3, -0.4, 0.2, 0.1]])
    still = Motion([0.0], q, 0.0 * q, 0.0 * q)
    hung = robot.with_gravity(-robot.gravity)
    np.testing.assert_allclose(inverse_dynamics(hung, still), -inverse_dynamics(robot, still), atol=1e-12)
    with pytest.raises(DescriptionError, match="gravity"):
        robot.with_gravity((0.0, 9.81))


def test_a_robot_without_numbers_is_not_called_impossible():
    robot = chain(terms=())
    bare = robot.with_parameters(robot.parameters.replace(0.0 * robot.parameters.values))
    told = description_text(description(bare))
    assert "mass and inertia are zero" in told and "impossible" not in told and description(bare)["possible"]


@pytest.mark.parametrize("kind", COORDINATES)
@pytest.mark.parametrize("position", [0.0, 1.0, -2.3])
def test_a_joint_moves_its_child_as_rodrigues_formula_says(kind, position):
    joint = Joint("j", kind, "a", "b", axis=np.array([0.3, -0.4, 0.5]), axis2=np.array([0.0, 0.6, 0.8]))
    x = position * np.array([1.0, -0.5, 0.25, 1.0, 0.7, -0.2])[: len(joint.coordinates)]
    pose, expected = joint_transform(joint, x), moved_joint(joint, x)
    np.testing.assert_allclose(pose.rotation, expected.rotation, atol=1e-14)
    np.testing.assert_allclose(pose.translation, expected.translation, atol=1e-14)


def test_nodes_of_the_tree_are_where_the_joints_put_the_links(rich):
    q = np.random.default_rng(3).uniform(-1.0, 1.0, len(rich.tree.coordinates))
    links, nodes = poses(rich, dict(zip(rich.tree.coordinates, q, strict=True))), node_poses(rich.tree, q)
    for body, (node, inside) in rich.tree.frames.items():
        pose = nodes[node] @ inside if node >= 0 else inside
        np.testing.assert_allclose(pose.rotation, links[body].rotation, atol=1e-13)
        np.testing.assert_allclose(pose.translation, links[body].translation, atol=1e-13)


def test_one_term_may_be_given_by_its_name():
    robot = Mechanism.from_dh([(0.3, 0.0, 0.0, 0.0), (0.2, 0.0, 0.0, 0.0)])
    assert robot.with_terms("fv").parameters.names == robot.with_terms(["fv"]).parameters.names
    assert robot.with_terms({"joint_2": "ia"}).parameters.names == robot.with_terms({"joint_2": ("ia",)}).parameters.names
    with pytest.raises(DescriptionError, match="unknown joint term 'fx'"):
        robot.with_terms("fx")


def test_joints_without_a_motor_have_no_terms_unless_they_are_asked_for() -> None:
    asked = loop_cases.four_bar()
    given = {"loops": asked.loops, "actuators": asked.actuators, "home": asked.home, "independent": asked.independent}
    plain = Mechanism("bars", asked.bodies, asked.joints, **given)
    driven = next(iter(asked.actuators[0].coupling))
    assert {joint for joint, _ in plain.joint_columns} == {driven}
    assert {joint for joint, _ in asked.joint_columns} == set(asked.tree.coordinates)
    unnamed = Mechanism("bars", asked.bodies, asked.joints, **{**given, "actuators": ()})  # any joint may have the motor
    assert {joint for joint, _ in unnamed.joint_columns} == set(asked.tree.coordinates)
    assert Mechanism.from_dict(plain.to_dict()).parameters.names == plain.parameters.names


def test_a_fixed_tool_keeps_half_of_its_inertia_where_that_leaves_a_link():
    unit = from_com(1.0, [0.1, 0.0, 0.05], 0.02 * np.eye(3))
    bodies = (Body("base"), Body("link", 3.0 * unit), Body("tool", 2.0 * unit))
    robot = Mechanism("arm", bodies, (Joint("a", "revolute", "base", "link"), Joint("screws", "fixed", "link", "tool")))
    new = robot.with_parameters(robot.parameters.replace(0.3 * robot.parameters.values))  # 1.5 kg, less than the tool
    link, tool = (next(body.inertia for body in new.bodies if body.name == name) for name in ("link", "tool"))
    np.testing.assert_allclose(link, 0.5 * unit, atol=1e-12)
    np.testing.assert_allclose(tool, unit, atol=1e-12)


def test_an_axis_of_any_length_overflows_nothing():
    with np.errstate(all="raise"):
        joint = Joint("j", "revolute", "base", "link", axis=np.array([0.0, 1e200, 0.0]))
    np.testing.assert_array_equal(joint.axis, [0.0, 1.0, 0.0])
