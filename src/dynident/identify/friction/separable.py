"""Separable least squares: inertia and linear friction are eliminated while the shape of the friction is searched.

    axis = fit_axis(effort, Viscous() + Tanh(), v, {"J": a})                 one axis [Roldan2017, section 4.1.2]
    robot = fit_robot(mechanism, motion, effort, Viscous() + Tanh())          all joints and bodies together
    robot = fit_log(mechanism, log, {"joint1": Viscous() + Stribeck()})       the same from a log, filtered alike

Single values of a `Sigmoid` law are not identifiable: (Bf, w) and (-Bf, -w) are the same law, terms can be exchanged, and
two terms of opposite sign can be traded against each other. Compare curves: ``fit.friction["joint1"](v)``.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.errors import IdentificationError, SignalWarning
from dynident.friction import Coulomb, FrictionLaw, State, Viscous
from dynident.identify.base import BaseParameters, base_parameters
from dynident.identify.friction.checks import direction_note, limit_note, limited
from dynident.identify.friction.problem import Piece, Problem
from dynident.identify.friction.recording import Recording, assemble, rows_of, shape_bounds, without_friction
from dynident.identify.friction.result import AxisFit, RobotFit, common
from dynident.identify.friction.search import search
from dynident.identify.matching import match
from dynident.identify.regression import dead_efforts, robot_motion, source_of
from dynident.mechanics import Motion
from dynident.mechanism import Mechanism
from dynident.signals import Decimator, Log, prepare

Array = NDArray[np.float64]
Laws = FrictionLaw | Mapping[str, FrictionLaw]

ROWS = 1024


def fit_axis(
    effort: ArrayLike,
    law: FrictionLaw,
    state: State | ArrayLike,
    fixed: Mapping[str, ArrayLike] | None = None,
    start: ArrayLike | None = None,
    starts: int = 12,
    seed: int = 0,
    passes: int = 200,
    name: str = "axis",
) -> AxisFit:
    """Fit one axis: ``effort = sum_i x_i fixed_i + f(state; rho, eta)``.

    Parameters
    ----------
    effort : array_like, (N,)
        Torque or force [N m or N]. Samples at a limit (saturated) are left out, with a warning.
    law : FrictionLaw
        Friction law.
    state : State or array_like, (N,)
        Velocity, and what else the law looks at.
    fixed : mapping of str to array_like (N,), optional
        Columns of the other linear parameters by name, as in ``{"J": a, "Qa": cos(q), "Qb": -sin(q)}``.
    start : array_like (S,), optional
        Shape parameters from which to start; many starts when omitted.
    starts : int
        Starting points per shape parameter.
    seed : int
        Seed of the random ones.
    passes : int
        Largest number of passes over the samples.
    name : str
        Name of the axis.

    Returns
    -------
    AxisFit
        Parameters with covariance, residuals and the friction law with its numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from dynident.friction import Tanh, Viscous
    >>> v = np.sin(np.arange(500) * 0.05)
    >>> fit = fit_axis(2.0 * v + 3.0 * np.tanh(8.0 * v), Viscous() + Tanh(), v)
    >>> round(fit.parameters["tanh.beta"], 6)
    8.0
    """
    given = State.of(state)
    tau = np.asarray(effort, dtype=np.float64)
    if tau.ndim != 1 or given.v.shape != tau.shape:
        raise IdentificationError(f"effort has shape {tau.shape} and v has shape {given.v.shape}; both must be one-dimensional")
    columns = {label: np.asarray(values, dtype=np.float64) for label, values in (fixed or {}).items()}
    for label, values in {"effort": tau, **columns}.items():
        if values.shape != tau.shape:
            raise IdentificationError(f"fixed column '{label}' has shape {values.shape} but effort has {tau.shape}")
        if not np.isfinite(values).all():
            raise IdentificationError(f"{label} is not finite at sample {int(np.argmin(np.isfinite(values)))}; remove it")
    notes = [note for note in [direction_note(name, given.v)] if note]
    cut = limited(tau)
    keep = ~cut
    if cut.any():
        notes.append(limit_note(name, cut, used=False))
        warnings.warn(notes[-1], SignalWarning, stacklevel=2)
    W = np.stack([values[keep] for values in columns.values()]) if columns else np.zeros((0, int(keep.sum())))
    inner = given.take(keep)
    count = int(keep.sum())
    spans = [slice(i, min(i + ROWS, count)) for i in range(0, count, ROWS)]
    pieces: list[Piece] = [lambda s=s: (W[None, :, s], tau[keep][None, s]) for s in spans]  # type: ignore[misc]
    seen = [np.arange(len(columns), dtype=np.int64)]
    states = [[inner.take(s)] for s in spans]
    problem = Problem((name,), (law,), len(columns), seen, pieces, states, [None] * len(spans), None, (count,))
    bounds = shape_bounds([law], [inner.v], [name])
    found = search(problem, bounds, None if start is None else np.asarray(start, dtype=np.float64), starts, seed, passes)
    linear = (*columns, *law.linear)
    result = common(problem, found, linear, law.shape, notes, float(tau[keep] @ tau[keep]))
    fit = AxisFit(**result, fixed=tuple(columns))
    residuals = np.where(keep, tau - fit.predict(given, columns), np.nan)
    return AxisFit(**result, fixed=tuple(columns), residuals=residuals)


def fit_robot(
    mechanism: Mechanism,
    motion: Motion,
    effort: ArrayLike,
    laws: Laws,
    temperature: ArrayLike | None = None,
    load: ArrayLike | None = None,
    base: BaseParameters | None = None,
    decimator: Decimator | None = None,
    skip: Sequence[str] = (),
    start: ArrayLike | None = None,
    starts: int = 12,
    seed: int = 0,
    passes: int = 60,
) -> RobotFit:
    """Fit bodies and friction of a whole robot: ``effort = W beta + f(state; rho, eta)``.

    Friction terms of the mechanism (fv, fc, ...) are replaced by the laws; rotor inertia, offset and spring stay. With loops
    the laws are those of the motors, in motor radians and N m; passive joints keep their linear terms.

    Parameters
    ----------
    mechanism : Mechanism
        Robot with n coordinates; with loops it has n motors.
    motion : Motion
        N samples.
    effort : array_like, (N, n)
        Torques and forces [N m, N] of the joints; of the motors with loops.
    laws : FrictionLaw or mapping of str to FrictionLaw
        One law for all joints, or by joint (by motor with loops); those that are not named get Coulomb and viscous friction.
    temperature : array_like (N, n), optional
        Temperature of the joints [degree Celsius], where a law needs it.
    load : array_like (N, n), optional
        Load of the joints [N m or N], where a law needs it.
    base : BaseParameters, optional
        Base parameters of the mechanism without friction terms; found when omitted.
    decimator : Decimator, optional
        Parallel filter applied to all columns and efforts alike.
    skip : sequence of str
        Joints whose efforts are not to be used.
    start : array_like (S,), optional
        Shape parameters from which to start; many starts when omitted.
    starts : int
        Starting points per shape parameter.
    seed : int
        Seed of the random ones.
    passes : int
        Largest number of passes over all samples.

    Returns
    -------
    RobotFit
        Parameters with covariance; it predicts.
    """
    robot = without_friction(mechanism)
    recording = Recording.of(robot, motion, effort, temperature, load, decimator, skip)
    first = None if start is None else np.asarray(start, dtype=np.float64)
    return fit_recordings(robot, [recording], laws, base, first, starts, seed, passes)


def fit_log(
    mechanism: Mechanism,
    log: Log | Sequence[Log],
    laws: Laws,
    options: Mapping[str, Any] | None = None,
    start: ArrayLike | None = None,
    starts: int = 12,
    seed: int = 0,
    passes: int = 60,
) -> RobotFit:
    """Prepare logs (check, filter, differentiate, decimate) and fit bodies and friction.

    Parameters
    ----------
    mechanism : Mechanism
        Robot; joints of a tree that the logs do not have are held at zero.
    log : Log or sequence of Log
        What was measured; temperatures and efforts serve laws that depend on them.
    laws : FrictionLaw or mapping of str to FrictionLaw
        As in `fit_robot`.
    options : mapping, optional
        Options of `dynident.signals.prepare`.
    start : array_like (S,), optional
        Shape parameters from which to start; many starts when omitted.
    starts : int
        Starting points per shape parameter.
    seed : int
        Seed of the random ones.
    passes : int
        Largest number of passes over all samples.

    Returns
    -------
    RobotFit
        Parameters with covariance; it predicts and scores.
    """
    logs = [log] if isinstance(log, Log) else list(log)
    if not logs:
        raise IdentificationError("no log is given; give at least one")
    recordings, sources, notes = [], [], []
    robot: Mechanism | None = None
    for one in logs:
        matched = match(mechanism, one)
        bare = without_friction(matched.mechanism)
        if robot is not None and bare.coordinate_names != robot.coordinate_names:
            raise IdentificationError(f"log '{one.name}' moves other joints than log '{logs[0].name}'; fit them apart")
        robot = robot or bare
        prepared = prepare(matched.log, **dict(options or {}))
        skip = dead_efforts(prepared)
        moved = robot_motion(robot, prepared.motion)
        channels = (moved, prepared.effort, prepared.temperature, prepared.effort)
        recordings.append(Recording.of(robot, *channels, prepared.decimator, skip, prepared.motion, prepared.moving))
        sources.append(source_of(one, prepared))
        notes += [*matched.notes, *prepared.explanation.splitlines()]
    assert robot is not None
    first = None if start is None else np.asarray(start, dtype=np.float64)
    fit = fit_recordings(robot, recordings, laws, None, first, starts, seed, passes)
    return replace(fit, sources=tuple(sources), options=dict(options or {}), notes=tuple(dict.fromkeys((*notes, *fit.notes))))


def fit_recordings(
    robot: Mechanism,
    recordings: Sequence[Recording],
    laws: Laws,
    base: BaseParameters | None,
    start: Array | None,
    starts: int,
    seed: int,
    passes: int,
) -> RobotFit:
    """Fit bodies and friction to several recordings at once."""
    joints = rows_of(robot).names
    used = [i for i, name in enumerate(joints) if not any(name in recording.skip for recording in recordings)]
    if not used:
        raise IdentificationError("all effort channels are dead or skipped; nothing can be identified")
    chosen = _laws(laws, joints)
    own = tuple(chosen[joints[i]] for i in used)
    bodies = base or base_parameters(robot)
    problem, notes = assemble(robot, bodies, recordings, own, used)
    bounds = shape_bounds(own, [np.concatenate([r.measured.v[:, i] for r in recordings]) for i in used], problem.names)
    found = search(problem, bounds, start, starts, seed, passes)
    linear = (*bodies.names, *(f"{n}_{j}" for j, law in zip(problem.names, own, strict=True) for n in law.linear))
    shape = tuple(f"{n}_{j}" for j, law in zip(problem.names, own, strict=True) for n in law.shape)
    square = 0.0
    for r in recordings:
        rows = r.decimator.apply(r.effort[:, used])
        square += float(np.sum((rows if r.moving is None else rows * r.decimator.usable(r.moving[:, used])) ** 2))
    return RobotFit(**common(problem, found, linear, shape, notes, square), base=bodies)


def _laws(laws: Laws, joints: Sequence[str]) -> dict[str, FrictionLaw]:
    if isinstance(laws, FrictionLaw):
        return dict.fromkeys(joints, laws)
    unknown = [name for name in laws if name not in joints]
    if unknown:
        raise IdentificationError(
            f"laws are given for {', '.join(unknown)}; the moving joints or motors are {', '.join(joints)}"
        )
    return {name: laws.get(name, Coulomb() + Viscous()) for name in joints}
