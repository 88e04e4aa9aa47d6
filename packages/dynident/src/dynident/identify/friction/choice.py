"""Model selection by held-out data: cross-validation over blocks of time.

A richer law always fits its own data better, so the training error is no criterion. Blocks of time, not random samples,
are held out: neighbouring samples share their errors. The fastest stretches are held out together as well, and so are the
slowest, since a model is used beyond its fitted speeds: a model that is worse there than the simplest one is excluded.
The simplest remaining law is chosen whose squared error exceeds that of the best by no more than one standard error of their
difference over the blocks; a gain below one per cent of the error does not count, even if significant.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import pairwise
from operator import add
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.arrays import Array
from dynident.errors import ConditionWarning, DynidentError, IdentificationError, SignalWarning
from dynident.friction.law import Friction, FrictionLaw, dissipation
from dynident.friction.laws import TemperatureDependent
from dynident.friction.text import law_of, law_text
from dynident.identify.base import BaseParameters, base_parameters
from dynident.identify.estimators.least_squares import WLS
from dynident.identify.fit import Fit
from dynident.identify.friction.problem import Recording, assemble, search, shape_bounds, skipped
from dynident.identify.posterior.posterior import Knowledge, estimate, prior_of
from dynident.identify.regression.regression import Regression
from dynident.identify.regression.rows import Projection, Rows
from dynident.mechanics.functions import tree_motion
from dynident.mechanism.mechanism import Mechanism
from dynident.parallel import one_blas_thread
from dynident.results import Result
from dynident.signals.log import Log

BEYOND = 0.2  # held-out share of the record at high speed, and at low speed
MOVING = 0.5  # least share of moving rows of a fast or slow stretch
PASSES, CLOSE = 8, 1e-5  # a search on a part of the data begins near its end: passes, and relative gain of a step that ends it
WORTH = 0.02  # relative gain in squared error that is worth a parameter: one per cent of the error
Candidate = Callable[[NDArray[np.bool_]], tuple[Array, int]]
"""Fits the rows that are True and returns the errors of ALL rows and the number of parameters."""


@dataclass(frozen=True)
class Contender:
    """One model in the comparison."""

    name: str  # Name of the model
    held_out: float  # Root mean square error of the held-out blocks
    training: float  # Root mean square error on all data after a fit to all of them; for information only
    parameters: int  # Number of parameters
    failed: str = ""  # Reason why the model could not be fitted; empty otherwise
    extrapolated: float = float("nan")
    slower: float = float("nan")


@dataclass(frozen=True)
class Choice(Result):
    """The comparison, best held-out error first."""

    contenders: tuple[Contender, ...]  # All models
    best: str

    def __getitem__(self, name: str) -> Contender:
        """Return one contender by its name."""
        return next(c for c in self.contenders if c.name == name)

    def summary(self) -> str:
        """Return the comparison as a text table. One line per model."""
        width = max(len(c.name) for c in self.contenders)
        heads = ("held out", "faster", "slower", "training")
        lines = [f"{'model':<{width}}  {'  '.join(f'{head:>9}' for head in heads)}  {'k':>3}"]
        for c in self.contenders:
            errors = (c.held_out, c.extrapolated, c.slower, c.training)
            shown = "  ".join(f"{e:>9.4g}" if np.isfinite(e) else f"{'-':>9}" for e in errors)
            numbers = f"{shown}  {c.parameters:>3}"
            lines.append(f"{c.name:<{width}}  {c.failed or numbers}{'  <- chosen' if c.name == self.best else ''}")
        return "\n".join(lines)


def compare_models(candidates: Mapping[str, Candidate], count: int, blocks: int = 5, speed: ArrayLike | None = None) -> Choice:
    """Compare models by held-out error over blocks of time, and over the fastest and the slowest stretches.

    A candidate ``fit(rows)`` fits some of `count` rows, (N,) of bool in the order of time, and returns the errors of all and
    its number of parameters. Each of `blocks` is held out once; `speed` (N,) is zero at rest and NaN where not counted.
    """
    if not candidates:
        raise IdentificationError("the list of models is empty; give at least one")
    if blocks < 2 or count < 4 * blocks:
        raise IdentificationError(
            f"{count} rows cannot be cut into {blocks} blocks of at least four; give more data or fewer blocks"
        )
    edges = np.linspace(0, count, blocks + 1).astype(int)
    beyond = [] if speed is None else _extremes(np.asarray(speed, dtype=np.float64), blocks)
    tried = {name: _tried(fit, edges, beyond) for name, fit in candidates.items()}
    found = {name: _contender(name, trial) for name, trial in tried.items()}
    usable = [c for c in found.values() if not c.failed]
    if not usable:
        raise IdentificationError(
            "no model could be fitted to every set of blocks: " + "; ".join(c.failed for c in found.values())
        )
    simplest = min(usable, key=lambda c: (c.parameters, c.held_out))
    standing = [c for c in usable if _extrapolates(tried[c.name], tried[simplest.name])]
    near = _not_worse({c.name: tried[c.name].squares for c in standing})
    fewest = min(c.parameters for c in standing if c.name in near)
    best = loses_least([c for c in standing if c.name in near and c.parameters == fewest])
    return Choice(tuple(sorted(found.values(), key=lambda c: (bool(c.failed), c.held_out))), best.name)


def loses_least(contenders: Sequence[Contender]) -> Contender:
    """Return the model with the least sum of error ratios to the best of blocks, fast and slow stretches."""
    keys = [key for key in ("held_out", "extrapolated", "slower") if all(np.isfinite(getattr(c, key)) for c in contenders)]
    size = {key: min(getattr(c, key) for c in contenders) for key in keys}
    return min(contenders, key=lambda c: sum(getattr(c, key) / (size[key] or 1.0) for key in keys))


@dataclass(frozen=True, eq=False)
class _Trial:
    """Squared errors of one model on held-out blocks, fast and slow stretches; errors of a fit to all rows."""

    squares: Array
    beyond: tuple[Array, ...]
    errors: Array
    parameters: int
    failed: str = ""


def _extremes(speed: Array, blocks: int) -> list[list[tuple[int, int]]]:
    """Return the fastest and the slowest fifth of short stretches that move, as first and last row."""
    edges = np.linspace(0, speed.size, 4 * blocks + 1).astype(int)
    moving = [(a, b) for a, b in pairwise(edges.tolist()) if np.mean(speed[a:b] > 0.0) > MOVING]
    pieces = sorted(moving, key=lambda ends: float(np.nanmean(speed[ends[0] : ends[1]] ** 2)))
    count = max(2, round(BEYOND * len(pieces)))
    return [sorted(pieces[-count:]), sorted(pieces[:count])] if len(pieces) >= 2 * count else []


def _tried(fit: Candidate, edges: NDArray[np.int_], beyond: Sequence[Sequence[tuple[int, int]]]) -> _Trial:
    rows = np.arange(int(edges[-1]))

    def held_out(pieces: Sequence[tuple[int, int]]) -> Array:
        errors, _ = fit(~np.logical_or.reduce([(rows >= a) & (rows < b) for a, b in pieces]))
        return np.array([_mean_square(errors[a:b]) for a, b in pieces])

    nothing = np.zeros(0)
    try:
        squares = np.concatenate([held_out([ends]) for ends in pairwise(edges.tolist())])
        extremes = tuple(held_out(pieces) for pieces in beyond)
        errors, parameters = fit(np.ones(rows.size, dtype=bool))
    except DynidentError as error:
        return _Trial(nothing, (), nothing, 0, str(error))
    return _Trial(squares, extremes, errors[np.isfinite(errors)], parameters)


def _mean_square(errors: Array) -> float:
    kept = errors[np.isfinite(errors)]
    return float(np.mean(kept**2)) if kept.size else float("nan")


def _extrapolates(trial: _Trial, simplest: _Trial) -> bool:
    """Return whether a model is not worse than the simplest one on the fastest stretches, nor on the slowest ones."""
    pairs = zip(trial.beyond, simplest.beyond, strict=True)
    return all(not np.nanmean(own) > (1.0 + WORTH) * np.nanmean(other) for own, other in pairs)


def _not_worse(squares: Mapping[str, Array]) -> set[str]:
    """Return the models whose mean squared error is within one standard error (of the difference), or WORTH, of the lowest."""
    best = squares[min(squares, key=lambda name: float(np.nanmean(squares[name])))]
    found = set()
    for name, values in squares.items():
        more = (values - best)[np.isfinite(values - best)]
        spread = float(np.std(more, ddof=1) / np.sqrt(more.size)) if more.size > 1 else 0.0
        if not more.size or float(np.mean(more)) <= max(spread, WORTH * float(np.nanmean(best))):
            found.add(name)
    return found


def _contender(name: str, trial: _Trial) -> Contender:
    if trial.failed:
        return Contender(name, float("nan"), float("nan"), 0, trial.failed)
    errors = (np.nanmean(trial.squares), np.mean(trial.errors**2), *(np.nanmean(squares) for squares in trial.beyond))
    held_out, training, *beyond = np.sqrt(errors).tolist()
    return Contender(name, held_out, training, trial.parameters, "", *beyond)


USUAL = ("coulomb + viscous", "asymmetric", "polynomial", "tanh + viscous", "stribeck + viscous")
WITH_LOAD = "coulomb + viscous + load(powers=(1.0,))"  # in addition to the usual laws for trees: gears lose a share of the load
STARTS = 6  # per shape parameter
SPEED = 3.0  # times the RMS speed of the data: a chosen law must dissipate energy up to there
ROOM = 20.0  # degree Celsius, at which temperature-dependent laws are evaluated
WARM = 2.0  # smallest temperature range [K] to try temperature-dependent laws


@dataclass(frozen=True)
class FrictionChoice(Result):
    """The law of every joint, with its comparison."""

    laws: Mapping[str, FrictionLaw]  # Chosen law by joint
    choices: Mapping[str, Choice]  # The comparison of every joint with a choice of laws

    def summary(self) -> str:
        """Return the comparisons as text. One table per joint."""
        parts = []
        for joint, law in self.laws.items():
            parts.append(f"friction of '{joint}': {law_text(law)}")
            if joint in self.choices:
                parts.append(self.choices[joint].summary())
        return "\n".join(parts)


Law = FrictionLaw | Friction | str
Laws = Law | Mapping[str, Law]


@dataclass(frozen=True, eq=False)
class FrictionData:
    """Recordings of a robot, and their regression data with its linear terms."""

    robot: Mechanism  # The robot whose joints the data move
    recordings: tuple[Recording, ...]
    projection: Projection
    known: Knowledge | None = None  # in addition to the description
    logs: tuple[Log, ...] = ()
    of_logs: Regression | None = None

    @cached_property
    def evidence(self) -> Regression:
        """Regression data of the robot with its linear terms."""
        if self.of_logs is not None:
            return self.of_logs
        rows, base = Rows(self.robot, self.projection), base_parameters(self.robot)
        return reduce(add, [each.compressed(rows, base)[0] for each in self.recordings])

    @cached_property
    def belief(self) -> Belief:
        """Distribution of the body parameters during the search for laws."""
        return Belief(self.evidence, self.known)


SHARPEST = 1e-6  # of the deviation of a typical combination: lower bound that keeps covariances invertible


class Belief:
    """Posterior of the default estimator without the data of some row groups."""

    def __init__(self, evidence: Regression, known: Knowledge | None = None) -> None:
        self.evidence, self.prior = evidence, prior_of(evidence, known)
        with one_blas_thread(), warnings.catch_warnings():
            warnings.simplefilter("ignore", ConditionWarning)  # the fit warns
            found = estimate(evidence, self.prior, WLS().fit(evidence).sigma_)
        self.spread = self.prior.unit * found.scale
        self.weights = 1.0 / (found.sigma**2 * found.inflation)

    def rows(self, base: BaseParameters, without: Sequence[str]) -> tuple[Array, Array]:
        """Return T (b, b) and t (b,) for base parameters of the robot without its friction laws.

        `without` names the row groups whose data are not used, since the search uses them directly.
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


def with_laws(mechanism: Mechanism, laws: Laws) -> Mechanism:
    """Return the robot with the laws to be fitted, by joint or one for all driven joints."""
    _ = mechanism.dof  # loop closures are found once for all copies
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
    return mechanism.with_friction(
        {name: known_shape(law) if isinstance(law, Friction) else law_of(law) for name, law in given.items()}
    )


def driven(mechanism: Mechanism) -> tuple[str, ...]:
    """Return the coordinates that motors drive: all of a tree, those of the motors with loops."""
    if not mechanism.loops:
        return mechanism.coordinate_names
    return tuple(dict.fromkeys(name for actuator in mechanism.actuators for name in actuator.coupling))


def known_shape(law: Friction) -> Friction:
    """Return a law with values and its known shape parameters, all of them when none is named."""
    return replace(law, known=law.known or law.law.shape)


@one_blas_thread()
def choose_recorded(data: FrictionData, laws: Any) -> FrictionChoice:
    """Choose the law of every joint by blocks of time that were held out; bodies are fitted along with every law.

    Each joint of a tree is judged by its own rows; motors of a robot with loops in turn by all rows, with the current laws of
    the others.
    """
    robot = data.robot
    given = dict(laws) if isinstance(laws, Mapping) else dict.fromkeys(driven(robot), laws)
    motors = {actuator.name: list(actuator.coupling) for actuator in robot.actuators}
    named = {
        name if name in robot.tree.coordinates else next(iter(motors.get(name, [name]))): law for name, law in given.items()
    }
    dead = skipped(data.recordings)
    options = {name: candidates_of(law) for name, law in named.items() if name not in dead}
    if not robot.loops:
        loaded = candidates_of(WITH_LOAD)
        options |= {name: {**own, **loaded} for name, own in options.items() if named[name] == "auto"}
    chosen = {name: next(iter(own.values())) for name, own in options.items()}
    choices: dict[str, Choice] = {}
    warm = dict(_warm_joints(data, [name for name, law in named.items() if law == "auto" and name in chosen]))

    shared: dict[Hashable, Any] = {}  # bodies, which are the same for all joints and laws

    def choose(name: str, own: Mapping[str, FrictionLaw], what: str = "") -> None:
        trials = {text: _Joint(data, {**chosen, name: law}, name, shared).errors for text, law in own.items()}
        speed = _speed(data, name)
        choices[f"{name}{what}"] = choice = compare_models(trials, speed.size, speed=speed)
        chosen[name] = own[choice.best]

    for name, own in options.items():
        # Temperature dependence is tested first: temperature differences of blocks would hide those of curves.
        if name in warm:
            choose(name, _scaled_or_not(chosen[name], warm[name]), ", temperature")
        scaled = isinstance(chosen[name], TemperatureDependent)
        if len(own) > 1:
            curves = [TemperatureDependent(law, warm[name]) for law in own.values()] if scaled else list(own.values())
            choose(name, {law_text(law): law for law in curves})
        if name in warm and not scaled:
            choose(name, _scaled_or_not(chosen[name], warm[name]), ", temperature")
    return FrictionChoice(chosen, choices)


def _scaled_or_not(law: FrictionLaw, reference: float) -> dict[str, FrictionLaw]:
    """Return a law with and without scaling by temperature, by their text."""
    return {law_text(each): each for each in (law, TemperatureDependent(law, reference))}


def candidates_of(laws: Any) -> dict[str, FrictionLaw]:
    """Return laws by their text."""
    if isinstance(laws, str) and laws == "auto":
        laws = USUAL
    several = [laws] if isinstance(laws, str | FrictionLaw) else list(laws)
    found = [law_of(law) for law in several]
    if not found:
        raise IdentificationError("the list of laws is empty; give at least one")
    return {law_text(law): law for law in found}


def _warm_joints(data: FrictionData, joints: Sequence[str]) -> list[tuple[str, float]]:
    """Return the joints with a recorded, varying temperature, and its mean."""
    if any(recording.temperature is None for recording in data.recordings):
        return []
    channels = Rows(data.robot).efforts
    T = np.concatenate([recording.temperature for recording in data.recordings if recording.temperature is not None])
    motor = {name: a.name for a in data.robot.actuators for name in a.coupling} if data.robot.loops else {}
    found = []
    for name in joints:
        own = T[:, channels.index(motor.get(name, name))]
        if np.isfinite(own).all() and np.ptp(own) > WARM:
            found.append((name, round(float(np.mean(own)), 1)))
    return found


def _speed(data: FrictionData, joint: str) -> Array:
    """Return the speed of a joint at the rows of all recordings; NaN where its effort is dead."""
    at, bare = list(data.robot.tree.coordinates).index(joint), data.robot.altered(friction={}, forces=())
    speeds = []
    for r in data.recordings:
        used = np.nan if joint in r.skip else 1.0
        speeds.append(used * np.abs(tree_motion(bare, r.motion).v[:, at])[r.decimator.centres(len(r.motion))])
    return np.concatenate(speeds)


class _Joint:
    """Errors of the rows that contain the law of one joint, after a fit to some of them."""

    def __init__(self, data: FrictionData, laws: Mapping[str, FrictionLaw], joint: str, shared: dict[Hashable, Any]) -> None:
        self.law = laws[joint]
        robot = with_laws(data.robot, dict(laws))
        assembly = assemble(robot, data.recordings, data.projection, shared)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SignalWarning)  # the fit warns of faults of the data
            problem, _ = assembly.problem()
        at = list(robot.friction).index(joint)
        seen = [g for g, i in enumerate(assembly.used) if i in assembly.shares.seen[at]]
        own = problem.only(seen)
        self.problem = replace(own, belief=data.belief.rows(assembly.base, own.names))
        self.bounds = shape_bounds([f.law for f in robot.friction.values()], assembly.speeds(), list(robot.friction))
        self.eta: Array | None = None
        self.sigma = np.ones(len(seen))

    def errors(self, rows: NDArray[np.bool_]) -> tuple[Array, int]:
        """Return the errors of all rows, weighted together, and the number of parameters of the law."""
        if self.eta is None:  # the first search has many starts; those on parts of the data continue from its result
            found = search(self.problem, self.bounds, None, STARTS, 60, tolerance=CLOSE)
            self.eta, self.sigma = found.eta, found.sigma
        part = self.problem if rows.all() else self.problem.using(rows)
        found = search(part, self.bounds, self.eta, 1, PASSES, sigma=self.sigma, tolerance=CLOSE)
        every = self.problem.errors(found.eta, found.projection.x) / self.sigma[:, None]
        if self.problem.masks is not None:
            every = np.where(np.concatenate(self.problem.masks, axis=1) > 0.0, every, np.nan)
        scale = float(np.sqrt(np.mean(self.sigma**2)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # a row unused by all groups has no error
            error = np.sqrt(np.nanmean(every**2, axis=0)) if len(every) > 1 else every[0]
        return scale * error, len(self.law.parameters)


def _takes_energy(fit: Fit, joint: str, friction: Friction, speed: float) -> bool:
    """Return whether a law dissipates energy up to a speed, without load and with the load of the data."""
    effort = next((np.sqrt(g.effort_square / max(g.count, 1)) for g in fit.data.groups if g.name == joint), 0.0)
    for tau in {0.0, float(effort) if "tau" in friction.law.looks_at else 0.0}:
        held = {"q": 0.0, "tau": tau, "T": ROOM}
        at = {name: value for name, value in held.items() if name in friction.law.looks_at}
        if not dissipation(friction, speed, **at).dissipative:
            return False
    return True


def passive_instead(choice: FrictionChoice, fit: Fit) -> FrictionChoice | None:
    """Return the choice without laws that feed energy as fitted, up to `SPEED` times the speeds of the data; None if none does.

    The next best contender replaces such a law, with temperature dependence if that law had it. If every law feeds energy,
    the data are wrong, not the law: the simplest law stays, and the verdict reports it.
    """
    laws, choices = dict(choice.laws), dict(choice.choices)
    for joint, friction in fit.friction.items():
        speed = SPEED * fit.posterior.speeds.get(joint, 0.0)
        if joint not in choices or speed <= 0.0 or _takes_energy(fit, joint, friction, speed):
            continue
        own, text = choices[joint], law_text(laws[joint])
        said = f"adds energy within {SPEED:g} times the speeds of the data"
        marked = tuple(replace(c, failed=c.failed or said) if c.name in (text, own.best) else c for c in own.contenders)
        left = [c for c in marked if not c.failed]
        simplest = min(own.contenders, key=lambda c: (c.parameters or np.inf, c.name))
        best = loses_least(left).name if left else simplest.name
        if best != own.best:
            old, new = laws[joint], law_of(best)
            laws[joint] = replace(old, law=new) if isinstance(old, TemperatureDependent) else new
        choices[joint] = replace(own, contenders=marked, best=best)
    if all(law_text(laws[joint]) == law_text(law) for joint, law in choice.laws.items()):
        return None
    return FrictionChoice(laws, choices)
