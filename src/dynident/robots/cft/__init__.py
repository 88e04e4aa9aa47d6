"""The CFT-transposer robot: rail, rotating base and pantograph with four motors, as data and in closed form.

Source: [Rodriguez2002]. Numbers in brackets are the report's equations. q = [q1, q2, q4, q5], theta as in Table 4; misprints
are corrected where they stand, and listed in docs/references.md.
"""

from dynident.robots.cft.chain import carriage, inertias_from_theta, mechanism
from dynident.robots.cft.data import (
    CARTESIAN,
    ENCODER_FACTORS,
    JOINTS,
    LIMITS,
    LIMITS_DSPACE,
    THETA,
    THETA_NAMES,
    THETA_UNITS,
    excitation,
)
from dynident.robots.cft.definiteness import Definiteness, definiteness
from dynident.robots.cft.dynamics import (
    FrictionVerdict,
    coriolis_matrix,
    forward_dynamics,
    friction,
    friction_report,
    gravity,
    inverse_dynamics,
    mass_matrix,
    regressor,
)
from dynident.robots.cft.kinematics import (
    cartesian_force,
    cartesian_from_joint,
    cartesian_jacobian,
    encoder_position,
    force_from_torque,
    force_from_voltage,
    joint_from_cartesian,
    joint_motion,
    motor_gains,
    references_from_cartesian,
    tool_position,
    torque_from_force,
    voltage_from_force,
)
from dynident.robots.cft.machine import ASSUMPTIONS, cartesian_reference, machine, voltage_input

__all__ = [
    "ASSUMPTIONS",
    "CARTESIAN",
    "ENCODER_FACTORS",
    "JOINTS",
    "LIMITS",
    "LIMITS_DSPACE",
    "THETA",
    "THETA_NAMES",
    "THETA_UNITS",
    "Definiteness",
    "FrictionVerdict",
    "carriage",
    "cartesian_force",
    "cartesian_from_joint",
    "cartesian_jacobian",
    "cartesian_reference",
    "coriolis_matrix",
    "definiteness",
    "encoder_position",
    "excitation",
    "force_from_torque",
    "force_from_voltage",
    "forward_dynamics",
    "friction",
    "friction_report",
    "gravity",
    "inertias_from_theta",
    "inverse_dynamics",
    "joint_from_cartesian",
    "joint_motion",
    "machine",
    "mass_matrix",
    "mechanism",
    "motor_gains",
    "references_from_cartesian",
    "regressor",
    "tool_position",
    "torque_from_force",
    "voltage_from_force",
    "voltage_input",
]
