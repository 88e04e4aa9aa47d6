"""The quantities of `derive`, from the robot's equations (`mechanics.Equations`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dynident.graph import Node, substitute, total
from dynident.mechanics import Equations, solve_symmetric
from dynident.symbolic.program import Quantity

Rows = Sequence[Sequence[Node]]


def _matrix(name: str, result: str, rows: Rows, meaning: str) -> Quantity:
    return Quantity(name, result, (len(rows), len(rows[0])), tuple(x for row in rows for x in row), meaning)


def _vector(name: str, result: str, entries: Sequence[Node], meaning: str) -> Quantity:
    return Quantity(name, result, (len(entries),), tuple(entries), meaning)


def _torques(name: str, tau: Sequence[Node]) -> Quantity:
    return _vector(name, "tau", tau, "torques and forces tau of the independent coordinates")


def _accelerations(equations: Equations) -> Quantity:
    """Return a = M^-1 (tau - h), h the torques without acceleration."""
    graph, n = equations.graph, equations.mechanism.dof
    still = substitute(equations.torques(), dict.fromkeys(equations.a, graph.zero))
    right = [[tau - h] for tau, h in zip(graph.symbols("tau", n), still, strict=True)]
    solved = solve_symmetric(equations.mass_matrix(), right)[0]
    return _vector("forward_dynamics", "acc", [row[0] for row in solved], "accelerations that the torques tau cause")


def _pose(equations: Equations, link: str) -> Quantity:
    R, p = equations.pose(link)
    zero, one = equations.graph.zero, equations.graph.one
    rows = [*((*row, shift) for row, shift in zip(R, p, strict=True)), (zero, zero, zero, one)]
    return _matrix("forward_kinematics", "T", rows, f"pose T of link '{link}' in the base frame")


_MAKERS: dict[str, Callable[[Equations, str], Quantity]] = {
    "inverse_dynamics": lambda e, _: _torques("inverse_dynamics", e.torques()),
    "forward_dynamics": lambda e, _: _accelerations(e),
    "regressor": lambda e, _: _matrix("regressor", "Y", e.regressor(), "regressor Y, tau = Y phi"),
    "mass_matrix": lambda e, _: _matrix("mass_matrix", "M", e.mass_matrix(), "mass matrix M"),
    "coriolis_matrix": lambda e, _: _matrix(
        "coriolis_matrix", "C", e.coriolis_matrix(), "Coriolis matrix C of the Christoffel symbols"
    ),
    "gravity": lambda e, _: _vector("gravity", "g", e.gravity(), "gravity torques g"),
    "forward_kinematics": _pose,
    "jacobian": lambda e, link: _matrix("jacobian", "J", e.jacobian(link), f"Jacobian J of link '{link}' in its own axes"),
    "energies": lambda e, _: _vector("energies", "E", e.energies(), "kinetic and potential energy"),
}


def quantity(equations: Equations, name: str, link: str) -> Quantity:
    """Return a quantity that does not need base parameters, kinematics of the given link."""
    return _MAKERS[name](equations, link)


def base_quantity(equations: Equations, name: str, regressor: Quantity, columns: Sequence[int], K: Rows) -> Quantity:
    """Return a quantity in base parameters: the columns of the leaders, or the others at zero; K (b, p) regroups them."""
    n, p = regressor.shape
    if name == "base_regressor":
        rows = [[regressor.entries[d * p + c] for c in columns] for d in range(n)]
        return _matrix(name, "W", rows, "base regressor W, tau = W beta")
    if name == "base_parameters":
        beta = [total([k * x for k, x in zip(row, equations.phi, strict=True)]) for row in K]
        return _vector(name, "beta", beta, "base parameters beta of the standard parameters")
    phi = [equations.graph.zero] * p
    for i, c in enumerate(columns):
        phi[c] = equations.graph.symbol(f"beta[{i}]")
    return _torques(name, equations.torques(phi))
