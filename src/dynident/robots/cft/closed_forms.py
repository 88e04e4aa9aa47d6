"""CFT-transposer: the closed forms of [Rodriguez2002]: Cartesian coordinates and joints, dynamics of Appendix B, excitation.

    M(q, theta) a + C(q, v, theta) v + g(q, theta) + f(v, theta) = tau                                   (60), (67)

(4) and (11) of the report have the friction on the other side; (60) is the one that is used. The entries are written more
compactly than in Appendix B, which they equal term by term after its correction. With the printed parameters M is NOT positive
definite on about 35 % of the workspace and the friction of joints 1, 4 and 5 feeds energy at low speed: the model leaves out
inertias and its numbers are a torque fit only.

q, v, a are (N, 4) as q1, q2, q4, q5; Cartesian coordinates xc (N, 4) as xc1 ... xc4; theta are the 32 numbers of Table 4, of
which the first 12 are inertial. One sample may be a vector.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dynident.checks import numbers
from dynident.errors import DynidentError
from dynident.mechanics import distance_to_curve
from dynident.robots.cft.data import (
    AMPLIFIER,
    CONVERSIONS,
    D6,
    D20,
    DS,
    ENCODER_FACTORS,
    GEAR_RATIOS,
    GRAVITY,
    HEIGHT,
    L2,
    L4,
    L5,
    L6,
    L7,
    L8,
    THETA,
    TORQUE_CONSTANT,
    TURN,
)
from dynident.robots.shared import Array, columns, samples_of

UP, REACH = (L4 + L6) / L4, L6 / L4  # 7 and 6: how much the pantograph enlarges the nuts' motions (47)


def references_from_cartesian(xc: ArrayLike) -> Array:
    """Return the positions of the two nuts, (48) and (49).

    `xc` (N, 4): Cartesian coordinates. Returns (N, 2): x_r, y_r [m].
    """
    x = columns(xc, 4, "xc")
    return np.column_stack([(x[:, 1] - D20 - DS) / REACH, (HEIGHT - x[:, 0]) / UP])


def joint_from_cartesian(xc: ArrayLike) -> Array:
    """Return q = [q1, q2, q4, q5] for Cartesian coordinates (57).

    (52) and (53) are used as beta = gamma + half, alpha = gamma - half with gamma = atan2(y_r, -x_r) and
    half = arccos(r / 2 L4), which needs no cases and also holds for y_r < 0.

    `xc` (N, 4): xc1 (down/up) [m], xc2 (reach) [m], xc3 (rotation) [rad], xc4 (rail) [m]. Returns (N, 4): q1 [m], q2, q4, q5
    [rad].
    """
    x = columns(xc, 4, "xc")
    xr, yr = references_from_cartesian(x).T
    r = np.hypot(xr, yr)
    if np.any(r > 2.0 * L4 * (1.0 + 1e-13)):
        i = int(np.argmax(r))
        # The nuts stay within the circle r = 2 L4, which the pantograph enlarges to an ellipse.
        away = distance_to_curve(
            lambda t: (2.0 * L4 * REACH * np.cos(t), 2.0 * L4 * UP * np.sin(t)),
            -np.pi,
            np.pi,
            REACH * xr[i : i + 1],
            UP * yr[i : i + 1],
        )
        raise DynidentError(
            f"sample {i}: xc1 = {x[i, 0]:.6g}, xc2 = {x[i, 1]:.6g} m is {away[0]:.4g} m out of the pantograph's reach; stay "
            "within the limits of Table 5"
        )
    gamma, half = np.arctan2(yr, -xr), np.arccos(np.minimum(r / (2.0 * L4), 1.0))
    return np.column_stack([x[:, 3] + DS, x[:, 2] - TURN, 0.5 * np.pi - gamma - half, 2.0 * half])


def cartesian_from_joint(q: ArrayLike) -> Array:
    """Return the Cartesian coordinates for q: (62), then (48) and (49) inverted.

    `q` (N, 4): q1 [m], q2, q4, q5 [rad]. Returns (N, 4): xc1, xc2 [m], xc3 [rad], xc4 [m].
    """
    joints = columns(q, 4, "q")
    q1, q2, q4, q5 = joints.T
    xr = -L4 * (np.sin(q4 + q5) + np.sin(q4))
    yr = L4 * (np.cos(q4 + q5) + np.cos(q4))
    return np.column_stack([HEIGHT - UP * yr, REACH * xr + D20 + DS, q2 + TURN, q1 - DS])


def cartesian_jacobian(q: ArrayLike) -> Array:
    """Return J with dxc/dt = J dq/dt.

    `q` (N, 4): joint positions. Returns (N, 4, 4): rows xc1 ... xc4.
    """
    joints = columns(q, 4, "q")
    _, _, q4, q5 = joints.T
    c4, s4, c45, s45 = np.cos(q4), np.sin(q4), np.cos(q4 + q5), np.sin(q4 + q5)
    J = np.zeros((len(joints), 4, 4))
    J[:, 0, 2], J[:, 0, 3] = UP * L4 * (s45 + s4), UP * L4 * s45
    J[:, 1, 2], J[:, 1, 3] = -REACH * L4 * (c45 + c4), -REACH * L4 * c45
    J[:, 2, 1] = J[:, 3, 0] = 1.0
    return J


def joint_motion(xc: ArrayLike, vc: ArrayLike, ac: ArrayLike) -> tuple[Array, Array, Array]:
    """Return joint positions, velocities and accelerations of a Cartesian motion, exactly.

    `xc`, `vc`, `ac` (N, 4): Cartesian position, velocity and acceleration. Returns q, v, a (N, 4): joint motion: J v = vc, J
    a = ac - J' v.
    """
    x, dx, ddx = samples_of(4, xc=xc, vc=vc, ac=ac)
    q = joint_from_cartesian(x)
    regular(q)
    J = cartesian_jacobian(q)
    v: Array = np.asarray(np.linalg.solve(J, dx[..., None])[..., 0], dtype=np.float64)
    _, _, q4, q5 = q.T
    w4, w45 = v[:, 2], v[:, 2] + v[:, 3]
    drift = np.zeros_like(ddx)
    drift[:, 0] = UP * L4 * (np.cos(q4 + q5) * w45**2 + np.cos(q4) * w4**2)
    drift[:, 1] = REACH * L4 * (np.sin(q4 + q5) * w45**2 + np.sin(q4) * w4**2)
    a = np.linalg.solve(J, (ddx - drift)[..., None])[..., 0]
    return q, v, np.asarray(a, dtype=np.float64)


def tool_position(q: ArrayLike, tool: bool = True) -> Array:
    """Return the position of the tool's end (59), with a misprinted sign corrected in y.

    `q` (N, 4): joint positions; `tool`: False for the point P_e at the wrist, that is L7 = L8 = 0. Returns (N, 3): x, y, z in
    the base frame [m].
    """
    q1, q2, q4, q5 = columns(q, 4, "q").T
    long, drop = (L8, L7) if tool else (0.0, 0.0)
    forward = long + D20 - L6 * np.sin(q4) - (L5 - L4) * np.sin(q4 + q5)
    up = L2 - drop + (L6 + L4) * np.cos(q4) + L5 * np.cos(q4 + q5)
    return np.column_stack([-np.sin(q2) * forward, q1 + np.cos(q2) * forward, up])


# ---- forces -------------------------------------------------------------------------------------------------------------


def regular(q: Array) -> None:
    """Refuse joint positions in which the pantograph is stretched or folded."""
    flat = np.abs(np.sin(q[:, 3]))
    if np.any(flat < 1e-9):
        i = int(np.argmin(flat))
        raise DynidentError(
            f"sample {i}: q5 = {q[i, 3]:.6g} rad is singular (sin q5 = 0); the pantograph is stretched or folded"
        )


def torque_from_force(q: ArrayLike, force: ArrayLike) -> Array:
    """Return joint torques from the controller's forces (66).

    `q` (N, 4): joint positions; `force` (N, 4): F_xc1, F_xc2, F_xc3, F_xc4: forces of the nuts (F_xc2 on x_r, F_xc1 against
    y_r), torque of the base, force on the rail [N, N, N m, N]. Returns (N, 4): tau_1 [N], tau_2, tau_4, tau_5 [N m].
    """
    joints, f = samples_of(4, q=q, force=force)
    _, _, q4, q5 = joints.T
    c4, s4, c45, s45 = np.cos(q4), np.sin(q4), np.cos(q4 + q5), np.sin(q4 + q5)
    tau4 = -L4 * (f[:, 1] * (c45 + c4) - f[:, 0] * (s45 + s4))
    return np.column_stack([f[:, 3], f[:, 2], tau4, -L4 * (f[:, 1] * c45 - f[:, 0] * s45)])


def force_from_torque(q: ArrayLike, torque: ArrayLike) -> Array:
    """Return the controller's forces from joint torques: (65) with the minus of its fourth row, which is lost in print.

    `q` (N, 4): joint positions; `torque` (N, 4): tau_1 [N], tau_2, tau_4, tau_5 [N m]. Returns (N, 4): F_xc1, F_xc2, F_xc3,
    F_xc4 as in `torque_from_force`.
    """
    joints, tau = samples_of(4, q=q, torque=torque)
    regular(joints)
    _, _, q4, q5 = joints.T
    c4, s4, c45, s45 = np.cos(q4), np.sin(q4), np.cos(q4 + q5), np.sin(q4 + q5)
    determinant = L4 * np.sin(q5)
    on_x = (-tau[:, 2] * s45 + tau[:, 3] * (s45 + s4)) / determinant
    on_y = (tau[:, 2] * c45 - tau[:, 3] * (c45 + c4)) / determinant
    return np.column_stack([-on_y, on_x, tau[:, 1], tau[:, 0]])


def cartesian_force(force: ArrayLike) -> Array:
    """Return the forces that do the same work on xc1 and xc2 as the nuts' forces: a seventh and a sixth of them.

    `force` (N, 4): F_xc1 ... F_xc4 of the nuts. Returns (N, 4): power-consistent forces, tau = J^T F with
    `cartesian_jacobian`.
    """
    return np.asarray(columns(force, 4, "force") / [UP, REACH, 1.0, 1.0])


def motor_gains(setup: str = "TUEdACS") -> Array:
    """Return K_T = K_a K_t / (K_g K_c) for xc1 ... xc4 (Table 6).

    `setup` {"TUEdACS", "dSPACE"}: which amplifiers. Returns (4,): gains [N/V, N/V, N m/V, N/V]; m1 moves xc1 and m2 moves
    xc2, so the order is the table's.
    """
    if setup not in AMPLIFIER:
        raise DynidentError(f"setup is {setup!r}; the report describes {' and '.join(AMPLIFIER)}")
    return np.asarray(AMPLIFIER[setup] * TORQUE_CONSTANT / (GEAR_RATIOS * CONVERSIONS))


def force_from_voltage(voltage: ArrayLike, setup: str = "TUEdACS") -> Array:
    """Return the forces F_xc1 ... F_xc4 that amplifier voltages make.

    `voltage` (N, 4): voltages of the motors of xc1 ... xc4 [V]; `setup` {"TUEdACS", "dSPACE"}: which amplifiers. Returns
    (N, 4): forces [N, N, N m, N].
    """
    return np.asarray(columns(voltage, 4, "voltage") * motor_gains(setup))


def voltage_from_force(force: ArrayLike, setup: str = "TUEdACS") -> Array:
    """Return the amplifier voltages that make forces F_xc1 ... F_xc4.

    `force` (N, 4): forces [N, N, N m, N]; `setup` {"TUEdACS", "dSPACE"}: which amplifiers. Returns (N, 4): voltages [V].
    """
    return np.asarray(columns(force, 4, "force") / motor_gains(setup))


def encoder_position(pulses: ArrayLike) -> Array:
    """Return Cartesian displacements from encoder pulses (Table 5).

    `pulses` (N, 4): counts since the zero of each axis. Returns (N, 4): xc1 ... xc4 [m, m, rad, m].
    """
    return np.asarray(columns(pulses, 4, "pulses") * ENCODER_FACTORS)


Columns = Array | list[Array]  # of samples (q, v) or of parameters (theta), broadcast against each other
Entries = dict[tuple[int, int], Array]
LAMBDA = L5 - L4


def _theta(theta: ArrayLike, least: int) -> Array:
    values = numbers(theta, "theta")
    if values.shape not in {(32,), (least,)}:
        wanted = "the 32 numbers of Table 4" + (f", or the first {least}" if least < 32 else "")
        raise DynidentError(f"theta has shape {values.shape}; give {wanted}")
    return values


def _matrix(entries: Entries, samples: int) -> Array:
    out = np.zeros((samples, 4, 4))
    for (i, j), value in entries.items():
        out[:, i, j] = value
    return out


def _mass(q: Columns, th: Columns) -> Entries:
    """Return the entries of M (A4.3); q and theta broadcast against each other."""
    t1, t2, t3, t4, t5, t6, t7, t8, t9, t10, t11, t12 = th
    _, q2, q4, q5 = q
    c4, s4, c45, s45, c2, s2 = np.cos(q4), np.sin(q4), np.cos(q4 + q5), np.sin(q4 + q5), np.cos(q2), np.sin(q2)
    S = t11 + t12
    A, B, E = t5 + t7 + L6 * t12, t9 + LAMBDA * S, t6 + t8
    # Forward positions of the frame origins 4 ... 7.
    f4, f5 = D20 + L4 * (s4 + s45), D20 + L4 * s45
    f6 = D20 - LAMBDA * s45
    f7 = f6 - L6 * s4
    m: Entries = {(0, 0): t1 + S + 0.0 * q2}
    m[0, 1] = -s2 * (t3 + D20 * S - A * s4 - E * c4 - B * s45 - t10 * c45) + c2 * (t2 + D6 * t11)
    m[0, 3] = c2 * (-B * c45 + t10 * s45)
    m[0, 2] = c2 * (-A * c4 + E * s4) + m[0, 3]
    # Misprints: bracket of theta_11 and sign before cos(q5 + 2 q4) in the last theta_12 term, by the squares f6^2, f7^2.
    m[1, 1] = (
        t4
        - 2.0 * f4 * (t5 * s4 + t6 * c4)
        - 2.0 * f5 * (t9 * s45 + t10 * c45)
        - 2.0 * f6 * (t7 * s4 + t8 * c4)
        + t11 * (f6**2 + D6**2)
        + t12 * f7**2
    )
    m[1, 3] = -D6 * t11 * LAMBDA * c45
    m[1, 2] = D6 * (-t7 * c4 + t8 * s4) + m[1, 3]
    # Pitch block, where brackets are lost in print, by its structure: Jacobians (forward, up) of the origins by q4 and by q5.
    o4, o4b = (L4 * (c4 + c45), 0.0), (L4 * c45, 0.0)
    o5, o5b = (L4 * c45, -L4 * s4), o4b
    o6, o6b = (o5[0] - L5 * c45, o5[1] - L5 * s45), (o5b[0] - L5 * c45, -L5 * s45)
    o7, o7b = (o6[0] - L6 * c4, o6[1] - L6 * s4), o6b
    n4 = (-(t5 * c4 - t6 * s4), -(t5 * s4 + t6 * c4))
    n5 = (-(t9 * c45 - t10 * s45), -(t9 * s45 + t10 * c45))
    n6 = (-(t7 * c4 - t8 * s4), -(t7 * s4 + t8 * c4))
    h4, h5, h6 = _dot(o4, n4), _dot(o5, n5), _dot(o6, n6)
    h4b, h5b, h6b = _dot(o4b, n4), _dot(o5b, n5), _dot(o6b, n6)
    m[2, 2] = 2.0 * (h4 + h5 + h6) + t11 * _dot(o6, o6) + t12 * _dot(o7, o7)
    m[2, 3] = h5 + h4b + h5b + h6b + t11 * _dot(o6, o6b) + t12 * _dot(o7, o7b)
    m[3, 3] = 2.0 * h5b + t11 * _dot(o6b, o6b) + t12 * _dot(o7b, o7b)
    return m | {(j, i): value for (i, j), value in m.items()}


def _dot(a: tuple[Array, Array | float], b: tuple[Array, Array | float]) -> Array:
    return np.asarray(a[0] * b[0] + a[1] * b[1])


def _coriolis(q: Columns, v: Columns, th: Columns) -> Entries:
    """Return the entries of C (A4.5), which are the Christoffel symbols of M times v."""
    _, t2, t3, _, t5, t6, t7, t8, t9, t10, t11, t12 = th
    _, q2, q4, q5 = q
    _, v2, v4, v5 = v
    q45, w, u, z = q4 + q5, v4 + v5, 2.0 * q4 + q5, 2.0 * v4 + v5
    S = t11 + t12
    A, B, E = t5 + t7 + L6 * t12, t9 + LAMBDA * S, t6 + t8
    U, X = L4 * t5 - LAMBDA * (t7 + L6 * t12), L4 * t6 - LAMBDA * t8
    K9, H5 = 2.0 * L4 * t9 - LAMBDA**2 * S, 2.0 * L4 * t5 - L6**2 * t12
    N12, N10 = (L5 + L6) * t12 + L5 * t11 + t5 + t7 + t9, t6 + t8 + t10
    V5 = (2.0 * L5 * L6 - L4 * L6 + L4 * L5) * t12 + (2.0 * L5 - L4) * t7 + L4 * L5 * t11 + L4 * (t9 - t5)
    Z5 = L4 * (t6 + t10) + (L4 - 2.0 * L5) * t8
    K = (2.0 * L5 - L4) * S + 2.0 * t9
    sin, cos = np.sin, np.cos
    c: Entries = {}
    c[0, 1] = (
        0.5 * A * ((v2 - v4) * sin(q4 - q2) + (v2 + v4) * sin(q4 + q2))
        + 0.5 * B * ((w + v2) * sin(q45 + q2) + (v2 - w) * sin(q45 - q2))
        + 0.5 * E * ((v2 - v4) * cos(q4 - q2) + (v2 + v4) * cos(q4 + q2))
        + 0.5 * t10 * ((v2 - w) * cos(q45 - q2) + (w + v2) * cos(q45 + q2))
        - (S * D20 + t3) * v2 * cos(q2)
        - (t2 + D6 * t11) * v2 * sin(q2)
    )
    c[0, 3] = 0.5 * t10 * ((w + v2) * cos(q45 + q2) + (w - v2) * cos(q45 - q2)) + 0.5 * B * (
        (w + v2) * sin(q45 + q2) + (w - v2) * sin(q45 - q2)
    )
    c[0, 2] = (
        c[0, 3]
        + 0.5 * E * ((v4 - v2) * cos(q4 - q2) + (v2 + v4) * cos(q4 + q2))
        + 0.5 * A * ((v4 - v2) * sin(q4 - q2) + (v2 + v4) * sin(q4 + q2))
    )
    c[1, 1] = (
        -0.5 * X * (z * cos(u) + v5 * cos(q5))
        - v4 * D20 * A * cos(q4)
        - w * D20 * B * cos(q45)
        - 0.5 * w * K9 * sin(2.0 * q45)
        - 0.5 * v4 * H5 * sin(2.0 * q4)
        - v4 * L4 * t6 * cos(2.0 * q4)
        + 0.5 * U * (v5 * sin(q5) - z * sin(u))
        + w * D20 * t10 * sin(q45)
        - w * L4 * t10 * cos(2.0 * q45)
        + D20 * v4 * E * sin(q4)
    )
    c[2, 1] = v2 * (
        L4 * t10 * cos(2.0 * q45)
        + L4 * t6 * cos(2.0 * q4)
        + D20 * B * cos(q45)
        - D20 * t10 * sin(q45)
        + 0.5 * H5 * sin(2.0 * q4)
        + U * sin(u)
        + 0.5 * K9 * sin(2.0 * q45)
        + D20 * A * cos(q4)
        - D20 * E * sin(q4)
        + X * cos(u)
    )
    c[3, 1] = v2 * (
        D20 * B * cos(q45)
        - 0.5 * U * (sin(q5) - sin(u))
        + 0.5 * K9 * sin(2.0 * q45)
        + L4 * t10 * cos(2.0 * q45)
        - D20 * t10 * sin(q45)
        + 0.5 * X * (cos(q5) + cos(u))
    )
    c[1, 2] = -c[2, 1] + D6 * (t11 * LAMBDA * w * sin(q45) + v4 * (t8 * cos(q4) + t7 * sin(q4)))
    c[1, 3] = -c[3, 1] + D6 * t11 * LAMBDA * w * sin(q45)
    c[2, 2] = (
        0.5 * L4 * w * K * sin(2.0 * q45)
        - 0.5 * v5 * V5 * sin(q5)
        + L4 * w * t10 * cos(2.0 * q45)
        + 0.5 * L4 * z * (N12 * sin(u) + N10 * cos(u))
        + L4 * v4 * E * cos(2.0 * q4)
        + 0.5 * L4 * v4 * ((L4 + 2.0 * L6) * t12 + 2.0 * t7 + L4 * t11 + 2.0 * t5) * sin(2.0 * q4)
        - 0.5 * v5 * Z5 * cos(q5)
    )
    c[3, 3] = w * (0.5 * L4 * K * sin(2.0 * q45) + L4 * t10 * cos(2.0 * q45))
    c[2, 3] = c[3, 3] + 0.5 * w * (L4 * (N10 * cos(u) + N12 * sin(u)) - V5 * sin(q5) - Z5 * cos(q5))
    c[3, 2] = c[3, 3] + 0.5 * v4 * (V5 * sin(q5) + L4 * (N12 * sin(u) + N10 * cos(u)) + Z5 * cos(q5))
    return c


def _gravity(q: Columns, th: Columns) -> tuple[Array, Array]:
    """Return the last two entries of g (A4.6); the first two are zero."""
    _, _, _, _, t5, t6, t7, t8, t9, t10, t11, t12 = th
    _, _, q4, q5 = q
    last = -GRAVITY * ((t9 + L5 * (t11 + t12)) * np.sin(q4 + q5) + t10 * np.cos(q4 + q5))
    own = (t6 + t8) * np.cos(q4) + (t5 + t7 + (L6 + L4) * t12 + L4 * t11) * np.sin(q4)
    return last - GRAVITY * own, last


def mass_matrix(q: ArrayLike, theta: ArrayLike = THETA) -> Array:
    """Return M(q, theta) of Appendix B, corrected.

    `q` (N, 4): q1 [m], q2, q4, q5 [rad]; `theta` (32,): parameters of Table 4. Returns (N, 4, 4): symmetric; not positive
    definite everywhere with the printed parameters.
    """
    joints = columns(q, 4, "q")
    return _matrix(_mass(joints.T, _theta(theta, 12)[:12]), len(joints))


def coriolis_matrix(q: ArrayLike, v: ArrayLike, theta: ArrayLike = THETA) -> Array:
    """Return C(q, v, theta) of Appendix B, for which M' - 2 C is skew.

    `q`, `v` (N, 4): joint positions and velocities; `theta` (32,): parameters of Table 4. Returns (N, 4, 4): the first column
    is zero.
    """
    joints, speeds = samples_of(4, q=q, v=v)
    return _matrix(_coriolis(joints.T, speeds.T, _theta(theta, 12)[:12]), len(joints))


def gravity(q: ArrayLike, theta: ArrayLike = THETA) -> Array:
    """Return g(q, theta) of Appendix B.

    `q` (N, 4): joint positions; `theta` (32,): parameters of Table 4. Returns (N, 4): force [N] and torques [N m] that hold
    the robot.
    """
    joints = columns(q, 4, "q")
    out = np.zeros_like(joints)
    out[:, 2], out[:, 3] = _gravity(joints.T, _theta(theta, 12)[:12])
    return out


def friction(v: ArrayLike, theta: ArrayLike = THETA) -> Array:
    """Return f(v, theta) of (13), (68): B_v v + B_f1 tanh(w1 v) + B_f2 tanh(w2 v), without the exponential's overflow.

    `v` (N, 4): joint velocities; `theta` (32,): parameters of Table 4. Returns (N, 4): friction force [N] and torques [N m],
    to be overcome by tau.
    """
    speeds = columns(v, 4, "v")
    Bv, B1, B2, w1, w2 = _theta(theta, 32)[12:].reshape(5, 4)
    return np.asarray(Bv * speeds + B1 * np.tanh(w1 * speeds) + B2 * np.tanh(w2 * speeds))


def regressor(q: ArrayLike, v: ArrayLike, a: ArrayLike) -> Array:
    """Return Y with M a + C v + g = Y theta[:12]; friction is not linear in its slopes and is left out.

    `q`, `v`, `a` (N, 4): joint positions, velocities and accelerations. Returns (N, 4, 12): columns theta_1 ... theta_12.
    """
    joints, speeds, changes = samples_of(4, q=q, v=v, a=a)
    unit = np.eye(12)  # theta_k as a row of unit vectors: every entry becomes (N, 12)
    x, dx, ddx = ([column[:, None] for column in array.T] for array in (joints, speeds, changes))
    Y = np.zeros((len(joints), 4, 12))
    for (i, j), value in _mass(x, unit).items():
        Y[:, i] += value * ddx[j]
    for (i, j), value in _coriolis(x, dx, unit).items():
        Y[:, i] += value * dx[j]
    third, last = _gravity(x, unit)
    Y[:, 2] += third
    Y[:, 3] += last
    return Y


def inverse_dynamics(q: ArrayLike, v: ArrayLike, a: ArrayLike, theta: ArrayLike = THETA) -> Array:
    """Return tau = M a + C v + g + f (60).

    `q`, `v`, `a` (N, 4): joint positions, velocities and accelerations; `theta` (32,): parameters of Table 4. Returns (N, 4):
    tau_1 [N], tau_2, tau_4, tau_5 [N m].
    """
    x, dx, ddx = samples_of(4, q=q, v=v, a=a)
    M, C = mass_matrix(x, theta), coriolis_matrix(x, dx, theta)
    inertial = np.einsum("nij,nj->ni", M, ddx) + np.einsum("nij,nj->ni", C, dx)
    return np.asarray(inertial + gravity(x, theta) + friction(dx, theta))


def forward_dynamics(q: ArrayLike, v: ArrayLike, tau: ArrayLike, theta: ArrayLike = THETA, added_inertia: float = 0.0) -> Array:
    """Return the accelerations a of (60), or say where M is not positive definite.

    `q`, `v`, `tau` (N, 4): joint positions, velocities and torques; `theta` (32,): parameters of Table 4; `added_inertia`:
    inertia added to q4 and q5 [kg m^2]; 0.2 makes the printed parameters positive definite everywhere. Returns (N, 4):
    accelerations.
    """
    x, dx, torque = samples_of(4, q=q, v=v, tau=tau)
    M = mass_matrix(x, theta) + np.diag([0.0, 0.0, added_inertia, added_inertia])
    least = np.linalg.eigvalsh(M)[:, 0]
    if np.any(least <= 0.0):
        i = int(np.argmax(least <= 0.0))
        raise DynidentError(
            f"sample {i}: the mass matrix is not positive definite (smallest eigenvalue {least[i]:.4g}) at q = "
            f"{np.round(x[i], 5).tolist()}, so accelerations have no meaning; the parameters of Table 4 do that on about 35 % "
            "of the workspace: identify again with physical constraints, or give added_inertia=0.2"
        )
    C = coriolis_matrix(x, dx, theta)
    rest = torque - np.einsum("nij,nj->ni", C, dx) - gravity(x, theta) - friction(dx, theta)
    return np.asarray(np.linalg.solve(M, rest[..., None])[..., 0])
