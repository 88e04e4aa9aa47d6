"""RRR robot: friction, drives and control as the paper writes them, (8) to (11) and (15), and its printed results."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dynident.checks import numbers
from dynident.errors import DynidentError
from dynident.robots.rrr.kinematics import Array, states

FLOPS = {"inverse kinematics": (102, 2783), "inverse dynamics": (393, 1050)}
"""Operations per point, closed form against Corke's toolbox, as the paper counts them (sec. V)."""

RMS_FEEDFORWARD = (0.25, 1.98, 0.78)
RMS_FEEDBACK = (0.11, 0.24, 0.17)
"""RMS voltages of model and PD action in the writing task (16) [V]."""


def friction_voltage(v: ArrayLike, f: ArrayLike, w: ArrayLike, b: ArrayLike) -> Array:
    """Return u_f,i = sum_k f_ik tanh(w_ik v_i) + b_i v_i, equation (9) without its overflow: 1 - 2/(e^2x + 1) = tanh x.

    Parameters
    ----------
    v : array_like, (N, 3)
        Joint velocities [rad/s].
    f, w : array_like, (3, k)
        Heights [V] and slopes [s/rad] of each joint's terms; the paper has k = 3.
    b : array_like, (3,)
        Viscous coefficients [V s/rad].

    Returns
    -------
    ndarray, (N, 3)
        Friction voltages [V].
    """
    (speeds,) = states(v=v)
    heights, slopes, viscous = numbers(f, "f"), numbers(w, "w"), numbers(b, "b")
    if heights.shape != slopes.shape or heights.ndim != 2 or len(heights) != 3 or viscous.shape != (3,):
        raise DynidentError(f"f {heights.shape}, w {slopes.shape}, b {viscous.shape} do not fit; give (3, k), (3, k) and (3,)")
    return np.asarray(np.sum(heights * np.tanh(slopes * speeds[:, :, None]), axis=2) + viscous * speeds)


def voltage(tau: ArrayLike, torque_constant: ArrayLike, friction: ArrayLike = 0.0) -> Array:
    """Return the voltages u = tau / k_t + u_f of (8) and (10); tau = R p contains the rotors' torques already.

    Parameters
    ----------
    tau : array_like, (N, 3)
        Torques R p [N m].
    torque_constant : array_like, (3,)
        k_t [N m/V].
    friction : array_like, (N, 3)
        Friction voltages [V].

    Returns
    -------
    ndarray, (N, 3)
        Voltages [V].
    """
    (torques,) = states(tau=tau)
    gains = numbers(torque_constant, "torque_constant")
    if gains.shape != (3,) or not np.all(gains != 0.0):
        raise DynidentError(f"torque_constant is {gains.tolist()}; give three numbers that are not zero")
    return np.asarray(torques / gains + numbers(friction, "friction"))


def control_voltage(
    feedforward: ArrayLike, q_ref: ArrayLike, v_ref: ArrayLike, q: ArrayLike, v: ArrayLike, kp: ArrayLike, kd: ArrayLike
) -> Array:
    """Return u = u_n + k_p (q_ref - q) + k_d (v_ref - v) of (15): the model on the reference, and a PD action.

    Parameters
    ----------
    feedforward : array_like, (N, 3)
        u_n from the model on the reference [V].
    q_ref, v_ref, q, v : array_like, (N, 3)
        Wanted and measured positions and velocities.
    kp, kd : array_like, (3,)
        Gains [V/rad, V s/rad]; the paper does not print its own.

    Returns
    -------
    ndarray, (N, 3)
        Voltages [V].
    """
    u, wanted, wanted_v, actual, actual_v = states(feedforward=feedforward, q_ref=q_ref, v_ref=v_ref, q=q, v=v)
    return np.asarray(u + numbers(kp, "kp") * (wanted - actual) + numbers(kd, "kd") * (wanted_v - actual_v))
