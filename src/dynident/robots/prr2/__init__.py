"""The 2-PRR pick-and-place mechanism ("scissor"): two sliders on one rail, three bars, a platform that only translates.

Source: [Roldan2017, section 6.1 and appendix B.3]. Numbers in brackets are the thesis' equations, its misprints are in
docs/references.md.

rho_1 runs to the right from the left end of the rail, rho_2 to the left from its right end, and all bars make the same angle
alpha with the rail (appendix B.3 is lost; its two surviving scalars, B.63 and B.64, fit this convention):

    u = (a - d - rho_1 - rho_2)/2 = L cos(alpha),    x = rho_1 + u + d/2,    y = -L sin(alpha)
    A = 1/(2 tan alpha),   B = 1/(2 L sin alpha),    alpha_dot = B (v_1 + v_2),   y_dot = -A (v_1 + v_2)
    F = K(rho, v, a) Phi,  Phi = m1 ... m6, I3, I4, I5, Fc1, Fc2, c1, c2                                 (6.15)

m1, m2 are the sliders with the reflected inertia of their drives, 3 and 4 the parallel bars on slider 1, 5 the bar on
slider 2, 6 the platform; I are moments about the middle of each bar, where the thesis takes the centre of mass to be known.
"""

from dynident.robots.prr2.data import (
    ACCELERATION_LIMIT,
    ASSEMBLY_MODES,
    BAR,
    BASE_LEADERS,
    CONDITION_FMINCON,
    CONDITION_INITIAL,
    CONDITION_PATTERNSEARCH,
    CUTOFF,
    FUNDAMENTAL,
    GEAR,
    GRAVITY,
    HARMONICS,
    INITIAL_AMPLITUDES,
    MOTOR_RATIO,
    PARAMETER_NAMES,
    PITCH,
    POSITION_LIMITS,
    RAIL,
    SAMPLING,
    SPACING,
    START,
    TABLE_6_2,
    THEORETICAL,
    THESIS_EQUATIONS,
    TORQUE_CONSTANT,
    TRUSTED,
    VALIDATION,
    VELOCITY_LIMIT,
    WORKING_MODES,
    WORKSPACE,
    initial_motion,
    thesis_system,
)
from dynident.robots.prr2.dynamics import base_matrix, dynamics_matrices, inverse_dynamics, regressor
from dynident.robots.prr2.inputs import fourier
from dynident.robots.prr2.kinematics import bar_angle, body_jacobians, forward_kinematics, inverse_kinematics, singularity
from dynident.robots.prr2.model import STANDARD_NAMES, mechanism

__all__ = [
    "ACCELERATION_LIMIT",
    "ASSEMBLY_MODES",
    "BAR",
    "BASE_LEADERS",
    "CONDITION_FMINCON",
    "CONDITION_INITIAL",
    "CONDITION_PATTERNSEARCH",
    "CUTOFF",
    "FUNDAMENTAL",
    "GEAR",
    "GRAVITY",
    "HARMONICS",
    "INITIAL_AMPLITUDES",
    "MOTOR_RATIO",
    "PARAMETER_NAMES",
    "PITCH",
    "POSITION_LIMITS",
    "RAIL",
    "SAMPLING",
    "SPACING",
    "STANDARD_NAMES",
    "START",
    "TABLE_6_2",
    "THEORETICAL",
    "THESIS_EQUATIONS",
    "TORQUE_CONSTANT",
    "TRUSTED",
    "VALIDATION",
    "VELOCITY_LIMIT",
    "WORKING_MODES",
    "WORKSPACE",
    "bar_angle",
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
