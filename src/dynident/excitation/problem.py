"""The design problem: choose trajectory parameters x with the least cost inside all limits."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dynident.errors import DynidentError
from dynident.excitation.limits import Box, Limit, State, all_excess, all_names
from dynident.excitation.limits_file import MotionLimits
from dynident.excitation.objective import Objective
from dynident.trajectory.family import Family

Array = NDArray[np.float64]
Pick = tuple[int, int, int]
"""Limit, its column, sample."""

FINE = 48  # samples of the limits per period of the highest harmonic
DENSE = 4  # samples of the final check per sample of the optimisation
NEAR = 1.0  # peaks with a smaller margin are handed to the optimiser
STEP = 1e-6  # of differences of limits by the state
OUTSIDE = 1e6  # excess of a motion that the robot cannot follow at all


@dataclass(frozen=True, eq=False)
class Problem:
    """Cost, limits and the grid on which both are taken.

    Parameters
    ----------
    objective : Objective
        Cost with gradient.
    limits : MotionLimits
        Limits and the margin to keep from them.
    home : ndarray (n,), optional
        Position from which postures are tried first; the middle of the ranges when omitted.
    """

    objective: Objective
    limits: MotionLimits
    home: Array | None = None

    def __post_init__(self) -> None:
        n = self.objective.equations.dof
        if len(self.limits.coordinates) != n:
            raise DynidentError(f"there are limits of {len(self.limits.coordinates)} coordinates but the robot has {n}")
        check_frequencies(self.family, self.limits.bandwidth, 1.0 / float(np.min(np.diff(self.objective.t))))

    @property
    def family(self) -> Family:
        """Trajectories to choose from."""
        return self.objective.family

    @property
    def dof(self) -> int:
        """Number of coordinates."""
        return self.objective.equations.dof

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of all limits' columns."""
        return all_names(self.limits.all)

    @cached_property
    def _coarse(self) -> tuple[Array, ...]:
        t = np.linspace(0.0, self.family.duration, self._count + 1)
        return tuple(self.family.basis(t, k) for k in range(4))

    @cached_property
    def _count(self) -> int:
        """Steps of the grid on which the optimiser sees the limits: samples reach 99.8 % of the highest harmonic's peaks."""
        return max(self.objective.t.size, int(np.ceil(FINE * self.family.highest * self.family.duration)))

    @cached_property
    def _dense(self) -> tuple[Array, ...]:
        t = np.linspace(0.0, self.family.duration, DENSE * self._count + 1)
        return tuple(self.family.basis(t, k) for k in range(4))

    def state(self, x: Array, dense: bool = False) -> State:
        """Return the motion of parameters.

        Parameters
        ----------
        x : ndarray, (n * size,)
            Parameters.
        dense : bool
            On the grid of the final check instead of that of the optimisation.

        Returns
        -------
        State
            q, v, a and jerk.
        """
        c = x.reshape(self.dof, -1).T
        return State(*(phi @ c for phi in (self._dense if dense else self._coarse)))

    def excess(self, x: Array, dense: bool = False) -> Array:
        """Return how far each limit is exceeded at its worst sample; OUTSIDE for all when the robot cannot follow.

        Parameters
        ----------
        x : ndarray, (n * size,)
            Parameters.
        dense : bool
            On the grid of the final check.

        Returns
        -------
        ndarray, (k,)
            Not above ``-margin`` when the motion is accepted.
        """
        try:
            return np.asarray(all_excess(self.limits.all, self.state(x, dense)).max(axis=0))
        except DynidentError:
            return np.full(len(self.names), OUTSIDE)

    def feasible(self, x: Array, dense: bool = False) -> bool:
        """Return whether all limits are kept with the margin.

        Parameters
        ----------
        x : ndarray, (n * size,)
            Parameters.
        dense : bool
            On the grid of the final check.

        Returns
        -------
        bool
            True inside.
        """
        return self._over(x, dense) <= 0.0

    def margins(self, x: Array) -> dict[str, float]:
        """Return the smallest margin of every limit on the dense grid.

        Parameters
        ----------
        x : ndarray, (n * size,)
            Parameters.

        Returns
        -------
        dict of str to float
            Share of the limit that is left, by name.
        """
        worst: dict[str, float] = {}
        for name, value in zip(self.names, self.excess(x, True), strict=True):
            worst[name] = min(worst.get(name, np.inf), -float(value))
        return worst

    def centre(self, x: Array) -> Array:
        """Return the parameters of standing still at the mean position of a motion.

        Parameters
        ----------
        x : ndarray, (n * size,)
            Parameters.

        Returns
        -------
        ndarray, (n * size,)
            Parameters of rest.
        """
        return self.still(self.state(x).q.mean(axis=0))

    def still(self, posture: Array) -> Array:
        """Return the parameters of standing still.

        Parameters
        ----------
        posture : ndarray, (n,)
            Position.

        Returns
        -------
        ndarray, (n * size,)
            Parameters.
        """
        return np.outer(posture, self.family.constant()).ravel()

    def shrink(self, x: Array, dense: bool = True, towards: Array | None = None) -> Array | None:
        """Return the motion scaled down towards another (rest at its mean position) until it keeps all limits; None if never.

        Parameters
        ----------
        x : ndarray, (n * size,)
            Parameters.
        dense : bool
            Check on the dense grid.
        towards : ndarray (n * size,), optional
            Parameters of a motion inside the limits; rest when omitted.

        Returns
        -------
        ndarray (n * size,) or None
            Parameters of a feasible motion.
        """
        rest = self.centre(x) if towards is None else towards
        worst = self._over(x, dense)
        if worst <= 0.0:
            return x
        low, high, found = 0.0, 1.0, None
        below, above = self._over(rest, dense), worst
        for k in range(8):
            if below > 0.0 or not np.isfinite(above):  # rest itself is outside, or the motion cannot be followed
                middle = 0.5 * (low + high)
            else:  # regula falsi: limits are nearly straight lines over the scale
                middle = low + (high - low) * np.clip(-below / (above - below), 0.05, 0.95)
                middle -= 0.002 * (middle - low)
            candidate = rest + middle * (x - rest)
            value = self._over(candidate, dense)
            if value <= 0.0:
                low, found, below = middle, candidate, value
                if k and value > -0.005:
                    break
                above *= 0.7  # Illinois: do not let the other end stand still
            else:
                high, above = middle, value
                below *= 0.7
        return found

    def _over(self, x: Array, dense: bool) -> float:
        """Return how far the margin is used up at the worst limit; not above zero when the motion is accepted."""
        return float(self.excess(x, dense).max()) + self.limits.margin - 1e-9

    def peaks(self, x: Array, most: int = 6) -> set[Pick]:
        """Return the samples where limits are exceeded or nearly so: local maxima of each column.

        Parameters
        ----------
        x : ndarray, (n * size,)
            Parameters.
        most : int
            Largest number per column.

        Returns
        -------
        set of tuple of int
            Limit, column, sample.
        """
        state = self.state(x)
        found: set[Pick] = set()
        for i, limit in enumerate(self.limits.all):
            e = limit.excess(state)
            padded = np.vstack([np.full(e.shape[1], -np.inf), e, np.full(e.shape[1], -np.inf)])
            top = (e >= padded[:-2]) & (e > padded[2:]) & (e > -NEAR)
            for k in range(e.shape[1]):
                samples = np.flatnonzero(top[:, k])
                for s in samples[np.argsort(-e[samples, k])][:most]:
                    found.add((i, k, int(s)))
        return found

    def at(self, x: Array, picks: list[Pick]) -> Array:
        """Return the excess at given samples.

        Parameters
        ----------
        x : ndarray, (n * size,)
            Parameters.
        picks : list of tuple of int
            Limit, column, sample.

        Returns
        -------
        ndarray, (m,)
            Excess.
        """
        state = self.state(x)
        out = np.empty(len(picks))
        for i in {pick[0] for pick in picks}:
            rows = [r for r, pick in enumerate(picks) if pick[0] == i]
            limit = self.limits.all[i]
            samples = np.array([picks[r][2] for r in rows])
            columns = [picks[r][1] for r in rows]
            if limit.follows:
                out[rows] = limit.excess(state)[samples, columns]
            else:
                out[rows] = limit.excess(State(*(y[samples] for y in state)))[np.arange(len(rows)), columns]
        return out

    def slopes(self, x: Array, picks: list[Pick]) -> Array:
        """Return the derivatives of `at`: exact for positions and rates, by central differences in the state otherwise.

        Parameters
        ----------
        x : ndarray, (n * size,)
            Parameters.
        picks : list of tuple of int
            Limit, column, sample.

        Returns
        -------
        ndarray, (m, n * size)
            Jacobian.
        """
        state, size = self.state(x), self.family.size
        out = np.zeros((len(picks), self.dof, size))
        for i in {pick[0] for pick in picks}:
            rows = np.array([r for r, pick in enumerate(picks) if pick[0] == i])
            limit = self.limits.all[i]
            samples = np.array([picks[r][2] for r in rows])
            columns = np.array([picks[r][1] for r in rows])
            if isinstance(limit, Box):
                joints, gains = limit.gains
                out[rows, joints[columns]] = gains[columns, None] * self._coarse[limit.order][samples]
                continue
            for order in limit.orders:
                slope = _by_state(limit, state, order, samples, columns)  # (rows, n)
                out[rows] += slope[:, :, None] * self._coarse[order][samples][:, None, :]
        return out.reshape(len(picks), -1)


def _by_state(limit: Limit, state: State, order: int, samples: NDArray[np.int64], columns: NDArray[np.int64]) -> Array:
    """Return the derivative of a limit at samples by q, v, a or jerk of the same samples, (m, n)."""
    n, m = state.q.shape[1], samples.size
    steps = [(j, h) for j in range(n) for h in (STEP, -STEP)]
    if limit.follows:
        values = []
        for j, h in steps:
            moved = state[order].copy()
            moved[:, j] += h
            values.append(limit.excess(state._replace(**{"qvaj"[order]: moved}))[samples, columns])
        found = np.array(values)
    else:  # samples stand for themselves: all of them moved every way in one call
        places, where = np.unique(samples, return_inverse=True)
        chosen = State(*(np.tile(y[places], (2 * n, 1)) for y in state))
        moved = chosen[order].reshape(2 * n, places.size, n)
        for k, (j, h) in enumerate(steps):
            moved[k, :, j] += h
        found = limit.excess(chosen).reshape(2 * n, places.size, -1)[:, where, columns]
    return np.asarray((found[0::2] - found[1::2]).T.reshape(m, n) / (2.0 * STEP))


def check_frequencies(family: Family, bandwidth: float, rate: float) -> None:
    """Refuse motions faster than the drives or than the sampling can follow.

    Parameters
    ----------
    family : Family
        Trajectories.
    bandwidth : float
        Of the drives [Hz].
    rate : float
        Samples per second [Hz].
    """
    if family.highest > bandwidth * (1.0 + 1e-9):
        raise DynidentError(
            f"the motion holds frequencies up to {family.highest:.4g} Hz but the drives follow {bandwidth:.4g} Hz only; use "
            "fewer harmonics or a lower fundamental"
        )
    if family.highest >= 0.5 * rate:
        raise DynidentError(
            f"the motion holds frequencies up to {family.highest:.4g} Hz but {rate:.4g} samples per second show less than "
            f"{0.5 * rate:.4g} Hz (Nyquist); raise the rate or use fewer harmonics"
        )
