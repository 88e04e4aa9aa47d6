"""Dynamics of the five-bar by the principle of energy equivalence, bar by bar (4.1)-(4.8), (B.14)-(B.17)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.errors import DynidentError
from dynident.robots.five_bar.geometry import Geometry, direction
from dynident.robots.five_bar.kinematics import passive_rates
from dynident.robots.samples import columns

Array = NDArray[np.float64]

QUARTER = np.array([[0.0, 1.0], [-1.0, 0.0]])  # e @ QUARTER = e turned by a quarter to the left


def body_jacobians(angles: ArrayLike, geometry: Geometry | None = None) -> Array:
    """Return the Jacobians of the bars, and of P, with respect to the motors (B.14)-(B.17).

    The third row of bar 3 and all of bar 4 are lost in the text; they follow by symmetry.

    Parameters
    ----------
    angles : array_like, (N, 4)
        alpha1 to alpha4.
    geometry : Geometry, optional
        Lengths.

    Returns
    -------
    ndarray, (N, 5, 3, 2)
        Rows x_dot, y_dot of the middle of the bar and its angular velocity; columns alpha1, alpha4. The fifth is P.
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
    """Return the torques that move uniform bars: tau = sum J_b^T M_b (J_b a + Jdot_b v) (4.1)-(4.8), no gravity, no friction.

    Parameters
    ----------
    angles : array_like, (N, 4)
        alpha1 to alpha4.
    rates, accelerations : array_like, (N, 2)
        Of alpha1 and alpha4.
    masses : sequence of float, (4,)
        Of the bars [kg].
    platform : float
        Mass at P [kg].
    geometry : Geometry, optional
        Lengths.

    Returns
    -------
    ndarray, (N, 2)
        Torques at alpha1 and alpha4, behind the gears [N m].
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
