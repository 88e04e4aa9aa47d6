"""Delays of the efforts with respect to the positions, of all channels together and of single ones.

A commanded torque acts some milliseconds later, a filtered sensor reports it later; positions have delays of their own. With
the efforts of channel k late by d_k, the equations of motion hold for efforts read at later times:

    sum_k P_k(t) tau_k(t + d_k) = W(t) beta + sum_km P_k(t) h_m(v_k(t)) gamma_km + e(t),            P = 1 for a tree robot.

W has the friction model of the fit. Its errors resemble a delay: friction follows the velocity, and so does the slope of a
torque that follows position or acceleration. The functions h_m represent smooth friction, which may differ between the
directions and increase with load; each gamma is normal with a deviation of `FRICTION` of the channel's effort. After a
reversal friction is not smooth (stiction, presliding, and the rounding of its jump by the low-pass). So samples are left
out while a channel is slower than `SLOW` of its RMS speed, half a period of the low-pass before and after, and in tree robots
until it has moved by `SLIDING` of its RMS stroke. The controller feeds encoder noise back to the efforts, where it correlates
with their slope. So positions and efforts are low-passed at `CUTOFF` times the band B of the motion, `BAND` times its RMS
frequency, and the equations are summed over windows of 1 / (`PER_PERIOD` B), shorter ones in short logs.

The delay d, up to half a period of B and `LONGEST`, minimises the weighted squared residuals. It is common to all channels, or
of one channel if this explains left-out stretches of time better by more than a standard error; the search continues with
shifted efforts. K left-out stretches, each predicted by the others, give

    s      standard deviation of d by the jackknife, which includes correlated residuals and errors of the model,
    g_k    logarithm of the squared error of a stretch as logged, over that with the efforts shifted.

A delay is reported if |d| exceeds a sample and `SURE` s, and the mean of g_k exceeds `FALL` and t of its standard errors, where
Student's t is exceeded by chance with `CHANCE`: the shift predicts left-out stretches, and smooth friction does not. It is an
error if it halves the squared error of the model of the fit, without h, otherwise a warning; shorter windows average less
encoder noise and give no warnings. Efforts are not shifted automatically: a model of shifted efforts predicts shifted efforts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy  # its sub-packages load on first use
from numpy.typing import NDArray

from dynident.arrays import Array
from dynident.identify.base import BaseParameters
from dynident.identify.regression.logs import robot_motion
from dynident.identify.regression.rows import Rows
from dynident.mechanics.functions import Motion
from dynident.signals.filters import butterworth
from dynident.signals.preparation import Prepared, period_of
from dynident.signals.quality import Finding

SURE = 4.0  # standard deviations
CHANCE, CANDIDATES = 0.05, 7  # of a better prediction by chance, shared by the candidates of six joints
FALL = 0.2  # a smaller fall has many explanations
LONGEST = 0.2  # [s]: largest delay of drives, buses and filters
FRICTION = 0.3
SLOW, SLIDING = 0.1, 0.1
BUMPS = (0.2, 0.6)  # of the RMS speed: widths of friction that falls with speed
BAND = 3.0
CUTOFF, PER_WINDOW, TAIL = 16.0, 5, 16  # samples of a window for the cut-off; periods of it that a low-pass sees
PER_PERIOD = (8, 16)  # windows; more are tried if they are too few equations: one per period of the low-pass
MOST, STRETCHES, FEWEST = 2000, 20, 8  # windows; stretches, and their least number
ROWS = 1.5  # fewest rows per unknown
GRID, STEPS, PASSES = 7, 8, 3  # delays tried per direction; Gauss-Newton steps; iterations of the weights
RIDGE = 1e-9  # of a column's square: directions that the samples do not show stay near zero
FLOOR = 1e-6  # of the effort: smaller residuals are not credible
TINY = float(np.finfo(float).tiny)

Channels = NDArray[np.int64]


@dataclass(frozen=True)
class Delay:
    """Delay of efforts of `value` +- `deviation` seconds; negative for early efforts."""

    channels: tuple[int, ...]
    value: float
    deviation: float
    halves: bool  # whether the shift halves the squared error of the model of the fit

    def finding(self, names: Sequence[str]) -> Finding:
        """Return the finding; `names` are those of all channels."""
        every, first = len(self.channels) > 1 or len(names) == 1, names[self.channels[0]]
        said = (
            f"the efforts of {'all joints' if every else first} are {1e3 * abs(self.value):.3g} +- {1e3 * self.deviation:.2g} "
            f"ms {'late' if self.value > 0.0 else 'early'} with respect to the positions; align them (delay={self.value:.3g})"
        )
        severity = "error" if self.halves else "warning"
        return Finding("delay", "effort" if every else f"effort:{first}", severity, said, self.value)


def delays_of(rows: Rows, base: BaseParameters, prepared: Prepared, dead: Sequence[str]) -> tuple[Delay, ...]:
    """Return the significant delays of the efforts; `dead` are channels without usable efforts."""
    for short in (False, True):  # shorter windows of a short log
        windows = Windows(rows, base, prepared, dead, short)
        if windows.candidates:
            break
    shift, found, left = np.zeros(len(prepared.joints)), list[Delay](), list(windows.candidates)
    while left and (delay := windows.best(shift, left)) is not None:
        left = [own for own in left if tuple(own) != delay.channels]
        shift[list(delay.channels)] += delay.value
        found.append(replace(delay, value=float(shift[delay.channels[0]])))  # total delay of the channel
    return tuple(found)


def aligned(prepared: Prepared, delays: Sequence[Delay]) -> Prepared:
    """Return a prepared log with efforts shifted by their delays."""
    shift, t = np.zeros(len(prepared.joints)), prepared.motion.t
    for delay in delays:
        shift[list(delay.channels)] = delay.value
    return replace(prepared, effort=_read(prepared.effort, t, t, shift), filtered=_read(prepared.filtered, t, t, shift))


class Windows:
    """Equations of a log, summed over R short windows of time: n equations of k channels."""

    candidates: tuple[Channels, ...] = ()  # channels with a possible common delay; none if the log is too short

    def __init__(self, rows: Rows, base: BaseParameters, prepared: Prepared, dead: Sequence[str], short: bool) -> None:
        self.rate, loops, self._short, per_period = prepared.rate, bool(rows.mechanism.loops), short, PER_PERIOD[short]
        rms = np.sqrt(np.mean(prepared.motion.v**2, axis=0))
        moving = np.flatnonzero((rms > 0.0) & [name not in dead for name in prepared.joints])
        if not moving.size or (loops and dead):
            return
        band = band_of(prepared.motion.q[:, moving], prepared.motion.v[:, moving])
        cutoff, self.reach = min(CUTOFF * band, prepared.cutoff.frequency), min(0.5 / band, LONGEST)
        margin, step = int(np.ceil(self.reach * self.rate)), max(1, round(self.rate / (per_period * PER_WINDOW * band)))
        first = slice(2 * margin + step * PER_WINDOW * MOST + int(TAIL * self.rate / cutoff))  # a long log has more than needed
        self._times = prepared.motion.t[first]
        motion = Motion(self._times, *butterworth(self.rate, prepared.motion.q[first], cutoff))
        self._effort, self._slope, _ = butterworth(self.rate, prepared.filtered[first], cutoff)
        self.count = min((len(motion) - 2 * margin) // (step * PER_WINDOW), MOST)
        if self.count < per_period // 4 * FEWEST:
            return
        picked = slice(margin, margin + step * PER_WINDOW * self.count, step)
        self._t, self._stretch = self._times[picked], _stretches(motion[picked], self.count, per_period // 4)
        W, known, self._P = _equations(rows, base, prepared, motion[picked], picked)
        sliding = (0.0 if loops else SLIDING) * np.std(motion.q, axis=0)
        used = ~_reversing(motion.q, np.abs(motion.v) <= SLOW * rms, round(0.5 * self.rate / cutoff), sliding)[picked]
        if loops:  # equations mix all channels, and usually one of them has just reversed
            used = np.repeat(used[:, moving].all(axis=1, keepdims=True), W.shape[1], axis=1)
        used = (used & (loops | np.isin(np.arange(used.shape[1]), moving))).reshape(self.count, PER_WINDOW, -1)
        number = used.sum(axis=1)
        self._used = used / np.sqrt(np.maximum(number, 1))[:, None]  # the noise of a sum does not depend on the number
        self._known = self._sums(known)
        self._X = self._columns(W, motion.v[picked] / np.where(rms > 0.0, rms, 1.0), moving)
        if np.count_nonzero(number) >= ROWS * self._X.shape[2]:
            self.candidates = (moving, *moving[:, None]) if moving.size > 1 else (moving,)

    def _columns(self, W: Array, v: Array, moving: Channels) -> Array:
        """Return the columns W and h (R, n, c) of the windows; the load is that of the model without h."""
        X, on_time = self._sums(W), np.zeros(v.shape[1])
        self._b = self._end = X.shape[2]
        self._weigh(X, on_time)
        beta = self._solution(self._products(X, self.right(on_time)).sum(axis=0))
        size = np.sqrt(np.mean(self._effort**2, axis=0))
        load = np.sum(self._P * (W @ beta)[:, :, None], axis=1) / np.where(size > 0.0, size, 1.0)
        h = (friction_functions(v, np.abs(load)) * size[:, None])[:, moving]
        h = self._sums((self._P[:, :, moving, None] * h[:, None]).reshape(len(v), W.shape[1], -1))
        self._end += h.shape[2]
        return np.concatenate([X, h], axis=2)

    def _sums(self, x: Array) -> Array:
        """Return the sums (R, n, ...) over the used samples of windows of an array (S, n, ...)."""
        return np.asarray(np.einsum("rsn,rsn...->rn...", self._used, x.reshape(self.count, PER_WINDOW, *x.shape[1:])))

    def right(self, delay: Array) -> Array:
        """Return the right sides (R, n) with efforts that are late by delays (k,)."""
        return np.asarray(self._parts(delay).sum(axis=2) - self._known)

    def _parts(self, delay: Array) -> Array:
        """Return the contribution of each channel to the right sides (R, n, k)."""
        return self._sums(self._P * _read(self._effort, self._times, self._t, delay)[:, None])

    def slope(self, delay: Array, own: Channels) -> Array:
        """Return the derivative of the right sides by a delay of some channels."""
        slope = _read(self._slope, self._times, self._t, delay)[:, None, own]
        return self._sums(np.sum(self._P[:, :, own] * slope, axis=2))

    def best(self, shift: Array, candidates: Sequence[Channels]) -> Delay | None:
        """Return the best delay of candidates in addition to a shift of the channels, None if not significant."""
        self._weigh(self._X, shift)
        grid = self.reach * np.arange(-GRID, GRID + 1) / (GRID + 1)
        now = self._parts(shift)
        right = now.sum(axis=2) - self._known
        parts = (self._parts(shift + d) - now for d in grid)
        sums = (np.stack([right + part[..., own].sum(axis=2) for own in candidates]) for part in parts)
        costs = [np.sum(self._left(y) ** 2, axis=1) for y in sums]
        starts = grid[np.argmin(costs, axis=0)].tolist()
        found = [(own, self._refined(shift, own, d)) for own, d in zip(candidates, starts, strict=True)]
        own, delay = min(found, key=lambda each: self._cost(_moved(shift, *each)))
        if len(own) < len(found[0][0]):  # one channel must be better than all by a standard error
            one, every = (self._left_out(self._X, self.right(_moved(shift, *each)))[1] for each in ((own, delay), found[0]))
            gain, error = _gain(every, one)
            own, delay = (own, delay) if gain > error else found[0]
        for _ in range(PASSES):
            self._weigh(self._X, _moved(shift, own, delay))
            delay = self._refined(shift, own, delay)
        return self._judged(shift, own, delay)

    def _judged(self, shift: Array, own: Channels, delay: float) -> Delay | None:
        """Return a delay if significant for left-out stretches, otherwise None."""
        there = _moved(shift, own, delay)
        now, then = self.right(shift), self.right(there)
        x, after = self._left_out(np.concatenate([self._X, -self.slope(there, own)[:, :, None]], axis=2), then)
        deviation = float(np.sqrt((len(x) - 1) * np.var(x[:, -1])))
        gain, error = _gain(self._left_out(self._X, now)[1], after)
        if not (max(SURE * deviation, 1.0 / self.rate) < abs(delay) < self.reach and gain > FALL):
            return None
        if gain < scipy.special.stdtrit(len(x) - 1, 1.0 - CHANCE / CANDIDATES) * error:
            return None
        before, mended = (float(self._left_out(self._X[:, :, : self._b], y)[1].sum()) for y in (now, then))
        halves = mended < 0.5 * before
        return Delay(tuple(own.tolist()), delay, deviation, halves) if halves or not self._short else None

    def _refined(self, shift: Array, own: Channels, delay: float) -> float:
        """Return the delay of least cost near another."""
        most = self.reach / (GRID + 1)
        for _ in range(STEPS):
            there = _moved(shift, own, delay)
            e, s = self._left(self.right(there)), self._left(self.slope(there, own))
            step = float(np.clip(-float(e @ s) / max(float(s @ s), TINY), -most, most))
            delay = float(np.clip(delay + step, -self.reach, self.reach))
        return delay

    def _cost(self, delay: Array) -> float:
        return float(np.sum(self._left(self.right(delay)) ** 2))

    def _left(self, y: Array) -> Array:
        """Return the residuals (..., R n) of right sides (..., R, n) for the columns."""
        y = (y * self._weight).reshape(*y.shape[:-2], -1)
        return np.asarray(y - (y @ self._Q) @ self._Q.T)

    def _weigh(self, X: Array, delay: Array) -> None:
        """Weight equations by their residuals under a delay; Q spans the columns X together with their priors."""
        right = self.right(delay)
        size = np.sqrt(np.mean(right**2, axis=0))
        left = size
        for _ in range(PASSES):
            self._weight = (size > 0.0) / np.maximum(left, np.where(size > 0.0, FLOOR * size, 1.0))
            left = np.sqrt(np.mean((right - X @ self._solution(self._products(X, right).sum(axis=0))) ** 2, axis=0))
        A = (X * self._weight[:, None]).reshape(-1, X.shape[2])
        self._Q = np.linalg.qr(np.vstack([A, np.diag(np.sqrt(self._prior(np.sum(A**2, axis=0))))]))[0][: len(A)]

    def _products(self, X: Array, y: Array) -> Array:
        """Return the weighted products (K, c + 1, c + 1) of columns and right sides, of every stretch."""
        Z = np.concatenate([X, y[:, :, None]], axis=2) * self._weight[:, None]
        parts = [Z[self._stretch == k].reshape(-1, Z.shape[2]) for k in range(self._stretch.max() + 1)]
        return np.array([part.T @ part for part in parts])

    def _left_out(self, X: Array, y: Array) -> tuple[Array, Array]:
        """Return the solutions (K, c) without each stretch, and the squared errors (K,) of these stretches."""
        G = self._products(X, y)
        x = np.array([[*self._solution(G.sum(axis=0) - own), -1.0] for own in G])
        return x[:, :-1], np.einsum("ki,kij,kj->k", x, G, x)

    def _solution(self, G: Array) -> Array:
        return np.asarray(np.linalg.solve(G[:-1, :-1] + np.diag(self._prior(np.diagonal(G)[:-1])), G[:-1, -1]))

    def _prior(self, diagonal: Array) -> Array:
        """Return the diagonal that priors add to the products of columns: the prior of gamma, a ridge for others."""
        prior = RIDGE * diagonal + TINY
        prior[self._b : self._end] = FRICTION**-2
        return np.asarray(prior)


def _equations(rows: Rows, base: BaseParameters, prepared: Prepared, part: Motion, picked: slice) -> tuple[Array, Array, Array]:
    """Return W (S, n, b), the contribution of known forces (S, n), and P (S or 1, n, k) at some samples."""
    k, motion = len(prepared.joints), robot_motion(rows.mechanism, part)
    signals = rows.signals(prepared.temperature, None, prepared.motion)
    own = None if signals is None else {name: x[picked] for name, x in signals.items()}

    def equations(effort: Array) -> tuple[Array, Array]:
        return rows.equations(motion, np.tile(effort, (len(part), 1)), base.columns, signals=own)

    W, zero = equations(np.zeros(k))
    P = np.stack([equations(row)[1] - zero for row in np.eye(k)], axis=2) if rows.mechanism.loops else np.eye(k)[:, None]
    return W.transpose(2, 0, 1), -zero.T, P.transpose(1, 0, 2)


def friction_functions(v: Array, load: Array) -> Array:
    """Return h (S, k, m) of velocities in units of their RMS, and loads in units of the RMS effort."""
    sign, speed = np.sign(v), np.abs(v)
    falling = [sign * np.exp(-((speed / width) ** 2)) for width in BUMPS]
    return np.stack([np.ones_like(v), sign, v, speed, v * speed, *falling, sign * load], axis=2)


def _reversing(q: Array, slow: NDArray[np.bool_], reach: int, sliding: Array) -> NDArray[np.bool_]:
    """Return the samples within `reach` of a slow one, or before a joint has since moved by `sliding`."""
    at = np.arange(len(slow))
    count = np.concatenate([np.zeros((1, slow.shape[1]), dtype=np.int64), np.cumsum(slow, axis=0)])
    near = count[np.minimum(at + reach + 1, len(slow))] > count[np.maximum(at - reach, 0)]
    last = np.maximum.accumulate(np.where(slow, at[:, None], 0), axis=0)
    return np.asarray(near | (np.abs(q - np.take_along_axis(q, last, axis=0)) < sliding))


def band_of(q: Array, v: Array) -> float:
    """Return the highest frequency of a motion: `BAND` times its RMS frequency, which noise changes little."""
    return float(BAND * np.sqrt(np.mean(np.var(v, axis=0) / np.var(q, axis=0))) / (2.0 * np.pi))


def _stretches(part: Motion, count: int, least: int) -> NDArray[np.int64]:
    """Return the stretch of each window, `least` windows or more; for a periodic motion its phase, common to all periods."""
    period = min(period_of(part.q, part.v) / PER_WINDOW, count)
    return np.asarray(np.arange(count) % period * min(STRETCHES, int(period) // least) // period, dtype=np.int64)


def _moved(shift: Array, own: Channels, delay: float) -> Array:
    return shift + delay * np.isin(np.arange(shift.size), own)


def _read(record: Array, times: Array, t: Array, delay: Array) -> Array:
    """Return the channels of a record (N, k) at times t, each later by its delay."""
    return np.stack([np.interp(t + d, times, x) for d, x in zip(delay, record.T, strict=True)], axis=1)


def _gain(before: Array, after: Array) -> tuple[float, float]:
    """Return the mean fall of the logarithm of squared errors of stretches, and its standard error."""
    fall = np.log(before[after > 0.0] / after[after > 0.0])
    return float(fall.mean()), float(fall.std(ddof=1) / np.sqrt(fall.size))
