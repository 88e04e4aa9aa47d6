"""A payload from a force/torque sensor at the wrist: poses at rest, or a motion.

    f = m (a - g) + al x h + w x (w x h),    n = I al + w x I w + h x (a - g)          sensor on load, in the sensor's axes
    measured = -+ (f, n) + bias

a, al, w are those of the sensor's frame, g is gravity in its axes. Everything but the direction of gravity is linear.
"""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.arrays import Array
from dynident.checks import choice, numbers, time_axis
from dynident.errors import IdentificationError, LogError
from dynident.identify.payload.load import Payload, believed
from dynident.identify.posterior.posterior import at_least_jackknife
from dynident.identify.regression.factor import BLOCKS
from dynident.mechanics.functions import at_rest
from dynident.mechanics.kinematics import forward_kinematics, frame_motion
from dynident.mechanics.motion import Motion
from dynident.mechanics.newton_euler import body_regressor
from dynident.mechanism.inertia import SYMBOLS as INERTIA_SYMBOLS
from dynident.mechanism.mechanism import Mechanism
from dynident.signals.filters import automatic_cutoff, butterworth
from dynident.signals.formats import read_table

SEEN = 1e-7  # part of a column of unit length below which the data do not show it
PASSES = 30
ENOUGH = 8  # samples from which on a base that is not level can be told
BETTER = 0.5  # of the residual that a turned gravity must leave at most ...
LEVEL = 0.5  # ... and the angle [deg] from which on that is a doubt
SLOWEST = 0.25  # time between samples of a motion [s]
CHANNELS = ("fx", "fy", "fz", "tx", "ty", "tz")
LONG = ("force_x", "force_y", "force_z", "torque_x", "torque_y", "torque_z")


def payload_from_wrench(
    mechanism: Mechanism,
    motion: Motion | ArrayLike,
    wrench: ArrayLike,
    frame: str,
    *,
    sense: str = "load",
    bias: bool = True,
    gravity: bool = False,
    independence: float = 1.0,
    reach: float | None = None,
    heaviest: float | None = None,
) -> Payload:
    """Return the load behind a wrist sensor.

    Parameters
    ----------
    mechanism : Mechanism
        Robot up to the sensor; its masses matter for `heaviest` only.
    motion : Motion, or array_like (N, n)
        N samples of the motion, or poses at rest: six different ones at least, turned about more than one axis.
    wrench : array_like, (N, 6)
        Measured force and moment in the sensor's axes, at its origin [N, N m].
    frame : str
        Link whose frame is the sensor's; the load is given in it.
    sense : {"load", "reaction"}
        Whether the sensor shows what the load does to it, or the opposite.
    bias : bool
        Whether to estimate the sensor's offset.
    gravity : bool
        Whether to estimate the direction of gravity in the base frame too, for a base that is not level.
    independence : float
        Effective number of independent samples per sample, below 1 for signals that were low-passed.
    reach : float, optional
        Largest distance of its centre of mass from the sensor that is believed [m]; the size of the robot when omitted.
    heaviest : float, optional
        Largest mass that is believed [kg], such as the rated load; twice the described mass of the moving robot when omitted.

    Returns
    -------
    Payload
        The load with `bias` and, where it was estimated, `gravity`.

    Examples
    --------
    >>> import numpy as np
    >>> import dynident as di
    >>> arm = di.Mechanism.from_dh([(0, np.pi / 2, 0, 0), (0, np.pi / 2, 0, 0), (0.3, 0, 0, 0)])
    >>> q = np.random.default_rng(0).uniform(-2, 2, (12, 3))
    >>> weight = di.forward_kinematics(arm, q, "link_3")[0].transpose(0, 2, 1) @ [0, 0, -2 * 9.81]
    >>> wrench = np.hstack([weight, np.cross([0, 0, 0.1], weight)])
    >>> load = payload_from_wrench(arm, q, wrench + [1, 2, 3, 0, 0, 0], "link_3")
    >>> round(load.mass, 6), round(load.com[2], 6), load.bias[:3].round(6)
    (2.0, np.float64(0.1), array([1., 2., 3.]))
    """
    choice("sense", sense, ("load", "reaction"))
    moving = motion if isinstance(motion, Motion) else at_rest(mechanism, motion)
    y = numbers(wrench, "wrench")
    if y.shape != (len(moving), 6):
        raise IdentificationError(
            f"wrench has shape {y.shape} for {len(moving)} samples; give forces and moments, {len(moving)} rows of 6"
        )
    if not np.isfinite(y).all():
        row, column = np.argwhere(~np.isfinite(y))[0]
        raise IdentificationError(f"{CHANNELS[column]} of sample {row} is {y[row, column]}; leave out samples without a number")
    if np.linalg.norm(mechanism.gravity) == 0.0 and (gravity or not isinstance(motion, Motion)):
        raise IdentificationError(f"gravity of robot '{mechanism.name}' is zero; give its gravity, at least its size")
    sign = -1.0 if sense == "load" else 1.0
    velocity, acceleration = frame_motion(mechanism, moving, frame)
    R, _ = forward_kinematics(mechanism, moving.q, frame)
    w, a, al = velocity[:, 3:], acceleration[:, :3], acceleration[:, 3:]
    still = sign * body_regressor(w, al, a)
    stretches = BLOCKS if isinstance(motion, Motion) else 1  # poses are independent measurements
    limits = believed(mechanism, reach, heaviest)
    load, left = _solve(still, sign, R, y, bias, gravity, mechanism, independence, frame, limits, stretches)
    down = np.asarray(mechanism.gravity)
    if gravity or len(y) < ENOUGH or not np.any(down):
        return load
    other, less = _solve(still, sign, R, y, bias, True, mechanism, independence, frame, limits, stretches)
    turned = np.asarray(other.gravity)
    angle = np.degrees(np.arccos(np.clip(down @ turned / (np.linalg.norm(down) * np.linalg.norm(turned)), -1.0, 1.0)))
    if less > BETTER * left or angle < LEVEL:
        return load
    said = f"the base does not seem level: forces fit {left / less:.1f} times better with gravity turned by {angle:.1f} degrees"
    return replace(load, doubts=(f"{said} (gravity=True)",))


def read_wrench(
    mechanism: Mechanism, path: str | os.PathLike[str], cutoff: float | None = None
) -> tuple[Motion | Array, Array, float]:
    """Read poses or a motion with the wrench of a wrist sensor, for `payload_from_wrench`.

    Parameters
    ----------
    mechanism : Mechanism
        Robot; its joints name the columns of positions, as in ``q_joint_1``, ``q:joint_1`` or ``joint_1`` [rad, m].
    path : path-like
        Table with these columns, the columns ``fx fy fz tx ty tz`` [N, N m] and, for a motion, the time ``t`` [s].
    cutoff : float, optional
        Low-pass frequency for positions and wrench alike [Hz]; from the spectrum of the positions when omitted.

    Returns
    -------
    motion : Motion, or ndarray (N, n)
        Motion, or poses where the table has no time.
    wrench : ndarray, (N, 6)
        Measured forces and moments.
    independence : float
        Effective number of independent samples per sample.
    """
    columns = {name.strip().lower(): np.asarray(x, dtype=np.float64) for name, x in read_table(path).columns.items()}

    def find(what: str, *names: str) -> Array:
        for name in names:
            if name.lower() in columns:
                return columns[name.lower()]
        raise LogError(f"'{path}' has no column of {what}; name it {' or '.join(names)}")

    q = np.column_stack([find(f"joint '{j}'", f"q_{j}", f"q:{j}", j) for j in mechanism.coordinate_names])
    wrench = np.column_stack([find(f"the {axis}", axis, long) for axis, long in zip(CHANNELS, LONG, strict=True)])
    if "t" not in columns and "time" not in columns:
        return q, wrench, 1.0
    t = time_axis(find("time", "t", "time"))
    if t.size > 1 and (step := float(np.median(np.diff(t)))) > SLOWEST:
        raise LogError(
            f"'{path}' has samples {step:.3g} s apart, which show no motion; poses at rest need no time: leave the column of "
            "time out"
        )
    frequency = automatic_cutoff(t, q).frequency if cutoff is None else cutoff
    motion = Motion(t, *butterworth(t, q, frequency))
    rate = (t.size - 1) / float(t[-1] - t[0])
    return motion, butterworth(t, wrench, frequency)[0], min(1.0, 2.0 * frequency / rate)


def _solve(
    still: Array,
    sign: float,
    R: Array,
    y: Array,
    bias: bool,
    gravity: bool,
    mechanism: Mechanism,
    independence: float,
    frame: str,
    limits: tuple[float, float],
    stretches: int,
) -> tuple[Payload, float]:
    """Return the load by Gauss and Newton, and the residual of forces [N]; forces and moments are weighed by their own.

    No deviation is below what estimates without each of so many stretches of time tell: noise of sensors has a memory.
    """
    g, samples = np.array(mechanism.gravity, dtype=np.float64), len(y)

    def weight(direction: Array) -> Array:
        own = np.einsum("sji,j->si", R, direction)
        return sign * body_regressor(0.0 * own, 0.0 * own, -own)

    across = np.linalg.svd(g[None, :])[2][1:]  # two axes about which gravity may be turned
    count = 10 + 6 * bias + 2 * gravity
    phi, sigma = np.zeros(10), np.ones(6)
    x, covariance, known = np.zeros(count), np.zeros((count, count)), np.zeros(count, dtype=bool)
    for _ in range(PASSES):
        parts = [still + weight(g)]
        if bias:
            parts.append(np.broadcast_to(np.eye(6), (samples, 6, 6)))
        if gravity:
            parts.append(np.stack([weight(np.cross(axis, g)) @ phi for axis in across], axis=2))
        A = np.concatenate(parts, axis=2)
        x, covariance, known = _least_squares((A / sigma[:, None]).reshape(-1, count), (y / sigma).reshape(-1))
        step = across.T @ x[-2:] if gravity else np.zeros(3)
        rest = y - A @ np.where(known, x, 0.0)
        free = max(3.0 * samples - 0.5 * np.count_nonzero(known) / independence, 1.0)
        square = np.repeat([np.sum(rest[:, :3] ** 2), np.sum(rest[:, 3:] ** 2)], 3) / free
        floor = 1e-10 * np.repeat([np.abs(y[:, :3]).max() + 1e-12, np.abs(y[:, 3:]).max() + 1e-12], 3)
        before, sigma = sigma, np.maximum(np.sqrt(square), floor)
        phi, g = np.where(known[:10], x[:10], 0.0), _turn(g, step)
        if np.allclose(before, sigma, rtol=1e-4) and np.linalg.norm(step) < 1e-8:
            break
    left_out = [_without(A / sigma[:, None], y / sigma, rows, known) for rows in np.array_split(np.arange(samples), stretches)]
    covariance = at_least_jackknife(covariance / independence, np.array(left_out))
    parameters, spread = x[:10].copy(), covariance[:10, :10].copy()
    parameters[~known[:10]], spread[~known[:10]], spread[:, ~known[:10]] = np.nan, np.nan, np.nan
    std = np.sqrt(np.diag(covariance))
    seen = np.flatnonzero(known[:10])
    load = Payload(
        parameters,
        spread,
        tuple(f"{INERTIA_SYMBOLS[i]}_payload" for i in seen),
        x[seen],
        std[seen],
        frame,
        limits[0],
        bias=np.where(known[10:16], x[10:16], np.nan) if bias else None,
        bias_std=np.where(known[10:16], std[10:16], np.nan) if bias else None,
        gravity=g if gravity else None,
        gravity_std=float(np.sqrt(np.mean(std[-2:] ** 2))) if gravity else None,
        notes=(f"wrist sensor, {samples} samples: residual {sigma[0]:.3g} N, {sigma[3]:.3g} N m",),
        heaviest=limits[1],
    )
    return load, float(sigma[0])


def _without(A: Array, y: Array, rows: NDArray[np.int64], known: NDArray[np.bool_]) -> Array:
    """Return the unknowns that the data show, zero for the others, without some samples."""
    rest, x = np.delete(A, rows, axis=0)[:, :, known], np.zeros(known.size)
    if rest.size:
        size = np.linalg.norm(rest, axis=(0, 1))
        size = np.where(size > 0.0, size, 1.0)
        scaled = (rest / size).reshape(-1, size.size)
        x[known] = np.linalg.lstsq(scaled, np.delete(y, rows, axis=0).reshape(-1), rcond=None)[0] / size
    return x


def _turn(g: Array, step: Array) -> Array:
    """Return a vector turned about an axis by the axis' length."""
    angle = float(np.linalg.norm(step))
    if angle == 0.0:
        return g
    axis = step / angle
    turned: Array = g * np.cos(angle) + np.cross(axis, g) * np.sin(angle) + axis * (axis @ g) * (1.0 - np.cos(angle))
    return turned


def _least_squares(W: Array, y: Array) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Return the solution, its covariance for unit noise, and which unknowns the data show each by itself."""
    length = np.linalg.norm(W, axis=0)
    size = np.where(length > 0.0, length, 1.0)
    U, s, V = np.linalg.svd(W / size, full_matrices=False)
    good = s > SEEN * s[0]
    known = (length > 0.0) & ~(np.sum(V[~good] ** 2, axis=0) > SEEN)
    root = (V[good].T / s[good]) / size[:, None]
    return root @ (U[:, good].T @ y), root @ root.T, known
