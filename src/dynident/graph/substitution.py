"""Expressions with some of their parts replaced by others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from dynident.graph.expression import Node, reachable


def rebuilt(node: Node, args: Sequence[Node]) -> Node:
    """Return the operation of a node on other arguments."""
    if not args:
        return node
    graph, op = node.graph, node.op
    if op in ("lt", "le", "eq"):
        return graph.compare(op, *args)
    makers: dict[str, Callable[..., Node]] = {
        "add": graph.add,
        "sub": lambda x, y: graph.add(x, graph.neg(y)),
        "mul": graph.mul,
        "div": graph.div,
        "pow": graph.power,
        "atan2": graph.atan2,
        "min": graph.least,
        "max": graph.greatest,
        "select": graph.select,
    }
    return makers[op](*args) if op in makers else graph.call(op, args[0])


def substitute(outputs: Sequence[Node], replacements: Mapping[Node, Node]) -> list[Node]:
    """Return expressions in which symbols (or whole sub-expressions) are replaced by others of the same graph."""
    done: dict[int, Node] = {}
    for node in reachable(outputs):
        given = replacements.get(node)
        done[node.index] = rebuilt(node, [done[arg.index] for arg in node.args]) if given is None else given
    return [done[node.index] for node in outputs]
