"""The torque regressor Y of tau = Y(q, v, a) phi, and the energy and momentum regressors."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.mechanics.batch import TreeMotion, over_samples, project, times, tree_motion
from dynident.mechanics.generated import kernel_of
from dynident.mechanics.joint_terms import joint_groups, motor_column, motor_columns
from dynident.mechanics.kinematics import body_motions, node_jacobians
from dynident.mechanics.motion import Motion
from dynident.mechanism import Mechanism
from dynident.mechanism.tree import FREE, NODE_DOF, SPHERICAL

Array = NDArray[np.float64]


def regressor(mechanism: Mechanism, motion: Motion) -> Array:
    """Return Y with tau = Y phi for the standard parameters phi of `mechanism.parameters`.

        M(q) a + C(q, v) v + g(q) + rotor, friction, offset and spring torques = Y(q, v, a) phi

    Parameters
    ----------
    mechanism : Mechanism
        Robot with n coordinates and p standard parameters.
    motion : Motion
        N samples.

    Returns
    -------
    ndarray, (N, n, p)
        Regressor; columns in the order of ``mechanism.parameters.names``, N m or N per unit of the parameter.

    Examples
    --------
    >>> import numpy as np, dynident as di
    >>> arm = di.Mechanism.from_dh([(0.3, 0, 0, 0), (0.2, 0, 0, 0)], convention="standard")
    >>> motion = di.Motion([0.0], [0.1, 0.2], [1.0, -1.0], [0.5, 0.5])
    >>> di.regressor(arm, motion).shape
    (1, 2, 28)
    """
    q, v, a, G = tree_motion(mechanism, motion)
    samples, width = q.shape
    kernel = kernel_of(mechanism, range(mechanism.tree.inertias.size))
    Y = np.zeros((samples, width, len(mechanism.parameters)))
    over_samples(samples, lambda i, j: kernel.regressor(q[i:j], v[i:j], a[i:j], Y[i:j]))
    _to_links(mechanism, Y)
    for group in joint_groups(mechanism):
        c = group.coordinates
        Y[:, c, group.columns] = group.term.column(q[:, c], v[:, c], a[:, c])
    for column, term, row in motor_columns(mechanism):
        Y[:, :, column] = motor_column(term, row, q, v, a)
    return project(G, Y)


def regressor_rows(
    mechanism: Mechanism, motion: Motion, columns: ArrayLike | None = None, tree: TreeMotion | None = None
) -> Array:
    """Return the same regressor with samples last: row (i, j) is column j of coordinate i over time.

    This is the layout that streaming least squares needs; use it on tiles of a few hundred samples.

    Parameters
    ----------
    mechanism : Mechanism
        Robot with n coordinates and p standard parameters.
    motion : Motion
        N samples.
    columns : array_like of int, (m,), optional
        Standard parameters whose columns are wanted, each once; all p when omitted.
    tree : TreeMotion, optional
        The same motion of all tree coordinates, when it is known already (loops).

    Returns
    -------
    ndarray, (n, m, N)
        Regressor.
    """
    from dynident.mechanics import matrix_kernels  # noqa: PLC0415 - numba is imported on first use

    q, v, a, G = tree_motion(mechanism, motion) if tree is None else tree
    frames = mechanism.tree
    every = np.arange(len(mechanism.parameters))
    wanted = every if columns is None else np.asarray(columns, dtype=np.int64)
    chosen = wanted if frames.to_node is None else every  # a change of frame mixes the columns of a body
    slot = np.full(every.size, -1)
    slot[chosen] = np.arange(chosen.size)
    W = np.zeros((q.shape[1], chosen.size, q.shape[0]))
    inertial = (int(c) for c in chosen if c < frames.inertias.size)
    kernel_of(mechanism, inertial).regressor_rows(q, v, a, slot, W)
    if frames.to_node is not None:
        matrix_kernels.to_links_rows(frames.to_node, W)
    qt, vt, at = (np.ascontiguousarray(x.T) for x in (q, v, a))
    for group in joint_groups(mechanism):
        use = slot[group.columns] >= 0
        c = group.coordinates[use]
        W[c, slot[group.columns[use]]] = group.term.column(qt[c], vt[c], at[c])
    for column, term, row in motor_columns(mechanism):
        if slot[column] >= 0:
            W[:, slot[column]] = motor_column(term, row, q, v, a).T
    if G is not None:
        W = times(W[None], G)[0] if G.ndim == 2 else _project_rows(G, W)
    return W if chosen is wanted else W[:, wanted]


def _project_rows(G: Array, W: Array) -> Array:
    """Return G^T W (n, p, N) from G (N, k, n) and W (k, p, N)."""
    from dynident.mechanics import matrix_kernels  # noqa: PLC0415 - numba is imported on first use

    out = np.empty((G.shape[2], *W.shape[1:]))
    matrix_kernels.project_rows(np.ascontiguousarray(G.transpose(1, 2, 0)), W, out)
    return out


def energy_regressor(mechanism: Mechanism, motion: Motion) -> tuple[Array, Array]:
    """Return the kinetic and potential energy regressors: T = Y_T phi, U = Y_U phi.

        T = sum m v.v/2 + h.(v x omega) + omega.I omega/2 + ia v_joint^2/2,   U = -sum g.(m p + R h) + k q^2/2 + off q

    Parameters
    ----------
    mechanism : Mechanism
        Robot with p standard parameters.
    motion : Motion
        N samples; accelerations are not used.

    Returns
    -------
    kinetic, potential : ndarray, (N, p)
        Energies in J per unit of the parameter. Columns of what is not conservative are zero: friction, and on the
        quasi-velocities of `spherical` and `free` joints the offset (a torque fixed in the child frame has no
        potential) and the spring of a `free` joint; a `spherical` spring has one when its three stiffnesses are equal.
    """
    q, v, _, _ = tree_motion(mechanism, motion)
    tree = mechanism.tree
    kinetic = np.zeros((len(motion), len(mechanism.parameters)))
    potential = np.zeros_like(kinetic)
    R, p, velocity, _ = body_motions(mechanism, motion)
    down = -mechanism.gravity[:, None]
    for i, c in enumerate(tree.arrays.column):
        if c < 0:
            continue
        lin, om = velocity[:, i, :3], velocity[:, i, 3:]
        kinetic[:, c] = 0.5 * np.sum(lin * lin, axis=1)
        kinetic[:, c + 1 : c + 4] = np.cross(lin, om)
        kinetic[:, c + 4 : c + 10] = _quadratic(om, om) * 0.5
        potential[:, c] = times(p[:, i], down)[:, 0]
        potential[:, c + 1 : c + 4] = times(R[:, i].transpose(0, 2, 1).reshape(-1, 3), down).reshape(-1, 3)
    _to_links(mechanism, kinetic[:, None])
    _to_links(mechanism, potential[:, None])
    # Node kind of every coordinate: v = dq/dt holds for simple nodes only.
    kind = np.empty(q.shape[1], dtype=np.int64)
    for code, first in zip(tree.arrays.kind, tree.arrays.dof, strict=True):
        kind[first : first + NODE_DOF[code]] = code
    for group in joint_groups(mechanism):
        c, columns = group.coordinates, group.columns
        if group.term.symbol == "ia":
            kinetic[:, columns] = 0.5 * v[:, c] ** 2
        elif group.term.symbol == "k":
            potential[:, columns] = np.where(kind[c] != FREE, 0.5 * q[:, c] ** 2, 0.0)
        elif group.term.symbol == "off":
            potential[:, columns] = np.where(kind[c] < SPHERICAL, q[:, c], 0.0)
    for column, term, row in motor_columns(mechanism):
        if term.symbol == "ia":
            kinetic[:, column] = 0.5 * times(v, row[:, None])[:, 0] ** 2
    return kinetic, potential


def momentum_regressor(mechanism: Mechanism, motion: Motion) -> Array:
    """Return the regressor of the generalised momentum M(q) v = Y_p phi.

    Parameters
    ----------
    mechanism : Mechanism
        Robot with n coordinates and p standard parameters.
    motion : Motion
        N samples; accelerations are not used.

    Returns
    -------
    ndarray, (N, n, p)
        Momentum per unit of the parameter; only inertial and rotor columns are not zero.
    """
    _, v, _, G = tree_motion(mechanism, motion)
    tree = mechanism.tree
    _, _, velocity, _ = body_motions(mechanism, motion)
    J = node_jacobians(mechanism, motion.q)
    Y = np.zeros((len(motion), v.shape[1], len(mechanism.parameters)))
    for i, c in enumerate(tree.arrays.column):
        if c < 0:
            continue
        lin, om = velocity[:, i, None, :3], velocity[:, i, None, 3:]
        jl, jw = J[:, i, :3].transpose(0, 2, 1), J[:, i, 3:].transpose(0, 2, 1)
        Y[:, :, c] = np.sum(jl * lin, axis=2)
        Y[:, :, c + 1 : c + 4] = np.cross(jl, om) + np.cross(lin, jw)
        Y[:, :, c + 4 : c + 10] = _quadratic(jw, om)
    _to_links(mechanism, Y)
    for group in joint_groups(mechanism):
        if group.term.symbol == "ia":
            Y[:, group.coordinates, group.columns] = v[:, group.coordinates]
    for column, term, row in motor_columns(mechanism):
        if term.symbol == "ia":
            Y[:, :, column] = times(v, row[:, None]) * row
    return project(G, Y)


def _to_links(mechanism: Mechanism, Y: Array) -> None:
    """Overwrite the inertial columns of Y (N, n, p), given for parameters in node frames, with those for link frames."""
    from dynident.mechanics import matrix_kernels  # noqa: PLC0415 - numba is imported on first use

    to_node = mechanism.tree.to_node
    if to_node is not None:
        over_samples(Y.shape[0], lambda i, j: matrix_kernels.to_links(to_node, Y[i:j]))


def _quadratic(x: Array, y: Array) -> Array:
    """Return the six columns of x . I y for I = (Ixx, Ixy, Ixz, Iyy, Iyz, Izz)."""
    x, y = np.broadcast_arrays(x, y)
    pairs = ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))
    columns = [x[..., i] * y[..., j] + (x[..., j] * y[..., i] if i != j else 0.0) for i, j in pairs]
    return np.stack(columns, axis=-1)
