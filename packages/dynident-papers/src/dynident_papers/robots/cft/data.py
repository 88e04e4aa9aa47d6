"""Tables of [Rodriguez2002]: lengths, parameters, limits, encoders, gains, excitation; and assumptions."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.checks import numbers
from dynident_papers.robots.shared import Assumption

JOINTS = ("q1", "q2", "q4", "q5")
"""Reduced joint coordinates (57): rail [m], base rotation [rad], pantograph angles [rad]."""

CARTESIAN = ("xc1", "xc2", "xc3", "xc4")
"""Cartesian coordinates: down/up [m], reach [m], rotation [rad], rail [m]."""

# Table 1 [m]
L2, L4, L5, L6, L7, L8 = 0.25, 0.05, 0.35, 0.30, 0.08, 0.48
D6 = 0.04  # and d7 = -d6
DS = 0.185
D20 = 0.0916  # d_2,0'
GRAVITY = 9.81

# Constants of (44), (57)
HEIGHT = 0.25
TURN = 2.4

_TABLE_4 = (
    ("m1 + m2", 121.3049, "kg"),
    ("m2 lxc2", 0.3107, "kg m"),
    ("m2 lyc2", 4.1955, "kg m"),
    ("yaw inertia", 1.7453, "kg m^2"),
    ("m4 lxc4", 0.8316, "kg m"),
    ("m4 lyc4", 0.8687, "kg m"),
    ("m6 lxc6", 0.8105, "kg m"),
    ("m6 lyc6", 1.6721, "kg m"),
    ("m5 lxc5", -0.1879, "kg m"),
    ("m5 lyc5", 1.7850, "kg m"),
    ("m6", 0.8759, "kg"),
    ("m7 + m8", 4.1328, "kg"),
    ("Bv1", 97.2600, "N s/m"),
    ("Bv2", 9.0999, "N m s/rad"),
    ("Bv4", 11.6257, "N m s/rad"),
    ("Bv5", 9.6229, "N m s/rad"),
    ("Bf1,1", -54.9912, "N"),
    ("Bf1,2", 18.4710, "N m"),
    ("Bf1,4", -3.5232, "N m"),
    ("Bf1,5", -5.8564, "N m"),
    ("Bf2,1", -46.5915, "N"),
    ("Bf2,2", 11.1605, "N m"),
    ("Bf2,4", 2.2684, "N m"),
    ("Bf2,5", 8.2304, "N m"),
    ("w1,1", 150.3190, "s/m"),
    ("w1,2", 136.8945, "s/rad"),
    ("w1,4", -35.3699, "s/rad"),
    ("w1,5", 36.0641, "s/rad"),
    ("w2,1", -98.9881, "s/m"),
    ("w2,2", -170.4702, "s/rad"),
    ("w2,4", -89.3236, "s/rad"),
    ("w2,5", 16.2942, "s/rad"),
)
THETA_NAMES = tuple(name for name, _, _ in _TABLE_4)
THETA_UNITS = tuple(unit for _, _, unit in _TABLE_4)
"""Units of Table 4; the report does not print them."""
THETA: Array = np.array([value for _, value, _ in _TABLE_4])
"""Table 4: theta_1 ... theta_12 inertial, theta_13 ... theta_32 friction."""
THETA.flags.writeable = False

# Table 5 (set-up with TUEdACS); rows xc1 ... xc4
ENCODER_FACTORS: Array = np.array([8.7989e-6, 7.5209e-6, 1.6886e-5, 5.0e-6])
"""Metres or radians per pulse (Table 5). The third one means 182.4 turns of the motor, not 182."""
LIMITS: Array = np.array([[-0.2918, 0.0232], [-0.0269, 0.5801], [-0.2892, 5.8708], [-0.0606, 0.5344]])
"""Lower and upper limits of xc1 ... xc4 (Table 5)."""
LIMITS_DSPACE: Array = np.array([*LIMITS[:3].tolist(), [-0.55, 0.05]])
"""Limits of the other set-up (Remark 5)."""

# Table 6
AMPLIFIER = MappingProxyType({"TUEdACS": 1.6, "dSPACE": 0.4})
"""K_a [A/V]."""
TORQUE_CONSTANT = 0.107
"""K_t [N m/A]."""
MOTORS = ("m1", "m2", "m3", "m4")
"""Motors of y_r, x_r, xc3 and xc4."""
GEAR_RATIOS: Array = np.array([1 / 2, 1 / 2, 1.0, 1 / 6])
"""K_g; the K_c of m3 contains its gear ratio."""
CONVERSIONS: Array = np.array([0.005, 0.005, 6.16 / 182, 0.06]) / (2.0 * np.pi)
"""K_c [m/rad or rad/rad]."""

# Table 3: rows axes 1 ... 4, columns harmonics 1 ... 4
EXCITATION_A: Array = np.array(
    [
        [-0.1102, 0.0042, -0.0014, -0.0173],
        [0.1629, -0.0118, 0.1438, -0.0043],
        [1.9698, 0.0014, -0.0267, 0.0021],
        [0.0002, -0.0302, 0.0021, -0.0800],
    ]
)
EXCITATION_B: Array = np.array(
    [
        [0.0037, 0.0009, 0.0005, -0.0168],
        [0.0188, -0.0257, 0.0033, -0.0277],
        [0.0011, 0.0005, -0.0060, 0.0024],
        [-0.0347, 0.0273, 0.0294, 0.0447],
    ]
)
EXCITATION_OFFSET: Array = np.array([-0.1343, 0.2766, 2.4, 0.0869])  # sec. 4.2.1 states mid-span, which some are not
EXCITATION_FREQUENCY = 0.1
"""Fundamental [Hz]. Printed is 0.4 Hz, which is the fourth harmonic; inferred from J_k = 277.4."""


ASSUMPTIONS: Mapping[str, Assumption] = {
    "current_limit": Assumption(
        4.0, "A", "saturation limits are not printed; 10 V of dSPACE at 0.4 A/V and 2.5 V of TUEdACS at 1.6 A/V are both 4 A"
    ),
    "rotors": Assumption(0.0, "kg m^2", "Table 4 was identified with the motors attached: they are in its parameters"),
    "added_inertia": Assumption(
        0.0,
        "kg m^2",
        "of q4 and q5; Table 4 makes M indefinite on 35 % of the workspace, 0.2 repairs it",
    ),
    "pose": Assumption(
        tuple(EXCITATION_OFFSET.tolist()),
        "m, m, rad, m",
        "xc1 ... xc4 whose inertias set the gains: middle of the excitation",
    ),
    "bandwidth": Assumption(
        5.0,
        "Hz",
        "of the PD action; the report used P control and does not print its gains. At 3 Hz gravity pulls PD alone off",
    ),
    "damping": Assumption(
        1.0,
        "-",
        "of the PD action: Table 4's friction pushes near rest (q1 with -3557 N s/m), which less damping does not hold",
    ),
    "cycle": Assumption(1e-3, "s", "of the controller"),
}
"""Everything that the report does not print."""


def excitation(t: ArrayLike) -> tuple[Array, Array, Array]:
    """Return the excitation x = x_0 + sum_l a_l sin(l w t) - b_l cos(l w t) [Rodriguez2002, Table 3] and its derivatives.

    The amplitudes are read as those of position, without the factor 1/(l w) of (43), and w as 2 pi 0.1 rad/s. Both are
    inferred: it is the reading that gives the printed J_k.
    """
    time = np.atleast_1d(numbers(t, "t"))
    w = 2.0 * np.pi * EXCITATION_FREQUENCY * np.arange(1, 5)
    s, c = np.sin(np.outer(time, w)), np.cos(np.outer(time, w))
    A, B = EXCITATION_A, EXCITATION_B
    x = EXCITATION_OFFSET + s @ A.T - c @ B.T
    return x, c @ (A * w).T + s @ (B * w).T, -s @ (A * w**2).T + c @ (B * w**2).T
