"""Where the bodies are and how they move: poses, velocities, accelerations and Jacobians, batched over samples."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.errors import DynidentError
from dynident.mechanics.batch import at_rest, coordinates, over_samples, times, tree_motion
from dynident.mechanics.motion import Motion
from dynident.mechanism import Mechanism

Array = NDArray[np.float64]


def body_motions(mechanism: Mechanism, motion: Motion) -> tuple[Array, Array, Array, Array]:
    """Return pose, velocity and acceleration of every tree node.

    Parameters
    ----------
    mechanism : Mechanism
        Robot whose tree has k nodes.
    motion : Motion
        N samples.

    Returns
    -------
    orientation : ndarray, (N, k, 3, 3)
        R of each node in the base frame.
    position : ndarray, (N, k, 3)
        Origin of each node in the base frame [m].
    velocity : ndarray, (N, k, 6)
        (v, omega) of the node's origin, in the node frame.
    acceleration : ndarray, (N, k, 6)
        (a, alpha), classical acceleration of the node's origin without gravity, in the node frame.
    """
    from dynident.mechanics import matrix_kernels  # noqa: PLC0415 - numba is imported on first use

    q, v, a, _ = tree_motion(mechanism, motion)
    tree = mechanism.tree.arrays._replace(gravity=np.zeros(3))
    nodes = tree.parent.size
    out = [np.empty((len(motion), nodes, *shape)) for shape in ((3, 3), (3,), (6,), (6,))]
    over_samples(
        len(motion),
        lambda i, j: matrix_kernels.body_motions(tree, q[i:j], v[i:j], a[i:j], *(array[i:j] for array in out)),
    )
    return out[0], out[1], out[2], out[3]


def forward_kinematics(mechanism: Mechanism, q: ArrayLike, frame: str) -> tuple[Array, Array]:
    """Return the pose of a link: x_base = R x_link + p.

    Parameters
    ----------
    mechanism : Mechanism
        Robot.
    q : array_like, (N, n) or (n,)
        Positions.
    frame : str
        Link name.

    Returns
    -------
    rotation : ndarray, (N, 3, 3)
        R.
    position : ndarray, (N, 3)
        p [m].
    """
    motion = at_rest(mechanism, q)
    node, placement = mechanism.frame(frame)
    if node < 0:
        count = len(motion)
        return np.tile(placement.rotation, (count, 1, 1)), np.tile(placement.translation, (count, 1))
    R, p, _, _ = body_motions(mechanism, motion)
    return R[:, node] @ placement.rotation, p[:, node] + R[:, node] @ placement.translation


def frame_motion(mechanism: Mechanism, motion: Motion, frame: str) -> tuple[Array, Array]:
    """Return velocity and acceleration of a link frame, expressed in that frame.

    Parameters
    ----------
    mechanism : Mechanism
        Robot.
    motion : Motion
        N samples.
    frame : str
        Link name.

    Returns
    -------
    velocity : ndarray, (N, 6)
        (v, omega) of the frame's origin [m/s, rad/s].
    acceleration : ndarray, (N, 6)
        (a, alpha), classical acceleration of its origin without gravity [m/s^2, rad/s^2].
    """
    node, placement = mechanism.frame(frame)
    if node < 0:
        tree_motion(mechanism, motion)
        return np.zeros((len(motion), 6)), np.zeros((len(motion), 6))
    _, _, velocity, acceleration = body_motions(mechanism, motion)
    v, om = velocity[:, node, :3], velocity[:, node, 3:]
    a, al = acceleration[:, node, :3], acceleration[:, node, 3:]
    lever, R = placement.translation, placement.rotation
    v = v + np.cross(om, lever)
    a = a + np.cross(al, lever) + np.cross(om, np.cross(om, lever))
    return np.hstack([times(v, R), times(om, R)]), np.hstack([times(a, R), times(al, R)])


def node_jacobians(mechanism: Mechanism, q: ArrayLike) -> Array:
    """Return the Jacobian of every tree node in its own frame.

    Parameters
    ----------
    mechanism : Mechanism
        Robot with n_tree tree coordinates and k nodes.
    q : array_like, (N, n)
        Positions of the independent coordinates.

    Returns
    -------
    ndarray, (N, k, 6, n_tree)
        (v, omega) = J v_tree.
    """
    return _jacobians(mechanism, tree_motion(mechanism, at_rest(mechanism, q)).q)


def _jacobians(mechanism: Mechanism, positions: Array) -> Array:
    """Return the Jacobian (N, k, 6, n_tree) of every node at tree positions."""
    from dynident.mechanics import matrix_kernels  # noqa: PLC0415 - numba is imported on first use

    tree = mechanism.tree.arrays
    J = np.zeros((positions.shape[0], tree.parent.size, 6, positions.shape[1]))
    over_samples(positions.shape[0], lambda i, j: matrix_kernels.jacobians(tree, positions[i:j], J[i:j]))
    return J


def jacobian(mechanism: Mechanism, q: ArrayLike, frame: str, reference: str = "local") -> Array:
    """Return the Jacobian of a link: (v, omega) = J v, at the link's origin.

    Parameters
    ----------
    mechanism : Mechanism
        Robot with n coordinates.
    q : array_like, (N, n) or (n,)
        Positions.
    frame : str
        Link name.
    reference : {"local", "world"}
        Axes in which v and omega are expressed: the link's or the base's; the point is the link's origin in both.

    Returns
    -------
    ndarray, (N, 6, n)
        Jacobian, linear rows first.
    """
    if reference not in ("local", "world"):
        raise DynidentError(f"reference is '{reference}'; use 'local' (axes of the link) or 'world' (axes of the base)")
    node, placement = mechanism.frame(frame)
    positions = coordinates(mechanism, q, "q")
    if node < 0:
        return np.zeros((positions.shape[0], 6, mechanism.dof))
    still = tree_motion(mechanism, at_rest(mechanism, positions))
    J = _jacobians(mechanism, still.q)[:, node]
    linear = J[:, :3] + np.cross(J[:, 3:], placement.translation, axisa=1, axisc=1)
    R = placement.rotation.T
    if reference == "world":
        R = forward_kinematics(mechanism, positions, frame)[0] @ R
    result = np.concatenate([R @ linear, R @ J[:, 3:]], axis=1)
    return result if still.G is None else np.asarray(result @ still.G)
