"""CFT-transposer: Cartesian coordinates, nuts, joints and motors of [Rodriguez2002], with their forces, gains and encoders.

    xc = h(q),   vc = J(q) v,   tau = J^T F,   u = F / K_T                                                (57), (61), Table 6

q (N, 4) are q1, q2, q4, q5 and xc (N, 4) are xc1 ... xc4. One sample may be a vector.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.errors import DynidentError
from dynident_papers.robots.cft.data import (
    AMPLIFIER,
    CONVERSIONS,
    D20,
    DS,
    ENCODER_FACTORS,
    GEAR_RATIOS,
    HEIGHT,
    L2,
    L4,
    L5,
    L6,
    L7,
    L8,
    LIMITS,
    TORQUE_CONSTANT,
    TURN,
)
from dynident_papers.robots.shared import columns, samples_of

UP, REACH = (L4 + L6) / L4, L6 / L4  # 7 and 6: gains of the pantograph from the nuts' motions (47)


def references_from_cartesian(xc: ArrayLike) -> Array:
    """Return the nuts' positions x_r = (xc2 - d20' - d_s) / 6, y_r = (0.25 - xc1) / 7 [Rodriguez2002, eqs. 48, 49]."""
    x = columns(xc, 4, "xc")
    return np.column_stack([(x[:, 1] - D20 - DS) / REACH, (HEIGHT - x[:, 0]) / UP])


def measured_references(xc: ArrayLike) -> Array:
    """Return the positions of the two nuts, with the measured shifts of the screws [Rodriguez2002, eqs. 50, 51]."""
    x = columns(xc, 4, "xc")
    # Shares of the ends of the span in Table 5: xc2 counts from its lower end, xc1 from its upper one.
    return np.column_stack([(x[:, 1] - LIMITS[1, 0]) / REACH - 0.0506, (LIMITS[0, 1] - x[:, 0]) / UP + 0.03235])


def joint_from_cartesian(xc: ArrayLike) -> Array:
    """Return the joint positions q = h^-1(xc) of Cartesian coordinates [Rodriguez2002, eq. 57].

    (52) and (53) are used as beta = gamma + half, alpha = gamma - half with gamma = atan2(y_r, -x_r) and
    half = arccos(r / 2 L4), which needs no cases and also holds for y_r < 0.
    """
    x = columns(xc, 4, "xc")
    xr, yr = references_from_cartesian(x).T
    r = np.hypot(xr, yr)
    if np.any(r > 2.0 * L4 * (1.0 + 1e-13)):
        i = int(np.argmax(r))
        # The nuts stay within the circle r = 2 L4, which the pantograph maps to an ellipse.
        t = np.linspace(-np.pi, np.pi, 100_001)
        edge = 2.0 * L4 * REACH * np.cos(t), 2.0 * L4 * UP * np.sin(t)
        away = float(np.min(np.hypot(edge[0] - REACH * xr[i], edge[1] - UP * yr[i])))
        raise DynidentError(
            f"sample {i}: xc1 = {x[i, 0]:.6g}, xc2 = {x[i, 1]:.6g} m is {away:.4g} m out of the pantograph's reach; stay "
            "within the limits of Table 5"
        )
    gamma, half = np.arctan2(yr, -xr), np.arccos(np.minimum(r / (2.0 * L4), 1.0))
    return np.column_stack([x[:, 3] + DS, x[:, 2] - TURN, 0.5 * np.pi - gamma - half, 2.0 * half])


def cartesian_from_joint(q: ArrayLike) -> Array:
    """Return the Cartesian coordinates xc = h(q): [Rodriguez2002, eq. 62], then (48) and (49) inverted."""
    joints = columns(q, 4, "q")
    q1, q2, q4, q5 = joints.T
    xr = -L4 * (np.sin(q4 + q5) + np.sin(q4))
    yr = L4 * (np.cos(q4 + q5) + np.cos(q4))
    return np.column_stack([HEIGHT - UP * yr, REACH * xr + D20 + DS, q2 + TURN, q1 - DS])


def cartesian_jacobian(q: ArrayLike) -> Array:
    """Return J(q) with dxc/dt = J(q) dq/dt."""
    joints = columns(q, 4, "q")
    _, _, q4, q5 = joints.T
    c4, s4, c45, s45 = np.cos(q4), np.sin(q4), np.cos(q4 + q5), np.sin(q4 + q5)
    J = np.zeros((len(joints), 4, 4))
    J[:, 0, 2], J[:, 0, 3] = UP * L4 * (s45 + s4), UP * L4 * s45
    J[:, 1, 2], J[:, 1, 3] = -REACH * L4 * (c45 + c4), -REACH * L4 * c45
    J[:, 2, 1] = J[:, 3, 0] = 1.0
    return J


def drift(q: Array, v: Array) -> Array:
    """Return J' v, the Cartesian acceleration without acceleration of the joints."""
    _, _, q4, q5 = q.T
    w4, w45 = v[:, 2], v[:, 2] + v[:, 3]
    out = np.zeros_like(v)
    out[:, 0] = UP * L4 * (np.cos(q4 + q5) * w45**2 + np.cos(q4) * w4**2)
    out[:, 1] = REACH * L4 * (np.sin(q4 + q5) * w45**2 + np.sin(q4) * w4**2)
    return out


def joint_motion(xc: ArrayLike, vc: ArrayLike, ac: ArrayLike) -> tuple[Array, Array, Array]:
    """Return the joint motion of a Cartesian motion, q = h^-1(xc), J v = vc, J a = ac - J' v."""
    x, dx, ddx = samples_of(4, xc=xc, vc=vc, ac=ac)
    q = joint_from_cartesian(x)
    regular(q)
    J = cartesian_jacobian(q)
    v: Array = np.asarray(np.linalg.solve(J, dx[..., None])[..., 0], dtype=np.float64)
    a = np.linalg.solve(J, (ddx - drift(q, v))[..., None])[..., 0]
    return q, v, np.asarray(a, dtype=np.float64)


def tool_position(q: ArrayLike, tool: bool = True) -> Array:
    """Return the position of the tool's end [Rodriguez2002, eq. 59], with a misprinted sign corrected in y."""
    q1, q2, q4, q5 = columns(q, 4, "q").T
    long, drop = (L8, L7) if tool else (0.0, 0.0)
    forward = long + D20 - L6 * np.sin(q4) - (L5 - L4) * np.sin(q4 + q5)
    up = L2 - drop + (L6 + L4) * np.cos(q4) + L5 * np.cos(q4 + q5)
    return np.column_stack([-np.sin(q2) * forward, q1 + np.cos(q2) * forward, up])


# ---- forces -------------------------------------------------------------------------------------------------------------


def regular(q: Array) -> None:
    """Raise an error for joint positions with a stretched or folded pantograph."""
    flat = np.abs(np.sin(q[:, 3]))
    if np.any(flat < 1e-9):
        i = int(np.argmin(flat))
        raise DynidentError(
            f"sample {i}: q5 = {q[i, 3]:.6g} rad is singular (sin q5 = 0); the pantograph is stretched or folded"
        )


def torque_from_force(q: ArrayLike, force: ArrayLike) -> Array:
    """Return joint torques of the controller forces, tau = J_r^T F with the Jacobian of the nuts [Rodriguez2002, eq. 66]."""
    joints, f = samples_of(4, q=q, force=force)
    _, _, q4, q5 = joints.T
    c4, s4, c45, s45 = np.cos(q4), np.sin(q4), np.cos(q4 + q5), np.sin(q4 + q5)
    tau4 = -L4 * (f[:, 1] * (c45 + c4) - f[:, 0] * (s45 + s4))
    return np.column_stack([f[:, 3], f[:, 2], tau4, -L4 * (f[:, 1] * c45 - f[:, 0] * s45)])


def force_from_torque(q: ArrayLike, torque: ArrayLike) -> Array:
    """Return the controller forces of joint torques [Rodriguez2002, eq. 65], with the minus of row 4 that is lost in print."""
    joints, tau = samples_of(4, q=q, torque=torque)
    regular(joints)
    _, _, q4, q5 = joints.T
    c4, s4, c45, s45 = np.cos(q4), np.sin(q4), np.cos(q4 + q5), np.sin(q4 + q5)
    determinant = L4 * np.sin(q5)
    on_x = (-tau[:, 2] * s45 + tau[:, 3] * (s45 + s4)) / determinant
    on_y = (tau[:, 2] * c45 - tau[:, 3] * (c45 + c4)) / determinant
    return np.column_stack([-on_y, on_x, tau[:, 1], tau[:, 0]])


def cartesian_force(force: ArrayLike) -> Array:
    """Return the forces that do the same work on xc1 and xc2 as the nuts' forces, F_xc1 / 7 and F_xc2 / 6."""
    return np.asarray(columns(force, 4, "force") / [UP, REACH, 1.0, 1.0])


def motor_gains(setup: str = "TUEdACS") -> Array:
    """Return the gains K_T = K_a K_t / (K_g K_c) from voltage to force [Rodriguez2002, Table 6]."""
    if setup not in AMPLIFIER:
        raise DynidentError(f"setup is {setup!r}; the report describes {' and '.join(AMPLIFIER)}")
    return np.asarray(AMPLIFIER[setup] * TORQUE_CONSTANT / (GEAR_RATIOS * CONVERSIONS))


def force_from_voltage(voltage: ArrayLike, setup: str = "TUEdACS") -> Array:
    """Return the forces F = K_T u of amplifier voltages [Rodriguez2002, Table 6]."""
    return np.asarray(columns(voltage, 4, "voltage") * motor_gains(setup))


def voltage_from_force(force: ArrayLike, setup: str = "TUEdACS") -> Array:
    """Return the amplifier voltages u = F / K_T for forces [Rodriguez2002, Table 6]."""
    return np.asarray(columns(force, 4, "force") / motor_gains(setup))


def encoder_position(pulses: ArrayLike) -> Array:
    """Return Cartesian displacements, encoder pulses times `ENCODER_FACTORS` [Rodriguez2002, Table 5]."""
    return np.asarray(columns(pulses, 4, "pulses") * ENCODER_FACTORS)
