"""Slider forces by the principle of energy equivalence, body by body, and by Boltzmann-Hamel [Roldan2017, 3.4, 4.2.1].

    t = sum_b J_b^T f_b,    f_b = M_b (J_b q_ddot + J_b_dot q_dot) + g_b                                   (3.37), (4.20)

The mechanism is cut into free bodies: three sliders, three bars moving in their planes, the translation of the platform and
its rotation. Each gives the forces of its own motion, projected to the sliders by the Jacobian of its own coordinates;
joint reactions cancel in the sum. The rotation of the platform is written either with body moments, J_R^T (I w_dot + w x I w),
or with the moments of its angles after Boltzmann and Hamel: (3.69) and (3.70) of the thesis.

    w = D^T q_dot,   D d/dt(dT/dw) + Omega dT/dw = tau_q,   Omega = D_dot - [q_dot^T dD/dq]          (3.44), (3.60), (3.61)

The moments tau_q belong to the angles, so they are projected with dq/dx; (3.65) prints J_R^T, which is for body moments.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from dynident.arrays import Array
from dynident.checks import choice
from dynident.errors import DynidentError
from dynident_papers.robots.tripod import (
    LegMotion,
    PlatformMotion,
    Tripod,
    check_parallel,
    leg_motion,
    platform_motion,
    rate_matrix,
)

FORMULATIONS = ("energy", "boltzmann-hamel")


@dataclass(frozen=True, eq=False)
class Bodies:
    """Masses of a robot with three PR legs."""

    bar_mass: float  # Mass of each bar [kg]
    bar_inertia: float  # Moment of inertia of each bar about its centre, perpendicular to its plane [kg m^2]
    platform_mass: float  # Mass of the platform [kg]
    platform_inertia: Array  # I_mp about the platform's centre of mass, platform axes [kg m^2]
    bar_centre: float = 0.5  # Place of the bar's centre of mass as a share of its length from the pin
    platform_centre: Array = field(default_factory=lambda: np.zeros(3))  # Centre of mass of the platform in its frame [m]
    slider_mass: float = 0.0  # Mass of each slider [kg]
    gravity: float = 9.81  # Along -z [m/s^2]

    def __post_init__(self) -> None:
        for label, shape in (("platform_inertia", (3, 3)), ("platform_centre", (3,))):
            array = np.array(getattr(self, label), dtype=np.float64)
            if array.shape != shape or not np.all(np.isfinite(array)):
                raise DynidentError(f"{label} is {array.tolist()}; give finite numbers of shape {shape}")
            object.__setattr__(self, label, array)
        for label in ("bar_mass", "bar_inertia", "platform_mass", "slider_mass"):
            if not getattr(self, label) >= 0.0:
                raise DynidentError(f"{label} is {getattr(self, label)}; give a number that is not negative")


def _unit_motions(t: Tripod, x: Array, signs: Array) -> list[tuple[PlatformMotion, LegMotion]]:
    """Return the motions at unit velocities of z, psi, theta: columns of all Jacobians."""
    zero = np.zeros_like(x)
    return [(platform_motion(t, x, zero + unit, zero), leg_motion(t, x, zero + unit, zero, signs)) for unit in np.eye(3)]


def _columns(values: list[Array]) -> Array:
    return np.stack(values, axis=-1)


def body_jacobians(t: Tripod, x: Array, signs: Array, bodies: Bodies) -> dict[str, Array]:
    """Return the Jacobian of every body with respect to z, psi, theta."""
    units = _unit_motions(t, x, signs)
    found: dict[str, Array] = {}
    share = bodies.bar_centre
    for i in range(3):
        found[f"slider_{i + 1}"] = _columns([leg.foot_dot[:, i] for _, leg in units])
        centre = _columns([(1.0 - share) * leg.foot_dot[:, i] + share * leg.joint_dot[:, i] for _, leg in units])
        found[f"bar_{i + 1}"] = np.concatenate([centre, _columns([leg.gamma_dot[:, i, None] for _, leg in units])], axis=1)
    c = bodies.platform_centre
    found["translation"] = _columns([p.v + np.einsum("sij,sj->si", p.R, np.cross(p.w, c)) for p, _ in units])
    found["rotation"] = _columns([p.w for p, _ in units])
    found["angles"] = _columns([p.angle_rates for p, _ in units])
    return found


def generalised_moments(angles: Array, rates: Array, accelerations: Array, inertia: Array) -> Array:
    """Return tau_q of the Boltzmann-Hamel equations (3.60)."""
    D, slope = rate_matrix(angles)
    D_dot = np.einsum("skij,sk->sij", slope, rates)
    w = np.einsum("sij,sj->si", D, rates)
    w_dot = np.einsum("sij,sj->si", D, accelerations) + np.einsum("sij,sj->si", D_dot, rates)
    momentum, change = w @ inertia.T, w_dot @ inertia.T
    gradient = np.einsum("skij,sj,si->sk", slope, rates, momentum)  # (3.56): dT/dq_k = q_dot^T dD/dq_k dT/dw
    return np.asarray(np.einsum("sij,si->sj", D, change) + np.einsum("sij,si->sj", D_dot, momentum) - gradient)


def body_moments(w: Array, w_dot: Array, inertia: Array) -> Array:
    """Return m = I w_dot + w x I w (3.64), in body axes and without singularity."""
    return np.asarray(w_dot @ inertia.T + np.cross(w, w @ inertia.T))


def contributions(
    t: Tripod, x: Array, v: Array, a: Array, signs: Array, bodies: Bodies, formulation: str = "energy"
) -> dict[str, Array]:
    """Return the contribution of each body to the forces of z, psi, theta."""
    choice("formulation", formulation, FORMULATIONS)
    J = body_jacobians(t, x, signs, bodies)
    p, leg = platform_motion(t, x, v, a), leg_motion(t, x, v, a, signs)
    share, up, c = bodies.bar_centre, np.array([0.0, bodies.gravity]), bodies.platform_centre
    forces: dict[str, Array] = {}
    for i in range(3):
        forces[f"slider_{i + 1}"] = bodies.slider_mass * (leg.foot_ddot[:, i] + up)
        centre = (1.0 - share) * leg.foot_ddot[:, i] + share * leg.joint_ddot[:, i] + up
        turning = bodies.bar_inertia * leg.gamma_ddot[:, i, None]
        forces[f"bar_{i + 1}"] = np.concatenate([bodies.bar_mass * centre, turning], axis=1)
    swing = np.cross(p.w_dot, c) + np.cross(p.w, np.cross(p.w, c))
    lift = np.array([0.0, 0.0, bodies.gravity])
    forces["translation"] = bodies.platform_mass * (p.a + np.einsum("sij,sj->si", p.R, swing) + lift)
    if formulation == "energy":
        forces["rotation"] = body_moments(p.w, p.w_dot, bodies.platform_inertia)
    else:
        forces["angles"] = generalised_moments(p.angles, p.angle_rates, p.angle_accelerations, bodies.platform_inertia)
    return {name: np.einsum("sij,si->sj", J[name], force) for name, force in forces.items()}


def slider_forces(t: Tripod, x: Array, generalised: Array, A: Array) -> Array:
    """Return slider forces from forces of z, psi, theta: A^T t = f."""
    check_parallel(t, A, x)
    return np.asarray(np.linalg.solve(np.swapaxes(A, 1, 2), generalised[:, :, None])[:, :, 0])


def mass_matrix(t: Tripod, x: Array, signs: Array, bodies: Bodies) -> Array:
    """Return the mass matrix of z, psi, theta, sum_b J_b^T M_b J_b."""
    M = np.zeros((len(x), 3, 3))
    bar, slider = np.diag([bodies.bar_mass, bodies.bar_mass, bodies.bar_inertia]), bodies.slider_mass * np.eye(2)
    own = {f"bar_{i}": bar for i in (1, 2, 3)} | {f"slider_{i}": slider for i in (1, 2, 3)}
    own |= {"translation": bodies.platform_mass * np.eye(3), "rotation": bodies.platform_inertia}
    for name, J in body_jacobians(t, x, signs, bodies).items():
        if name in own:
            M += np.swapaxes(J, 1, 2) @ own[name] @ J
    return M
