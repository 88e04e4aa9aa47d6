"""The 2-PRR mechanism as bodies, joints and loops."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.mechanism import Actuator, Body, Coupling, Joint, Limits, Loop, Mechanism, Placement, from_com, rotation_exp
from dynident.robots.prr2.data import (
    ASSEMBLY_MODES,
    BAR,
    GRAVITY,
    MOTOR_RATIO,
    PARAMETER_NAMES,
    POSITION_LIMITS,
    RAIL,
    SPACING,
    START,
    THEORETICAL,
    TORQUE_CONSTANT,
    VELOCITY_LIMIT,
)
from dynident.robots.prr2.inputs import choice, parameter_values
from dynident.robots.prr2.kinematics import bar_angle

Array = NDArray[np.float64]

PARAMETERS = ("paper", "full")

STANDARD_NAMES: Mapping[str, str] = {
    **{"m1": "m_slider1", "m2": "m_slider2", "m3": "m_bar3", "m4": "m_bar4", "m5": "m_bar5", "m6": "m_platform"},
    **{"I3": "ia_alpha3", "I4": "ia_alpha4", "I5": "ia_alpha5"},
    **{"Fc1": "fc_rho1", "Fc2": "fc_rho2", "c1": "fv_rho1", "c2": "fv_rho2"},
}
"""The thesis' parameters among those of ``mechanism(parameters="paper")``."""


def at(x: float, y: float = 0.0, turn: float = 0.0) -> Placement:
    """Return a placement in the plane."""
    return Placement(rotation_exp([0.0, 0.0, turn]), np.array([x, y, 0.0]))


def planar_body(name: str, mass: float, com: ArrayLike, inertia: float) -> Body:
    """Return a body of which only the moment about z through the centre of mass is known."""
    x, y = np.asarray(com, dtype=np.float64)
    return Body(name, from_com(mass, [x, y, 0.0], inertia * np.eye(3)))


def point(name: str, mass: float) -> Body:
    """Return a point mass at the link frame's origin."""
    return Body(name, np.array([mass, *np.zeros(9)]))


def mechanism(
    parameters: str = "paper", values: Mapping[str, float] | None = None, assembly: str = "below", geared: bool = False
) -> Mechanism:
    """Return the robot, coordinates rho1 and rho2, gravity along -y.

    The thesis takes centres of mass as known, so a bar has two parameters, mass and moment about its middle, where a free
    body has ten. ``"paper"`` describes just that: the mass is a point carried at the middle without turning (a joint there
    turns back), the moment belongs to the turning of the bar. Then `dynident.base_parameters` has the thesis' 13 parameters
    and no others that act (rank 8; see `STANDARD_NAMES`). ``"full"`` has free bodies; its forces are the same.

    Where bar 4 hangs on slider 1 is not said; it is put at the distance d, over the platform's second joint. It moves like
    bar 3 wherever it is.

    Parameters
    ----------
    parameters : {"paper", "full"}
        Which parameters the robot has.
    values : mapping of str to float, optional
        Numbers of `PARAMETER_NAMES` that differ from `THEORETICAL` (Table 6.2; friction 0).
    assembly : {"below", "above"}
        Assembly mode of the home position.
    geared : bool
        True for motors on their own side of gear and belt, as logged (currents with K_t); otherwise efforts are slider forces.

    Returns
    -------
    Mechanism
        The robot.
    """
    paper = choice(parameters, PARAMETERS, "parameters") == 0
    choice(assembly, ASSEMBLY_MODES, "assembly")
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
                Joint(f"alpha{i}", "revolute", slider, f"rod{i}", place, axis, terms={"ia": inertia}),
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
