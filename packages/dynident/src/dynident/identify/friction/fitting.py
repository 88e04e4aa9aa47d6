"""Friction laws, fitted alone to one axis or together with the bodies of a robot.

    tau = W beta + sum_j Phi_j(eta_j) rho_j        eta searched (variable projection), everything else linear

With the shape parameters found, the laws become columns of the robot's equations: of their linear parameters, and of the shape
parameters by linearisation. The result is an ordinary `Regression` and `Fit`, whose covariance includes both kinds.
An axis without a robot has custom columns in addition to the law [Roldan2017, section 4.1.2].

Single values of a `Sigmoid` law are not identifiable: (Bf, w) and (-Bf, -w) are the same law, terms can be exchanged, and
two terms of opposite sign can be traded against each other. Compare curves: ``fit.friction["axis"](v)``.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from itertools import count, pairwise
from operator import add
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.arrays import Array
from dynident.errors import ConditionWarning, IdentificationError, SignalWarning, warn
from dynident.figures import BLUE, ORANGE, label, one_axes
from dynident.friction.law import Friction, FrictionLaw, Point, State, Sum
from dynident.friction.laws import Asymmetric, Sigmoid, TemperatureDependent
from dynident.identify.base import base_parameters
from dynident.identify.estimators.least_squares import WLS, fit_of
from dynident.identify.estimators.map import MAP
from dynident.identify.fit import Fit
from dynident.identify.friction.choice import (
    Choice,
    FrictionData,
    Law,
    Laws,
    candidates_of,
    choose_recorded,
    compare_models,
    known_shape,
    passive_instead,
    with_laws,
)
from dynident.identify.friction.problem import (
    Assembly,
    Blocks,
    Found,
    Problem,
    Recording,
    assemble,
    covariance,
    direction_note,
    limit_note,
    limited,
    search,
    shape_bounds,
    skipped,
    usual_projection,
)
from dynident.identify.posterior.posterior import Knowledge
from dynident.identify.regression.factor import relative_error
from dynident.identify.regression.logs import dead_efforts, prepared_for, robot_motion
from dynident.identify.regression.regression import Regression
from dynident.identify.regression.rows import Projection, Rows, check_projection, law_signals
from dynident.mechanics.dynamics import joint_loads
from dynident.mechanics.functions import regressor, tree_motion
from dynident.mechanism.mechanism import Mechanism
from dynident.mechanism.parameters import Parameters
from dynident.results import Result
from dynident.signals.log import Log
from dynident.signals.matching import match
from dynident.signals.quality import Finding, note

if TYPE_CHECKING:
    from matplotlib.figure import Figure


UNSURE = 0.5  # relative standard deviation above which a shape parameter is undetermined and held at its value
SETTLED = 0.02  # change of a shape parameter, in standard deviations, below which its column need not be updated
ROUNDS = 4
PASSES, AXIS_PASSES = 60, 200  # most passes over all samples
LOAD_ROUNDS, LOAD_SETTLED = 4, 0.1  # most fits with the load of the previous fit; change in deviations that ends them
RATIO = 1.1  # least ratio of the slopes of equal terms: about the mean, the curve changes by a thousandth at most
UNDETERMINED = "not determined by these data; fixed at the lowest error"
ROWS = 1024
TINY, WARM = np.finfo(float).tiny, 20.0
DOTS = 4000  # samples in a figure, at most about
SIGMOID_NOTE = (
    "single values of a sigmoid law are not identifiable, because (Bf, w) and (-Bf, -w) are the same law; compare the curve "
    "only"
)


@dataclass(frozen=True, eq=False)
class Axis:
    """Measurements of one axis without a robot: ``effort = sum_i x_i fixed_i + f(state; rho, eta)``."""

    effort: ArrayLike  #: (N,), torque or force [N m or N]. Samples at a limit (saturated) are left out, with a warning.
    state: State | ArrayLike  #: (N,), velocity, and other inputs of the law
    #: (N,), columns of the other linear parameters by name, as in ``{"J": a, "Qa": cos(q), "Qb": -sin(q)}``
    fixed: Mapping[str, ArrayLike] = field(default_factory=dict)
    name: str = "axis"  #: Name of the axis


@dataclass(frozen=True, eq=False, kw_only=True)
class AxisFit(Result):
    """Fit of one axis."""

    linear: tuple[str, ...]  # Names of the linear and of the shape parameters
    shape: tuple[str, ...]  # Names of the linear and of the shape parameters
    values: Array  # Linear parameters first; zero if the data do not determine them
    covariance: Array  # Their covariance; infinite variance if the data do not determine a parameter
    laws: Mapping[str, FrictionLaw]  # Law of each joint
    sigma: Mapping[str, float]  # Standard deviation of the residual of each joint [N m or N]
    rows: int  # Number of equations
    relative: float  # ||e|| / ||tau|| on the data of the fit; not a validation
    passes: int  # Passes of the search over all samples
    choice: Choice | None = None  # Comparison of the laws, if there were several
    notes: tuple[str, ...] = ()  # Notes about the result
    fixed: tuple[str, ...] = ()  # Names of the columns other than friction
    residuals: Array = field(default_factory=lambda: np.zeros(0))
    speed: Array = field(default_factory=lambda: np.zeros(0))
    resistance: Array = field(default_factory=lambda: np.zeros(0))

    @property
    def parameters(self) -> dict[str, float]:
        """All values by name."""
        return dict(zip(self.linear + self.shape, self.values.tolist(), strict=True))

    @property
    def std(self) -> dict[str, float]:
        """Standard deviations by name; infinite if the data do not determine a parameter."""
        return dict(zip(self.linear + self.shape, np.sqrt(np.diag(self.covariance)).tolist(), strict=True))

    @property
    def eta(self) -> Array:
        """Shape parameters of all joints, (S,)."""
        return self.values[len(self.linear) :]

    @property
    def friction(self) -> dict[str, Friction]:
        """Law of each joint with its values."""
        result = {}
        first, shape = len(self.linear) - sum(len(law.linear) for law in self.laws.values()), len(self.linear)
        for joint, law in self.laws.items():
            rho, eta = self.values[first : first + len(law.linear)], self.values[shape : shape + len(law.shape)]
            result[joint] = Friction(law, np.concatenate([rho, eta]))
            first, shape = first + rho.size, shape + eta.size
        return result

    def summary(self) -> str:
        """Return the fit as a text table. Parameters with standard deviations, residuals and notes."""
        width = max(len(name) for name in self.linear + self.shape)
        lines = [
            f"{len(self.linear)} linear and {len(self.shape)} shape parameters from {self.rows} equations, "
            f"error on the data of the fit {100 * self.relative:.2f} %, {self.passes} passes",
            f"{'parameter':<{width}}  {'value':>12}  {'std':>10}",
        ]
        std = self.std
        for name, value in self.parameters.items():
            shown = f"{std[name]:>10.3g}" if np.isfinite(std[name]) else "not excited"
            lines.append(f"{name:<{width}}  {value:>12.5g}  {shown}{'  (shape)' if name in self.shape else ''}")
        lines.append("residual: " + ", ".join(f"{joint} {s:.4g}" for joint, s in self.sigma.items()))
        return "\n".join([*lines, *self.notes])

    def plot(self) -> Figure:
        """Draw friction against speed: measured effort less the other columns, and the law."""
        ((name, friction),) = self.friction.items()
        figure, axes = one_axes(7.2, 3.6, "speed [rad/s, m/s]", "friction [N m, N]", f"Friction of {label(name)}")
        known = np.flatnonzero(np.isfinite(self.residuals))
        shown = known[:: max(1, known.size // DOTS)]
        axes.plot(self.speed[shown], self.resistance[shown], ".", color=BLUE, markersize=3, label="measured")
        sides = [side for side in (self.speed[self.speed < 0.0], self.speed[self.speed > 0.0]) if side.size]
        if friction.law.looks_at <= {"v"}:
            for k, side in enumerate(sides):  # one line each: the jump at rest is none
                v = np.linspace(side.min(), side.max(), 400)
                axes.plot(v, friction(v), color=ORANGE, linewidth=1.4, label="" if k else "law")
        else:  # a law that depends on more than speed is drawn at the samples
            axes.plot(
                self.speed[shown], (self.resistance - self.residuals)[shown], ".", color=ORANGE, markersize=3, label="law"
            )
        axes.legend(frameon=False, fontsize=8.5)
        return figure

    def predict(self, state: State | ArrayLike, fixed: Mapping[str, ArrayLike] | None = None) -> Array:
        """Predict the effort."""
        if len(self.friction) != 1:
            raise IdentificationError(f"the fit has {len(self.friction)} friction laws; predict is for the one of an axis")
        (friction,) = self.friction.values()
        result = friction(state)
        if fixed is None:
            return result
        missing = [name for name in self.fixed if name not in fixed]
        if missing:
            raise IdentificationError(f"columns {', '.join(missing)} are missing; give all of {', '.join(self.fixed)}")
        for name, value in zip(self.fixed, self.values, strict=False):
            result = result + value * np.asarray(fixed[name], dtype=np.float64)
        return result


@overload
def fit_friction(
    robot: Mechanism,
    data: Log | Sequence[Log] | Recording,
    laws: Laws | Sequence[Law] | Mapping[str, Law | Sequence[Law]] = ...,
    options: Mapping[str, Any] | None = ...,
    projection: Projection | None = ...,
    estimator: Any = ...,
    starts: int = ...,
) -> Fit: ...


@overload
def fit_friction(
    robot: None,
    data: Axis,
    laws: Law | Sequence[Law] = ...,
    *,
    starts: int = ...,
) -> AxisFit: ...


def fit_friction(
    robot: Mechanism | None,
    data: Log | Sequence[Log] | Recording | Axis,
    laws: Laws | Sequence[Law] | Mapping[str, Law | Sequence[Law]] = "auto",
    options: Mapping[str, Any] | None = None,
    projection: Projection | None = None,
    estimator: Any = None,
    starts: int = 12,
) -> Fit | AxisFit:
    """Fit friction laws to an axis, or bodies and friction laws of a robot to logs or a motion.

    A law replaces the friction among the terms of its joint (fv, fc, ...); rotor inertia, offset and spring stay. Laws are
    those of joints, in joint radians and N m, like all joint terms; a motor's name denotes the joint that it drives.

    Parameters
    ----------
    robot : Mechanism or None
        Robot; joints of a tree that the logs do not have are held at zero. None for an `Axis`.
    data : Log, sequence of Log, Recording or Axis
        Measurements; temperatures and efforts serve laws that depend on them. Logs are prepared (checked, filtered,
        differentiated, decimated) as by `Regression.from_logs`.
    laws : law, sequence of laws, "auto", or a mapping of str to these
        One law for all driven joints, or by joint: a FrictionLaw, its text (``"stribeck + viscous"``), or a law with numbers,
        whose shape parameters are then known (``Friction(law, values, known=("vs",))`` holds only those named). Joints that
        are not named keep their terms. From a sequence, or the
        usual laws with "auto", each joint gets the simplest that is not worse on held-out blocks.
    options : mapping, optional
        Options of `dynident.signals.prepare`.
    projection : str or tuple of str, optional
        Equations of a robot with loops, as in `Regression.from_motion`; by default those of the motors, or "gls" when there are
        more motors than degrees of freedom.
    estimator : estimator, optional
        Estimator of the final fit; `WLS()` when omitted.
    starts : int
        Starting points per shape parameter.

    Returns
    -------
    Fit or AxisFit
        Bodies, terms and laws with one covariance, to be scored, judged, reported, stored and exported like any other fit;
        of an axis its law with numbers, covariance and residuals.

    Examples
    --------
    >>> import numpy as np
    >>> from dynident.friction import Tanh, Viscous
    >>> v = np.sin(np.arange(500) * 0.05)
    >>> fit = fit_friction(None, Axis(2.0 * v + 3.0 * np.tanh(8.0 * v), v), Viscous() + Tanh())
    >>> round(fit.parameters["tanh.beta"], 6)
    8.0
    """
    if isinstance(data, Axis):
        if robot is not None or isinstance(laws, Mapping):
            raise IdentificationError("an Axis has no robot; give None for the robot, and one or several laws")
        return _fit_axis(data, laws, starts)
    if not isinstance(robot, Mechanism):
        raise IdentificationError(f"robot is {type(robot).__name__}; give a Mechanism, or an Axis as data")
    known = estimator.known if isinstance(estimator, MAP) else None
    if isinstance(data, Recording):
        chosen = usual_projection(robot) if projection is None else check_projection(projection)
        return _fit_data(FrictionData(robot, (data,), chosen, known), laws, estimator, starts)
    # A law describes friction near standstill too, so rows there are used.
    prepared = friction_data(robot, data, {"standstill": 0.0, **(options or {})}, projection, known)
    fit = _fit_data(prepared, laws, estimator, starts)
    rejudged = _rejudged(prepared, fit.mechanism)
    return fit if rejudged is None else _fit_data(rejudged, laws, estimator, starts)


def _fit_data(data: FrictionData, laws: Any, estimator: Any, starts: int) -> Fit:
    """Return the fit of a robot with given or chosen laws; chosen laws dissipate energy."""
    if not data.robot.loops and any(each.load is None for each in data.recordings) and _load_matters(laws):
        plain = MAP(known=data.known).fit(data.evidence).result_
        data = replace(data, recordings=_loaded(data.recordings, plain.mechanism, plain.standard))

    def fitted(chosen: Laws) -> Fit:
        return _fit_recordings(with_laws(data.robot, chosen), data, estimator, starts)

    before = () if data.of_logs is None else data.of_logs.notes
    if not _open(laws):
        fit = fitted(laws)
        return replace(fit, notes=tuple(dict.fromkeys((*before, *fit.notes))))
    choice = choose_recorded(data, laws)
    fit = fitted(dict(choice.laws))
    while (other := passive_instead(choice, fit)) is not None:  # every iteration excludes at least one contender
        choice, fit = other, fitted(dict(other.laws))
    said = [note("friction_law", line) for line in choice.summary().splitlines()]
    return replace(fit, notes=tuple(dict.fromkeys((*before, *said, *fit.notes))))


def _load_matters(laws: Any) -> bool:
    """Return whether one of the laws depends on the load."""
    if isinstance(laws, Mapping):
        return any(_load_matters(law) for law in laws.values())
    if laws == "auto":
        return True
    if isinstance(laws, Friction):
        laws = laws.law
    return any("tau" in law.looks_at for law in candidates_of(laws).values())


def _open(laws: Any) -> bool:
    """Return whether laws remain to be chosen."""
    if isinstance(laws, Mapping):
        return any(_open(law) for law in laws.values())
    return laws == "auto" if isinstance(laws, str) else isinstance(laws, Sequence)


def _find_shapes(assembly: Assembly, starts: int, data: FrictionData | None) -> tuple[Mechanism, list[Finding]]:
    """Return the robot with the best-fitting laws; undetermined shape parameters are held."""
    robot = assembly.robot
    problem, notes = assembly.problem()
    if data is not None:
        problem = replace(problem, belief=data.belief.rows(assembly.base, problem.names))
    laws = [friction.law for friction in robot.friction.values()]
    names = tuple(f"{name}_{joint}" for joint, friction in robot.friction.items() for name in friction.law.shape)
    held = {
        where.start + s: float(friction.values[len(friction.law.linear) + s])
        for where, friction in zip(assembly.shapes, robot.friction.values(), strict=True)
        for s, name in enumerate(friction.law.shape)
        if name in friction.known
    }
    bounds = shape_bounds(laws, assembly.speeds(), list(robot.friction))
    found = search(problem, bounds, None, starts, PASSES, held)
    apart = _apart(laws, assembly.shapes, found.eta, held)
    if apart:
        start = found.eta.copy()
        start[list(apart)] = list(apart.values())
        found = search(problem, bounds, start, starts, PASSES, held | apart)
    std = np.sqrt(np.diag(covariance(problem, found)))[problem.linear :]
    logarithmic = bounds[:, 0] > 0.0
    size = np.where(logarithmic, np.abs(found.eta), 0.5 * (bounds[:, 1] - bounds[:, 0]))
    unsure = found.at_bound | ~(std <= UNSURE * size) | np.isin(np.arange(std.size), list(apart))
    frictions = assembly.frictions(found.eta, found.projection.x)
    for where, (name, friction) in zip(assembly.shapes, list(frictions.items()), strict=True):
        lost = [label for s, label in enumerate(friction.law.shape) if unsure[where][s] or label in friction.known]
        frictions[name] = replace(friction, known=tuple(lost))
    notes += shape_notes({name: f.law for name, f in frictions.items()}, names, found)
    warm = {f"{f.law.shape[-1]}_{joint}" for joint, f in frictions.items() if isinstance(f.law, TemperatureDependent)}
    free = [x for s, x in enumerate(names) if unsure[s] and not found.at_bound[s] and s not in held and x not in warm]
    if free:
        notes.append(note("shape_undetermined", f"{', '.join(free)}: {UNDETERMINED}", "warning"))
    return robot.altered(friction=frictions), notes


def _apart(laws: Sequence[FrictionLaw], places: Sequence[slice], eta: Array, held: Mapping[int, float]) -> dict[int, float]:
    """Return slopes of equal terms that nearly coincide, moved apart to a ratio of `RATIO` about their mean.

    Two such terms are one and its derivative: their difference is determined, their heights grow beyond all bounds.
    """
    found: dict[int, float] = {}
    for law, place in zip(laws, places, strict=True):
        kinds = [(type(each), name.rstrip("0123456789")) for each in getattr(law, "members", (law,)) for name in each.shape]
        own = sorted(range(place.start, place.stop), key=lambda i: eta[i])
        for i, j in pairwise(own):
            equal = kinds[i - place.start] == kinds[j - place.start] and not {i, j} & (held.keys() | found.keys())
            if equal and eta[i] > 0.0 and eta[j] < RATIO * eta[i]:
                mean = np.sqrt(eta[i] * eta[j])
                found |= {i: float(mean / np.sqrt(RATIO)), j: float(mean * np.sqrt(RATIO))}
    return found


def _fit_recordings(robot: Mechanism, data: FrictionData, estimator: Any, starts: int) -> Fit:
    """Fit bodies and friction of a robot with laws to all recordings at once."""
    dead = skipped(data.recordings)
    robot = robot.altered(friction={name: law for name, law in robot.friction.items() if name not in dead})
    assembly = assemble(robot, data.recordings, data.projection)
    # An estimator with a prior uses it in the search for shapes too.
    found, notes = _find_shapes(assembly, starts, data if isinstance(estimator, MAP) else None)
    found, told = _without_temperature(robot, found, assembly)
    notes += told
    solver = WLS() if estimator is None else estimator
    for turn in count(1):
        fit, resting = _relinearised(found, robot, assembly, solver)
        shapes = [own.name for own in found.own_columns if own.kind == "shape"]
        at = [fit.base.leaders.index(name) for name in shapes if name in fit.base.leaders]
        before = np.array([found.parameters[fit.base.leaders[i]] for i in at])
        moves = np.abs(fit.values[at] - before) / np.maximum(fit.std[at], 1e-300)
        if not np.any(moves >= SETTLED):
            break
        if turn < ROUNDS:
            found = _moved(found, fit, at)
        else:  # a linearised column cannot locate its optimum: shapes that do not converge are held
            lost = [fit.base.leaders[i] for i, move in zip(at, moves, strict=True) if move >= SETTLED]
            found = _held(found, lost)
            notes.append(note("shape_undetermined", f"{', '.join(lost)}: {UNDETERMINED}", "warning"))
    fit = _with_held_shapes(fit, found, robot, assembly, solver)
    known = data.of_logs
    regression = replace(
        fit.data,
        sources=() if known is None else tuple({**source, **own} for source, own in zip(known.sources, resting, strict=True)),
        options={} if known is None else known.options,
        logs=() if known is None else known.logs,
    )
    posterior = replace(fit.posterior, speeds=_speeds(robot, data.recordings))
    return Fit(regression, posterior, tuple(dict.fromkeys((*fit.notes, *notes))))


def _with_held_shapes(fit: Fit, found: Mechanism, robot: Mechanism, assembly: Assembly, solver: Any) -> Fit:
    """Return the fit with deviations that include the uncertainty of shape parameters held by the search.

    The deviations are those of a fit with free columns of these shapes, and at least the resulting change of the parameters.
    The covariance stays that of the held shapes, because predictions use them.
    """
    frictions = {joint: replace(law, known=robot.friction[joint].known) for joint, law in found.friction.items()}
    if all(set(law.known) == set(found.friction[joint].known) for joint, law in frictions.items()):
        return fit
    wide, _ = _fitted(found.altered(friction=frictions), robot, assembly, solver)
    free = {name: (x, s) for name, x, s in zip(wide.base.leaders, wide.values, wide.std, strict=True)}
    held = zip(fit.base.leaders, fit.values, fit.std, strict=True)
    marginal = np.array([max(s, free[name][1], abs(x - free[name][0])) if name in free else s for name, x, s in held])
    for joint, law in found.friction.items():
        if _has_equal_terms(law.law) and set(law.known) - set(robot.friction[joint].known):
            # Equal terms with unknown slopes exchange their heights, far beyond a linearisation.
            own = [
                i for i, name in enumerate(fit.base.leaders) if name in {f"{x}_{joint}" for x in law.law.linear if "fc" in x}
            ]
            marginal[own] = np.maximum(marginal[own], np.abs(fit.values[own]))
    return fit.altered(marginal_std=marginal)


def _has_equal_terms(law: FrictionLaw) -> bool:
    """Return whether a law is a sum with two terms of one kind."""
    members = getattr(law, "members", ())
    return len({type(member) for member in members}) < len(members)


def _relinearised(robot: Mechanism, described: Mechanism, assembly: Assembly, solver: Any) -> tuple[Fit, list[dict[str, Any]]]:
    """Return the fit of `_fitted`, repeated with the load of its own bodies where friction depends on it."""
    fit, resting = _fitted(robot, described, assembly, solver)
    for _ in range(LOAD_ROUNDS if "load" in law_signals(robot) else 0):
        assembly, before = replace(assembly, recordings=_loaded(assembly.recordings, fit.mechanism, fit.standard)), fit.values
        fit, resting = _fitted(robot, described, assembly, solver)
        if np.all(np.abs(fit.values - before) <= LOAD_SETTLED * fit.std):
            break
    return fit, resting


def _loaded(recordings: Sequence[Recording], robot: Mechanism, bodies: Parameters) -> tuple[Recording, ...]:
    """Return recordings with the torques of a model's bodies as load; the measured efforts hold the friction itself."""
    return tuple(replace(each, load=joint_loads(robot, each.motion, bodies)) for each in recordings)


def _without_temperature(robot: Mechanism, found: Mechanism, assembly: Assembly) -> tuple[Mechanism, list[Finding]]:
    """Return the robot without temperature dependence of friction where the data do not show it, and notes."""
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
        f"friction of {', '.join(cold)}: a temperature range of {span:.2g} K is too small to identify alpha, which is set "
        "to 0; fit cold and warm logs together"
    )
    warn(told, ConditionWarning)
    return found.altered(friction={**found.friction, **zero}), [note("temperature_unseen", told, "warning")]


def _speeds(robot: Mechanism, recordings: Sequence[Recording]) -> dict[str, float]:
    """Return the root mean square speed of every coordinate of the tree."""
    bare = robot.altered(friction={}, forces=())
    v = np.concatenate([tree_motion(bare, recording.motion).v for recording in recordings])
    return dict(zip(robot.tree.coordinates, np.sqrt(np.mean(v**2, axis=0)).tolist(), strict=True))


def _fitted(robot: Mechanism, described: Mechanism, assembly: Assembly, solver: Any) -> tuple[Fit, list[dict[str, Any]]]:
    """Return the fit of a robot with the shapes found, and residuals at rest; `described` has the user's values."""
    base = base_parameters(robot)
    rows = Rows(robot, assembly.rows.projection)
    parts, resting = [], []
    for each in assembly.recordings:
        part, rests = each.compressed(rows, base)
        parts.append(part)
        resting.append({} if robot.loops else {"resting": rests})
    evidence = reduce(add, parts)
    linear = {own.name: described.parameters[own.name] for own in robot.own_columns if own.kind == "linear" and own.coordinate}
    before = base.values(robot.parameters.replace(linear).values)
    believing = _believing(solver, linear)
    fit = fit_of(believing, evidence)
    if isinstance(believing, MAP) and "load" in law_signals(robot):
        fit = _with_loads(fit, believing.standard_covariance_, assembly.recordings)
    fit = fit.altered(before=before, description_relative=relative_error(evidence, before), estimator=str(solver))
    return fit, resting


def _with_loads(fit: Fit, covariance: Array, recordings: Sequence[Recording]) -> Fit:
    """Return the fit with the uncertainty of the loads in the deviations of the parameters that multiply them.

    The data show the load of a gear only together with its rotor: a rotor of unknown inertia leaves the scale of the load open.
    """
    robot, std, count = fit.mechanism, fit.std.copy(), fit.mechanism.tree.inertias.size
    bodies, moments = fit.standard.values[:count], np.zeros((robot.dof, count))
    for each in recordings:
        Y = regressor(robot.without_friction(), each.motion[:: -(-len(each.motion) // ROWS)])[:, :, :count]
        moments += np.einsum("tj,tjp->jp", Y @ bodies, Y)
    variance = np.einsum("jp,pq,jq->j", moments, covariance[:count, :count], moments)
    unsure = np.sqrt(variance) / np.maximum(moments @ bodies, TINY)  # of the load, relative
    for joint, friction in robot.friction.items():
        for name in friction.law.linear if joint in robot.coordinate_names else ():
            if (label := f"{name}_{joint}") in fit.base.leaders:
                k, j = fit.base.leaders.index(label), robot.coordinate_names.index(joint)
                one = {**friction.parameters, **dict.fromkeys(friction.law.linear, 0.0), name: 1.0}
                before, after = (friction.law.torque(Point(1.0, 1.0, x, WARM), one) for x in (1.0, 1.0 + unsure[j]))
                if after != before:
                    std[k] = np.hypot(std[k], fit.values[k] * (after / before - 1.0))
    return fit.altered(marginal_std=std)


def _believing(solver: Any, before: Mapping[str, float]) -> Any:
    """Return the estimator with the laws' values before the data in its prior: fitted values already contain the data."""
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
    """Return the robot with the values of a fit in its laws; no shape changes by more than a half."""
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


def friction_data(
    mechanism: Mechanism,
    log: Log | Sequence[Log],
    options: Mapping[str, Any] | None,
    projection: Projection | None = None,
    known: Knowledge | None = None,
) -> FrictionData:
    """Prepare logs of one robot in the common band of `Regression.from_logs`; all must move the same joints."""
    logs, given = (log,) if isinstance(log, Log) else tuple(log), dict(options or {})
    if not logs:
        raise IdentificationError("no log is given; give at least one")
    robots = [match(mechanism, one).mechanism for one in logs]
    for one, robot in zip(logs, robots, strict=True):
        if robot.coordinate_names != robots[0].coordinate_names:
            raise IdentificationError(f"log '{one.name}' moves other joints than log '{logs[0].name}'; fit them separately")
    chosen = usual_projection(robots[0]) if projection is None else check_projection(projection)
    evidence = Regression.from_logs(mechanism, logs, None, chosen, **given)
    return FrictionData(evidence.mechanism, _recordings(evidence, logs), evidence.projection, known, logs, evidence)


def _recordings(evidence: Regression, logs: Sequence[Log]) -> tuple[Recording, ...]:
    """Return logs with the preparation of the regression data."""
    robot, rows = evidence.mechanism, Rows(evidence.mechanism, evidence.projection)
    # The same stretches too: inflation and prior of the fit with laws then equal those of the fit without.
    stretches = -(-max(len(group.counts) for group in evidence.groups) // len(logs))
    recordings = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SignalWarning)  # the regression data already reported faults of the logs
        for log, source in zip(logs, evidence.sources, strict=True):
            band = {"cutoff": source["cutoff"], "band": source["bandwidth"]}
            prepared = prepared_for(rows, match(robot, log).log, {**evidence.options, **band})
            moved = robot_motion(robot, prepared.motion)
            found = (prepared.filtered, prepared.decimator, dead_efforts(prepared), prepared.moving)
            recordings.append(Recording(moved, *found, prepared.temperature, None, stretches, prepared.effort))
    return tuple(recordings)


def _rejudged(data: FrictionData, robot: Mechanism) -> FrictionData | None:
    """Return the logs in the band chosen by the robot with its laws if wider, otherwise None.

    Model errors choose the band. Linear terms for nonlinear friction give a band that is too narrow. A still narrower band
    would only make the errors smaller than those of the fit without laws.
    """
    options, projection = dict(data.evidence.options), data.projection
    if options.get("cutoff", "auto") != "auto" or options.get("band", "auto") != "auto":
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SignalWarning)  # already reported
        judged = Regression.from_logs(robot, data.logs, None, projection, **options)
        (own, *_), (other, *_) = data.evidence.sources, judged.sources
        if other["cutoff"] <= own["cutoff"]:
            return None
        band = {"cutoff": other["cutoff"], "band": other["bandwidth"]}
        parts = Regression.from_logs(data.robot, data.logs, None, projection, **{**options, **band})
    evidence = replace(parts, options=options, notes=judged.notes)
    return FrictionData(data.robot, _recordings(evidence, data.logs), projection, data.known, data.logs, evidence)


# ---- one axis ----------------------------------------------------------------------------------------------------------


def _fit_axis(axis: Axis, laws: Law | Sequence[Law], starts: int) -> AxisFit:
    """Return the fit of one axis with the simplest of several laws that is not worse on held-out blocks of time."""
    tau, given, columns = _checked_axis(axis)
    if isinstance(laws, Friction):
        return _fit_law(laws.law, tau, given, columns, axis.name, starts, known_shape(laws))
    candidates = candidates_of(laws)
    if len(candidates) == 1:
        return _fit_law(next(iter(candidates.values())), tau, given, columns, axis.name, starts)

    def errors(law: FrictionLaw, rows: NDArray[np.bool_]) -> tuple[Array, int]:
        own = {name: values[rows] for name, values in columns.items()}
        found = _fit_law(law, tau[rows], given.take(rows), own, axis.name, starts)
        return tau - found.predict(given, columns), len(found.linear) + len(found.shape)

    choice = compare_models({text: partial(errors, law) for text, law in candidates.items()}, tau.size)
    return replace(_fit_law(candidates[choice.best], tau, given, columns, axis.name, starts), choice=choice)


def _checked_axis(axis: Axis) -> tuple[Array, State, dict[str, Array]]:
    """Return effort, state and columns of an axis after checking shapes and finite values."""
    given = State.of(axis.state)
    tau = np.asarray(axis.effort, dtype=np.float64)
    if tau.ndim != 1 or given.v.shape != tau.shape:
        raise IdentificationError(f"effort has shape {tau.shape} and v has shape {given.v.shape}; both must be one-dimensional")
    columns = {column: np.asarray(values, dtype=np.float64) for column, values in axis.fixed.items()}
    for column, values in {"effort": tau, **columns}.items():
        if values.shape != tau.shape:
            raise IdentificationError(f"fixed column '{column}' has shape {values.shape} but effort has {tau.shape}")
        if not np.isfinite(values).all():
            raise IdentificationError(f"{column} is not finite at sample {int(np.argmin(np.isfinite(values)))}; remove it")
    return tau, given, columns


def _fit_law(
    law: FrictionLaw,
    tau: Array,
    given: State,
    columns: dict[str, Array],
    name: str,
    starts: int,
    friction: Friction | None = None,
) -> AxisFit:
    """Return the fit of one law to checked data of an axis; known shape parameters keep the values of `friction`."""
    notes = direction_note(name, given.v)
    cut = limited(tau)
    keep = ~cut
    if cut.any():
        notes.append(limit_note(name, cut, used=False))
        warn(notes[-1].sentence, SignalWarning)
    W = np.stack([values[keep] for values in columns.values()]) if columns else np.zeros((0, int(keep.sum())))
    inner = given.take(keep)
    count = int(keep.sum())
    width, used = len(columns), tau[keep]
    pairs = [(k, s) for k in range(len(law.linear)) for s in range(len(law.shape))]

    def tile(span: slice) -> Blocks:
        def blocks(eta: Array, step: int, _: Sequence[int]) -> list[Array]:
            at = inner.take(slice(span.start, span.stop, step))
            bend = law.columns(at, eta, "shape")
            bends = [bend[:, k, s] for k, s in pairs]
            return [np.vstack([W[:, span][:, ::step], law.columns(at, eta).T, *bends, used[span][::step]])]

        return blocks

    problem = Problem(
        (name,),
        [np.arange(width + len(law.linear))],
        [[(width + k, s) for k, s in pairs]],
        width + len(law.linear),
        len(law.shape),
        [tile(slice(i, min(i + ROWS, count))) for i in range(0, count, ROWS)],
        [list(range(len(law.shape)))],
        (count,),
    )
    bounds = shape_bounds([law], [inner.v], [name])
    held = {} if friction is None else {law.shape.index(label): friction.parameters[label] for label in friction.known}
    found = search(problem, bounds, None, starts, AXIS_PASSES, held)
    square = float(used @ used)
    scatter = found.sigma * np.sqrt(problem.independence)
    fit = AxisFit(
        linear=(*columns, *law.linear),
        shape=law.shape,
        values=np.concatenate([found.projection.x, found.eta]),
        covariance=covariance(problem, found, held),
        laws={name: law},
        sigma=dict(zip(problem.names, scatter.tolist(), strict=True)),
        rows=count,
        relative=float(np.sqrt(found.projection.squares.sum() / square)) if square > 0.0 else float("nan"),
        passes=found.passes,
        notes=tuple(note.sentence for note in (*notes, *shape_notes({name: law}, law.shape, found))),
        fixed=tuple(columns),
    )
    residuals = np.where(keep, tau - fit.predict(given, columns), np.nan)
    return replace(fit, residuals=residuals, speed=given.v, resistance=fit.predict(given) + residuals)


def shape_notes(laws: Mapping[str, FrictionLaw], shape: tuple[str, ...], found: Found) -> list[Finding]:
    """Return notes about undetermined shape parameters, among them always those of sigmoids."""
    said = list[Finding]()
    edge = [name for name, at in zip(shape, found.at_bound, strict=True) if at]
    if edge:
        text = f"{', '.join(edge)} is at the edge of the interval that these speeds cover, so the data do not determine it"
        said.append(note("shape_undetermined", text, "warning"))
    if any(_has_sigmoid(law) for law in laws.values()):
        said.append(note("sigmoid", SIGMOID_NOTE))
    return said


def _has_sigmoid(law: FrictionLaw) -> bool:
    if isinstance(law, Sum):
        return any(_has_sigmoid(member) for member in law.members)
    inner = law.law if isinstance(law, Asymmetric | TemperatureDependent) else None
    return isinstance(law, Sigmoid) or (inner is not None and _has_sigmoid(inner))
