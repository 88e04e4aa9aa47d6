"""Dynamics of RePlaLink in closed form, linear in its 15 parameters, and its exact base parameters."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.robots.prr2.inputs import parameter_values, samples_of
from dynident.robots.replalink.data import BASE_LEADERS, PARAMETER_NAMES, RECOVERED, THEORETICAL, Geometry
from dynident.robots.replalink.kinematics import body_jacobians

Array = NDArray[np.float64]


def regressor(
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    assembly: str = "up",
    gravity: float = 0.0,
    geometry: Geometry = RECOVERED,
) -> Array:
    """Return K of (6.44): tau = K Phi, by energy equivalence.

    (6.35) has lost the rows of the second motor and (6.5) prints the translational Jacobian for the rotational one; both are as
    in (5.9) to (5.12) here.

    Parameters
    ----------
    q, v, a : array_like, (N, 2)
        alpha1, alpha4 with speeds and accelerations.
    assembly : {"up", "down"}
        Assembly mode.
    gravity : float
        Along -y [m/s^2]; 0 for the horizontal plane of the thesis.
    geometry : Geometry
        Lengths.

    Returns
    -------
    ndarray, (N, 2, 15)
        Columns in the order of `PARAMETER_NAMES` [N m per unit].
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
    """Return the motor torques at the gearbox output, in the horizontal plane.

    Parameters
    ----------
    q, v, a : array_like, (N, 2)
        alpha1, alpha4 with speeds and accelerations.
    parameters : mapping of str to float, optional
        Numbers that differ from `THEORETICAL` (without friction).
    assembly : {"up", "down"}
        Assembly mode.
    geometry : Geometry
        Lengths.

    Returns
    -------
    ndarray, (N, 2)
        Torques [N m].
    """
    phi = parameter_values(parameters, PARAMETER_NAMES, THEORETICAL)
    return np.asarray(regressor(q, v, a, assembly, 0.0, geometry) @ phi)


def dynamics_matrices(
    q: ArrayLike,
    v: ArrayLike,
    parameters: Mapping[str, float] | None = None,
    assembly: str = "up",
    geometry: Geometry = RECOVERED,
) -> tuple[Array, Array]:
    """Return M and C of tau = M a + C v: M = sum J^T M_b J + motors, C = sum J^T M_b J_dot.

    Parameters
    ----------
    q, v : array_like, (N, 2)
        alpha1, alpha4 and their speeds.
    parameters : mapping of str to float, optional
        Numbers that differ from `THEORETICAL`; friction does not enter.
    assembly : {"up", "down"}
        Assembly mode.
    geometry : Geometry
        Lengths.

    Returns
    -------
    M, C : ndarray, (N, 2, 2)
        Mass matrix [kg m^2] and Coriolis matrix [kg m^2/s]; dM/dt - 2 C is skew-symmetric.
    """
    phi = parameter_values(parameters, PARAMETER_NAMES, THEORETICAL)
    J, J_dot = body_jacobians(q, v, assembly, geometry)
    mass = np.stack([phi[:5], phi[:5], np.array([*phi[5:9], 0.0])], axis=1)
    M, C = (np.einsum("sbij,bi,sbik->sjk", J, mass, right) for right in (J, J_dot))
    return M + np.diag(phi[9:11]), C


def base_matrix(geometry: Geometry = RECOVERED) -> Array:
    """Return the exact base parameters (6.47) to (6.55) in the horizontal plane, beta = K Phi of rank 9, for any motion.

    For a bar XY of length l with the centre of mass at the fraction s, and any point of it at the fraction r,

        alpha_dot^2 = ((1-s) v_X^2 + s v_Y^2 - v_c^2) / (s (1-s) l^2),   v_r^2 = (1-r) v_X^2 + r v_Y^2 - r (1-r) l^2 alpha_dot^2

    so every moment is a combination of masses; A, B move like the centres of mass of the driven bars, and C is on bar A-D.

    Parameters
    ----------
    geometry : Geometry
        Lengths; the base distance does not enter.

    Returns
    -------
    ndarray, (9, 15)
        K; rows led by `BASE_LEADERS`, columns in the order of `PARAMETER_NAMES`.
    """
    g = geometry
    column = {name: i for i, name in enumerate(PARAMETER_NAMES)}
    row = {name: i for i, name in enumerate(BASE_LEADERS)}
    unit = {name: np.eye(9)[i] for name, i in row.items()}
    at_A = (g.a0a / g.com1) ** 2 * unit["m1"]  # what 1 kg at A counts for
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
