"""The printed numbers of the compliant 3-PRS [Ruiz2016]."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from dynident_papers.robots.shared import Assumption
from dynident_papers.robots.tripod import Tripod

LEG = 0.109215  # L, between the centres of the two flexures [m], section 4
RADIUS = 0.04791  # b, from the platform's axis to the spherical flexures [m], section 4
ALPHA_0 = np.deg2rad(45.0)  # passive angles in the default position, section 4
OFFSET = RADIUS + LEG * np.cos(ALPHA_0)  # a = 125.137 mm, not printed: from b, L and alpha_0
HEIGHT = LEG * np.sin(ALPHA_0)  # p_z at home, 77.227 mm
SECTION, DENSITY = 0.010, 2810.0  # of the legs [m], of Al 7075 [kg/m^3], section 4
REVOLUTE_STIFFNESS = 98.37  # of the revolute flexure [N m/rad], section 5
BENDING_STIFFNESS, TORSION_STIFFNESS = 32.67, 24.46  # of the spherical flexure [N m/rad], section 5
YOUNG, POISSON, YIELD = 72e9, 0.33, 503e6  # Al 7075 [Pa, -, Pa]
REVOLUTE_FLEXURE = {"R": 0.008, "t": 0.002}  # [m]
SPHERICAL_FLEXURE = {"R": 0.004, "t": 0.003, "l": 0.005}  # [m]
TRAVEL, TILT = 0.002, np.deg2rad(0.2)  # required range: z +- 2 mm, psi and theta +- 0.2 degrees
BOX = (TRAVEL, TILT, TILT)
"""Half-widths around home, z, psi, theta: range of motion of `dynident track`."""
NEEDED_SLIDERS = (-2.15e-3, 2.30e-3)
"""Figure 6: slider travel for the required range [m]."""
NEEDED = {"alpha": 1.7, "beta_m": 1.9, "beta_n": 0.2, "beta_l": 0.2}
"""Figure 7: joint angles for the required range [+- degrees]."""
GEAR, PITCH, TORQUE_CONSTANT = 14.0, 0.07, 30.2e-3  # GP-32A, ZLW-1040, RE-40 [-, m/rev, N m/A]
MOTOR_RATIO = 2.0 * np.pi * GEAR / PITCH  # motor rad per metre of slider
GRAVITY = 9.81

TABLE_2 = ((20.0, 0.935e-3, 0.933e-3), (40.0, 1.899e-3, 1.896e-3), (60.0, 2.865e-3, 2.859e-3))
"""Table 2, finite elements: force of each actuator [N], s [m], z [m]."""


def angle(minutes: float, seconds: float) -> float:
    """Return an angle in radians from arc minutes and seconds, which share their sign."""
    return float(np.deg2rad(minutes / 60.0 + seconds / 3600.0))


class Pose(NamedTuple):
    """A row of Table 4: slider moves [m]; then rises z [m] and tilts psi, theta [rad] by CMM, FEM and the paper's FKP."""

    s: tuple[float, float, float]  # Moves of the three sliders
    cmm: tuple[float, float, float]  # z, psi, theta measured
    fem: tuple[float, float, float]  # z, psi, theta by finite elements
    fkp: tuple[float, float, float]  # z, psi, theta by forward kinematics


TABLE_4 = (
    Pose(
        (1395e-6, 1531e-6, 1306e-6),
        (1471e-6, angle(7, 47), angle(5, 13)),
        (1408e-6, angle(4, 5), angle(0, 33)),
        (1384e-6, angle(8, 59), angle(1, 4)),
    ),
    Pose(
        (777e-6, 685e-6, 725e-6),
        (714e-6, angle(2, 41), angle(0, 16)),
        (727e-6, -angle(0, 45), -angle(1, 30)),
        (722e-6, -angle(1, 38), -angle(3, 23)),
    ),
    Pose(
        (-676e-6, -494e-6, -706e-6),
        (-636e-6, -angle(2, 17), -angle(3, 34)),
        (-624e-6, angle(3, 53), angle(1, 35)),
        (-631e-6, angle(8, 55), angle(3, 41)),
    ),
    Pose(
        (-1485e-6, -1175e-6, -1781e-6),
        (-1437e-6, angle(9, 8), angle(4, 21)),
        (-1478e-6, angle(11, 5), angle(0, 6)),
        (-1511e-6, angle(26, 6), angle(0, 11)),
    ),
)
"""Table 4, z from home. The z of the first row is 1.2 um from the rigid model; all other values agree to the printed digit."""

TABLE_3_GUIDES: Mapping[str, float] = {"OA1-OA2": -angle(5, 24), "OA2-OA3": -angle(1, 12), "OA3-OA1": angle(3, 0)}
"""Table 3, errors of the 120 degrees between guides [rad]; they do not add up to zero."""

TABLE_3_BASES = (
    (-0.080e-3, -angle(0, 3), -angle(0, 10)),
    (-0.343e-3, angle(23, 49), -angle(9, 21)),
    (0.338e-3, angle(17, 34), angle(15, 25)),
)
"""Table 3, errors of the bases: height [m], psi, theta [rad]."""
TABLE_3_LEGS, TABLE_3_ACTUATORS = (0.049e-3, 0.822e-3, 0.484e-3), (0.069e-3, 0.069e-3, 0.265e-3)
"""Table 3, errors of leg heights and of the planes of the actuators [m]."""

WORKING_MODES = ("inward", "outward")
"""Leg leans inward from its slider (cos alpha > 0, as built), or outward."""

_HALF = 0.5 * RADIUS
TRIPOD = Tripod(
    name="3-PRS",
    bearings=(0.0, 2.0 * np.pi / 3.0, -2.0 * np.pi / 3.0),
    offset=float(OFFSET),
    length=LEG,
    radius=RADIUS,
    vertical=False,
    spins=True,
    # (11) and (10): p_x = (b/2)(u_x - v_y), p_y = -b u_y, with u and v the first columns of R
    parasitic=np.array([[[_HALF, 0, 0], [0, -_HALF, 0], [0, 0, 0]], [[0, 0, 0], [-RADIUS, 0, 0], [0, 0, 0]]], dtype=np.float64),
    modes=WORKING_MODES,
    home=np.array([HEIGHT, 0.0, 0.0]),
)
"""Geometry; level at home with the sliders at zero. (6) has a misprint in the first entry of OB_3: u_z for u_x."""

POSITION_GAIN, POSITION_CYCLE = 2.5, 0.005  # position loop [1/s, s], section 6
VELOCITY_PI, VELOCITY_CYCLE = (0.9, 0.001), 0.001  # velocity loop [A s/rad, A/rad] (units swapped in print), [s], section 6

ASSUMPTIONS: Mapping[str, Assumption] = {
    "platform": Assumption("disc", "", "not printed, see `BODIES`"),
    "drive_inertia": Assumption(
        23.7387,
        "kg",
        "at a slider: theoretical m1 and m2 of [Roldan2017, Table 6.2], the same motor, gear and guide, in the mean",
    ),
    "coulomb": Assumption(43.2709, "N", "of a slider: Fc1 and Fc2 of [Roldan2017, Table 6.2] in the mean"),
    "viscous": Assumption(4.5518, "N s/m", "of a slider: c1 and c2 of [Roldan2017, Table 6.2] in the mean"),
    "current_limit": Assumption(10.0, "A", "largest current of the drive EPOS2 50/5, from its data sheet"),
    "encoder": Assumption(0.0, "rad", "lines are not printed: exact positions, speeds from their differences"),
}
"""Values not printed in [Ruiz2016]."""

NOTES = (
    "with the printed position gain, 2.5 1/s, and almost no integral, friction of 43 N and the flexures' force stop a slider "
    "half a millimetre before its target; ten times the gain leaves a tenth of that. The paper compares poses at the moves "
    "that the sliders made, not at those they were asked for, so its Table 4 does not tell which gain it was",
)
"""Notes on the comparison with the paper."""
