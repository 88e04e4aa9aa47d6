"""The RRR robot of TU Eindhoven: waist, shoulder, elbow, direct drives, in closed form.

Source: [Kostic2002]. Numbers in brackets are the paper's equations. Two are corrected (docs/references.md): r_1,1 of (13) has a
velocity for an acceleration, and asin and atan lose quadrants and branches in (6).

    tau = R(q, v, a) p,   u = tau / k_t + u_friction                                           (10)

The paper prints neither lengths nor masses nor gains.
"""

from dynident.robots.rrr.closed_forms import (
    NUMERIC_STEPS,
    Cost,
    inverse_kinematics_program,
    operation_counts,
    operation_table,
)
from dynident.robots.rrr.drive import FLOPS, RMS_FEEDBACK, RMS_FEEDFORWARD, control_voltage, friction_voltage, voltage
from dynident.robots.rrr.dynamics import (
    PARAMETER_NAMES,
    base_matrix,
    base_parameters,
    gravity_torque,
    inverse_dynamics,
    mass_matrix,
    mechanism,
    regressor,
)
from dynident.robots.rrr.kinematics import (
    EXAMPLE,
    JOINTS,
    POSTURES,
    Geometry,
    forward_kinematics,
    inverse_kinematics,
    jacobian_determinant,
    orientation,
)
from dynident.robots.rrr.machine import ASSUMPTIONS, NOTES, machine

__all__ = [
    "ASSUMPTIONS",
    "EXAMPLE",
    "FLOPS",
    "JOINTS",
    "NOTES",
    "NUMERIC_STEPS",
    "PARAMETER_NAMES",
    "POSTURES",
    "RMS_FEEDBACK",
    "RMS_FEEDFORWARD",
    "Cost",
    "Geometry",
    "base_matrix",
    "base_parameters",
    "control_voltage",
    "forward_kinematics",
    "friction_voltage",
    "gravity_torque",
    "inverse_dynamics",
    "inverse_kinematics",
    "inverse_kinematics_program",
    "jacobian_determinant",
    "machine",
    "mass_matrix",
    "mechanism",
    "operation_counts",
    "operation_table",
    "orientation",
    "regressor",
    "voltage",
]
