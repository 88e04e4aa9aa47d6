"""Loop closure as rows of equations, and what they leave free.

Every cut joint becomes scalar equations Phi(q_tree) = 0 of three sorts, with point x and frame axes of the two bodies a and b:

    POINT    e . (x_a - x_b)          e fixed in the base
    SLIDE    u_a . (x_b - x_a)        u fixed in body a
    DOT      u_a . e_b                u fixed in body a, e fixed in body b

and every coupling a LINEAR one, c . q - offset. Cut joints of planar robots repeat equations; the rank of dPhi/dq at closed
configurations tells how many count, hence the degrees of freedom, and which rows to solve.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynident.errors import DescriptionError
from dynident.mechanism.elements import Loop, Placement, perpendicular, rotation_exp
from dynident.mechanism.tree import FREE, PRISMATIC, REVOLUTE, SPHERICAL, Tree

if TYPE_CHECKING:
    from dynident.mechanism.mechanism import Mechanism

Array = NDArray[np.float64]

POINT, SLIDE, DOT, LINEAR = 0, 1, 2, 3
CLOSED = 1e-10  # residual of a closed configuration [m, or dot product of unit vectors]
RANK = 1e-7  # relative size below which a pivot of the constraint Jacobian counts as zero
DIFFERENCE = 1e-6  # rad or m


class LoopArrays(NamedTuple):
    """Closure equations as flat arrays, one entry per row."""

    kind: NDArray[np.int64]  # POINT, SLIDE, DOT or LINEAR
    node_a: NDArray[np.int64]  # Tree nodes of the two bodies, -1 for the base
    node_b: NDArray[np.int64]  # Tree nodes of the two bodies, -1 for the base
    point_a: Array  # The point in each node's frame
    point_b: Array  # The point in each node's frame
    vector_a: Array  # u in node a's frame; e in node b's frame (DOT) or in the base frame (POINT)
    vector_b: Array  # u in node a's frame; e in node b's frame (DOT) or in the base frame (POINT)
    linear: Array  # c of LINEAR rows
    offset: Array  # Offset of LINEAR rows

    def take(self, rows: Sequence[int]) -> LoopArrays:
        """Return some of the rows."""
        index = np.asarray(rows, dtype=np.int64)
        return self._replace(**{name: np.ascontiguousarray(array[index]) for name, array in self._asdict().items()})


@dataclass(frozen=True, eq=False)
class Closure:
    """What the loops of a mechanism leave free."""

    arrays: LoopArrays  # All closure equations
    names: tuple[str, ...]  # Loop (or coupled joint) each equation belongs to
    selected: LoopArrays  # Independent equations, as many as dependent coordinates
    independent: NDArray[np.int64]  # Tree coordinates that are free, and those that follow
    dependent: NDArray[np.int64]  # Tree coordinates that are free, and those that follow
    home: Array  # A closed configuration; it selects the assembly and working mode
    dof: int  # Degrees of freedom, n_tree - rank
    redundant_equations: int  # Equations that repeat others (over-constraint), rows - rank


def loop_arrays(mechanism: Mechanism) -> tuple[LoopArrays, tuple[str, ...]]:
    """Return the closure equations of a mechanism and the loop each belongs to."""
    tree = mechanism.tree
    n = len(tree.coordinates)
    rows: list[tuple[int, int, int, Array, Array, Array, Array]] = []
    names: list[str] = []
    for loop in mechanism.loops:
        node_a, frame_a = tree.frames[loop.body_a]
        node_b, frame_b = tree.frames[loop.body_b]
        A, B = frame_a @ loop.placement_a, frame_b @ loop.placement_b
        for kind, u, e in _equations(loop, A, B):
            rows.append((kind, node_a, node_b, A.translation, B.translation, u, e))
            names.append(loop.name)
    linear, offset = np.zeros((len(rows) + len(mechanism.couplings), n)), np.zeros(len(rows) + len(mechanism.couplings))
    for i, coupling in enumerate(mechanism.couplings, len(rows)):
        linear[i, tree.coordinates.index(coupling.joint)] = 1.0
        for name, ratio in coupling.of.items():
            linear[i, tree.coordinates.index(name)] -= ratio
        offset[i] = coupling.offset
        names.append(coupling.joint)
    zero = np.zeros(3)
    rows += [(LINEAR, -1, -1, zero, zero, zero, zero)] * len(mechanism.couplings)
    kinds, first, second = (np.array([row[i] for row in rows], dtype=np.int64) for i in range(3))
    vectors = [np.array([row[i] for row in rows], dtype=np.float64).reshape(-1, 3) for i in range(3, 7)]
    return LoopArrays(kinds, first, second, vectors[0], vectors[1], vectors[2], vectors[3], linear, offset), tuple(names)


def _equations(loop: Loop, A: Placement, B: Placement) -> list[tuple[int, Array, Array]]:
    """Return (kind, u, e) of each equation of a cut joint, vectors in node frames."""
    zero, base = np.zeros(3), np.eye(3)
    points = [(POINT, zero, axis) for axis in base]
    axes = [(DOT, A.rotation @ base[i], B.rotation @ base[(i + 1) % 3]) for i in range(3)]
    first, second = perpendicular(loop.axis)
    if loop.kind in ("point", "spherical"):
        return points
    if loop.kind == "revolute":
        return points + [(DOT, A.rotation @ loop.axis, B.rotation @ e) for e in (first, second)]
    if loop.kind == "universal":
        return [*points, (DOT, A.rotation @ loop.axis, B.rotation @ loop.axis2)]
    if loop.kind == "prismatic":
        return [(SLIDE, A.rotation @ u, zero) for u in (first, second)] + axes
    return points + axes


def residual(tree: Tree, loops: LoopArrays, q: Array) -> Array:
    """Return Phi (..., m) of configurations q (..., n_tree)."""
    R, p = _poses(tree, q)
    (Ra, pa), (Rb, pb) = ((R[..., nodes, :, :], p[..., nodes, :]) for nodes in (loops.node_a, loops.node_b))
    gap = pa + _turned(Ra, loops.point_a) - pb - _turned(Rb, loops.point_b)
    u, e = _turned(Ra, loops.vector_a), _turned(Rb, loops.vector_b)
    by_kind = {
        POINT: np.sum(loops.vector_b * gap, axis=-1),
        SLIDE: -np.sum(u * gap, axis=-1),
        DOT: np.sum(u * e, axis=-1),
        LINEAR: np.sum(loops.linear * q[..., None, :], axis=-1) - loops.offset,
    }
    return np.choose(loops.kind, [by_kind[kind] for kind in range(4)])


def _turned(R: Array, x: Array) -> Array:
    """Return R x of matrices (..., 3, 3) and vectors (..., 3)."""
    return np.asarray(np.sum(R * x[..., None, :], axis=-1))


def _poses(tree: Tree, q: Array) -> tuple[Array, Array]:
    """Return orientations (..., nodes + 1, 3, 3) and origins of all nodes in the base frame, and last, at -1, of the base."""
    arrays = tree.arrays
    count, batch = arrays.parent.size, q.shape[:-1]
    orientations, origins = np.empty((*batch, count + 1, 3, 3)), np.zeros((*batch, count + 1, 3))
    orientations[..., -1, :, :] = np.eye(3)
    for i in range(count):
        kind, d, parent = arrays.kind[i], arrays.dof[i], arrays.parent[i]  # -1 is the base
        R, p = arrays.rotation[i], arrays.translation[i]
        if kind == REVOLUTE:
            angle = q[..., d, None, None]
            R = arrays.turn[i, 0] + np.cos(angle) * arrays.turn[i, 1] + np.sin(angle) * arrays.turn[i, 2]
        elif kind == PRISMATIC:
            p = p + _turned(R, arrays.axis[i]) * q[..., d, None]
        elif kind == SPHERICAL:
            R = R @ _rotations(q[..., d : d + 3])
        elif kind == FREE:
            R, p = R @ _rotations(q[..., d + 3 : d + 6]), p + _turned(R, q[..., d : d + 3])
        before = orientations[..., parent, :, :]
        orientations[..., i, :, :] = np.sum(before[..., :, :, None] * R[..., None, :, :], axis=-2)
        origins[..., i, :] = origins[..., parent, :] + _turned(before, p)
    return orientations, origins


def _rotations(r: Array) -> Array:
    """Return exp [r]x of rotation vectors (..., 3)."""
    return np.array([rotation_exp(one) for one in r.reshape(-1, 3)]).reshape(*r.shape, 3)


def constraint_jacobian(tree: Tree, loops: LoopArrays, q: Array) -> Array:
    """Return dPhi/dq by central differences, accurate enough to count ranks."""
    moves = DIFFERENCE * np.eye(q.size)
    return np.asarray(residual(tree, loops, q + moves) - residual(tree, loops, q - moves)).T / (2.0 * DIFFERENCE)


def assemble(tree: Tree, loops: LoopArrays, start: Array, iterations: int = 100) -> tuple[Array, float]:
    """Close the loops from a guess by damped Gauss-Newton steps of minimum length."""
    q = start.copy()
    phi = residual(tree, loops, q)
    for _ in range(iterations):
        if np.max(np.abs(phi), initial=0.0) < 1e-13:
            break
        step = -np.linalg.lstsq(constraint_jacobian(tree, loops, q), phi, rcond=1e-8)[0]
        step *= min(1.0, 0.5 / max(float(np.max(np.abs(step))), 1e-300))
        for _ in range(12):
            trial = residual(tree, loops, q + step)
            if np.linalg.norm(trial) < np.linalg.norm(phi):
                break
            step = 0.5 * step
        else:
            break
        q, phi = q + step, trial
    return q, float(np.max(np.abs(phi), initial=0.0))


def find_closure(mechanism: Mechanism, independent: Sequence[str]) -> Closure:
    """Close the loops near home, count what is free and choose the equations to solve."""
    tree = mechanism.tree
    arrays, names = loop_arrays(mechanism)
    guess = np.array([float(mechanism.home.get(name, 0.0)) for name in tree.coordinates])
    home, error = assemble(tree, arrays, guess)
    if error > CLOSED:
        worst = names[int(np.argmax(np.abs(residual(tree, arrays, home))))]
        raise DescriptionError(
            f"robot '{mechanism.name}': no configuration near home closes loop '{worst}' (gap {error:.3g}); "
            "check its frames, or give a better home position"
        )
    generator = np.random.default_rng(0)
    stack = [constraint_jacobian(tree, arrays, home)]
    for _ in range(4):  # generic configurations beside home, which may be special
        q, error = assemble(tree, arrays, home + generator.uniform(-0.1, 0.1, home.size))
        if error < CLOSED:
            stack.append(constraint_jacobian(tree, arrays, q))
    ranks = [int(np.linalg.matrix_rank(J, tol=RANK * np.linalg.norm(J, 2))) for J in stack]
    rank, J = max(ranks), stack[int(np.argmax(ranks))]
    free = tree.arrays.support.shape[1] - rank
    rows = _pivots(J.T, rank)
    wanted = [_coordinate(mechanism, name) for name in independent]
    if wanted and len(wanted) != free:
        raise DescriptionError(
            f"robot '{mechanism.name}' has {free} degrees of freedom but {len(wanted)} independent coordinates are named; "
            f"name {free} of {', '.join(tree.coordinates)}"
        )
    if not wanted:
        driven = [tree.coordinates.index(c) for a in mechanism.actuators for c in a.coupling if c in tree.coordinates]
        rest = [i for i in range(home.size) if i not in driven]
        # Columns that are NOT needed to span the constraints are free: take the actuated ones last into the pivots.
        dependent = _greedy(J[rows], [*rest, *dict.fromkeys(driven)], rank)
        wanted = [i for i in range(home.size) if i not in dependent]
    dependent = [i for i in range(home.size) if i not in wanted]
    if not _spans(J[np.ix_(rows, dependent)], rank):
        listed = ", ".join(tree.coordinates[i] for i in wanted)
        if any(_spans(other[:, dependent], rank) for other in stack):
            raise DescriptionError(
                f"robot '{mechanism.name}' stands on a singularity at home (a dead point of {listed}), where they do not "
                "determine the other joints; give a home away from it, or choose other independent coordinates"
            )
        raise DescriptionError(
            f"robot '{mechanism.name}': {listed} do not determine the other joints; choose other independent ones"
        )
    return Closure(
        arrays,
        names,
        arrays.take(rows),
        np.array(wanted, dtype=np.int64),
        np.array(dependent, dtype=np.int64),
        home,
        free,
        int(arrays.kind.size - rank),
    )


def _spans(J: Array, rank: int) -> bool:
    """Return whether J has this rank."""
    return bool(np.linalg.matrix_rank(J, tol=RANK * max(float(np.linalg.norm(J, 2)), 1e-300)) >= rank)


def _coordinate(mechanism: Mechanism, name: str) -> int:
    if name not in mechanism.tree.coordinates:
        raise DescriptionError(
            f"robot '{mechanism.name}': independent coordinate '{name}' is not one of {', '.join(mechanism.tree.coordinates)}"
        )
    return mechanism.tree.coordinates.index(name)


def _pivots(A: Array, rank: int) -> list[int]:
    """Return `rank` well-conditioned independent columns of A."""
    from scipy.linalg import qr  # noqa: PLC0415 - scipy.linalg costs import time

    return sorted(int(i) for i in qr(A, mode="r", pivoting=True)[1][:rank])


def _greedy(J: Array, order: Sequence[int], rank: int) -> list[int]:
    """Return `rank` independent columns of J, preferring those early in `order`."""
    kept: list[int] = []
    Q = np.zeros((J.shape[0], 0))
    # A coordinate that moves no loop, as those of a free base, has a column of rounding errors only.
    noise = RANK * max(float(np.linalg.norm(J, 2)), 1e-300)
    for c in order:
        w = J[:, c] - Q @ (Q.T @ J[:, c])
        w = w - Q @ (Q.T @ w)
        if np.linalg.norm(w) > max(1e-6 * float(np.linalg.norm(J[:, c])), noise) and len(kept) < rank:
            Q = np.column_stack([Q, w / np.linalg.norm(w)])
            kept.append(c)
    return kept
