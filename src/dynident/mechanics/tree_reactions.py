"""Forces through the joints of the tree, by Newton and Euler from the last bodies to the base.

f_i = m (a - g) + alpha x h + w x (w x h) - f_cut + sum f_child
n_i = I alpha + w x I w + h x (a - g) - n_cut + sum (n_child + (p_child - p_i) x f_child)      about the origin p_i
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.mechanics.functions import node_values, values_of
from dynident.mechanics.kinematics import body_motions
from dynident.mechanics.loop_reactions import reactions
from dynident.mechanics.motion import MotionLike, as_motion
from dynident.mechanism import Mechanism, Parameters

Array = NDArray[np.float64]


def joint_reactions(
    mechanism: Mechanism, motion: MotionLike, torques: ArrayLike | None = None, parameters: Parameters | ArrayLike | None = None
) -> Mapping[str, Array]:
    """Return the wrench that every moving joint of the tree puts on its child, so that the robot moves as it does.

    It is all that passes through the joint: bearing reaction, motor and friction. About the axis of a passive joint without
    friction it is zero.

    Parameters
    ----------
    mechanism : Mechanism
        Robot, with or without loops.
    motion : Motion or (q, v, a)
        N samples of its coordinates.
    torques : array_like (N, k), optional
        Motor torques of a robot with loops, as from `actuator_torques`; they decide how redundant motors share the load.
    parameters : Parameters or array_like (p,), optional
        Standard parameters; the robot's own when omitted.

    Returns
    -------
    mapping of str to ndarray, (N, 6)
        (force, moment) on the child at the origin of its frame, base axes [N, N m]; one entry per moving joint. `reactions`
        has those of the cut joints.
    """
    motion = as_motion(motion)
    phi = node_values(mechanism, values_of(mechanism, parameters))
    R, p, velocity, acceleration = body_motions(mechanism, motion)
    tree = mechanism.tree.arrays
    wrench = np.zeros((len(motion), tree.parent.size, 6))  # (force, moment) at the node's origin, base axes
    for i, c in enumerate(tree.column):
        if c >= 0:
            a = acceleration[:, i, :3] - np.einsum("sji,j->si", R[:, i], mechanism.gravity)
            local = _newton_euler(phi[c : c + 10], a, acceleration[:, i, 3:], velocity[:, i, 3:])
            wrench[:, i, :3], wrench[:, i, 3:] = (np.einsum("sij,sj->si", R[:, i], x) for x in local)
    if mechanism.loops:
        cut = reactions(mechanism, motion, np.empty((0, 0)) if torques is None else torques, parameters)
        for loop in mechanism.loops:
            node, frame = mechanism.tree.frames[loop.body_a]
            point = (frame @ loop.placement_a).translation
            # Both bodies feel it where the point of body a is.
            x = np.broadcast_to(point, (len(motion), 3)) if node < 0 else p[:, node] + R[:, node] @ point
            for body, sign in ((loop.body_a, -1.0), (loop.body_b, 1.0)):
                _add(wrench, p, mechanism.tree.frames[body][0], sign * cut[loop.name], x)
    for i in range(tree.parent.size - 1, -1, -1):
        _add(wrench, p, int(tree.parent[i]), wrench[:, i], p[:, i])
    found = {}
    for joint in mechanism.joints:
        if joint.coordinates:
            node, frame = mechanism.tree.frames[joint.child]
            arm = R[:, node] @ frame.translation
            force, moment = wrench[:, node, :3], wrench[:, node, 3:]
            found[joint.name] = np.hstack([force, moment - np.cross(arm, force)])
    return found


def _newton_euler(phi: Array, a: Array, alpha: Array, w: Array) -> tuple[Array, Array]:
    """Return force and moment about the frame's origin that a body needs, all in its own frame."""
    m, h = phi[0], np.broadcast_to(phi[1:4], a.shape)
    xx, xy, xz, yy, yz, zz = phi[4:10]
    inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    force = m * a + np.cross(alpha, h) + np.cross(w, np.cross(w, h))
    return force, alpha @ inertia + np.cross(w, w @ inertia) + np.cross(h, a)


def _add(wrench: Array, p: Array, node: int, other: Array, x: Array) -> None:
    """Add a wrench (force, moment about x) to those of a node, if it is not the base."""
    if node >= 0:
        wrench[:, node, :3] += other[:, :3]
        wrench[:, node, 3:] += other[:, 3:] + np.cross(x - p[:, node], other[:, :3])
