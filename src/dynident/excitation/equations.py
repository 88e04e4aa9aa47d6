"""The rows of the regression along a motion, and their pullback: derivatives of sum B W by q, v and a.

A robot without loops is differentiated exactly by one adjoint sweep (`kernels.regressor_pullback`). With loops, or through any
function, every sample's rows depend on that sample's q, v, a only, so 6 n evaluations of the whole batch by central differences
give all derivatives at once, whatever the number of trajectory parameters. Signs of friction are smoothed to tanh(v / eps).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dynident.excitation.terms import smooth_term
from dynident.friction import TERMS
from dynident.identify.base import BaseParameters
from dynident.identify.rows import Projection, Rows
from dynident.mechanics import Motion, regressor_rows
from dynident.mechanics.batch import TreeMotion, sealed
from dynident.mechanics.closure import close_motion, close_positions, close_rates
from dynident.mechanics.joint_terms import joint_groups, motor_columns
from dynident.mechanism import Mechanism
from dynident.mechanism.tree import FREE, SPHERICAL

Array = NDArray[np.float64]

STEP = 1e-5  # of central differences; rows are of order one and smooth over angles of order one


class Equations(Protocol):
    """Rows W beta = y of any robot as functions of the motion."""

    @property
    def dof(self) -> int:
        """Number of coordinates of the motion."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the parameters, one per column."""

    @property
    def seen(self) -> NDArray[np.bool_]:
        """Which columns each equation sees at all, (rows, b)."""

    def rows(self, q: Array, v: Array, a: Array) -> Array:
        """Return W (rows, b, N).

        Parameters
        ----------
        q, v, a : ndarray, (N, n)
            Motion.

        Returns
        -------
        ndarray
            Rows of the base regressor.
        """

    def pullback(self, q: Array, v: Array, a: Array, B: Array) -> tuple[Array, Array, Array]:
        """Return the derivatives of sum B W by q, v, a, (N, n) each.

        Parameters
        ----------
        q, v, a : ndarray, (N, n)
            Motion.
        B : ndarray
            Weights of the rows, as many as `rows` returns.

        Returns
        -------
        tuple of ndarray
            Derivatives of the weighted sum of all rows with respect to q, v and a, (N, n) each.
        """


@dataclass(frozen=True, eq=False)
class RobotEquations:
    """The base regressor of a robot, projected when it has loops.

    Parameters
    ----------
    base : BaseParameters
        Base parameters and the robot.
    eps : float
        Speed over which signs of friction are smoothed [rad/s or m/s]; 0 for true signs.
    projection : str or tuple of str
        Equations of a robot with loops, see `dynident.identify.rows`.
    """

    base: BaseParameters
    eps: float = 0.0
    projection: Projection = "gls"

    @property
    def mechanism(self) -> Mechanism:
        """The robot."""
        return self.base.mechanism

    @property
    def dof(self) -> int:
        """Number of coordinates."""
        return self.mechanism.dof

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the base parameters."""
        return self.base.names

    @cached_property
    def seen(self) -> NDArray[np.bool_]:
        """Which base columns each equation sees."""
        return np.asarray(Rows(self.mechanism, self.projection).seen(self.base.seen))

    @cached_property
    def exact(self) -> bool:
        """True when derivatives are exact: a tree of turning, sliding and fixed joints with linear couplings."""
        kinds = self.mechanism.tree.arrays.kind
        curved = any(coupling.function is not None for coupling in self.mechanism.couplings)
        return not (self.mechanism.loops or curved or np.any((kinds == SPHERICAL) | (kinds == FREE)))

    @cached_property
    def _terms(self) -> list[tuple[int, str, Array]]:
        """Slot, symbol and tree row c of every joint and motor term among the base columns."""
        slot = {int(c): i for i, c in enumerate(self.base.columns)}
        n = len(self.mechanism.tree.coordinates)
        found = []
        for group in joint_groups(self.mechanism):
            for c, column in zip(group.coordinates, group.columns, strict=True):
                if int(column) in slot:
                    found.append((slot[int(column)], group.term.symbol, np.eye(n)[c]))
        for column, term, row in motor_columns(self.mechanism):
            if column in slot:
                found.append((slot[column], term.symbol, row))
        return found

    def _tree(self, q: Array, v: Array, a: Array) -> TreeMotion:
        robot = self.mechanism
        if robot.loops:
            closed = close_motion(robot, Motion(np.arange(float(len(q))), q, v, a))
            return TreeMotion(sealed(closed.q), sealed(closed.v), sealed(closed.a), closed.G)
        if any(coupling.function is not None for coupling in robot.couplings):
            from dynident.mechanics.batch import tree_motion  # noqa: PLC0415 - only for these robots

            return tree_motion(robot, Motion(np.arange(float(len(q))), q, v, a))
        if robot.couplings:
            G, g0 = robot.coupling_map
            x, dx, ddx = (sealed(np.ascontiguousarray(y)) for y in (q @ G.T + g0, v @ G.T, a @ G.T))
            return TreeMotion(x, dx, ddx, G)
        x, dx, ddx = (sealed(np.ascontiguousarray(y)) for y in (q, v, a))
        return TreeMotion(x, dx, ddx, None)

    def rows(self, q: Array, v: Array, a: Array) -> Array:
        """Return W.

        Parameters
        ----------
        q, v, a : ndarray, (N, n)
            Motion of the robot's coordinates.

        Returns
        -------
        ndarray, (n, b, N)
            Rows of the base regressor, signs smoothed.
        """
        return self._rows(self._tree(q, v, a), Motion(np.arange(float(len(q))), q, v, a))

    def _rows(self, tree: TreeMotion, motion: Motion) -> Array:
        robot = self.mechanism
        W = regressor_rows(robot, motion, self.base.columns, tree)
        if self.eps > 0.0:
            for slot, symbol, row in self._terms:
                if TERMS[symbol].jumps:
                    speed = tree.v @ row
                    smooth, sharp = (smooth_term(symbol, speed, speed, speed, eps)[0] for eps in (self.eps, 0.0))
                    along = row if tree.G is None else row @ tree.G  # (n,) or (N, n)
                    W[:, slot] += along.T * (smooth - sharp) if along.ndim == 2 else along[:, None] * (smooth - sharp)
        if not robot.loops or self.projection == "independent":
            return W
        A = robot.actuator_matrix[0] @ np.asarray(tree.G)
        if self.projection == "gls":
            block = np.asarray(np.linalg.qr(A, mode="r"))
        else:
            motors = Rows(robot, self.projection).efforts
            block = A[:, [motors.index(name) for name in self.projection]]
        return np.asarray(np.einsum("tji,jbt->ibt", np.linalg.inv(block), W, optimize=True))

    def _closed_differences(self, q: Array, v: Array, a: Array, B: Array) -> tuple[Array, Array, Array]:
        """Return `differences` of a robot with loops in one batch, loops closed once per position."""
        robot, (N, n) = self.mechanism, q.shape
        blocks = []
        for k in range(2 * n):  # every second motion backward, so that neighbours stay close and the branch is kept
            moved = q.copy()
            moved[:, k // 2] += STEP if k % 2 == 0 else -STEP
            blocks.append(moved if k % 2 == 0 else moved[::-1])
        closed = close_positions(robot, np.concatenate(blocks)).reshape(2 * n, N, -1)
        closed[1::2] = closed[1::2, ::-1]
        here = close_positions(robot, q)
        speeds, rates = (np.tile(x, (6 * n, 1, 1)) for x in (v, a))
        for j in range(n):
            for side, h in ((0, STEP), (1, -STEP)):
                speeds[2 * n + 2 * j + side, :, j] += h
                rates[4 * n + 2 * j + side, :, j] += h
        positions = np.concatenate([closed, np.tile(here, (4 * n, 1, 1))]).reshape(6 * n * N, -1)
        flat_v, flat_a = speeds.reshape(-1, n), rates.reshape(-1, n)
        whole = close_rates(robot, positions, flat_v, flat_a)
        tree = TreeMotion(sealed(whole.q), sealed(whole.v), sealed(whole.a), whole.G)
        W = self._rows(tree, Motion(np.arange(6.0 * n * N), positions[:, robot.closure.independent], flat_v, flat_a))
        sums = np.einsum("ibt,ibkt->kt", B, W.reshape(*W.shape[:2], 6 * n, N)).reshape(3, n, 2, N)
        slope = (sums[:, :, 0] - sums[:, :, 1]) / (2.0 * STEP)
        return slope[0].T, slope[1].T, slope[2].T

    def pullback(self, q: Array, v: Array, a: Array, B: Array) -> tuple[Array, Array, Array]:
        """Return the derivatives of sum B W by q, v, a.

        Parameters
        ----------
        q, v, a : ndarray, (N, n)
            Motion.
        B : ndarray, (n, b, N)
            Weights.

        Returns
        -------
        dq, dv, da : ndarray, (N, n)
            Derivatives; exact for trees, by central differences otherwise.
        """
        if self.mechanism.loops:
            return self._closed_differences(q, v, a, B)
        if not self.exact:
            return differences(self.rows, q, v, a, B)
        from dynident.excitation import kernels  # noqa: PLC0415 - numba is imported on first use

        robot = self.mechanism
        tree = self._tree(q, v, a)
        G = tree.G
        if G is not None:
            B = np.einsum("ij,jbt->ibt", G, B)
        inertial = robot.tree.inertias.size
        columns = self.base.columns
        slot = np.full(max(inertial, 1), -1)
        bodies = columns < inertial
        if robot.tree.to_node is None:
            slot[columns[bodies]] = np.flatnonzero(bodies)
            weights = np.ascontiguousarray(B)
        else:  # parameters of node frames mix those of link frames
            weights = np.ascontiguousarray(robot.tree.to_node[:, columns[bodies]] @ B[:, bodies])
            slot[:] = np.arange(slot.size)
        out = [np.zeros_like(tree.q) for _ in range(3)]
        kernels.regressor_pullback(robot.tree.arrays, tree.q, tree.v, tree.a, slot, weights, *out)
        for index, symbol, row in self._terms:
            use = np.flatnonzero(row)
            x, dx, ddx = (y[:, use] @ row[use] for y in (tree.q, tree.v, tree.a))
            weight = row[use] @ B[use, index]
            for bar, slope in zip(out, smooth_term(symbol, x, dx, ddx, self.eps)[1:], strict=True):
                bar[:, use] += (slope * weight)[:, None] * row[use]
        return (out[0], out[1], out[2]) if G is None else (out[0] @ G, out[1] @ G, out[2] @ G)


@dataclass(frozen=True, eq=False)
class FunctionEquations:
    """Rows from any function of the motion, such as a closed-form regressor in task coordinates.

    Parameters
    ----------
    function : callable
        ``function(q, v, a)`` with (N, dof) arrays returns W (rows, b, N); each sample's rows must depend on that sample only.
    dof : int
        Number of coordinates.
    names : tuple of str
        Names of the b parameters.
    equations : int
        Number of rows.
    """

    function: Callable[[Array, Array, Array], Array]
    dof: int
    names: tuple[str, ...]
    equations: int

    @property
    def seen(self) -> NDArray[np.bool_]:
        """Every equation may see every column."""
        return np.ones((self.equations, len(self.names)), dtype=np.bool_)

    def rows(self, q: Array, v: Array, a: Array) -> Array:
        """Return W.

        Parameters
        ----------
        q, v, a : ndarray, (N, dof)
            Motion.

        Returns
        -------
        ndarray, (rows, b, N)
            Rows.
        """
        return self.function(q, v, a)

    def pullback(self, q: Array, v: Array, a: Array, B: Array) -> tuple[Array, Array, Array]:
        """Return the derivatives of sum B W by q, v, a, by central differences.

        Parameters
        ----------
        q, v, a : ndarray, (N, dof)
            Motion.
        B : ndarray, (rows, b, N)
            Weights.

        Returns
        -------
        dq, dv, da : ndarray, (N, dof)
            Derivatives.
        """
        return differences(self.function, q, v, a, B)


def differences(
    rows: Callable[[Array, Array, Array], Array], q: Array, v: Array, a: Array, B: Array, step: float = STEP
) -> tuple[Array, Array, Array]:
    """Return the derivatives of sum B W(q, v, a) sample by sample, by central differences of the whole batch.

    Parameters
    ----------
    rows : callable
        W (rows, b, N) of a motion.
    q, v, a : ndarray, (N, n)
        Motion.
    B : ndarray, (rows, b, N)
        Weights.
    step : float
        Step.

    Returns
    -------
    dq, dv, da : ndarray, (N, n)
        Derivatives.
    """
    state = [q, v, a]
    out = [np.zeros_like(q) for _ in range(3)]
    for i, x in enumerate(state):
        for j in range(q.shape[1]):
            sides = []
            for h in (step, -step):
                moved = x.copy()
                moved[:, j] += h
                sides.append(np.einsum("ibt,ibt->t", B, rows(*[moved if k == i else y for k, y in enumerate(state)])))
            out[i][:, j] = (sides[0] - sides[1]) / (2.0 * step)
    return out[0], out[1], out[2]
