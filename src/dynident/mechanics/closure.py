"""Robots with loops: positions on the constraint manifold, the projector G, the bias b and the actuator Jacobian A.

Phi(q_t) = 0,    v_t = G(q) nu,    a_t = G nu_dot + b(q, nu),    rho_dot = A nu,    A^T tau = G^T (tree torques).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.errors import DynidentError
from dynident.mechanics.motion import Motion
from dynident.mechanism import Mechanism

Array = NDArray[np.float64]

STRETCH = 4096  # samples closed at a time when only a few of them are kept
OPEN = 1e-8  # largest residual of a closed loop
REACH = 0.5  # largest change of a dependent coordinate [rad or m] that one Newton solve may bridge
SINGULAR = 1e-7  # pivot ratio of the closure below which the independent coordinates no longer determine the others


@dataclass(frozen=True, eq=False)
class ClosedMotion:
    """A motion of all tree coordinates that keeps the loops closed.

    Parameters
    ----------
    q, v, a : ndarray, (N, n_tree)
        Tree positions, velocities and accelerations.
    G : ndarray, (N, n_tree, n)
        v = G nu.
    pivot : ndarray, (N,)
        Ratio of the smallest to the largest pivot of the closure; near zero at a singularity of the chosen coordinates.
    """

    q: Array
    v: Array
    a: Array
    G: Array
    pivot: Array


def close_positions(
    mechanism: Mechanism, q: ArrayLike, start: Array | None = None, given: Sequence[str] | None = None, first: int = 0
) -> Array:
    """Return the tree coordinates that close the loops, following the branch of `start` by continuity.

    Parameters
    ----------
    mechanism : Mechanism
        Robot with loops.
    q : array_like, (N, n)
        Independent coordinates, in an order of time in which neighbours are close.
    start : ndarray (n_tree,), optional
        Closed configuration to start from; the robot's home when omitted.
    given : sequence of str, optional
        Tree coordinates whose positions `q` holds, when they are not the robot's own.
    first : int
        Number of the first sample, for messages.

    Returns
    -------
    ndarray, (N, n_tree)
        Closed configurations.
    """
    from dynident.mechanics import loop_kernels  # noqa: PLC0415 - numba is imported on first use

    closure = mechanism.closure
    independent, dependent = closure.independent, closure.dependent
    names = mechanism.coordinate_names
    if given is not None:
        names = tuple(given)
        independent = np.array([mechanism.tree.coordinates.index(name) for name in names], dtype=np.int64)
        dependent = np.setdiff1d(np.arange(closure.home.size), independent)
    x = _sealed(q)
    if x.ndim != 2 or x.shape[1] != closure.dof:
        raise DynidentError(f"positions have shape {x.shape}; give one column for each of {', '.join(names)}")
    origin = closure.home if start is None else start
    out = np.empty((x.shape[0], origin.size))
    tree = mechanism.tree.arrays
    bad = loop_kernels.close_positions(tree, closure.selected, independent, dependent, x, _sealed(origin), REACH, out)
    if bad >= 0:
        where = ", ".join(f"{name} = {value:.6g}" for name, value in zip(names, x[bad], strict=True))
        raise DynidentError(
            f"robot '{mechanism.name}' cannot follow the motion at sample {first + bad} ({where}): out of reach, or "
            "through a singularity where the branch is lost; shrink the motion or move it away from there"
        )
    for row in {0, x.shape[0] // 2, x.shape[0] - 1} if x.shape[0] else set():
        gap = loop_kernels.gap(tree, closure.arrays, out[row])
        if gap > OPEN:
            raise DynidentError(
                f"robot '{mechanism.name}': the loops stay open by {gap:.3g} at sample {first + row}; they contradict "
                "each other"
            )
    return out


def closure_starts(mechanism: Mechanism, q: ArrayLike, samples: Sequence[int]) -> list[Array]:
    """Return the closed configuration at some samples of a motion, with memory for one stretch at a time.

    Parameters
    ----------
    mechanism : Mechanism
        Robot with loops.
    q : array_like, (N, n)
        Independent coordinates over time.
    samples : sequence of int
        Samples wanted, ascending.

    Returns
    -------
    list of ndarray, (n_tree,)
        Closed configurations there; later stretches can be solved from them independently.
    """
    x = np.asarray(q, dtype=np.float64)
    found: list[Array] = []
    here, at = mechanism.closure.home, 0
    for sample in samples:
        while at <= sample:
            stop = min(at + STRETCH, sample + 1)
            here = close_positions(mechanism, x[at:stop], here, first=at)[-1]
            at = stop
        found.append(here)
    return found


def close_motion(mechanism: Mechanism, motion: Motion, start: Array | None = None, first: int = 0) -> ClosedMotion:
    """Return the motion of all tree coordinates that goes with a motion of the independent ones.

    Parameters
    ----------
    mechanism : Mechanism
        Robot with loops.
    motion : Motion
        N samples of its independent coordinates.
    start : ndarray (n_tree,), optional
        Closed configuration near the first sample; the robot's home when omitted.
    first : int
        Number of the first sample, for messages.

    Returns
    -------
    ClosedMotion
        Tree motion and projector.
    """
    positions = close_positions(mechanism, motion.q, start, first=first)
    return close_rates(mechanism, positions, motion.v, motion.a, first)


def close_rates(mechanism: Mechanism, positions: Array, v: ArrayLike, a: ArrayLike, first: int = 0) -> ClosedMotion:
    """Return velocities, accelerations and projector at closed positions.

    Parameters
    ----------
    mechanism : Mechanism
        Robot with loops.
    positions : ndarray, (N, n_tree)
        Closed configurations.
    v, a : array_like, (N, n)
        Independent velocities and accelerations.
    first : int
        Number of the first sample, for messages.

    Returns
    -------
    ClosedMotion
        Tree motion and projector.
    """
    from dynident.mechanics import loop_kernels  # noqa: PLC0415 - numba is imported on first use
    from dynident.mechanics.batch import over_samples  # noqa: PLC0415 - batch imports this module

    closure = mechanism.closure
    samples, width, n = positions.shape[0], positions.shape[1], closure.dof
    x, nu, nu_dot = _sealed(positions), _sealed(v), _sealed(a)
    G, vt, at, pivot = np.empty((samples, width, n)), np.empty((samples, width)), np.empty((samples, width)), np.empty(samples)
    tree, rows = mechanism.tree.arrays, (closure.selected, closure.independent, closure.dependent)
    over_samples(
        samples,
        lambda i, j: loop_kernels.close_rates(tree, *rows, x[i:j], nu[i:j], nu_dot[i:j], G[i:j], vt[i:j], at[i:j], pivot[i:j]),
    )
    if samples and np.min(pivot) < SINGULAR:
        bad = int(np.argmin(pivot))
        raise DynidentError(
            f"robot '{mechanism.name}' is singular at sample {first + bad}: {', '.join(mechanism.coordinate_names)} do not "
            "determine the other joints there; keep away from it or choose other independent coordinates"
        )
    return ClosedMotion(positions, vt, at, G, pivot)


def _sealed(values: ArrayLike) -> Array:
    """Return a read-only contiguous view: kernels are compiled once per kind of array, so all inputs are of one kind."""
    view = np.ascontiguousarray(values, dtype=np.float64).view()
    view.flags.writeable = False
    return view


def coordinates_from_actuators(mechanism: Mechanism, rho: ArrayLike) -> Array:
    """Return the robot's coordinates from motor positions (forward problem), least squares when there are more motors.

        minimise ||N q_t + n0 - rho||^2   subject to   Phi(q_t) = 0,        followed by continuity from home

    Parameters
    ----------
    mechanism : Mechanism
        Robot with k actuators, each turning with one tree coordinate when there are loops.
    rho : array_like, (N, k)
        Motor positions.

    Returns
    -------
    ndarray, (N, n)
        Coordinates.
    """
    motors = np.atleast_2d(np.asarray(rho, dtype=np.float64))
    N, n0 = mechanism.actuator_matrix
    if motors.shape[1] != N.shape[0]:
        raise DynidentError(
            f"motor positions have {motors.shape[1]} columns but robot '{mechanism.name}' has {N.shape[0]} motors"
        )
    if not mechanism.loops:
        return np.asarray((motors - n0) @ np.linalg.pinv(N).T)
    driven = [next(iter(actuator.coupling)) for actuator in mechanism.actuators]
    if any(len(actuator.coupling) > 1 for actuator in mechanism.actuators):
        raise DynidentError(f"robot '{mechanism.name}' has motors that turn with several joints; give joint positions instead")
    joints = (motors - n0) / np.array(
        [actuator.ratio * actuator.coupling[c] for actuator, c in zip(mechanism.actuators, driven, strict=True)]
    )
    chosen = _best_motors(mechanism, driven)
    tree = close_positions(mechanism, joints[:, chosen], given=[driven[i] for i in chosen])
    x = tree[:, mechanism.closure.independent]
    if len(driven) == mechanism.closure.dof:
        return x
    zero = np.zeros_like(x)
    for _ in range(4):  # Gauss-Newton from the solution of the chosen motors: all of them pull alike
        G = close_rates(mechanism, tree, zero, zero).G
        error = motors - n0 - tree @ N.T
        step = np.linalg.pinv(N @ G) @ error[:, :, None]
        x = x + step[:, :, 0]
        tree = close_positions(mechanism, x, tree[0])
        if np.max(np.abs(step)) < 1e-10:
            break
    return x


def motion_from_actuators(mechanism: Mechanism, motion: Motion) -> Motion:
    """Return the motion of the robot's coordinates from that of its motors.

        rho_dot = A nu,    rho_ddot = A nu_dot + N b        solved by least squares when there are more motors

    Parameters
    ----------
    mechanism : Mechanism
        Robot with loops and k actuators.
    motion : Motion
        N samples of the motor positions, velocities and accelerations, columns in the order of ``mechanism.actuators``.

    Returns
    -------
    Motion
        N samples of the robot's coordinates.
    """
    N = mechanism.actuator_matrix[0]
    q = coordinates_from_actuators(mechanism, motion.q)
    tree = close_positions(mechanism, q)
    zero = np.zeros_like(q)
    inverse = np.linalg.pinv(N @ close_rates(mechanism, tree, zero, zero).G)
    v = np.einsum("tnk,tk->tn", inverse, motion.v)
    bias = close_rates(mechanism, tree, v, zero).a @ N.T
    return Motion(motion.t, q, v, np.einsum("tnk,tk->tn", inverse, motion.a - bias))


def _best_motors(mechanism: Mechanism, driven: list[str]) -> list[int]:
    """Return as many motors as degrees of freedom, those that determine the pose best at home."""
    from scipy.linalg import qr  # noqa: PLC0415 - scipy.linalg costs import time

    home = mechanism.closure.home
    zero = np.zeros((1, mechanism.closure.dof))
    G = close_rates(mechanism, home[None], zero, zero).G[0]
    A = G[[mechanism.tree.coordinates.index(c) for c in driven]]
    if np.linalg.matrix_rank(A) < mechanism.closure.dof:
        raise DynidentError(
            f"robot '{mechanism.name}': its {len(driven)} motors do not hold the home pose (parallel singularity)"
        )
    return sorted(int(i) for i in qr(A.T, mode="r", pivoting=True)[1][: mechanism.closure.dof])
