"""Robots with three PR legs as a `Mechanism`: the platform on six virtual joints, legs that meet it by cut joints.

Tree: ``x, y, z, theta, psi, phi`` carry the platform (three slides, then Y-X-Z rotations, all without mass or friction); each
leg is a slider, a bar on a pin, and, where the friction or stiffness of the joint at the platform matters, its single
rotations; the leg's end is then welded to the platform. Otherwise the universal and spherical joints are cut themselves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dynident.errors import DynidentError
from dynident.mechanism import Actuator, Body, Joint, Limits, Loop, Mechanism, Placement
from dynident.mechanism.elements import rotation_exp
from dynident.mechanism.inertia import from_com
from dynident.robots.mast.dynamics import Bodies
from dynident.robots.mast.tripod import Tripod, attitude, leg_motion, platform_motion

Array = NDArray[np.float64]

VIRTUAL = (("x", "prismatic", 0), ("y", "prismatic", 1), ("z", "prismatic", 2))
TURNS = (("theta", "revolute", 1), ("psi", "revolute", 0), ("phi", "revolute", 2))


@dataclass(frozen=True, eq=False)
class Leg:
    """How a leg meets the platform.

    Parameters
    ----------
    kind : {"universal", "spherical"}
        The joint; the first axis of a universal one is parallel to the pin, the second the leg's outward direction.
    axes : sequence of (str, int, float)
        Name, axis of the bar's frame (0 along the bar, 1 pin, 2 square to both) and its sign, of the rotations in order.
    turned : ndarray, (3, 3)
        Frame of the first rotation in the bar's frame.
    terms : sequence of mapping
        Prior values of joint terms of each rotation.
    """

    kind: str
    axes: Sequence[tuple[str, int, float]]
    turned: Array = field(default_factory=lambda: np.eye(3))
    terms: Sequence[Mapping[str, float]] = ({"fv": 0.0, "fc": 0.0},) * 3


def turn(axis: int, angle: float) -> Array:
    """Return a rotation about a coordinate axis.

    Parameters
    ----------
    axis : int
        0, 1 or 2.
    angle : float
        Angle [rad].

    Returns
    -------
    ndarray, (3, 3)
        Rotation.
    """
    return rotation_exp(angle * np.eye(3)[axis])


def build(
    t: Tripod,
    bodies: Bodies,
    legs: Sequence[Leg],
    *,
    slider_name: str,
    gamma_zero: float,
    signs: Array,
    coordinates: str,
    passive: str,
    slider_terms: Mapping[str, float],
    pin_terms: Mapping[str, float],
    motor_ratio: float,
    stroke: tuple[float, float],
    source: str,
) -> Mechanism:
    """Return the mechanism of a robot with three PR legs.

    Parameters
    ----------
    t : Tripod
        Geometry.
    bodies : Bodies
        Masses.
    legs : sequence of Leg
        Joints at the platform.
    slider_name : str
        Name of the slider coordinates, as in ``rho`` of ``rho_1``.
    gamma_zero : float
        Bar angle at which the pin's coordinate is zero [rad].
    signs : ndarray, (3,)
        Working mode.
    coordinates : {"platform", "actuators"}
        Independent coordinates: z, psi, theta; or the sliders.
    passive : {"modelled", "ideal"}
        Joints at the platform as tree coordinates with friction, or as cut joints.
    slider_terms, pin_terms : mapping of str to float
        Prior values of joint terms.
    motor_ratio : float
        Motor rad per metre of slider; 1 for forces and positions of the sliders themselves.
    stroke : (float, float)
        Limits of the sliders [m].
    source : str
        Where the numbers come from.

    Returns
    -------
    Mechanism
        The robot, at home with all sliders at zero.
    """
    for label, value, known in (
        ("coordinates", coordinates, ("platform", "actuators")),
        ("passive", passive, ("modelled", "ideal")),
    ):
        if value not in known:
            raise DynidentError(f"{t.name}: {label} is {value!r}; it is one of {', '.join(known)}")
    platform, joints = _carrier(bodies)
    parts, loops, actuators = [Body("base"), *platform], list(joints), [], []  # type: ignore[var-annotated]
    return _assemble(
        t, bodies, legs, parts, loops, actuators, slider_name, gamma_zero, signs, coordinates, passive, slider_terms
    )
