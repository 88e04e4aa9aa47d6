"""Dynamics of the 2-PRR mechanism in closed form, linear in its 13 parameters, and its exact base parameters."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.robots.prr2.data import BAR, BASE_LEADERS, GRAVITY, PARAMETER_NAMES, THEORETICAL
from dynident.robots.prr2.inputs import parameter_values, samples_of
from dynident.robots.prr2.kinematics import body_jacobians

Array = NDArray[np.float64]


def regressor(rho: ArrayLike, v: ArrayLike, a: ArrayLike, assembly: str = "below", gravity: float = GRAVITY) -> Array:
    """Return K of (6.15): F = K Phi, by energy equivalence K_b = J_b^T (Omega_b + G_b) (6.6).

    Friction is Fc sign(v) + c v (6.14); (5.17) prints sign(v) c v, which would not oppose the motion.

    Parameters
    ----------
    rho, v, a : array_like, (N, 2)
        Slider positions, velocities, accelerations.
    assembly : {"below", "above"}
        Assembly mode.
    gravity : float
        Along -y [m/s^2].

    Returns
    -------
    ndarray, (N, 2, 13)
        Columns in the order of `PARAMETER_NAMES` [N per unit].
    """
    position, velocity, acceleration = samples_of(2, rho=rho, v=v, a=a)
    J, J_dot = body_jacobians(position, velocity, assembly)
    motion = np.einsum("sbij,sj->sbi", J, acceleration) + np.einsum("sbij,sj->sbi", J_dot, velocity)
    K = np.zeros((len(position), 2, 13))
    force = motion[:, :, :2] + [0.0, gravity]
    K[:, :, :6] = np.einsum("sbij,sbi->sjb", J[:, :, :2], force)
    K[:, :, 6:9] = np.einsum("sbj,sb->sjb", J[:, 2:5, 2], motion[:, 2:5, 2])
    K[:, [0, 1], [9, 10]] = np.sign(velocity)
    K[:, [0, 1], [11, 12]] = velocity
    return K


def inverse_dynamics(
    rho: ArrayLike, v: ArrayLike, a: ArrayLike, parameters: Mapping[str, float] | None = None, assembly: str = "below"
) -> Array:
    """Return the slider forces F = M a + C v + g + friction.

    Parameters
    ----------
    rho, v, a : array_like, (N, 2)
        Slider positions, velocities, accelerations.
    parameters : mapping of str to float, optional
        Numbers that differ from `THEORETICAL` (without friction).
    assembly : {"below", "above"}
        Assembly mode.

    Returns
    -------
    ndarray, (N, 2)
        Forces [N].
    """
    return np.asarray(regressor(rho, v, a, assembly) @ parameter_values(parameters, PARAMETER_NAMES, THEORETICAL))


def dynamics_matrices(
    rho: ArrayLike, v: ArrayLike, parameters: Mapping[str, float] | None = None, assembly: str = "below"
) -> tuple[Array, Array, Array]:
    """Return M, C and g of F = M a + C v + g: M = sum J^T M_b J, C = sum J^T M_b J_dot, g = sum J^T g_b.

    Parameters
    ----------
    rho, v : array_like, (N, 2)
        Slider positions and velocities.
    parameters : mapping of str to float, optional
        Numbers that differ from `THEORETICAL`; friction does not enter.
    assembly : {"below", "above"}
        Assembly mode.

    Returns
    -------
    M, C : ndarray, (N, 2, 2)
        Mass matrix [kg] and Coriolis matrix [kg/s]; dM/dt - 2 C is skew-symmetric.
    g : ndarray, (N, 2)
        Gravity forces [N].
    """
    phi = parameter_values(parameters, PARAMETER_NAMES, THEORETICAL)
    J, J_dot = body_jacobians(rho, v, assembly)
    mass = np.stack([phi[:6], phi[:6], np.array([0.0, 0.0, *phi[6:9], 0.0])], axis=1)
    M, C = (np.einsum("sbij,bi,sbik->sjk", J, mass, right) for right in (J, J_dot))
    return M, C, np.einsum("sbj,b->sj", J[:, :, 1], GRAVITY * phi[:6])


def base_matrix() -> Array:
    """Return the exact base parameters of the 13 parameters, beta = K Phi of rank 8, whatever the motion.

    With S = I3 + I4 + I5:  m1 - m5/2 + (2/L^2) S,   m2 + m5/2,   m3 + m4 + m5 - (4/L^2) S,   m6 + (2/L^2) S,  Fc1, Fc2, c1, c2.

    A bar's turning energy follows from three points of it, alpha_dot^2 = (4/L^2) ((v_top^2 + v_end^2)/2 - v_mid^2); its top is
    a slider and its end the platform, which gives the factors of L.

    Returns
    -------
    ndarray, (8, 13)
        K; rows led by `BASE_LEADERS`, columns in the order of `PARAMETER_NAMES`.
    """
    K = np.zeros((8, 13))
    for row, leader in enumerate(BASE_LEADERS):
        K[row, PARAMETER_NAMES.index(leader)] = 1.0
    m4, m5, inertias = 3, 4, slice(6, 9)
    K[0, m5], K[1, m5], K[2, [m4, m5]] = -0.5, 0.5, 1.0
    K[0, inertias] = K[3, inertias] = 2.0 / BAR**2
    K[2, inertias] = -4.0 / BAR**2
    return K
