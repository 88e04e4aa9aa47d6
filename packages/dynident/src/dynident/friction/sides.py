"""The two sides of rest: what an expression of the velocity becomes for a given direction, and without jumps.

    directed(f, v, s)    sign(v) = s = +1 or -1, |v| = s v, [v > 0] = [s > 0], ...   one side's branch, smooth through v = 0
    smooth(f, v, w)      sign(v) = tanh(v/w), [v > 0] = (1 + tanh(v/w))/2            for optimisers

`directed` at v = 0 is the limit of f from that side: the level at which dry friction breaks away.
"""

from __future__ import annotations

from dynident.graph.calculus import derivative
from dynident.graph.elementary import tanh, where
from dynident.graph.expression import Node, reachable, substitute

_ORDERS = 4  # derivatives looked at to find the side to which an expression leaves zero


def directed(output: Node, v: Node, way: Node | float) -> Node:
    """Return the branch of f(v) for one direction s = +1 or -1, smooth through v = 0; there it is the limit from that side."""
    graph = output.graph
    side = graph.node(way)
    done: dict[int, Node] = {}
    for node in reachable([output]):
        args = [done[arg.index] for arg in node.args]
        leaves = None
        if node.op in ("sign", "abs"):
            leaves = _leaves(args[0], v, side)
        elif node.op in ("lt", "le", "min", "max"):
            leaves = _leaves(args[1] - args[0], v, side)
        done[node.index] = node.rebuilt(args) if leaves is None else _branch(node.op, args, leaves)
    return done[output.index]


def _leaves(x: Node, v: Node, side: Node) -> Node | None:
    """Return the sign of x next to v = 0 on one side, or None where x is not zero at v = 0."""
    graph = x.graph
    here = substitute([x], {v: graph.zero})[0]
    if not here.is_const(0.0) or v not in reachable([x]):
        return None
    for order in range(1, _ORDERS + 1):
        x = derivative(x, v)
        here = substitute([x], {v: graph.zero})[0]
        if not here.is_const(0.0):
            sign = graph.call("sign", here)
            return sign * side if order % 2 else sign
    return graph.zero


def _branch(op: str, args: list[Node], leaves: Node) -> Node:
    """Return an operation whose outcome is known from the sign of its argument, or of the second less the first one."""
    if op == "sign":
        return leaves
    if op == "abs":
        return leaves * args[0]
    if op == "lt":
        return leaves > 0.0
    if op == "le":
        return leaves >= 0.0
    rises: Node = where(leaves >= 0.0, args[0], args[1]) if op == "min" else where(leaves >= 0.0, args[1], args[0])
    return rises


def smooth(output: Node, v: Node, width: Node | float) -> Node:
    """Return an expression whose jumps with the velocity are spread over a width [rad/s or m/s]."""
    done: dict[int, Node] = {}
    moves: dict[int, bool] = {}
    for node in reachable([output]):
        args = [done[arg.index] for arg in node.args]
        moves[node.index] = node is v or any(moves[arg.index] for arg in node.args)
        if moves[node.index] and node.op == "sign":
            new = tanh(args[0] / width)
        elif moves[node.index] and node.op in ("lt", "le"):
            new = 0.5 + 0.5 * tanh((args[1] - args[0]) / width)
        elif node.op == "select" and moves[node.args[0].index]:
            new = args[2] + args[0] * (args[1] - args[2])
        else:
            new = node.rebuilt(args)
        done[node.index] = new
    return done[output.index]


def jumps(output: Node) -> bool:
    """Return whether an expression has a sign or a comparison in it."""
    return any(node.op in ("sign", "lt", "le", "eq") for node in reachable([output]))
