"""RRR robot: the 16 base parameters (12), their regressor (13), and the robot as a mechanism."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dynident.checks import numbers
from dynident.errors import DynidentError
from dynident.mechanism import Mechanism, Parameters
from dynident.robots.rrr.kinematics import EXAMPLE, JOINTS, Array, Geometry, states

GRAVITY = 9.81
PARAMETER_NAMES = tuple(f"p{i}" for i in range(1, 17))


def _base(p: ArrayLike) -> Array:
    values = numbers(p, "p")
    if values.shape != (16,):
        raise DynidentError(f"p has shape {values.shape}; give the 16 base parameters (12)")
    return values


def regressor(q: ArrayLike, v: ArrayLike, a: ArrayLike, geometry: Geometry, gravity: float = GRAVITY) -> Array:
    """Return R(q, v, a) of (13): tau = R p, rotor inertias included.

    Parameters
    ----------
    q, v, a : array_like, (N, 3)
        Joint angles, velocities and accelerations.
    geometry : Geometry
        Lengths; only a2 appears.
    gravity : float
        Acceleration along -z_0 [m/s^2].

    Returns
    -------
    ndarray, (N, 3, 16)
        Columns p1 ... p16 in the paper's order.
    """
    angles, speeds, changes = states(q=q, v=v, a=a)
    _, q2, q3 = angles.T
    (v1, v2, v3), (a1, a2, a3) = speeds.T, changes.T
    q23, w, b = q2 + q3, v2 + v3, a2 + a3
    c2, s2, c3, s3, c23, s23 = np.cos(q2), np.sin(q2), np.cos(q3), np.sin(q3), np.cos(q23), np.sin(q23)
    c22, s22, c2323, s2323 = np.cos(2 * q2), np.sin(2 * q2), np.cos(2 * q23), np.sin(2 * q23)
    c223, s223 = np.cos(2 * q2 + q3), np.sin(2 * q2 + q3)
    L, g = geometry.a2, gravity
    R = np.zeros((len(angles), 3, 16))
    R[:, 0, 0] = a1 * c2**2 - v1 * v2 * s22  # misprint: the velocity of joint 1 in the first term
    R[:, 0, 1] = 0.5 * a1 * s22 + v1 * v2 * c22
    R[:, 0, 2] = 2 * L * ((a1 * c23 - v1 * v3 * s23) * c2 - v1 * v2 * s223)
    R[:, 0, 3] = -2 * L * ((a1 * s23 + v1 * v3 * c23) * c2 + v1 * v2 * c223)
    R[:, 0, 4] = a1 * c23**2 - v1 * w * s2323
    R[:, 0, 5] = -0.5 * a1 * s2323 - v1 * w * c2323
    R[:, 0, 6] = a1
    R[:, 0, 7] = b * c23 - w**2 * s23
    R[:, 0, 8] = b * s23 + w**2 * c23
    R[:, 0, 9] = a2 * c2 - v2**2 * s2
    R[:, 0, 10] = a2 * s2 + v2**2 * c2
    R[:, 1, 0] = 0.5 * v1**2 * s22
    R[:, 1, 1] = -0.5 * v1**2 * c22
    R[:, 1, 2] = 2 * L * ((a2 + 0.5 * a3) * c3 - (0.5 * v3**2 + v2 * v3) * s3 + 0.5 * v1**2 * s223) + g * c23
    R[:, 1, 3] = 2 * L * (-(a2 + 0.5 * a3) * s3 - (0.5 * v3**2 + v2 * v3) * c3 + 0.5 * v1**2 * c223) - g * s23
    R[:, 1, 4] = R[:, 2, 4] = 0.5 * v1**2 * s2323
    R[:, 1, 5] = R[:, 2, 5] = 0.5 * v1**2 * c2323
    R[:, 1, 7] = R[:, 2, 7] = a1 * c23
    R[:, 1, 8] = R[:, 2, 8] = a1 * s23
    R[:, 1, 9] = a1 * c2
    R[:, 1, 10] = a1 * s2
    R[:, 1, 11] = a2
    R[:, 1, 12] = a3
    R[:, 1, 14] = g * c2
    R[:, 1, 15] = -g * s2
    R[:, 2, 2] = L * ((0.5 * v1**2 + v2**2) * s3 + a2 * c3 + 0.5 * v1**2 * s223) + g * c23
    R[:, 2, 3] = L * ((0.5 * v1**2 + v2**2) * c3 - a2 * s3 + 0.5 * v1**2 * c223) - g * s23
    R[:, 2, 12] = a2
    R[:, 2, 13] = a3
    return R


def inverse_dynamics(
    q: ArrayLike, v: ArrayLike, a: ArrayLike, p: ArrayLike, geometry: Geometry, gravity: float = GRAVITY
) -> Array:
    """Return the torques tau = R(q, v, a) p, which include those that turn the rotors.

    Parameters
    ----------
    q, v, a : array_like, (N, 3)
        Joint angles, velocities and accelerations.
    p : array_like, (16,)
        Base parameters.
    geometry : Geometry
        Lengths.
    gravity : float
        Acceleration along -z_0 [m/s^2].

    Returns
    -------
    ndarray, (N, 3)
        Torques [N m].
    """
    return np.asarray(regressor(q, v, a, geometry, gravity) @ _base(p))


def mass_matrix(q: ArrayLike, p: ArrayLike, geometry: Geometry) -> Array:
    """Return D(q) of (7), rotors included.

    Parameters
    ----------
    q : array_like, (N, 3)
        Joint angles [rad].
    p : array_like, (16,)
        Base parameters.
    geometry : Geometry
        Lengths.

    Returns
    -------
    ndarray, (N, 3, 3)
        Inertia matrix [kg m^2].
    """
    (angles,) = states(q=q)
    p1, p2, p3, p4, p5, p6, p7, p8, p9, p10, p11, p12, p13, p14, _, _ = _base(p)
    _, q2, q3 = angles.T
    c2, s2, c23, s23 = np.cos(q2), np.sin(q2), np.cos(q2 + q3), np.sin(q2 + q3)
    L = geometry.a2
    elbow = L * (p3 * np.cos(q3) - p4 * np.sin(q3))
    D = np.empty((len(angles), 3, 3))
    D[:, 0, 0] = p1 * c2**2 + p2 * s2 * c2 + 2 * L * c2 * (p3 * c23 - p4 * s23) + p5 * c23**2 - p6 * s23 * c23 + p7
    D[:, 0, 2] = D[:, 2, 0] = p8 * c23 + p9 * s23
    D[:, 0, 1] = D[:, 1, 0] = D[:, 0, 2] + p10 * c2 + p11 * s2
    D[:, 1, 1] = 2 * elbow + p12
    D[:, 1, 2] = D[:, 2, 1] = elbow + p13
    D[:, 2, 2] = p14
    return D


def gravity_torque(q: ArrayLike, p: ArrayLike, gravity: float = GRAVITY) -> Array:
    """Return h(q) of (7).

    Parameters
    ----------
    q : array_like, (N, 3)
        Joint angles [rad].
    p : array_like, (16,)
        Base parameters.
    gravity : float
        Acceleration along -z_0 [m/s^2].

    Returns
    -------
    ndarray, (N, 3)
        Torques that hold the arm [N m].
    """
    (angles,) = states(q=q)
    values = _base(p)
    _, q2, q3 = angles.T
    forearm = values[2] * np.cos(q2 + q3) - values[3] * np.sin(q2 + q3)
    upper = values[14] * np.cos(q2) - values[15] * np.sin(q2)
    return np.stack([np.zeros_like(q2), gravity * (forearm + upper), gravity * forearm], axis=1)


def base_matrix(geometry: Geometry) -> Array:
    """Return K with p = K phi, equations (12) for the standard parameters of `mechanism`.

    The paper's products of inertia are +integral(xy dm) and all its moments are about the origin of the distal frame;
    phi holds tensor elements about the same origin, so the products change sign.

    Parameters
    ----------
    geometry : Geometry
        Lengths.

    Returns
    -------
    ndarray, (16, 33)
        Rows p1 ... p16, columns as ``mechanism(geometry).parameters``: ten per link, then three rotor inertias.
    """
    g, d = geometry, geometry.offset
    K = np.zeros((16, 33))
    symbols = ("m", "mx", "my", "mz", "xx", "xy", "xz", "yy", "yz", "zz")

    def put(row: int, link: int, **terms: float) -> None:
        for symbol, value in terms.items():
            K[row - 1, 10 * (link - 1) + symbols.index(symbol)] = value

    put(1, 3, m=g.a2**2)
    put(1, 2, m=g.a2**2, mx=2 * g.a2, xx=-1, yy=1)
    put(2, 2, my=-2 * g.a2, xy=2)
    put(3, 3, m=g.a3, mx=1)
    put(4, 3, my=1)
    put(5, 3, m=g.a3**2, mx=2 * g.a3, xx=-1, yy=1)
    put(6, 3, my=2 * g.a3, xy=-2)
    put(7, 1, yy=1)
    put(7, 2, m=g.d2**2, mz=2 * g.d2, xx=1)
    put(7, 3, m=d**2, mz=2 * d, xx=1)
    put(8, 3, my=-d, yz=1)
    put(9, 3, m=-g.a3 * d, mz=-g.a3, mx=-d, xz=1)
    put(10, 2, my=-g.d2, yz=1)
    put(11, 3, m=-g.a2 * d, mz=-g.a2)
    put(11, 2, m=-g.a2 * g.d2, mz=-g.a2, mx=-g.d2, xz=1)
    put(12, 3, m=g.a2**2 + g.a3**2, mx=2 * g.a3, zz=1)
    put(12, 2, m=g.a2**2, mx=2 * g.a2, zz=1)
    for row in (13, 14):
        put(row, 3, m=g.a3**2, mx=2 * g.a3, zz=1)
    put(15, 2, m=g.a2, mx=1)
    put(15, 3, m=g.a2)
    put(16, 2, my=1)
    K[[6, 11, 13], [30, 31, 32]] = 1.0  # J_m,1 in p7, J_m,2 in p12, J_m,3 in p14
    return K


def base_parameters(parameters: Parameters | ArrayLike, geometry: Geometry) -> Array:
    """Return the 16 base parameters (12) from standard parameters.

    Parameters
    ----------
    parameters : Parameters or array_like (33,)
        Standard parameters of `mechanism`: ten per link in its distal frame, then three rotor inertias.
    geometry : Geometry
        Lengths.

    Returns
    -------
    ndarray, (16,)
        p1 ... p16.
    """
    values = parameters.values if isinstance(parameters, Parameters) else numbers(parameters, "parameters")
    if values.shape != (33,):
        raise DynidentError(f"parameters have shape {values.shape}; give the 33 of rrr.mechanism(geometry).parameters")
    return np.asarray(base_matrix(geometry) @ values)


def mechanism(
    geometry: Geometry = EXAMPLE,
    parameters: ArrayLike | None = None,
    terms: tuple[str, ...] = ("ia",),
    gravity: float = GRAVITY,
) -> Mechanism:
    """Return the robot as a mechanism (Table I).

    Parameters
    ----------
    geometry : Geometry
        Lengths.
    parameters : array_like, optional
        Standard parameters in the order of ``mechanism(geometry, terms=terms).parameters``; zero when omitted.
    terms : tuple of str
        Joint terms: rotor inertia only by default, as in (12).
    gravity : float
        Acceleration along -z_0 [m/s^2].

    Returns
    -------
    Mechanism
        Links ``link_1`` to ``link_3`` in the distal frames of Table I, joints `JOINTS`.
    """
    g = geometry
    alphas, lengths, offsets = (np.pi / 2, 0.0, 0.0), (0.0, g.a2, g.a3), (g.d1, g.d2, g.d3)
    table = [
        {"a": a, "alpha": alpha, "d": d, "joint": joint}
        for a, alpha, d, joint in zip(lengths, alphas, offsets, JOINTS, strict=True)
    ]
    robot = Mechanism.from_dh(table, "standard", "RRR robot", (0.0, 0.0, -gravity)).with_terms(terms)
    return robot if parameters is None else robot.with_parameters(robot.parameters.replace(numbers(parameters, "parameters")))
