"""A robot at one place, quickly: what a controller asks once per cycle, without the checks and copies of the batch functions.

`place` puts the robot at (x, v); then torques, actuator rows and the pose of a frame belong to that place. Loops are closed
from the last place, so a controller keeps one `Evaluator` for the measurement and one for the reference.
"""

from __future__ import annotations

from collections.abc import Callable
from math import atan2, pi, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynident.control.distribution import SINGULAR, coupling_rows
from dynident.errors import DynidentError
from dynident.mechanics import Motion, sealed, tree_motion
from dynident.mechanics.closure import REACH, close_positions, close_rates
from dynident.mechanics.closure import SINGULAR as SINGULAR_CLOSURE
from dynident.mechanics.generated import kernel_of
from dynident.mechanics.joint_terms import joint_torques, motor_torques
from dynident.mechanism import Mechanism

Array = NDArray[np.float64]


class Pose(NamedTuple):
    """Where a frame is and how it moves; everything in base axes, at the frame's origin.

    Parameters
    ----------
    rotation : ndarray, (3, 3)
        R of the frame.
    position : ndarray, (3,)
        Its origin [m].
    twist : ndarray, (6,)
        (v, omega) [m/s, rad/s].
    bias : ndarray, (6,)
        Acceleration (a, alpha) at no acceleration of the coordinates, J' v [m/s^2, rad/s^2].
    jacobian : ndarray, (6, n)
        J with twist = J v.
    """

    rotation: Array
    position: Array
    twist: Array
    bias: Array
    jacobian: Array


class Evaluator:
    """Torques, actuator rows and poses of a robot at one place, without checks.

    Parameters
    ----------
    mechanism : Mechanism
        Robot with n coordinates and k actuators.
    """

    def __init__(self, mechanism: Mechanism) -> None:
        from dynident.control.kernels import frame_pose  # noqa: PLC0415 - numba is imported on first use
        from dynident.mechanics import loop_kernels  # noqa: PLC0415

        self.mechanism = mechanism
        self._frame_pose: Callable[..., object] = frame_pose
        self._loop_kernels = loop_kernels
        self._tree = mechanism.tree.arrays
        self._still = self._tree._replace(gravity=np.zeros(3))
        self._values = mechanism.parameters.values
        self._phi = inertial_values(mechanism, self._values)
        self._dynamics = kernel_of(mechanism).inverse_dynamics
        width, nodes = len(mechanism.tree.coordinates), self._tree.parent.size
        self._terms = bool(mechanism.joint_columns) and bool(np.any(self._values[self._phi.size :]))
        self._curved = any(coupling.function is not None for coupling in mechanism.couplings)
        self._linear = mechanism.coupling_map if mechanism.couplings and not self._curved else None
        self._rows = coupling_rows(mechanism)
        self._out = [np.empty((1, nodes, *shape)) for shape in ((3, 3), (3,), (6,), (6,))]
        self._jacobians = np.zeros((1, nodes, 6, width))
        self._direct = not mechanism.loops and not mechanism.couplings and np.array_equal(self._rows, np.eye(width))
        self._start: Array | None = None
        self._q = self._v = self._b = self._zero = sealed(np.zeros((1, width)))
        self._G: Array | None = None

    def place(self, x: Array, v: Array) -> None:
        """Put the robot somewhere.

        Parameters
        ----------
        x, v : ndarray, (n,)
            Positions and velocities of its coordinates.
        """
        if self.mechanism.loops:
            self._close(x, v)
        elif self._curved:
            tree = tree_motion(self.mechanism, Motion([0.0], x, v, np.zeros(x.size)))
            self._q, self._v, self._b = tree.q, tree.v, tree.a
            self._G = None if tree.G is None else tree.G[0]
        elif self._linear is not None:
            G, g0 = self._linear
            self._q, self._v, self._G = sealed((G @ x + g0)[None]), sealed((G @ v)[None]), G
            self._b = self._zero
        else:
            self._q, self._v, self._b = _row(x), _row(v), self._zero

    def _close(self, x: Array, v: Array) -> None:
        """Close the loops from the last place; the first time, and where that fails, as the batch functions do."""
        closure, loops, zero = self.mechanism.closure, self._loop_kernels, np.zeros((1, x.size))
        at, rows = _row(x), (closure.selected, closure.independent, closure.dependent)
        q = np.empty((1, closure.home.size))
        if self._start is None or loops.close_positions(self._tree, *rows, at, self._start, REACH, q) >= 0:
            q = close_positions(self.mechanism, at, self._start)
        G, vt, b, pivot = np.empty((1, q.size, x.size)), np.empty(q.shape), np.empty(q.shape), np.empty(1)
        loops.close_rates(self._tree, *rows, sealed(q), _row(v), sealed(zero), G, vt, b, pivot)
        if pivot[0] < SINGULAR_CLOSURE:
            close_rates(self.mechanism, q, v[None], zero)  # raises the sentence
        self._start = sealed(q[0])
        self._q, self._v, self._b, self._G = sealed(q), sealed(vt), sealed(b), G[0]

    def torques(self, a: Array) -> Array:
        """Return the generalised forces that accelerate the robot from its place, joint and motor terms included.

        Parameters
        ----------
        a : ndarray, (n,)
            Accelerations of its coordinates.

        Returns
        -------
        ndarray, (n,)
            M a + C v + g + rotor, friction, offset and spring.
        """
        G = self._G
        at = _row(a) if G is None else sealed((G @ a)[None] + self._b)
        tau = np.empty(self._q.shape)
        self._dynamics(self._phi, self._q, self._v, at, tau)
        if self._terms:
            tau += joint_torques(self.mechanism, self._values, self._q, self._v, at)
        if self.mechanism.actuator_columns:
            tau += motor_torques(self.mechanism, self._values, self._q, self._v, at)
        return np.asarray(tau[0] if G is None else G.T @ tau[0])

    def inertia(self) -> Array:
        """Return the mass matrix of the place, rotors included.

        Returns
        -------
        ndarray, (n, n)
            M: torques of unit accelerations, less those without any.
        """
        n = self.mechanism.dof
        still = self.torques(np.zeros(n))
        M = np.array([self.torques(row) - still for row in np.eye(n)])
        return np.asarray(0.5 * (M + M.T))

    def actuator_rows(self) -> Array:
        """Return A with rho_v = A v, behind the gears.

        Returns
        -------
        ndarray, (k, n)
            Actuator Jacobian of the place.
        """
        return np.asarray(self._rows if self._G is None else self._rows @ self._G)

    def actuator_torques(self, f: Array, preload: Array | None = None) -> Array:
        """Return torques of rho with A^T tau = f: minimum norm, plus the internal part of a preload.

        Parameters
        ----------
        f : ndarray, (n,)
            Generalised forces.
        preload : ndarray (k,), optional
            Torques whose internal part is added.

        Returns
        -------
        ndarray, (k,)
            Torques behind the gears.
        """
        if self._direct:
            return f
        A = self.actuator_rows()
        k, n = A.shape
        if k == n and preload is None:
            return solve(A.T, f, self.mechanism, "the actuators do not hold the robot")
        U, sizes, Vt = np.linalg.svd(A)
        if k < n or sizes[-1] <= SINGULAR * sizes[0]:
            raise _lost(self.mechanism, "the actuators do not hold the robot", self._q[0])
        tau = U[:, :n] @ ((Vt @ f) / sizes)
        if preload is not None and k > n:
            tau += U[:, n:] @ (U[:, n:].T @ preload)
        return np.asarray(tau)

    def pose(self, frame: tuple[int, Array, Array]) -> Pose:
        """Return where a frame is and how it moves.

        Parameters
        ----------
        frame : tuple of int, ndarray (3, 3), ndarray (3,)
            Tree node that carries it, and its placement there.

        Returns
        -------
        Pose
            Pose, twist, bias and Jacobian in base axes.
        """
        rotation, position, twist, bias = np.empty((3, 3)), np.empty(3), np.empty(6), np.empty(6)
        jacobian = np.empty((6, self._q.shape[1]))
        self._frame_pose(
            self._still,
            self._q,
            self._v,
            self._b,
            *frame,
            *self._out,
            self._jacobians,
            rotation,
            position,
            twist,
            bias,
            jacobian,
        )
        return Pose(rotation, position, twist, bias, jacobian if self._G is None else jacobian @ self._G)


def solve(M: Array, right: Array, mechanism: Mechanism, what: str) -> Array:
    """Return M^-1 right, or say in one sentence where it does not exist.

    Parameters
    ----------
    M : ndarray, (n, n)
        Square matrix.
    right : ndarray, (n,)
        Right-hand side.
    mechanism : Mechanism
        Robot, for the message.
    what : str
        What is lost when M is singular.

    Returns
    -------
    ndarray, (n,)
        Solution.
    """
    try:
        out = np.linalg.solve(M, right)
    except np.linalg.LinAlgError:
        raise _lost(mechanism, what, None) from None
    return np.asarray(out)


def _lost(mechanism: Mechanism, what: str, q: Array | None) -> DynidentError:
    place = "" if q is None else f" at {np.round(q, 4).tolist()}"
    return DynidentError(f"robot '{mechanism.name}': {what}{place} (a singularity); keep the reference away from it")


def rotation_vector(D: Array) -> Array:
    """Return the rotation vector of a rotation matrix; `pose_error` of mechanics does the same for batches.

    Parameters
    ----------
    D : ndarray, (3, 3)
        Rotation.

    Returns
    -------
    ndarray, (3,)
        Axis times angle [rad], up to half a turn.
    """
    (a, b, c), (d, e, f), (g, h, i) = D.tolist()
    x, y, z = 0.5 * (h - f), 0.5 * (c - g), 0.5 * (d - b)
    sine, cosine = sqrt(x * x + y * y + z * z), 0.5 * (a + e + i - 1.0)
    if sine <= 1e-8 and cosine < 0.0:  # half a turn: the axis is the largest column of D + 1
        column = (D + np.eye(3))[:, int(np.argmax(np.diag(D)))]
        return np.asarray(pi * column / np.linalg.norm(column))
    scale = atan2(sine, cosine) / sine if sine > 1e-8 else 1.0
    return np.array([x * scale, y * scale, z * scale])


def _row(x: Array) -> Array:
    return sealed(np.ascontiguousarray(x)[None])
