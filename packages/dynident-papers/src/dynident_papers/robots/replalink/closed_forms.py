"""RePlaLink: the closed forms of [Roldan2017, section 6.2]."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.checks import choice
from dynident.errors import DynidentError
from dynident.mechanics import Motion
from dynident_papers.robots.replalink.data import (
    ASSEMBLY_MODES,
    BASE_LEADERS,
    FUNDAMENTAL,
    INITIAL_AMPLITUDES,
    PARAMETER_NAMES,
    RECOVERED,
    SAMPLING,
    START,
    THEORETICAL,
    THESIS_EQUATIONS,
    Geometry,
)
from dynident_papers.robots.shared import direction, fourier, parameter_values, samples_of, system


def thesis_system() -> tuple[Array, Array]:
    """Return C and V of C Phi = V, equations (6.47) to (6.64) of [Roldan2017] as printed."""
    return system(THESIS_EQUATIONS, PARAMETER_NAMES)


def initial_motion(sampling: float = SAMPLING) -> Motion:
    """Return one period of the motion with which the thesis starts its optimisation [Roldan2017, Table 6.3]."""
    C, D = INITIAL_AMPLITUDES
    return fourier(np.arange(0.0, 1.0 / FUNDAMENTAL - 0.5 * sampling, sampling), START, C, D, FUNDAMENTAL)


@dataclass(frozen=True, eq=False)
class Pose:
    """All angles and points of the mechanism."""

    angles: Array  # alpha1 (A0-A), alpha2 (A-D), alpha3 (B-C), alpha4 (B0-B), all against the x axis [rad]
    A: Array  # Joint A [m], A0 at the origin and B0 at (base, 0)
    B: Array  # Joint B [m]
    C: Array  # Joint C [m]
    D: Array  # Tool D [m]


def forward_kinematics(q: ArrayLike, assembly: str = "up", geometry: Geometry = RECOVERED) -> Pose:
    """Return the pose for motor angles, C by the intersection of two circles.

    The closed form of [Roldan2017, eqs. B.18-B.27] divides by x_B - x_A and has a wrong sign in phi; its passive angles
    by arccos lose half of the turn.
    """
    (drive,) = samples_of(2, q=q)
    g, side = geometry, 1.0 if choice("assembly", assembly, ASSEMBLY_MODES) == "up" else -1.0
    A = g.a0a * direction(drive[:, 0])
    B = np.array([g.base, 0.0]) + g.b0b * direction(drive[:, 1])
    across = B - A
    span = np.hypot(across[:, 0], across[:, 1])
    far = (span > g.ac + g.bc) | (span < abs(g.ac - g.bc)) | (span == 0.0)
    if np.any(far):
        bad = int(np.argmax(far))
        raise DynidentError(
            f"motor angles at sample {bad} ({drive[bad].tolist()} rad) put A and B {span[bad]:.4g} m apart, which bars of "
            f"{g.ac} and {g.bc} m cannot bridge; keep to the joint space"
        )
    along = (g.ac**2 - g.bc**2 + span**2) / (2.0 * span)
    height = side * np.sqrt(np.maximum(g.ac**2 - along**2, 0.0))
    e = across / span[:, None]
    normal = np.stack([-e[:, 1], e[:, 0]], axis=1)
    C = A + along[:, None] * e + height[:, None] * normal
    alpha2 = np.arctan2(C[:, 1] - A[:, 1], C[:, 0] - A[:, 0])
    alpha3 = np.arctan2(C[:, 1] - B[:, 1], C[:, 0] - B[:, 0])
    angles = np.stack([drive[:, 0], alpha2, alpha3, drive[:, 1]], axis=1)
    return Pose(angles, A, B, C, A + g.ad * direction(alpha2))


def inverse_kinematics(tool: ArrayLike, geometry: Geometry = RECOVERED) -> Array:
    """Return the motor angles for a place of the tool D, by the two-link arms A0-A-D and B0-B-C."""
    (place,) = samples_of(2, tool=tool)
    g = geometry
    out = np.empty((len(place), 4, 2))
    for i, bend in enumerate((1.0, -1.0)):
        alpha1 = _two_link(place, g.a0a, g.ad, bend)
        A = g.a0a * direction(alpha1)
        C = A + (g.ac / g.ad) * (place - A)
        for k, other in enumerate((1.0, -1.0)):
            out[:, 2 * i + k, 0] = alpha1
            out[:, 2 * i + k, 1] = _two_link(C - np.array([g.base, 0.0]), g.b0b, g.bc, other)
    out[np.isnan(out).any(axis=2)] = np.nan
    return out


def _two_link(point: Array, near: float, far: float, bend: float) -> Array:
    """Return the angle of the near link of a two-link arm whose second link is bent by `bend` (sign of its relative angle)."""
    reach = np.hypot(point[:, 0], point[:, 1])
    with np.errstate(divide="ignore", invalid="ignore"):
        cosine = (near**2 + reach**2 - far**2) / (2.0 * near * reach)
        inner = np.arccos(cosine)
    angle = np.arctan2(point[:, 1], point[:, 0]) - bend * inner
    return np.asarray(np.arctan2(np.sin(angle), np.cos(angle)))


def singularity(q: ArrayLike, assembly: str = "up", geometry: Geometry = RECOVERED) -> tuple[Array, Array]:
    """Return the distances from singularities, 1 at best and 0 at a singularity."""
    a1, a2, a3, a4 = forward_kinematics(q, assembly, geometry).angles.T
    return np.abs(np.sin(a3 - a2)), np.minimum(np.abs(np.sin(a2 - a1)), np.abs(np.sin(a3 - a4)))


def passive_jacobian(angles: Array, v: Array, geometry: Geometry) -> tuple[Array, Array]:
    """Return J with (alpha2, alpha3)' = J (alpha1, alpha4)', and its time derivative.

    From the loop closure along e(alpha3) and e(alpha2); the product (B.13) of the thesis is 0/0 where a leg is stretched.
    """
    g = geometry
    a1, a2, a3, a4 = angles.T
    if len(a1) and np.min(np.abs(np.sin(a3 - a2))) < 1e-9:
        raise DynidentError(
            f"bars A-C and B-C are in line at sample {int(np.argmin(np.abs(np.sin(a3 - a2))))}: parallel singularity, where "
            "the motors do not hold C; keep away from it"
        )
    # Each entry is +- near sin(x - y) / (far sin(z - w)).
    entries = (
        ((a3, a1, -g.a0a), (a3, a4, g.b0b), (a3, a2, g.ac)),
        ((a2, a1, g.a0a), (a2, a4, -g.b0b), (a2, a3, g.bc)),
    )
    J, J_dot = np.empty((len(a1), 2, 2)), np.empty((len(a1), 2, 2))
    for row, (*tops, (z, w, far)) in enumerate(entries):
        for column, (x, y, near) in enumerate(tops):
            J[:, row, column] = near * np.sin(x - y) / (far * np.sin(z - w))
    passive = np.einsum("sij,sj->si", J, v)
    rate = {id(a1): v[:, 0], id(a2): passive[:, 0], id(a3): passive[:, 1], id(a4): v[:, 1]}
    for row, (*tops, (z, w, far)) in enumerate(entries):
        bottom, bottom_dot = far * np.sin(z - w), far * np.cos(z - w) * (rate[id(z)] - rate[id(w)])
        for column, (x, y, near) in enumerate(tops):
            top_dot = near * np.cos(x - y) * (rate[id(x)] - rate[id(y)])
            J_dot[:, row, column] = (top_dot - J[:, row, column] * bottom_dot) / bottom
    return J, J_dot


def body_jacobians(q: ArrayLike, v: ArrayLike, assembly: str = "up", geometry: Geometry = RECOVERED) -> tuple[Array, Array]:
    """Return the Jacobians J_b of bars 1 to 4 and of the mass at D, and their time derivatives [Roldan2017, appendix B.1].

    The printed second row of (B.2) has l2 for l3; rows lost in (B.16) and (B.17) are reconstructed.
    """
    drive, speed = samples_of(2, q=q, v=v)
    g = geometry
    angles = forward_kinematics(drive, assembly, g).angles
    P, P_dot = passive_jacobian(angles, speed, g)
    turn, turn_dot = np.zeros((len(drive), 4, 2)), np.zeros((len(drive), 4, 2))
    turn[:, 0, 0] = turn[:, 3, 1] = 1.0
    turn[:, 1:3], turn_dot[:, 1:3] = P, P_dot
    rate = np.einsum("sij,sj->si", turn, speed)
    e = direction(angles)
    normal = np.stack([-e[..., 1], e[..., 0]], axis=-1)  # de/dangle
    J, J_dot = np.zeros((len(drive), 5, 3, 2)), np.zeros((len(drive), 5, 3, 2))
    # Each centre of mass is a sum of lengths along bars: (bar, length) pairs.
    chains = (
        ((0, g.com1),),
        ((0, g.a0a), (1, g.com2)),
        ((3, g.b0b), (2, g.com3)),
        ((3, g.com4),),
        ((0, g.a0a), (1, g.ad)),
    )
    for body, chain in enumerate(chains):
        for bar, length in chain:
            J[:, body, :2] += length * normal[:, bar, :, None] * turn[:, bar, None]
            J_dot[:, body, :2] += length * normal[:, bar, :, None] * turn_dot[:, bar, None]
            J_dot[:, body, :2] -= length * (rate[:, bar, None] * e[:, bar])[:, :, None] * turn[:, bar, None]
    J[:, :4, 2], J_dot[:, :4, 2] = turn, turn_dot
    J[:, 4, 2], J_dot[:, 4, 2] = turn[:, 1], turn_dot[:, 1]
    return J, J_dot


def regressor(
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    assembly: str = "up",
    gravity: float = 0.0,
    geometry: Geometry = RECOVERED,
) -> Array:
    """Return K with tau = K Phi, by energy equivalence [Roldan2017, eq. 6.44].

    (6.35) lacks the rows of the second motor and (6.5) has the translational instead of the rotational Jacobian; both follow
    (5.9) to (5.12) here.
    """
    drive, speed, acceleration = samples_of(2, q=q, v=v, a=a)
    J, J_dot = body_jacobians(drive, speed, assembly, geometry)
    motion = np.einsum("sbij,sj->sbi", J, acceleration) + np.einsum("sbij,sj->sbi", J_dot, speed)
    K = np.zeros((len(drive), 2, 15))
    K[:, :, :5] = np.einsum("sbij,sbi->sjb", J[:, :, :2], motion[:, :, :2] + [0.0, gravity])
    K[:, :, 5:9] = np.einsum("sbj,sb->sjb", J[:, :4, 2], motion[:, :4, 2])
    rows = [0, 1]
    K[:, rows, [9, 10]] = acceleration
    K[:, rows, [11, 12]] = np.sign(speed)
    K[:, rows, [13, 14]] = speed
    return K


def inverse_dynamics(
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    parameters: Mapping[str, float] | None = None,
    assembly: str = "up",
    geometry: Geometry = RECOVERED,
) -> Array:
    """Return the motor torques tau = K(q, v, a) Phi = M a + C v + Fc sign(v) + c v, in the horizontal plane."""
    phi = parameter_values(parameters, PARAMETER_NAMES, THEORETICAL)
    return np.asarray(regressor(q, v, a, assembly, 0.0, geometry) @ phi)


def dynamics_matrices(
    q: ArrayLike,
    v: ArrayLike,
    parameters: Mapping[str, float] | None = None,
    assembly: str = "up",
    geometry: Geometry = RECOVERED,
) -> tuple[Array, Array]:
    """Return M = sum J_b^T M_b J_b + diag(I6, I7) and C = sum J_b^T M_b dJ_b/dt of tau = M a + C v."""
    phi = parameter_values(parameters, PARAMETER_NAMES, THEORETICAL)
    J, J_dot = body_jacobians(q, v, assembly, geometry)
    mass = np.stack([phi[:5], phi[:5], np.array([*phi[5:9], 0.0])], axis=1)
    M, C = (np.einsum("sbij,bi,sbik->sjk", J, mass, right) for right in (J, J_dot))
    return M + np.diag(phi[9:11]), C


def base_matrix(geometry: Geometry = RECOVERED) -> Array:
    """Return K of the exact base parameters beta = K Phi, of rank 9, in the horizontal plane [Roldan2017, eqs. 6.47-6.55].

    For a bar XY of length l with the centre of mass at the fraction s, and any point of it at the fraction r,

        alpha_dot^2 = ((1-s) v_X^2 + s v_Y^2 - v_c^2) / (s (1-s) l^2),   v_r^2 = (1-r) v_X^2 + r v_Y^2 - r (1-r) l^2 alpha_dot^2

    so every moment is a combination of masses; A, B move like the centres of mass of the driven bars, and C is on bar A-D.
    """
    g = geometry
    column = {name: i for i, name in enumerate(PARAMETER_NAMES)}
    row = {name: i for i, name in enumerate(BASE_LEADERS)}
    unit = {name: np.eye(9)[i] for name, i in row.items()}
    at_A = (g.a0a / g.com1) ** 2 * unit["m1"]  # equivalent of 1 kg at A
    at_B = (g.b0b / g.com4) ** 2 * unit["m4"]
    s, k = g.com2 / g.ad, g.ac / g.ad
    turn2 = ((1.0 - s) * at_A + s * unit["m5"] - unit["m2"]) / (s * (1.0 - s) * g.ad**2)
    at_C = (1.0 - k) * at_A + k * unit["m5"] - k * (1.0 - k) * g.ad**2 * turn2
    s = g.com3 / g.bc
    turn3 = ((1.0 - s) * at_B + s * at_C - unit["m3"]) / (s * (1.0 - s) * g.bc**2)
    K = np.zeros((9, 15))
    for name, i in row.items():
        K[i, column[name]] = 1.0
    for name, combination in (
        ("I1", unit["m1"] / g.com1**2),
        ("I6", unit["m1"] / g.com1**2),
        ("I2", turn2),
        ("I3", turn3),
        ("I4", unit["m4"] / g.com4**2),
        ("I7", unit["m4"] / g.com4**2),
    ):
        K[:, column[name]] = combination
    return K
