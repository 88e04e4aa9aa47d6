"""Bodies and friction laws of a robot in one fit.

    tau = W beta + sum_j Phi_j(eta_j) rho_j        eta searched (variable projection), everything else linear

The shape parameters found make the laws columns of the robot's equations: of their linear parameters, and of the shape
parameters by their derivative. What follows is an ordinary `Regression` and an ordinary `Fit`, whose covariance knows of both.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import count
from operator import add
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.errors import ConditionWarning, IdentificationError, SignalWarning, warn
from dynident.friction.law import Friction, FrictionLaw
from dynident.friction.laws import TemperatureDependent
from dynident.friction.text import law_of
from dynident.identify.base import BaseParameters, base_parameters
from dynident.identify.estimators.least_squares import WLS, fit_of
from dynident.identify.estimators.map import MAP
from dynident.identify.fit import Fit
from dynident.identify.friction.axis import covariance, shape_notes
from dynident.identify.friction.problem import Assembly, Recording, assemble, skipped, usual_projection
from dynident.identify.friction.search import Found, Progress, search, shape_bounds
from dynident.identify.posterior.posterior import estimate
from dynident.identify.posterior.prior import Knowledge, prior_of
from dynident.identify.regression.factor import relative_error
from dynident.identify.regression.matching import match, robot_motion
from dynident.identify.regression.regression import Regression, dead_efforts, prepared_for
from dynident.identify.regression.rows import Projection, Rows, check_projection
from dynident.identify.regression.stretches import resting_of
from dynident.mechanics.functions import tree_motion
from dynident.mechanics.motion import MotionLike, as_motion
from dynident.mechanism.mechanism import Mechanism
from dynident.parallel import one_blas_thread
from dynident.signals.filters import Decimator
from dynident.signals.log import Log
from dynident.signals.quality import Finding, note

Law = FrictionLaw | Friction | str
Laws = Law | Mapping[str, Law]

UNSURE = 0.5  # relative standard deviation from which a shape parameter is not determined: it is held where it was found
SETTLED = 0.02  # change of a shape parameter, in standard deviations, below which its column need not be taken again
ROUNDS = 4
UNDETERMINED = "these data do not determine it; it is held where the error is lowest"


def fit_robot(
    mechanism: Mechanism,
    motion: MotionLike,
    effort: ArrayLike,
    laws: Laws,
    temperature: ArrayLike | None = None,
    load: ArrayLike | None = None,
    decimator: Decimator | None = None,
    skip: Sequence[str] = (),
    projection: Projection | None = None,
    estimator: Any = None,
    start: ArrayLike | None = None,
) -> Fit:
    """Fit bodies and friction laws of a robot to a motion and its efforts.

    Data are those of `Regression.from_motion`, all else is as in `fit_log`. ``fit.friction`` has the laws with their numbers.
    """
    motion = as_motion(motion)
    robot = with_laws(mechanism, laws)
    warm, heavy = (None if x is None else np.asarray(x, dtype=np.float64) for x in (temperature, load))
    tau = np.asarray(effort, dtype=np.float64)
    recording = Recording(motion, tau, decimator or Decimator(1, 1.0), tuple(skip), None, warm, heavy)
    return fit_recordings(robot, [recording], projection, estimator, Search(_start(start)))


def fit_log(
    mechanism: Mechanism,
    log: Log | Sequence[Log],
    laws: Laws | Sequence[Law] | Mapping[str, Law | Sequence[Law]] = "auto",
    options: Mapping[str, Any] | None = None,
    projection: Projection | None = None,
    estimator: Any = None,
    start: ArrayLike | None = None,
    starts: int = 12,
    seed: int = 0,
    passes: int = 60,
    progress: Progress | None = None,
) -> Fit:
    """Prepare logs (check, filter, differentiate, decimate) and fit bodies and friction laws.

    A law replaces the friction among the terms of its joint (fv, fc, ...); rotor inertia, offset and spring stay. Laws are
    those of joints, in joint radians and N m, as all joint terms are; a motor's name stands for the joint that it drives.

    Parameters
    ----------
    mechanism : Mechanism
        Robot; joints of a tree that the logs do not have are held at zero.
    log : Log or sequence of Log
        What was measured; temperatures and efforts serve laws that depend on them.
    laws : law, sequence of laws, "auto", or a mapping of str to these
        One law for all driven joints, or by joint: a FrictionLaw, its text (``"stribeck + viscous"``), or a law with numbers,
        whose shape parameters are then known. Joints that are not named keep their terms. Of a sequence, or of the
        usual laws with "auto", each joint gets the simplest that is not worse on held-out blocks.
    options : mapping, optional
        Options of `dynident.signals.prepare`.
    projection : str or tuple of str, optional
        Equations of a robot with loops, as in `Regression.from_motion`; by default those of the motors, or "gls" when there are
        more motors than freedoms.
    estimator : estimator, optional
        What the final fit is made with; `WLS()` when omitted.
    start : array_like (S,), optional
        Shape parameters from which to start; many starts when omitted.
    starts : int
        Starting points per shape parameter.
    seed : int
        Seed of the random ones.
    passes : int
        Largest number of passes over all samples.
    progress : callable, optional
        Called as ``progress(what, done, whole)``: joints whose law was chosen, then those whose shapes were searched.

    Returns
    -------
    Fit
        Bodies, terms and laws with one covariance, to be scored, judged, reported, stored and exported like any other.
    """
    known = estimator.known if isinstance(estimator, MAP) else None
    prepared = prepared_logs(mechanism, log, options, projection, known)
    how = Search(_start(start), starts, seed, passes, progress)
    fit = _with_laws_of(prepared, laws, projection, estimator, how)
    rejudged = prepared.rejudged(fit.mechanism)
    return fit if rejudged is prepared else _with_laws_of(rejudged, laws, projection, estimator, how)


def _with_laws_of(prepared: PreparedLogs, laws: Any, projection: Projection | None, estimator: Any, how: Search) -> Fit:
    """Return the fit of prepared logs, with laws that are given or chosen."""

    def fitted(chosen: Laws) -> Fit:
        robot = with_laws(prepared.robot, chosen)
        return fit_recordings(robot, prepared.recordings, projection, estimator, how, prepared)

    fit, said = _chosen(prepared, laws, projection, how, fitted) if _open(laws) else (fitted(laws), [])
    return replace(fit, notes=tuple(dict.fromkeys((*prepared.notes, *said, *fit.notes))))


def _chosen(
    prepared: PreparedLogs, laws: Any, projection: Projection | None, how: Search, fitted: Callable[[Laws], Fit]
) -> tuple[Fit, list[Finding]]:
    """Return the fit with laws that were chosen, none of which feeds energy, and how they were chosen."""
    from dynident.identify.friction.choice import choose_recorded, passive_instead  # noqa: PLC0415 - choice fits

    choice = choose_recorded(prepared, laws, projection, 5, how.seed, how.progress)
    fit = fitted(dict(choice.laws))
    while (other := passive_instead(choice, fit)) is not None:  # every turn rules out one contender at least
        choice, fit = other, fitted(dict(other.laws))
    return fit, [note("friction_law", line) for line in choice.summary().splitlines()]


def with_laws(mechanism: Mechanism, laws: Laws) -> Mechanism:
    """Return the robot with the laws to be fitted, by joint or one for all driven joints."""
    _ = mechanism.dof  # how loops close is found once, for all copies
    if isinstance(laws, Mapping):
        given = dict(laws)
        known = [*mechanism.tree.coordinates, *(actuator.name for actuator in mechanism.actuators)]
        unknown = [name for name in given if name not in known]
        if unknown:
            raise IdentificationError(
                f"laws are given for {', '.join(unknown)}; the moving joints and motors are {', '.join(dict.fromkeys(known))}"
            )
    else:
        given = dict.fromkeys(driven(mechanism), laws)
    return mechanism.with_friction({name: _known_shape(law) for name, law in given.items()})


def driven(mechanism: Mechanism) -> tuple[str, ...]:
    """Return the coordinates that motors drive: all of a tree, those of the motors with loops."""
    if not mechanism.loops:
        return mechanism.coordinate_names
    return tuple(dict.fromkeys(name for actuator in mechanism.actuators for name in actuator.coupling))


def _known_shape(law: Law) -> Friction | FrictionLaw:
    """Return a law; one that has numbers keeps its shape."""
    return replace(law, known=law.law.shape) if isinstance(law, Friction) else law_of(law)


def _open(laws: Any) -> bool:
    """Return whether there is something to choose."""
    if isinstance(laws, Mapping):
        return any(_open(law) for law in laws.values())
    return laws == "auto" if isinstance(laws, str) else isinstance(laws, Sequence)


def _start(start: ArrayLike | None) -> Array | None:
    return None if start is None else np.asarray(start, dtype=np.float64)


@dataclass(frozen=True)
class Search:
    """How shape parameters are searched, see `fit_robot`."""

    start: Array | None = None
    starts: int = 12
    seed: int = 0
    passes: int = 60
    progress: Progress | None = None


def find_shapes(assembly: Assembly, how: Search, belief: Belief | None = None) -> tuple[Mechanism, Found, list[Finding]]:
    """Return the robot with the laws that fit best, those shape parameters held that the data do not determine."""
    robot = assembly.robot
    problem, notes = assembly.problem()
    if belief is not None:
        problem = replace(problem, belief=belief.rows(assembly.base, problem.names))
    laws = [friction.law for friction in robot.friction.values()]
    names = tuple(f"{name}_{joint}" for joint, friction in robot.friction.items() for name in friction.law.shape)
    held = {
        where.start + s: float(friction.values[len(friction.law.linear) + s])
        for where, friction in zip(assembly.shapes, robot.friction.values(), strict=True)
        for s, name in enumerate(friction.law.shape)
        if name in friction.known
    }
    bounds = shape_bounds(laws, assembly.speeds(), list(robot.friction))
    found = search(problem, bounds, how.start, how.starts, how.seed, how.passes, held, how.progress)
    std = np.sqrt(np.diag(covariance(problem, found)))[problem.linear :]
    logarithmic = bounds[:, 0] > 0.0
    size = np.where(logarithmic, np.abs(found.eta), 0.5 * (bounds[:, 1] - bounds[:, 0]))
    unsure = found.at_bound | ~(std <= UNSURE * size)
    frictions = assembly.frictions(found.eta, found.projection.x)
    for where, (name, friction) in zip(assembly.shapes, list(frictions.items()), strict=True):
        lost = [label for s, label in enumerate(friction.law.shape) if unsure[where][s] or label in friction.known]
        frictions[name] = replace(friction, known=tuple(lost))
    notes += shape_notes({name: f.law for name, f in frictions.items()}, names, found)
    warm = {f"{f.law.shape[-1]}_{joint}" for joint, f in frictions.items() if isinstance(f.law, TemperatureDependent)}
    free = [x for s, x in enumerate(names) if unsure[s] and not found.at_bound[s] and s not in held and x not in warm]
    if free:
        notes.append(note("shape_undetermined", f"{', '.join(free)}: {UNDETERMINED}", "warning"))
    return robot.altered(friction=frictions), found, notes


def fit_recordings(
    robot: Mechanism,
    recordings: Sequence[Recording],
    projection: Projection | None,
    estimator: Any,
    how: Search,
    prepared: PreparedLogs | None = None,
) -> Fit:
    """Fit bodies and friction of a robot with laws to several recordings at once, which may be those of prepared logs."""
    dead = skipped(recordings)
    robot = robot.altered(friction={name: law for name, law in robot.friction.items() if name not in dead})
    assembly = assemble(robot, recordings, projection)
    # An estimator that weighs a belief weighs it while shapes are searched, too.
    belief = prepared.belief if prepared is not None and isinstance(estimator, MAP) else None
    found, _, notes = find_shapes(assembly, how, belief)
    found, told = _without_temperature(robot, found, assembly)
    notes += told
    solver = WLS() if estimator is None else estimator
    for turn in count(1):
        fit = _fitted(found, robot, assembly, solver)
        shapes = [own.name for own in found.own_columns if own.kind == "shape"]
        at = [fit.base.leaders.index(name) for name in shapes if name in fit.base.leaders]
        before = np.array([found.parameters[fit.base.leaders[i]] for i in at])
        moves = np.abs(fit.values[at] - before) / np.maximum(fit.std[at], 1e-300)
        if not np.any(moves >= SETTLED):
            break
        if turn < ROUNDS:
            found = _moved(found, fit, at)
        else:  # a column that is a derivative does not tell where it wanders: what does not settle is held
            lost = [fit.base.leaders[i] for i, move in zip(at, moves, strict=True) if move >= SETTLED]
            found = _held(found, lost)
            notes.append(note("shape_undetermined", f"{', '.join(lost)}: {UNDETERMINED}", "warning"))
    sources = [] if prepared is None else prepared.evidence.sources
    data = replace(
        fit.data,
        sources=tuple({**source, **_resting(assembly, fit, r)} for source, r in zip(sources, recordings, strict=False)),
        options={} if prepared is None else prepared.evidence.options,
        logs=() if prepared is None else prepared.evidence.logs,
    )
    return Fit(data, replace(fit.posterior, speeds=_speeds(robot, recordings)), tuple(dict.fromkeys((*fit.notes, *notes))))


def _resting(assembly: Assembly, fit: Fit, recording: Recording) -> dict[str, Any]:
    """Return what a recording of a tree says about residuals at rest, as `Regression.from_log` does."""
    if fit.mechanism.loops:
        return {}
    rows = Rows(fit.base.mechanism, assembly.rows.projection)
    signals = rows.signals(recording.temperature, recording.load, len(recording.motion))
    return {"resting": resting_of(rows, fit.base, recording.motion, recording.effort, signals, recording.skip)}


def _without_temperature(robot: Mechanism, found: Mechanism, assembly: Assembly) -> tuple[Mechanism, list[Finding]]:
    """Return the robot whose friction does not change with temperatures where the data do not show how, and what to say."""
    cold = {
        joint: law
        for joint, law in found.friction.items()
        if isinstance(law.law, TemperatureDependent) and law.law.shape[-1] in set(law.known) - set(robot.friction[joint].known)
    }
    if not cold:
        return found, []
    zero = {joint: replace(law, values=np.append(law.values[:-1], 0.0)) for joint, law in cold.items()}
    warm = np.concatenate([r.temperature for r in assembly.recordings if r.temperature is not None])
    span = float(np.max(np.nanmax(warm, axis=0) - np.nanmin(warm, axis=0)))
    told = (
        f"friction of {', '.join(cold)}: temperatures of these data change by {span:.2g} K, which does not show what they do "
        "to it; alpha is taken as 0. Fit logs of the cold and of the hot robot together"
    )
    warn(told, ConditionWarning)
    return found.altered(friction={**found.friction, **zero}), [note("temperature_unseen", told, "warning")]


def _speeds(robot: Mechanism, recordings: Sequence[Recording]) -> dict[str, float]:
    """Return the root mean square speed of every coordinate of the tree."""
    bare = robot.altered(friction={}, forces=())
    v = np.concatenate([tree_motion(bare, recording.motion).v for recording in recordings])
    return dict(zip(robot.tree.coordinates, np.sqrt(np.mean(v**2, axis=0)).tolist(), strict=True))


def _fitted(robot: Mechanism, described: Mechanism, assembly: Assembly, solver: Any) -> Fit:
    """Return the fit of a robot with the shapes that were found; `described` has the numbers that its user gave."""
    base = base_parameters(robot)
    parts = [
        Regression.from_motion(
            robot,
            r.motion,
            r.effort,
            base,
            r.decimator,
            r.skip,
            assembly.rows.projection,
            (),
            r.moving,
            r.temperature,
            r.load,
            r.stretches,
        )
        for r in assembly.recordings
    ]
    evidence = reduce(add, parts)
    linear = {own.name: described.parameters[own.name] for own in robot.own_columns if own.kind == "linear" and own.coordinate}
    before = base.values(robot.parameters.replace(linear).values)
    fit = fit_of(_believing(solver, linear), evidence)
    return fit.altered(before=before, description_relative=relative_error(evidence, before), estimator=str(solver))


def _believing(solver: Any, before: Mapping[str, float]) -> Any:
    """Return an estimator that weighs a belief with the numbers of laws before the data: those found are data already."""
    if not isinstance(solver, MAP):
        return solver
    known = solver.known or Knowledge()
    return MAP(recovery=solver.recovery, known=replace(known, terms={**before, **known.terms}))


def _held(robot: Mechanism, shapes: Sequence[str]) -> Mechanism:
    """Return the robot with some shape parameters held, named with their joint."""
    frictions = {}
    for joint, friction in robot.friction.items():
        own = [name for name in friction.law.shape if f"{name}_{joint}" in shapes]
        frictions[joint] = replace(friction, known=(*friction.known, *own))
    return robot.altered(friction=frictions)


def _moved(robot: Mechanism, fit: Fit, at: Sequence[int]) -> Mechanism:
    """Return the robot with the numbers of a fit in its laws; no shape changes by more than a half."""
    value = dict(zip(fit.base.leaders, fit.values.tolist(), strict=True))
    shapes = {fit.base.leaders[i] for i in at}
    frictions = {}
    for joint, friction in robot.friction.items():
        numbers = []
        for name, old in friction.parameters.items():
            label = f"{name}_{joint}"
            new = value.get(label, old)
            if label in shapes:
                step = UNSURE * abs(old) if name in friction.law.positive or old != 0.0 else np.inf
                new = float(np.clip(new, old - step, old + step))
            numbers.append(new if name in friction.law.linear or label in shapes else old)
        frictions[joint] = replace(friction, values=np.array(numbers))
    return robot.altered(friction=frictions)


@dataclass(frozen=True, eq=False)
class PreparedLogs:
    """Logs brought to the robot: what was measured as recordings, and the evidence of the robot with its linear terms."""

    evidence: Regression
    recordings: tuple[Recording, ...]
    logs: tuple[Log, ...]
    known: Knowledge | None  # beside the description
    notes: tuple[Finding, ...]

    @property
    def robot(self) -> Mechanism:
        """The robot whose joints the logs move."""
        return self.evidence.mechanism

    @cached_property
    def belief(self) -> Belief:
        """What is believed about the bodies while laws are searched."""
        return Belief(self.evidence, self.known)

    def rejudged(self, robot: Mechanism) -> PreparedLogs:
        """Return the logs in the band that the robot with its laws chooses where that is wider, else itself.

        A band is chosen by errors of a model. Those of linear terms where friction is not linear ask for too narrow a one. A
        narrower one would only make errors smaller than those of the fit without laws.
        """
        options = dict(self.evidence.options)
        if options.get("cutoff", "auto") != "auto" or options.get("band", "auto") != "auto":
            return self
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SignalWarning)  # said before
            judged = Regression.from_logs(robot, self.logs, None, self.evidence.projection, **options)
            (own, *_), (other, *_) = self.evidence.sources, judged.sources
            if other["cutoff"] <= own["cutoff"]:
                return self
            band = {"cutoff": other["cutoff"], "band": other["bandwidth"]}
            parts = Regression.from_logs(self.robot, self.logs, None, self.evidence.projection, **{**options, **band})
        evidence = replace(parts, options=options)
        return replace(self, evidence=evidence, recordings=_recordings(evidence, self.logs), notes=judged.notes)


def prepared_logs(
    mechanism: Mechanism,
    log: Log | Sequence[Log],
    options: Mapping[str, Any] | None,
    projection: Projection | None = None,
    known: Knowledge | None = None,
) -> PreparedLogs:
    """Prepare logs of one robot in the one band that `Regression.from_logs` chooses; all must move the same joints."""
    logs, given = (log,) if isinstance(log, Log) else tuple(log), dict(options or {})
    if not logs:
        raise IdentificationError("no log is given; give at least one")
    robots = [match(mechanism, one).mechanism for one in logs]
    for one, robot in zip(logs, robots, strict=True):
        if robot.coordinate_names != robots[0].coordinate_names:
            raise IdentificationError(f"log '{one.name}' moves other joints than log '{logs[0].name}'; fit them apart")
    chosen = usual_projection(robots[0]) if projection is None else check_projection(projection)
    evidence = Regression.from_logs(mechanism, logs, None, chosen, **given)
    return PreparedLogs(evidence, _recordings(evidence, logs), logs, known, evidence.notes)


def _recordings(evidence: Regression, logs: Sequence[Log]) -> tuple[Recording, ...]:
    """Return logs prepared as those of the evidence were."""
    robot, rows = evidence.mechanism, Rows(evidence.mechanism, evidence.projection)
    # The same stretches as well: inflation and belief of the fit with laws are then those of the fit without.
    stretches = -(-max(len(group.counts) for group in evidence.groups) // len(logs))
    recordings = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SignalWarning)  # what is wrong with the logs was said with the evidence
        for log, source in zip(logs, evidence.sources, strict=True):
            band = {"cutoff": source["cutoff"], "band": source["bandwidth"]}
            prepared = prepared_for(rows, match(robot, log).log, {**evidence.options, **band})
            moved = robot_motion(robot, prepared.motion)
            found = (prepared.filtered, prepared.decimator, dead_efforts(prepared), prepared.moving)
            recordings.append(Recording(moved, *found, prepared.temperature, prepared.effort, stretches))
    return tuple(recordings)


SHARPEST = 1e-6  # of the deviation of a typical combination: none is believed more sharply, so that all can be inverted


class Belief:
    """The belief of the default estimator, without the data of some row groups."""

    def __init__(self, evidence: Regression, known: Knowledge | None = None) -> None:
        self.evidence, self.prior = evidence, prior_of(evidence, known)
        with one_blas_thread(), warnings.catch_warnings():
            warnings.simplefilter("ignore", ConditionWarning)  # the fit says it
            found = estimate(evidence, self.prior, WLS().fit(evidence).sigma_)
        self.spread = self.prior.unit * found.scale
        self.weights = 1.0 / (found.sigma**2 * found.inflation)

    def rows(self, base: BaseParameters, without: Sequence[str]) -> tuple[Array, Array]:
        """Return T (b, b) and t (b,) for base parameters of the robot without its friction laws.

        `without` names the row groups whose data are not used, since they enter the search themselves.
        """
        K, rank = self.evidence.base.regrouping, self.evidence.base.rank
        H, h = np.zeros((rank, rank)), np.zeros(rank)
        for group, weight in zip(self.evidence.groups, self.weights, strict=True):
            if group.name not in without:
                W, y = group.R[:, :-1], group.R[:, -1]
                H[np.ix_(group.columns, group.columns)] += weight * (W.T @ W)
                h[group.columns] += weight * (W.T @ y)
        mean, S = self.prior.mean, self.spread
        told, values = self.prior.rows * S, self.prior.values - self.prior.rows @ mean
        M = K * S
        inverse = np.linalg.inv(np.eye(S.size) + M.T @ H @ M + told.T @ told)
        phi = mean + S * (inverse @ (M.T @ (h - H @ (K @ mean)) + told.T @ values))
        names = self.evidence.mechanism.parameters.names
        own = [names.index(name) for name in base.mechanism.parameters.names]
        L = base.regrouping * S[own]
        return _rows(base.values(phi[own]), L @ inverse[np.ix_(own, own)] @ L.T)


def _rows(mean: Array, covariance: Array) -> tuple[Array, Array]:
    """Return T and t with ||T x - t||^2 = (x - mean)^T covariance^-1 (x - mean)."""
    size = np.sqrt(np.diag(covariance))
    size = np.where(size > 0.0, size, SHARPEST * np.max(size, initial=1.0))
    w, V = np.linalg.eigh(covariance / np.outer(size, size))
    T = V.T / np.sqrt(np.maximum(w, SHARPEST**2))[:, None] / size
    return T, T @ mean
