"""How measured efforts become equations W beta = y.

A tree robot gives one equation per joint: y = tau_joint. A robot with loops is projected, so that reactions and any internal
preload drop out (A^T u = 0 for a preload u):

    A^T tau = G^T Y_tree phi                                        "independent": one row per coordinate of the robot
    J_r^-T (A^T tau) = J_r^-T G^T Y_tree phi,   J_r = rows of A     a tuple of motors: one row per named motor
    Q^T tau = R^-T G^T Y_tree phi,              A = Q R             "gls": minimum variance for alike, independent motor noise

All three have the same exact solutions; they differ only in how they weigh noise.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynident.errors import IdentificationError, SignalWarning
from dynident.mechanics import Motion, regressor_rows
from dynident.mechanics.batch import TreeMotion
from dynident.mechanics.closure import close_motion
from dynident.mechanism import Mechanism
from dynident.signals import Decimator

Array = NDArray[np.float64]
Projection = str | tuple[str, ...]

#: Share of its rows below which a joint that was left out near standstill is warned about.
FEW = 1.0 / 3.0


@dataclass(frozen=True, eq=False)
class Rows:
    """The equations of a robot.

    Parameters
    ----------
    mechanism : Mechanism
        Robot with n coordinates.
    projection : str or tuple of str
        "independent", "gls", or the names of n motors; ignored for a tree robot.
    absent : tuple of int
        Standard parameters of bodies that were not there, such as those of a payload in a run without it.
    """

    mechanism: Mechanism
    projection: Projection = "independent"
    absent: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not self.mechanism.loops:
            return
        motors = self.efforts
        if len(motors) < self.mechanism.dof:
            raise IdentificationError(
                f"robot '{self.mechanism.name}' has {self.mechanism.dof} degrees of freedom but {len(motors)} actuators; "
                "declare its actuators"
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
        """Return which base columns each equation sees.

        Parameters
        ----------
        pattern : ndarray of bool, (n, b)
            Which columns the robot's coordinates see.

        Returns
        -------
        ndarray of bool, (n, b)
            The same for the equations; a projection mixes them.
        """
        mixed = self.mechanism.loops and self.projection != "independent"
        return np.broadcast_to(pattern.any(axis=0), pattern.shape) if mixed else pattern

    def usable(self, moving: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return which equations hold where some joints or motors stand still and their friction is not known.

        Parameters
        ----------
        moving : ndarray of bool, (N, k)
            False where the joint (the motor of a robot with loops) stands.

        Returns
        -------
        ndarray of bool, (N, n)
            Per equation: of the joint itself; of the named motor when these are all motors; else all motors must move.
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
    ) -> tuple[Array, Array | None]:
        """Return W and y of a stretch of motion.

        Parameters
        ----------
        motion : Motion
            N samples of the robot's coordinates.
        effort : ndarray (N, k) or None
            Measured efforts, columns as in `efforts`.
        columns : ndarray of int, (b,)
            Base columns.
        start : ndarray (n_tree,), optional
            Closed configuration near the first sample of a robot with loops.
        first : int
            Number of the first sample, for messages.

        Returns
        -------
        W : ndarray, (n, b, N)
            Rows of the base regressor.
        y : ndarray (n, N) or None
            What they should give.
        """
        gone = np.isin(columns, self.absent)
        if not self.mechanism.loops:
            W = regressor_rows(self.mechanism, motion, columns)
            W[:, gone] = 0.0
            return W, None if effort is None else effort.T
        closed = close_motion(self.mechanism, motion, start, first)
        G = closed.G
        A = self.mechanism.actuator_matrix[0] @ G
        if self.projection != "independent":  # S G^T Y is (G S^T)^T Y: the weights go into the small factor
            weights = np.swapaxes(self._weights(A, motion), 1, 2)
            G, A = G @ weights, A @ weights
        W = regressor_rows(self.mechanism, motion, columns, TreeMotion(closed.q, closed.v, closed.a, G))
        W[:, gone] = 0.0
        return W, None if effort is None else np.einsum("tkn,tk->nt", A, effort)

    def targets(self, motion: Motion, effort: Array) -> Array:
        """Return what the equations should give, without the regressor.

        Parameters
        ----------
        motion : Motion
            N samples of the robot's coordinates.
        effort : ndarray, (N, k)
            Measured efforts.

        Returns
        -------
        ndarray, (N, n)
            Projected efforts; the efforts themselves for a tree robot.
        """
        if not self.mechanism.loops:
            return effort
        A = self.mechanism.actuator_matrix[0] @ close_motion(self.mechanism, motion).G
        y = np.einsum("tkn,tk->tn", A, effort)
        return np.asarray(y if self.projection == "independent" else np.einsum("tij,tj->ti", self._weights(A, motion), y))

    def _weights(self, A: Array, motion: Motion) -> Array:
        """Return J_r^-T or R^-T of every sample."""
        if self.projection == "gls":
            block = np.asarray(np.linalg.qr(A, mode="r"))
        else:
            block = A[:, [self.efforts.index(name) for name in self.projection]]
        with np.errstate(all="ignore"):
            inverse = _inverse(block)
            size = np.sum(block**2, axis=(1, 2)) * np.sum(
                inverse**2, axis=(1, 2)
            )  # squared condition number, at most n^2 too large
        singular = ~(size < 1e16)
        if singular.any():
            sample = int(np.argmax(singular))
            raise IdentificationError(
                f"robot '{self.mechanism.name}': the motors of the projection do not hold it at t = {motion.t[sample]:.6g} s "
                "(a parallel singularity); choose other motors or another motion"
            )
        return np.swapaxes(inverse, 1, 2)


def moving_rows(moving: NDArray[np.bool_], decimator: Decimator, names: Sequence[str]) -> NDArray[np.bool_]:
    """Return the decimated rows that no standing sample spoils, and say where few are left.

    Parameters
    ----------
    moving : ndarray of bool, (N, n)
        Samples that can be used, per equation.
    decimator : Decimator
        Filter that makes rows of samples.
    names : sequence of str, length n
        Names of the equations.

    Returns
    -------
    ndarray of bool, (rows, n)
        Rows to use.
    """
    usable = decimator.usable(moving)
    share = usable.mean(axis=0)
    if np.any(share < FEW):
        worst = int(np.argmin(share))
        text = (
            f"leaving out what is near standstill leaves {int(usable[:, worst].sum())} of {usable.shape[0]} rows of "
            f"'{names[worst]}', because a row averages over {decimator.taps.size / decimator.rate:.2g} s; give a higher "
            "cutoff=, a smaller standstill= or a motion with fewer reversals"
        )
        if share[worst] == 0.0:
            raise IdentificationError(text)
        warnings.warn(text, SignalWarning, stacklevel=3)
    return usable


def _inverse(blocks: Array) -> Array:
    """Return the inverse of every block (N, n, n), not finite where it has none."""
    try:
        return np.asarray(np.linalg.inv(blocks))
    except np.linalg.LinAlgError:  # one exactly singular block stops all of them: go through them one by one
        inverse = np.full_like(blocks, np.nan)
        for i, block in enumerate(blocks):
            if np.linalg.matrix_rank(block) == block.shape[0]:
                inverse[i] = np.linalg.inv(block)
        return inverse


def check_projection(projection: Projection | Sequence[str]) -> Projection:
    """Return a projection as a string or a tuple.

    Parameters
    ----------
    projection : str or sequence of str
        What the user gave.

    Returns
    -------
    str or tuple of str
        The same, hashable.
    """
    if isinstance(projection, str):
        return projection
    if not isinstance(projection, Sequence) or not all(isinstance(name, str) for name in projection):
        raise IdentificationError(f"projection is {projection!r}; use 'gls', 'independent' or a list of names of motors")
    return tuple(projection)
