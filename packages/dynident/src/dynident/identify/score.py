"""Scores of a fit on a log: same preparation, same band; training data are refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.arrays import Array
from dynident.errors import DynidentError, IdentificationError, SignalWarning, warn
from dynident.identify.base import columns_of
from dynident.identify.figures import plot_score
from dynident.identify.regression.factor import nearness
from dynident.identify.regression.logs import dead_efforts, prepared_for, robot_motion, same_band, source_of
from dynident.identify.regression.rows import Rows, motor_map
from dynident.mechanics.functions import Motion
from dynident.results import Result, Tabular
from dynident.signals.filters import kept_samples
from dynident.signals.held_out import COPIED, Overlap, overlap
from dynident.signals.log import Log
from dynident.signals.matching import match
from dynident.signals.preparation import Prepared
from dynident.signals.quality import Quality

if TYPE_CHECKING:
    from dynident.identify.fit import Fit

SMALL = 5e-4  # share of a preload that is not reported
AT_REST = 0.5  # of the weight that friction at standstill has in the band
RAW = 12_000  # samples of all joints that are kept as they were measured
LEAVES = 3.0  # leverage above which a motion counts as beyond the training data


@dataclass(frozen=True, eq=False)
class Score(Tabular, Result):
    """Errors of a model on one log."""

    name: str  #: Name of the log
    joints: tuple[str, ...]  #: Joints compared (those with usable efforts)
    t: Array  #: (M,), time of the decimated samples [s]
    measured: Array  #: (M, n), efforts in the band that was fitted
    predicted: Array  #: (M, n), predicted efforts
    std: Array  #: (M, n), standard deviation of a measurement about the prediction
    #: Errors in that band; without rows near standstill if the fit left them out (``standstill=`` of `prepare`)
    metrics: Metrics
    #: Errors of every sample without the parallel low-pass; they include ripple and noise, which no rigid-body model explains
    all_samples: Metrics
    #: Share of the measurements within two standard deviations; about 0.95 if model and noise are right. NaN for a fit to
    #: positions alone, which does not estimate the noise of efforts.
    coverage: float
    training: bool  #: True when the log was (partly) used for the fit, so it is no validation
    quality: Quality  #: Faults found in the log
    source: dict[str, Any]  #: Identification of the samples
    notes: tuple[str, ...]  #: How the log was prepared
    description: float = float("nan")  #: Relative error of the untouched description in the same band
    free: float = float("nan")  #: Relative error of least squares alone
    #: (n,), ratio of the parameters' share of the uncertainty to its value on the training data, per joint; much more than 1
    #: means a motion beyond the training data
    leverage: Array | None = None
    #: Root mean square of that share over that of the efforts: the share that the training data do not determine
    open_share: float = float("nan")
    #: The same comparison for each motor of a robot with loops: least torques, measured and predicted, the preload left out
    motors: Score | None = None
    #: Norm of the internal part of the measured motor torques over their norm; it moves nothing, so no model predicts it
    preload: float = 0.0
    described: Array | None = None  #: (M, n), efforts that the untouched description predicts, in the same band
    position: Array | None = None  #: (M, dof), positions of the robot's coordinates at these samples [rad, m]
    repeated: float = 0.0  #: Share of the motion that training logs have too (see `dynident.signals.held_out`)
    repeats: str = ""  #: Place of the shared motion in the training logs
    raw_t: Array | None = None  #: (K,), times of `raw` [s]
    raw: Array | None = None  #: (K, n), measured efforts without the low-pass, thinned without losing a peak
    #: (M, n), mask of standstill of joints of a tree: the band covers their undetermined holding friction
    resting: NDArray[np.bool_] | None = None

    def __repr__(self) -> str:
        kind = "training data" if self.training else "held out"
        return f"Score(log '{self.name}', {kind}: relative error {100 * self.metrics.relative:.2f} %; summary() has the table)"

    def _covered(self) -> str:
        if not np.isfinite(self.coverage):
            return "no standard deviations of efforts: the fit used positions only"
        return f"within two standard deviations: {100 * self.coverage:.1f} %"

    def summary(self) -> str:
        """Return the metrics as a text table, with a warning when this is training data."""
        head = f"log '{self.name}'" + (" - TRAINING DATA, not a validation" if self.training else " (held out)")
        lines = [
            head,
            self.metrics.summary(),
            f"{self._covered()}; all samples, not low-passed: {100 * self.all_samples.relative:.2f} %",
        ]
        if self.repeated > 0.0 and not self.training:
            lines.append(f"{100 * self.repeated:.0f} % of the motion repeats {self.repeats}")
        if np.isfinite(self.description):
            lines.append(
                f"before: {100 * self.description:.2f} % (description); after: {100 * self.metrics.relative:.2f} %; least "
                f"squares alone: {100 * self.free:.2f} %"
            )
        if self.leverage is not None and np.nanmax(self.leverage) > LEAVES:
            worst = int(np.nanargmax(self.leverage))
            lines.append(
                "this motion is outside the range of the training: parameter uncertainty contributes "
                f"{self.leverage[worst]:.1f} times as much ({self.joints[worst]})"
            )
        if self.motors is not None:
            inside = (
                f"; {100 * self.preload:.1f} % of the measured torque is preload and left out" if self.preload > SMALL else ""
            )
            mean = 100 * float(np.nanmean(self.motors.metrics.relative_per_joint))
            lines += [f"motors (mean {mean:.2f} %{inside}):", *self.motors.metrics.summary().splitlines()[1:-1]]
        return "\n".join(lines)

    def _columns(self) -> dict[str, Any]:
        """Efforts over time, three columns per joint."""
        columns: dict[str, Any] = {"t": self.t}
        for j, joint in enumerate(self.joints):
            parts = (("measured", self.measured), ("predicted", self.predicted), ("std", self.std))
            columns |= {f"{joint} {name}": values[:, j] for name, values in parts}
        return columns

    def _view(self) -> dict[str, Any]:
        """Errors per joint."""
        m = self.metrics
        return {"joint": m.joints, "RMSE": m.rmse, "relative": m.relative_per_joint, "NRMS": m.nrms, "R²": m.r2}

    def plot(self) -> Any:
        """Draw measured and predicted efforts with the two-sigma band, and the residuals; ``motors.plot()`` those of motors."""
        return plot_score(self)


def _not_carried(
    fit: Fit, measured: Array, predicted: Array, motion: Motion, keep: list[int], low_pass: Callable[[Array], Array]
) -> str | None:
    """Return the body of the fit, such as a payload, whose omission at least halves the error: the log lacks it."""
    for body in fit.mechanism.bodies:
        if body.separate and np.any(fit.standard.values[columns_of(fit.mechanism, (body.name,))]):
            lighter = low_pass(fit.without(body.name).predict(motion).effort[:, keep])
            if np.linalg.norm(measured - lighter) < 0.5 * np.linalg.norm(measured - predicted):
                return body.name
    return None


def _without(fit: Fit, body: str, log: Log, with_it: float, allow_training: bool) -> Score:
    """Return the score of a fit without an absent load, and warn."""
    found = score_fit(fit.without(body), log, allow_training)
    text = (
        f"log '{log.name}' fits much better without '{body}', which is therefore omitted (error "
        f"{100 * found.metrics.relative:.3g} %, with it {100 * with_it:.3g} %)"
    )
    warn(text, SignalWarning)
    return replace(found, notes=(*found.notes, text))


def _with_motors(score: Score, rows: Rows, motion: Motion, prepared: Prepared, equations: tuple[Array, Array, Array]) -> Score:
    """Return the score of a robot with loops with that of its motors; `equations` are measured, predicted and deviation."""
    B, low_pass = motor_map(rows, motion), prepared.decimator.apply
    least, predicted = (np.einsum("tkn,tn->tk", B, y) for y in equations[:2])
    std = np.sqrt(np.einsum("tkn,tn->tk", B**2, equations[2] ** 2))[prepared.decimator.centres(len(prepared))]
    inside, whole = (float(np.linalg.norm(low_pass(x))) for x in (prepared.filtered - least, prepared.filtered))
    measured, hat = low_pass(least), low_pass(predicted)
    used = np.ones(measured.shape, dtype=bool)
    if prepared.moving is not None:
        used = np.repeat(prepared.decimator.usable(rows.usable(prepared.moving)).all(axis=1, keepdims=True), B.shape[1], axis=1)
    motors = replace(
        score,
        joints=rows.efforts,
        measured=measured,
        predicted=hat,
        std=std,
        metrics=evaluate(measured, hat, rows.efforts, score.t, used if used.any() else None),
        all_samples=evaluate(least, predicted, rows.efforts, motion.t),
        coverage=float(np.mean(np.abs(measured - hat) <= 2.0 * std)),
        description=float("nan"),
        free=float("nan"),
        leverage=None,
        open_share=float("nan"),
        described=None,
        position=None,
        raw=None,
    )
    redundant = B.shape[1] > B.shape[2]
    return replace(score, motors=motors, preload=inside / whole if redundant and whole > 0.0 else 0.0)


def _resting(fit: Fit, v: Array, joints: tuple[str, ...]) -> NDArray[np.bool_] | None:
    """Return the samples at which joints of a tree stand still; None if the fit lacks their usual speed."""
    if fit.mechanism.loops or not fit.posterior.speeds:
        return None
    return np.asarray(nearness(v, np.array([fit.posterior.speeds.get(name, 0.0) for name in joints])) > AT_REST)


def _shared(fit: Fit, checksum: str, motion: Motion, prepared: Prepared, predicted: Array) -> Overlap:
    """Return the overlap of a log with the training logs; efforts are compared as measured."""

    @cache
    def at_speed(speed: float) -> Array:
        moved = Motion(motion.t, motion.q, speed * motion.v, speed**2 * motion.a)
        own = predicted if speed == 1.0 else fit.evaluate(moved, np.array([fit.values]), prepared.temperature)[0][0]
        return np.einsum("tkn,tn->tk", motor_map(fit.equations, motion), own) if fit.mechanism.loops else own

    return overlap(fit.sources, checksum, prepared, at_speed)


def _no_validation(log: Log, shared: Overlap) -> str:
    """Return the reason why a log cannot validate a fit."""
    found = f"log '{log.name}' was used for the fit"
    if shared.where:
        found = (
            f"log '{log.name}' holds training data: {100 * shared.copied:.0f} % of its motion has the positions and the noise "
            f"of {shared.where}"
        )
    return (
        f"{found}, so its error does not validate the model; give another log, or allow it (allow_training=True, "
        "--allow-training)"
    )


def score_fit(fit: Fit, log: Log, allow_training: bool = False) -> Score:
    """Compare a fit with a log; see `Fit.score`."""
    matched = match(fit.mechanism, log)
    if matched.mechanism.coordinate_names != fit.mechanism.coordinate_names:
        lost = set(fit.mechanism.coordinate_names) ^ set(matched.mechanism.coordinate_names)
        raise IdentificationError(f"log '{log.name}' and the fit do not move the same joints: {', '.join(sorted(lost))}")
    # The model is scored in the band of the fit, independent of the spectrum of this log.
    rows = fit.equations
    prepared = prepared_for(rows, matched.log, {**fit.options, **same_band(fit.sources, log.rate)})
    source = source_of(log, prepared)
    training = any(
        s["sha256"] == source["sha256"] and s["start"] < source["end"] and source["start"] < s["end"] for s in fit.sources
    )
    skip = dead_efforts(prepared)
    keep = [i for i, name in enumerate(rows.names) if name in fit.groups and name not in skip]
    if not keep or (fit.mechanism.loops and skip):
        raise IdentificationError(f"log '{log.name}' has no usable effort of a joint that was fitted; leave this log out")
    motion = robot_motion(fit.mechanism, prepared.motion)
    free = fit.values if fit.free is None else fit.free
    efforts, deviation, share = fit.evaluate(motion, np.array([fit.values, fit.described, free]), prepared.temperature)
    shared = Overlap(1.0, 1.0) if training else _shared(fit, source["sha256"], motion, prepared, efforts[0])
    training = shared.copied > COPIED
    if training and not allow_training:
        raise IdentificationError(_no_validation(log, shared))
    effort = rows.targets(motion, prepared.effort)[:, keep]
    low_pass = prepared.decimator.apply
    wanted = rows.targets(motion, prepared.filtered)
    measured, predicted = low_pass(wanted[:, keep]), low_pass(efforts[0][:, keep])
    t = prepared.motion.t[prepared.decimator.centres(len(prepared))]
    centres = prepared.decimator.centres(len(prepared))
    std = deviation[centres][:, keep]
    used = np.ones(measured.shape, dtype=bool)
    if prepared.moving is not None:  # friction at speeds that the fit left out is undetermined, whatever this log's speeds are
        slowest = [s["slowest"] for s in fit.sources if len(s.get("slowest", ())) == prepared.motion.dof]
        moving = np.abs(prepared.motion.v) >= np.min(slowest, axis=0) if slowest else prepared.moving
        used = prepared.decimator.usable(rows.usable(moving)[:, keep])
        if not used.any():
            raise IdentificationError(f"log '{log.name}' has no row in which a joint moves; fit with a smaller standstill=")
    joints = tuple(rows.names[i] for i in keep)
    forces = rows.known_forces(motion)[:, keep]
    given = low_pass(forces)
    metrics = evaluate(measured, predicted, joints, t, used, given)
    every = evaluate(effort, efforts[0][:, keep], joints, prepared.motion.t, None, forces)
    described, alone = low_pass(efforts[1][:, keep]), low_pass(efforts[2][:, keep])
    before, beside = (evaluate(measured, each, joints, t, used, given).relative for each in (described, alone))
    leverage, size = None, float(np.sqrt(np.mean(measured**2)))
    open_share = np.sqrt(np.mean(share[centres][:, keep] ** 2, axis=0))
    if fit.posterior.training_std is not None:
        trained = dict(zip(fit.groups, fit.posterior.training_std, strict=True))
        with np.errstate(divide="ignore", invalid="ignore"):
            leverage = open_share / np.array([trained[name] for name in joints])
    coverage = float(np.mean(np.abs(measured - predicted)[used] <= 2.0 * std[used]))
    if np.isnan(fit.sigma).all():  # a fit to positions does not estimate the noise of efforts
        coverage = float("nan")
    notes = (*(note.sentence for note in matched.notes), *prepared.explanation.splitlines())
    absent = _not_carried(fit, measured, predicted, motion, keep, low_pass)
    if absent is not None:
        return _without(fit, absent, log, metrics.relative, allow_training)
    shown = kept_samples(list(effort.T), RAW)
    found = Score(
        name=log.name,
        joints=joints,
        t=t,
        measured=measured,
        predicted=predicted,
        std=std,
        metrics=metrics,
        all_samples=every,
        coverage=coverage,
        training=training,
        quality=prepared.quality,
        source=source,
        notes=notes,
        description=before,
        free=beside,
        leverage=leverage,
        open_share=float(np.sqrt(np.mean(open_share**2))) / size if size > 0.0 else float("nan"),
        described=described,
        position=motion.q[centres],
        raw_t=prepared.motion.t[shown],
        raw=effort[shown],
        repeated=shared.repeated,
        repeats=shared.where,
        resting=_resting(fit, motion.v[centres][:, keep], joints),
    )
    if not fit.mechanism.loops:
        return found
    return _with_motors(found, rows, motion, prepared, (wanted, efforts[0], deviation))


@dataclass(frozen=True, eq=False)
class Metrics(Result):
    """Errors of predicted against measured efforts (definitions at the top of this module)."""

    joints: tuple[str, ...]  #: Channels
    rmse: Array  #: (n,), root mean square error of each channel
    relative_per_joint: Array  #: (n,), error of each channel over its effort
    nrms: Array  #: (n,), normalised error of each channel
    r2: Array  #: (n,), explained share of each channel
    relative: float  #: ||e|| / ||tau|| over all channels
    worst_error: float  #: Largest absolute error [N m or N] of the worst sample
    worst_joint: str  #: Its channel
    worst_time: float  #: Its time [s]
    samples: int  #: N
    derived = ("worst",)

    def __post_init__(self) -> None:
        for label in ("rmse", "relative_per_joint", "nrms", "r2"):
            if not self.joints or np.shape(getattr(self, label)) != (len(self.joints),):
                raise DynidentError(f"{label} has the shape {np.shape(getattr(self, label))}; give one number per channel")

    @property
    def worst(self) -> dict[str, Any]:
        """The worst sample: its error, joint and time."""
        return {"error": self.worst_error, "joint": self.worst_joint, "time": self.worst_time}

    def summary(self) -> str:
        """Return the metrics as a text table, one line per joint."""
        width = max(len(j) for j in self.joints)
        lines = [f"relative error {100 * self.relative:.2f} % over {self.samples} samples"]
        lines += [f"{'joint':<{width}}  {'RMSE':>10}  {'relative':>9}  {'NRMS':>8}  {'R2':>8}"]
        for i, joint in enumerate(self.joints):
            lines.append(
                f"{joint:<{width}}  {self.rmse[i]:>10.4g}  {100 * self.relative_per_joint[i]:>8.2f}%  "
                f"{100 * self.nrms[i]:>7.2f}%  {self.r2[i]:>8.4f}"
            )
        lines.append(f"worst sample: {self.worst_joint} at t = {self.worst_time:.3f} s, error {self.worst_error:.4g}")
        return "\n".join(lines)


def evaluate(
    measured: ArrayLike,
    predicted: ArrayLike,
    joints: tuple[str, ...],
    t: ArrayLike | None = None,
    used: NDArray[np.bool_] | None = None,
    given: Array | float = 0.0,
) -> Metrics:
    """Compare predicted with measured efforts.

    Parameters
    ----------
    measured, predicted : array_like, (N, n)
        Efforts [N m or N].
    joints : tuple of str
        Names of the n channels.
    t : array_like (N,), optional
        Time of the samples [s]; sample numbers when omitted.
    used : ndarray of bool (N, n), optional
        Samples that count; all when omitted.
    given : ndarray (N, n) or 0
        Efforts of forces that are known: relative errors are those of the rest, as in training.

    Returns
    -------
    Metrics
        All metrics.
    """
    tau, hat = np.asarray(measured, dtype=np.float64), np.asarray(predicted, dtype=np.float64)
    if tau.shape != hat.shape or tau.ndim != 2 or tau.shape[1] != len(joints) or not tau.size:
        raise DynidentError(
            f"metrics: measured {tau.shape} and predicted {hat.shape} must both be (samples, {len(joints)}) and not empty"
        )
    if not (np.all(np.isfinite(tau)) and np.all(np.isfinite(hat))):
        raise DynidentError("metrics: measured or predicted efforts are not finite; clean the log first")
    time = np.arange(tau.shape[0], dtype=np.float64) if t is None else np.asarray(t, dtype=np.float64)
    counted = np.ones(tau.shape, dtype=bool) if used is None else used
    if counted.shape != tau.shape or not counted.any():
        raise DynidentError(f"metrics: no sample counts, or used has shape {counted.shape} and not {tau.shape}")
    e = np.where(counted, tau - hat, 0.0)
    kept = np.where(counted, tau - given, 0.0)
    spread = np.max(tau, axis=0, where=counted, initial=-np.inf) - np.min(tau, axis=0, where=counted, initial=np.inf)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # a channel that is zero has no relative error
        count = np.sum(counted, axis=0)
        rms = np.sqrt(np.sum(kept**2, axis=0) / count)
        rmse = np.sqrt(np.sum(e**2, axis=0) / count)
        variance = np.sum(np.where(counted, tau - given - np.sum(kept, axis=0) / count, 0.0) ** 2, axis=0)
        per_joint = np.where(rms > 0, rmse / rms, np.nan)
        nrms = np.where(spread > 0, rmse / spread, np.nan)
        r2 = np.where(variance > 0, 1.0 - np.sum(e**2, axis=0) / variance, np.nan)
        weighted = np.abs(e) / np.where(rms > 0, rms, np.inf)
    total = float(np.linalg.norm(kept))
    row, column = np.unravel_index(int(np.argmax(weighted)), e.shape)
    relative = float(np.linalg.norm(e)) / total if total > 0 else float("nan")
    worst, samples = float(abs(e[row, column])), int(counted.any(axis=1).sum())
    return Metrics(joints, rmse, per_joint, nrms, r2, relative, worst, joints[column], float(time[row]), samples)
