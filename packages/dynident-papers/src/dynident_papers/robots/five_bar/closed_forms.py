"""Five-bar: kinematics and dynamics in closed form [Roldan2017, appendix B.1], its misprints corrected.

Points are (N, 2), driven angles (N, 2) as alpha1, alpha4, all angles (N, 4) as alpha1 to alpha4 [rad]; a `Geometry` holds
lengths and modes, by default from the thesis.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.errors import DynidentError
from dynident_papers.robots.five_bar.data import Geometry
from dynident_papers.robots.shared import columns, direction


@dataclass(frozen=True, eq=False)
class Singularities:
    """Distance of N configurations from singularities: sines of angles between bars, zero at a singularity."""

    serial: Array
    parallel: Array


def inverse_kinematics(P: ArrayLike, geometry: Geometry | None = None) -> Array:
    """Return all angles at positions P = A0 + l1 e(alpha1) + l2 e(alpha2) = B0 + l4 e(alpha4) + l3 e(alpha3).

    The elbows follow from the working mode. The thesis does not print this problem.
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
    """Return P and all angles from the driven ones, in the assembly mode [Roldan2017, eqs. B.18-B.27].

    The intersection of the circles about A and B is computed from its height above A B: no division by x_B - x_A, the sign
    of phi right by construction (a misprint there), angles by atan2, the branch explicit.
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
    """Return J_x and J_q of J_x P_dot = J_q (alpha1_dot, alpha4_dot) [Roldan2017, eqs. B.1-B.5]."""
    g = geometry or Geometry()
    a1, a2, a3, a4 = columns(angles, 4, "angles").T
    J_x = np.stack([g.l2 * direction(a2), g.l3 * direction(a3)], axis=1)
    return J_x, np.stack([g.l1 * g.l2 * np.sin(a2 - a1), g.l3 * g.l4 * np.sin(a3 - a4)], axis=1)


def passive_rates(angles: ArrayLike, rates: ArrayLike, accelerations: ArrayLike, geometry: Geometry | None = None) -> Array:
    """Return velocities and accelerations of the passive bars from the driven ones.

    Solves the closure directly, which is regular at serial singularities where the product [Roldan2017, eq. B.13] is 0/0.
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
    """Return |sin(alpha2 - alpha1)|, |sin(alpha3 - alpha4)| and |sin(alpha3 - alpha2)|, zero at a singularity."""
    a1, a2, a3, a4 = columns(angles, 4, "angles").T
    return Singularities(np.abs(np.stack([np.sin(a2 - a1), np.sin(a3 - a4)], axis=1)), np.abs(np.sin(a3 - a2)))


QUARTER = np.array([[0.0, 1.0], [-1.0, 0.0]])  # e @ QUARTER = e turned by a quarter to the left


def body_jacobians(angles: ArrayLike, geometry: Geometry | None = None) -> Array:
    """Return the Jacobians J_b of the bars, and of P, with respect to the motors [Roldan2017, eqs. B.14-B.17].

    The third row of bar 3 and all of bar 4 are lost in the text; they follow by symmetry.
    """
    g = geometry or Geometry()
    a = columns(angles, 4, "angles")
    unit, zero = np.ones((a.shape[0], 1)), np.zeros((a.shape[0], 1))
    still = np.zeros((a.shape[0], 2))
    first, second = np.hstack([unit, zero]), np.hstack([zero, unit])
    spin = np.zeros((a.shape[0], 4, 2))  # angular velocity of every bar per motor
    for motor, rate in enumerate((first, second)):
        spin[:, [1, 2], motor] = passive_rates(a, rate, still, g)[0]
    spin[:, 0, 0] = spin[:, 3, 1] = 1.0
    side = direction(a) @ QUARTER  # (N, 4, 2)
    sweep = np.array([g.l1, g.l2, g.l3, g.l4])[:, None, None] * side[..., None] * spin[:, :, None, :]  # end of bar to its start
    J = np.zeros((a.shape[0], 5, 3, 2))
    J[:, :4, 2] = spin
    J[:, :4, :2] = 0.5 * sweep
    J[:, 1, :2] += sweep[:, 0]
    J[:, 2, :2] += sweep[:, 3]
    J[:, 4, :2] = sweep[:, 0] + sweep[:, 1]
    return J


def inverse_dynamics(
    angles: ArrayLike,
    rates: ArrayLike,
    accelerations: ArrayLike,
    masses: Sequence[float],
    platform: float = 0.0,
    geometry: Geometry | None = None,
) -> Array:
    """Return the torques of uniform bars, tau = sum_b J_b^T M_b (J_b a + dJ_b/dt v) [Roldan2017, eqs. 4.1-4.8].

    The plane is horizontal; friction and drives are left out.
    """
    if len(masses) != 4:
        raise DynidentError(f"five-bar: {len(masses)} masses are given; give four")
    g = geometry or Geometry()
    a = columns(angles, 4, "angles")
    w, dw = columns(rates, 2, "rates"), columns(accelerations, 2, "accelerations")
    passive = passive_rates(a, w, dw, g)
    spin = np.stack([w[:, 0], passive[0, :, 0], passive[0, :, 1], w[:, 1]], axis=1)[..., None]
    twist = np.stack([dw[:, 0], passive[1, :, 0], passive[1, :, 1], dw[:, 1]], axis=1)
    e = direction(a)
    lengths = np.array([g.l1, g.l2, g.l3, g.l4])
    sweep = lengths[:, None] * (e @ QUARTER * twist[..., None] - e * spin**2)  # acceleration of the end to the start
    J = body_jacobians(a, g)
    middle = 0.5 * sweep
    middle[:, 1] += sweep[:, 0]
    middle[:, 2] += sweep[:, 3]
    tau = platform * np.einsum("nij,ni->nj", J[:, 4, :2], sweep[:, 0] + sweep[:, 1])
    for bar, mass in enumerate(masses):
        tau += mass * np.einsum("nij,ni->nj", J[:, bar, :2], middle[:, bar])
        tau += mass * lengths[bar] ** 2 / 12.0 * J[:, bar, 2] * twist[:, bar, None]
    return np.asarray(tau)
