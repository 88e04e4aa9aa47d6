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
from dynident.mechanism import Actuator, Body, Joint, Limits, Loop, Mechanism, Placement, from_com, rotation_exp
from dynident.robots.mast.dynamics import Bodies
from dynident.robots.mast.tripod import Tripod, leg_motion

Array = NDArray[np.float64]

CARRIER = (
    ("x", "prismatic", 0),
    ("y", "prismatic", 1),
    ("z", "prismatic", 2),
    ("theta", "revolute", 1),
    ("psi", "revolute", 0),
    ("phi", "revolute", 2),
)
"""Virtual joints of the platform: name, kind, axis."""
COORDINATES = ("platform", "actuators")
PASSIVE = ("modelled", "ideal")
FRICTION: Mapping[str, float] = {"fv": 0.0, "fc": 0.0}


@dataclass(frozen=True, eq=False)
class Leg:
    """How a leg meets the platform.

    Parameters
    ----------
    kind : {"universal", "spherical"}
        The joint; the first axis of a universal one is parallel to the pin, the second is the leg's direction in the platform.
    rotations : sequence of (str, int, float, mapping)
        The joint as single rotations, from bar to platform: name, axis (0 along, 1 pin, 2 square to both), sign, prior terms.
    turned : ndarray, (3, 3)
        Frame of the rotations in the bar's frame.
    """

    kind: str
    rotations: Sequence[tuple[str, int, float, Mapping[str, float]]]
    turned: Array = field(default_factory=lambda: np.eye(3))


@dataclass(frozen=True, eq=False)
class Design:
    """What two robots with three PR legs differ in, beside geometry and masses.

    Parameters
    ----------
    slider : str
        Name of the slider coordinates: ``rho`` for ``rho_1`` to ``rho_3``.
    pin : str
        Name of the pin coordinates.
    pin_zero : float
        Bar angle gamma at which the pins' coordinates are zero [rad].
    legs : sequence of Leg
        Joints at the platform.
    slider_terms, pin_terms : mapping of str to float
        Prior values of joint terms.
    stroke : (float, float)
        Limits of the sliders [m].
    source : str
        Where the numbers come from.
    """

    slider: str
    pin: str
    pin_zero: float
    legs: Sequence[Leg]
    slider_terms: Mapping[str, float]
    pin_terms: Mapping[str, float]
    stroke: tuple[float, float]
    source: str


def turn(axis: int, angle: float) -> Array:
    """Return a rotation about a coordinate axis."""
    return rotation_exp(angle * np.eye(3)[axis])


def build(
    t: Tripod, bodies: Bodies, design: Design, signs: Array, coordinates: str, passive: str, motor_ratio: float
) -> Mechanism:
    """Return the mechanism of a robot with three PR legs."""
    for label, value, known in (("coordinates", coordinates, COORDINATES), ("passive", passive, PASSIVE)):
        if value not in known:
            raise DynidentError(f"{t.name}: {label} is {value!r}; it is one of {', '.join(known)}")
    zero = np.zeros((1, 3))
    legs = leg_motion(t, t.home[None], zero, zero, signs)
    parts, joints, home = _carrier(t, bodies)
    loops = []
    for i, leg in enumerate(design.legs):
        joints += _leg_joints(t, design, i)
        parts += _leg_bodies(t, bodies, i)
        angle = float(legs.gamma[0, i]) - design.pin_zero
        home |= {f"{design.slider}_{i + 1}": float(legs.slider[0, i]), f"{design.pin}_{i + 1}": angle}
        if passive == "ideal":
            loops.append(_cut(t, leg, i))
            continue
        rotations, ends, weld = _platform_joint(t, design, leg, i)
        joints, parts, loops = joints + rotations, parts + ends, [*loops, weld]
        home[rotations[0].name] = -leg.rotations[0][2] * angle  # the platform is level: what the pin turns, this turns back
    sliders = tuple(f"{design.slider}_{i}" for i in (1, 2, 3))
    return Mechanism(
        t.name,
        tuple(parts),
        tuple(joints),
        tuple(loops),
        actuators=tuple(Actuator(f"motor_{i + 1}", {name: 1.0}, ratio=motor_ratio) for i, name in enumerate(sliders)),
        terms=(),
        gravity=np.array([0.0, 0.0, -bodies.gravity]),
        independent=("z", "psi", "theta") if coordinates == "platform" else sliders,
        home=home,
        source=design.source,
    )


def _carrier(t: Tripod, bodies: Bodies) -> tuple[list[Body], list[Joint], dict[str, float]]:
    """Return base, platform and the virtual joints between, which have neither mass nor friction."""
    names = ["base", *(f"after_{name}" for name, _, _ in CARRIER[:-1]), "platform"]
    inertia = from_com(bodies.platform_mass, bodies.platform_centre, bodies.platform_inertia)
    parts = [*(Body(name) for name in names[:-1]), Body("platform", inertia)]
    axes = np.eye(3)
    joints = [Joint(name, kind, names[k], names[k + 1], axis=axes[axis]) for k, (name, kind, axis) in enumerate(CARRIER)]
    return parts, joints, {"z": float(t.home[0]), "psi": float(t.home[1]), "theta": float(t.home[2])}


def _leg_joints(t: Tripod, design: Design, i: int) -> list[Joint]:
    """Return slider and pin; the bar's frame has x along the bar and y along the pin."""
    n = i + 1
    plane = turn(2, t.bearings[i])
    place = Placement(plane, t.offset * t.outward[i])
    axis = np.array([0.0, 0.0, 1.0] if t.vertical else [-1.0, 0.0, 0.0])
    limits = Limits(*design.stroke)
    slide = Joint(
        f"{design.slider}_{n}", "prismatic", "base", f"slider_{n}", place, axis, limits=limits, terms=design.slider_terms
    )
    # B - C = L (-cos gamma, sin gamma) is x turned about y by pi + gamma.
    zero = Placement(turn(1, np.pi + design.pin_zero))
    axis_y = np.array([0.0, 1.0, 0.0])
    pin = Joint(f"{design.pin}_{n}", "revolute", f"slider_{n}", f"bar_{n}", zero, axis_y, terms=design.pin_terms)
    return [slide, pin]


def _leg_bodies(t: Tripod, bodies: Bodies, i: int) -> list[Body]:
    """Return slider and bar; of the bar's inertia only the part square to its plane acts."""
    about_centre = np.diag([0.0, bodies.bar_inertia, bodies.bar_inertia])
    bar = from_com(bodies.bar_mass, [bodies.bar_centre * t.length, 0.0, 0.0], about_centre)
    return [Body(f"slider_{i + 1}", np.array([bodies.slider_mass, *[0.0] * 9])), Body(f"bar_{i + 1}", bar)]


def _cut(t: Tripod, leg: Leg, i: int) -> Loop:
    """Return the joint at the platform as a cut."""
    tip = Placement(np.eye(3), np.array([t.length, 0.0, 0.0]))
    seat = Placement(turn(2, t.bearings[i]), t.radius * t.outward[i])
    along_pin, outward = np.array([0.0, 1.0, 0.0]), np.array([1.0, 0.0, 0.0])
    return Loop(f"B_{i + 1}", leg.kind, f"bar_{i + 1}", "platform", tip, seat, along_pin, outward)


def _platform_joint(t: Tripod, design: Design, leg: Leg, i: int) -> tuple[list[Joint], list[Body], Loop]:
    """Return the joint at the platform as single rotations, and the weld that ends the leg."""
    n = i + 1
    joints, ends, parent = [], [], f"bar_{n}"
    place = Placement(leg.turned, np.array([t.length, 0.0, 0.0]))
    for name, axis, sign, terms in leg.rotations:
        child = f"{name}_{n}_end"
        joints.append(Joint(f"{name}_{n}", "revolute", parent, child, place, sign * np.eye(3)[axis], terms=terms))
        ends.append(Body(child))
        parent, place = child, Placement()
    seat = turn(2, t.bearings[i]) @ turn(1, np.pi + design.pin_zero) @ leg.turned
    weld = Loop(f"B_{n}", "weld", parent, "platform", Placement(), Placement(seat, t.radius * t.outward[i]))
    return joints, ends, weld
