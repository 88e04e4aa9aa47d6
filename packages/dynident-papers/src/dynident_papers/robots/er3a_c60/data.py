"""Numbers of the ER3A-C60: printed ones of [Pagani2022], and all assumptions in one table."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dynident_papers.robots.shared import Assumption

JOINTS = tuple(f"joint_{i}" for i in range(1, 7))

# Printed in [Pagani2022].
RANGES = np.deg2rad([[-167, 167], [-130, 90], [-71, 101], [-180, 180], [-113, 113], [-360, 360]])
"""Table 4 [rad]."""
SPEEDS = np.deg2rad([230.0, 230.0, 250.0, 320.0, 320.0, 420.0])
"""Table 4 [rad/s]."""
PAYLOAD, MASS, REACH = 3.0, 27.0, 0.628  # Table 4 [kg, kg, m]
REPEATABILITY = 2e-5  # misprint of 2 mm in Table 4 for 0.02 mm [m]
LINK_LENGTHS = (0.340, 0.377)  # of the two main links, section 3.1 [m]
AMBIENT = 20.0  # chapter 5 [degree Celsius]
SAMPLING = 0.004  # section 5.1 [s]
FUNDAMENTAL, HARMONICS = 0.1, 5  # of the Fourier series (78) [Hz, -]
SINES = (1, 2, 4)  # harmonics of the first motion (72)
PLATEAUS = (0.05, 0.2, 0.4, 0.6, 0.8, 1.0)  # of the largest speed, section 2.4
WARMING_SHARE, WARMING_TIME, CYCLE_TIME, CYCLES = 0.8, 180.0, 300.0, 24  # section 2.4.1 [-, s, s, -]
AXIS_4: Mapping[str, float] = {"alpha": -0.0141, "beta": 0.9971, "K1": 4.41, "K2": 4.57, "C1": 737.61, "C2": 9163.45}
"""(130): thermal model of axis 4 [1/K, -, W/K, W/K, J/K, J/K]."""
POWER_4 = 97.65  # friction power of axis 4 at full duty [W], section 4.3.1
TIME_CONSTANTS = 60.0 * np.array([[22.0, 2.5], [27.3, 1.9], [21.1, 2.3], [27.6, 2.3], [25.8, 2.5], [23.9, 2.0]])
"""Table 8 [s]. The row of axis 4 differs from (130), 28.55 and 2.02 min."""
FRICTION_4 = 27.2  # cold friction of axis 4 at 60 % of its speed [N m]: Table 6, 2.75 N m are 10.1 %
FAULT = 1.32  # friction of joint 1 of robot 2 over its expected value, section 5.2
COLD_OVER_HOT = 1.7  # friction of joint 3 at 60 % speed, section 5.1


ASSUMPTIONS: Mapping[str, Assumption] = {
    "d1": Assumption(0.3215, "m", "height of the shoulder; of this class of arms, and the base must clear the folded forearm"),
    "a1": Assumption(0.050, "m", "shoulder offset; not zero by Table 2, and a1 + a2 + hypot(a3, d4) is the reach, 628 mm"),
    "a2": Assumption(0.270, "m", "upper arm; a2 + a3 is the main link of 340 mm"),
    "a3": Assumption(0.070, "m", "elbow offset, see a2"),
    "d4": Assumption(0.299, "m", "forearm; d4 + d6 is the main link of 377 mm"),
    "d6": Assumption(0.078, "m", "flange, see d4"),
    "zero": Assumption(
        "upper arm up, forearm ahead", "", "ranges of joints 2 and 3 then reach the ground ahead and fold the forearm"
    ),
    "masses": Assumption(
        (5.6, 5.2, 4.2, 2.1, 1.0, 0.3), "kg", "18.4 kg of the 27 kg move; the rest is the base, shares as in arms of this class"
    ),
    "coms": Assumption(
        (
            (0.02, 0.01, -0.06),
            (0.12, -0.01, 0.03),
            (0.03, -0.04, -0.02),
            (0.005, 0.01, -0.11),
            (0.004, -0.02, 0.008),
            (0.002, 0.003, -0.012),
        ),
        "m",
        "centres of mass in the link frames: half way, and towards the motors at the side",
    ),
    "turns": Assumption(
        ((0.1, -0.2, 0.3), (0.15, 0.1, -0.1), (-0.2, 0.15, 0.1), (0.1, 0.1, 0.3), (0.2, -0.1, 0.1), (0.1, 0.2, -0.1)),
        "rad",
        "rotation vectors of the principal axes: no casting is symmetric",
    ),
    "gyration": Assumption(
        (
            (0.085, 0.08, 0.07),
            (0.06, 0.115, 0.12),
            (0.075, 0.06, 0.08),
            (0.09, 0.085, 0.035),
            (0.04, 0.032, 0.042),
            (0.025, 0.025, 0.03),
        ),
        "m",
        "radii of gyration about the principal axes: solid cylinders of the capsules' size",
    ),
    "gears": Assumption((101.0, 101.0, 101.0, 81.0, 80.0, 51.0), "-", "gear ratios of harmonic drives in this class"),
    "rotors": Assumption(
        (3.5e-5, 3.5e-5, 1.8e-5, 1.2e-5, 1.2e-5, 1.2e-5),
        "kg m^2",
        "rotor and wave generator: servo motors of 400, 400, 200, 100, 100, 100 W",
    ),
    "torque_constants": Assumption((0.45, 0.45, 0.42, 0.36, 0.36, 0.36), "N m/A", "servo motors of that size, per RMS ampere"),
    "torques": Assumption(
        (180.0, 200.0, 130.0, 75.0, 60.0, 45.0),
        "N m",
        "three times the cold friction and gravity with payload; peak of the gears",
    ),
    "powers": Assumption(
        (600.0, 600.0, 400.0, 300.0, 250.0, 250.0), "W", "mechanical, one and a half to three times the motors'"
    ),
    "rise_time": Assumption(
        0.2,
        "s",
        "from rest to full speed; plateaus at full speed must fit into the range of joint 3 (2.4), acceleration = speed / it",
    ),
    "jerk_time": Assumption(0.1, "s", "from zero to full acceleration: largest jerk = acceleration / jerk time"),
    "bandwidth": Assumption(10.0, "Hz", "of the position loops, as usual for geared arms"),
    "tool_height": Assumption(0.05, "m", "lowest flange over the floor"),
    "clearance": Assumption(0.01, "m", "between links"),
    "friction_60": Assumption(
        (40.0, 44.0, 32.0, FRICTION_4, 16.0, 9.0), "N m", "cold friction at 60 % speed; axis 4 from Table 6, others by size"
    ),
    "friction_shape": Assumption(
        (0.35, 0.85, -0.26, 0.06), "-", "cold friction over that at 60 % speed: polynomial (35) in v / v60; 35 % is Coulomb"
    ),
    "noise": Assumption(
        (0.9, 0.9, 0.6, 0.35, 0.3, 0.2), "N m", "standard deviation of measured torque: half a percent of the largest"
    ),
    "thermal": Assumption(
        "as axis 4", "", "alpha, beta and K / W of (130) for all axes (friction falls equally), C1 and C2 from Table 8"
    ),
    "position_cycle": Assumption(2e-3, "s", "half of the sampling time of the logs, 4 ms (5.1)"),
    "velocity_cycle": Assumption(2.5e-4, "s", "usual for servo drives"),
    "velocity_bandwidth": Assumption(50.0, "Hz", "of the velocity loops: five times the position loops'"),
    "velocity_reset": Assumption(0.2, "-", "corner of the velocity loops' integral, over their bandwidth"),
    "velocity_feedforward": Assumption(1.0, "-", "share of the reference velocity: industrial controllers follow without lag"),
    "encoder": Assumption(2.0 * np.pi / 2**17, "rad", "17 bit on the motor, usual for servo motors"),
    "encoder_filter": Assumption(500.0, "Hz", "of the velocity from counts: ten times the velocity loops"),
    "speed_reserve": Assumption(1.2, "-", "largest speed of the motors over that of Table 4"),
    "pose": Assumption((0.0,) * 6, "rad", "whose inertias set the velocity gains: upper arm up, forearm ahead"),
}
"""Values missing in [Pagani2022], which has no DH table; its drawing is lost."""

CAPSULES: tuple[tuple[str, tuple[float, float, float], tuple[float, float, float], float], ...] = (
    ("base", (0.0, 0.0, 0.0), (0.0, 0.0, 0.16), 0.09),
    ("link_1", (0.0, 0.0, -0.08), (0.05, 0.0, 0.0), 0.08),
    ("link_2", (0.05, 0.0, 0.0), (0.25, 0.0, 0.0), 0.06),
    ("link_3", (0.0, 0.0, 0.0), (0.07, 0.0, 0.0), 0.065),
    ("link_4", (0.0, 0.0, -0.24), (0.0, 0.0, -0.04), 0.05),
    ("link_5", (0.0, 0.0, -0.01), (0.0, 0.0, 0.01), 0.045),
    ("link_6", (0.0, 0.0, -0.03), (0.0, 0.0, 0.0), 0.035),
)
"""Link, ends in its frame and radius [m] of its capsules; assumed like the geometry."""
MAY_TOUCH = (("link_4", "link_6"), ("link_3", "link_5"), ("link_2", "link_4"), ("base", "link_2"))
"""Pairs separated by the ranges of the joints, or overlapping at the wrist and shoulder by construction."""
