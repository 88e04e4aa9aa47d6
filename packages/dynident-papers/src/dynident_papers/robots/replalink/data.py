"""RePlaLink: the numbers of [Roldan2017, section 6.2], and assumptions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np

from dynident.errors import DynidentError
from dynident_papers.robots.shared import Assumption, check_length


@dataclass(frozen=True)
class Geometry:
    """Lengths [m]; the thesis prints none of them.

    All but `base` follow from the coefficients of (6.51) to (6.55): the lengths as round numbers, the centres of mass by
    least squares on its five digits, so that every coefficient rounds to the printed one. The base distance does not affect
    base parameters and cannot be recovered: 0.4 m is an ASSUMPTION (the real one is adjustable).
    """

    a0a: float = 0.450  # Driven bar A0-A
    b0b: float = 0.450  # Driven bar B0-B
    ad: float = 0.800  # Bar A-D
    ac: float = 0.500  # Place of the joint C on bar A-D
    bc: float = 0.500  # Bar B-C
    com1: float = 0.1900521  # Centre of mass of bar 1, from A0 along the bar
    com2: float = 0.5178348  # Centre of mass of bar 2, from A
    com3: float = 0.2161298  # Centre of mass of bar 3, from B
    com4: float = 0.1684903  # Centre of mass of bar 4, from B0
    base: float = 0.4  # Distance A0-B0

    def __post_init__(self) -> None:
        for field in fields(self):
            check_length("RePlaLink", field.name, getattr(self, field.name))
        if not (self.com2 < self.ad and self.com3 < self.bc):
            raise DynidentError(
                f"RePlaLink: centres of mass at {self.com2} and {self.com3} m are not on bars of {self.ad} and {self.bc} m"
            )


RECOVERED = Geometry()
"""Recovered from the base parameters, except the base distance."""

TORQUE_CONSTANT, GEAR = 1.08, 10.0  # K_t [N m/A], i_r (6.2.5); torques in the thesis are at the gearbox output
SAMPLING, CUTOFF = 0.0012, 20.0  # [s]; third-order Butterworth on accelerations and torques [Hz]

PARAMETER_NAMES = ("m1", "m2", "m3", "m4", "m5", "I1", "I2", "I3", "I4", "I6", "I7", "Fc1", "Fc4", "c1", "c4")
"""Phi of (6.45): bars A0-A, A-D, B-C, B0-B, third motor at D; moments about centres of mass, of the two motors (6 at A0, 7 at
B0), and friction. (6.43) calls the friction 6 and 7, the results 1 and 4."""

THEORETICAL: Mapping[str, float] = {
    **{"m1": 3.2150, "m2": 4.2540, "m3": 1.8900, "m4": 2.9500, "m5": 0.4000},
    **{"I1": 0.1257, "I2": 0.4062, "I3": 0.0783, "I4": 0.1060, "I6": 0.0041, "I7": 0.0041},
}
"""Table 6.4, column "Theoretical" [kg, kg m^2]."""

TABLE_6_4: Mapping[str, tuple[float, float, float]] = {
    **{"m1": (3.2150, 0.0, 3.2150), "m2": (15.7692, 49.8521, 7.4105), "m3": (1.8900, 0.0, 1.8900)},
    **{"m4": (47.9074, 280.5484, 2.9500), "m5": (5.7803, 2.2932, 0.0), "I1": (0.1257, 0.0, 0.1257)},
    **{"I2": (0.4938, 0.1899, 0.8019), "I3": (0.6796, 0.4937, 0.0908), "I4": (1.3823, 7.9645, 0.1060)},
    **{"I6": (0.0041, 0.0, 0.0041), "I7": (1.2804, 7.9645, 0.0041), "Fc1": (0.9342, 0.0, 0.9342)},
    **{"Fc4": (0.1672, 0.0, 0.1672), "c1": (2.6334, 0.0, 2.6334), "c4": (4.7132, 0.0, 4.7132)},
}
"""Table 6.4: mean, standard deviation and bounded optimum. In the text the mean of m2 is twice its theoretical value; it is
3.7 times. The optimum violates the base equations and needs unpublished torques."""

TRUSTED = ("m1", "m2", "m3", "m4", "I1", "I2", "I3", "I4", "I6", "I7")
"""(6.65): 210 subsets of six, 64 of them solvable."""

THESIS_EQUATIONS: tuple[tuple[Mapping[str, float], float], ...] = (
    ({"Fc1": 1.0}, 0.9342),
    ({"Fc4": 1.0}, 0.1672),
    ({"c1": 1.0}, 2.6334),
    ({"c4": 1.0}, 4.7132),
    ({"m1": 1.0, "I1": 27.686, "I6": 27.686, "I2": 13.533, "I3": 0.51015}, -3.2871),
    ({"m2": 1.0, "I2": -6.8439, "I3": 7.2328}, 7.1563),
    ({"m3": 1.0, "I3": -16.299}, -18.0339),
    ({"m4": 1.0, "I4": 35.225, "I7": 35.225, "I3": 66.007}, 54.2796),
    ({"m5": 1.0, "I2": 4.43, "I3": -0.27833}, 6.3547),
)
"""(6.47) to (6.64) without coefficients below 1e-12. The fifth must be positive for any real robot; -3.2871 was identified."""

BASE_LEADERS = ("Fc1", "Fc4", "c1", "c4", "m1", "m2", "m3", "m4", "m5")
"""Leaders of the thesis' combinations, in its order."""

FUNDAMENTAL, HARMONICS, START = 0.45, 5, (2.0944, 1.0472)  # [Hz], -, alpha_0 [rad]
POSITION_LIMITS = ((0.6981, 3.6652), (-0.3142, 2.4435))  # alpha_1, alpha_4 [rad]; the additional polygon is not printed
BOX = (0.2, 0.2)
"""Half-widths around `START` that avoid singularities [rad], with the assumed base distance."""
VELOCITY_LIMIT, ACCELERATION_LIMIT = 2.0, 30.0  # [rad/s], [rad/s^2]
INITIAL_AMPLITUDES = (
    np.array([[0.4533, 0.4334, 0.3349, 0.1488, 0.1128], [0.4152, 0.3869, 0.3470, 0.3085, 0.1391]]),
    np.array([[0.3802, 0.3760, 0.3574, 0.2744, 0.1152], [0.4263, 0.4091, 0.1442, 0.1124, 0.0474]]),
)
"""C and D of Table 6.3, (2, 5) each, in rad/s (m in the table); axis 1 peaks at 2.04 rad/s, above its own limit."""
CONDITION_PATTERNSEARCH = 62.21
"""Condition number after optimising inside the unprinted polygon (6.2.4); box limits alone allow less than 9."""

ASSEMBLY_MODES = ("up", "down")
"""C left or right of the line from A to B. The rule (B.27) depends on the frame and is not used."""
WORKING_MODES = ("++", "+-", "-+", "--")
"""Signs of sin(alpha2 - alpha1) and of sin(alpha3 - alpha4): how the two elbows A and B are bent."""

CONTROL_CYCLE = 0.0012  # control period [s], 6.2.5
NOTES = (
    "errors of 0.005 mrad are those of the measured velocity, a difference of counts and half a cycle of 1.2 ms late: no model "
    "lowers them, and with exact velocities the identified model lowers them by 83 %",
)

ASSUMPTIONS: Mapping[str, Assumption] = {
    "geometry": Assumption("base distance", "m", "not printed and not in the base parameters, see `Geometry`"),
    "masses": Assumption(
        "theoretical",
        "",
        "those of the drawings. The identified base parameters are those of no robot (the fifth is negative)",
    ),
    "four_bar": Assumption(
        (0.10, 0.25, 0.22, 0.28),
        "m",
        "crank, coupler, rocker and ground of the linkage that the validation emulates (6.2.7); none is printed. The point on "
        "its coupler starts at the tool's home",
    ),
    "four_bar_speed": Assumption(4.0, "rad/s", "of its crank; not printed"),
    "bandwidth": Assumption(10.0, "Hz", "of the position loops; no gains are printed, usual for servo drives of this size"),
    "velocity_bandwidth": Assumption(50.0, "Hz", "of the velocity loops: five times the position loops'"),
    "velocity_reset": Assumption(0.2, "-", "corner of the velocity loops' integral, over their bandwidth"),
    "velocity_feedforward": Assumption(1.0, "-", "figure 6.18 shows no lag"),
    "current_limit": Assumption(
        12.0, "A", "130 N m at the gearbox output, four times the largest torque measured; that of the drives is not printed"
    ),
    "encoder": Assumption(2.0 * np.pi / 2**18, "rad", "18 bit on the motor, usual for servo motors"),
    "encoder_filter": Assumption(400.0, "Hz", "of the velocity from counts: eight times the velocity loops"),
}
"""Values not printed in [Roldan2017, section 6.2]."""
