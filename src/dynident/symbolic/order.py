"""The order in which nodes are computed, and how often each is used."""

from __future__ import annotations

from collections.abc import Iterable

from dynident.symbolic.expression import Node


def reachable(outputs: Iterable[Node]) -> list[Node]:
    """Return every node that the outputs need, arguments before their users.

    Parameters
    ----------
    outputs : iterable of Node
        Expressions.

    Returns
    -------
    list of Node
        Depth first from the first output on, so that a value is made shortly before it is used.
    """
    seen: set[int] = set()
    order: list[Node] = []
    for output in outputs:
        stack: list[tuple[Node, bool]] = [(output, False)]
        while stack:
            node, done = stack.pop()
            if done:
                order.append(node)
            elif node.index not in seen:
                seen.add(node.index)
                stack.append((node, True))
                stack.extend((arg, False) for arg in reversed(node.args) if arg.index not in seen)
    return order


def use_counts(order: Iterable[Node], outputs: Iterable[Node]) -> dict[int, int]:
    """Return how often each node is used.

    Parameters
    ----------
    order : iterable of Node
        All nodes.
    outputs : iterable of Node
        Results, each a use.

    Returns
    -------
    dict of int to int
        Uses by node index.
    """
    uses: dict[int, int] = {}
    for node in order:
        uses.setdefault(node.index, 0)
        for arg in node.args:
            uses[arg.index] += 1
    for node in outputs:
        uses[node.index] += 1
    return uses
