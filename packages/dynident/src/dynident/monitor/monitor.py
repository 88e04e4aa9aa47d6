"""`Monitor`: an identified model at work, one sample after the other.

The threshold for a stated rate of false alarms is z standard deviations:

    rate = sum_i 2 nu_i exp(-z^2 / 2),    nu = K / (2 pi sqrt(2))           [Rice1945]

nu is the zero-upcrossing rate of white noise behind Butterworth's filter of third order and bandwidth K: the second moment
of its spectrum 1 / (1 + (w / K)^6) is K^2 / 2 of the zeroth. Sampling only makes crossings rarer.

The model comprises parameters, the directions in which they are uncertain, and the error of its terms:

    cov = sum_j d_j d_j^T          d_j in the order of their torques at random states
    e^2 = max(sigma^2, sum_k eta_k^2 (w_k beta_k)^2)       model error of a fit with a prior, as in `Fit.predict`
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.arrays import Array
from dynident.checks import number, per_actuator
from dynident.errors import DescriptionError, DynidentError, LogError
from dynident.figures import BLUE, ORANGE, SKY, WIDTH, extremes, label, new_figure
from dynident.friction.law import Friction
from dynident.friction.terms import TERMS
from dynident.identify.base import BaseParameters, columns_of
from dynident.identify.fit import Fit
from dynident.identify.prediction import model_errors
from dynident.identify.regression.rows import Rows
from dynident.mechanics.closure import coordinates_from_actuators, random_closed_motion
from dynident.mechanics.dynamics import jacobian
from dynident.mechanics.functions import Motion, cached, coordinates, node_values
from dynident.mechanism.mechanism import Mechanism
from dynident.monitor.step import (
    BEYOND,
    CONFIRM,
    FILTER,
    GAP,
    HEAD,
    HOLD,
    LEFT,
    LEVEL,
    SETTLED,
    WORST,
    Layout,
    Machine,
    terms_of,
    write_c,
)
from dynident.results import Result
from dynident.signals.log import Log
from dynident.signals.matching import match

EXACT = 1e-3  # of the training effort: lower bound of the noise
RISEN = 3.0  # times their median: thresholds at rest above it are reported
SAMPLES = 2.4  # per period of the cut-off: with fewer, the low-pass output differs from the robot's motion
BLIND = 0.05  # share of a log without a result above which it is reported


@dataclass(frozen=True)
class Event:
    """One time interval in which the flag was raised."""

    start: float  #: When it began [s]
    end: float  #: When it ended [s]
    joint: str  #: Joint whose torque was farthest beyond its threshold
    torque: float  #: Largest external torque of that joint [N m or N]
    share: float  #: Its ratio to the threshold


@dataclass(frozen=True, eq=False)
class MonitorRecord(Result):
    """Result of a monitor for one log."""

    name: str  #: Name of the log
    joints: tuple[str, ...]  #: Names of the joints
    t: Array  #: (N,), time [s]
    q: Array  #: (N, n), positions of its coordinates
    torque: Array  #: (N, n), external torques [N m, N]; NaN where undefined (`Reading`)
    threshold: Array  #: (N, n), largest torque compatible with the model [N m, N]; NaN where undefined
    flag: NDArray[np.bool_]  #: (N,), whether the flag was raised
    level: float  #: Thresholds in standard deviations
    false_alarms: float  #: Stated rate [1/h]
    notes: tuple[str, ...] = ()  #: How the log was read
    derived = ("duration", "blind", "numbers", "events")

    @property
    def duration(self) -> float:
        """Length of the log [s]."""
        return float(self.t[-1] - self.t[0])

    @property
    def numbers(self) -> dict[str, dict[str, float]]:
        """Statistics by joint: `rms`, `largest`, `threshold`, `largest_share` and `within_two_sigma`."""
        return {name: self._numbers(i) for i, name in enumerate(self.joints)}

    def _numbers(self, i: int) -> dict[str, float]:
        """Return the statistics of one joint."""
        return {
            "rms": float(np.sqrt(np.nanmean(self.torque[:, i] ** 2))),
            "largest": float(np.nanmax(np.abs(self.torque[:, i]))),
            "threshold": float(np.nanmedian(self.threshold[:, i])),
            "largest_share": float(np.nanmax(np.abs(self.shares[:, i]))),
            "within_two_sigma": float(self.coverage[i]),
        }

    def overview(self) -> dict[str, Any]:
        """Return the record without its samples, as plain values."""
        return {
            "log": self.name,
            "duration": self.duration,
            "blind": self.blind,
            "level": self.level,
            "false_alarms_per_hour": self.false_alarms,
            "joints": self.numbers,
            "events": [asdict(event) for event in self.events],
            "notes": list(self.notes),
        }

    @property
    def shares(self) -> Array:
        """Torque over threshold, (N, n)."""
        return self.torque / self.threshold

    @property
    def coverage(self) -> Array:
        """Share of the samples within two standard deviations of every joint, (n,); about 0.95 for an unchanged robot."""
        inside = np.abs(self.shares) * self.level <= 2.0
        seen = np.isfinite(self.shares)
        return np.asarray((inside & seen).sum(axis=0) / np.where(seen.any(axis=0), seen.sum(axis=0), np.nan))

    @property
    def blind(self) -> float:
        """Time without a result [s]: invalid samples, and the settling time of the low-pass after a start."""
        unseen = np.isnan(self.torque[1:, 0])
        return float(np.sum(np.diff(self.t), where=unseen))

    @property
    def events(self) -> tuple[Event, ...]:
        """Intervals in which the flag was raised, with joint and torque."""
        edges = np.flatnonzero(np.diff(self.flag.astype(int), prepend=0, append=0))
        found = []
        for first, last in zip(edges[::2], edges[1::2], strict=True):
            size = np.nan_to_num(np.abs(self.shares[first:last]))
            row, joint = np.unravel_index(int(np.argmax(size)), size.shape)
            torque = float(self.torque[first + row, joint])
            span = float(self.t[first]), float(self.t[last - 1])
            found.append(Event(*span, self.joints[joint], torque, float(size[row, joint])))
        return tuple(found)

    def __repr__(self) -> str:
        return f"MonitorRecord(log '{self.name}': {len(self.events)} events in {self.duration:.3g} s)"

    def summary(self) -> str:
        """Return the record as text. A table of the joints, and the events."""
        width = max(len("joint"), *(len(name) for name in self.joints))
        lines = [
            f"log '{self.name}': {self.duration:.3g} s, thresholds at {self.level:.2f} standard deviations "
            f"({self.false_alarms:.2g} false alarms per hour for noise like that of the fit)",
            f"{'joint':<{width}}  {'rms':>9}  {'largest':>9}  {'threshold':>9}  {'share':>6}  within 2 sigma",
        ]
        for i, name in enumerate(self.joints):
            if not np.isfinite(self.threshold[:, i]).any():
                lines.append(f"{name:<{width}}  not monitored: the fit did not use its effort")
                continue
            found = self._numbers(i)
            text = "  ".join(f"{found[key]:>9.3g}" for key in ("rms", "largest", "threshold"))
            lines.append(f"{name:<{width}}  {text}  {found['largest_share']:>6.2f}  {100 * found['within_two_sigma']:.0f} %")
        if self.blind > BLIND * self.duration:
            lines.append(
                f"no result for {self.blind:.3g} s: samples that are not finite, and settling of the low-pass after a start "
                "or a gap"
            )
        lines += self._at_rest()
        for e in self.events:
            lines.append(
                f"event {e.start:.3f} to {e.end:.3f} s: '{e.joint}' {e.torque:+.3g}, {e.share:.1f} times its threshold"
            )
        return "\n".join(lines if self.events else [*lines, "no event"])

    def _at_rest(self) -> list[str]:
        """Explain torques above the thresholds of the table without an event, if joints stand still."""
        watched = [i for i in range(len(self.joints)) if np.isfinite(self.threshold[:, i]).any()]
        high = {i: float(np.nanmax(self.threshold[:, i])) for i in watched}
        rising = [i for i in watched if high[i] > RISEN * np.nanmedian(self.threshold[:, i])]
        if not rising:
            return []
        most = max(rising, key=lambda i: high[i])
        return [
            f"thresholds are medians; they rise at standstill, where friction is undetermined (up to {high[most]:.3g}, "
            f"'{self.joints[most]}'); share is torque over threshold"
        ]

    def plot(self) -> Any:
        """Draw the external torque of every joint within its thresholds, with events marked."""
        n = len(self.joints)
        figure = new_figure(WIDTH, 0.8 + 1.6 * n)
        axes = figure.subplots(n, 1, sharex=True, squeeze=False)[:, 0]
        for i, axis in enumerate(axes):
            high = np.where(np.isfinite(self.threshold[:, i]), self.threshold[:, i], 0.0)
            thin, top = extremes(self.t, high, pick=np.maximum)
            axis.fill_between(thin, -top, top, color=SKY, alpha=0.5, linewidth=0.0)
            axis.plot(*extremes(self.t, np.nan_to_num(self.torque[:, i])), color=BLUE, linewidth=0.9)
            for event in self.events:
                axis.axvspan(event.start, event.end, color=ORANGE, alpha=0.25, linewidth=0.0)
            axis.set_ylabel(label(self.joints[i]))
        axes[0].set_title(label(f"external torques of '{self.name}' and their thresholds", 90))
        axes[-1].set_xlabel("time [s]")
        figure.tight_layout()
        return figure


def watch_log(monitor: Monitor, log: Log) -> MonitorRecord:
    """Run a monitor over a log; `Monitor.run` is the short way."""
    robot = monitor.mechanism
    matched = match(robot, log)
    if matched.mechanism.coordinate_names != robot.coordinate_names:
        lost = set(robot.coordinate_names) ^ set(matched.mechanism.coordinate_names)
        raise LogError(f"log '{log.name}' does not move the joints of the fit: {', '.join(sorted(lost))}")
    own = matched.log
    slowest = SAMPLES * monitor.settings.cutoff
    if own.rate < slowest:
        raise LogError(
            f"log '{log.name}' has {own.rate:.3g} samples per second, but the low-pass of {monitor.settings.cutoff:.3g} Hz "
            f"needs {slowest:.3g}; give cutoff= of at most {own.rate / SAMPLES:.3g} Hz, or bandwidth= of a tenth of that"
        )
    monitor.reset()
    result = monitor.feed_arrays(own.t, own.position, own.effort, own.temperature)
    monitor.reset()
    if np.isnan(result[:, 0]).all():
        raise LogError(
            f"log '{log.name}' cannot be monitored: the low-pass needs {monitor.settling:.3g} s of finite samples at most "
            f"{monitor.settings.gap:.3g} s apart to settle"
        )
    q = coordinates_from_actuators(robot, own.position) if robot.loops else own.position
    n = robot.dof
    settings = monitor.settings
    return MonitorRecord(
        log.name,
        monitor.joints,
        own.t,
        q,
        result[:, :n],
        result[:, n : 2 * n],
        result[:, 2 * n] > 0.0,
        settings.level,
        monitor.false_alarms,
        tuple(note.sentence for note in matched.notes),
    )


STATES = 200
KEPT = 0.95  # share of the torque variance in the retained directions, which are scaled to represent all of it
REACH, SPEED, RATE = np.pi, 1.0, 5.0  # ranges of the random states that rank directions
SMALL = 0.01  # share of a joint's model error below which a term is left out
TINY = np.finfo(float).tiny


@dataclass(frozen=True, eq=False)
class Model:
    """Quantities of a fit that a monitor needs."""

    rows: Rows  # The equations of the fit, with the robot of the fit
    values: Array
    shares: Array  # eta^2 of these terms, joint by joint
    sigma: Array
    laws: Mapping[str, Friction]  # Friction laws in addition to the joint terms
    bandwidth: float | None  # Band of the fit [Hz]
    rate: float | None  # Sampling rate of its logs [Hz]

    @property
    def mechanism(self) -> Mechanism:
        """The robot of the fit."""
        return self.rows.mechanism


def model_of(fit: Fit, friction: Mapping[str, Friction] | None, absent: Sequence[str]) -> Model:
    """Return the model of a fit; laws replace the friction terms of their joints, absent bodies are set to zero."""
    if not isinstance(fit, Fit):
        raise DescriptionError(f"fit is a {type(fit).__name__}; give a Fit")
    robot, b = fit.base.mechanism, fit.base.rank
    laws = {**fit.friction, **(friction or {})}
    phi = np.array(fit.standard.values)
    noise = dict(zip(fit.groups, fit.sigma.tolist(), strict=True))
    covariance = np.array(fit.covariance[:b, :b])
    unknown = ~np.isfinite(np.diag(covariance))
    covariance[unknown], covariance[:, unknown] = 0.0, 0.0
    rows = Rows(robot, fit.projection)
    for group in fit.data.groups:  # a fit to noise-free data would raise alarms at rounding errors
        noise[group.name] = max(noise.get(group.name, np.inf), EXACT * (group.effort_square / max(group.count, 1)) ** 0.5)
    sigma = np.array([noise.get(name, np.inf) for name in rows.names])
    values = np.zeros((1 + b, phi.size))
    values[0], values[1:, fit.base.columns] = phi, _directions(rows, fit.base, covariance, sigma)
    values = values[: 1 + int(np.count_nonzero(values[1:].any(axis=1)))]
    terms, shares = _terms(rows, fit, sigma)
    values = np.vstack([values, terms])
    gone = [*columns_of(robot, tuple(absent)), *_replaced(robot, laws)]
    values[:, gone] = 0.0
    if not np.isfinite(sigma).any():
        raise DescriptionError("the fit has no residual per joint; give a fit to joint or motor torques")
    bands = _of_sources(fit.sources, "bandwidth"), _of_sources(fit.sources, "rate")
    return Model(rows, np.array([node_values(robot, row) for row in values]), shares, sigma, laws, *bands)


def _of_sources(sources: Sequence[Mapping[str, Any]], name: str) -> float | None:
    found = [float(source[name]) for source in sources if name in source]
    return min(found) if found else None


def _replaced(robot: Mechanism, laws: Mapping[str, Friction]) -> list[int]:
    """Return the friction terms of joints for which a law is given."""
    first = robot.tree.inertias.size
    columns = (*robot.joint_columns, *robot.actuator_columns)
    terms = [first + i for i, (owner, symbol) in enumerate(columns) if owner in laws and TERMS[symbol].friction]
    last = len(robot.parameters) - len(robot.own_columns)  # the robot's own laws enter as expressions, not as columns
    return [*terms, *(last + i for i, own in enumerate(robot.own_columns) if own.coordinate)]


def _directions(rows: Rows, base: BaseParameters, covariance: Array, sigma: Array) -> Array:
    """Return the directions that cause nearly all torque, strongest first, then zeros, (b, b).

    Torques are weighted by the noise of their joint, so that the small torques of a wrist count, too.
    """
    out = np.zeros_like(covariance)
    std = np.sqrt(np.clip(np.diag(covariance), 0.0, None))
    scale = np.where(std > 0.0, std, 1.0)
    size, vectors = np.linalg.eigh(covariance / np.outer(scale, scale))
    root = (scale[:, None] * vectors) * np.sqrt(np.clip(size, 0.0, None))  # root root^T = covariance
    W, _ = rows.equations(_states(base.mechanism), None, base.columns)
    made = np.einsum("n,nbt,bk->ntk", 1.0 / sigma, W, root).reshape(-1, root.shape[1])
    power, turn = np.linalg.eigh(made.T @ made)
    order = np.argsort(power)[::-1]
    power = np.clip(power[order], 0.0, None)
    if power.sum() > 0.0:
        kept = int(np.searchsorted(np.cumsum(power), KEPT * power.sum())) + 1
        out[:kept] = (root @ turn[:, order[:kept]]).T * np.sqrt(power.sum() / power[:kept].sum())
    return out


def _terms(rows: Rows, fit: Fit, sigma: Array) -> tuple[Array, Array]:
    """Return terms w_k beta_k of the model, (e, p), and the relative variance eta_k^2 of each error per joint, (e, n).

    Terms without a common joint, such as the friction of all joints, are combined into one. Terms with a small share of the
    model error in all states are left out. Errors of projected equations are not distinguished.
    """
    base, robot = fit.base, rows.mechanism
    if robot.loops or fit.posterior.training_columns is None:
        return np.zeros((0, len(robot.parameters))), np.zeros((0, robot.dof))
    W, _ = rows.equations(_states(robot), None, base.columns)
    square = model_errors(fit, np.where(np.isfinite(sigma), sigma, 0.0) ** 2)  # (n, b), of each parameter
    made = np.mean(W**2, axis=2) * square
    part = np.max(made / np.maximum(made.sum(axis=1, keepdims=True), TINY), axis=0)
    sees = np.any(W != 0.0, axis=2)
    together: list[list[int]] = []
    for k in np.argsort(part)[::-1][: np.count_nonzero(part > SMALL)]:
        fitting = next((others for others in together if not np.any(sees[:, k] & sees[:, others].any(axis=1))), None)
        if fitting is None:
            together.append([int(k)])
        else:
            fitting.append(int(k))
    terms, shares = np.zeros((len(together), len(robot.parameters))), np.zeros((len(together), robot.dof))
    for term, share, own in zip(terms, shares, together, strict=True):
        term[base.columns[own]] = fit.values[own]
        share[:] = np.sum(square[:, own] * sees[:, own] / fit.values[own] ** 2, axis=1)
    return terms, shares


def _states(robot: Mechanism) -> Motion:
    """Return random states that rank the directions."""
    if robot.loops:
        return random_closed_motion(robot, STATES)
    rng = np.random.default_rng(0)
    q, v, a = (rng.uniform(-x, x, (STATES, robot.dof)) for x in (REACH, SPEED, RATE))
    return Motion(np.arange(float(STATES)), q, v, a)


HOUR = 3600.0


def false_alarm_rate(z: float, gains: ArrayLike) -> float:
    """Return the false alarms per hour of all joints with observer gains `gains` (n,) [1/s] at a threshold of `z` sigma."""
    K = np.asarray(gains, dtype=np.float64)
    return float(HOUR * np.sum(K) / (np.sqrt(2.0) * np.pi) * np.exp(-0.5 * z * z))


def alarm_threshold(rate: float, gains: ArrayLike) -> float:
    """Return the threshold in standard deviations for a `rate` of false alarms per hour, the inverse of `false_alarm_rate`.

    `gains` (n,) are those of the observers [1/s].
    """
    most = false_alarm_rate(0.0, gains)
    if not 0.0 < rate < most:
        raise DescriptionError(f"false_alarms is {rate:g} per hour; give a number above 0 and below {most:.3g}")
    return float(np.sqrt(2.0 * np.log(most / rate)))


BANDWIDTH = 10.0  # default for fits without a band [Hz]
FURTHER = 1.4  # times the maximum of a healthy run: maxima scatter by a tenth, and one run in hundreds exceeds it by so much
SINGULAR = 1e-6  # ratio of singular values below which a direction of the wrench is not observable
WIDEST = 1e5  # bandwidth of an observer [Hz]
LATE = 0.1  # longest step for fits without a sampling rate [s]
FASTER = 10.0  # cut-off of the measurements over the bandwidth: friction must reverse sharply before the observer smoothes it


class Reading(NamedTuple):
    """Result of a monitor for one sample."""

    t: float  #: Time of the sample [s]
    #: (n,), estimated external torque on every joint [N m, N]; positive where the environment pushes forward. NaN where
    #: undefined: for a sample that is not a number, and for the first samples after a start, until the low-pass has
    #: settled.
    torque: Array
    threshold: Array  #: (n,), largest torque explained by the model and friction at rest [N m, N]; NaN where undefined
    flag: bool  #: Whether a contact, or a change of the robot, is detected
    share: float  #: Largest ratio of torque to threshold; NaN where undefined


@dataclass(frozen=True)
class Settings:
    """Decision parameters of a monitor, as stated by its user."""

    gains: Array
    variance: Array
    factor: Array
    level: float
    confirm: float
    hold: float
    rest: float
    gap: float
    cutoff: float


class Monitor:
    """Monitors a robot with its identified model: virtual force sensor and collision flag.

        dr/dt = K (tau_ext - r)                 generalised-momentum observer: no acceleration is needed

    A robot with loops is watched by its motors: positions and efforts are those of the actuators, its loops are closed sample
    by sample, and external torques act on its coordinates.

    The threshold of every joint follows from the fit: its residual, larger where the terms of the model grow beyond the
    training data (`Fit.predict`), its covariance seen through the same observer, and, where a joint stands, friction
    anywhere within its limits.

    Parameters
    ----------
    fit : Fit
        Identified model.
    bandwidth : float or array_like (n,), optional
        Bandwidth of the observer [Hz], K = 2 pi bandwidth; the band of the fit when omitted.
    cutoff : float, optional
        Cut-off of the common low-pass of positions and efforts [Hz]; ten times the bandwidth, at most a tenth of the fit's
        sampling rate, when omitted.
    false_alarms : float
        Stated rate [1/h] of false alarms from noise like that of the fit.
    confirm : float
        Time beyond the threshold before the flag is raised [s].
    hold : float
        Time for which the flag then stays raised [s].
    rest : float
        Speed below which a joint counts as standing [rad/s, m/s].
    gap : float, optional
        Longest step between valid samples; the observer restarts after a longer one [s]. When omitted, one period of the
        cut-off, after which the low-pass output no longer represents the motion (0.1 s for a fit without a sampling
        rate).
    friction : mapping of str to Friction, optional
        Laws that replace the friction terms of their joints, such as those that depend on a logged temperature.
    absent : sequence of str
        Bodies of the fit that the robot does not carry, such as a payload.

    Examples
    --------
    >>> import numpy as np
    >>> import dynident as di
    >>> arm = di.Mechanism.from_dh([(0.5, 0, 0, 0)], gravity=(0, -9.81, 0)).with_payload(2.0).with_terms(())
    >>> rng = np.random.default_rng(0)
    >>> t = np.arange(2000) / 1000
    >>> motion = di.Motion(t, np.sin(t)[:, None], np.cos(t)[:, None], -np.sin(t)[:, None])
    >>> effort = di.inverse_dynamics(arm, motion) + 0.01 * rng.standard_normal((2000, 1))
    >>> monitor = di.monitor.Monitor(di.WLS().fit(di.Regression.from_motion(arm, motion, effort)).result_)
    >>> for k in range(1000):
    ...     reading = monitor.update(t[k], motion.q[k], effort[k] - 1.0 * (k > 500))
    >>> bool(reading.flag), reading.torque.round(1)
    (True, array([1.]))
    """

    def __init__(
        self,
        fit: Fit,
        *,
        bandwidth: ArrayLike | None = None,
        cutoff: float | None = None,
        false_alarms: float = 0.01,
        confirm: float = 0.0,
        hold: float = 0.25,
        rest: float = 0.02,
        gap: float | None = None,
        friction: Mapping[str, Friction] | None = None,
        absent: Sequence[str] = (),
    ) -> None:
        model = model_of(fit, friction, absent)
        n, band = model.mechanism.dof, model.bandwidth
        wide = per_actuator(BANDWIDTH if band is None else band, n, "bandwidth")
        if bandwidth is not None:
            wide = per_actuator(bandwidth, n, "bandwidth")
        if not (wide.min() > 0.0 and wide.max() <= WIDEST):
            raise DynidentError(f"bandwidth is {wide.tolist()}; give frequencies above zero, up to {WIDEST:g} Hz")
        gains = 2.0 * np.pi * wide
        # White noise behind the observer has a band of pi/3 times its own; the fit measured its noise in the band of the fit.
        wider = np.ones(n) if band is None else np.maximum(1.0, np.pi / 3.0 * wide / band)
        own = FASTER * float(wide.max()) if model.rate is None else min(FASTER * float(wide.max()), 0.1 * model.rate)
        own = number("cutoff", own if cutoff is None else cutoff, above=0.0, unit="Hz")
        longest = LATE if model.rate is None else 1.0 / own
        watched = np.isfinite(model.sigma)
        times = {"hold": hold, "confirm": confirm}
        for name, value in times.items():
            number(name, value, least=0.0, unit="s")
        settings = Settings(
            gains,
            model.sigma**2 * wider,
            np.ones(n),
            alarm_threshold(number("false_alarms", false_alarms, above=0.0), gains[watched]),
            confirm,
            hold,
            number("rest", rest, above=0.0, unit="rad/s, m/s"),
            number("gap", longest if gap is None else gap, above=0.0, unit="s"),
            own,
        )
        self._build(model, settings)

    def _build(self, model: Model, settings: Settings) -> None:
        self.model, self.settings = model, settings
        robot = model.mechanism
        self.terms = terms_of(model.rows, model.laws, settings.rest)
        self.home = robot.closure.home if robot.loops else None
        tree = len(robot.tree.coordinates) if robot.loops else 0
        directions, terms = len(model.values) - 1 - len(model.shares), len(model.shares)
        warm = tuple(self.terms.warm.values())
        self.layout = Layout(robot.dof, len(robot.parameters), directions, len(self.channels), tree, terms, warm)
        laws = tuple((j, f.law, f.values.tobytes()) for j, f in model.laws.items())
        key = ("monitor", settings.rest, directions, terms, model.rows.projection if robot.loops else "", laws)
        self.machine = cached(robot, key, lambda: Machine(self.terms, self.layout, self.home))
        n = robot.dof
        self._phi = np.ascontiguousarray(model.values)
        self._setting = np.empty(self.layout.setting_size)
        numbers = {LEVEL: settings.level, CONFIRM: settings.confirm, HOLD: settings.hold, GAP: settings.gap}
        for place, value in {**numbers, FILTER: 2.0 * np.pi * settings.cutoff}.items():
            self._setting[place] = value
        for name, values in (("K", settings.gains), ("variance", settings.variance), ("factor", settings.factor)):
            self._setting[self.layout.setting[name] :][:n] = values
        self._setting[self.layout.setting["error"] :] = model.shares.ravel()
        self._now, self._result = np.zeros(self.layout.now_size), np.empty(self.layout.result_size)
        self._state, self._t = np.zeros(self.layout.state_size), np.nan
        arrays = (self._now, self._setting, self._phi, self._state, self._result)
        self._where = [array.ctypes.data for array in arrays]

    @property
    def mechanism(self) -> Mechanism:
        """The robot."""
        return self.model.mechanism

    @property
    def joints(self) -> tuple[str, ...]:
        """Names of its coordinates, on which external torques act."""
        return self.mechanism.coordinate_names

    @property
    def channels(self) -> tuple[str, ...]:
        """Measured channels: the joints, or the motors of a robot with loops."""
        return self.model.rows.efforts

    @property
    def settling(self) -> float:
        """Time without a result after a start or a gap [s]."""
        return SETTLED / (2.0 * np.pi * self.settings.cutoff)

    @property
    def false_alarms(self) -> float:
        """Stated rate [1/h] of false alarms from noise like that of the fit."""
        return false_alarm_rate(self.settings.level, self.settings.gains[np.isfinite(self.settings.variance)])

    @property
    def state(self) -> dict[str, Array]:
        """State of the monitor between two samples, by name.

        ``position``, ``velocity``, ``effort`` (m,) of the channels behind the low-pass; ``momentum`` (n,) p of them and
        ``rate``, dp/dt from model and effort; ``torque`` the external torque; ``rest`` the part of the threshold due to
        friction at rest; ``spread`` (k, n) the torques of the directions in which the model is uncertain;
        ``beyond`` and ``left`` [s] of the flag; ``closed`` the positions of all joints of a robot with loops.
        """
        n, m, s, at = self.mechanism.dof, self.layout.m, self._state, self.layout
        observers = s[at.first :].reshape(1 + at.k + at.e, 3, n).copy()
        return {
            "position": s[at.filters["q"] + m :][:m].copy(),
            "effort": s[at.filters["tau"] + m :][:m].copy(),
            "torque": s[at.filters["r"] + n :][:n].copy(),
            "velocity": s[at.filters["q"] + 2 * m :][:m].copy(),
            "momentum": observers[0, 1],
            "rate": observers[0, 2],
            "rest": WORST * s[HEAD + 2 * n : HEAD + 3 * n],
            "spread": observers[1 : 1 + at.k, 0],
            "beyond": s[BEYOND : BEYOND + 1].copy(),
            "left": s[LEFT : LEFT + 1].copy(),
            **({"closed": s[at.pose :][: at.tree].copy()} if at.tree else {}),
        }

    def reset(self) -> None:
        """Forget all samples."""
        self._state[:] = 0.0
        self._t = np.nan

    def update(self, t: float, q: ArrayLike, effort: ArrayLike, temperature: ArrayLike | None = None) -> Reading:
        """Take one sample."""
        n, m, now = self.mechanism.dof, self.layout.m, self._now
        try:
            now[1 : 1 + m], now[1 + m : 1 + 2 * m] = q, effort
            if temperature is not None:
                now[1 + 2 * m :] = temperature
        except (ValueError, TypeError) as error:
            names, kind = ", ".join(self.channels), "motor" if self.mechanism.loops else "joint"
            raise DynidentError(f"a sample has the wrong size ({error}); give one number per {kind}: {names}") from None
        if temperature is None and self.terms.warm:
            raise DynidentError(f"the friction of {', '.join(self.terms.warm)} needs a temperature; give temperature=")
        now[0], self._t = t - self._t, t
        self.machine.sample(*self._where)
        result = self._result.copy()
        return Reading(t, result[:n], result[n : 2 * n], bool(result[2 * n]), float(result[2 * n + 1]))

    @property
    def setting(self) -> Array:
        """Decision parameters as an array, the input of machine code and C."""
        return self._setting.copy()

    def feed_arrays(self, t: Array, q: Array, effort: Array, temperature: Array | None = None) -> Array:
        """Process many samples at once and return the result of `update` for each."""
        m, count = self.layout.m, len(t)
        if self.terms.warm and temperature is None:
            raise LogError(f"the friction of {', '.join(self.terms.warm)} needs a temperature, which the log does not have")
        now = np.zeros((count, self.layout.now_size))
        now[:, 0] = np.diff(t, prepend=self._t)
        for name, values in (("q", q), ("tau", effort), ("T", temperature)):
            if values is not None:
                now[:, self.layout.now[name] : self.layout.now[name] + m] = values
        result = np.empty((count, self.layout.result_size))
        self.machine.run(now, self._setting, self._phi, self._state, result)
        self._t = float(t[-1]) if count else self._t
        return result

    def run(self, log: Log) -> MonitorRecord:
        """Return external torques, thresholds and events of a whole log; missing velocities are estimated."""
        return watch_log(self, log)

    def calibrated(self, log: Log) -> Monitor:
        """Return a fresh monitor calibrated to the noise of a run without contact; thresholds are never lowered."""
        shares = np.abs(self.run(log).shares)
        z = self.settings.level
        used = shares[np.isfinite(shares).all(axis=1)]
        factor = np.maximum(1.0, np.maximum(z * np.sqrt(np.mean(used**2, axis=0)), FURTHER * used.max(axis=0, initial=0.0)))
        copy = object.__new__(Monitor)
        copy._build(self.model, replace(self.settings, factor=self.settings.factor * factor**2))
        return copy

    def wrench(self, q: ArrayLike, torque: ArrayLike, frame: str, moment: bool = True) -> tuple[Array, Array]:
        """Return the smallest wrench on a link that explains external torques, J^T w = torque, and the unexplained torques."""
        given = [np.atleast_2d(np.asarray(values, dtype=np.float64)) for values in (q, torque)]
        lost = np.zeros(1) if given[0].shape != given[1].shape else np.sum(np.isnan(given), axis=(0, 2))[:, None] > 0
        whole = [np.where(lost, 0.0, values) for values in given]
        x, tau = (coordinates(self.mechanism, values, name) for values, name in zip(whole, ("q", "torque"), strict=True))
        J = jacobian(self.mechanism, x, frame)[:, : 6 if moment else 3]
        w = np.zeros((len(x), 6))
        w[:, : J.shape[1]] = np.einsum("sij,sj->si", np.linalg.pinv(np.swapaxes(J, 1, 2), rcond=SINGULAR), tau)
        left = tau - np.einsum("sij,si->sj", J, w[:, : J.shape[1]])
        return np.where(lost, np.nan, w), np.where(lost, np.nan, left)

    def to_c(self, folder: str | os.PathLike[str], name: str = "monitor") -> list[Path]:
        """Write the monitor as C99 with its numbers, and a program that checks itself."""
        return write_c(self, folder, name)


def not_carried(fit: Fit, log: Log, record: MonitorRecord, absent: Sequence[str] = (), **options: Any) -> list[str]:
    """Return bodies, such as a payload, whose removal from the model halves the flagged share of a log.

    `record` is the result of a monitor with these options for the log; the list is empty if less than half is flagged.
    """
    flagged = float(record.flag.mean())
    if flagged < 0.5:
        return []
    known = [body.name for body in fit.mechanism.bodies if body.separate and body.name not in absent]
    lighter = {name: Monitor(fit, absent=(*absent, name), **options).run(log) for name in known}
    return [name for name, run in lighter.items() if run.flag.mean() < 0.5 * flagged]
