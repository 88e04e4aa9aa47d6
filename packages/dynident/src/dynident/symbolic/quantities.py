"""The quantities of `derive`, from the robot's equations (`mechanics.Equations`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dynident.graph.expression import Node, substitute, total
from dynident.mechanics.equations import Equations
from dynident.mechanics.solving import solve_symmetric
from dynident.symbolic.program import Quantity

Rows = Sequence[Sequence[Node]]
Entries = Sequence[Node] | Rows

TORQUES = "torques and forces tau of the independent coordinates"


def _quantity(name: str, result: str, meaning: str, entries: Entries) -> Quantity:
    """Return a vector or a matrix with its shape."""
    rows = [row if isinstance(row, Sequence) else (row,) for row in entries]
    shape = (len(rows), len(rows[0])) if any(isinstance(row, Sequence) for row in entries) else (len(rows),)
    return Quantity(name, result, shape, tuple(x for row in rows for x in row), meaning)


def _accelerations(equations: Equations, _: str) -> Entries:
    """Return a = M^-1 (tau - h), h the torques without acceleration."""
    graph, n = equations.graph, equations.mechanism.dof
    still = substitute(equations.torques(), dict.fromkeys(equations.a, graph.zero))
    right = [[tau - h] for tau, h in zip(graph.symbols("tau", n), still, strict=True)]
    return [row[0] for row in solve_symmetric(equations.mass_matrix(), right)[0]]


def _pose(equations: Equations, link: str) -> Entries:
    R, p = equations.pose(link)
    zero, one = equations.graph.zero, equations.graph.one
    return [*((*row, shift) for row, shift in zip(R, p, strict=True)), (zero, zero, zero, one)]


# Name of the result, what it is, and its entries.
_FORMS: dict[str, tuple[str, str, Callable[[Equations, str], Entries]]] = {
    "inverse_dynamics": ("tau", TORQUES, lambda e, _: e.torques()),
    "forward_dynamics": ("acc", "accelerations that the torques tau cause", _accelerations),
    "regressor": ("Y", "regressor Y, tau = Y phi", lambda e, _: e.regressor()),
    "mass_matrix": ("M", "mass matrix M", lambda e, _: e.mass_matrix()),
    "coriolis_matrix": ("C", "Coriolis matrix C of the Christoffel symbols", lambda e, _: e.coriolis_matrix()),
    "gravity": ("g", "gravity torques g", lambda e, _: e.gravity()),
    "forward_kinematics": ("T", "pose T of link '{}' in the base frame", _pose),
    "jacobian": ("J", "Jacobian J of link '{}' in its own axes", lambda e, link: e.jacobian(link)),
    "energies": ("E", "kinetic and potential energy", lambda e, _: e.energies()),
}


def quantity(equations: Equations, name: str, link: str) -> Quantity:
    """Return a quantity that does not need base parameters, kinematics of the given link."""
    result, meaning, make = _FORMS[name]
    return _quantity(name, result, meaning.format(link), make(equations, link))


def base_quantity(equations: Equations, name: str, regressor: Quantity, columns: Sequence[int], K: Rows) -> Quantity:
    """Return a quantity in base parameters: the columns of the leaders, or the others at zero; K (b, p) regroups them."""
    n, p = regressor.shape
    if name == "base_regressor":
        rows = [[regressor.entries[d * p + c] for c in columns] for d in range(n)]
        return _quantity(name, "W", "base regressor W, tau = W beta", rows)
    if name == "base_parameters":
        beta = [total([k * x for k, x in zip(row, equations.phi, strict=True)]) for row in K]
        return _quantity(name, "beta", "base parameters beta of the standard parameters", beta)
    phi = [equations.graph.zero] * p
    for i, c in enumerate(columns):
        phi[c] = equations.graph.symbol(f"beta[{i}]")
    return _quantity(name, "tau", TORQUES, equations.torques(phi))
