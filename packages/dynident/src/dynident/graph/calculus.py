"""Derivatives of expressions as expressions.

forward    dy/dx . d     one sweep per direction d, all outputs y
reverse    w . dy/dx     one sweep per weighted sum of outputs, all inputs x
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dynident.graph.expression import Node, reachable, total
from dynident.graph.operations import OPERATIONS


def forward(outputs: Sequence[Node], directions: Mapping[Node, Node]) -> list[Node]:
    """Return sum_x dy/dx directions[x] of every output y; x are symbols, or sub-expressions that count as independent."""
    rate: dict[int, Node] = {}
    for node in reachable(outputs):
        graph = node.graph
        given = directions.get(node)
        if given is not None:
            rate[node.index] = given
            continue
        moving = [(i, rate[arg.index]) for i, arg in enumerate(node.args) if not rate[arg.index].is_const(0.0)]
        if not moving:
            rate[node.index] = graph.zero
            continue
        partials = OPERATIONS[node.op].partials(node)
        rate[node.index] = total([partials[i] * r for i, r in moving])
    return [rate[node.index] for node in outputs]


def reverse(outputs: Sequence[Node], weights: Sequence[Node | float], inputs: Sequence[Node]) -> list[Node]:
    """Return sum_y w dy/dx for every input x.

    Parameters
    ----------
    outputs : sequence of Node
        Expressions y.
    weights : sequence of Node or float
        Weight w of every output.
    inputs : sequence of Node
        Symbols x, or sub-expressions that count as independent.

    Returns
    -------
    list of Node
        One expression per input.
    """
    wanted = {node.index for node in inputs}
    order = reachable([*outputs, *inputs])
    depends: dict[int, bool] = {}
    for node in order:
        depends[node.index] = node.index in wanted or any(depends[arg.index] for arg in node.args)
    parts: dict[int, list[Node]] = {}
    for node, weight in zip(outputs, weights, strict=True):
        parts.setdefault(node.index, []).append(node.graph.node(weight))
    adjoint: dict[int, Node] = {}
    for node in reversed(order):
        terms = parts.pop(node.index, None)
        if terms is None or not depends[node.index]:
            continue
        own = adjoint[node.index] = total(terms)
        if node.index in wanted or own.is_const(0.0):
            continue
        for arg, partial in zip(node.args, OPERATIONS[node.op].partials(node), strict=True):
            if depends[arg.index] and not partial.is_const(0.0):
                parts.setdefault(arg.index, []).append(own * partial)
    return [adjoint.get(node.index, node.graph.zero) for node in inputs]


def derivative(output: Node, symbol: Node) -> Node:
    """Return the derivative of one expression with respect to one symbol.

    Parameters
    ----------
    output : Node
        The expression.
    symbol : Node
        The symbol.

    Returns
    -------
    Node
        Its derivative.
    """
    return forward([output], {symbol: symbol.graph.one})[0]


def derivative_matrix(outputs: Sequence[Node], inputs: Sequence[Node]) -> list[list[Node]]:
    """Return dy/dx, one row per output: forward sweeps or reverse ones, whichever are fewer."""
    if len(inputs) <= len(outputs):
        columns = [forward(outputs, {x: x.graph.one}) for x in inputs]
        return [[column[i] for column in columns] for i in range(len(outputs))]
    return [reverse([y], [1.0], inputs) for y in outputs]
