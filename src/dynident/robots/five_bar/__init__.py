"""The planar 5R manipulator (five-bar) of [Roldan2017, section 4.1 and appendix B.1].

Two driven bars A0 A and B0 B, two distal bars A P and B P, all angles absolute: alpha1, alpha4 driven, alpha2, alpha3 passive.
Numbers in brackets are the thesis' equations, its misprints are in docs/references.md:

    P = A0 + l1 e(alpha1) + l2 e(alpha2) = B0 + l4 e(alpha4) + l3 e(alpha3),        e(a) = (cos a, sin a)

A working mode is the pair of signs of sin(alpha2 - alpha1) and sin(alpha3 - alpha4); the assembly mode the sign of
sin(alpha3 - alpha2), +1 when P lies to the left of the way from A to B. Masses are NOT printed; see `mechanism`.
Arrays are batched: points (N, 2), driven angles (N, 2) as alpha1, alpha4, all angles (N, 4) as alpha1 to alpha4.
"""

from dynident.robots.five_bar.comparison import Compared, compare
from dynident.robots.five_bar.dynamics import body_jacobians, inverse_dynamics
from dynident.robots.five_bar.geometry import Geometry, Singularities
from dynident.robots.five_bar.kinematics import forward_kinematics, inverse_kinematics, jacobians, passive_rates, singularities
from dynident.robots.five_bar.machine import ASSUMPTIONS, NOTES, circle, machine, x_move
from dynident.robots.five_bar.model import (
    GEAR,
    MOTOR_BETA,
    MOTOR_COULOMB,
    MOTOR_INERTIA,
    MOTOR_VISCOUS,
    POSITION_GAINS,
    TORQUE_CONSTANT,
    VELOCITY_PI,
    mechanism,
)

__all__ = [
    "ASSUMPTIONS",
    "GEAR",
    "MOTOR_BETA",
    "MOTOR_COULOMB",
    "MOTOR_INERTIA",
    "MOTOR_VISCOUS",
    "NOTES",
    "POSITION_GAINS",
    "TORQUE_CONSTANT",
    "VELOCITY_PI",
    "Compared",
    "Geometry",
    "Singularities",
    "body_jacobians",
    "circle",
    "compare",
    "forward_kinematics",
    "inverse_dynamics",
    "inverse_kinematics",
    "jacobians",
    "machine",
    "mechanism",
    "passive_rates",
    "singularities",
    "x_move",
]
