"""Equations W beta = y from measured efforts.

A tree robot gives one equation per joint: y = tau_joint. A robot with loops is projected, so that reactions and any internal
preload drop out (A^T u = 0 for a preload u):

    A^T tau = G^T Y_tree phi                                        "independent": one row per coordinate of the robot
    J_r^-T (A^T tau) = J_r^-T G^T Y_tree phi,   J_r = rows of A     a tuple of motors: one row per named motor
    Q^T tau = R^-T G^T Y_tree phi,              A = Q R             "gls": minimum variance for equal, independent motor noise

All three have the same exact solutions; they differ only in the weighting of noise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.arrays import Array, pivoted
from dynident.checks import numbers
from dynident.errors import IdentificationError, LogError
from dynident.graph.algebra import NodeRows, absolute, gram_schmidt, maximum, minimum, solve_general
from dynident.graph.compiled import Compiled
from dynident.graph.expression import Node, total
from dynident.mechanics.actuation import actuation, actuator_jacobian
from dynident.mechanics.closure import close_positions
from dynident.mechanics.dynamics import joint_loads
from dynident.mechanics.equations import Equations
from dynident.mechanics.functions import Motion, cached, declared, entering
from dynident.mechanism.mechanism import Mechanism

Projection = str | tuple[str, ...]
Writer = Callable[[slice, Array | None], None]

DEPENDENT = 1e-9  # part of a column of unit length, over random states, below which it is structurally dependent
SINGULAR = 1e-7  # pivot ratio of the closure or of a projection below which its equations are singular

Signals = Mapping[str, Array]
"""Temperature ``T`` and ``load`` of the joints with friction laws, (N, laws) each."""
Relation = tuple[NDArray[np.int64], Array]
"""Independent columns of a row group, and T with W[:, others] = W[:, independent] T."""
LAW_SIGNALS = {"T": "T", "load": "tau"}  # values: names within a law


def law_signals(mechanism: Mechanism) -> tuple[str, ...]:
    """Return the signals other than motion on which the friction laws of a robot depend."""
    used = {letter for friction in mechanism.friction.values() for letter in friction.law.looks_at}
    return tuple(name for name, letter in LAW_SIGNALS.items() if letter in used)


@dataclass(frozen=True, eq=False)
class Rows:
    """The equations of a robot with n coordinates."""

    mechanism: Mechanism
    projection: Projection = "independent"  # or "gls", or the names of n motors; ignored for a tree robot
    absent: tuple[int, ...] = ()  # standard parameters of absent bodies, such as a payload in an unloaded run

    def __post_init__(self) -> None:
        if not self.mechanism.loops:
            return
        motors = self.efforts
        if len(motors) < self.mechanism.dof:
            raise IdentificationError(
                f"robot '{self.mechanism.name}' has {self.mechanism.dof} degrees of freedom but {len(motors)} actuators; "
                "name its motors as [[actuator]] in a sidecar"
            )
        if isinstance(self.projection, str):
            if self.projection not in ("independent", "gls"):
                raise IdentificationError(
                    f"projection is '{self.projection}'; use 'independent', 'gls' or the names of {self.mechanism.dof} motors"
                )
            return
        unknown = [name for name in self.projection if name not in motors]
        if unknown or len(self.projection) != self.mechanism.dof or len(set(self.projection)) != len(self.projection):
            raise IdentificationError(
                f"projection is {', '.join(self.projection)}; name {self.mechanism.dof} different ones of {', '.join(motors)}"
            )

    @property
    def efforts(self) -> tuple[str, ...]:
        """Effort channels expected: joints of a tree robot, motors of a robot with loops."""
        if self.mechanism.loops:
            return tuple(actuator.name for actuator in self.mechanism.actuators)
        return self.mechanism.coordinate_names

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the equations."""
        if not self.mechanism.loops or self.projection == "independent":
            return self.mechanism.coordinate_names
        if self.projection == "gls":
            return tuple(f"row_{i + 1}" for i in range(self.mechanism.dof))
        return tuple(self.projection)

    def seen(self, pattern: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return the base columns of each equation, (n, b), from those of each coordinate: a projection mixes coordinates."""
        mixed = self.mechanism.loops and self.projection != "independent"
        return np.broadcast_to(pattern.any(axis=0), pattern.shape) if mixed else pattern

    def usable(self, moving: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return the mask (N, n) of equations without unknown standstill friction; `moving` (N, k): joints, motors with loops.

        The joint itself must move, or the named motor if all motors are named; otherwise all motors.
        """
        if not self.mechanism.loops or (not isinstance(self.projection, str) and moving.shape[1] == self.mechanism.dof):
            order = [self.efforts.index(name) for name in self.names]
            return moving[:, order]
        return np.repeat(moving.all(axis=1, keepdims=True), self.mechanism.dof, axis=1)

    def equations(
        self,
        motion: Motion,
        effort: Array | None,
        columns: NDArray[np.int64],
        start: Array | None = None,
        first: int = 0,
        signals: Signals | None = None,
    ) -> tuple[Array, Array]:
        """Return W (n, b, N) and y (n, N) of base columns along a stretch of motion with `efforts` (N, k).

        Known contributions (force elements with known coefficients) are subtracted from y. `start` is a closed configuration
        near the first sample of a robot with loops, `first` the number of that sample, for messages.
        """
        compiled = self.compiled(columns)
        W, y = compiled.unpacked(compiled.whole(motion, effort, start, first, signals), len(columns))
        W[:, np.isin(columns, self.absent)] = 0.0
        return W, y

    def compiled(self, columns: NDArray[np.int64]) -> CompiledRows:
        """Return the machine code of these equations, made once per geometry, base columns, known columns and projection."""
        wanted, known = tuple(columns.tolist()), tuple(self.mechanism.known_columns.tolist())
        projection = self.projection if self.mechanism.loops else "independent"
        return cached(self.mechanism, ("rows", wanted, known, projection), lambda: CompiledRows(self, wanted)).of(self)

    def signals(self, temperature: Array | None, load: Array | None, motion: Motion) -> Signals | None:
        """Return ``T`` [degree Celsius] and ``load`` [N m, N], (N, laws) each, from columns as in `efforts`; None if unused.

        An omitted load is computed from the robot's own bodies.
        """
        robot, samples = self.mechanism, len(motion)
        wanted = law_signals(robot)
        if not wanted:
            return None
        if "load" in wanted and load is None:
            load = joint_loads(robot, motion)
        driven = {name: a.name for a in robot.actuators for name in a.coupling} if robot.loops else {}
        found = {}
        for name, given, where in (("T", temperature, "temperature"), ("load", load, "load")):
            if name not in wanted:
                continue
            table = np.zeros((samples, len(robot.friction)))
            for k, (coordinate, friction) in enumerate(robot.friction.items()):
                if LAW_SIGNALS[name] not in friction.law.looks_at:
                    continue
                channel = driven.get(coordinate, coordinate)
                if given is None or channel not in self.efforts:
                    raise LogError(f"the law of joint '{coordinate}' needs its {where}, which was not recorded; give {where}=")
                if given.shape != (samples, len(self.efforts)) or not np.isfinite(given).all():
                    raise IdentificationError(
                        f"{where} has shape {given.shape}; it must be finite and have the shape "
                        f"{(samples, len(self.efforts))} of the efforts"
                    )
                table[:, k] = given[:, self.efforts.index(channel)]
            found[name] = table
        return found

    def targets(self, motion: Motion, effort: Array) -> Array:
        """Return the right sides of the equations, (N, n): projected efforts; for a tree robot the efforts (N, k)."""
        if not self.mechanism.loops:
            return effort
        bare = self.mechanism.altered(friction={}, forces=())
        compiled = Rows(bare, self.projection).compiled(np.zeros(0, dtype=np.int64))
        return compiled.whole(motion, effort).T

    def known_forces(self, motion: Motion) -> Array:
        """Return the contribution of force elements with known coefficients to the equations, (N, n), without friction."""
        bare = self.mechanism.altered(friction={})
        if not bare.known_columns.size:
            return np.zeros((len(motion), self.mechanism.dof))
        return -Rows(bare, self.projection).compiled(np.zeros(0, dtype=np.int64)).whole(motion).T


class CompiledRows:
    """Machine code of some equations: W and y of every sample, samples last, columns that are identically zero left out.

    Equation i has column ``seen[i][k]`` at row ``first[i] + k`` and its right side y in the row after its last column.
    """

    def __init__(self, rows: Rows, columns: Sequence[int]) -> None:
        self.rows = rows
        self._relations: dict[tuple[int, bytes, bytes], Relation] = {}
        x = Equations(rows.mechanism)
        laws = len(rows.mechanism.friction)
        self.signals = dict.fromkeys(law_signals(rows.mechanism), laws)
        x.channels = {name: x.graph.symbols(name, laws) for name in self.signals}
        tau = x.graph.symbols("tau", len(rows.efforts))
        y, size = list(tau), dict[str, list[Node]]()
        known = rows.mechanism.known_columns.tolist()
        both, values = x.regressor([*columns, *known]), x.graph.symbols("known", len(known))
        Y = [row[: len(columns)] for row in both]
        if rows.mechanism.loops:
            A = actuation(x)
            y = [total([row[j] * t for row, t in zip(A, tau, strict=True)]) for j in range(rows.mechanism.dof)]
        y = [
            total([t, *(-c * value for c, value in zip(row[len(columns) :], values, strict=True))])
            for t, row in zip(y, both, strict=True)
        ]
        if rows.mechanism.loops:
            solved, ratio = projected(x, rows, [[*line, t] for line, t in zip(Y, y, strict=True)])
            Y, y = [line[:-1] for line in solved], [line[-1] for line in solved]
            size = {"size": [minimum(absolute(x.pivot), ratio)]}
        self.seen = [np.array([c for c, entry in enumerate(row) if not entry.is_const(0.0)], dtype=np.int64) for row in Y]
        entries = [entry for row, own, t in zip(Y, self.seen, y, strict=True) for entry in (*(row[c] for c in own), t)]
        self.first = np.cumsum([0, *(own.size + 1 for own in self.seen)])[:-1]
        self.height = len(entries)
        inputs, shared = {"tau": len(tau), **self.signals}, {"known": len(known)} if known else {}
        self._function = Compiled(
            declared(rows.mechanism, "rows", {"W": entries, **size}, frozenset({"W"}), inputs, shared=shared)
        )

    def of(self, rows: Rows) -> CompiledRows:
        """Return the same code with the parameters of another robot of this geometry."""
        if rows.mechanism is self.rows.mechanism:
            return self
        other = copy(self)
        other.rows = rows
        return other

    def unpacked(self, flat: Array, columns: int) -> tuple[Array, Array]:
        """Return W (n, columns, N) and y (n, N) of rows (height, N)."""
        W = np.zeros((len(self.seen), columns, flat.shape[1]))
        y = np.empty((len(self.seen), flat.shape[1]))
        for i, (own, at) in enumerate(zip(self.seen, self.first, strict=True)):
            W[i, own] = flat[at : at + own.size]
            y[i] = flat[at + own.size]
        return W, y

    def relation(self, i: int, columns: NDArray[np.int64], states: Callable[[], Motion]) -> Relation:
        """Return the independent columns of equation i over random states, and the coefficients of the others in them."""
        key = (i, columns.tobytes(), self.rows.mechanism.law_values.tobytes())
        if key not in self._relations:
            motion = states()
            generator = np.random.default_rng(0)
            signals = {name: generator.uniform(-50.0, 50.0, (len(motion), laws)) for name, laws in self.signals.items()}
            flat = self.whole(motion, signals=signals)
            own = self.first[i] + np.flatnonzero(np.isin(self.seen[i], columns))
            W = flat[own].T
            size = np.linalg.norm(W, axis=0)
            R, order = pivoted(W / np.where(size > 0.0, size, 1.0))
            rank = int(np.count_nonzero(np.abs(np.diagonal(R)) > DEPENDENT * np.abs(R[0, 0])))
            kept = np.sort(order[:rank])
            others = np.setdiff1d(np.arange(own.size), kept)
            T = np.linalg.lstsq(W[:, kept] / size[kept], W[:, others], rcond=None)[0] / size[kept][:, None]
            self._relations[key] = kept, T
        return self._relations[key]

    def whole(
        self,
        motion: Motion,
        effort: Array | None = None,
        start: Array | None = None,
        first: int = 0,
        signals: Signals | None = None,
    ) -> Array:
        """Return the rows (height, N) of a stretch of motion at once."""
        flat = np.empty((self.height, len(motion)))
        self.over(motion, effort, first, signals)(flat)(slice(0, len(motion)), start)
        return flat

    def over(
        self, motion: Motion, effort: Array | None, first: int = 0, signals: Signals | None = None
    ) -> Callable[[Array], Writer]:
        """Return a function that takes an array (height, at least a stretch's length) and returns its `Writer`.

        The writer takes a stretch of the motion and, for a robot with loops, a closed configuration near its first sample.
        `first` is the number of the motion's first sample, for messages.
        """
        robot = self.rows.mechanism
        tau = np.zeros((len(motion), len(self.rows.efforts))) if effort is None else np.ascontiguousarray(effort)
        more = signals or {name: np.zeros((len(motion), laws)) for name, laws in self.signals.items()}
        if robot.loops:  # solved stretch by stretch to limit memory
            return lambda out: (
                lambda piece, start: self._closed(
                    motion[piece], tau[piece], out, start, first + piece.start, {name: x[piece] for name, x in more.items()}
                )
            )
        inputs = {**entering(robot, motion), **more, **self._known(), "tau": tau}

        def into(out: Array) -> Writer:
            write = self._function.over({**inputs, "W": out})
            return lambda piece, _: write(piece.start, piece.stop)

        return into

    def _known(self) -> dict[str, Array]:
        """Return the known coefficients of force elements."""
        robot = self.rows.mechanism
        return {"known": robot.parameters.values[robot.known_columns]}

    def _closed(self, stretch: Motion, tau: Array, out: Array, start: Array | None, number: int, more: Signals) -> None:
        """Close the loops of a stretch and write its rows; `number` is the index of its first sample."""
        robot = self.rows.mechanism
        positions = close_positions(robot, stretch.q, start, first=number)
        outputs = {"W": out, "size": np.empty((len(stretch), 1))}
        inputs = {**entering(robot, stretch, positions), **more, **self._known(), "tau": tau}
        self._function(len(stretch), {**inputs, **outputs}, threads=False)
        if len(stretch) and not np.min(outputs["size"]) > SINGULAR:
            sample = int(np.argmin(outputs["size"]))
            raise IdentificationError(
                f"robot '{robot.name}' is singular at t = {stretch.t[sample]:.6g} s (sample {number + sample}); choose "
                "other motors, other coordinates or another motion"
            )


def checked_efforts(rows: Rows, effort: ArrayLike, samples: int) -> Array:
    """Return the efforts (N, k) after checking that each sample has a finite value."""
    robot = rows.mechanism
    tau = numbers(effort, "effort")
    motors = len(robot.actuators)
    if not robot.loops and motors > robot.dof and tau.shape == (samples, motors):
        tau = tau @ robot.actuator_matrix[0]  # a preload of redundant motors drops out
    if tau.shape != (samples, len(rows.efforts)):
        if robot.loops:
            raise IdentificationError(
                f"effort has shape {tau.shape} for {samples} samples, but robot '{robot.name}' has {len(rows.efforts)} "
                f"motors ({', '.join(rows.efforts)}) for {robot.dof} degrees of freedom; give the torque of each"
            )
        raise IdentificationError(
            f"effort has shape {tau.shape} but the motion has shape {(samples, robot.dof)}; they must agree"
        )
    if not np.all(np.isfinite(tau)):
        bad = int(np.argwhere(~np.isfinite(tau))[0][0])
        raise IdentificationError(f"effort is not finite at sample {bad}; remove or interpolate it")
    return tau


def check_projection(projection: Projection | Sequence[str]) -> Projection:
    """Return a projection as a string or a tuple."""
    if isinstance(projection, str):
        return projection
    if not isinstance(projection, Sequence) or not all(isinstance(name, str) for name in projection):
        raise IdentificationError(f"projection is {projection!r}; use 'gls', 'independent' or a list of names of motors")
    return tuple(projection)


def projected(x: Equations, rows: Rows, right: NodeRows) -> tuple[NodeRows, Node]:
    """Return S `right` (n, m), and the smallest over the largest pivot of the projection, 1 without one.

    R^-T makes equal, independent noise of the motors white.
    """
    if rows.projection == "independent":
        return right, x.graph.one
    A = actuation(x)
    if rows.projection != "gls":
        block = [A[rows.efforts.index(name)] for name in rows.projection]
        solved, ratio = solve_general([list(column) for column in zip(*block, strict=True)], right)
        return solved, absolute(ratio)
    R = gram_schmidt(A)
    out = [list(row) for row in right]
    for j, line in enumerate(R):  # forward substitution
        out[j] = [b / line[j] for b in out[j]]
        for k in range(j + 1, len(R)):
            out[k] = [b - line[k] * c for b, c in zip(out[k], out[j], strict=True)]
    lengths = [line[j] for j, line in enumerate(R)]
    return out, reduce(minimum, lengths) / reduce(maximum, lengths)


def unprojected(x: Equations, rows: Rows) -> NodeRows:
    """Return S^-1 (n, n), which maps errors of the equations to the robot's coordinates."""
    if rows.projection == "independent":
        n = rows.mechanism.dof
        return [[x.graph.const(float(i == j)) for j in range(n)] for i in range(n)]
    A = actuation(x)
    block = gram_schmidt(A) if rows.projection == "gls" else [A[rows.efforts.index(name)] for name in rows.projection]
    return [list(column) for column in zip(*block, strict=True)]


def motor_map(rows: Rows, motion: Motion) -> Array:
    """Return B of every sample, (N, k, n), k motors for n equations."""
    A = actuator_jacobian(rows.mechanism, motion.q)
    if rows.projection == "gls":  # A = Q R with a positive diagonal, as in the equations: B = Q
        Q, R = np.linalg.qr(A)
        return np.asarray(Q * np.sign(np.diagonal(R, axis1=1, axis2=2))[:, None, :])
    B = np.swapaxes(np.linalg.pinv(A), 1, 2)
    if rows.projection == "independent":
        return np.asarray(B)
    kept = [rows.efforts.index(name) for name in rows.projection]
    return np.asarray(B @ np.swapaxes(A[:, kept], 1, 2))
