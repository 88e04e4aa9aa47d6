"""Three PR legs in fixed vertical planes that carry one platform: kinematics shared by the 2PRU-1PRS and the 3-PRS.

Coordinates of the platform are x = (z, psi, theta). Its attitude is R = Ry(theta) Rx(psi) Rz(phi) [Ruiz2016, eq. 4]
([Roldan2017, eq. 3.42] has a misprint in entry (2, 2)), and phi, p_x, p_y are parasitic: they follow from the planes of the
legs. In the plane of leg i, with outward direction e_i, the joint B_i on the platform and the foot C_i of the bar on the slider
are

    B_i = (e_i . (p + R b_i), z-part),     B_i - C_i = L (-cos gamma_i, sin gamma_i)

Sliders move along z (2PRU-1PRS) or radially inward (3-PRS). Velocities and accelerations are exact derivatives; every quantity
is linear in the velocity, so Jacobians are its values at unit velocities.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dynident.arrays import Array
from dynident.errors import DynidentError
from dynident_papers.robots.shared import check_length

Mode = str | Sequence[int] | None

PLATFORM = ("z", "psi", "theta")
SINGULAR = 1e-9  # sine or determinant, relative to its largest value, below which a configuration counts as singular


class PlatformMotion(NamedTuple):
    """Motion of the platform."""

    angles: Array  # theta, psi, phi [rad]
    angle_rates: Array  # Their velocities
    angle_accelerations: Array  # Their accelerations
    R: Array  # Attitude
    p: Array  # Position of the centre, base axes
    v: Array  # Velocity of the centre
    a: Array  # Acceleration of the centre
    w: Array  # Angular velocity, platform axes
    w_dot: Array  # Angular acceleration, platform axes


class LegMotion(NamedTuple):
    """Motion of the legs, each in its own plane (outward, up)."""

    gamma: Array  # Bar angles [rad]
    gamma_dot: Array  # Their velocities
    gamma_ddot: Array  # Their accelerations
    slider: Array  # Slider positions [m]
    slider_dot: Array  # Their velocities
    slider_ddot: Array  # Their accelerations
    joint: Array  # B_i in the plane of leg i
    joint_dot: Array  # Its velocity
    joint_ddot: Array  # Its acceleration
    foot: Array  # C_i in the plane of leg i
    foot_dot: Array  # Its velocity
    foot_ddot: Array  # Its acceleration


@dataclass(frozen=True, eq=False)
class Tripod:
    """Geometry of a robot with three PR legs."""

    name: str  # For errors
    bearings: tuple[float, float, float]  # Angle of each leg's outward direction about z [rad]
    offset: float  # Distance of the slider axes from z (vertical sliders), or of the sliders' origins (radial sliders) [m]
    length: float  # L, bar between pin and platform joint [m]
    radius: float  # Distance of the platform joints from the platform's centre [m]
    vertical: bool  # Sliders along z; otherwise radial, positive inward
    spins: bool  # Whether phi = 2 atan(tan(psi/2) tan(theta/2)), which is [Ruiz2016, eq. 13]; otherwise phi = 0
    parasitic: Array  # p_x and p_y as linear functions of R: p_k = sum K_k R
    modes: tuple[str, str]
    home: Array  # Platform pose in the middle of the work space, for `modes[0]` of all legs

    def __post_init__(self) -> None:
        for label in ("offset", "length", "radius"):
            check_length(self.name, label, getattr(self, label))

    @property
    def outward(self) -> Array:
        """Outward unit vector of each leg, (3, 3)."""
        b = np.array(self.bearings)
        return np.stack([np.cos(b), np.sin(b), np.zeros(3)], axis=1)

    def signs(self, working_mode: Mode = None) -> Array:
        """Return the branch of each leg."""
        if working_mode is None or working_mode in self.modes:
            return np.full(3, -1.0 if working_mode == self.modes[1] else 1.0)
        signs = np.zeros(0) if isinstance(working_mode, str) else np.asarray(working_mode, dtype=np.float64)
        if signs.shape != (3,) or not np.all(np.abs(signs) == 1.0):
            raise DynidentError(
                f"{self.name}: working mode is {working_mode!r}; it is one of {', '.join(self.modes)}, or three signs"
            )
        return signs


def spin(t: Tripod, rates: Array) -> Array:
    """Return phi and its two derivatives."""
    if not t.spins:
        return np.zeros(rates.shape[:2])
    half = np.tan(0.5 * rates[0])
    first = 0.5 * (1.0 + half**2) * rates[1]
    second = 0.5 * (1.0 + half**2) * rates[2] + half * first * rates[1]
    (f, g), (f1, g1), (f2, g2) = half.T, first.T, second.T
    T, T1, T2 = f * g, f1 * g + f * g1, f2 * g + 2.0 * f1 * g1 + f * g2
    scale = 1.0 + T**2
    return np.stack([2.0 * np.arctan(T), 2.0 * T1 / scale, 2.0 * T2 / scale - 4.0 * T * T1**2 / scale**2])


def attitude(angles: Array) -> Array:
    """Return R = Ry(theta) Rx(psi) Rz(phi)."""
    (ct, cp, cf), (st, sp, sf) = np.cos(angles).T, np.sin(angles).T
    rows = [
        [ct * cf + sp * st * sf, -ct * sf + sp * st * cf, cp * st],
        [cp * sf, cp * cf, -sp],
        [-st * cf + sp * ct * sf, st * sf + sp * ct * cf, cp * ct],
    ]
    return np.moveaxis(np.array(rows), 2, 0)


def rate_matrix(angles: Array) -> tuple[Array, Array]:
    """Return D^T with w = D^T q_dot for the angles q = (theta, psi, phi), and its slopes."""
    D, slope = np.zeros((len(angles), 3, 3)), np.zeros((len(angles), 3, 3, 3))
    (_, c1, c2), (_, s1, s2) = np.cos(angles).T, np.sin(angles).T
    D[:, 0, 0], D[:, 0, 1] = s2 * c1, c2
    D[:, 1, 0], D[:, 1, 1] = c2 * c1, -s2
    D[:, 2, 0], D[:, 2, 2] = -s1, 1.0
    slope[:, 1, 0, 0], slope[:, 1, 1, 0], slope[:, 1, 2, 0] = -s2 * s1, -c2 * s1, -c1
    slope[:, 2, 0, 0], slope[:, 2, 0, 1] = c2 * c1, -s2
    slope[:, 2, 1, 0], slope[:, 2, 1, 1] = -s2 * c1, -c2
    return D, slope


def crosses(w: Array) -> Array:
    """Return [w]x of many vectors."""
    out = np.zeros((*w.shape, 3))
    out[..., 0, 1], out[..., 0, 2], out[..., 1, 2] = -w[..., 2], w[..., 1], -w[..., 0]
    return np.asarray(out - np.swapaxes(out, -1, -2))


def platform_motion(t: Tripod, x: Array, v: Array, a: Array) -> PlatformMotion:
    """Return the motion of the platform, parasitic motions included, from z, psi, theta (N, 3) and derivatives."""
    phi = spin(t, np.stack([x[:, 1:], v[:, 1:], a[:, 1:]]))
    angles, rates, accelerations = (np.column_stack([y[:, 2], y[:, 1], f]) for y, f in zip((x, v, a), phi, strict=True))
    D, slope = rate_matrix(angles)
    D_dot = np.einsum("skij,sk->sij", slope, rates)
    w = np.einsum("sij,sj->si", D, rates)
    w_dot = np.einsum("sij,sj->si", D, accelerations) + np.einsum("sij,sj->si", D_dot, rates)
    R, W = attitude(angles), crosses(w)
    turning = (R, R @ W, R @ (crosses(w_dot) + W @ W))
    centre = [
        np.column_stack([np.einsum("kij,sij->sk", t.parasitic, Q), y[:, 0]]) for Q, y in zip(turning, (x, v, a), strict=True)
    ]
    return PlatformMotion(angles, rates, accelerations, R, centre[0], centre[1], centre[2], w, w_dot)


def platform_joints(t: Tripod, motion: PlatformMotion) -> tuple[Array, Array, Array]:
    """Return the platform joints B_i in space, with velocities and accelerations."""
    b = t.radius * t.outward
    W = crosses(motion.w)
    turning = (motion.R, motion.R @ W, motion.R @ (crosses(motion.w_dot) + W @ W))
    B = [c[:, None] + np.einsum("sij,lj->sli", Q, b) for c, Q in zip((motion.p, motion.v, motion.a), turning, strict=True)]
    return B[0], B[1], B[2]


def leg_motion(t: Tripod, x: Array, v: Array, a: Array, signs: Array) -> LegMotion:
    """Return bars and sliders for a motion of the platform: the inverse problem with two derivatives."""
    L = t.length
    space = platform_joints(t, platform_motion(t, x, v, a))
    B, B1, B2 = (np.stack([np.einsum("sli,li->sl", y, t.outward), y[:, :, 2]], axis=2) for y in space)
    reach = (t.offset - B[:, :, 0]) / L if t.vertical else B[:, :, 1] / L
    if np.any(np.abs(reach) > 1.0):
        s, leg = (int(k) for k in np.argwhere(np.abs(reach) > 1.0)[0])
        raise DynidentError(f"{t.name}: the pose at sample {s} ({_pose(x[s])}) is out of reach: leg {leg + 1} would have to be "
                            f"{abs(reach[s, leg]) * L:.6g} m long and is {L:g} m")  # fmt: skip
    other = signs * np.sqrt((1.0 - reach) * (1.0 + reach))
    cosine, sine = (reach, other) if t.vertical else (other, reach)
    lever = L * other  # the rate of the coordinate across the slider is lever * gamma_dot
    if np.any(np.abs(other) < SINGULAR):
        s, leg = (int(k) for k in np.argwhere(np.abs(other) < SINGULAR)[0])
        raise DynidentError(f"{t.name}: leg {leg + 1} is square to its slider at sample {s} ({_pose(x[s])}): serial "
                            "singularity, where the slider does not move the platform; keep away from it")  # fmt: skip
    across = 0 if t.vertical else 1
    turn, inward = np.stack([sine, cosine], axis=2), np.stack([cosine, -sine], axis=2)
    gamma_dot = B1[:, :, across] / lever
    gamma_ddot = (B2[:, :, across] - L * inward[:, :, across] * gamma_dot**2) / lever
    C, C1 = B + L * inward, B1 - L * turn * gamma_dot[:, :, None]
    C2 = B2 - L * (turn * gamma_ddot[:, :, None] + inward * gamma_dot[:, :, None] ** 2)
    along, sign = (1, 1.0) if t.vertical else (0, -1.0)
    slider = [sign * y[:, :, along] for y in (C, C1, C2)]
    if not t.vertical:
        slider[0] = slider[0] + t.offset
    gamma = np.arctan2(sine, cosine)
    return LegMotion(gamma, gamma_dot, gamma_ddot, slider[0], slider[1], slider[2], B, B1, B2, C, C1, C2)


def actuator_jacobian(t: Tripod, x: Array, signs: Array) -> Array:
    """Return A with slider_dot = A (z_dot, psi_dot, theta_dot), which is J_q^-1 J_x of the thesis."""
    columns = [leg_motion(t, x, np.broadcast_to(unit, x.shape), np.zeros_like(x), signs).slider_dot for unit in np.eye(3)]
    return np.stack(columns, axis=2)


def platform_from_sliders(t: Tripod, x: Array, slider_dot: Array, slider_ddot: Array, signs: Array) -> tuple[Array, Array]:
    """Return the motion of the platform from the slider motion at known poses.

    v = A^-1 slider_dot,    a = A^-1 (slider_ddot - A_dot v)
    """
    A = actuator_jacobian(t, x, signs)
    check_parallel(t, A, x)
    v = np.asarray(np.linalg.solve(A, slider_dot[:, :, None])[:, :, 0])
    bias = leg_motion(t, x, v, np.zeros_like(v), signs).slider_ddot
    return v, np.asarray(np.linalg.solve(A, (slider_ddot - bias)[:, :, None])[:, :, 0])


def check_parallel(t: Tripod, A: Array, x: Array) -> None:
    """Raise an error for poses that the sliders do not hold (parallel singularity)."""
    index = np.abs(np.linalg.det(A)) / t.radius**2
    if len(index) and np.min(index) < SINGULAR:
        s = int(np.argmin(index))
        raise DynidentError(f"{t.name}: parallel singularity at sample {s} ({_pose(x[s])}), where the sliders do not hold the "
                            "platform; keep away from it")  # fmt: skip


def _pose(x: Array) -> str:
    return ", ".join(f"{name} = {value:.6g}" for name, value in zip(PLATFORM, x, strict=True))
