"""Batches: checking motions against a mechanism, couplings, and spreading samples over the processor's cores."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.errors import DescriptionError, DynidentError, require
from dynident.mechanics.closure import close_motion
from dynident.mechanics.motion import Motion, numbers
from dynident.mechanism import Mechanism, Parameters

Array = NDArray[np.float64]

SMALL = 4096  # samples below which starting threads costs more than it saves


def cores() -> int:
    """Return the number of processors this process may use.

    Returns
    -------
    int
        At least 1.
    """
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)


def over_samples(samples: int, work: Callable[[int, int], object]) -> None:
    """Call ``work(first, last)`` on stretches that cover all samples, one thread per core.

    `work` must release the interpreter lock (compiled kernels do) and write to its own rows only.

    Parameters
    ----------
    samples : int
        Number of samples.
    work : callable
        Called with the first sample of a stretch and the one past its last.
    """
    workers = cores()
    if samples < SMALL or workers == 1:
        work(0, samples)
        return
    # Whole lanes per stretch, so that results do not depend on how many cores there are.
    step = -(-samples // (workers * 32)) * 32
    starts = range(0, samples, step)
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(lambda first: work(first, min(first + step, samples)), starts))


def tree_only(mechanism: Mechanism, purpose: str) -> None:
    """Refuse a robot with loops where only trees can be treated.

    Parameters
    ----------
    mechanism : Mechanism
        Robot.
    purpose : str
        What is for trees only, as in "closed-form inverse kinematics".
    """
    if mechanism.loops:
        names = ", ".join(loop.name for loop in mechanism.loops)
        raise DescriptionError(f"{purpose} is for trees only, but robot '{mechanism.name}' has loops ({names})")


def coordinates(mechanism: Mechanism, values: ArrayLike, what: str) -> Array:
    """Return an (N, n) array of coordinates after checking it against the robot; one sample may be a plain vector.

    Parameters
    ----------
    mechanism : Mechanism
        Robot with n independent coordinates.
    values : array_like, (N, n) or (n,)
        Positions, velocities, accelerations or torques.
    what : str
        How to name them in an error.

    Returns
    -------
    ndarray, (N, n)
        Contiguous copy or view.
    """
    require(mechanism, Mechanism, "mechanism")
    array = numbers(values, what)
    array = np.ascontiguousarray(array[None, :] if array.ndim == 1 else array)
    if array.ndim != 2 or array.shape[1] != mechanism.dof:
        raise DynidentError(
            f"{what} has shape {array.shape} but robot '{mechanism.name}' has {mechanism.dof} coordinates "
            f"({', '.join(mechanism.coordinate_names)}); give one column per coordinate"
        )
    if not np.all(np.isfinite(array)):
        bad = int(np.argwhere(~np.isfinite(array))[0][0])
        raise DynidentError(f"{what} is not finite at sample {bad}; remove or interpolate it")
    return sealed(array)


def sealed(array: Array) -> Array:
    """Return a read-only view: kernels are compiled once per kind of array, so all their inputs are of this one kind.

    Parameters
    ----------
    array : ndarray
        Any array.

    Returns
    -------
    ndarray
        The same numbers.
    """
    view = array.view()
    view.flags.writeable = False
    return view


class TreeMotion(NamedTuple):
    """Motion of all tree coordinates and how it follows from the robot's own.

    Parameters
    ----------
    q, v, a : ndarray, (N, n_tree)
        Tree positions, velocities and accelerations.
    G : None, ndarray (n_tree, n) or ndarray (N, n_tree, n)
        v = G nu: absent for a plain tree, constant with couplings, of the position with loops.
    """

    q: Array
    v: Array
    a: Array
    G: Array | None


def tree_motion(mechanism: Mechanism, motion: Motion) -> TreeMotion:
    """Return q, v, a of all tree coordinates: q_t = q, or G q + g0 with couplings, or on the loop closure.

    Parameters
    ----------
    mechanism : Mechanism
        Robot.
    motion : Motion
        Motion of its independent coordinates.

    Returns
    -------
    TreeMotion
        Tree motion and G.
    """
    require(mechanism, Mechanism, "mechanism")
    require(motion, Motion, "motion")
    q = coordinates(mechanism, motion.q, "motion.q")
    v, a = sealed(np.ascontiguousarray(motion.v)), sealed(np.ascontiguousarray(motion.a))
    if mechanism.loops:
        closed = close_motion(mechanism, motion)
        return TreeMotion(sealed(closed.q), sealed(closed.v), sealed(closed.a), closed.G)
    if any(coupling.function is not None for coupling in mechanism.couplings):
        return _curved(mechanism, q, v, a)
    if mechanism.couplings:
        G, g0 = mechanism.coupling_map
        return TreeMotion(sealed(times(q, G.T) + g0), sealed(times(v, G.T)), sealed(times(a, G.T)), G)
    return TreeMotion(q, v, a, None)


def times(x: Array, A: Array) -> Array:
    """Return x A, every row summed in the same order, so that a sample does not depend on the batch around it.

    BLAS chooses its order by the shape of the arrays; here only the non-zero entries of A are visited, one by one.

    Parameters
    ----------
    x : ndarray, (N, m) or (N, m, p)
        Samples; a third axis is carried along.
    A : ndarray, (m, k)
        Small, mostly empty matrix.

    Returns
    -------
    ndarray, (N, k) or (N, k, p)
        sum_i x[:, i] A[i, j].
    """
    out = np.zeros((x.shape[0], A.shape[1], *x.shape[2:]))
    for i, j in np.argwhere(A):
        out[:, j] += x[:, i] * A[i, j]
    return out


def _curved(mechanism: Mechanism, q: Array, v: Array, a: Array) -> TreeMotion:
    """Return the tree motion of a robot whose couplings are functions: v_j = g . v, a_j = g . a + v . H v."""
    linear, g0 = mechanism.coupling_map
    G = np.repeat(linear[None], q.shape[0], axis=0)
    x, rates, bias = times(q, linear.T) + g0, times(v, linear.T), times(a, linear.T)
    for coupling in mechanism.couplings:
        if coupling.function is not None:
            row = mechanism.tree.coordinates.index(coupling.joint)
            of = [mechanism.coordinate_names.index(name) for name in coupling.of]
            value, gradient, hessian = coupling.evaluate(q[:, of])
            x[:, row], G[:, row, of] = value, gradient
            rates[:, row] = np.sum(gradient * v[:, of], axis=1)
            bias[:, row] = np.sum(gradient * a[:, of], axis=1) + np.einsum("si,sij,sj->s", v[:, of], hessian, v[:, of])
    return TreeMotion(sealed(x), sealed(rates), sealed(bias), G)


def at_rest(mechanism: Mechanism, q: ArrayLike, v: ArrayLike | None = None) -> Motion:
    """Return a motion through given positions without acceleration (and without velocity when none is given).

    Parameters
    ----------
    mechanism : Mechanism
        Robot.
    q : array_like, (N, n) or (n,)
        Positions.
    v : array_like (N, n) or (n,), optional
        Velocities.

    Returns
    -------
    Motion
        The motion; time is only a counter.
    """
    x = coordinates(mechanism, q, "q")
    rates = np.zeros_like(x) if v is None else coordinates(mechanism, v, "v")
    if rates.shape != x.shape:
        raise DynidentError(f"v has {rates.shape[0]} samples but q has {x.shape[0]}; they must agree")
    return Motion(np.arange(float(x.shape[0])), x, rates, np.zeros_like(x))


def project(G: Array | None, rows: Array) -> Array:
    """Return G^T X: generalised forces, or regressor rows, on the robot's own coordinates.

    Parameters
    ----------
    G : None, ndarray (n_tree, n) or ndarray (N, n_tree, n)
        As in `TreeMotion`.
    rows : ndarray, (N, n_tree) or (N, n_tree, p)
        Tree rows of every sample.

    Returns
    -------
    ndarray, (N, n) or (N, n, p)
        Projected rows.
    """
    if G is None:
        return rows
    if G.ndim == 2:
        return times(rows, G)
    if rows.ndim == 2:
        return np.asarray(np.einsum("stn,st->sn", G, rows))
    return np.asarray(np.swapaxes(G, 1, 2) @ rows)


def values_of(mechanism: Mechanism, parameters: Parameters | ArrayLike | None) -> Array:
    """Return the standard parameter vector, checked against the robot.

    Parameters
    ----------
    mechanism : Mechanism
        Robot.
    parameters : Parameters, array_like (p,) or None
        Values; the robot's prior ones when None.

    Returns
    -------
    ndarray, (p,)
        Values in the order of ``mechanism.parameters``.
    """
    require(mechanism, Mechanism, "mechanism")
    if parameters is None:
        return mechanism.parameters.values
    expected = mechanism.parameters
    if isinstance(parameters, Parameters):
        if parameters.names != expected.names:
            odd = sorted(set(parameters.names) ^ set(expected.names))[:3]
            raise DescriptionError(
                f"parameters do not belong to robot '{mechanism.name}': they differ in {', '.join(odd) or 'their order'}; "
                "start from mechanism.parameters.replace(...)"
            )
        values = parameters.values
    else:
        values = numbers(parameters, "parameters")
    if values.shape != (len(expected),):
        raise DescriptionError(
            f"parameters have shape {values.shape} but robot '{mechanism.name}' has {len(expected)} "
            f"({' ... '.join(expected.names[:: max(1, len(expected) - 1)])}); give one number each"
        )
    if not np.all(np.isfinite(values)):
        bad = int(np.argmin(np.isfinite(values)))
        raise DescriptionError(f"parameter '{expected.names[bad]}' is {values[bad]}; every parameter must be finite")
    return values


def inertial_values(mechanism: Mechanism, values: Array) -> Array:
    """Return the inertial parameters in node frames, as the kernels need them.

    Parameters
    ----------
    mechanism : Mechanism
        Robot.
    values : ndarray, (p,)
        Standard parameters.

    Returns
    -------
    ndarray, (10 bodies,)
        Ten per rigid group, in its node's frame.
    """
    tree = mechanism.tree
    phi = values[: tree.inertias.size]
    return sealed(np.ascontiguousarray(phi if tree.to_node is None else tree.to_node @ phi))
