"""RRR robot: the closed forms of [Kostic2002], kinematics (4) to (6), base parameters (12), regressor (13), drives (8) to (15).

    tau = R(q, v, a) p,   u = tau / k_t + u_friction                                           (10)

q, v, a are (N, 3) in rad, rad/s, rad/s^2, one sample may be a vector; a `Geometry` holds the lengths, p the 16 base parameters.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.checks import numbers
from dynident.errors import DynidentError
from dynident.mechanism import Parameters
from dynident_papers.robots.rrr.data import GRAVITY, Geometry
from dynident_papers.robots.shared import samples_of


def forward_kinematics(q: ArrayLike, geometry: Geometry) -> Array:
    """Return the position x(q) of the tip [Kostic2002, eq. 5]."""
    (angles,) = samples_of(3, q=q)
    g, (q1, q2, q3) = geometry, angles.T
    reach = g.a3 * np.cos(q2 + q3) + g.a2 * np.cos(q2)
    x = np.cos(q1) * reach + g.offset * np.sin(q1)
    y = np.sin(q1) * reach - g.offset * np.cos(q1)
    return np.stack([x, y, g.a3 * np.sin(q2 + q3) + g.a2 * np.sin(q2) + g.d1], axis=1)


def orientation(q: ArrayLike) -> Array:
    """Return the orientation O(q) of the tip [Kostic2002, eq. 4]."""
    (angles,) = samples_of(3, q=q)
    q1, q23 = angles[:, 0], angles[:, 1] + angles[:, 2]
    c1, s1, c23, s23 = np.cos(q1), np.sin(q1), np.cos(q23), np.sin(q23)
    rows = [[c1 * c23, -c1 * s23, s1], [s1 * c23, -s1 * s23, -c1], [s23, c23, np.zeros_like(c1)]]
    return np.moveaxis(np.array(rows), 2, 0)


def postures(x: Any, y: Any, z: Any, geometry: Any, root: Callable[..., Any]) -> list[tuple[Any, Any, Any]]:
    """Return the angles of all postures, for numbers and for expressions (generated code)."""
    g, d, z = geometry, geometry.offset, z - geometry.d1
    radius = np.sqrt(x * x + y * y)
    depth = root((radius - d) * (radius + d), radius - d, radius + d)
    square = depth * depth + z * z
    span = np.sqrt(square)
    long, short, twice = g.a2 + g.a3, g.a2 - g.a3, 2.0 * g.a2 * g.a3
    # |sin q3| by Heron's factors: exact also where the arm is nearly stretched or folded.
    product = (long - span) * (long + span) * ((span - short) * (span + short))
    sine = root(product, long - span, span - short, span + short) / twice
    c3 = (square - (g.a2 * g.a2 + g.a3 * g.a3)) / twice
    near, side = g.a2 + g.a3 * c3, g.a3 * sine
    turned = [np.arctan2(x * d + y * depth, x * depth - y * d), np.arctan2(x * d - y * depth, -(x * depth) - y * d)]
    bent = np.arctan2(sine, c3)
    angles = []
    for front, elbow in ((1.0, -1.0), (1.0, 1.0), (-1.0, 1.0), (-1.0, -1.0)):
        reach, far = front * depth, elbow * side
        lifted = np.arctan2(near * z - far * reach, near * reach + far * z)
        angles.append((turned[int(front < 0.0)], lifted, elbow * bent))
    return angles


def inverse_kinematics(x: ArrayLike, geometry: Geometry) -> Array:
    """Return all joint angles that bring the tip to x: [Kostic2002, eq. 6] with both signs of the reach and of the elbow."""
    (tip,) = samples_of(3, x=x)
    g = geometry
    # Targets beyond the reach only by rounding count as stretched.
    touch = 4e-13 * (g.a2 + g.a3 + abs(g.offset) + abs(g.d1))

    def root(value: Array, *margins: Array) -> Array:
        with np.errstate(invalid="ignore"):
            beyond = np.any(np.array(margins) < -touch, axis=0)
        return np.where(beyond, np.nan, np.sqrt(np.maximum(value, 0.0)))

    out = np.stack([np.stack(q, axis=1) for q in postures(tip[:, 0], tip[:, 1], tip[:, 2], g, root)], axis=1)
    out[~np.isfinite(out).all(axis=2)] = np.nan
    return out


def jacobian_determinant(q: ArrayLike, geometry: Geometry) -> Array:
    """Return det J = -a2 a3 sin(q3) (a2 cos q2 + a3 cos(q2 + q3)): zero when stretched, folded or over the waist offset."""
    (angles,) = samples_of(3, q=q)
    g, (_, q2, q3) = geometry, angles.T
    return np.asarray(-g.a2 * g.a3 * np.sin(q3) * (g.a2 * np.cos(q2) + g.a3 * np.cos(q2 + q3)))


def _base(p: ArrayLike) -> Array:
    values = numbers(p, "p")
    if values.shape != (16,):
        raise DynidentError(f"p has shape {values.shape}; give the 16 base parameters (12)")
    return values


def regressor(q: ArrayLike, v: ArrayLike, a: ArrayLike, geometry: Geometry, gravity: float = GRAVITY) -> Array:
    """Return R(q, v, a) with tau = R p, rotor inertias included [Kostic2002, eq. 13]."""
    angles, speeds, changes = samples_of(3, q=q, v=v, a=a)
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
    """Return the torques tau = R(q, v, a) p, including rotor inertia [Kostic2002, eq. 10]."""
    return np.asarray(regressor(q, v, a, geometry, gravity) @ _base(p))


def mass_matrix(q: ArrayLike, p: ArrayLike, geometry: Geometry) -> Array:
    """Return D(q) of tau = D(q) a + c(q, v) + h(q), rotors included [Kostic2002, eq. 7]."""
    (angles,) = samples_of(3, q=q)
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
    """Return h(q) of tau = D(q) a + c(q, v) + h(q), the torques that hold the arm [Kostic2002, eq. 7]."""
    (angles,) = samples_of(3, q=q)
    values = _base(p)
    _, q2, q3 = angles.T
    forearm = values[2] * np.cos(q2 + q3) - values[3] * np.sin(q2 + q3)
    upper = values[14] * np.cos(q2) - values[15] * np.sin(q2)
    return np.stack([np.zeros_like(q2), gravity * (forearm + upper), gravity * forearm], axis=1)


def base_matrix(geometry: Geometry) -> Array:
    """Return K with p = K phi for the standard parameters phi of `mechanism` [Kostic2002, eq. 12].

    The paper's products of inertia are +integral(xy dm) and all its moments are about the origin of the distal frame;
    phi holds tensor elements about the same origin, so the products change sign.
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
    """Return the 16 base parameters p = K phi of standard parameters [Kostic2002, eq. 12]."""
    values = parameters.values if isinstance(parameters, Parameters) else numbers(parameters, "parameters")
    if values.shape != (33,):
        raise DynidentError(f"parameters have shape {values.shape}; give the 33 of rrr.mechanism(geometry).parameters")
    return np.asarray(base_matrix(geometry) @ values)


def friction_voltage(v: ArrayLike, f: ArrayLike, w: ArrayLike, b: ArrayLike) -> Array:
    """Return u_f,i = sum_k f_ik tanh(w_ik v_i) + b_i v_i [Kostic2002, eq. 9], without overflow: 1 - 2/(e^2x + 1) = tanh x."""
    (speeds,) = samples_of(3, v=v)
    heights, slopes, viscous = numbers(f, "f"), numbers(w, "w"), numbers(b, "b")
    if heights.shape != slopes.shape or heights.ndim != 2 or len(heights) != 3 or viscous.shape != (3,):
        raise DynidentError(f"f {heights.shape}, w {slopes.shape}, b {viscous.shape} do not fit; give (3, k), (3, k) and (3,)")
    return np.asarray(np.sum(heights * np.tanh(slopes * speeds[:, :, None]), axis=2) + viscous * speeds)


def voltage(tau: ArrayLike, torque_constant: ArrayLike, friction: ArrayLike = 0.0) -> Array:
    """Return the voltages u = tau / k_t + u_f [Kostic2002, eqs. 8, 10]; tau = R p contains the rotors' torques already."""
    (torques,) = samples_of(3, tau=tau)
    gains = numbers(torque_constant, "torque_constant")
    if gains.shape != (3,) or not np.all(gains != 0.0):
        raise DynidentError(f"torque_constant is {gains.tolist()}; give three numbers that are not zero")
    return np.asarray(torques / gains + numbers(friction, "friction"))


def control_voltage(
    feedforward: ArrayLike, q_ref: ArrayLike, v_ref: ArrayLike, q: ArrayLike, v: ArrayLike, kp: ArrayLike, kd: ArrayLike
) -> Array:
    """Return u = u_n + k_p (q_ref - q) + k_d (v_ref - v), model on the reference and a PD action [Kostic2002, eq. 15]."""
    u, wanted, wanted_v, actual, actual_v = samples_of(3, feedforward=feedforward, q_ref=q_ref, v_ref=v_ref, q=q, v=v)
    return np.asarray(u + numbers(kp, "kp") * (wanted - actual) + numbers(kd, "kd") * (wanted_v - actual_v))
