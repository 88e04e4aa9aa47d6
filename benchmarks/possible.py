"""The physically possible robot whose efforts are nearest to those of faulty logs: a convex programme.

The efforts of a robot are linear in the inertial parameters beta of its bodies (ten each), rotor inertias J, offsets o and
friction coefficients gamma. With the rows of `dynident.validate.diagnosis.sample`, also of robots with loops,

    P tau = W beta + P (o + H gamma + J a) + r,

the search minimises the largest rms(r_i) / limit_i of all channels i, or the sum of squares, over all beta, J, o and gamma with

    P(beta_b) >= 0 (pseudo-inertia of every body b),   J >= 0,   v_i (H gamma)_i >= 0 in all samples.

The geometry of the description is kept, its masses do not count. Friction of a channel is any sum of the functions of
`dynident.validate.diagnosis.delay`, which depend on speed, direction and load. The load is that of the bodies of the previous
pass; a last pass keeps the bodies, so that the result is one robot in all its terms.

A fault is undetectable if the search finds a robot whose error e_i on the faulty logs is at most sqrt(c_i^2 + n_i^2) g_i for
every channel: c_i is the error of the same search on the clean logs, n_i the noise in it (at most c_i), and g_i the share of
small errors of the clean efforts that the fault keeps (1.3 for a gain of 1.3, 1 for a clock). Both logs are searched alike, for
with the error of the true robot in place of c_i the flexibility of the search alone would hide faults; and limits are absolute,
for efforts without gravity are smaller, their noise is not. One robot must make all logs, training and validation: on a single
log more robots pass. Errors are those of the fitted samples: both searches have the same unknowns (10 per body and 9 per
channel, for a thousand samples of each), so that overfitting lowers both.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import cvxpy as cp
import numpy as np
from numpy.typing import NDArray

import dynident as di
from benchmarks.fault_kinds import Subject
from dynident.friction.terms import TERMS
from dynident.identify.regression.logs import dead_efforts, prepared_for
from dynident.identify.regression.rows import Rows
from dynident.mechanism.parameters import pseudo_inertia
from dynident.signals.matching import match
from dynident.validate.diagnosis.delay import SLOW, friction_functions
from dynident.validate.diagnosis.left_out import weighted
from dynident.validate.diagnosis.sample import Sample, channels_of

Array = NDArray[np.float64]
Spoil = Callable[[Subject], Subject]
PASSES = 3  # of the load of friction, and of the weights
BASIS = np.stack([pseudo_inertia(row).ravel() for row in np.eye(10)], axis=1)  # (16, 10)
FLOOR = 1e-6  # of the efforts: smaller errors are not credible
#: Weight of the length of all unknowns, so that what no effort shows stays finite; tolerance of the solver.
ATTEMPTS = ((1e-5, 1e-8), (1e-4, 1e-7), (1e-3, 1e-6))


@dataclass(frozen=True, eq=False)
class Equations:
    """Equations of n channels in S samples of one or more logs."""

    names: tuple[str, ...]
    W: Array  # (n, c, S): columns of bodies, then of other terms
    P: Array  # (S, n, n)
    v: Array  # (S, n), in units of the RMS speed
    a: Array  # (S, n)
    effort: Array  # (S, n), projected by P
    used: NDArray[np.bool_]  # (S, n): moving, for friction is not smooth near standstill, and with usable efforts
    bodies: int
    positive: NDArray[np.bool_]  # other terms that physics keeps from being negative
    length: float  # of the longest link [m], or 1: unit of the search

    @classmethod
    def of(cls, robot: di.Mechanism, logs: Sequence[di.Log]) -> Equations:
        """Return the equations of logs of a described robot."""
        parts = [_of_log(robot, log) for log in logs]
        if len({(part.names, part.W.shape[1]) for part in parts}) != 1:
            raise di.DynidentError("the logs have different channels")
        P, v, a, effort, used = (
            np.concatenate([getattr(part, key) for part in parts]) for key in ("P", "v", "a", "effort", "used")
        )
        rms = np.sqrt(np.mean(v**2, axis=0))
        moving = np.abs(v) > SLOW * rms
        if np.any(P[:, ~np.eye(rms.size, dtype=bool)]):  # every equation has the friction of all channels
            moving = np.repeat(moving.all(axis=1, keepdims=True), rms.size, axis=1)
        v, W = v / np.where(rms > 0.0, rms, 1.0), np.concatenate([part.W for part in parts], axis=2)
        return replace(parts[0], W=W, P=P, v=v, a=a, effort=effort, used=used & moving)

    @property
    def size(self) -> Array:
        """Standard deviations (n,) of the used efforts."""
        return np.array([np.std(y[own]) if own.any() else 0.0 for y, own in zip(self.effort.T, self.used.T, strict=True)])

    def load(self, beta: Array) -> Array:
        """Return the magnitudes (S, n) of the torques of bodies."""
        own = 10 * self.bodies
        return np.asarray(np.abs(np.einsum("nct,c->tn", self.W[:, :own], beta[:own])))


@dataclass(frozen=True, eq=False)
class Found:
    """A possible robot.

    Parameters
    ----------
    beta : ndarray, (c,)
        Parameters of its bodies, and of other terms.
    friction : ndarray, (n, 9)
        Offset and coefficients of friction, over the size of the efforts; rotor inertia.
    rest : ndarray, (S, n)
        Residuals, zero for samples that are not used.
    errors : ndarray, (n,)
        Their RMS values.
    """

    beta: Array
    friction: Array
    rest: Array
    errors: Array


def logs_of(subject: Subject) -> list[di.Log]:
    """Return all logs of a robot."""
    return [*subject.train, *subject.test]


@cache
def clean(subject: Subject) -> tuple[Equations, Array, Array]:
    """Return the equations of the clean logs, the errors of the search (n,), and the noise in them (n,).

    The noise is that of second differences of the residuals; gradual errors of the model leave little in them.
    """
    data = Equations.of(subject.robot, logs_of(subject))
    found = nearest(data)
    inside = data.used[2:] & data.used[1:-1] & data.used[:-2]
    rough = np.sum(inside * np.diff(found.rest, 2, axis=0) ** 2, axis=0) / np.maximum(6 * inside.sum(axis=0), 1)
    return data, found.errors, np.minimum(np.sqrt(rough), found.errors)


def excess(subject: Subject, spoil: Spoil, noise: Array | float = np.inf) -> tuple[Array, Array]:
    """Return e_i / (c_i g_i) of the possible robot nearest to the faulty logs, (n,), and the limits of these ratios, (n,).

    The `noise` of the clean efforts over their standard deviations is an upper bound, one for all or for each. Ratios are
    infinite if the faulty logs have no equations, or an effort lacks the noise that every measurement has.
    """
    data, errors, rough = clean(subject)
    size, known = np.where(data.size > 0.0, data.size, 1.0), errors > 0.0
    least = np.divide(np.minimum(rough, noise * size), errors, out=np.zeros(errors.size), where=known)
    over, limits = np.full(errors.size, np.inf), np.sqrt(1.0 + least**2)
    try:
        spoiled = spoil(subject)
        faulty = Equations.of(spoiled.robot, logs_of(spoiled))
        if faulty.names != data.names:
            return over, limits
        kept = errors * _kept(subject, spoil, errors / size)
        found = nearest(faulty, limits * kept)
    except di.DynidentError:
        return over, limits
    return np.where(known, np.divide(found.errors, kept, out=over, where=kept > 0.0), 0.0), limits


def _kept(subject: Subject, spoil: Spoil, errors: Array) -> Array:
    """Return the share (n,) of constant errors of the clean efforts, relative to their size, that a fault keeps."""
    channels = np.nanstd(np.concatenate([log.effort for log in logs_of(subject)]), axis=0)
    wrong = subject.changed(lambda log: replace(log, effort=log.effort + errors * channels))

    def change(one: Subject, other: Subject) -> Array:
        first, second = (np.concatenate([match(s.robot, log).log.effort for log in logs_of(s)]) for s in (one, other))
        return np.asarray(np.abs(np.nanmean(second - first, axis=0)))

    before = change(subject, wrong)
    return np.asarray(np.where(before > 0.0, change(spoil(subject), spoil(wrong)) / np.where(before > 0.0, before, 1.0), 0.0))


def _of_log(robot: di.Mechanism, log: di.Log) -> Equations:
    """Return the equations of one log, with speeds in SI units and all samples with usable efforts."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        matched = match(robot, log)
        own = matched.mechanism
        rows = Rows(own, "gls")
        prepared = prepared_for(rows, matched.log, {})
    effort, dead = prepared.filtered if own.loops else prepared.effort, dead_efforts(prepared)
    sample = Sample.of(rows, np.arange(len(own.parameters)), prepared.motion, effort, None, dead)
    y, n = sample.effort, len(sample.names)
    project, P = sample.project(sample.motion), np.tile(np.eye(n), (len(y), 1, 1))
    if project is not None:
        y, P = project(y), np.stack([project(P[:, i]) for i in range(n)], axis=2)
    columns, positive = _columns(own)
    return Equations(
        names=sample.names,
        W=sample.equations(sample.motion)[:, columns],
        P=P,
        v=sample.motion.v,
        a=sample.motion.a,
        effort=y,
        used=np.isfinite(y) & np.array([name not in dead for name in sample.names]),
        bodies=own.tree.inertias.size // 10,
        positive=positive,
        length=max(float(np.linalg.norm(joint.placement.translation)) for joint in own.joints) or 1.0,
    )


def _columns(robot: di.Mechanism) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the columns of bodies and of terms beside those of the channels, and which of these terms are positive."""
    measured, first = set(channels_of(robot).values()), robot.tree.inertias.size
    terms = [*robot.joint_columns, *((motor, symbol) for motor, symbol in robot.actuator_columns)]
    kept = [(first + i, TERMS[symbol].passive) for i, (owner, symbol) in enumerate(terms) if owner not in measured]
    forces = enumerate(robot.own_columns, first + len(terms))
    kept += [(i, False) for i, own in forces if own.kind in ("opaque", "force")]
    return np.array([*range(first), *(i for i, _ in kept)], dtype=np.int64), np.array([x for _, x in kept], dtype=np.bool_)


def nearest(data: Equations, limits: Array | None = None) -> Found:
    """Return the possible robot with the smallest of the largest ratios of RMS error to limit (n,).

    Without limits the sum of squares is minimised, weighted by the errors themselves.
    """
    size = data.size
    load = data.load(_free(data))
    weights = size if limits is None else limits
    for _ in range(PASSES):
        found = _solved(data, load, weights, limits is None)
        load = data.load(found.beta)
        if limits is None:
            weights = np.maximum(found.errors, FLOOR * size)
    return _solved(data, load, weights, limits is None, found.beta)


def _free(data: Equations) -> Array:
    """Return the parameters of least squares, possible or not, for the first load of friction."""
    scale = np.sqrt(np.sum((data.W * data.used.T[:, None]) ** 2, axis=(0, 2)))
    scale[scale == 0.0] = 1.0
    W = data.W * data.used.T[:, None] / scale[:, None]
    return np.asarray(weighted(W, np.where(data.used, data.effort, 0.0))[0] / scale)


def _units(data: Equations, limits: Array) -> Array:
    """Return units (c,) of the parameters whose efforts are about the limits: one of mass for each body, one of length."""
    weight = np.divide(1.0, limits, out=np.zeros(limits.size), where=limits > 0.0)
    size = np.sqrt(np.einsum("nct,tn->c", (data.W * weight[:, None, None]) ** 2, data.used) / len(data.used))
    own, lengths = 10 * data.bodies, np.repeat(data.length ** np.array([0.0, 1.0, 2.0]), (1, 3, 6))
    mass = np.max(size[:own].reshape(-1, 10) * lengths, axis=1)
    unit = lengths / np.where(mass > 0.0, mass, 1.0)[:, None]
    return np.concatenate([unit.ravel(), 1.0 / np.where(size[own:] > 0.0, size[own:], 1.0)])


def _solved(data: Equations, load: Array, limits: Array, total: bool, beta: Array | None = None) -> Found:
    """Return the possible robot for a given load of friction, with the bodies and other terms `beta` if given."""
    (n, c, _), units = data.W.shape, _units(data, limits)
    size = np.where(data.size > 0.0, data.size, 1.0)
    rotor = data.a / np.maximum(np.std(data.a, axis=0), np.finfo(float).tiny)
    h = np.concatenate([friction_functions(data.v, load / size), rotor[:, :, None]], axis=2)
    x: Any = cp.Variable(c) if beta is None else cp.Constant(beta / units)
    z: Any = cp.Variable((n, h.shape[2]))
    ratios, constraints = [], [z[:, -1] >= 0.0]
    for i in np.flatnonzero((limits > 0.0) & data.used.any(axis=0)).tolist():
        own, others = data.used[:, i], np.flatnonzero(np.any(data.P[:, i], axis=0)).tolist()
        mixed = [size[k] * data.P[own, i, k, None] * h[own, k] for k in others]
        A = np.column_stack([data.W[i][:, own].T * units, *mixed, data.effort[own, i]])
        R = np.asarray(np.linalg.qr(A / (limits[i] * np.sqrt(own.sum())), mode="r"))
        ratios.append(cp.norm(R[:, :-1] @ cp.hstack([x, *(z[k] for k in others)]) - R[:, -1], 2))
    for i in range(n):
        own = np.abs(data.v[:, i]) > SLOW
        constraints.append((np.sign(data.v[own, i])[:, None] * h[own, i, 1:-1]) @ z[i, 1:-1] >= 0.0)
    if not ratios:
        raise di.DynidentError("no effort is a measurement")
    if beta is None:
        bodies = [x[10 * b : 10 * b + 10] for b in range(data.bodies)]
        constraints += [cp.reshape(BASIS @ own, (4, 4), order="C") >> 0.0 for own in bodies]
        constraints += [x[10 * data.bodies + k] >= 0.0 for k in np.flatnonzero(data.positive).tolist()]
    target = cp.norm(cp.hstack(ratios), 2) if total else cp.max(cp.hstack(ratios))
    length = cp.norm(cp.hstack([x, cp.vec(z, order="C")]), 2)
    for ridge, tolerance in ATTEMPTS:
        problem = cp.Problem(cp.Minimize(target + ridge * length), constraints)
        with suppress(cp.SolverError), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the errors are those of the solution, accurate or not
            problem.solve(solver=cp.CLARABEL, tol_feas=tolerance, tol_gap_abs=tolerance, tol_gap_rel=tolerance)
        if problem.status in ("optimal", "optimal_inaccurate"):
            break
    else:
        raise di.DynidentError(f"the search for a possible robot failed: {problem.status}")
    parameters, friction = units * x.value, np.asarray(z.value)
    model = np.einsum("nct,c->tn", data.W, parameters) + np.einsum("tik,k,tkm,km->ti", data.P, size, h, friction)
    rest = np.where(data.used, data.effort - model, 0.0)
    return Found(parameters, friction, rest, np.sqrt(np.sum(rest**2, axis=0) / np.maximum(data.used.sum(axis=0), 1)))
