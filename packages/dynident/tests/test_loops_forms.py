"""One four-bar written in every form a loop can be given in: all must be the same robot."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import dynident as di
from dynident.mechanics import close_positions
from dynident.mechanism import from_com

LINKS = {"crank": (0.1, 0.2), "coupler": (0.3, 0.5), "rocker": (0.25, 0.4)}
HOME = {"q1": 1.0, "q2": -0.4, "q3": 1.9}
SIDECAR = """
gravity = [0.0, -9.81, 0.0]
terms = []
home = { q1 = 1.0, q2 = -0.4, q3 = 1.9 }
[[loop]]
name = "pin"
kind = "revolute"
body_a = "coupler"
body_b = "rocker"
xyz_a = [0.3, 0.0, 0.0]
xyz_b = [0.25, 0.0, 0.0]
[[actuator]]
name = "motor"
coupling = { q1 = 1.0 }
"""


def at(x: float) -> di.Placement:
    return di.Placement(np.eye(3), np.array([x, 0.0, 0.0]))


def inertia(name: str) -> np.ndarray:
    length, mass = LINKS[name]
    return from_com(mass, (0.5 * length, 0.0, 0.0), np.diag([1e-4, 2e-3, 2e-3]))


def python_robot() -> di.Mechanism:
    bodies = (di.Body("ground"), *(di.Body(name, inertia(name)) for name in LINKS))
    joints = (
        di.Joint("q1", "revolute", "ground", "crank"),
        di.Joint("q2", "revolute", "crank", "coupler", at(0.1)),
        di.Joint("q3", "revolute", "ground", "rocker", at(0.3)),
    )
    loops = (di.Loop("pin", "revolute", "coupler", "rocker", at(0.3), at(0.25)),)
    motors = (di.Actuator("motor", {"q1": 1.0}),)
    return di.Mechanism("four-bar", bodies, joints, loops, (), motors, (), (0.0, -9.81, 0.0), home=HOME)


def urdf_robot(folder: Path) -> di.Mechanism:
    links = "".join(
        f'<link name="{name}"><inertial><origin xyz="{length / 2} 0 0"/><mass value="{mass}"/>'
        '<inertia ixx="1e-4" iyy="2e-3" izz="2e-3" ixy="0" ixz="0" iyz="0"/></inertial></link>'
        for name, (length, mass) in LINKS.items()
    )
    joints = "".join(
        f'<joint name="{name}" type="continuous"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="{x} 0 0"/><axis xyz="0 0 1"/></joint>'
        for name, parent, child, x in (
            ("q1", "ground", "crank", 0.0),
            ("q2", "crank", "coupler", 0.1),
            ("q3", "ground", "rocker", 0.3),
        )
    )
    (folder / "bar.urdf").write_text(f'<robot name="bar"><link name="ground"/>{links}{joints}</robot>')
    (folder / "bar.toml").write_text(SIDECAR)
    return di.Mechanism.from_urdf(folder / "bar.urdf", sidecar=folder / "bar.toml")


def mjcf_robot(folder: Path, equality: str, tip: str = "") -> di.Mechanism:
    """MuJoCo assembles the loop where every joint is at its ref: the closed home of the others."""
    home = dict(zip(HOME, python_robot().closure.home.tolist(), strict=True))

    def body(name: str, joint: str, x: float, inner: str = "") -> str:
        length, mass = LINKS[name]
        return (
            f'<body name="{name}" pos="{x} 0 0" axisangle="0 0 1 {home[joint]!r}">'
            f'<joint name="{joint}" type="hinge" axis="0 0 1" ref="{home[joint]!r}"/>'
            f'<inertial pos="{length / 2} 0 0" mass="{mass}" diaginertia="1e-4 2e-3 2e-3"/>{inner}</body>'
        )

    tree = body("crank", "q1", 0.0, body("coupler", "q2", 0.1, tip)) + body("rocker", "q3", 0.3)
    (folder / "bar.xml").write_text(
        '<mujoco model="bar"><compiler angle="radian"/><option gravity="0 -9.81 0"/>'
        f"<worldbody>{tree}</worldbody><equality>{equality}</equality>"
        '<actuator><motor name="motor" joint="q1"/></actuator></mujoco>'
    )
    return di.Mechanism.from_mjcf(folder / "bar.xml")


def dh_robot() -> di.Mechanism:
    rows = [{"joint": "q1"}, {"joint": "q2", "a": 0.1}, {"joint": "q3", "a": 0.3, "antecedent": 0}]
    tree = di.Mechanism.from_dh(rows, convention="modified", gravity=(0.0, -9.81, 0.0)).with_terms(())
    loop = di.Loop("pin", "revolute", "link_2", "link_3", at(0.3), at(0.25))
    closed = replace(tree, loops=(loop,), actuators=(di.Actuator("motor", {"q1": 1.0}),), home=HOME)
    values = np.concatenate([inertia(name) for name in LINKS])
    return closed.with_parameters(replace(closed.parameters, values=values))


TIP = (
    '<body name="tip" pos="0.3 0 0"><joint name="q4" type="hinge" axis="0 0 1"/>'
    '<inertial pos="0 0 0" mass="1e-12" diaginertia="1e-15 1e-15 1e-15"/></body>'
)
CONNECT = '<connect body1="coupler" body2="rocker" anchor="0.3 0 0"/>'


def swing(samples: int = 60) -> di.Motion:
    t = np.linspace(0.0, 2.0, samples)
    return di.Motion(t, 1.0 + np.sin(t)[:, None], np.cos(t)[:, None], -np.sin(t)[:, None])


@pytest.mark.parametrize("form", ["urdf", "connect", "weld", "dh"])
def test_every_form_is_the_same_robot(form: str, tmp_path: Path) -> None:
    made = {
        "urdf": lambda: urdf_robot(tmp_path),
        "connect": lambda: mjcf_robot(tmp_path, CONNECT),
        "weld": lambda: mjcf_robot(tmp_path, '<weld body1="tip" body2="rocker"/>', TIP),
        "dh": dh_robot,
    }[form]()
    assert made.coordinate_names == ("q1",)
    assert made.closure.redundant_equations == {"connect": 1}.get(form, 3)
    expected = di.inverse_dynamics(python_robot(), swing())
    np.testing.assert_allclose(di.inverse_dynamics(made, swing()), expected, atol=1e-9)


def test_joint_equality_beside_a_loop(tmp_path: Path) -> None:
    coupled = '<joint joint1="q4" joint2="q3" polycoef="0.1 2 0 0 0"/>'
    robot = mjcf_robot(tmp_path, CONNECT + coupled, TIP)
    names = robot.tree.coordinates
    q = close_positions(robot, swing().q)
    reference = robot.home["q3"]
    np.testing.assert_allclose(q[:, names.index("q4")], 0.1 + 2.0 * (q[:, names.index("q3")] - reference), atol=1e-12)
    assert robot.dof == 1


def test_a_polynomial_joint_equality_is_followed(tmp_path: Path) -> None:
    """Power of the closed robot is that of the free one along the same motion."""
    arm = (
        '<mujoco><compiler angle="radian"/><worldbody><body name="a"><joint name="ja" axis="0 1 0"/>'
        '<inertial pos="0.2 0 0" mass="1" diaginertia="0.01 0.02 0.02"/><body name="b" pos="0.4 0 0">'
        '<joint name="jb" axis="0 1 0" ref="0.3"/><inertial pos="0.1 0 0" mass="2" diaginertia="0.01 0.02 0.02"/>'
        "</body></body></worldbody>{}</mujoco>"
    )
    (tmp_path / "free.xml").write_text(arm.format(""))
    (tmp_path / "bound.xml").write_text(
        arm.format('<equality><joint joint1="jb" joint2="ja" polycoef="0.1 0.5 -0.4 0.2 0.1"/></equality>')
    )
    free, bound = (di.Mechanism.from_mjcf(tmp_path / name).with_terms(()) for name in ("free.xml", "bound.xml"))
    assert (free.dof, bound.dof) == (2, 1)
    p = np.polynomial.Polynomial([0.1, 0.5, -0.4, 0.2, 0.1])
    motion = swing()
    x, v, a = motion.q[:, 0], motion.v[:, 0], motion.a[:, 0]
    follower = (0.3 + p(x), p.deriv()(x) * v, p.deriv()(x) * a + p.deriv(2)(x) * v**2)
    whole = di.Motion(motion.t, *(np.column_stack(pair) for pair in zip((x, v, a), follower, strict=True)))
    tau = di.inverse_dynamics(free, whole)
    expected = tau[:, 0] + p.deriv()(x) * tau[:, 1]
    np.testing.assert_allclose(di.inverse_dynamics(bound, motion)[:, 0], expected, atol=1e-10)
    one = bound.compiled("inverse_dynamics")  # the polynomial is an expression like everything else
    np.testing.assert_allclose(one(motion.q[7], motion.v[7], motion.a[7]), expected[7:8], atol=1e-10)
