"""2-PRR mechanism: the numbers of [Roldan2017, section 6.1 and appendix B.3], and assumptions."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dynident_papers.robots.shared import Assumption

BAR = 0.654  # L [m]
RAIL = 1.3  # a, distance between the origins of the two sliders [m]
SPACING = 0.095  # d, distance between the revolute joints [m]
GRAVITY = 9.81
TORQUE_CONSTANT, GEAR, PITCH = 30.2e-3, 14.0, 0.07  # K_t [N m/A], i_r, p [m/rev] (6.21)
MOTOR_RATIO = 2.0 * np.pi * GEAR / PITCH  # motor rad per metre of slider (6.22); also F / tau of the motor (6.3)
WORKSPACE = {"x": (0.4, 0.86), "y": (-0.68, -0.41)}
"""Figure 6.1b [m]. y = -0.68 m is beyond the bars: it is of a tool point whose offset the thesis does not print."""

PARAMETER_NAMES = ("m1", "m2", "m3", "m4", "m5", "m6", "I3", "I4", "I5", "Fc1", "Fc2", "c1", "c2")
"""Phi of (6.13) and (6.14). Without effect are I1, I2, I6, not I1, I2, I3 as in the text."""

THEORETICAL: Mapping[str, float] = {
    **{"m1": 23.9744, "m2": 23.5028, "m3": 1.0267, "m4": 1.0267, "m5": 1.0267},
    **{"m6": 2.7750, "I3": 0.0366, "I4": 0.0366, "I5": 0.0366},
}
"""Table 6.2, column "Theoretic" [kg, kg m^2]. The text has 2.5 kg for the platform and 1.02 kg for bars."""

TABLE_6_2: Mapping[str, tuple[float, float]] = {
    **{"m1": (18.9629, 0.7672), "m2": (20.0594, 0.6310), "m3": (3.3610, 1.4459), "m4": (3.3610, 1.4459)},
    **{"m5": (3.3610, 1.4459), "m6": (4.2582, 0.0452), "I3": (0.2651, 0.1642), "I4": (0.2651, 0.1642)},
    **{"I5": (0.2651, 0.1642), "Fc1": (44.6720, 0.0012), "Fc2": (41.8698, 0.0013), "c1": (6.6421, 0.0082)},
    **{"c2": (2.4614, 0.0085)},
}
"""Table 6.2: mean and standard deviation over the 15 solvable subsets of TRUSTED."""

TRUSTED = ("I3", "I4", "I5", "m3", "m4", "m5", "m6")
"""Parameters weighed or measured beforehand (6.1.6): 21 subsets of five, 15 of them solvable."""

THESIS_EQUATIONS: tuple[tuple[Mapping[str, float], float], ...] = (
    ({"I3": 0.0075, "I4": 0.0075, "I5": 0.0075, "Fc1": 1.0}, 44.6742),
    ({"I3": 0.008, "I4": 0.008, "I5": 0.008, "Fc2": 1.0}, 41.8721),
    ({"I3": -0.0504, "I4": -0.0504, "I5": -0.0504, "c1": 1.0}, 6.6274),
    ({"I3": -0.0523, "I4": -0.0523, "I5": -0.0523, "c2": 1.0}, 2.4461),
    ({"m1": 1.0, "m5": -0.5, "I3": 4.6625, "I4": 4.6625, "I5": 4.6625}, 19.5026),
    ({"m2": 1.0, "m5": 0.5, "I3": 0.0092, "I4": 0.0092, "I5": 0.0092}, 20.8867),
    ({"m6": 1.0, "I3": 4.6417, "I4": 4.6417, "I5": 4.6417}, 4.7265),
    ({"m3": 1.0, "m4": 1.0, "m5": 1.0, "I3": -9.3088, "I4": -9.3088, "I5": -9.3088}, 2.2236),
)
"""(6.23) to (6.30) as printed. The coefficients are those of `base_matrix` polluted by numerical derivatives (up to 0.8 %)."""

BASE_LEADERS = ("m1", "m2", "m3", "m6", "Fc1", "Fc2", "c1", "c2")
"""Leaders that give the exact combinations of `base_matrix`; columns for the condition numbers below."""

FUNDAMENTAL, HARMONICS, START = 0.4, 10, (0.2, 0.25)  # [Hz], -, rho_0 [m]
POSITION_LIMITS = ((0.002, 0.35), (0.047, 0.35))
"""Limits of rho [m]. The printed upper limit 0.035 m is below the start, a misprint of 0.35 m."""
VELOCITY_LIMIT, ACCELERATION_LIMIT = 0.57, 5.0  # [m/s], [m/s^2]
SAMPLING, CUTOFF = 0.002, 15.0  # [s]; third-order low-pass [Hz]
_C1 = (0.0066, 0.0033, 0.0022, 0.0016, 0.0013, 0.0011, 0.0009, 0.0008, 0.0007, 0.0007)
_C2 = (0.0060, 0.0030, 0.0020, 0.0015, 0.0012, 0.0010, 0.0009, 0.0008, 0.0007, 0.0006)
INITIAL_AMPLITUDES = (np.array([_C1, _C2]), np.array([_C1, _C2]))
"""C and D of Table 6.1, (2, 10) each: velocity amplitudes in m/s (m in the table)."""
CONDITION_FMINCON, CONDITION_PATTERNSEARCH = 28.23, 20.78
"""Condition number of the base regressor after optimising (6.1.4); the optimised amplitudes are not printed."""
CONDITION_INITIAL = 1.919e4
"""Condition number of Table 6.1 as printed; computed here, not printed in the thesis."""
VALIDATION = {"frequency": 3.5, "amplitude": 0.01145, "cycles": 7.0, "control period": 0.005}
"""Sine of the validation (6.1.7) [Hz, m, -, s]; errors 92 of 190 N and 75 of 156 N ("40 N" in 6.3 is wrong)."""

WORKING_MODES = ("inward", "outward")
"""Bars between the sliders (cos alpha > 0), or crossed over them. Bars that lean to the same side give two more solutions of
the inverse problem, but these are parallel singularities everywhere (the sliders cannot hold the platform)."""
ASSEMBLY_MODES = ("below", "above")
"""Platform under the rail (sin alpha > 0, as built), or over it."""

POSITION_CYCLE = 0.005  # control period of the validation [s], 6.1.7

ASSUMPTIONS: Mapping[str, Assumption] = {
    "masses": Assumption(
        "theoretical",
        "",
        "those of the drawings. The identified means of Table 6.2 have bars of 3.4 kg, three times their weight on the scales",
    ),
    "sliders": Assumption(
        "in the drives", "", "m1 and m2 are sliders with their drives; at the motor 1.52e-5 and 1.49e-5 kg m^2"
    ),
    "position_gain": Assumption(22.8, "1/s", "not printed; that of MAST, the same guides, drives and controller"),
    "velocity_gain": Assumption(0.9, "A s/rad", "[Ruiz2016], the same drives; its units are swapped"),
    "velocity_integral": Assumption(0.001, "A/rad", "[Ruiz2016], the same drives; its units are swapped"),
    "velocity_cycle": Assumption(1e-3, "s", "[Ruiz2016], the same drives"),
    "velocity_feedforward": Assumption(
        0.0, "-", "none is mentioned, and figure 6.7 shows smaller amplitudes and a delay: 3.5 Hz is near the loops' bandwidth"
    ),
    "current_limit": Assumption(10.0, "A", "largest current of the drive EPOS2 50/5 of [Ruiz2016], from its data sheet"),
    "encoder": Assumption(0.0, "rad", "lines are not printed: exact positions, speeds from their differences"),
}
"""Values not printed in [Roldan2017, section 6.1]."""

NOTES = (
    "forces of the validation (3.5 Hz, 11.45 mm on both sliders, low-passed at 15 Hz as in the thesis) are 155 and 148 N "
    "where 156 and 190 N were measured: it is the second actuator that no model of the thesis follows either",
    "the position loop hands over speeds in steps of 5 ms, and the stiff velocity loop answers each with the largest current",
)
"""Notes on the comparison with the thesis."""
