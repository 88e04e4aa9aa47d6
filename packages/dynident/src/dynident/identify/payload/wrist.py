"""A payload from a force/torque sensor at the wrist: poses at rest, or a motion.

    f = m (a - g) + al x h + w x (w x h),    n = I al + w x I w + h x (a - g)          sensor on load, in the sensor's axes
    measured = -+ (f, n) + b_k + e_k,    b_k = b_(k-1) + d_k,    var e = s^2,    var d = r s^2                    k: sample

a, al, w are those of the sensor's frame, g is gravity in its axes. Everything but the direction of gravity is linear.
The bias of every axis drifts as a random walk. A Kalman filter of the bias, its start unknown, turns the rows of an axis into
innovations, which are independent and free of the bias; r = 0 subtracts the mean. The ratios r, one per axis, maximise the
restricted likelihood [Patterson1971].
"""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
import scipy  # its sub-packages load on first use, which keeps the start fast
from numpy.typing import ArrayLike, NDArray

from dynident.arrays import Array
from dynident.checks import choice, number, numbers, time_axis
from dynident.errors import IdentificationError, LogError
from dynident.identify.payload.load import Payload, inverse_of, plausible_limits
from dynident.identify.posterior.posterior import at_least_jackknife
from dynident.identify.regression.factor import BLOCKS
from dynident.mechanics.dynamics import forward_kinematics, frame_motion
from dynident.mechanics.functions import Motion, at_rest
from dynident.mechanics.newton_euler import body_regressor
from dynident.mechanism.mechanism import Mechanism
from dynident.mechanism.parameters import SYMBOLS as INERTIA_SYMBOLS
from dynident.signals.filters import automatic_cutoff, butterworth
from dynident.signals.reading import read_table

SEEN = 1e-7  # part of a column of unit length below which the data do not show it
PASSES = 30
CHUNK = 256  # samples whose innovations are held for all ratios of drift to noise
DRIFTED = 3.0  # standard deviations of the noise by which a bias drifts to be mentioned
ENOUGH = 8  # fewest samples to test whether the base is level
BETTER = 0.5  # largest residual ratio with an estimated direction of gravity ...
LEVEL = 0.5  # ... and the angle [deg] above which a tilt is doubted
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
    gravity: bool = False,
    independence: float = 1.0,
    reach: float | None = None,
    heaviest: float | None = None,
) -> Payload:
    """Identify the load behind a wrist sensor.

    Parameters
    ----------
    mechanism : Mechanism
        Robot up to the sensor; its masses matter for `heaviest` only.
    motion : Motion, or array_like (N, n)
        N samples of the motion, or poses at rest: six different ones at least, turned about more than one axis. In the order of
        time: the offset of the sensor may drift from sample to sample.
    wrench : array_like, (N, 6)
        Measured force and moment in the sensor's axes, at its origin [N, N m].
    frame : str
        Link whose frame is the sensor's; the load is given in it.
    sense : {"load", "reaction"}
        Whether the sensor shows the wrench of the load on it, or the opposite.
    gravity : bool
        Whether to estimate the direction of gravity in the base frame too, for a base that is not level.
    independence : float
        Effective number of independent samples per sample, below 1 for low-passed signals.
    reach : float, optional
        Largest plausible distance of its centre of mass from the sensor [m]; the size of the robot when omitted.
    heaviest : float, optional
        Largest plausible mass [kg], such as the rated load; twice the described mass of the moving robot when omitted.

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
    every = max(1, int(1.0 / number("independence", independence, above=0.0)))  # samples between these add nothing
    moving, y, independence = moving[::every], y[::every], independence * every
    velocity, acceleration = frame_motion(mechanism, moving, frame)
    R, _ = forward_kinematics(mechanism, moving.q, frame)
    w, a, al = velocity[:, 3:], acceleration[:, :3], acceleration[:, 3:]
    still = sign * body_regressor(w, al, a)
    limits = plausible_limits(mechanism, reach, heaviest)
    load, left = _solve(still, sign, R, y, gravity, mechanism, independence, frame, limits)
    down = np.asarray(mechanism.gravity)
    if gravity or len(y) < ENOUGH or not np.any(down):
        return load
    other, less = _solve(still, sign, R, y, True, mechanism, independence, frame, limits)
    turned = np.asarray(other.gravity)
    angle = np.degrees(np.arccos(np.clip(down @ turned / (np.linalg.norm(down) * np.linalg.norm(turned)), -1.0, 1.0)))
    if less > BETTER * left or angle < LEVEL:
        return load
    said = (
        f"the base is probably not level: forces fit {left / less:.1f} times better with gravity rotated by {angle:.1f} degrees"
    )
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
        Low-pass frequency for both positions and wrench [Hz]; from the spectrum of the positions when omitted.

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
            f"'{path}' has samples {step:.3g} s apart, too slow for a motion; omit the time column for poses at rest"
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
    gravity: bool,
    mechanism: Mechanism,
    independence: float,
    frame: str,
    limits: tuple[float, float],
) -> tuple[Payload, float]:
    """Return the load by Gauss-Newton iteration, and the residual of forces [N]; forces and moments have their own noise.

    No standard deviation is below the jackknife over stretches of time: sensor noise is correlated.
    """
    g, samples = np.array(mechanism.gravity, dtype=np.float64), len(y)

    def weight(direction: Array) -> Array:
        own = np.einsum("sji,j->si", R, direction)
        return sign * body_regressor(0.0 * own, 0.0 * own, -own)

    across = np.linalg.svd(g[None, :])[2][1:]  # two axes about which gravity may be turned
    count = 10 + 2 * gravity
    phi, sigma, ratios = np.zeros(10), np.ones(6), np.zeros(6)
    floor = 1e-10 * np.repeat([np.abs(y[:, :3]).max() + 1e-12, np.abs(y[:, 3:]).max() + 1e-12], 3)
    for done in range(PASSES):
        parts = [still + weight(g)]
        if gravity:
            parts.append(np.stack([weight(np.cross(axis, g)) @ phi for axis in across], axis=2))
        A = np.concatenate(parts, axis=2)
        rows = np.concatenate([A, y[:, :, None]], axis=2)
        if samples >= ENOUGH and done < PASSES // 2:  # ratios from a grid could otherwise alternate for ever
            ratios = _drift(rows, sigma, floor)
        rows = _innovations(rows, ratios[None])[0][:, 0]
        size = np.linalg.norm(A / sigma[:, None], axis=(0, 1))
        size = np.where(size > 0.0, size, 1.0)
        scaled = (rows / sigma[:, None]).reshape(-1, count + 1)
        inverse, known = inverse_of(scaled[:, :-1], SEEN, size)  # the size of the columns before the bias was taken out of them
        x, covariance = inverse @ scaled[:, -1], inverse @ inverse.T
        step = across.T @ x[-2:] if gravity else np.zeros(3)
        rest = rows[:, :, -1] - rows[:, :, :-1] @ np.where(known, x, 0.0)
        free = max(3.0 * len(rest) - 0.5 * np.count_nonzero(known) / independence, 1.0)
        square = np.repeat([np.sum(rest[:, :3] ** 2), np.sum(rest[:, 3:] ** 2)], 3) / free
        before, sigma = sigma, np.maximum(np.sqrt(square), floor)
        phi, g = np.where(known[:10], x[:10], 0.0), _turn(g, step)
        if np.allclose(before, sigma, rtol=1e-4) and np.linalg.norm(step) < 1e-8:
            break
    blocks = np.array_split(np.arange(len(rows)), min(BLOCKS, len(rows) // 2))
    left_out = np.array([_without(rows / sigma[:, None], block, known, size) for block in blocks]).reshape(-1, count)
    mean, notes = A.mean(axis=0), [f"wrist sensor, {samples} samples: residual {sigma[0]:.3g} N, {sigma[3]:.3g} N m"]
    rest = y - A @ np.where(known, x, 0.0)  # a smoothed random walk has the mean of the residual of the load
    T = np.vstack([np.eye(count), -mean])
    known = np.append(known, ~np.any(mean[:, ~known] != 0.0, axis=1))
    covariance = T @ covariance @ T.T
    covariance[range(count, count + 6), range(count, count + 6)] += sigma**2 / samples
    kept = [np.delete(np.arange(samples), block) for block in np.array_split(np.arange(samples), len(blocks))]
    offsets = [np.mean(y[use] - A[use] @ each, axis=0) for use, each in zip(kept, left_out, strict=True)]
    left_out = np.hstack([left_out, np.array(offsets).reshape(-1, 6)])
    x = np.append(x, rest.mean(axis=0))
    notes += _drift_notes(rest, ratios, sigma)
    covariance = at_least_jackknife(covariance / independence, left_out)
    parameters, spread = x[:10].copy(), covariance[:10, :10].copy()
    parameters[~known[:10]], spread[~known[:10]], spread[:, ~known[:10]] = np.nan, np.nan, np.nan
    std = np.sqrt(np.diag(covariance))
    seen, offset = np.flatnonzero(known[:10]), slice(count, count + 6)
    load = Payload(
        parameters,
        spread,
        tuple(f"{INERTIA_SYMBOLS[i]}_payload" for i in seen),
        x[seen],
        std[seen],
        frame,
        limits[0],
        bias=np.where(known[offset], x[offset], np.nan),
        bias_std=np.where(known[offset], std[offset], np.nan),
        gravity=g if gravity else None,
        gravity_std=float(np.sqrt(np.mean(std[10:12] ** 2))) if gravity else None,
        notes=tuple(notes),
        heaviest=limits[1],
    )
    return load, float(sigma[0])


def _innovations(rows: Array, ratios: Array) -> tuple[Array, Array]:
    """Return the innovations (N - 1, G, 6, c) of rows (N, 6, c) for G sets of ratios (G, 6), with equal variance.

    Also return the sums of the logarithms of their original variances, (G, 6).
    """
    level = np.broadcast_to(rows[0], (len(ratios), *rows.shape[1:])).copy()
    out = np.empty((len(rows) - 1, *level.shape))
    P, logs = np.ones_like(ratios), np.zeros_like(ratios)
    for k in range(1, len(rows)):
        F = P + ratios + 1.0
        P = 1.0 - 1.0 / F
        out[k - 1] = rows[k] - level
        level += P[..., None] * out[k - 1]
        out[k - 1] /= np.sqrt(F)[..., None]
        logs += np.log(F)
    return out, logs


def _drift(rows: Array, sigma: Array, floor: Array) -> Array:
    """Return the ratio of drift to noise of every axis (6,): largest restricted likelihood on a grid, axis by axis."""
    samples, _, columns = rows.shape
    grid = np.append(0.0, np.geomspace(0.1 / samples, 10.0, 2 * int(np.log10(100.0 * samples)) + 1))
    size = np.linalg.norm(rows, axis=(0, 1))
    every = max(1, samples // CHUNK)  # a drift is slow: means over this number of samples show it
    means = (rows / np.where(size > 0.0, size, 1.0))[: samples // every * every].reshape(-1, every, 6, columns).mean(axis=1)
    out, logs = _innovations(means, np.repeat(grid[:, None] * every**2, 6, axis=1))
    G = np.einsum("kgai,kgaj->gaij", out, out)
    free = 3.0 * len(out) - 0.5 * (columns - 1)
    smallest = (floor / max(float(size[-1]), 1e-300)) ** 2 * len(out)

    def cost(at: NDArray[np.int64], weights: Array) -> tuple[float, Array]:
        own = G[at, range(6)]
        total = np.einsum("aij,a->ij", own, weights)
        values, vectors = np.linalg.eigh(total[:-1, :-1])
        good = values > SEEN**2 * max(float(values[-1]), 1e-300)
        root = vectors[:, good] / np.sqrt(values[good])
        x = np.append(-root @ (root.T @ total[:-1, -1]), 1.0)
        left = np.maximum(np.einsum("i,aij,j->a", x, own, x), smallest)
        square = np.repeat([left[:3].sum(), left[3:].sum()], 3) / free
        likelihood = free * np.log(square[[0, 3]]).sum() + logs[at, range(6)].sum()
        return float(likelihood + np.log(values[good]).sum()), 1.0 / square

    at = np.full(6, grid.size - 1)  # from differences of neighbouring samples, which no drift spoils
    best, weights = cost(at, cost(at, 1.0 / sigma**2)[1])
    # Axes share the noise variance, so their ratios move together first: no single axis would leave the largest ratio.
    together = [np.full(6, True), np.arange(6) < 3, np.arange(6) >= 3, *np.eye(6, dtype=bool)]
    for _ in range(PASSES):
        before = best
        for axes in together:
            for other in range(grid.size):
                trial = np.where(axes, other, at)
                value, better = cost(trial, weights)
                if value < best - 1e-9:
                    best, at, weights = value, trial, better
        if best == before:
            break
    return np.asarray(grid[at])


def _drift_notes(rest: Array, ratios: Array, sigma: Array) -> list[str]:
    """Return a note on axes whose bias drifted clearly: b minimises |rest - b|^2 + |b_k - b_(k-1)|^2 / r."""
    said = []
    for axis in np.flatnonzero(ratios > 0.0):
        pull = 1.0 / ratios[axis]
        bands = np.vstack([np.full(len(rest), -pull), np.full(len(rest), 1.0 + 2.0 * pull)])
        bands[1, [0, -1]] -= pull
        walk = np.ptp(scipy.linalg.solveh_banded(bands, rest[:, axis]))
        if walk > DRIFTED * sigma[axis]:
            said.append(f"{CHANNELS[axis]} by {walk:.3g} {'N' if axis < 3 else 'N m'}")
    return [f"the bias of the sensor drifts: {', '.join(said)}; its mean is given"] if said else []


def _without(rows: Array, block: NDArray[np.int64], known: NDArray[np.bool_], size: Array) -> Array:
    """Return the identifiable unknowns, zero for the others, without some samples."""
    rest, x = np.delete(rows, block, axis=0), np.zeros(known.size)
    scaled = (rest[:, :, :-1][:, :, known] / size[known]).reshape(6 * len(rest), -1)
    x[known] = np.linalg.lstsq(scaled, rest[:, :, -1].reshape(-1), rcond=None)[0] / size[known]
    return x


def _turn(g: Array, step: Array) -> Array:
    """Return a vector turned about an axis by the axis' length."""
    angle = float(np.linalg.norm(step))
    if angle == 0.0:
        return g
    axis = step / angle
    turned: Array = g * np.cos(angle) + np.cross(axis, g) * np.sin(angle) + axis * (axis @ g) * (1.0 - np.cos(angle))
    return turned
