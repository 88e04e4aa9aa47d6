"""Kinematics of the five-bar in closed form (App. B.1)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.errors import DynidentError
from dynident.robots.five_bar.geometry import Geometry, Singularities, direction
from dynident.robots.samples import columns

Array = NDArray[np.float64]


def inverse_kinematics(P: ArrayLike, geometry: Geometry | None = None) -> Array:
    """Return all angles at positions of P, elbows by the working mode (not printed).

    Parameters
    ----------
    P : array_like, (N, 2)
        Positions [m].
    geometry : Geometry, optional
        Lengths and working mode.

    Returns
    -------
    ndarray, (N, 4)
        alpha1 to alpha4 [rad].
    """
    g = geometry or Geometry()
    points = columns(P, 2, "P")
    angles = np.empty((points.shape[0], 4))
    legs = ((0, 1, g.l1, g.l2), (3, 2, g.l4, g.l3))
    for origin, sign, (driven, passive, proximal, distal) in zip(g.bases, g.working_mode, legs, strict=True):
        reach = points - origin
        cosine = (np.sum(reach**2, axis=1) - proximal**2 - distal**2) / (2.0 * proximal * distal)
        if np.any(np.abs(cosine) > 1.0):
            sample = int(np.argmax(np.abs(cosine) > 1.0))
            raise DynidentError(
                f"five-bar: the leg of alpha{driven + 1} cannot reach P = {points[sample].tolist()} at sample {sample}; "
                "keep P inside the workspace"
            )
        elbow = sign * np.arccos(cosine)
        pointing = np.arctan2(reach[:, 1], reach[:, 0])
        angles[:, driven] = pointing - np.arctan2(distal * np.sin(elbow), proximal + distal * cosine)
        angles[:, passive] = angles[:, driven] + elbow
    return angles


def forward_kinematics(alpha: ArrayLike, geometry: Geometry | None = None) -> tuple[Array, Array]:
    """Return P and all angles from the driven ones, in the assembly mode (B.18)-(B.27).

    The circles about A and B meet at a height beside A B, however it is turned: no division by x_B - x_A, the sign of phi
    right by construction (a misprint there), angles by atan2, the branch explicit.

    Parameters
    ----------
    alpha : array_like, (N, 2)
        alpha1, alpha4 [rad].
    geometry : Geometry, optional
        Lengths and assembly mode.

    Returns
    -------
    P : ndarray, (N, 2)
        Positions [m].
    angles : ndarray, (N, 4)
        alpha1 to alpha4 [rad].
    """
    g = geometry or Geometry()
    driven = columns(alpha, 2, "alpha")
    A = g.bases[0] + g.l1 * direction(driven[:, 0])
    B = g.bases[1] + g.l4 * direction(driven[:, 1])
    gap = B - A
    square = np.sum(gap**2, axis=1)
    safe = np.where(square > 0.0, square, 1.0)
    along = 0.5 * (1.0 + (g.l2**2 - g.l3**2) / safe)
    height = g.l2**2 / safe - along**2
    if np.any((height < 0.0) | (square == 0.0)):
        sample = int(np.argmax((height < 0.0) | (square == 0.0)))
        raise DynidentError(
            f"five-bar: bars 2 and 3 do not meet at sample {sample} (alpha1, alpha4 = {driven[sample].tolist()}); "
            "these motor angles cannot be assembled"
        )
    left = np.stack([-gap[:, 1], gap[:, 0]], axis=1)
    P = A + along[:, None] * gap + (g.assembly_mode * np.sqrt(height))[:, None] * left
    passive = [np.arctan2(*(P - end).T[::-1]) for end in (A, B)]
    return P, np.stack([driven[:, 0], *passive, driven[:, 1]], axis=1)


def jacobians(angles: ArrayLike, geometry: Geometry | None = None) -> tuple[Array, Array]:
    """Return J_x and J_q of J_x P_dot = J_q (alpha1_dot, alpha4_dot) (B.1)-(B.5).

    Parameters
    ----------
    angles : array_like, (N, 4)
        alpha1 to alpha4.
    geometry : Geometry, optional
        Lengths.

    Returns
    -------
    J_x : ndarray, (N, 2, 2)
        Rows along the distal bars; l3 in the second (printed l2).
    J_q : ndarray, (N, 2)
        Its diagonal.
    """
    g = geometry or Geometry()
    a1, a2, a3, a4 = columns(angles, 4, "angles").T
    J_x = np.stack([g.l2 * direction(a2), g.l3 * direction(a3)], axis=1)
    return J_x, np.stack([g.l1 * g.l2 * np.sin(a2 - a1), g.l3 * g.l4 * np.sin(a3 - a4)], axis=1)


def passive_rates(angles: ArrayLike, rates: ArrayLike, accelerations: ArrayLike, geometry: Geometry | None = None) -> Array:
    """Return velocities and accelerations of the passive bars from those of the driven ones.

    Solves the closure directly, which is regular at serial singularities where the product (B.13) is 0/0.

    Parameters
    ----------
    angles : array_like, (N, 4)
        alpha1 to alpha4.
    rates, accelerations : array_like, (N, 2)
        Of alpha1 and alpha4.
    geometry : Geometry, optional
        Lengths.

    Returns
    -------
    ndarray, (2, N, 2)
        Velocities, then accelerations, of alpha2 and alpha3.
    """
    g = geometry or Geometry()
    a1, a2, a3, a4 = columns(angles, 4, "angles").T
    w, dw = columns(rates, 2, "rates"), columns(accelerations, 2, "accelerations")
    e1, e2, e3, e4 = (direction(a) for a in (a1, a2, a3, a4))
    turn = np.array([[0.0, 1.0], [-1.0, 0.0]])  # e @ turn = e turned by a quarter to the left
    left = np.stack([g.l2 * e2 @ turn, -g.l3 * e3 @ turn], axis=2)
    if np.any(np.abs(np.sin(a3 - a2)) < 1e-12):
        raise DynidentError(
            f"five-bar: parallel singularity at sample {int(np.argmin(np.abs(np.sin(a3 - a2))))}; keep away from it"
        )
    right = -g.l1 * e1 @ turn * w[:, :1] + g.l4 * e4 @ turn * w[:, 1:]
    v = np.linalg.solve(left, right[..., None])[..., 0]
    right = -g.l1 * e1 @ turn * dw[:, :1] + g.l4 * e4 @ turn * dw[:, 1:]
    right = (
        right + g.l1 * e1 * w[:, :1] ** 2 - g.l4 * e4 * w[:, 1:] ** 2 + g.l2 * e2 * v[:, :1] ** 2 - g.l3 * e3 * v[:, 1:] ** 2
    )
    return np.stack([v, np.linalg.solve(left, right[..., None])[..., 0]])


def singularities(angles: ArrayLike) -> Singularities:
    """Return how near configurations are to serial and parallel singularities.

    Parameters
    ----------
    angles : array_like, (N, 4)
        alpha1 to alpha4.

    Returns
    -------
    Singularities
        Sines of the angles between bars; `Singularities.flagged` names the samples.
    """
    a1, a2, a3, a4 = columns(angles, 4, "angles").T
    return Singularities(np.abs(np.stack([np.sin(a2 - a1), np.sin(a3 - a4)], axis=1)), np.abs(np.sin(a3 - a2)))
