"""The equation of motion of one robot's tree for its own compiled code: what `mechanics.sample_kernels` computes for any tree.

    motion     q, v -> M (lower triangle, on top of constant inertias) and h; of loops also -Phi_dot_dot without accelerations
    closure    q    -> Phi and dPhi/dq of the independent closure equations
    solve      M, f -> M^-1 f by L D L^T

Parameters stay inputs, so one robot's code serves all its copies with other masses; only the geometry is built in.
"""

from __future__ import annotations

from dataclasses import dataclass

from dynident.graph import Graph, Node, total
from dynident.mechanics.geometry import numeric_geometry
from dynident.mechanics.loops import Loops
from dynident.mechanics.matrices import mass_matrix
from dynident.mechanics.recursion import Recursion
from dynident.mechanism import Mechanism


@dataclass(frozen=True)
class Entry:
    """One number that the code writes.

    Parameters
    ----------
    array : str
        Array it goes to.
    index : int
        Where in that array.
    value : Node
        What.
    """

    array: str
    index: int
    value: Node


@dataclass(frozen=True)
class Task:
    """One function to compile.

    Parameters
    ----------
    name : str
        Its name.
    inputs : tuple of str
        Arrays it reads; symbol ``q[3]`` is entry 3 of array ``q``.
    outputs : tuple of str
        Arrays it writes.
    entries : tuple of Entry
        What it writes; other entries are left as they are.
    """

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    entries: tuple[Entry, ...]


def motion_tasks(mechanism: Mechanism, max_nodes: int) -> list[Task]:
    """Return the functions of a robot: ``motion``, ``solve`` and, with loops, ``closure``.

    motion(q, v, p, b, M, h, r) reads tree coordinates and velocities, inertial parameters and constant inertias b (n, n) and
    writes the entries of M (n, n) below and on the diagonal that are not those of b, h (n,) and, of loops, column 0 of r (m, w)
    with w = dof + 1. closure(q, J, r) writes the entries of J (m, n) that are not zero and the last column of r. solve(M, x, d)
    overwrites x (dof,) by M^-1 x and writes the pivots into d (dof,).

    Parameters
    ----------
    mechanism : Mechanism
        Robot.
    max_nodes : int
        Size of the expressions at which to give up with a `DynidentError`.

    Returns
    -------
    list of Task
        Two or three functions.
    """
    graph, arrays = Graph(max_nodes=max_nodes), mechanism.tree.arrays
    n, width = len(mechanism.tree.coordinates), mechanism.tree.inertias.size
    geometry = numeric_geometry(graph, mechanism)
    q, v, p = ([graph.symbol(f"{key}[{i}]") for i in range(size)] for key, size in (("q", n), ("v", n), ("p", width)))
    state = Recursion(graph, mechanism, geometry, q, v, [graph.zero] * n, geometry.gravity)
    bodies = [tuple(p[c : c + 10]) if c >= 0 else None for c in map(int, arrays.column)]
    M = mass_matrix(state, bodies)
    entries = [Entry("h", i, value) for i, value in enumerate(state.inverse_dynamics(bodies))]
    for i in range(n):
        for j in range(i + 1):
            if not M[i][j].is_const(0.0):
                entries.append(Entry("M", i * n + j, M[i][j] + graph.symbol(f"b[{i * n + j}]")))
    inputs, outputs = ("q", "v", "p", "b"), ("M", "h", "r")
    if not mechanism.loops:
        return [Task("motion", inputs, outputs, tuple(entries)), _solve(graph, mechanism.dof)]
    cuts, wide = mechanism.closure.selected, mechanism.dof + 1
    loops = Loops(state, cuts)
    entries += [Entry("r", i * wide, value) for i, value in enumerate(loops.biases)]
    closing = [Entry("r", i * wide + wide - 1, value) for i, value in enumerate(loops.residuals)]
    for i, row in enumerate(loops.jacobian):
        closing += [Entry("J", i * n + d, value) for d, value in enumerate(row) if not value.is_const(0.0)]
    motion, closure = Task("motion", inputs, outputs, tuple(entries)), Task("closure", ("q",), ("J", "r"), tuple(closing))
    return [motion, closure, _solve(graph, mechanism.dof)]


def _solve(graph: Graph, n: int) -> Task:
    """Return the solution of M x = f by M = L D L^T, reading the lower triangle of M; no square roots, M may be indefinite."""
    M = [[graph.symbol(f"M[{i * n + j}]") for j in range(i + 1)] for i in range(n)]
    x = [graph.symbol(f"x[{i}]") for i in range(n)]
    L: list[list[Node]] = [[graph.zero] * n for _ in range(n)]
    LD: list[list[Node]] = [[graph.zero] * n for _ in range(n)]
    pivots, inverses = [], []
    for j in range(n):
        pivots.append(M[j][j] - total([graph.zero, *(L[j][k] * LD[j][k] for k in range(j))]))
        inverses.append(graph.one / pivots[j])
        x[j] = x[j] - total([graph.zero, *(L[j][k] * x[k] for k in range(j))])
        for i in range(j + 1, n):
            LD[i][j] = M[i][j] - total([graph.zero, *(LD[i][k] * L[j][k] for k in range(j))])
            L[i][j] = LD[i][j] * inverses[j]
    for i in range(n - 1, -1, -1):
        x[i] = x[i] * inverses[i] - total([graph.zero, *(L[k][i] * x[k] for k in range(i + 1, n))])
    entries = [Entry("x", i, value) for i, value in enumerate(x)] + [Entry("d", i, value) for i, value in enumerate(pivots)]
    return Task("solve", ("M",), ("x", "d"), tuple(entries))
