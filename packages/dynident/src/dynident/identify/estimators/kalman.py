"""Kalman filters with the parameters as states [Gautier2001] [Julier2004].

    x = (q, v, beta),    q' = v,    v' = M(q, beta)^-1 (tau + w - h(q, v, beta)),    beta' = 0,    z = q + n

M and h are linear in beta, so they come from the regressor: M e_i = (W(q, v, e_i) - W(q, v, 0)) beta, h = W(q, v, 0) beta, and
dv'/dbeta = -M^-1 W(q, v, v'). Accelerations are never measured. The extended filter linearises, the unscented one (scaled,
[Julier2004]) passes points through the equations. Covariances are kept symmetric and updated in Joseph's form.

Friction is taken along the filtered velocity of the log. With the velocity of the state a step would go back and forth over the
jump of dry friction, and friction that damps a small inertia within less than a step would make the integration unstable: the
filter would take both for inertia. Around reversals friction is known to its spread only, which enlarges w. For the same reason
every step is linearised about the w that the position after it makes most probable, as in an iterated filter.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array
from dynident.errors import IdentificationError
from dynident.friction.terms import term_of
from dynident.identify.estimators.least_squares import WLS, LeastSquares
from dynident.identify.estimators.map import MAP
from dynident.identify.estimators.statistics import effort_share, jumping
from dynident.identify.posterior.posterior import inflation, prior_of
from dynident.identify.regression.factor import Solution, group_sigma
from dynident.identify.regression.regression import Regression, Stretch, sampled
from dynident.identify.regression.rows import Rows
from dynident.mechanics.motion import Motion

KINDS = ("extended", "unscented")
ALPHA = 0.1  # spread of the unscented points over the standard deviation times sqrt(states)
SMALL = 1e-6  # of a difference


@dataclass(kw_only=True, eq=False)
class Kalman(LeastSquares):
    """Extended or unscented Kalman filter over positions, velocities and base parameters.

        x = (q, v, beta),   v' = M^-1 (tau - h),   z = q + noise

    Parameters
    ----------
    kind : {"extended", "unscented"}
        How the equations are linearised.
    inflation : float
        The filter begins at possible bodies (`MAP`), with the description as its belief and with the evidence of WLS, whose
        standard deviations count this many times: WLS is 1 / inflation^2 of the data, and its bias is forgotten.
    position_noise : float or sequence of float, optional
        Standard deviation of the positions [rad, m]; that of the log when omitted.
    drift : float
        Random walk of the parameters per square root of a second, in standard deviations of WLS; 0 converges.
    rate : float
        Largest rate of the filter [Hz]; efforts are averaged between its steps.
    recovery, tolerance
        As of `OLS`.
    """

    kind: str = "extended"
    inflation: float = 10.0
    position_noise: float | Array | None = None
    drift: float = 0.0
    rate: float = 200.0
    recovery: str = "prior"
    tolerance: float = 1e-8

    def _estimate(self, regression: Regression, active: NDArray[np.bool_]) -> tuple[Solution, Array]:
        evidence = sampled(regression, "Kalman")
        if self.kind not in KINDS:
            raise IdentificationError(f"Kalman: kind is {self.kind!r}; it must be one of {', '.join(KINDS)}")
        self._check_least(inflation=1.0, drift=0.0, rate=1e-9)
        if evidence.mechanism.loops or len(evidence.groups) != evidence.mechanism.dof:
            raise IdentificationError(
                "Kalman: the filter needs a robot without loops and the efforts of all its joints; "
                + (f"'{evidence.mechanism.name}' has loops" if evidence.mechanism.loops else "some efforts are missing")
            )
        solution, sigma = WLS(tolerance=self.tolerance)._estimate(regression, active)
        own = sigma * np.sqrt(effort_share(evidence, solution.beta))  # without what noise of q adds to residuals
        beta, P = self._start(regression, solution, active)
        walk = self.drift**2 * solution.covariance()
        model = _Model(evidence)
        used, squares = 0, 0.0
        # The noise of rows is that of a band; the filter sees efforts of the whole band up to its own rate.
        for part in evidence.stretches:
            noise = self._noise(part)
            beta, P, n, s = _run(model, part, beta, P, walk, own, noise, self.kind, self.rate)
            used, squares = used + n, squares + s
        self.consistency_ = squares / max(used, 1)
        self.final_ = P
        found = replace(solution, beta=beta)
        return found, group_sigma(regression, found)

    def _start(self, regression: Regression, solution: Solution, active: NDArray[np.bool_]) -> tuple[Array, Array]:
        """Return where the filter begins, (b,) and (b, b): possible bodies, the description's belief, and little of WLS."""
        fit = MAP(recovery="physical").fit(regression, active).result_
        prior, scales = prior_of(regression), fit.posterior.scales or {}
        size = prior.unit * np.array([*(scales[name] for name in prior.families), 0.0])[prior.family]
        B = (regression.base.regrouping * size) * active[:, None]
        P, H = B @ B.T, solution.combinations
        own = self.inflation**2 * solution.covariance()[np.ix_(solution.solved, solution.solved)]
        P = P - P @ H.T @ np.linalg.solve(H @ P @ H.T + own, H @ P)
        return fit.values, 0.5 * (P + P.T)

    def _noise(self, part: Stretch) -> Array:
        n = part.positions.shape[1]
        if self.position_noise is not None:
            noise = np.broadcast_to(np.asarray(self.position_noise, dtype=np.float64), (n,))
            if not np.all(noise > 0.0):
                raise IdentificationError(f"Kalman: position_noise is {self.position_noise}; it must be above zero")
            return np.asarray(noise)
        floor = 1e-7 * np.maximum(np.ptp(part.positions, axis=0), 1e-6)  # exact positions still need a variance
        return np.asarray(np.maximum(part.noise, floor))

    def _covariance(self, regression: Regression, solution: Solution, sigma: Array) -> Array:
        """Return the filter's covariance, enlarged by innovations above those predicted and by correlated residuals."""
        dependence = float(inflation(regression.groups, solution.beta, sigma)[0])
        return self.final_ * max(self.consistency_, 1.0) * dependence


class _Model:
    """Accelerations of a robot, and their derivatives, as functions of base parameters; friction apart."""

    def __init__(self, evidence: Regression) -> None:
        robot = evidence.mechanism
        self.code = Rows(robot).compiled(evidence.base.columns)
        self.n = robot.dof
        laws = {own.name for own in robot.own_columns if own.coordinate}
        names = [robot.parameters.names[c] for c in evidence.base.columns]
        terms = [term_of(name) for name in names]
        rubs = [name in laws or (t is not None and t.friction) for name, t in zip(names, terms, strict=True)]
        self.rubbing = np.flatnonzero(rubs)
        self.jumping = np.flatnonzero(jumping(evidence))
        pairs = list(zip(self.code.seen, self.code.first, strict=True))
        self._rubs = np.concatenate([at + np.flatnonzero(np.isin(own, self.rubbing)) for own, at in pairs])

    def _flat(self, q: Array, v: Array, a: Array) -> Array:
        """Return the rows of all equations, samples last, without friction."""
        flat = self.code.whole(Motion(np.arange(q.shape[0], dtype=np.float64), q, v, a))
        flat[self._rubs] = 0.0
        return flat

    def friction(self, motion: Motion, size: int) -> Array:
        """Return the columns of friction (N, n, b) along a measured motion: its jumps are where the robot turned round."""
        flat = self.code.whole(Motion(motion.t, motion.q, motion.v, np.zeros_like(motion.a)))
        found = np.zeros((len(motion), self.n, size))
        for i, (own, at) in enumerate(zip(self.code.seen, self.code.first, strict=True)):
            rubs = np.flatnonzero(np.isin(own, self.rubbing))
            found[:, i, own[rubs]] = flat[at + rubs].T
        return found

    def torques(self, q: Array, v: Array, a: Array, beta: Array) -> Array:
        """Return W beta (n, N) at N states, with one beta (b,) or one each (b, N)."""
        flat = self._flat(q, v, a)
        parts = zip(self.code.seen, self.code.first, strict=True)
        if beta.ndim == 1:
            return np.stack([beta[own] @ flat[at : at + own.size] for own, at in parts])
        return np.stack([np.einsum("bN,bN->N", flat[at : at + own.size], beta[own]) for own, at in parts])

    def accelerations(self, q: Array, v: Array, beta: Array, tau: Array) -> tuple[Array, Array]:
        """Return v' (N, n) and M^-1 (N, n, n) at N states, with one beta (b,) or one each (N, b), tau less friction."""
        N, n = q.shape
        a = np.repeat(np.vstack([np.zeros((1, n)), np.eye(n)]), N, axis=0)
        own = beta if beta.ndim == 1 else np.tile(beta.T, (1, n + 1))
        torque = self.torques(np.tile(q, (n + 1, 1)), np.tile(v, (n + 1, 1)), a, own).reshape(n, n + 1, N)
        M = (torque[:, 1:] - torque[:, :1]).transpose(2, 0, 1)
        inverse = np.asarray(np.linalg.inv(0.5 * (M + np.swapaxes(M, 1, 2))), dtype=np.float64)
        return np.einsum("kij,kj->ki", inverse, tau - torque[:, 0].T), inverse

    def possible(self, q: Array, beta: Array, change: Array) -> float:
        """Return the part of a change of the parameters that takes at most half of the mass matrix away in any direction."""
        n = self.n
        states = np.tile(q, (n + 1, 1)), np.zeros((n + 1, n)), np.vstack([np.zeros((1, n)), np.eye(n)])
        M, D = ((t := self.torques(*states, b))[:, 1:] - t[:, :1] for b in (beta, change))
        lost = -float(np.min(np.linalg.eigvals(np.linalg.solve(M, D)).real))
        return min(1.0, 0.5 / lost) if lost > 0.0 else 1.0

    def step_error(self, part: Stretch, beta: Array, first: Array, tau: Array, every: int, dt: float) -> Array:
        """Return the rms error (n,) of positions one step ahead, from the filtered motion: none is trusted more than that."""
        q, v = part.motion.q[::every][: tau.shape[0] + 1], part.motion.v[::every][: tau.shape[0] + 1]
        a, _ = self.accelerations(q[:-1], v[:-1], beta, first)
        middle = v[:-1] + 0.5 * dt * a
        a, _ = self.accelerations(q[:-1] + 0.5 * dt * v[:-1], middle, beta, tau)
        ahead = q[:-1] + dt / 6.0 * (2.0 * v[:-1] + 4.0 * middle + dt * a)
        return np.asarray(np.sqrt(np.mean((q[1:] - ahead) ** 2, axis=0)))

    def derivatives(self, q: Array, v: Array, beta: Array, tau: Array, rubbing: Array) -> tuple[Array, Array, Array]:
        """Return v' (n,), its derivatives (n, 2 n + b) by q, v and beta, and M^-1, at one state, tau less friction."""
        n = self.n
        (a,), (inverse,) = self.accelerations(q[None], v[None], beta, tau)
        step = SMALL * np.maximum(1.0, np.concatenate([np.abs(q), np.abs(v)]))
        shifts = np.vstack([np.diag(step), -np.diag(step), np.zeros((1, 2 * n))])
        flat = self._flat(q + shifts[:, :n], v + shifts[:, n:], np.repeat(a[None], 4 * n + 1, axis=0))
        slopes = np.zeros((n, 2 * n + beta.size))
        slopes[:, 2 * n :] = rubbing
        for i, (own, at) in enumerate(zip(self.code.seen, self.code.first, strict=True)):
            torque = beta[own] @ flat[at : at + own.size]
            slopes[i, : 2 * n] = (torque[: 2 * n] - torque[2 * n : 4 * n]) / (2.0 * step)
            slopes[i, 2 * n + own] += flat[at : at + own.size, -1]
        return a, -inverse @ slopes, inverse


@dataclass(frozen=True, eq=False)
class _Inputs:
    """What acts in the steps of a filter: means over the step and over its first half.

    Efforts (K, n), columns of friction (K, n, b), and the variance of the efforts in every step (K, n).
    """

    tau: Array
    first: Array
    rubbing: Array
    rubbing_first: Array
    variance: Array

    def less_friction(self, k: int, beta: Array) -> tuple[Array, Array]:
        """Return the efforts of a step and of its first half without friction, with one beta (b,) or one each (N, b)."""
        return self.tau[k] - beta @ self.rubbing[k].T, self.first[k] - beta @ self.rubbing_first[k].T


def _turning(friction: Array, count: int, every: int, part: Stretch) -> Array:
    """Return the variance (K, n) of the efforts by friction that jumps, around the steps in which a joint turns round."""
    width = max(1, round(0.5 * part.rate / part.cutoff)) if part.cutoff > 0.0 else 1
    sums = [np.vstack([np.zeros((1, friction.shape[1])), np.cumsum(x, axis=0)]) for x in (friction, friction**2)]
    starts = np.maximum(np.arange(count) * every - width, 0)
    ends = np.minimum((np.arange(count) + 1) * every + width, len(friction))
    mean, square = ((x[ends] - x[starts]) / (ends - starts)[:, None] for x in sums)
    return np.asarray(np.maximum(square - mean**2, 0.0) * max(1.0, 2.0 * width / every))


def _means(x: Array, count: int, every: int) -> tuple[Array, Array]:
    """Return means of samples over steps and over their first halves, by trapezoids."""
    between = 0.5 * (x[:-1] + x[1:])
    whole = between[: count * every].reshape(count, every, *x.shape[1:]).mean(axis=1)
    ends = x[: count * every + 1 : every]
    return whole, whole + 0.25 * (ends[:-1] - ends[1:])


def _run(
    model: _Model,
    part: Stretch,
    beta: Array,
    P: Array,
    walk: Array,
    sigma: Array,
    noise: Array,
    kind: str,
    rate: float,
) -> tuple[Array, Array, int, float]:
    """Run one filter over one stretch; return beta, its covariance, and the number and sum of squared innovations."""
    n, b = model.n, beta.size
    every = max(1, round(part.rate / rate))
    count = (len(part.motion) - 1) // every
    dt = every / part.rate
    z = part.positions[::every][: count + 1]
    columns = model.friction(part.motion, b)
    # Rows low-passed at the decimator's cut-off have the variance s^2; white noise has rate / (2 cut-off) times it per sample.
    band = part.decimator.cutoff if part.decimator.factor > 1 else 0.5 * part.rate
    variance = sigma**2 * max(1.0, 0.5 / dt / band)
    variance = variance + _turning(columns[..., model.jumping] @ beta[model.jumping], count, every, part)
    given = _Inputs(*_means(part.effort, count, every), *_means(columns, count, every), variance)
    free = (given.first - given.rubbing_first @ beta, given.tau - given.rubbing @ beta)
    noise = np.maximum(noise, model.step_error(part, beta, *free, every, dt))
    x = np.concatenate([z[0], part.motion.v[0], beta])
    C = np.zeros((2 * n + b, 2 * n + b))
    speed = np.abs(part.motion.v[0] - part.measured.v[0]) + noise * part.rate / 10.0
    C[range(n), range(n)], C[range(n, 2 * n), range(n, 2 * n)] = noise**2, speed**2
    C[2 * n :, 2 * n :] = P
    step = _extended if kind == "extended" else _unscented
    H = np.eye(n, 2 * n + b)
    R = np.diag(noise**2)
    used, squares = 0, 0.0
    for k in range(count):
        try:
            x, C = step(model, x, C, given, k, dt, z[k + 1], R)
        except np.linalg.LinAlgError:  # a mass matrix or a covariance that cannot be
            squares = np.nan
            break
        C[2 * n :, 2 * n :] += walk * dt
        e, S = z[k + 1] - x[:n], C[:n, :n] + R
        K = np.linalg.solve(S, C[:n]).T
        K[2 * n :] *= model.possible(z[k + 1], x[2 * n :], K[2 * n :] @ e)
        x = x + K @ e
        left = np.eye(2 * n + b) - K @ H
        C = left @ C @ left.T + K @ R @ K.T
        used, squares = used + n, squares + float(e @ np.linalg.solve(S, e))
        if not np.isfinite(squares):
            break
    if not np.isfinite(squares):
        raise IdentificationError(
            f"Kalman: the {kind} filter diverged at {part.motion.t[0] + k * dt:.3g} s: its mass matrix is no longer that of a "
            "robot; a motion with larger accelerations shows the inertias better, a smaller inflation= or a larger "
            "position_noise= trusts these data less"
        )
    return x[2 * n :], C[2 * n :, 2 * n :], used, squares


def _probable(model: _Model, x: Array, C: Array, given: _Inputs, k: int, dt: float, z: Array, R: Array) -> tuple[Array, Array]:
    """Return the mean one step ahead, and the most probable noise of the efforts in that step, from the positions after it."""
    n = model.n
    moved, D, inverse = _linear(model, x, C, given, k, dt, np.zeros(n))
    ahead = 0.5 * dt**2 * inverse * given.variance[k]  # covariance of the positions ahead with the noise
    return moved, ahead.T @ np.linalg.solve(D[:n, :n] + R, z - moved[:n])


def _extended(model: _Model, x: Array, C: Array, given: _Inputs, k: int, dt: float, z: Array, R: Array) -> tuple[Array, Array]:
    """Advance mean and covariance by one step: slopes about the most probable noise."""
    moved, w = _probable(model, x, C, given, k, dt, z, R)
    return moved, _linear(model, x, C, given, k, dt, w)[1]


def _linear(model: _Model, x: Array, C: Array, given: _Inputs, k: int, dt: float, w: Array) -> tuple[Array, Array, Array]:
    """Advance by one step with w added to the efforts: midpoint rule, Simpson's for the positions, second-order transition."""
    n = model.n
    q, v, beta = x[:n], x[n : 2 * n], x[2 * n :]
    tau, first = (y + w for y in given.less_friction(k, beta))
    (a,), _ = model.accelerations(q[None], v[None], beta, first)
    middle_q, middle_v = q + 0.5 * dt * v, v + 0.5 * dt * a
    a, slopes, inverse = model.derivatives(middle_q, middle_v, beta, tau, given.rubbing[k])
    A = np.zeros((2 * n, x.size))
    A[:n, n : 2 * n] = np.eye(n)
    A[n:] = slopes
    F = np.eye(x.size)
    F[: 2 * n] += dt * A + 0.5 * dt**2 * A[:, : 2 * n] @ A
    moved = np.concatenate([q + dt / 6.0 * (2.0 * v + 4.0 * middle_v + dt * a), v + dt * a, beta])
    G = np.vstack([0.5 * dt**2 * inverse, dt * inverse, np.zeros((beta.size, n))])
    result = F @ C @ F.T + (G * given.variance[k]) @ G.T
    return moved, 0.5 * (result + result.T), inverse


def _unscented(model: _Model, x: Array, C: Array, given: _Inputs, k: int, dt: float, z: Array, R: Array) -> tuple[Array, Array]:
    """Advance mean and covariance by one step: scaled points through the same rules, with the most probable noise."""
    n, L = model.n, x.size
    ahead, w = _probable(model, x, C, given, k, dt, z, R)
    free = np.flatnonzero(np.diag(C) > 0.0)
    size = np.sqrt(np.diag(C)[free])
    correlation = C[np.ix_(free, free)] / np.outer(size, size)
    root = np.zeros((L, free.size))
    root[free] = size[:, None] * np.linalg.cholesky(correlation + 1e-12 * np.eye(free.size))
    m = free.size
    spread = ALPHA * np.sqrt(m)
    points = np.vstack([x, x + spread * root.T, x - spread * root.T])
    weight = 0.5 / spread**2  # of every point; that of the centre is below zero
    q, v, beta = points[:, :n], points[:, n : 2 * n], points[:, 2 * n :]
    tau, first = (y + w for y in given.less_friction(k, beta))
    a, inverse = model.accelerations(q, v, beta, first)
    middle_v = v + 0.5 * dt * a
    a, inverse = model.accelerations(q + 0.5 * dt * v, middle_v, beta, tau)
    moved = np.hstack([q + dt / 6.0 * (2.0 * v + 4.0 * middle_v + dt * a), v + dt * a, beta])
    off = moved[1:] - moved[0]
    mean = ahead + weight * off.sum(axis=0)
    # About the centre, not the mean: larger by the square of their difference, and a covariance whatever the equations do.
    result = weight * off.T @ off
    G = np.vstack([0.5 * dt**2 * inverse[0], dt * inverse[0], np.zeros((L - 2 * n, n))])
    result += (G * given.variance[k]) @ G.T
    return mean, 0.5 * (result + result.T)
