"""The five-bar as a `Mechanism`, with the drives of sec. 4.1 and Table 4.1."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dynident.errors import DynidentError
from dynident.mechanism import Actuator, Body, Joint, Loop, Mechanism, Placement, from_com
from dynident.robots.five_bar.geometry import Geometry
from dynident.robots.five_bar.kinematics import inverse_kinematics

Array = NDArray[np.float64]

GEAR = 40.0  # Neugart PLE-160, sec. 4.1
MOTOR_INERTIA, MOTOR_VISCOUS, MOTOR_COULOMB, MOTOR_BETA = 13e-4, 1.7e-3, 0.478, 10.78
"""Table 4.1, at the motor: J_t [kg m^2], c [N m s/rad], F_c [N m], beta [s/rad] of F_c tanh(beta v)."""
TORQUE_CONSTANT = 1.43  # K_t [N m/A]
VELOCITY_PI = (0.14, 11.45)  # k_p [A s/rad], k_i [A/rad]
POSITION_GAINS = (3.54, 19.2)  # k_v of the X move and of the circles [1/s]


def mechanism(
    geometry: Geometry | None = None,
    masses: Sequence[float] = (1.8, 1.0, 1.0, 1.8),
    platform: float = 1.0,
    coordinates: str = "motors",
    start: Sequence[float] = (0.0, 0.9),
) -> Mechanism:
    """Return the five-bar with 40:1 gears, in a horizontal plane; the platform keeps its orientation (auxiliary bars).

    Joints are ``x`` and ``y`` of the platform, ``alpha1`` and ``alpha4`` (absolute), ``elbow2`` = alpha2 - alpha1 and
    ``elbow3`` = alpha3 - alpha4. Rotor inertia and friction of the motors are Table 4.1 times the square, or the first power,
    of the gear ratio.

    Parameters
    ----------
    geometry : Geometry, optional
        Lengths and working mode; the assembly mode follows from `start`.
    masses : sequence of float, (4,)
        Masses of bars 1 to 4, uniform rods [kg]. NOT printed in the thesis: these are round numbers for examples.
    platform : float
        Mass at P [kg]; not printed either.
    coordinates : {"motors", "platform"}
        What the robot's coordinates are: alpha1 and alpha4, or x and y.
    start : sequence of float, (2,)
        Home position of P [m].

    Returns
    -------
    Mechanism
        Two degrees of freedom, two motors ``motor1`` and ``motor4``.
    """
    choices = {"motors": ("alpha1", "alpha4"), "platform": ("x", "y")}
    if coordinates not in choices:
        raise DynidentError(f"five-bar: coordinates is {coordinates!r}; it is one of {', '.join(choices)}")
    if len(masses) != 4 or not all(np.isfinite(m) and m >= 0.0 for m in (*masses, platform)):
        raise DynidentError(
            f"five-bar: masses are {tuple(masses)} and {platform}; give four of the bars and that of the platform"
        )
    g = geometry or Geometry()
    a1, a2, a3, a4 = inverse_kinematics(start, g)[0]

    def bar(name: str, mass: float, length: float) -> Body:
        half = np.array([0.5 * length, 0.0, 0.0])
        return Body(name, from_com(mass, half, np.diag([0.0, 1.0, 1.0]) * mass * length**2 / 12.0))

    def at(x: float, y: float = 0.0) -> Placement:
        return Placement(np.eye(3), np.array([x, y, 0.0]))

    drive = {"ia": MOTOR_INERTIA * GEAR**2, "fv": MOTOR_VISCOUS * GEAR**2, "fc": MOTOR_COULOMB * GEAR}
    rest = {"fv": 0.0, "fc": 0.0}
    bodies = [Body("base"), Body("slide"), Body("platform", np.array([platform, *[0.0] * 9]))]
    bodies += [
        bar(f"bar{i + 1}", m, length) for i, (m, length) in enumerate(zip(masses, (g.l1, g.l2, g.l3, g.l4), strict=True))
    ]
    joints = (
        Joint("x", "prismatic", "base", "slide", axis=np.array([1.0, 0.0, 0.0])),
        Joint("y", "prismatic", "slide", "platform", axis=np.array([0.0, 1.0, 0.0])),
        Joint("alpha1", "revolute", "base", "bar1", at(*g.bases[0]), terms=drive),
        Joint("elbow2", "revolute", "bar1", "bar2", at(g.l1), terms=rest),
        Joint("alpha4", "revolute", "base", "bar4", at(*g.bases[1]), terms=drive),
        Joint("elbow3", "revolute", "bar4", "bar3", at(g.l4), terms=rest),
    )
    ends = (("P2", "bar2", g.l2), ("P3", "bar3", g.l3))
    loops = tuple(Loop(name, "revolute", body, "platform", at(length)) for name, body, length in ends)
    home = {"x": start[0], "y": start[1], "alpha1": a1, "elbow2": a2 - a1, "alpha4": a4, "elbow3": a3 - a4}
    return Mechanism(
        "five-bar",
        tuple(bodies),
        joints,
        loops,
        actuators=tuple(Actuator(f"motor{i}", {f"alpha{i}": 1.0}, ratio=GEAR, gain=TORQUE_CONSTANT) for i in (1, 4)),
        terms=(),
        gravity=np.zeros(3),
        independent=choices[coordinates],
        home=home,
        source="mechatronic analysis thesis, sec. 4.1",
    )
