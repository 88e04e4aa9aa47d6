"""RePlaLink, a haptic planar five-bar with a third motor at the tool (IGM, RWTH Aachen).

Source: [Roldan2017, section 6.2 and appendix B.1]. Numbers in brackets are the thesis' equations, its misprints are in
docs/references.md. It prints no lengths: they are recovered from its base parameters, except the base distance, of
which these are independent.

    tau = K(q, v, a) Phi,   q = (alpha1, alpha4),   Phi = m1 ... m5, I1, I2, I3, I4, I6, I7, Fc1, Fc4, c1, c4      (6.44)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dynident.checks import choice
from dynident.control import Cascade
from dynident.drive import Drive, Encoder, Motor, Transmission
from dynident.friction import Coulomb, Viscous
from dynident.mechanics import Motion, frame_motion, jacobian
from dynident.mechanism import Actuator, Body, Coupling, Joint, Limits, Loop, Mechanism
from dynident.simulate import VirtualRobot
from dynident.simulate.robot import actuator_inertia
from dynident.trajectory import Quintic
from dynident_lab.tool_paths import along
from dynident_papers.robots.replalink.closed_forms import *
from dynident_papers.robots.replalink.data import *
from dynident_papers.robots.shared import PARAMETERS, at, parameter_values, planar_body, point, without_terms
from dynident_papers.trajectories.four_bar import FourBar

__all__ = [
    "ACCELERATION_LIMIT", "ASSEMBLY_MODES", "ASSUMPTIONS", "BASE_LEADERS", "BOX", "CONDITION_PATTERNSEARCH", "CUTOFF",
    "FUNDAMENTAL", "GEAR", "HARMONICS", "INITIAL_AMPLITUDES", "NOTES", "PARAMETER_NAMES", "POSITION_LIMITS", "RECOVERED",
    "SAMPLING", "STANDARD_NAMES", "START", "TABLE_6_4", "THEORETICAL", "THESIS_EQUATIONS", "TORQUE_CONSTANT", "TRUSTED",
    "VELOCITY_LIMIT", "WORKING_MODES", "Geometry", "Pose", "base_matrix", "body_jacobians", "dynamics_matrices",
    "forward_kinematics", "four_bar_motion", "fourier", "initial_motion", "inverse_dynamics", "inverse_kinematics", "machine",
    "mechanism", "regressor", "singularity", "thesis_system",
]  # fmt: skip


STEP = 2e-4  # s

STANDARD_NAMES: Mapping[str, str] = {
    **{"m1": "m_bar1", "m2": "m_bar2", "m3": "m_bar3", "m4": "m_bar4", "m5": "m_tool"},
    **{"I1": "Iz_alpha1", "I2": "Iz_alpha2", "I3": "Iz_alpha3", "I4": "Iz_alpha4", "I6": "ia_shaft1", "I7": "ia_shaft4"},
    **{"Fc1": "fc_shaft1", "Fc4": "fc_shaft4", "c1": "fv_shaft1", "c4": "fv_shaft4"},
}
"""Names of the thesis' parameters in ``mechanism(parameters="paper")``."""


def mechanism(
    parameters: str = "paper",
    values: Mapping[str, float] | None = None,
    assembly: str = "up",
    gravity: float = 0.0,
    geared: bool = False,
    geometry: Geometry = RECOVERED,
) -> Mechanism:
    """Return the robot, coordinates alpha1 and alpha4."""
    paper = choice("parameters", parameters, PARAMETERS) == "paper"
    phi = dict(zip(PARAMETER_NAMES, parameter_values(values, PARAMETER_NAMES, THEORETICAL), strict=True))
    angles = forward_kinematics([START], assembly, geometry).angles[0]
    build = _paper if paper else _full
    bodies, joints, couplings, home = build(phi, geometry, *(float(a) for a in angles))
    ratio, gain = (GEAR, TORQUE_CONSTANT) if geared else (1.0, None)
    ends = ("arm2", "arm3") if paper else ("bar2", "bar3")
    return Mechanism(
        "RePlaLink",
        tuple(bodies),
        tuple(joints),
        (Loop("C", "revolute", *ends, at(geometry.ac), at(geometry.bc)),),
        tuple(couplings),
        tuple(Actuator(f"motor{i}", {f"alpha{i}": 1.0}, ratio, gain=gain) for i in (1, 4)),
        terms=(),
        gravity=np.array([0.0, -gravity, 0.0]),
        independent=("alpha1", "alpha4"),
        home=home,
        source="[Roldan2017, section 6.2], geometry recovered",
    )


Parts = tuple[list[Body], list[Joint], list[Coupling], dict[str, float]]


def _limits(i: int) -> Limits:
    return Limits(*POSITION_LIMITS[0 if i == 1 else 1], velocity=VELOCITY_LIMIT)


def _paper(phi: Mapping[str, float], g: Geometry, a1: float, a2: float, a3: float, a4: float) -> Parts:
    bodies, joints, couplings = [Body("base")], [], []
    home = {"alpha1": a1, "alpha2": a2, "alpha3": a3, "alpha4": a4}

    def follow(name: str, parent: str, body: Body, x: float, angle: int, ratio: float) -> None:
        bodies.append(body)
        joints.append(Joint(name, "revolute", parent, body.name, at(x)))
        couplings.append(Coupling(name, {f"alpha{angle}": ratio}))
        home[name] = ratio * home[f"alpha{angle}"]

    legs = ((1, 2, 0.0, g.a0a, g.com1, g.com2), (4, 3, g.base, g.b0b, g.com4, g.com3))
    for near, far, x, length, com, com_far in legs:
        bodies.append(Body(f"arm{near}"))
        terms = {"Iz": phi[f"I{near}"]}
        joints.append(Joint(f"alpha{near}", "revolute", "base", f"arm{near}", at(x), limits=_limits(near), terms=terms))
        follow(f"back{near}", f"arm{near}", point(f"bar{near}", phi[f"m{near}"]), com, near, -1.0)
        # A non-rotating frame at the elbow makes the next angle absolute, as in the thesis.
        follow(f"level{near}", f"arm{near}", Body(f"elbow{near}"), length, near, -1.0)
        bodies.append(Body(f"arm{far}"))
        joints.append(Joint(f"alpha{far}", "revolute", f"elbow{near}", f"arm{far}", terms={"Iz": phi[f"I{far}"]}))
        follow(f"back{far}", f"arm{far}", point(f"bar{far}", phi[f"m{far}"]), com_far, far, -1.0)
        # The motor's shaft turns with the bar; a separate joint distinguishes I6 and I7 from I1 and I4.
        bodies.append(Body(f"rotor{near}"))
        terms = {"ia": phi[f"I{6 if near == 1 else 7}"], "fc": phi[f"Fc{near}"], "fv": phi[f"c{near}"]}
        joints.append(Joint(f"shaft{near}", "revolute", "base", f"rotor{near}", at(x), terms=terms))
        couplings.append(Coupling(f"shaft{near}", {f"alpha{near}": 1.0}))
        home[f"shaft{near}"] = home[f"alpha{near}"]
    follow("back5", "arm2", point("tool", phi["m5"]), g.ad, 2, -1.0)
    return bodies, joints, couplings, home


def _full(phi: Mapping[str, float], g: Geometry, a1: float, a2: float, a3: float, a4: float) -> Parts:
    bodies = [Body("base")]
    joints: list[Joint] = []
    legs = ((1, 2, 0.0, g.a0a, g.com1, g.com2), (4, 3, g.base, g.b0b, g.com4, g.com3))
    for near, far, x, length, com, com_far in legs:
        bodies += [
            planar_body(f"bar{near}", phi[f"m{near}"], (com, 0.0), phi[f"I{near}"]),
            planar_body(f"bar{far}", phi[f"m{far}"], (com_far, 0.0), phi[f"I{far}"]),
        ]
        terms = {"ia": phi[f"I{6 if near == 1 else 7}"], "fc": phi[f"Fc{near}"], "fv": phi[f"c{near}"]}
        joints += [
            Joint(f"alpha{near}", "revolute", "base", f"bar{near}", at(x), limits=_limits(near), terms=terms),
            Joint(f"elbow{near}", "revolute", f"bar{near}", f"bar{far}", at(length)),
        ]
    bodies.append(point("tool", phi["m5"]))
    # The third motor is at D on a separate joint, so that its mass stays a parameter; it keeps its direction.
    joints.append(Joint("handle", "revolute", "bar2", "tool", at(g.ad)))
    home = {"alpha1": a1, "alpha4": a4, "elbow1": a2 - a1, "elbow4": a3 - a4, "handle": -a2}
    return bodies, joints, [Coupling("handle", {"alpha1": -1.0, "elbow1": -1.0})], home


def machine(
    bandwidth: float = ASSUMPTIONS["bandwidth"].value,
    cycle: float = CONTROL_CYCLE,
    *,
    values: Mapping[str, float] | None = None,
    velocity_feedforward: float = ASSUMPTIONS["velocity_feedforward"].value,
    gravity: float = 0.0,
    geometry: Geometry = RECOVERED,
    controller: Any = None,
    step: float = STEP,
) -> VirtualRobot:
    """Return RePlaLink on its geared servo drives with cascaded loops; unprinted values are in `ASSUMPTIONS`.

    Rotors (I6, I7) and friction (Table 6.4) are in the drives only.
    """
    friction = {name: TABLE_6_4[name][0] for name in ("Fc1", "Fc4", "c1", "c4")}
    phi = dict(
        zip(PARAMETER_NAMES, parameter_values({**friction, **(values or {})}, PARAMETER_NAMES, THEORETICAL), strict=True)
    )
    whole = mechanism("full", phi, gravity=gravity, geometry=geometry)
    drives = []
    for i, rotor in ((1, "I6"), (4, "I7")):
        motor = Motor(TORQUE_CONSTANT, inertia=phi[rotor] / GEAR**2, current_limit=ASSUMPTIONS["current_limit"].value)
        law = (Coulomb() + Viscous()).using(fc=phi[f"Fc{i}"] / GEAR, fv=phi[f"c{i}"] / GEAR**2)
        encoder = Encoder(ASSUMPTIONS["encoder"].value, filter=ASSUMPTIONS["encoder_filter"].value)
        drives.append(Drive(f"motor{i}", motor, Transmission.gear(GEAR), law, encoder))
    fast = 2.0 * np.pi * bandwidth / ASSUMPTIONS["bandwidth"].value * ASSUMPTIONS["velocity_bandwidth"].value
    gain = fast * actuator_inertia(whole, START) / (GEAR**2 * TORQUE_CONSTANT)
    loops = controller or Cascade(
        2.0 * np.pi * bandwidth,
        gain,
        fast * ASSUMPTIONS["velocity_reset"].value * gain,
        position_cycle=cycle,
        velocity_cycle=cycle,
        velocity_feedforward=velocity_feedforward,
    )
    return VirtualRobot(without_terms(whole, ("alpha1", "alpha4")), tuple(drives), loops, step=step, name="RePlaLink")


def four_bar_motion(
    speed: float = ASSUMPTIONS["four_bar_speed"].value, turns: float = 3.0, rate: float = 500.0, ground_angle: float = 0.0
) -> Motion:
    """Return the validation of 6.2.7: the tool moves as a point on the coupler of a four-bar linkage, from rest to rest."""
    crank, coupler, rocker, ground = ASSUMPTIONS["four_bar"].value
    tool = forward_kinematics([START]).D[0]
    far = ground * np.array([np.cos(ground_angle), np.sin(ground_angle)])
    at_zero = FourBar(crank, coupler, rocker, [[0.0, 0.0], far], (0.5 * coupler, 0.1))(0.0)[0][0, :2]
    ground_ends = tool - at_zero + [[0.0, 0.0], far]
    path = FourBar(crank, coupler, rocker, ground_ends, (0.5 * coupler, 0.1), turn=2.0 * np.pi * turns)
    tip = along([path], speed, 8.0 * speed, lambda way, top, push: Quintic(way, 1.875 * way / top)).sample(rate)
    angles = inverse_kinematics(tip.x[:, :2])[:, WORKING_MODES.index("-+")]
    q = np.asarray(START) + np.unwrap(angles - START, axis=0)
    robot, zero = mechanism("full"), np.zeros_like(q)
    J = jacobian(robot, q, "tool", "world")[:, :2]
    v = np.linalg.solve(J, tip.v[:, :2, None])[:, :, 0]
    bias = frame_motion(robot, Motion(tip.t, q, v, zero), "tool")[1][:, :2]  # the tool keeps its direction: world axes
    return Motion(tip.t, q, v, np.linalg.solve(J, (tip.a[:, :2] - bias)[:, :, None])[:, :, 0])
