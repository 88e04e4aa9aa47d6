"""Choosing the friction law of an axis, and of every joint of a robot, by data that were held out (`choice.py`).

A law that was chosen must take energy out: one that does not is no friction, however well it predicts.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.errors import IdentificationError, SignalWarning
from dynident.friction.law import FrictionLaw
from dynident.friction.modifiers import TemperatureDependent
from dynident.friction.names import law_of, law_text
from dynident.friction.passivity import dissipation
from dynident.friction.state import State
from dynident.identify.fit import Fit
from dynident.identify.friction.axis import fit_axis
from dynident.identify.friction.choice import Choice, choose, loses_least
from dynident.identify.friction.prepared import PreparedLogs, prepared_logs
from dynident.identify.friction.recording import assemble, skipped
from dynident.identify.friction.robot import driven, with_laws
from dynident.identify.friction.search import Progress, search, shape_bounds
from dynident.identify.rows import Projection, Rows
from dynident.mechanics.functions import tree_motion
from dynident.mechanism.mechanism import Mechanism
from dynident.results import Result
from dynident.signals.log import Log

Array = NDArray[np.float64]

USUAL = ("coulomb + viscous", "asymmetric", "polynomial", "tanh + viscous", "stribeck + viscous")
STARTS = 6  # per shape parameter
SPEED = 3.0  # times the RMS speed of the data: up to there a chosen law must take energy out
ROOM = 20.0  # degree Celsius, at which laws of temperature are looked at
WARM = 2.0  # range of temperatures [K] from which a law that knows of them is tried


def choose_law(
    effort: ArrayLike,
    laws: Mapping[str, FrictionLaw],
    state: State | ArrayLike,
    fixed: Mapping[str, ArrayLike] | None = None,
    blocks: int = 5,
) -> Choice:
    """Choose the friction law of one axis from the data of `fit_axis`, in the order of time."""
    tau, given = np.asarray(effort, dtype=np.float64), State.of(state)
    columns = {name: np.asarray(values, dtype=np.float64) for name, values in (fixed or {}).items()}

    def fit(law: FrictionLaw, rows: NDArray[np.bool_]) -> tuple[Array, int]:
        found = fit_axis(tau[rows], law, given.take(rows), {n: values[rows] for n, values in columns.items()})
        return tau - found.predict(given, columns), len(found.linear) + len(found.shape)

    return choose({name: partial(fit, law) for name, law in laws.items()}, tau.size, blocks)


@dataclass(frozen=True)
class FrictionChoice(Result):
    """The law of every joint, and how it was chosen."""

    laws: Mapping[str, FrictionLaw]  # Chosen law by joint
    choices: Mapping[str, Choice]  # The comparison of every joint for which there was something to choose

    def summary(self) -> str:
        """Return the comparisons as text. One table per joint."""
        parts = []
        for joint, law in self.laws.items():
            parts.append(f"friction of '{joint}': {law_text(law)}")
            if joint in self.choices:
                parts.append(self.choices[joint].summary())
        return "\n".join(parts)


def choose_friction(
    mechanism: Mechanism,
    log: Log | Sequence[Log],
    laws: Any = "auto",
    options: Mapping[str, Any] | None = None,
    projection: Projection | None = None,
    blocks: int = 5,
    seed: int = 0,
    progress: Progress | None = None,
) -> FrictionChoice:
    """Choose the friction law of every joint of a robot by data that were held out.

    Bodies are fitted along with every law. Joints of a tree are judged each by its own rows; motors of a robot with loops one
    after the other by all rows, the others with the law that they have so far.

    Parameters
    ----------
    mechanism : Mechanism
        Robot.
    log : Log or sequence of Log
        What was measured.
    laws : "auto", sequence of laws, or mapping of str to these or to one law
        Laws to choose from, for all driven joints or by joint. "auto" are Coulomb and viscous friction, the same for each
        direction, a cubic polynomial, tanh and Stribeck curves, and with temperatures in the log these scaled by them, if
        that is better for the first of them, or for the chosen one.
    options : mapping, optional
        Options of `dynident.signals.prepare`.
    projection : str or tuple of str, optional
        Equations of a robot with loops, as in `fit_log`.
    blocks : int
        Number of blocks of time.
    seed : int
        Seed of the random starting points.
    progress : callable, optional
        Called as ``progress(what, done, whole)``: joints whose law was chosen.

    Returns
    -------
    FrictionChoice
        Law of every joint, and the comparisons.
    """
    return choose_recorded(prepared_logs(mechanism, log, options, projection), laws, projection, blocks, seed, progress)


def choose_recorded(
    prepared: PreparedLogs,
    laws: Any,
    projection: Projection | None,
    blocks: int,
    seed: int,
    progress: Progress | None = None,
) -> FrictionChoice:
    """Choose laws on recordings, see `choose_friction`."""
    robot = prepared.robot
    given = dict(laws) if isinstance(laws, Mapping) else dict.fromkeys(driven(robot), laws)
    motors = {actuator.name: list(actuator.coupling) for actuator in robot.actuators}
    named = {
        name if name in robot.tree.coordinates else next(iter(motors.get(name, [name]))): law for name, law in given.items()
    }
    dead = skipped(prepared.recordings)
    options = {name: _candidates(law) for name, law in named.items() if name not in dead}
    chosen = {name: next(iter(own.values())) for name, own in options.items()}
    choices: dict[str, Choice] = {}
    warm = dict(_warm_joints(prepared, [name for name, law in named.items() if law == "auto" and name in chosen]))

    def choose(name: str, own: Mapping[str, FrictionLaw], what: str = "") -> None:
        choices[f"{name}{what}"] = choice = _chosen(prepared, chosen, name, own, projection, blocks, seed)
        chosen[name] = own[choice.best]

    for done, (name, own) in enumerate(options.items(), 1):
        # What a warming does is asked first: blocks at other temperatures would drown the difference of curves.
        if name in warm:
            choose(name, _scaled_or_not(chosen[name], warm[name]), ", temperature")
        scaled = isinstance(chosen[name], TemperatureDependent)
        if len(own) > 1:
            curves = [TemperatureDependent(law, warm[name]) for law in own.values()] if scaled else list(own.values())
            choose(name, {law_text(law): law for law in curves})
        if name in warm and not scaled:
            choose(name, _scaled_or_not(chosen[name], warm[name]), ", temperature")
        if progress is not None:
            progress("choosing laws", done, len(options))
    return FrictionChoice(chosen, choices)


def _scaled_or_not(law: FrictionLaw, reference: float) -> dict[str, FrictionLaw]:
    """Return a law, and the same scaled by temperature, by their text."""
    return {law_text(each): each for each in (law, TemperatureDependent(law, reference))}


def _candidates(laws: Any) -> dict[str, FrictionLaw]:
    """Return laws by their text."""
    if isinstance(laws, str) and laws == "auto":
        laws = USUAL
    several = [laws] if isinstance(laws, str | FrictionLaw) else list(laws)
    found = [law_of(law) for law in several]
    if not found:
        raise IdentificationError("no law is given to choose from; give at least one")
    return {law_text(law): law for law in found}


def _warm_joints(prepared: PreparedLogs, joints: Sequence[str]) -> list[tuple[str, float]]:
    """Return the joints whose temperature was recorded and changed, with its mean."""
    if any(recording.temperature is None for recording in prepared.recordings):
        return []
    channels = Rows(prepared.robot).efforts
    T = np.concatenate([recording.temperature for recording in prepared.recordings if recording.temperature is not None])
    motor = {name: a.name for a in prepared.robot.actuators for name in a.coupling} if prepared.robot.loops else {}
    found = []
    for name in joints:
        own = T[:, channels.index(motor.get(name, name))]
        if np.isfinite(own).all() and np.ptp(own) > WARM:
            found.append((name, round(float(np.mean(own)), 1)))
    return found


def _chosen(
    prepared: PreparedLogs,
    laws: Mapping[str, FrictionLaw],
    joint: str,
    candidates: Mapping[str, FrictionLaw],
    projection: Projection | None,
    blocks: int,
    seed: int,
) -> Choice:
    """Compare laws of one joint, the others being given."""
    trials = {text: _Joint(prepared, {**laws, joint: law}, joint, projection, seed).errors for text, law in candidates.items()}
    at = list(prepared.robot.tree.coordinates).index(joint)
    bare = prepared.robot.altered(friction={}, forces=())
    speeds = []
    for r in prepared.recordings:
        used = np.nan if joint in r.skip else 1.0  # where its effort is dead, a joint is neither fast nor slow
        speeds.append(used * np.abs(tree_motion(bare, r.motion).v[:, at])[r.decimator.centres(len(r.motion))])
    return choose(trials, sum(speed.size for speed in speeds), blocks, np.concatenate(speeds))


class _Joint:
    """Errors of the rows that see the law of one joint, after a fit to some of them."""

    def __init__(
        self, prepared: PreparedLogs, laws: Mapping[str, FrictionLaw], joint: str, projection: Projection | None, seed: int
    ) -> None:
        self.law, self.seed = laws[joint], seed
        robot = with_laws(prepared.robot, dict(laws))
        assembly = assemble(robot, prepared.recordings, projection)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SignalWarning)  # what is wrong with the data is said by the fit
            problem, _ = assembly.problem()
        at = list(robot.friction).index(joint)
        seen = [g for g, i in enumerate(assembly.used) if i in assembly.laws[at].seen]
        own = problem.only(seen)
        self.problem = replace(own, belief=prepared.belief.rows(assembly.base, own.names))
        self.bounds = shape_bounds([f.law for f in robot.friction.values()], assembly.speeds(), list(robot.friction))
        # Rows of a tree's joint see its own friction only: the shapes of others do not matter, wherever they are.
        others = set() if robot.loops else set(range(problem.shapes)) - set(problem.families[at])
        middle = np.where(self.bounds[:, 0] > 0.0, np.sqrt(np.abs(self.bounds.prod(axis=1))), self.bounds.mean(axis=1))
        self.held = {s: float(middle[s]) for s in others}
        self.eta: Array | None = None
        self.sigma = np.ones(len(seen))

    def errors(self, rows: NDArray[np.bool_]) -> tuple[Array, int]:
        """Return the errors of all rows, weighted together, and the number of parameters of the law."""
        if self.eta is None:  # the first search has many starts, those on parts of the data go on from it
            found = search(self.problem, self.bounds, None, STARTS, self.seed, 60, self.held)
            self.eta, self.sigma = found.eta, found.sigma
        found = search(self.problem.using(rows), self.bounds, self.eta, 1, self.seed, 30, self.held)
        every = self.problem.errors(found.eta, found.projection.x) / self.sigma[:, None]
        if self.problem.masks is not None:
            every = np.where(np.concatenate(self.problem.masks, axis=1) > 0.0, every, np.nan)
        scale = float(np.sqrt(np.mean(self.sigma**2)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # a row that no group can use has no error
            error = np.sqrt(np.nanmean(every**2, axis=0)) if len(every) > 1 else every[0]
        return scale * error, len(self.law.parameters)


def passive_instead(choice: FrictionChoice, fit: Fit) -> FrictionChoice | None:
    """Return the choice without laws that feed energy as fitted, up to `SPEED` times the speeds of the data; None if none does.

    The contender that loses least takes the place of such a law, with the temperature if that law had it. Where every law
    feeds energy the data are wrong, not the law: the simplest one stays, and the verdict says so.
    """
    laws, choices = dict(choice.laws), dict(choice.choices)
    for joint, friction in fit.friction.items():
        held = {"q": 0.0, "tau": 0.0, "T": ROOM}
        at = {name: value for name, value in held.items() if name in friction.law.looks_at}
        speed = SPEED * fit.speeds.get(joint, 0.0)
        if joint not in choices or speed <= 0.0 or dissipation(friction, speed, **at).dissipative:
            continue
        own, text = choices[joint], law_text(laws[joint])
        said = f"feeds energy within {SPEED:g} times the speeds of the data"
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
