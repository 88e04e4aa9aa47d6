"""RePlaLink, a haptic planar five-bar with a third motor at the tool (IGM, RWTH Aachen).

Source: [Roldan2017, section 6.2 and appendix B.1]. Numbers in brackets are the thesis' equations, its misprints are in
docs/references.md. It prints no lengths: they are recovered from its base parameters, but for the base distance, on
which those do not depend.

    tau = K(q, v, a) Phi,   q = (alpha1, alpha4),   Phi = m1 ... m5, I1, I2, I3, I4, I6, I7, Fc1, Fc4, c1, c4      (6.44)
"""

from dynident.robots.prr2.inputs import fourier
from dynident.robots.replalink.data import (
    ACCELERATION_LIMIT,
    ASSEMBLY_MODES,
    BASE_LEADERS,
    CONDITION_PATTERNSEARCH,
    CUTOFF,
    FUNDAMENTAL,
    GEAR,
    HARMONICS,
    INITIAL_AMPLITUDES,
    PARAMETER_NAMES,
    POSITION_LIMITS,
    RECOVERED,
    SAMPLING,
    START,
    TABLE_6_4,
    THEORETICAL,
    THESIS_EQUATIONS,
    TORQUE_CONSTANT,
    TRUSTED,
    VELOCITY_LIMIT,
    WORKING_MODES,
    Geometry,
    initial_motion,
    thesis_system,
)
from dynident.robots.replalink.dynamics import base_matrix, dynamics_matrices, inverse_dynamics, regressor
from dynident.robots.replalink.kinematics import Pose, body_jacobians, forward_kinematics, inverse_kinematics, singularity
from dynident.robots.replalink.model import STANDARD_NAMES, mechanism

__all__ = [
    "ACCELERATION_LIMIT",
    "ASSEMBLY_MODES",
    "BASE_LEADERS",
    "CONDITION_PATTERNSEARCH",
    "CUTOFF",
    "FUNDAMENTAL",
    "GEAR",
    "HARMONICS",
    "INITIAL_AMPLITUDES",
    "PARAMETER_NAMES",
    "POSITION_LIMITS",
    "RECOVERED",
    "SAMPLING",
    "STANDARD_NAMES",
    "START",
    "TABLE_6_4",
    "THEORETICAL",
    "THESIS_EQUATIONS",
    "TORQUE_CONSTANT",
    "TRUSTED",
    "VELOCITY_LIMIT",
    "WORKING_MODES",
    "Geometry",
    "Pose",
    "base_matrix",
    "body_jacobians",
    "dynamics_matrices",
    "forward_kinematics",
    "fourier",
    "initial_motion",
    "inverse_dynamics",
    "inverse_kinematics",
    "mechanism",
    "regressor",
    "singularity",
    "thesis_system",
]
