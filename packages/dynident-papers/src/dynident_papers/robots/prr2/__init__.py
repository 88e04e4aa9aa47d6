"""The 2-PRR pick-and-place mechanism ("scissor"): two sliders on one rail, three bars, a platform that only translates.

Source: [Roldan2017, section 6.1 and appendix B.3]. Numbers in brackets are the thesis' equations, its misprints are in
docs/references.md.

rho_1 runs to the right from the left end of the rail, rho_2 to the left from its right end, and all bars make the same angle
alpha with the rail (appendix B.3 is lost; its two surviving scalars, B.63 and B.64, fit this convention):

    u = (a - d - rho_1 - rho_2)/2 = L cos(alpha),    x = rho_1 + u + d/2,    y = -L sin(alpha)
    A = 1/(2 tan alpha),   B = 1/(2 L sin alpha),    alpha_dot = B (v_1 + v_2),   y_dot = -A (v_1 + v_2)
    F = K(rho, v, a) Phi,  Phi = m1 ... m6, I3, I4, I5, Fc1, Fc2, c1, c2                                 (6.15)

m1, m2 are the sliders with the reflected inertia of their drives, 3 and 4 the parallel bars on slider 1, 5 the bar on
slider 2, 6 the platform; I are moments about the middle of each bar, the centre of mass assumed by the thesis.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dynident.checks import choice
from dynident.control import Cascade
from dynident.drive import Drive, Encoder, Motor, Transmission
from dynident.friction import Coulomb, Viscous
from dynident.mechanism import Actuator, Body, Coupling, Joint, Limits, Loop, Mechanism
from dynident.simulate import VirtualRobot
from dynident_papers.robots.prr2.closed_forms import *
from dynident_papers.robots.prr2.data import *
from dynident_papers.robots.shared import PARAMETERS, at, parameter_values, planar_body, point, without_terms

__all__ = [
    "ACCELERATION_LIMIT", "ASSEMBLY_MODES", "ASSUMPTIONS", "BAR", "BASE_LEADERS", "CONDITION_FMINCON", "CONDITION_INITIAL",
    "CONDITION_PATTERNSEARCH", "CUTOFF", "FUNDAMENTAL", "GEAR", "GRAVITY", "HARMONICS", "INITIAL_AMPLITUDES", "MOTOR_RATIO",
    "NOTES", "PARAMETER_NAMES", "PITCH", "POSITION_LIMITS", "RAIL", "SAMPLING", "SPACING", "STANDARD_NAMES", "START",
    "TABLE_6_2", "THEORETICAL", "THESIS_EQUATIONS", "TORQUE_CONSTANT", "TRUSTED", "VALIDATION", "VELOCITY_LIMIT",
    "WORKING_MODES", "WORKSPACE", "bar_angle", "base_matrix", "body_jacobians", "dynamics_matrices", "forward_kinematics",
    "fourier", "initial_motion", "inverse_dynamics", "inverse_kinematics", "machine", "mechanism", "regressor", "singularity",
    "thesis_system",
]  # fmt: skip


STEP = 2.5e-4  # s

STANDARD_NAMES: Mapping[str, str] = {
    **{"m1": "m_slider1", "m2": "m_slider2", "m3": "m_bar3", "m4": "m_bar4", "m5": "m_bar5", "m6": "m_platform"},
    **{"I3": "Iz_alpha3", "I4": "Iz_alpha4", "I5": "Iz_alpha5"},
    **{"Fc1": "fc_rho1", "Fc2": "fc_rho2", "c1": "fv_rho1", "c2": "fv_rho2"},
}
"""Names of the thesis' parameters in ``mechanism(parameters="paper")``."""


def mechanism(
    parameters: str = "paper", values: Mapping[str, float] | None = None, assembly: str = "below", geared: bool = False
) -> Mechanism:
    """Return the robot, coordinates rho1 and rho2, gravity along -y.

    The position of bar 4 on slider 1 is not printed; it is assumed at the distance d, over the platform's second joint. Bar 4
    moves like bar 3 at any position.
    """
    paper = choice("parameters", parameters, PARAMETERS) == "paper"
    choice("assembly", assembly, ASSEMBLY_MODES)
    phi = dict(zip(PARAMETER_NAMES, parameter_values(values, PARAMETER_NAMES, THEORETICAL), strict=True))
    alpha = float(bar_angle([START], assembly)[0])
    bodies = [Body("rail"), point("slider1", phi["m1"]), point("slider2", phi["m2"])]
    joints = [_slider(1, phi), _slider(2, phi)]
    couplings = []
    # Angles are alpha of the thesis: bars 3 and 4 point to (cos, -sin), bar 5 to (-cos, -sin).
    bars = ((3, "slider1", at(0.0), -1.0), (4, "slider1", at(SPACING), -1.0), (5, "slider2", at(0.0, turn=np.pi), 1.0))
    for i, slider, place, sense in bars:
        axis = np.array([0.0, 0.0, sense])
        mass, inertia = phi[f"m{i}"], phi[f"I{i}"]
        if paper:
            bodies += [Body(f"rod{i}"), point(f"bar{i}", mass)]
            joints += [
                Joint(f"alpha{i}", "revolute", slider, f"rod{i}", place, axis, terms={"Iz": inertia}),
                Joint(f"back{i}", "revolute", f"rod{i}", f"bar{i}", at(0.5 * BAR), axis),
            ]
            couplings.append(Coupling(f"back{i}", {f"alpha{i}": -1.0}))
        else:
            bodies.append(planar_body(f"bar{i}", mass, (0.5 * BAR, 0.0), inertia))
            joints.append(Joint(f"alpha{i}", "revolute", slider, f"bar{i}", place, axis))
    end = {i: f"rod{i}" if paper else f"bar{i}" for i in (3, 4, 5)}
    bodies.append(point("platform", phi["m6"]))
    # The platform's frame is at its centre of mass, half way between its two joints.
    bodies.append(Body("foot"))
    joints += [
        Joint("tilt", "revolute", end[3], "foot", at(BAR)),
        Joint("platform", "fixed", "foot", "platform", at(0.5 * SPACING)),
    ]
    loops = [Loop(f"end{i}", "revolute", end[i], "foot", at(BAR), at(SPACING)) for i in (4, 5)]
    ratio, gain = (MOTOR_RATIO, TORQUE_CONSTANT) if geared else (1.0, None)
    return Mechanism(
        "2-PRR",
        tuple(bodies),
        tuple(joints),
        tuple(loops),
        tuple(couplings),
        tuple(Actuator(f"motor{j}", {f"rho{j}": 1.0}, ratio, gain=gain) for j in (1, 2)),
        terms=(),
        gravity=np.array([0.0, -GRAVITY, 0.0]),
        independent=("rho1", "rho2"),
        home={"rho1": START[0], "rho2": START[1], "alpha3": alpha, "alpha4": alpha, "alpha5": alpha, "tilt": alpha}
        | ({f"back{i}": -alpha for i in (3, 4, 5)} if paper else {}),
        source="[Roldan2017, section 6.1]",
    )


def _slider(i: int, phi: Mapping[str, float]) -> Joint:
    place, direction = (at(0.0), 1.0) if i == 1 else (at(RAIL), -1.0)
    limits = Limits(*POSITION_LIMITS[i - 1], velocity=VELOCITY_LIMIT)
    terms = {"fc": phi[f"Fc{i}"], "fv": phi[f"c{i}"]}
    return Joint(
        f"rho{i}", "prismatic", "rail", f"slider{i}", place, np.array([direction, 0.0, 0.0]), limits=limits, terms=terms
    )


def machine(
    position_gain: float = ASSUMPTIONS["position_gain"].value,
    position_cycle: float = POSITION_CYCLE,
    *,
    values: Mapping[str, float] | None = None,
    velocity_feedforward: float = ASSUMPTIONS["velocity_feedforward"].value,
    controller: Any = None,
    step: float = STEP,
) -> VirtualRobot:
    """Return the scissor on its belt drives with cascaded loops; unprinted values are in `ASSUMPTIONS`.

    Sliders (m1 and m2, which hold the reflected inertia of the drives) and friction (Table 6.2) are in the drives only.
    """
    friction = {name: TABLE_6_2[name][0] for name in ("Fc1", "Fc2", "c1", "c2")}
    phi = dict(
        zip(PARAMETER_NAMES, parameter_values({**friction, **(values or {})}, PARAMETER_NAMES, THEORETICAL), strict=True)
    )
    robot = without_terms(mechanism("full", {**phi, "m1": 0.0, "m2": 0.0}), ("rho1", "rho2"))
    limit = ASSUMPTIONS["current_limit"].value
    drives = [
        Drive(
            f"motor{i}",
            Motor(TORQUE_CONSTANT, inertia=phi[f"m{i}"] / MOTOR_RATIO**2, current_limit=limit),
            Transmission.belt(PITCH, GEAR),
            (Coulomb() + Viscous()).using(fc=phi[f"Fc{i}"] / MOTOR_RATIO, fv=phi[f"c{i}"] / MOTOR_RATIO**2),
            Encoder(),
        )
        for i in (1, 2)
    ]
    loops = controller or Cascade(
        position_gain,
        ASSUMPTIONS["velocity_gain"].value,
        ASSUMPTIONS["velocity_integral"].value,
        position_cycle=position_cycle,
        velocity_cycle=ASSUMPTIONS["velocity_cycle"].value,
        velocity_feedforward=velocity_feedforward,
    )
    return VirtualRobot(robot, tuple(drives), loops, step=step, name="2-PRR")
