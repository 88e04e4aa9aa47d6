"""The equation of motion M(q) a + C(q, v) v + g(q) + tau_joint(q, v, a) = tau + sum J^T w, in every direction."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.errors import DynidentError
from dynident.mechanics.batch import (
    TreeMotion,
    at_rest,
    coordinates,
    inertial_values,
    over_samples,
    project,
    sealed,
    tree_motion,
    values_of,
)
from dynident.mechanics.generated import kernel_of
from dynident.mechanics.joint_terms import joint_groups, joint_torques, motor_columns, motor_torques
from dynident.mechanics.kinematics import jacobian
from dynident.mechanics.motion import Motion, numbers
from dynident.mechanism import Mechanism, Parameters

Array = NDArray[np.float64]
Wrenches = Mapping[str, ArrayLike]

SINGULAR = 1e-13  # pivot or eigenvalue of M, relative to its diagonal, below which only rounding errors are left


def inverse_dynamics(
    mechanism: Mechanism,
    motion: Motion,
    parameters: Parameters | ArrayLike | None = None,
    wrenches: Wrenches | None = None,
) -> Array:
    """Return the torques that make the robot move: tau = M a + C v + g + rotor, friction, offset and spring - J^T w.

    Parameters
    ----------
    mechanism : Mechanism
        Robot with n coordinates.
    motion : Motion
        N samples.
    parameters : Parameters or array_like (p,), optional
        Standard parameters; the robot's own when omitted.
    wrenches : mapping of str to array_like (N, 6) or (6,), optional
        External wrench (force, moment) on each named link, at its origin and in its axes [N, N m].

    Returns
    -------
    ndarray, (N, n)
        Joint torques and forces [N m, N].

    Examples
    --------
    >>> import dynident as di
    >>> arm = di.Mechanism.from_dh([(0.3, 0, 0, 0)], convention="standard", gravity=(0, -9.81, 0)).with_payload(2.0)
    >>> di.inverse_dynamics(arm, di.Motion([0.0], [0.0], [0.0], [0.0])).round(4)
    array([[5.886]])
    """
    tau = _torques(mechanism, tree_motion(mechanism, motion), values_of(mechanism, parameters))
    return tau - _wrench_torques(mechanism, motion, wrenches) if wrenches else tau


def _torques(mechanism: Mechanism, tree: TreeMotion, values: Array) -> Array:
    """Return the torques of a motion of all tree coordinates, projected on the robot's own."""
    q, v, a, G = tree
    kernel, phi = kernel_of(mechanism), inertial_values(mechanism, values)
    tau = np.empty_like(q)
    over_samples(q.shape[0], lambda i, j: kernel.inverse_dynamics(phi, q[i:j], v[i:j], a[i:j], tau[i:j]))
    if mechanism.joint_columns and np.any(values[phi.size :]):
        tau += joint_torques(mechanism, values, q, v, a)
    if mechanism.actuator_columns:
        tau += motor_torques(mechanism, values, q, v, a)
    return project(G, tau)


def _wrench_torques(mechanism: Mechanism, motion: Motion, wrenches: Wrenches) -> Array:
    """Return sum J^T w of the external wrenches on links."""
    if not isinstance(wrenches, Mapping):
        raise DynidentError(f"wrenches is a {type(wrenches).__name__}; give a mapping of link name to (force, moment)")
    tau = np.zeros((len(motion), mechanism.dof))
    for frame, wrench in wrenches.items():
        w = numbers(wrench, f"wrench on '{frame}'")
        if w.shape not in ((6,), (len(motion), 6)):
            raise DynidentError(f"wrench on '{frame}' has shape {w.shape}; give (6,) or ({len(motion)}, 6) as (force, moment)")
        if not np.all(np.isfinite(w)):
            raise DynidentError(f"wrench on '{frame}' is not finite; every force and moment must be a finite number")
        J = jacobian(mechanism, motion.q, frame)
        tau += np.einsum("sij,si->sj", J, np.broadcast_to(w, (len(motion), 6)))
    return tau


def mass_matrix(mechanism: Mechanism, q: ArrayLike, parameters: Parameters | ArrayLike | None = None) -> Array:
    """Return M(q), symmetric and positive definite for possible bodies, rotor inertias included.

    Parameters
    ----------
    mechanism : Mechanism
        Robot with n coordinates.
    q : array_like, (N, n) or (n,)
        Positions.
    parameters : Parameters or array_like (p,), optional
        Standard parameters; the robot's own when omitted.

    Returns
    -------
    ndarray, (N, n, n)
        Mass matrix [kg m^2, kg m, kg].
    """
    values = values_of(mechanism, parameters)
    return _mass_matrix(mechanism, tree_motion(mechanism, at_rest(mechanism, q)), values)


def _mass_matrix(mechanism: Mechanism, tree: TreeMotion, values: Array) -> Array:
    """Return M at the positions of all tree coordinates, projected on the robot's own: G^T (tree and motors) G."""
    from dynident.mechanics import matrix_kernels  # noqa: PLC0415 - numba is imported on first use

    x, arrays, phi = tree.q, mechanism.tree.arrays, inertial_values(mechanism, values)
    M = np.empty((x.shape[0], x.shape[1], x.shape[1]))
    over_samples(x.shape[0], lambda i, j: matrix_kernels.mass_matrix(arrays, phi, x[i:j], M[i:j]))
    rotor = _rotor(mechanism, values)
    M[:, np.arange(rotor.size), np.arange(rotor.size)] += rotor
    for column, term, row in motor_columns(mechanism):
        if term.symbol == "ia":
            M = M + values[column] * np.outer(row, row)
    return _sandwich(M, tree.G)


def coriolis_matrix(
    mechanism: Mechanism, q: ArrayLike, v: ArrayLike, parameters: Parameters | ArrayLike | None = None
) -> Array:
    """Return C(q, v) of the Christoffel symbols: C v are the velocity torques and Mdot - 2 C is skew-symmetric.

    Parameters
    ----------
    mechanism : Mechanism
        Robot with n coordinates.
    q, v : array_like, (N, n) or (n,)
        Positions and velocities.
    parameters : Parameters or array_like (p,), optional
        Standard parameters; the robot's own when omitted.

    Returns
    -------
    ndarray, (N, n, n)
        Coriolis matrix.
    """
    from dynident.mechanics import matrix_kernels  # noqa: PLC0415 - numba is imported on first use

    values = values_of(mechanism, parameters).copy()
    # Only inertias: rotors behind a coupling function or a loop turn at a ratio that depends on q, so they count as well.
    columns = (*mechanism.joint_columns, *mechanism.actuator_columns)
    values[mechanism.tree.inertias.size :] *= [symbol == "ia" for _, symbol in columns]
    nu = coordinates(mechanism, v, "v")
    motion = at_rest(mechanism, q, nu)
    if mechanism.loops or any(coupling.function is not None for coupling in mechanism.couplings):
        return _polarised(mechanism, motion, values)
    x, rates, _, G = tree_motion(mechanism, motion)
    tree, phi = mechanism.tree.arrays, inertial_values(mechanism, values)
    C = np.empty((x.shape[0], x.shape[1], x.shape[1]))
    over_samples(x.shape[0], lambda i, j: matrix_kernels.coriolis_matrix(tree, phi, x[i:j], rates[i:j], C[i:j]))
    return _sandwich(C, G)


def _polarised(mechanism: Mechanism, motion: Motion, values: Array) -> Array:
    """Return C of a robot whose projector depends on q, in true coordinates (angles and lengths).

    The velocity torques h(v) = C(v) v are quadratic in v, and C(v) w = C(w) v for the Christoffel matrix, hence
    C(v) e_j = (h(v + e_j) - h(v) - h(e_j)) / 2.
    """
    held = inverse_dynamics(mechanism, at_rest(mechanism, motion.q), values)

    def h(v: Array) -> Array:
        return inverse_dynamics(mechanism, at_rest(mechanism, motion.q, v), values) - held

    own, columns = h(motion.v), []
    for unit in np.eye(mechanism.dof):
        step = np.broadcast_to(unit, motion.v.shape)
        columns.append(0.5 * (h(motion.v + step) - own - h(step)))
    return np.stack(columns, axis=2)


def gravity(mechanism: Mechanism, q: ArrayLike, parameters: Parameters | ArrayLike | None = None) -> Array:
    """Return g(q), the torques that hold the robot against gravity (joint terms such as springs are not included).

    Parameters
    ----------
    mechanism : Mechanism
        Robot with n coordinates.
    q : array_like, (N, n) or (n,)
        Positions.
    parameters : Parameters or array_like (p,), optional
        Standard parameters; the robot's own when omitted.

    Returns
    -------
    ndarray, (N, n)
        Gravity torques [N m, N].
    """
    values = values_of(mechanism, parameters).copy()
    values[mechanism.tree.inertias.size :] = 0.0
    return inverse_dynamics(mechanism, at_rest(mechanism, q), values)


def forward_dynamics(
    mechanism: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    parameters: Parameters | ArrayLike | None = None,
    wrenches: Wrenches | None = None,
) -> Array:
    """Return the accelerations that torques cause, the inverse of `inverse_dynamics`: M a = tau + sum J^T w - bias.

    A mass matrix may be indefinite, as published ones are at times; one that is singular to working precision is refused.

    Parameters
    ----------
    mechanism : Mechanism
        Robot with n coordinates.
    q, v, tau : array_like, (N, n) or (n,)
        Positions, velocities and joint torques.
    parameters : Parameters or array_like (p,), optional
        Standard parameters; the robot's own when omitted.
    wrenches : mapping of str to array_like (N, 6) or (6,), optional
        External wrench (force, moment) on each named link, at its origin and in its axes.

    Returns
    -------
    ndarray, (N, n)
        Accelerations [rad/s^2, m/s^2].
    """
    from dynident.mechanics import solve_kernels  # noqa: PLC0415 - numba is imported on first use

    values = values_of(mechanism, parameters)
    x, rates, torques = (coordinates(mechanism, y, label) for label, y in (("q", q), ("v", v), ("tau", tau)))
    if not x.shape == rates.shape == torques.shape:
        raise DynidentError(f"q, v and tau have {x.shape[0]}, {rates.shape[0]} and {torques.shape[0]} samples; they must agree")
    motion = at_rest(mechanism, x, rates)
    if wrenches:
        torques = torques + _wrench_torques(mechanism, motion, wrenches)
    tree = tree_motion(mechanism, motion)
    M, force = _mass_matrix(mechanism, tree, values), sealed(torques - _torques(mechanism, tree, values))
    a, definite = np.empty_like(force), np.empty(force.shape[0], dtype=np.bool_)
    over_samples(force.shape[0], lambda i, j: solve_kernels.solve_definite(M[i:j], force[i:j], SINGULAR, a[i:j], definite[i:j]))
    odd = np.flatnonzero(~definite)
    if odd.size:  # without row exchanges only definite matrices are safe
        _check_regular(mechanism, M[odd], odd)
        a[odd] = np.linalg.solve(M[odd], force[odd, :, None])[:, :, 0]
    return a


def _check_regular(mechanism: Mechanism, M: Array, samples: NDArray[np.int64]) -> None:
    """Refuse mass matrices that are singular to working precision, whatever the units of their coordinates."""
    size = np.sqrt(np.abs(np.diagonal(M, axis1=1, axis2=2)))
    size = np.where(size > 0.0, size, 1.0)
    scaled = M / (size[:, :, None] * size[:, None, :])
    scaled[~np.all(np.isfinite(scaled), axis=(1, 2))] = 0.0
    singular = np.min(np.abs(np.linalg.eigvalsh(scaled)), axis=1) < SINGULAR
    if np.any(singular):
        sample = samples[np.argmax(singular)]
        raise DynidentError(
            f"forward dynamics: the mass matrix of robot '{mechanism.name}' is singular at sample {sample}; "
            "give every moving link a positive inertia"
        )


def _rotor(mechanism: Mechanism, values: Array) -> Array:
    """Return the rotor inertia of every tree coordinate."""
    rotor = np.zeros(len(mechanism.tree.coordinates))
    for group in joint_groups(mechanism):
        if group.term.symbol == "ia":
            rotor[group.coordinates] = values[group.columns]
    return rotor


def _sandwich(M: Array, G: Array | None) -> Array:
    """Return G^T M G."""
    return M if G is None else np.asarray(np.swapaxes(G, -1, -2) @ M @ G)
