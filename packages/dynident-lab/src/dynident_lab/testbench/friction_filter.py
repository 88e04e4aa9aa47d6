"""Extended Kalman filter with friction parameters as states, off line and on line [Rodriguez2002] [Kostic2002].

    m a + Qa cos q - Qb sin q + off + Bv v + sum_i Bf_i tanh(w_i v) = tau,     parameters constant,     q measured

Continuous between samples, discrete at them ([Rodriguez2002, eqs. 30-38], Joseph form). The filter gives CURVES: single values
of Bf and w are not identifiable, since (Bf, w) and (-Bf, -w) are the same law and terms of opposite sign compensate
each other: a curve accurate to 0.1 % can have coefficients wrong by half. Here w > 0 by construction: its
logarithm is the state.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.checks import signal, step_length, time_axis
from dynident.errors import DynidentError, IdentificationError
from dynident.friction import Friction, Offset, Sigmoid
from dynident.identify import Axis, fit_friction
from dynident.identify.friction.fitting import SIGMOID_NOTE
from dynident.identify.friction.problem import direction_note
from dynident.mechanics import actuator_jacobian, mass_matrix
from dynident.mechanics import gravity as gravity_torque
from dynident.mechanics.closure import coordinates_from_actuators
from dynident.mechanism import Mechanism
from dynident.signals import Log
from dynident.signals.matching import match
from dynident_lab.testbench.friction_filter_steps import steps_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure


#: First guesses of w for recorded data, as factors.
GUESSES = (1.0, 0.3, 3.0)
#: Half width of the window that smooths a record for its first guess [s], and number of samples in the fit.
SMOOTH, SAMPLES = 0.02, 4000
#: Slowest and fastest transition of a sigmoid relative to the largest speed.
FASTEST = 1e-4


@dataclass(frozen=True, eq=False)
class KalmanResult:
    """Result of the filter."""

    names: tuple[str, ...]  # Estimated parameters
    values: Array  # Their last estimates
    std: Array  # Their standard deviations; for w, that of its logarithm times w
    friction: Friction  # The sigmoid law with its numbers, and the offset if estimated
    t: Array  # Times of the history [s]
    history: Array  # Position, velocity and parameters over time (logarithms of w)
    spread: Array  # Their standard deviations
    consistency: float
    notes: tuple[str, ...]  # Remarks on the result

    @property
    def parameters(self) -> dict[str, float]:
        """Values by name."""
        return dict(zip(self.names, self.values.tolist(), strict=True))

    def plot(self) -> Figure:
        """Draw the estimates over time with two standard deviations, one panel per parameter."""
        from dynident.figures import BLUE, SKY, finish, label, new_figure  # noqa: PLC0415 - matplotlib is an extra

        rows = -(-len(self.names) // 2)
        figure = new_figure(10.0, 1.9 * rows + 0.4)
        for i, name in enumerate(self.names):
            axes = figure.add_subplot(rows, 2, i + 1)
            y, s = self.history[:, 2 + i], self.spread[:, 2 + i]
            axes.fill_between(self.t, y - 2.0 * s, y + 2.0 * s, color=SKY, linewidth=0.0)
            axes.plot(self.t, y, color=BLUE, linewidth=1.0)
            finish(axes, "time [s]" if i >= len(self.names) - 2 else "", "", label(name))
        figure.tight_layout()
        return figure

    def summary(self) -> str:
        """Return parameters, consistency and notes as text."""
        lines = [f"{n:<6} {v:>12.5g} +- {s:.3g}" for n, v, s in zip(self.names, self.values, self.std, strict=True)]
        return "\n".join([*lines, f"innovations over prediction: {self.consistency:.3g} (about 1 is right)", *self.notes])


def filter_joint(mechanism: Mechanism, log: Log, joint: str, terms: int = 2) -> KalmanResult:
    """Return the friction of a joint that moves while the others rest, m(q) a + f(v) + g(q) = tau [Rodriguez2002, eq. 29].

    m and g are those of the robot at the logged positions. The noise of the position is that of its third differences, which a
    smooth motion leaves nearly zero: variance 20 s^2.
    """
    matched = match(mechanism, log)
    robot, names = matched.mechanism, matched.mechanism.coordinate_names
    if joint not in names:
        raise IdentificationError(f"joint '{joint}' is not in the log; it has {', '.join(names)}")
    i, (t, q, tau) = names.index(joint), (matched.log.t, matched.log.position, matched.log.effort)
    if robot.loops:  # the log has motors
        q = coordinates_from_actuators(robot, q)
        tau = np.einsum("nki,nk->ni", actuator_jacobian(robot, q), tau)
    moved = np.ptp(q, axis=0)
    others = [name for k, name in enumerate(names) if k != i and moved[k] > 0.05 * moved[i]]
    if others:
        raise IdentificationError(f"'{others[0]}' moves, too; record '{joint}' alone, the other joints at rest")
    q = np.where(np.arange(len(names)) == i, q, q.mean(axis=0))
    m, g = mass_matrix(robot, q)[:, i, i], gravity_torque(robot, q)[:, i]
    noise = max(float(np.std(np.diff(q[:, i], 3))) / np.sqrt(20.0), 1e-7 * float(moved[i]))
    speed = float(np.abs(np.gradient(q[:, i], t)).max())
    ekf = FrictionFilter(speed, float(np.abs(tau[:, i]).max()), float(m.mean()), terms, noise)
    return ekf.run(t, tau[:, i], q[:, i], inertia=m, gravity=g)


class FrictionFilter:
    """Extended Kalman filter of one axis with a sigmoid law.

    On line: call `step` at every sample. Off line: `run` processes all samples of a record, optionally several times.

    Parameters
    ----------
    speed, torque : float
        Largest expected speed [rad/s or m/s] and friction torque [N m or N]; they set the scale of the first guess:
        Bv = torque / (2 speed), Bf = torque / (2 terms), w spread between 4 / speed and 100 / speed. The largest effort
        of the record is sufficient as torque.
    inertia : float
        Inertia m [kg m^2 or kg], known or, with ``estimate_inertia``, a first guess.
    terms : int
        Number of sigmoids: 2 in [Rodriguez2002], 3 in [Kostic2002].
    position_noise : float
        Standard deviation of the measured position [rad or m].
    velocity_noise : float
        Standard deviation of the measured velocity [rad/s or m/s]; 0 if the velocity is not measured.
    disturbance : float
        Spectral density of the unmodelled acceleration [(rad/s^2)^2/Hz or the linear equivalent].
    drift : float
        Relative random walk of the friction parameters per square root of a second; above 0 the filter follows slow
        changes (temperature) permanently, at 0 it converges.
    gravity : (float, float)
        Qa, Qb [N m or N], known or a first guess.
    estimate : sequence of str
        Parameters to estimate in addition to friction: "m", "Qa", "Qb", "off".
    guess : mapping of str to float, optional
        First guesses by name: "Bv", "Bf1", ..., "w1", ..., "m", "Qa", "Qb", "off".
    """

    def __init__(
        self,
        speed: float,
        torque: float,
        inertia: float,
        terms: int = 2,
        position_noise: float = 1e-5,
        velocity_noise: float = 0.0,
        disturbance: float = 1e-4,
        drift: float = 1e-4,
        gravity: tuple[float, float] = (0.0, 0.0),
        estimate: tuple[str, ...] = (),
        guess: Mapping[str, float] | None = None,
    ) -> None:
        for name, value in {"speed": speed, "torque": torque, "inertia": inertia, "position_noise": position_noise}.items():
            if not 1e-100 < value < 1e100:
                raise IdentificationError(f"FrictionFilter: {name} = {value} must be above zero and finite; check its unit")
        self.terms = Sigmoid(terms).terms
        self.all = ("m", "Qa", "Qb", "off", "Bv", *(f"{s}{i + 1}" for s in ("Bf", "w") for i in range(terms)))
        unknown = [n for n in (*estimate, *(guess or {})) if n not in self.all]
        if unknown:
            raise IdentificationError(f"FrictionFilter: unknown parameters {', '.join(unknown)}; use {', '.join(self.all)}")
        self.speed, self.torque = float(speed), float(torque)
        w = np.geomspace(4.0, 100.0, terms) / speed if terms > 1 else np.array([20.0 / speed])
        first = np.concatenate([[inertia, *gravity, 0.0, torque / (2 * speed)], np.full(terms, torque / (2 * terms)), w])
        self._given = frozenset(guess or {})
        for name, value in (guess or {}).items():
            first[self.all.index(name)] = value
        self.free = np.array([i for i, n in enumerate(self.all) if i >= 4 or n in estimate], dtype=np.int64)
        spread = np.concatenate(
            [[0.5 * inertia, *[torque] * 3, torque / speed], np.full(terms, 0.5 * torque), np.full(terms, 0.7)]
        )
        first[5 + terms :] = np.log(first[5 + terms :])
        self._first, self._prior = first, spread
        walk = np.concatenate([[0.0], spread[1:]]) * drift
        self._Q = np.concatenate([[0.0, disturbance], walk[self.free] ** 2])
        self._limit = np.array([np.log(1.0 / speed), np.log(1.0 / (FASTEST * speed)), 1e-3 * inertia])
        self._noise = (float(position_noise) ** 2, float(velocity_noise) ** 2)
        self._steps = steps_of(self.terms, tuple(self.free.tolist()))
        self.reset()

    def reset(self, keep: bool = False, faster: float = 1.0) -> None:
        """Reset the state, and the parameters unless `keep`."""
        if not keep:
            self.p = self._faster(faster)
        spread = np.concatenate([[10.0 * np.sqrt(self._noise[0]), self.speed], self._prior[self.free]])
        self.x = np.concatenate([[0.0, 0.0], self.p[self.free]])
        self.P = np.diag(spread**2)
        self._last: tuple[float, float] | None = None
        self._now, self._score, self._variance = np.zeros(5), np.zeros(1), np.zeros(2)
        self._sample = self._steps.bound(self._filter(), self._now, self._score)

    def _filter(self) -> tuple[Array, ...]:
        """Return state, covariance, parameters and noises."""
        return self.x, self.P, self.p, self._Q, self._limit, self._variance

    def _measured(self, speeds: bool) -> None:
        """Set the measurement noise; the velocity is used only if it is measured."""
        self._variance[:] = self._noise[0], self._noise[1] if speeds else 0.0

    @property
    def friction(self) -> Friction:
        """The law with the present numbers."""
        n = self.terms
        rho, w = self.p[4 : 5 + n], np.exp(self.p[5 + n :])
        if 3 in self.free:
            return Friction(Sigmoid(n) + Offset(), np.concatenate([rho, self.p[3:4], w]))
        return Friction(Sigmoid(n), np.concatenate([rho, w]))

    def step(self, t: float, tau: float, q: float, v: float | None = None) -> float:
        """Process one sample."""
        speed = 0.0 if v is None else v
        if not (isfinite(t) and isfinite(tau) and isfinite(q) and isfinite(speed)):
            raise IdentificationError(f"sample at t = {t} s is not finite; remove it (the filter handles gaps)")
        if self._last is None:
            self.x[0], dt, held = q, 0.0, tau
        else:
            dt, held = step_length(t - self._last[0]), 0.5 * (tau + self._last[1])
        self._last = (t, tau)
        self._measured(v is not None)
        self._now[:] = held, dt, q, speed, 1.0
        self._sample()
        return float(self._score[0])

    def run(
        self,
        t: ArrayLike,
        tau: ArrayLike,
        q: ArrayLike,
        v: ArrayLike | None = None,
        passes: int = 3,
        every: int = 100,
        inertia: ArrayLike | None = None,
        gravity: ArrayLike | None = None,
    ) -> KalmanResult:
        """Process all samples of a record.

        Parameters
        ----------
        t : array_like, (N,)
            Times [s], increasing.
        tau, q : array_like, (N,)
            Effort [N m or N] and position [rad or m].
        v : array_like (N,), optional
            Velocity, used when ``velocity_noise`` is above 0.
        passes : int
            Number of passes; each pass starts from the parameters of the last one with the
            initial uncertainty, so only the linearisation improves, not the stated precision. All passes are
            repeated from three first guesses of w and from a fit to smoothed velocities and accelerations of the record;
            the result with the smallest innovations is kept.
        every : int
            Samples between two rows of the history.
        inertia, gravity : array_like (N,), optional
            m(q) and g(q) of a model at the samples, m(q) a + f(v) + g(q) = tau [Rodriguez2002, eq. 29].

        Returns
        -------
        KalmanResult
            Friction curve, parameters and their history.
        """
        times = np.ascontiguousarray(time_axis(t))
        N = times.size
        effort, position = (np.ascontiguousarray(signal(n, s, N)) for n, s in (("tau", tau), ("q", q)))
        if gravity is not None:
            effort = np.ascontiguousarray(effort - signal("gravity", gravity, N))
        m = np.full(N, self._first[0]) if inertia is None else signal("inertia", inertia, N)
        if not np.all(m > 0.0):
            raise IdentificationError(f"inertia is {m.min():g} at a sample; give m(q) above zero")
        speeds = np.zeros(N) if v is None else np.ascontiguousarray(signal("v", v, N))
        signals = times, effort, position, speeds, np.ascontiguousarray(self._first[0] / m)
        if 10 * self.free.size > N or passes < 1 or every < 1:
            raise IdentificationError(
                f"{N} samples, passes = {passes}, every = {every}: give at least {10 * self.free.size} samples and positive "
                "counts"
            )
        rows = -(-N // every)
        history, spread, scores = np.zeros((rows, self.x.size)), np.zeros((rows, self.x.size)), np.zeros(N)

        def go(first: Array) -> float:
            """Run all passes from one guess; return the mean square innovation of the last pass, infinite if it diverged."""
            for i in range(passes):
                if i == 0:
                    self.p = first.copy()
                self.reset(keep=True)
                self.x[0] = position[0]
                self._measured(v is not None)
                if not self._steps.run(signals, self._filter(), every, history, spread, scores):
                    return float("inf")
            size = float(np.mean(scores[N // 5 :] ** 2))
            return size if np.isfinite(size) else float("inf")

        guesses = [self._faster(factor) for factor in GUESSES]
        guesses += [] if (seen := self._from_record(times, effort, position, m)) is None else [seen]
        sizes = [go(first) for first in guesses]
        best = int(np.argmin(sizes))
        if not np.isfinite(sizes[best]):
            raise IdentificationError(
                "the filter diverged for every initial guess; check units, position_noise and inertia, or sample faster"
            )
        if best != len(guesses) - 1:
            go(guesses[best])  # so that the state of the filter equals the result
        self._last = (float(times[-1]), float(effort[-1]))
        return self._result(times[::every], history, spread, scores, position, times)

    def _faster(self, factor: float) -> Array:
        """Return the first guess with every w multiplied by a factor."""
        first = self._first.copy()
        first[5 + self.terms :] += np.log(factor)
        return first

    def _from_record(self, t: Array, tau: Array, q: Array, m: Array) -> Array | None:
        """Return a first guess from smoothed velocities and accelerations, or None if impossible; given guesses are kept."""
        from scipy.signal import savgol_filter  # noqa: PLC0415 - slow to import

        if set(self.all[4:]) <= self._given:
            return None
        dt = float(np.median(np.diff(t)))
        half = max(3, round(SMOOTH / dt))
        if t.size < 8 * half:
            return None
        even = np.interp(t[0] + dt * np.arange(int((t[-1] - t[0]) / dt)), t, q)
        v, a = (savgol_filter(even, 2 * half + 1, 4, deriv=k, delta=dt)[half:-half] for k in (1, 2))
        effort, heavy = (np.interp(t[0] + dt * np.arange(even.size), t, x)[half:-half] for x in (tau, m))
        first, place = self._first.copy(), even[half:-half]
        rest = effort - heavy * a - first[1] * np.cos(place) + first[2] * np.sin(place)
        thin = max(1, rest.size // SAMPLES)
        try:
            found = fit_friction(None, Axis(rest[::thin], v[::thin]), Sigmoid(self.terms)).friction["axis"].parameters
        except (DynidentError, ValueError, np.linalg.LinAlgError):
            return None
        for i in range(self.terms):
            w = found[f"w{i + 1}"]
            values = {f"Bf{i + 1}": float(np.copysign(1.0, w)) * found[f"Bf{i + 1}"], f"w{i + 1}": np.log(max(abs(w), 1e-9))}
            for name, value in {**values, "Bv": found["Bv"]}.items():
                if name not in self._given:
                    first[self.all.index(name)] = value
        first[5 + self.terms :] = np.clip(first[5 + self.terms :], self._limit[0], self._limit[1])
        return first if np.isfinite(first).all() else None

    def _result(self, t: Array, history: Array, spread: Array, scores: Array, q: Array, times: Array) -> KalmanResult:
        values, std = self.x[2:].copy(), np.sqrt(np.maximum(np.diag(self.P)[2:], 0.0))
        logarithm = self.free >= 5 + self.terms
        values[logarithm] = np.exp(values[logarithm])
        std[logarithm] *= values[logarithm]
        notes = [SIGMOID_NOTE, *(found.sentence for found in direction_note("axis", np.gradient(q, times)))]
        late = scores[scores.size // 5 :]  # the first samples only show the error of the first guess
        consistency = float(np.mean(late**2))
        if not 0.2 < consistency < 5.0:
            notes.append(
                f"squared innovations are {consistency:.2g} times the predicted ones; change position_noise or disturbance"
            )
        names = tuple(self.all[i] for i in self.free)
        return KalmanResult(names, values, std, self.friction, t, history, spread, consistency, tuple(notes))
