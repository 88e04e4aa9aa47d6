"""Batches: checking motions against a mechanism, couplings, and spreading samples over the processor's cores."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.errors import DescriptionError, DynidentError
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


def tree_only(mechanism: Mechanism) -> None:
    """Refuse a mechanism whose loops would be ignored.

    Parameters
    ----------
    mechanism : Mechanism
        Robot.
    """
    if mechanism.loops:
        names = ", ".join(loop.name for loop in mechanism.loops)
        raise DescriptionError(
            f"robot '{mechanism.name}' has loops ({names}), and this version computes trees only; "
            "remove the loops to get its open spanning tree"
        )


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


def tree_motion(mechanism: Mechanism, motion: Motion) -> tuple[Array, Array, Array]:
    """Return q, v, a of all tree coordinates: q_t = G q + g0, v_t = G v, a_t = G a.

    Parameters
    ----------
    mechanism : Mechanism
        Robot.
    motion : Motion
        Motion of its independent coordinates.

    Returns
    -------
    q, v, a : ndarray, (N, n_tree)
        Tree coordinates.
    """
    if not isinstance(motion, Motion):
        raise DynidentError(f"motion is a {type(motion).__name__}; give a dynident.Motion(t, q, v, a)")
    tree_only(mechanism)
    q = coordinates(mechanism, motion.q, "motion.q")
    v, a = sealed(np.ascontiguousarray(motion.v)), sealed(np.ascontiguousarray(motion.a))
    return tree_positions(mechanism, q), tree_rates(mechanism, v), tree_rates(mechanism, a)


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


def tree_positions(mechanism: Mechanism, q: Array) -> Array:
    """Return q_t = G q + g0.

    Parameters
    ----------
    mechanism : Mechanism
        Robot.
    q : ndarray, (N, n)
        Independent positions.

    Returns
    -------
    ndarray, (N, n_tree)
        Positions of all tree coordinates.
    """
    if not mechanism.couplings:
        return q
    G, g0 = mechanism.coupling_map
    return sealed(times(q, G.T) + g0)


def tree_rates(mechanism: Mechanism, v: Array) -> Array:
    """Return v_t = G v.

    Parameters
    ----------
    mechanism : Mechanism
        Robot.
    v : ndarray, (N, n)
        Independent velocities or accelerations.

    Returns
    -------
    ndarray, (N, n_tree)
        Rates of all tree coordinates.
    """
    return sealed(times(v, mechanism.coupling_map[0].T)) if mechanism.couplings else v


def independent(mechanism: Mechanism, tree_efforts: Array) -> Array:
    """Return G^T tau_t.

    Parameters
    ----------
    mechanism : Mechanism
        Robot.
    tree_efforts : ndarray, (N, n_tree)
        Generalised forces on the tree coordinates.

    Returns
    -------
    ndarray, (N, n)
        Generalised forces on the independent coordinates.
    """
    return times(tree_efforts, mechanism.coupling_map[0]) if mechanism.couplings else tree_efforts


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
