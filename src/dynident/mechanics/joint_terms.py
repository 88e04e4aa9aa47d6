"""Joint and motor terms (rotor inertia, friction, offset, spring) as regressor columns and torques."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dynident.friction import TERMS, JointTerm
from dynident.mechanics.batch import times
from dynident.mechanism import Mechanism

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TermGroup:
    """All columns of one term, evaluated together.

    Parameters
    ----------
    term : JointTerm
        The term.
    coordinates : ndarray of int, (k,)
        Tree coordinates that have it.
    columns : ndarray of int, (k,)
        Their columns in the regressor.
    """

    term: JointTerm
    coordinates: NDArray[np.int64]
    columns: NDArray[np.int64]


@lru_cache(maxsize=64)
def joint_groups(mechanism: Mechanism) -> tuple[TermGroup, ...]:
    """Return the joint terms of a mechanism, grouped by kind.

    Parameters
    ----------
    mechanism : Mechanism
        Robot.

    Returns
    -------
    tuple of TermGroup
        One group per term in use.
    """
    index = {name: i for i, name in enumerate(mechanism.tree.coordinates)}
    first = mechanism.tree.inertias.size
    found: dict[str, tuple[list[int], list[int]]] = {}
    for j, (coordinate, symbol) in enumerate(mechanism.joint_columns):
        coordinates, columns = found.setdefault(symbol, ([], []))
        coordinates.append(index[coordinate])
        columns.append(first + j)
    return tuple(TermGroup(TERMS[s], np.array(c, dtype=np.int64), np.array(k, dtype=np.int64)) for s, (c, k) in found.items())


def motor_columns(mechanism: Mechanism) -> Iterator[tuple[int, JointTerm, Array]]:
    """Yield column, term and joint-side coupling row (n_tree,) of every motor term.

    Parameters
    ----------
    mechanism : Mechanism
        Robot.

    Yields
    ------
    tuple
        Column in the regressor, term, and c with rho = c q_tree.
    """
    first = mechanism.tree.inertias.size + len(mechanism.joint_columns)
    index = {name: i for i, name in enumerate(mechanism.tree.coordinates)}
    rows = {}
    for actuator in mechanism.actuators:
        rows[actuator.name] = row = np.zeros(len(index))
        for coordinate, coefficient in actuator.coupling.items():
            row[index[coordinate]] = coefficient
    for j, (name, symbol) in enumerate(mechanism.actuator_columns):
        yield first + j, TERMS[symbol], rows[name]


def joint_torques(mechanism: Mechanism, values: Array, q: Array, v: Array, a: Array) -> Array:
    """Return the torque of all joint terms on the tree coordinates.

    Parameters
    ----------
    mechanism : Mechanism
        Robot.
    values : ndarray, (p,)
        Standard parameters.
    q, v, a : ndarray, (N, n_tree)
        Tree motion.

    Returns
    -------
    ndarray, (N, n_tree)
        Torques.
    """
    tau = np.zeros_like(q)
    for group in joint_groups(mechanism):
        active = values[group.columns] != 0.0
        if active.any():
            c = group.coordinates[active]
            tau[:, c] += group.term.column(q[:, c], v[:, c], a[:, c]) * values[group.columns[active]]
    return tau


def motor_torques(mechanism: Mechanism, values: Array, q: Array, v: Array, a: Array) -> Array:
    """Return the torque of all motor terms on the tree coordinates.

    Parameters
    ----------
    mechanism : Mechanism
        Robot.
    values : ndarray, (p,)
        Standard parameters.
    q, v, a : ndarray, (N, n_tree)
        Tree motion.

    Returns
    -------
    ndarray, (N, n_tree)
        Torques.
    """
    tau = np.zeros_like(q)
    for column, term, row in motor_columns(mechanism):
        if values[column] != 0.0:
            tau += values[column] * motor_column(term, row, q, v, a)
    return tau


def motor_column(term: JointTerm, row: Array, q: Array, v: Array, a: Array) -> Array:
    """Return the regressor column of a motor term on the tree coordinates: c^T column(c q, c v, c a).

    Parameters
    ----------
    term : JointTerm
        The term.
    row : ndarray, (n_tree,)
        c, how the motor turns with the coordinates.
    q, v, a : ndarray, (N, n_tree)
        Tree motion.

    Returns
    -------
    ndarray, (N, n_tree)
        Torque per unit of the parameter.
    """
    turn = row[:, None]
    return np.asarray(term.column(times(q, turn), times(v, turn), times(a, turn)) * row)
