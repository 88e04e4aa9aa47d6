"""The CFT-transposer robot: rail, rotating base and pantograph with four motors, as data and in closed form.

Source: [Rodriguez2002]. Numbers in brackets are the report's equations. q = [q1, q2, q4, q5], theta as in Table 4; misprints
are corrected where they stand, and listed in docs/references.md.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.checks import numbers
from dynident.control import PID, OpenLoop
from dynident.drive import Drive, Encoder, Motor, Transmission
from dynident.errors import DynidentError
from dynident.friction import Friction, Tanh, Viscous
from dynident.graph.expression import Node
from dynident.mechanics import Motion
from dynident.mechanics.equations import Equations
from dynident.mechanism import Actuator, Body, Coupling, Joint, Loop, Mechanism, Placement
from dynident.mechanism.elements import rotation_exp
from dynident.simulate import VirtualRobot
from dynident_lab.fmu import Block
from dynident_papers.robots.cft.block import OUTSIDE, SATURATED, BlockRun
from dynident_papers.robots.cft.cartesian import *
from dynident_papers.robots.cft.closed_forms import *
from dynident_papers.robots.cft.closed_forms import _theta
from dynident_papers.robots.cft.data import *
from dynident_papers.robots.cft.theta import TableFour, nearest, table_four
from dynident_papers.robots.cft.verdict import *
from dynident_papers.robots.shared import columns, servo_gains

__all__ = [
    "ASSUMPTIONS", "CARTESIAN", "ENCODER_FACTORS", "JOINTS", "LIMITS", "LIMITS_DSPACE", "THETA", "THETA_NAMES", "THETA_UNITS",
    "BlockRun", "CartesianDynamics", "Definiteness", "FrictionVerdict", "TableFour", "block", "carriage", "cartesian_dynamics",
    "cartesian_force", "cartesian_from_joint", "cartesian_jacobian", "cartesian_model", "cartesian_reference",
    "coriolis_matrix", "definiteness", "encoder_position", "excitation", "force_from_torque", "force_from_voltage",
    "forward_dynamics", "friction", "friction_bound", "friction_report", "gravity", "inertias_from_theta", "inverse_dynamics",
    "joint_from_cartesian", "joint_motion", "machine", "mass_matrix", "measured_references", "mechanism", "motor_gains",
    "nearest", "references_from_cartesian", "regressor", "table_four", "tool_position",
    "torque_from_force", "voltage_block", "voltage_from_force", "voltage_input",
]  # fmt: skip


BASE = "base"

# Rows of Table 2 as modified Denavit-Hartenberg: (link, antecedent, alpha, a, theta, d) with a and alpha of the row before.
_HALF = 0.5 * np.pi


def modified_dh(alpha: float, a: float, theta: float, d: float) -> Placement:
    """Return the transform (2): Rx(alpha) Tx(a) Rz(theta) Tz(d)."""
    x, z = np.eye(3)[0], np.eye(3)[2]
    return Placement(rotation_exp(alpha * x), a * x) @ Placement(rotation_exp(theta * z), d * z)


def carriage(q: ArrayLike) -> Array:
    """Return the forward position of the carriage, q3 = d20' + L4 (sin q4 + sin(q4 + q5)) [Rodriguez2002, eq. 56]."""
    _, _, q4, q5 = columns(q, 4, "q").T
    return np.asarray(D20 + L4 * (np.sin(q4) + np.sin(q4 + q5)))


def inertias_from_theta(theta: ArrayLike = THETA) -> dict[str, Array]:
    """Return inertial parameters of the links that make the complete chain equal to [Rodriguez2002, Appendix B]."""
    t = np.concatenate([[0.0], _theta(theta, 12)[:12]])  # so that t[k] is theta_k
    phi = {f"link_{i}": np.zeros(10) for i in range(1, 9)}
    phi["link_2"][[0, 1, 2, 9]] = t[1], t[2], t[3], t[4]
    phi["link_4"][[1, 2]] = t[5], t[6]
    phi["link_5"][[1, 2]] = t[9], t[10]
    phi["link_6"][[0, 1, 2]] = t[11], t[7], t[8]
    phi["link_7"][0] = t[12]
    return phi


def mechanism(theta: ArrayLike | None = THETA, terms: tuple[str, ...] = ()) -> Mechanism:
    """Return the complete chain of Table 2 with coordinates q1, q2, q4, q5."""
    phi = inertias_from_theta(theta) if theta is not None else {f"link_{i}": np.zeros(10) for i in range(1, 9)}
    bodies = [Body(BASE)]
    joints: list[Joint] = []
    couplings: list[Coupling] = []

    def add(name: str, kind: str, parent: str, child: str, placement: Placement, axis: int = 2) -> None:
        bodies.append(Body(child, phi.get(child)))
        joints.append(Joint(name, kind, parent, child, placement, axis=np.eye(3)[axis]))

    add("q1", "prismatic", BASE, "link_1", modified_dh(-_HALF, 0.0, 0.0, 0.0))
    add("q2", "revolute", "link_1", "link_2", modified_dh(_HALF, 0.0, 0.0, L2))
    # Angles of the four massless links from the vertical, about x_2: -q4, q4, -(q4 + q5), q4 + q5, then 0.
    angles = ((-1.0, 0.0), (1.0, 0.0), (-1.0, -1.0), (1.0, 1.0), (0.0, 0.0))
    before, parent, shift = (0.0, 0.0), "link_2", 0.0
    for i, angle in enumerate(angles, 1):
        add(f"slide_{i}", "revolute", parent, f"slider_{i}", Placement(translation=np.array([0.0, 0.0, shift])), axis=0)
        ratios = {"q4": angle[0] - before[0], "q5": angle[1] - before[1]}
        couplings.append(Coupling(f"slide_{i}", {name: ratio for name, ratio in ratios.items() if ratio}))
        before, parent, shift = angle, f"slider_{i}", 0.5 * L4 * (1.0 if i % 2 else -1.0)
    ahead = Placement(translation=np.array([0.0, D20, 0.0]))
    add("carriage", "fixed", parent, "link_3", ahead @ modified_dh(-_HALF, 0.0, -_HALF, 0.0))
    add("q4", "revolute", "link_3", "link_4", modified_dh(-_HALF, 0.0, 0.0, 0.0))
    add("q5", "revolute", "link_4", "link_5", modified_dh(0.0, L4, 0.0, 0.0))
    add("q6", "revolute", "link_5", "link_6", modified_dh(0.0, L5, 0.0, D6))
    add("q7", "revolute", "link_6", "link_7", modified_dh(0.0, L6, 0.0, -D6))
    add("q8", "fixed", "link_7", "link_8", modified_dh(0.0, L7, _HALF, 0.0))
    add("q9", "fixed", "link_8", "tool", modified_dh(0.0, L8, 0.0, 0.0))
    couplings += [Coupling("q6", {"q5": -1.0}), Coupling("q7", {"q4": -1.0}, np.pi)]
    return Mechanism(
        "CFT-transposer",
        tuple(bodies),
        tuple(joints),
        couplings=tuple(couplings),
        terms=terms,
        gravity=np.array([0.0, 0.0, -GRAVITY]),
        source="[Rodriguez2002], Tables 1, 2 and 4",
    )


STEP = 2.5e-4  # s


def nuts(theta: ArrayLike = THETA, added_inertia: float = 0.0) -> Mechanism:
    """Return the robot with its two nuts: xr carries the pantograph's foot, yr lifts link 5 straight up.

    The point L4 along link 5 stays above d20', so a vertical slide and one point closure replace the couplings (56); the four
    motors then act on rho = (-yr, xr, q2, q1), whose forces are F_xc1 ... F_xc4 of (66).
    """
    chain = mechanism(theta)
    foot = Placement(translation=np.array([0.0, D20, 0.0])) @ modified_dh(-0.5 * np.pi, 0.0, -0.5 * np.pi, 0.0)
    back = foot.rotation.T @ np.array([0.0, -1.0, 0.0])  # xr is counted against y of link 2 (62)
    up = Placement(translation=np.array([0.0, D20, 0.0]))
    joints: list[Joint] = []
    for joint in chain.joints:
        if joint.name.startswith("slide_"):
            continue
        if joint.name == "carriage":
            joints.append(Joint("xr", "prismatic", "link_2", "link_3", foot, axis=back))
            joints.append(Joint("yr", "prismatic", "link_2", "nut", up, axis=np.array([0.0, 0.0, 1.0])))
            # It stays at zero: gives the closure three unknowns for its three equations at any base rotation.
            joints.append(Joint("side", "prismatic", "nut", "pin", axis=np.array([1.0, 0.0, 0.0])))
        elif joint.name in ("q4", "q5") and added_inertia:
            joints.append(replace(joint, terms={"ia": added_inertia}))
        else:
            joints.append(joint)
    q = joint_from_cartesian(ASSUMPTIONS["pose"].value)[0]
    reach = float(-L4 * (np.sin(q[2] + q[3]) + np.sin(q[2])))
    height = float(L4 * (np.cos(q[2] + q[3]) + np.cos(q[2])))
    home = {**dict(zip(JOINTS, q.tolist(), strict=True)), "xr": reach, "yr": height, "q6": -q[3], "q7": np.pi - q[2]}
    driven = ({"yr": -1.0}, {"xr": 1.0}, {"q2": 1.0}, {"q1": 1.0})
    return replace(
        chain,
        bodies=(*(body for body in chain.bodies if not body.name.startswith("slider_")), Body("nut"), Body("pin")),
        joints=tuple(joints),
        loops=(Loop("nut", "point", "link_5", "pin", Placement(translation=np.array([L4, 0.0, 0.0]))),),
        couplings=tuple(c for c in chain.couplings if not c.joint.startswith("slide_")),
        actuators=tuple(Actuator(name, coupling) for name, coupling in zip(MOTORS, driven, strict=True)),
        independent=JOINTS,
        home=home,
    )


def friction_laws(theta: ArrayLike = THETA) -> dict[str, Friction]:
    """Return the friction (13) of every joint as a law."""
    values = numbers(theta, "theta")
    if values.shape != (32,):
        raise DynidentError(f"theta has shape {values.shape}; friction needs the 32 numbers of Table 4")
    law = Viscous() + Tanh() + Tanh()
    return {joint: Friction(law, values[12 + i :: 4][:5]) for i, joint in enumerate(JOINTS)}


def friction_bound(theta: ArrayLike = THETA) -> tuple[float, float, float]:
    """Return b_v, b_f1 and b_f2 of ||F(v)|| <= b_v ||v|| + b_f1 + b_f2 for all v (25)."""
    viscous, first, second = np.array([law.values[:3] for law in friction_laws(theta).values()]).T
    return float(np.abs(viscous).max()), float(np.linalg.norm(first)), float(np.linalg.norm(second))


def amplifiers(setup: str = "TUEdACS") -> tuple[Drive, ...]:
    """Return the drives of Table 6 with the encoders of Table 5."""
    if setup not in AMPLIFIER:
        raise DynidentError(f"setup is {setup!r}; the report describes {' and '.join(AMPLIFIER)}")
    motor = Motor(TORQUE_CONSTANT, inertia=ASSUMPTIONS["rotors"].value, current_limit=ASSUMPTIONS["current_limit"].value)
    counts = ENCODER_FACTORS / [UP, REACH, 1.0, 1.0]
    return tuple(
        Drive(name, motor, Transmission(float(1.0 / (gear * lead))), encoder=Encoder(float(count), "joint"))
        for name, gear, lead, count in zip(MOTORS, GEAR_RATIOS, CONVERSIONS, counts, strict=True)
    )


def voltage_input(voltage: ArrayLike, setup: str = "TUEdACS") -> OpenLoop:
    """Return the block's input: amplifier voltages of the motors of xc1 ... xc4."""
    if setup not in AMPLIFIER:
        raise DynidentError(f"setup is {setup!r}; the report describes {' and '.join(AMPLIFIER)}")
    return OpenLoop(current=AMPLIFIER[setup] * columns(voltage, 4, "voltage"))


def voltage_block(robot: VirtualRobot, setup: str = "TUEdACS") -> Block:
    """Return the report's block of a machine for `write_fmu`: amplifier voltages in, xc1 ... xc4 and status out."""

    def place(equations: Equations) -> list[Node]:
        at = dict(zip(equations.mechanism.tree.coordinates, equations.x, strict=True))
        return [HEIGHT - UP * at["yr"], REACH * at["xr"] + D20 + DS, at["q2"] + TURN, at["q1"] - DS]  # (48), (49)

    limits = LIMITS if setup == "TUEdACS" else LIMITS_DSPACE
    driven = replace(robot, controller=voltage_input(np.zeros(4), setup))
    return Block(driven, CARTESIAN, place, AMPLIFIER[setup], limits)


def cartesian_model() -> Mechanism:
    """Return the twelve-parameter model as a regressor in Cartesian coordinates, used by the report to design excitations."""

    def rows(xc: Array, vc: Array, ac: Array) -> Array:
        return regressor(*joint_motion(xc, vc, ac))

    names = [f"theta_{i}" for i in range(1, 13)]
    return Mechanism.from_regressor(names, rows, CARTESIAN, "CFT-transposer", THETA_UNITS[:12], THETA[:12])


def cartesian_reference(t: ArrayLike, xc: ArrayLike, vc: ArrayLike, ac: ArrayLike) -> Motion:
    """Return a Cartesian motion as a reference of the machine's coordinates."""
    return Motion(numbers(t, "t"), *joint_motion(xc, vc, ac))


def machine(
    controller: Any = "feedforward",
    *,
    setup: str = "TUEdACS",
    theta: ArrayLike = THETA,
    added_inertia: float = ASSUMPTIONS["added_inertia"].value,
    bandwidth: float = ASSUMPTIONS["bandwidth"].value,
    damping: float = ASSUMPTIONS["damping"].value,
    cycle: float = ASSUMPTIONS["cycle"].value,
    step: float = STEP,
) -> VirtualRobot:
    """Return the CFT-transposer with its amplifiers, gains, encoders and friction; assumptions are in `ASSUMPTIONS`.

    With ``controller=voltage_input(u)`` it is the report's simulation block. Table 4's mass matrix is indefinite on a third of
    the workspace (arm high, or reach below 0.1 m): there a run stops with an error, unless `added_inertia` is 0.2.
    """
    robot, drives, laws = nuts(theta, added_inertia), amplifiers(setup), friction_laws(theta)
    if isinstance(controller, str):
        if controller not in ("pd", "feedforward"):
            raise DynidentError(f"CFT: controller is {controller!r}; it is 'pd', 'feedforward', or a controller")
        kp, kd = servo_gains(robot, joint_from_cartesian(ASSUMPTIONS["pose"].value)[0], bandwidth, damping)
        controller = PID(kp, kd, cycle=cycle, feedforward=robot if controller == "feedforward" else None)
    return VirtualRobot(robot, drives, controller, friction=laws, step=step, name="CFT-transposer")


def block(
    t: ArrayLike,
    voltage: ArrayLike,
    xc: ArrayLike,
    vc: ArrayLike = (0.0, 0.0, 0.0, 0.0),
    *,
    setup: str = "TUEdACS",
    theta: ArrayLike = THETA,
    added_inertia: float = ASSUMPTIONS["added_inertia"].value,
) -> BlockRun:
    """Run the report's simulation block (section 5): voltages in, Cartesian coordinates out."""
    time = np.atleast_1d(numbers(t, "t"))
    q, v, _ = joint_motion(xc, vc, np.zeros(4))
    still = Motion(time, np.tile(q, (time.size, 1)), np.zeros((time.size, 4)), np.zeros((time.size, 4)))
    robot = machine(voltage_input(voltage, setup), setup=setup, theta=theta, added_inertia=added_inertia)
    truth = robot.simulate(still, start={"q": q[0], "velocity": v[0]}).truth
    moved, rates = truth.motion.q, truth.motion.v
    where = cartesian_from_joint(moved)
    limits = LIMITS if setup == "TUEdACS" else LIMITS_DSPACE
    cut = np.any(np.abs(truth.current) >= 0.999 * ASSUMPTIONS["current_limit"].value, axis=1)
    status = SATURATED * cut + OUTSIDE * np.any((where < limits[:, 0]) | (where > limits[:, 1]), axis=1)
    speeds = np.einsum("nij,nj->ni", cartesian_jacobian(moved), rates)
    return BlockRun(truth.t, where, np.asarray(speeds), truth.current / AMPLIFIER[setup], status.astype(np.int64), limits)
