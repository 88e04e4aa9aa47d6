"""DualV, a planar 4-RRR robot with three degrees of freedom and four direct drives (LIRMM).

Source: [Briot2015]. Numbers in brackets are the paper's equations, its misprints are in docs/references.md. With more
motors than degrees of freedom the torques are not determined by the motion: an unknown preload lies in the null space of
J_inv^T. Projected on the platform (case 1) or on three motors (case 2), it is gone.

Arrays are batched: platform poses (N, 3) as x, y, phi; joints (N, 4, 3) as leg, joint; torques (N, 4).
"""

from dynident.robots.dualv.data import (
    PAYLOAD_WEIGHED,
    RELATIVE_ERROR_NORM,
    TABLE_2,
    TABLE_3,
    TABLE_4,
    essential_table,
    paper_symbol,
)
from dynident.robots.dualv.dynamics import (
    COLUMNS,
    case_1,
    case_2,
    idle_torques,
    internal_stress,
    leg_regressor,
    partitions,
    platform_regressor,
    preload_direction,
    remove_internal_stress,
)
from dynident.robots.dualv.excitation import BOX, excitation, preload
from dynident.robots.dualv.geometry import WORKING_MODES, Geometry
from dynident.robots.dualv.kinematics import (
    Jacobians,
    actuator_jacobian,
    forward_kinematics,
    inverse_kinematics,
    jacobians,
    joint_motion,
    measured_radius,
    platform_motion,
)
from dynident.robots.dualv.machine import ASSUMPTIONS, NOTES, machine
from dynident.robots.dualv.model import mechanism, toy

__all__ = [
    "ASSUMPTIONS",
    "BOX",
    "COLUMNS",
    "NOTES",
    "PAYLOAD_WEIGHED",
    "RELATIVE_ERROR_NORM",
    "TABLE_2",
    "TABLE_3",
    "TABLE_4",
    "WORKING_MODES",
    "Geometry",
    "Jacobians",
    "actuator_jacobian",
    "case_1",
    "case_2",
    "essential_table",
    "excitation",
    "forward_kinematics",
    "idle_torques",
    "internal_stress",
    "inverse_kinematics",
    "jacobians",
    "joint_motion",
    "leg_regressor",
    "machine",
    "measured_radius",
    "mechanism",
    "paper_symbol",
    "partitions",
    "platform_motion",
    "platform_regressor",
    "preload",
    "preload_direction",
    "remove_internal_stress",
    "toy",
]
