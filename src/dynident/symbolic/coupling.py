"""Joints that follow others, in closed form: positions by running the coupling's own function on expressions.

    q_t = f(q),   G = df/dq,   v_t = G v,   a_t = G a + Gdot v,   tau = G^T tau_t

A coupling's function is NumPy code; called with an array of expressions it builds its own closed form, which is then
differentiated by the rules of calculus. A function that compares, rounds or calls anything else than sums, products,
quotients, whole powers, sin, cos, tan, sqrt and arctan2 has no closed form here, and is refused.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynident.errors import DescriptionError
from dynident.mechanism import Coupling, Mechanism
from dynident.symbolic.expression import Graph, Node
from dynident.symbolic.order import reachable
from dynident.symbolic.vectors import total


def tree_positions(graph: Graph, mechanism: Mechanism, q: Sequence[Node]) -> list[Node]:
    """Return all tree coordinates as expressions of the independent ones.

    Parameters
    ----------
    graph : Graph
        Where the expressions live.
    mechanism : Mechanism
        Robot.
    q : sequence of Node
        Independent coordinates.

    Returns
    -------
    list of Node
        Tree coordinates.
    """
    known = dict(zip(mechanism.coordinate_names, q, strict=True))
    waiting = list(mechanism.couplings)
    while waiting:
        ready = next((c for c in waiting if all(name in known for name in c.of)), None)
        if ready is None:
            names = ", ".join(c.joint for c in waiting)
            raise DescriptionError(f"couplings of {names} follow each other in a circle; break it")
        waiting.remove(ready)
        known[ready.joint] = _follow(graph, ready, [known[name] for name in ready.of])
    return [known[name] for name in mechanism.tree.coordinates]


def _follow(graph: Graph, coupling: Coupling, x: Sequence[Node]) -> Node:
    if coupling.function is None:
        terms = [node * ratio for node, ratio in zip(x, coupling.of.values(), strict=True)]
        return total([*terms, graph.const(coupling.offset)])
    row = np.empty((1, len(x)), dtype=object)
    row[0, :] = list(x)
    try:
        result = np.ravel(np.asarray(coupling.function(row), dtype=object))[0]
        return graph.node(result if isinstance(result, Node) else float(result)) + coupling.offset
    except (TypeError, AttributeError, ValueError, IndexError) as error:
        raise DescriptionError(
            f"coupling of joint '{coupling.joint}' has no closed form that can be differentiated ({error}); write its function "
            "with sums, products, quotients, powers, sin, cos, tan, sqrt and arctan2 of NumPy"
        ) from error


def derivative(node: Node, symbol: Node) -> Node:
    """Return the derivative of an expression with respect to a symbol.

    Parameters
    ----------
    node : Node
        Expression of sums, products, quotients, sines, cosines, roots and angles.
    symbol : Node
        Symbol.

    Returns
    -------
    Node
        The derivative.
    """
    graph = node.graph
    slope: dict[int, Node] = {}
    for x in reachable([node]):
        d = [slope[arg.index] for arg in x.args]
        if x.op in ("const", "symbol"):
            slope[x.index] = graph.one if x is symbol else graph.zero
        elif x.op == "add":
            slope[x.index] = d[0] + d[1]
        elif x.op == "sub":
            slope[x.index] = d[0] - d[1]
        elif x.op == "neg":
            slope[x.index] = -d[0]
        elif x.op == "mul":
            slope[x.index] = d[0] * x.args[1] + x.args[0] * d[1]
        elif x.op == "div":
            slope[x.index] = (d[0] - x * d[1]) / x.args[1]
        elif x.op == "sin":
            slope[x.index] = graph.call("cos", x.args[0]) * d[0]
        elif x.op == "cos":
            slope[x.index] = -(graph.call("sin", x.args[0]) * d[0])
        elif x.op == "sqrt":
            slope[x.index] = 0.5 * d[0] / x
        elif x.op == "atan2":
            y, base = x.args
            slope[x.index] = (d[0] * base - y * d[1]) / (y * y + base * base)
        else:
            raise DescriptionError(f"a coupling contains '{x.op}', which cannot be differentiated; use smooth functions")
    return slope[node.index]
