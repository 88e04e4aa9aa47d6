"""A robot at one place, quickly: what a controller asks once per cycle, by the robot's own compiled functions.

`place` puts the robot at (x, v); then torques, actuator rows and the pose of a frame belong to that place. Loops are closed
from the last place, so a controller keeps one `Evaluator` for the measurement and one for the reference.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import atan2, pi, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynident.control.distribution import SINGULAR, coupling_rows
from dynident.errors import DynidentError
from dynident.graph import Compiled, Function, Node, absolute, maximum, total
from dynident.mechanics import (
    CLOSURE_SINGULAR,
    REACH,
    Equations,
    cached,
    close_positions,
    close_rates,
    node_values,
    positions_of,
    times,
)
from dynident.mechanism import Mechanism

Array = NDArray[np.float64]
Maker = Callable[[Equations], dict[str, list[Node]]]

CLOSED = 1e-9  # correction [rad or m] after which the next one would be of the order of rounding errors


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


def _torques(eq: Equations) -> dict[str, list[Node]]:
    return {"out": eq.torques()}


def _inertia(eq: Equations) -> dict[str, list[Node]]:
    return {"out": [x for row in eq.mass_matrix() for x in row]}


def _rows(eq: Equations) -> dict[str, list[Node]]:
    G, rows, zero = eq.G, coupling_rows(eq.mechanism), eq.graph.zero
    if G is None:
        return {"out": [eq.graph.const(float(x)) for row in rows for x in row]}
    columns = range(eq.mechanism.dof)
    return {"out": [total([zero, *(G[i][j] * float(x) for i, x in enumerate(row) if x)]) for row in rows for j in columns]}


def _closing(eq: Equations) -> dict[str, list[Node]]:
    size = eq.graph.zero
    for x in eq.correction:
        size = maximum(size, absolute(x))
    return {"out": [*eq.correction, size, eq.pivot]}


def _pose(link: str) -> Maker:
    def make(eq: Equations) -> dict[str, list[Node]]:
        eq.a = [eq.graph.zero] * eq.mechanism.dof
        R, p = eq.pose(link)
        motion = [times(R, part) for part in eq.link_motion(link)]
        J = eq.jacobian(link)
        turned = []
        for half in (J[:3], J[3:]):
            columns = [times(R, (half[0][j], half[1][j], half[2][j])) for j in range(eq.mechanism.dof)]
            turned += [[column[i] for column in columns] for i in range(3)]
        parts: list[Sequence[Node]] = [*R, p, *motion, *turned]
        return {"out": [x for part in parts for x in part]}

    return make


class Evaluator:
    """Torques, actuator rows and poses of a robot at one place, without checks.

    Parameters
    ----------
    mechanism : Mechanism
        Robot with n coordinates and k actuators.
    """

    def __init__(self, mechanism: Mechanism) -> None:
        self.mechanism = mechanism
        n = mechanism.dof
        phi = node_values(mechanism, mechanism.parameters.values)
        self._arrays = {"q": np.zeros((1, positions_of(mechanism))), "v": np.zeros((1, n)), "a": np.zeros((1, n)), "phi": phi}
        self._rows = coupling_rows(mechanism)
        self._direct = (
            not mechanism.loops and not mechanism.couplings and np.array_equal(self._rows, np.eye(self._rows.shape[1]))
        )
        self._known: dict[str, tuple[Callable[[], None], Array]] = {}
        self._closed = False

    def _ask(self, name: str, make: Maker) -> Array:
        """Return a quantity of the place by its compiled function."""
        if name not in self._known:
            inputs = {label: self._arrays[label].shape[1] for label in ("q", "v", "a")}
            shared = {"phi": self._arrays["phi"].size}

            def build() -> Compiled:
                return Compiled(Function("at_place", inputs, make(Equations(self.mechanism)), shared), 1)

            code = cached(self.mechanism, ("at_place", name), build)
            out = np.zeros((1, len(code.function.outputs["out"])))
            self._known[name] = code.fixed({**self._arrays, "out": out}), out
        compute, out = self._known[name]
        compute()
        return np.array(out[0])

    def place(self, x: Array, v: Array) -> None:
        """Put the robot at positions x (n,) and velocities v (n,) of its coordinates."""
        self._arrays["v"][0] = v
        if not self.mechanism.loops:
            self._arrays["q"][0] = x
            return
        closure, q = self.mechanism.closure, self._arrays["q"][0]
        before = q.copy() if self._closed else None
        if before is not None:
            q[closure.independent] = x
            moved = 0.0
            for _ in range(20):
                found = self._ask("closing", _closing)
                q += found[:-2]
                moved += found[-2]
                if found[-2] < CLOSED or not moved < REACH:
                    break
            self._closed = found[-2] < CLOSED and moved < REACH
        if not self._closed:
            q[:] = close_positions(self.mechanism, x[None], before)[0]
            self._closed = True
        if not self._ask("closing", _closing)[-1] >= CLOSURE_SINGULAR:
            close_rates(self.mechanism, q[None].copy(), v[None], np.zeros((1, x.size)))  # raises the sentence

    def torques(self, a: Array) -> Array:
        """Return the generalised forces (n,) of accelerations a: M a + C v + g + rotor, friction, offset and spring."""
        self._arrays["a"][0] = a
        return self._ask("torques", _torques)

    def inertia(self) -> Array:
        """Return the mass matrix (n, n) of the place, rotors included."""
        return self._ask("inertia", _inertia).reshape(self.mechanism.dof, -1)

    def actuator_rows(self) -> Array:
        """Return A (k, n) with rho_v = A v, behind the gears."""
        return self._ask("rows", _rows).reshape(self._rows.shape[0], -1)

    def actuator_torques(self, f: Array, preload: Array | None = None) -> Array:
        """Return torques of rho (k,) with A^T tau = f (n,): minimum norm, plus the internal part of a preload (k,)."""
        if self._direct:
            return f
        A = self.actuator_rows()
        k, n = A.shape
        if k == n and preload is None:
            return solve(A.T, f, self.mechanism, "the actuators do not hold the robot")
        U, sizes, Vt = np.linalg.svd(A)
        if k < n or sizes[-1] <= SINGULAR * sizes[0]:
            raise _lost(self.mechanism, "the actuators do not hold the robot", self._arrays["q"][0])
        tau = U[:, :n] @ ((Vt @ f) / sizes)
        if preload is not None and k > n:
            tau += U[:, n:] @ (U[:, n:].T @ preload)
        return np.asarray(tau)

    def pose(self, link: str) -> Pose:
        """Return where the frame of a link is and how it moves, in base axes."""
        found = self._ask(f"pose of {link}", _pose(link))
        return Pose(found[:9].reshape(3, 3), found[9:12], found[12:18], found[18:24], found[24:].reshape(6, -1))


def solve(M: Array, right: Array, mechanism: Mechanism, what: str) -> Array:
    """Return M^-1 right, or say in one sentence that `what` is lost because it does not exist."""
    try:
        out = np.linalg.solve(M, right)
    except np.linalg.LinAlgError:
        raise _lost(mechanism, what, None) from None
    return np.asarray(out)


def _lost(mechanism: Mechanism, what: str, q: Array | None) -> DynidentError:
    place = "" if q is None else f" at {np.round(q, 4).tolist()}"
    return DynidentError(f"robot '{mechanism.name}': {what}{place} (a singularity); keep the reference away from it")


def rotation_vector(D: Array) -> Array:
    """Return axis times angle [rad] of a rotation matrix, up to half a turn; `pose_error` of mechanics does so for batches."""
    (a, b, c), (d, e, f), (g, h, i) = D.tolist()
    x, y, z = 0.5 * (h - f), 0.5 * (c - g), 0.5 * (d - b)
    sine, cosine = sqrt(x * x + y * y + z * z), 0.5 * (a + e + i - 1.0)
    if sine <= 1e-8 and cosine < 0.0:  # half a turn: the axis is the largest column of D + 1
        column = (D + np.eye(3))[:, int(np.argmax(np.diag(D)))]
        return np.asarray(pi * column / np.linalg.norm(column))
    scale = atan2(sine, cosine) / sine if sine > 1e-8 else 1.0
    return np.array([x * scale, y * scale, z * scale])
