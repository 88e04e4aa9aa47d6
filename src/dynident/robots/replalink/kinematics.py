"""Kinematics of RePlaLink in closed form: a five-bar with the tool D on the bar A-C, beyond C.

A = A0 + a0a e(alpha1),   B = B0 + b0b e(alpha4),   C = A + ac e(alpha2) = B + bc e(alpha3),   D = A + ad e(alpha2)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.errors import DynidentError
from dynident.robots.prr2.inputs import choice, samples_of
from dynident.robots.replalink.data import ASSEMBLY_MODES, RECOVERED, Geometry

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Pose:
    """All angles and points of the mechanism.

    Parameters
    ----------
    angles : ndarray, (N, 4)
        alpha1 (A0-A), alpha2 (A-D), alpha3 (B-C), alpha4 (B0-B), all against the x axis [rad].
    A, B, C, D : ndarray, (N, 2)
        Joints and tool [m], A0 at the origin and B0 at (base, 0).
    """

    angles: Array
    A: Array
    B: Array
    C: Array
    D: Array


def _unit(angle: Array) -> Array:
    return np.stack([np.cos(angle), np.sin(angle)], axis=-1)


def forward_kinematics(q: ArrayLike, assembly: str = "up", geometry: Geometry = RECOVERED) -> Pose:
    """Return the pose for motor angles, C by the intersection of two circles.

    The closed form of the thesis (B.18 to B.27) divides by x_B - x_A and has a wrong sign in phi; its passive angles
    by arccos lose half of the turn.

    Parameters
    ----------
    q : array_like, (N, 2)
        alpha1, alpha4 [rad].
    assembly : {"up", "down"}
        Side of the line A-B on which C is.
    geometry : Geometry
        Lengths.

    Returns
    -------
    Pose
        Angles and points.
    """
    (drive,) = samples_of(2, q=q)
    g, side = geometry, 1.0 - 2.0 * choice(assembly, ASSEMBLY_MODES, "assembly")
    A = g.a0a * _unit(drive[:, 0])
    B = np.array([g.base, 0.0]) + g.b0b * _unit(drive[:, 1])
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
    return Pose(angles, A, B, C, A + g.ad * _unit(alpha2))


def inverse_kinematics(tool: ArrayLike, geometry: Geometry = RECOVERED) -> Array:
    """Return the motor angles for a place of the tool D.

    Parameters
    ----------
    tool : array_like, (N, 2)
        D [m].
    geometry : Geometry
        Lengths.

    Returns
    -------
    ndarray, (N, 4, 2)
        alpha1, alpha4 [rad] in (-pi, pi], second axis in the order of `WORKING_MODES`; NaN out of reach.
    """
    (place,) = samples_of(2, tool=tool)
    g = geometry
    out = np.empty((len(place), 4, 2))
    for i, bend in enumerate((1.0, -1.0)):
        alpha1 = _two_link(place, g.a0a, g.ad, bend)
        A = g.a0a * _unit(alpha1)
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
    """Return how far the mechanism is from its singularities, 1 at best and 0 on one.

    Parameters
    ----------
    q : array_like, (N, 2)
        alpha1, alpha4 [rad].
    assembly : {"up", "down"}
        Assembly mode.
    geometry : Geometry
        Lengths.

    Returns
    -------
    parallel, serial : ndarray, (N,)
        |sin(alpha3 - alpha2)| (the motors do not hold C) and the smaller of |sin(alpha2 - alpha1)|, |sin(alpha3 - alpha4)|.
    """
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
    """Return the Jacobians of bars 1 to 4 and of the mass at D, and their time derivatives.

    The printed second row of (B.2) has l2 for l3; rows lost in (B.16) and (B.17) are reconstructed.

    Parameters
    ----------
    q, v : array_like, (N, 2)
        alpha1, alpha4 and their speeds.
    assembly : {"up", "down"}
        Assembly mode.
    geometry : Geometry
        Lengths.

    Returns
    -------
    J, J_dot : ndarray, (N, 5, 3, 2)
        Rows x, y of the centre of mass and angle; columns alpha1, alpha4.
    """
    drive, speed = samples_of(2, q=q, v=v)
    g = geometry
    angles = forward_kinematics(drive, assembly, g).angles
    P, P_dot = passive_jacobian(angles, speed, g)
    turn, turn_dot = np.zeros((len(drive), 4, 2)), np.zeros((len(drive), 4, 2))
    turn[:, 0, 0] = turn[:, 3, 1] = 1.0
    turn[:, 1:3], turn_dot[:, 1:3] = P, P_dot
    rate = np.einsum("sij,sj->si", turn, speed)
    e = _unit(angles)
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
