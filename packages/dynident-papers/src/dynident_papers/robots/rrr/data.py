"""RRR robot: numbers of [Kostic2002], assumptions, and the table of lengths as a mechanism (Table I)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import ArrayLike

from dynident.checks import numbers
from dynident.errors import DynidentError
from dynident.mechanism import Mechanism
from dynident_papers.robots.shared import Assumption

FLOPS = {"inverse kinematics": (102, 2783), "inverse dynamics": (393, 1050)}
"""Operations per point, closed form and Corke's toolbox, from the paper (sec. V)."""
RMS_FEEDFORWARD = (0.25, 1.98, 0.78)
RMS_FEEDBACK = (0.11, 0.24, 0.17)
"""RMS voltages of model and PD action in the writing task (16) [V]."""


JOINTS = ("waist", "shoulder", "elbow")
POSTURES = ("front up", "front down", "back up", "back down")


GRAVITY = 9.81
PARAMETER_NAMES = tuple(f"p{i}" for i in range(1, 17))


@dataclass(frozen=True)
class Geometry:
    """Lengths of the standard Denavit-Hartenberg table (Table I), alpha = (pi/2, 0, 0)."""

    d1: float  # Link offset C0C1 [m]
    d2: float  # Link offset C1P1 [m]
    d3: float  # Link offset C2P2 [m]
    a2: float  # Link length P1C2 [m], not zero
    a3: float  # Link length P2C3 [m], not zero

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not isinstance(value, int | float | np.floating) or not np.isfinite(value):
                raise DynidentError(f"geometry: {field.name} is {value!r}; give a finite length in metres")
        if self.a2 <= 0.0 or self.a3 <= 0.0:
            raise DynidentError(f"geometry: a2 is {self.a2} and a3 is {self.a3}; both must be above zero")

    @property
    def offset(self) -> float:
        """Lateral offset d = d2 + d3 of the tip from the waist [m]."""
        return self.d2 + self.d3


EXAMPLE = Geometry(d1=0.56, d2=0.169, d3=0.09, a2=0.2, a3=0.415)
"""Lengths for examples and tests, similar to later papers of the group, NOT printed in [Kostic2002]."""


ASSUMPTIONS: Mapping[str, Assumption] = {
    "geometry": Assumption(
        EXAMPLE, "m", "about the lengths of later papers of the group, see `dynident_papers.robots.rrr.EXAMPLE`"
    ),
    "masses": Assumption(
        (12.0, 5.0, 1.2),
        "kg",
        "such that gravity over the gains is of the size of the RMS voltages (16)",
    ),
    "centres": Assumption(
        (0.0, 0.07, 0.10), "m", "distance of the links' centres from their own joint axes, along the link; towards the motors"
    ),
    "gyration": Assumption((0.12, 0.08, 0.12), "m", "radii of gyration about the centres, the same about all axes"),
    "gains": Assumption((6.0, 3.0, 1.5), "N m/V", "amplifier and motor: 60, 30 and 15 N m at 10 V, direct drives of this size"),
    "voltage_limit": Assumption(10.0, "V", "usual range of amplifier inputs"),
    "rotors": Assumption((0.023, 0.015, 0.012), "kg m^2", "J_m: rotor, encoder and slip rings of direct drives of this size"),
    "friction_height": Assumption(
        ((0.6, 0.2, 0.1), (0.35, 0.12, 0.06), (0.15, 0.05, 0.03)),
        "N m",
        "f_ik k_t of (9): a few per cent of the largest torque",
    ),
    "friction_slope": Assumption(((40.0, 15.0, 5.0),) * 3, "s/rad", "w_ik of (9)"),
    "friction_viscous": Assumption((0.25, 0.15, 0.05), "N m s/rad", "b_i k_t of (9)"),
    "encoder": Assumption(1e-5, "rad", "resolution, the order of direct-drive encoders"),
    "bandwidth": Assumption(8.0, "Hz", "of the PD action; its gains are not printed"),
    "damping": Assumption(0.7, "-", "of the PD action"),
    "derivative_filter": Assumption(80.0, "Hz", "ten times the bandwidth, because the velocity comes from encoder counts"),
    "cycle": Assumption(1e-3, "s", "of the controller"),
    "pose": Assumption((0.0, -0.6, 1.4), "rad", "where the inertias are taken that set the gains: elbow bent"),
}
"""The paper prints neither lengths nor masses, gains, friction or PD gains: everything numeric is here."""
NOTES = (
    "the paper prints no masses, gains, friction numbers or path, so its RMS voltages (16) compare in order of size only: the "
    "feedback does what the model misses, whatever its gains",
    "friction of this machine is of the form (9): viscous and Coulomb terms miss it at low speed, most in the waist, which "
    "carries no weight; a sigmoid law can know it almost exactly, which the real robot did not allow",
)
"""Notes on the comparison with the paper."""


def mechanism(
    geometry: Geometry = EXAMPLE,
    parameters: ArrayLike | None = None,
    terms: tuple[str, ...] = ("ia",),
    gravity: float = GRAVITY,
) -> Mechanism:
    """Return the robot as a mechanism (Table I)."""
    g = geometry
    alphas, lengths, offsets = (np.pi / 2, 0.0, 0.0), (0.0, g.a2, g.a3), (g.d1, g.d2, g.d3)
    table = [
        {"a": a, "alpha": alpha, "d": d, "joint": joint}
        for a, alpha, d, joint in zip(lengths, alphas, offsets, JOINTS, strict=True)
    ]
    robot = Mechanism.from_dh(table, "standard", "RRR robot", (0.0, 0.0, -gravity)).with_terms(terms)
    return robot if parameters is None else robot.with_parameters(robot.parameters.replace(numbers(parameters, "parameters")))
