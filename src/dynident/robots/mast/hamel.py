"""Rotation of a body by the Boltzmann-Hamel equations: quasi-velocities w, angles as coordinates [Roldan2017, section 3.4.2].

    w = D^T q_dot,   T = w^T I w / 2                                                                       (3.44), (3.64)
    D d/dt(dT/dw) + Omega dT/dw = tau_q,     Omega = D_dot - [q_dot^T dD/dq]                               (3.60), (3.61)
    m = H^T tau_q = I w_dot + w x I w,       H = (D^T)^-1                                                  (3.64)

The moments tau_q belong to the angles, so they are projected with dq/dx; (3.65) prints J_R^T, which is for m.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.errors import DynidentError

Array = NDArray[np.float64]

SEQUENCES = ("yxz", "zxz")
"""R = Ry(theta) Rx(psi) Rz(phi), regular at a level platform; and Euler's angles of (3.44), singular there."""


def rate_matrix(angles: Array, sequence: str = "yxz") -> tuple[Array, Array]:
    """Return D^T with w = D^T q_dot, and its slopes."""
    if sequence not in SEQUENCES:
        raise DynidentError(f"sequence of angles is {sequence!r}; it is one of {', '.join(SEQUENCES)}")
    D, slope = np.zeros((len(angles), 3, 3)), np.zeros((len(angles), 3, 3, 3))
    (c0, c1, c2), (s0, s1, s2) = np.cos(angles).T, np.sin(angles).T
    D[:, 2, 2] = 1.0
    if sequence == "yxz":
        D[:, 0, 0], D[:, 0, 1] = s2 * c1, c2
        D[:, 1, 0], D[:, 1, 1], D[:, 2, 0] = c2 * c1, -s2, -s1
        slope[:, 1, 0, 0], slope[:, 1, 1, 0], slope[:, 1, 2, 0] = -s2 * s1, -c2 * s1, -c1
        slope[:, 2, 0, 0], slope[:, 2, 0, 1] = c2 * c1, -s2
        slope[:, 2, 1, 0], slope[:, 2, 1, 1] = -s2 * c1, -c2
        return D, slope
    D[:, 0, 0], D[:, 0, 1], D[:, 1, 0], D[:, 1, 1], D[:, 2, 1] = c2, s0 * s2, -s2, s0 * c2, c0
    slope[:, 0, 0, 1], slope[:, 0, 1, 1], slope[:, 0, 2, 1] = c0 * s2, c0 * c2, -s0
    slope[:, 2, 0, 0], slope[:, 2, 0, 1], slope[:, 2, 1, 0], slope[:, 2, 1, 1] = -s2, s0 * c2, -c2, -s0 * s2
    return D, slope


def generalised_moments(angles: Array, rates: Array, accelerations: Array, inertia: ArrayLike, sequence: str = "yxz") -> Array:
    """Return tau_q of the Boltzmann-Hamel equations (3.60)."""
    I_mp = np.asarray(inertia, dtype=np.float64)
    D, slope = rate_matrix(angles, sequence)
    D_dot = np.einsum("skij,sk->sij", slope, rates)
    w = np.einsum("sij,sj->si", D, rates)
    w_dot = np.einsum("sij,sj->si", D, accelerations) + np.einsum("sij,sj->si", D_dot, rates)
    momentum, change = w @ I_mp.T, w_dot @ I_mp.T
    # (3.56): dT/dq_k = q_dot^T dD/dq_k dT/dw
    gradient = np.einsum("skij,sj,si->sk", slope, rates, momentum)
    return np.asarray(np.einsum("sij,si->sj", D, change) + np.einsum("sij,si->sj", D_dot, momentum) - gradient)


def body_moments(w: Array, w_dot: Array, inertia: ArrayLike) -> Array:
    """Return m = I w_dot + w x I w (3.64), in body axes and without singularity."""
    I_mp = np.asarray(inertia, dtype=np.float64)
    return np.asarray(w_dot @ I_mp.T + np.cross(w, w @ I_mp.T))
