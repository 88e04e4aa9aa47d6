"""Compiled pose of one frame: one call per cycle instead of twenty small array operations."""

from __future__ import annotations

from dynident.mechanics.kernels import kernel
from dynident.mechanics.matrix_kernels import body_motions, jacobians


@kernel
def frame_pose(tree, q, v, b, node, turn, lever, R, p, velocity, acceleration, J, rotation, position, twist, bias, jacobian):
    """Write pose, twist, bias and Jacobian of a frame in base axes, at its origin.

    q, v, b (1, nt) are tree positions, velocities and accelerations; `turn` and `lever` the frame's placement on tree node
    `node`; R, p, velocity, acceleration, J the node-wise work space of `body_motions` and `jacobians`.
    """
    body_motions(tree, q, v, b, R, p, velocity, acceleration)
    jacobians(tree, q, J)
    E = R[0, node]
    for i in range(3):
        arm = 0.0
        for j in range(3):
            arm += E[i, j] * lever[j]
        bias[i] = arm  # borrowed until the accelerations are known
        position[i] = p[0, node, i] + arm
        for j in range(3):
            value = 0.0
            for k in range(3):
                value += E[i, k] * turn[k, j]
            rotation[i, j] = value
    x, y, z = bias[0], bias[1], bias[2]
    into_base(E, velocity[0, node], x, y, z, twist)
    into_base(E, acceleration[0, node], x, y, z, bias)
    w0, w1, w2 = twist[3], twist[4], twist[5]
    along, square = w0 * x + w1 * y + w2 * z, w0 * w0 + w1 * w1 + w2 * w2
    bias[0] += w0 * along - x * square  # om x (om x arm)
    bias[1] += w1 * along - y * square
    bias[2] += w2 * along - z * square
    for j in range(jacobian.shape[1]):
        into_base(E, J[0, node, :, j], x, y, z, jacobian[:, j])


@kernel
def into_base(E, own, x, y, z, out):
    """Write a twist (linear, angular) of a node's origin in base axes, moved to the point (x, y, z) from it."""
    for i in range(3):
        out[i] = E[i, 0] * own[0] + E[i, 1] * own[1] + E[i, 2] * own[2]
        out[3 + i] = E[i, 0] * own[3] + E[i, 1] * own[4] + E[i, 2] * own[5]
    out[0] += out[4] * z - out[5] * y
    out[1] += out[5] * x - out[3] * z
    out[2] += out[3] * y - out[4] * x
