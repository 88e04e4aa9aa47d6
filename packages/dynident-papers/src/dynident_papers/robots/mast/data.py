"""The printed numbers of the 2PRU-1PRS shaking table [Roldan2017, section 4.2] [Roldan2016]."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dynident_papers.robots.shared import Assumption
from dynident_papers.robots.tripod import Tripod

OFFSET = 0.4  # H, distance of the vertical guides from the middle [m], section 4.2
BAR = 0.26  # L [m], section 4.2
RADIUS = 0.35  # r [m], [Roldan2016, section 3] (the thesis does not print it)
BAR_MASS, PLATFORM_MASS = 0.07, 2.06  # [kg], section 4.2
BAR_INERTIA = BAR_MASS * BAR**2 / 12.0  # [kg m^2] NOT printed: a slender bar, 3.94e-4
STROKE = 0.3  # of the guides [m], section 4.2.2
LARGEST_TILT = np.deg2rad(20.0)  # [Roldan2016, section 2.4.2]
GRAVITY = 9.81

GEAR, PITCH = 15.0, 0.07
"""Gear ratio (4.2.2), and pitch p of the belt guide [m/rev]: the thesis prints it for the same guide in section 6.1 only."""
MOTOR_RATIO = 2.0 * np.pi * GEAR / PITCH  # motor rad per metre of slider (4.35)

TABLE_4_2: Mapping[str, float] = {
    "f_n": 986.5,  # Hz, experimental
    "k_t": 67.702,  # N m/rad, experimental
    "c_t": 3.00e-08,  # N m s/rad, experimental; suspiciously small
    "M": 0.076,  # kg, experimental; the mass to use in (4.34), not the 2.27 kg of [Roldan2016, eq. 22], which is the robot
    "J_motor": 1.42e-5,  # kg m^2, manufacturer, as all below
    "J_gearbox": 1.4e-6,
    "J_coupling": 4.68e-6,
    "J_guide": 4.524e-4,
    "J_brake": 1.00e-6,  # not summed in (4.33)
}
"""[Roldan2017, Table 4.2] = [Roldan2016, Table 1], the actuator model."""

J_1 = TABLE_4_2["J_motor"] + TABLE_4_2["J_gearbox"] + TABLE_4_2["J_coupling"]  # (4.33) [kg m^2]
J_2 = TABLE_4_2["J_guide"] / GEAR**2 + TABLE_4_2["M"] / MOTOR_RATIO**2  # (4.34) [kg m^2]
J_1_ADJUSTED = J_1 / 1.56  # "Sim. Ident." of 4.2.4.2
COULOMB_CATALOGUE = (0.2 + 4.07e-2 * 2.27) / GEAR  # [Roldan2016, eq. 23], at the motor [N m]
COULOMB_ADJUSTED = 7.18e-2  # at the motor [N m], 4.2.4.2

BANDWIDTH_ACTUATORS, BANDWIDTH_MAST = 4.0, 3.5  # -3 dB of z [Hz], 4.2.4.1
BANDWIDTHS: Mapping[str, float] = {"with mechanism": BANDWIDTH_MAST, "actuators alone": BANDWIDTH_ACTUATORS}
"""The same by name [Hz]."""
BODE: Mapping[float, tuple[float, float]] = {0.4: (0.994, -6.3), 5.0: (0.654, -62.5), 10.0: (0.432, -103.7)}
"""Frequency [Hz]: magnitude and phase [deg] of the z motion, measured (4.2.4.1); flatter than the bandwidths allow."""

WORKING_MODES = ("below", "above")
"""Slider below the platform joint (sin gamma > 0, as built), or above it."""

TRIPOD = Tripod(
    name="MAST",
    bearings=(0.0, 0.5 * np.pi, np.pi),
    offset=OFFSET,
    length=BAR,
    radius=RADIUS,
    vertical=True,
    spins=False,  # universal joints on y keep the platform's x axis in the xz plane
    parasitic=RADIUS * np.array([[[0, -1, 0], [0, 0, 0], [0, 0, 0]], np.zeros((3, 3))], dtype=np.float64),  # B_2x = 0
    modes=WORKING_MODES,
    home=np.array([BAR * np.sin(np.arccos((OFFSET - RADIUS) / BAR)), 0.0, 0.0]),  # sliders at zero
)
"""Geometry. The tables' platform is level at home with the sliders at zero; gamma = 78.91 degrees there."""

ASSUMPTIONS: Mapping[str, Assumption] = {
    "position_gain": Assumption(22.8, "1/s", "k_v that fits the three measured points with 8.8 ms of dead time"),
    "position_cycle": Assumption(5e-3, "s", "[Ruiz2016], the same guides and drives"),
    "position_delay": Assumption(
        6e-3,
        "s",
        "what is left of those 8.8 ms after half a position cycle (2.5 ms) and the velocity loop (J / K_t k_P - half its "
        "cycle: 0.3 ms), for the way from the computer with the position loop to the drives; not printed",
    ),
    "velocity_cycle": Assumption(1e-3, "s", "[Ruiz2016], the same guides and drives"),
    "velocity_gain": Assumption(0.9, "A s/rad", "[Ruiz2016], read as A s/rad (its units are swapped)"),
    "velocity_integral": Assumption(0.001, "A/rad", "[Ruiz2016], read as A/rad (its units are swapped)"),
    "torque_constant": Assumption(30.2e-3, "N m/A", "[Ruiz2016] and [Roldan2017, section 6.1], the same motor (Maxon RE 40)"),
    "current_limit": Assumption(10.0, "A", "largest current of the drive EPOS2 50/5 of [Ruiz2016], from its data sheet"),
    "encoder": Assumption(
        0.0,
        "rad",
        "lines are not printed: exact positions; the speed is their difference over a velocity cycle, as drives do it. A "
        "sampled tachometer would alias the undamped 914 Hz below 500 Hz and make the loop unstable with the mechanism on it",
    ),
    "platform_inertia": Assumption("thin disc", "", "I_mp is not printed, see `dynident_papers.robots.mast.BODIES`"),
    "damping": Assumption(
        TABLE_4_2["c_t"], "N m s/rad", "as printed, although suspiciously small: nothing damps 914 Hz but the loops"
    ),
    "centre": Assumption("home", "", "pose about which it shakes; not printed"),
    "amplitude": Assumption(
        1e-3, "m", "of the z sines, not printed but small (3.5); the current limit is touched above 4 Hz even so"
    ),
}
"""Everything that [Roldan2017, section 4.2] and [Roldan2016] do not print; only the position loop is fitted."""
BANDWIDTH_NOTES = (
    "the thesis says 4 Hz of the actuators alone and 3.5 Hz with the mechanism. Rigid bodies cannot do that: a third of "
    "2.27 kg is 2 % of the drives' inertia, in a velocity loop of 200 Hz. Friction lowers the response here: "
    "that of the guides grows with the mechanism's load [Roldan2016, eq. 23]",
)
"""Notes on the comparison of bandwidths with the thesis."""
LOAD, FRICTION_PER_LOAD = 2.27, 4.07e-2 / GEAR  # kg, and N m at the motor per kg: [Roldan2016, eqs. 22 and 23]
"""The friction of the guides grows with the load. The 2.27 kg that [Roldan2016] puts into (23) are the whole mechanism."""
PARAMETERS = {"catalogue": (J_1, COULOMB_CATALOGUE), "adjusted": (J_1_ADJUSTED, COULOMB_ADJUSTED)}
"""J_1 [kg m^2] and Coulomb friction [N m] at the motor: from manufacturers, and fitted in the thesis ("Sim. Ident.")."""
