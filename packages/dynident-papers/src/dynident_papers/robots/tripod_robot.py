"""A robot with three PR legs: its closed forms, and the robot as a `Mechanism`.

Its tree: ``x, y, z, theta, psi, phi`` carry the platform (three slides, then Y-X-Z rotations, all without mass or friction);
each leg is a slider, a bar on a pin, and, where the friction or stiffness of the joint at the platform matters, its single
rotations; the leg's end is then welded to the platform. Otherwise the universal and spherical joints are cut themselves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.checks import choice
from dynident.mechanics import Motion
from dynident.mechanism import Actuator, Body, Joint, Limits, Loop, Mechanism, Placement, from_com
from dynident.mechanism.elements import rotation_exp
from dynident_papers.robots import tripod_assembly, tripod_dynamics
from dynident_papers.robots.shared import samples_of
from dynident_papers.robots.tripod import (
    LegMotion,
    Mode,
    Tripod,
    actuator_jacobian,
    check_parallel,
    leg_motion,
    platform_from_sliders,
)
from dynident_papers.robots.tripod_dynamics import Bodies

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
    """Connection of a leg to the platform."""

    kind: str
    rotations: Sequence[tuple[str, int, float, Mapping[str, float]]]
    turned: Array = field(default_factory=lambda: np.eye(3))  # Frame of the rotations in the bar's frame


@dataclass(frozen=True, eq=False)
class Design:
    """Differences between robots with three PR legs other than geometry and masses."""

    slider: str  # Name of the slider coordinates: ``rho`` for ``rho_1`` to ``rho_3``
    pin: str  # Name of the pin coordinates
    pin_zero: float  # Bar angle gamma at which the pins' coordinates are zero [rad]
    legs: Sequence[Leg]  # Joints at the platform
    slider_terms: Mapping[str, float]  # Prior values of the sliders' joint terms
    pin_terms: Mapping[str, float]  # Prior values of the pins' joint terms
    stroke: tuple[float, float]  # Limits of the sliders [m]
    source: str  # Source of the numbers


def turn(axis: int, angle: float) -> Array:
    """Return a rotation about a coordinate axis."""
    return rotation_exp(angle * np.eye(3)[axis])


@dataclass(frozen=True, eq=False)
class TripodRobot:
    """A robot with three PR legs: geometry, masses and design, with kinematics and dynamics.

    Poses x, v, a are (N, 3) as z [m], psi, theta [rad]; sliders (N, 3) in m. A working mode is one of the two words of the
    robot for all legs, the first when omitted, or three signs.
    """

    tripod: Tripod  # Geometry
    bodies: Bodies  # Masses
    design: Design  # Names, joints at the platform, prior terms

    def inverse_kinematics(self, x: ArrayLike, working_mode: Mode = None) -> Array:
        """Return the slider positions of platform poses."""
        return self.leg_angles(x, working_mode).slider

    def leg_angles(
        self, x: ArrayLike, working_mode: Mode = None, v: ArrayLike | None = None, a: ArrayLike | None = None
    ) -> LegMotion:
        """Return bars and sliders with two derivatives."""
        (pose,) = samples_of(3, x=x)
        zero = np.zeros_like(pose)
        pose, v_, a_ = samples_of(3, x=pose, v=zero if v is None else v, a=zero if a is None else a)
        return leg_motion(self.tripod, pose, v_, a_, self.tripod.signs(working_mode))

    def forward_kinematics(self, sliders: ArrayLike, working_mode: Mode = None, start: ArrayLike | None = None) -> Array:
        """Return the pose on the branch of a start pose; `assembly_modes` gives all."""
        t = self.tripod
        return tripod_assembly.forward_kinematics(t, sliders, t.home if start is None else start, t.signs(working_mode))

    def assembly_modes(self, sliders: ArrayLike) -> Array:
        """Return every pose with these slider positions, in the operation mode of home."""
        return tripod_assembly.assembly_modes(self.tripod, sliders)

    def jacobians(self, x: ArrayLike, working_mode: Mode = None) -> tuple[Array, Array]:
        """Return J_x and J_q of J_x v = J_q slider_dot: bars keep their lengths, l_i . B_i_dot = l_i . C_i_dot."""
        (pose,) = samples_of(3, x=x)
        t, zero = self.tripod, np.zeros_like(pose)
        gamma = self.leg_angles(pose, working_mode).gamma
        bar = np.stack([-np.cos(gamma), np.sin(gamma)], axis=2)
        legs = [self.leg_angles(pose, working_mode, zero + unit).joint_dot for unit in np.eye(3)]
        J_x = t.length * np.stack([np.sum(bar * column, axis=2) for column in legs], axis=2)
        along = np.sin(gamma) if t.vertical else np.cos(gamma)
        return J_x, t.length * along[:, :, None] * np.eye(3)

    def singularity(self, x: ArrayLike, working_mode: Mode = None) -> tuple[Array, Array]:
        """Return the distances from singularities, 0 at a singularity."""
        t, (J_x, J_q) = self.tripod, self.jacobians(x, working_mode)
        upright = t.length**3 * t.radius**2 * np.linalg.det(np.column_stack([np.ones(3), t.outward[:, :2]]))
        return np.abs(np.linalg.det(J_x) / upright), np.min(np.abs(np.diagonal(J_q, axis1=1, axis2=2)), axis=1) / t.length

    def slider_motion(self, motion: Motion, working_mode: Mode = None) -> Motion:
        """Return the motion of the sliders from the platform motion."""
        legs = self.leg_angles(motion.q, working_mode, motion.v, motion.a)
        return Motion(motion.t, legs.slider, legs.slider_dot, legs.slider_ddot)

    def platform_motion(self, motion: Motion, working_mode: Mode = None, start: ArrayLike | None = None) -> Motion:
        """Return the motion of the platform from the slider motion."""
        x = self.forward_kinematics(motion.q, working_mode, start)
        return Motion(motion.t, x, *platform_from_sliders(self.tripod, x, motion.v, motion.a, self.tripod.signs(working_mode)))

    def inverse_dynamics(
        self,
        x: ArrayLike,
        v: ArrayLike,
        a: ArrayLike,
        bodies: Bodies | None = None,
        working_mode: Mode = None,
        formulation: str = "energy",
    ) -> Array:
        """Return the slider forces F of A^T F = sum_b J_b^T f_b, inertia and gravity of the bodies [Roldan2017, eq. 4.32].

        A is the Jacobian of the sliders, slider_dot = A v, and J_b of a body, both with respect to z, psi, theta. Springs,
        friction and drives are omitted here and included in `mechanism`.
        """
        pose, rate, acceleration = samples_of(3, x=x, v=v, a=a)
        t, signs = self.tripod, self.tripod.signs(working_mode)
        parts = tripod_dynamics.contributions(t, pose, rate, acceleration, signs, bodies or self.bodies, formulation)
        A = actuator_jacobian(t, pose, signs)
        return tripod_dynamics.slider_forces(t, pose, sum(parts.values(), np.zeros_like(pose)), A)

    def mass_matrix(self, x: ArrayLike, bodies: Bodies | None = None, working_mode: Mode = None) -> Array:
        """Return the mass matrix A^-T (sum_b J_b^T M_b J_b) A^-1 of the sliders [Roldan2017, eq. 4.32]."""
        (pose,) = samples_of(3, x=x)
        t, signs = self.tripod, self.tripod.signs(working_mode)
        A = actuator_jacobian(t, pose, signs)
        check_parallel(t, A, pose)
        J = np.linalg.inv(A)
        return np.asarray(np.swapaxes(J, 1, 2) @ tripod_dynamics.mass_matrix(t, pose, signs, bodies or self.bodies) @ J)

    def mechanism(
        self, coordinates: str, working_mode: Mode, passive: str, bodies: Bodies | None, motor_ratio: float
    ) -> Mechanism:
        """Return the robot as bodies, joints and loops, level at home."""
        t, design, bodies = self.tripod, self.design, bodies or self.bodies
        choice(f"{t.name}: coordinates", coordinates, COORDINATES)
        choice(f"{t.name}: passive", passive, PASSIVE)
        legs = self.leg_angles(t.home, working_mode)
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
            home[rotations[0].name] = -leg.rotations[0][2] * angle  # the platform is level: compensates the pin angle
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
    """Return slider and bar; only the bar's moment of inertia perpendicular to its plane acts."""
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
