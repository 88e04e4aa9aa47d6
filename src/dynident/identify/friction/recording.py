"""Recordings of a robot: motions and efforts made into the rows of a separable problem.

A tree robot has one row per joint, with the friction law of the joint. A robot with loops and as many motors as degrees of
freedom has one row per motor, tau_m = A^-T G^T Y phi + f(q_m, v_m): friction of a motor stands in its own row only, so it is
fitted at the motor, in motor radians. Passive joints keep their linear terms.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.errors import IdentificationError, SignalWarning
from dynident.friction import TERMS, FrictionLaw, State
from dynident.identify.base import BaseParameters
from dynident.identify.friction.checks import direction_note, limit_note, limited
from dynident.identify.friction.problem import Filter, Piece, Problem
from dynident.identify.rows import Rows, moving_rows
from dynident.mechanics import Motion, close_motion, closure_starts
from dynident.mechanism import Mechanism
from dynident.signals import Decimator

Array = NDArray[np.float64]

ROWS = 1024
#: Fixed columns below this size [bytes] are kept between passes instead of being computed again.
CACHE = 64e6


def without_friction(mechanism: Mechanism) -> Mechanism:
    """The robot without the friction terms that laws replace: of all joints of a tree, of the driven ones with loops."""
    rows_of(mechanism)
    rubbing = [symbol for symbol, term in TERMS.items() if term.friction]
    shared = tuple(symbol for symbol in mechanism.terms if symbol in rubbing)
    driven = {name for actuator in mechanism.actuators for name in actuator.coupling}
    joints = []
    for joint in mechanism.joints:
        terms = {key: value for key, value in joint.terms.items() if key.split(".")[0] not in rubbing}
        if mechanism.loops:
            for coordinate in (name for name in joint.coordinates if name not in driven):
                suffix = coordinate.removeprefix(joint.name)
                for symbol in rubbing:
                    if symbol in shared or symbol in joint.terms or symbol + suffix in joint.terms:
                        terms[symbol + suffix] = joint.term(coordinate, symbol)
        joints.append(replace(joint, terms=terms))
    return replace(mechanism, joints=tuple(joints), terms=tuple(t for t in mechanism.terms if t not in shared))


def rows_of(mechanism: Mechanism) -> Rows:
    """The equations in which the friction of a joint or motor stands in one row only."""
    if not mechanism.loops:
        return Rows(mechanism)
    motors = tuple(actuator.name for actuator in mechanism.actuators)
    if len(motors) != mechanism.dof:
        raise IdentificationError(
            f"robot '{mechanism.name}' has loops and {len(motors)} motors for {mechanism.dof} degrees of freedom, so "
            "its motors' friction mixes with their preload; fit motors one by one with fit_axis, or joint terms with WLS"
        )
    return Rows(mechanism, motors)


@dataclass(frozen=True, eq=False)
class Recording:
    """One uniformly sampled stretch.

    Parameters
    ----------
    motion : Motion
        N samples of the robot's coordinates.
    measured : Motion
        What the laws look at: the same for a tree robot, the motors' motion with loops.
    effort : ndarray, (N, n)
        Torques and forces [N m, N] of the joints; of the motors with loops.
    temperature, load : ndarray (N, n) or None
        What laws may look at [degree Celsius, N m or N].
    decimator : Decimator
        Parallel filter.
    skip : tuple of str
        Joints whose efforts are not used.
    moving : ndarray of bool (N, n) or None
        False where a joint is too slow to be used.
    """

    motion: Motion
    measured: Motion
    effort: Array
    temperature: Array | None
    load: Array | None
    decimator: Decimator
    skip: tuple[str, ...]
    moving: NDArray[np.bool_] | None = None

    @classmethod
    def of(
        cls,
        robot: Mechanism,
        motion: Motion,
        effort: ArrayLike,
        temperature: ArrayLike | None,
        load: ArrayLike | None,
        decimator: Decimator | None,
        skip: Sequence[str],
        measured: Motion | None = None,
        moving: NDArray[np.bool_] | None = None,
    ) -> Recording:
        """Check the arrays and put them together.

        Parameters
        ----------
        robot : Mechanism
            Robot with n coordinates.
        motion : Motion
            N samples.
        effort : array_like, (N, n)
            Torques and forces of the joints; of the motors with loops.
        temperature, load : array_like (N, n) or None
            What laws may look at.
        decimator : Decimator or None
            Parallel filter; none when None.
        skip : sequence of str
            Joints whose efforts are not used.
        measured : Motion, optional
            Motor motion of a robot with loops; computed when omitted.
        moving : ndarray of bool (N, n), optional
            False where a joint is too slow to be used.

        Returns
        -------
        Recording
            The checked recording.
        """
        tau = np.asarray(effort, dtype=np.float64)
        if motion.dof != robot.dof:
            raise IdentificationError(
                f"the motion has {motion.dof} coordinates but robot '{robot.name}' has {robot.dof}; they must agree"
            )
        if tau.shape != motion.q.shape or not np.isfinite(tau).all():
            raise IdentificationError(
                f"effort has shape {tau.shape}; it must be finite and have the motion's shape {motion.q.shape}"
            )
        filter_ = decimator or Decimator(1, 1.0)
        if filter_.length(len(motion)) < 1:
            raise IdentificationError(f"{len(motion)} samples are too few for a decimation by {filter_.factor}")
        warm = channel("temperature", temperature, tau.shape)
        seen = measured if measured is not None and robot.loops else _law_motion(robot, motion)
        return cls(motion, seen, tau, warm, channel("load", load, tau.shape), filter_, tuple(skip), moving)

    def state(self, rows: slice, i: int) -> State:
        """What the law of one joint looks at.

        Parameters
        ----------
        rows : slice
            Samples.
        i : int
            Joint.

        Returns
        -------
        State
            State at those samples.
        """
        load = None if self.load is None else self.load[rows, i]
        warm = None if self.temperature is None else self.temperature[rows, i]
        return State(self.measured.v[rows, i], self.measured.q[rows, i], load, warm)


def _law_motion(robot: Mechanism, motion: Motion) -> Motion:
    """What friction laws look at: the joints, or the motors of a robot with loops."""
    if not robot.loops:
        return motion
    closed = close_motion(robot, motion)
    N, n0 = robot.actuator_matrix
    return Motion(motion.t, closed.q @ N.T + n0, closed.v @ N.T, closed.a @ N.T)


def channel(name: str, values: ArrayLike | None, shape: tuple[int, ...]) -> Array | None:
    """Check an optional channel."""
    if values is None:
        return None
    array = np.asarray(values, dtype=np.float64)
    if array.shape != shape or not np.isfinite(array).all():
        raise IdentificationError(
            f"{name} has shape {array.shape}; it must be finite and have the shape {shape} of the efforts"
        )
    return array


def assemble(
    robot: Mechanism, base: BaseParameters, recordings: Sequence[Recording], laws: tuple[FrictionLaw, ...], used: list[int]
) -> tuple[Problem, list[str]]:
    """Rows of all recordings."""
    rows = rows_of(robot)
    joints = rows.names
    pieces: list[Piece] = []
    filters: list[Filter | None] = []
    states: list[list[State]] = []
    masks: list[Array] = []
    notes: list[str] = []
    counts = np.zeros(len(used), dtype=np.int64)
    for recording in recordings:
        motion, tau, filter_ = recording.motion, recording.effort, recording.decimator
        cut = np.stack([limited(tau[:, i]) for i in used])
        whole = filter_.factor == 1
        for row, i in zip(cut, used, strict=True):
            if row.any():
                notes.append(limit_note(joints[i], row, used=not whole))
                warnings.warn(notes[-1], SignalWarning, stacklevel=4)
        keep = ~cut if whole else np.ones((len(used), filter_.length(len(motion))), dtype=bool)
        if recording.moving is not None:
            keep = keep & moving_rows(recording.moving[:, used], filter_, [joints[i] for i in used]).T
        tiles = list(filter_.tiles(len(motion), ROWS))
        starts: Sequence[Array | None] = [None] * len(tiles)
        if robot.loops:  # the branch is followed once through all samples; then every tile stands alone
            starts = closure_starts(robot, motion.q, [inside.start for inside, _ in tiles])
        for (inside, outside), start in zip(tiles, starts, strict=True):
            pieces.append(_piece(rows, base, recording, inside, start, used))
            states.append([recording.state(inside, i) for i in used])
            filters.append(None if whole else filter_.apply)
            masks.append(keep[:, outside].astype(np.float64))
        counts += keep.sum(axis=1)
    for i in used:
        note = direction_note(joints[i], np.concatenate([r.measured.v[:, i] for r in recordings]))
        notes += [note] if note else []
    lengths = [r.decimator.length(len(r.motion)) for r in recordings]
    independence = float(np.average([r.decimator.independence for r in recordings], weights=lengths))
    problem = Problem(
        tuple(joints[i] for i in used),
        laws,
        base.rank,
        [np.flatnonzero(rows.seen(base.seen)[i]) for i in used],
        cached(pieces, 8.0 * sum(lengths) * len(used) * base.rank),
        states,
        filters,
        masks if any((mask == 0.0).any() for mask in masks) else None,
        tuple(int(c) for c in counts),
        independence,
    )
    return problem, notes


def _piece(rows: Rows, base: BaseParameters, recording: Recording, span: slice, start: Array | None, used: list[int]) -> Piece:
    apply = recording.decimator.apply

    def compute() -> tuple[Array, Array]:
        # Efforts are already those of the rows: joints of a tree, motors of a square A.
        W, _ = rows.equations(recording.motion[span], None, base.columns, start, span.start)
        W = W if len(used) == W.shape[0] else W[used]
        y = recording.effort[span][:, used]
        if recording.decimator.factor == 1:
            return W, y.T
        return np.moveaxis(apply(np.moveaxis(W, 2, 0)), 0, 2), apply(y).T

    return compute


def shape_bounds(laws: Sequence[FrictionLaw], velocities: Sequence[Array], names: Sequence[str]) -> Array:
    """Intervals in which to search, from the largest speed of each joint."""
    parts = [np.zeros((0, 2))]
    for law, v, name in zip(laws, velocities, names, strict=True):
        if not law.shape:
            continue
        speed = float(np.max(np.abs(v), initial=0.0))
        if speed == 0.0:
            raise IdentificationError(
                f"joint '{name}' never moves, so the shape of its friction cannot be seen; leave its law out"
            )
        parts.append(law.shape_range(speed))
    return np.concatenate(parts)


def cached(pieces: list[Piece], size: float) -> list[Piece]:
    """Keep what the tiles return when it is small."""
    if size > CACHE:
        return pieces

    def remember(piece: Piece) -> Piece:
        store: list[tuple[Array, Array]] = []

        def compute() -> tuple[Array, Array]:
            if not store:
                store.append(piece())
            return store[0]

        return compute

    return [remember(piece) for piece in pieces]
