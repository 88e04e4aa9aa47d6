"""From a graph to statements: which sub-expressions get a name, in which order, and how they are written.

A sub-expression that is used more than once gets a name; one that is used once stands inside its user, so that the code
reads like formulas, up to a length that still fits a line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from dynident.symbolic.expression import Node
from dynident.symbolic.order import reachable, use_counts

LONGEST = 100  # characters of an inlined expression
RANK = {"add": 1, "sub": 1, "neg": 2, "mul": 3, "div": 3}


@dataclass(frozen=True)
class Dialect:
    """How a language writes expressions.

    Parameters
    ----------
    symbol : callable
        Text of a symbol's name.
    number : callable
        Text of a constant.
    call : mapping of str to str
        Format of every function, with ``{0}`` for its argument and ``{1}`` for a second one.
    times, over : str
        Text between factors, and around a quotient with ``{0}`` and ``{1}``.
    square : str
        Format of a square with ``{0}`` for its base; a product when empty.
    """

    symbol: Callable[[str], str]
    number: Callable[[float], str]
    call: Mapping[str, str]
    times: str = " * "
    over: str = "{0} / {1}"
    square: str = ""


@dataclass(frozen=True)
class Statement:
    """One named sub-expression.

    Parameters
    ----------
    name : str
        Its name.
    text : str
        What it is equal to.
    node : Node
        The sub-expression.
    """

    name: str
    text: str
    node: Node


@dataclass(frozen=True)
class Schedule:
    """Statements and the results in terms of them.

    Parameters
    ----------
    statements : tuple of Statement
        Named sub-expressions, in order.
    results : tuple of str
        Text of every output.
    """

    statements: tuple[Statement, ...]
    results: tuple[str, ...]


def schedule(
    outputs: Iterable[Node],
    dialect: Dialect,
    name: Callable[[Node, int], str],
    longest: int = LONGEST,
) -> Schedule:
    """Return the statements that compute the outputs.

    Parameters
    ----------
    outputs : iterable of Node
        What is wanted.
    dialect : Dialect
        How to write it.
    name : callable
        ``name(node, count)`` of the count-th named sub-expression, sines and cosines of symbols not counted.
    longest : int
        Characters above which an expression gets a name although it is used once.

    Returns
    -------
    Schedule
        Statements and results.
    """
    wanted = list(outputs)
    order = reachable(wanted)
    uses = use_counts(order, wanted)
    text: dict[int, tuple[str, int]] = {}
    statements: list[Statement] = []
    count = 0
    for node in order:
        body, rank = write(node, text, dialect)
        plain = node.op in ("const", "symbol") or (node.op == "neg" and text[node.args[0].index][1] > 3)
        called = node.op not in RANK and not plain
        if not plain and (called or uses[node.index] > 1 or len(body) > longest):
            count += not _of_coordinate(node)
            label = name(node, count)
            statements.append(Statement(label, body, node))
            text[node.index] = (label, 4)
        else:
            text[node.index] = (body, rank)
    # Sines and cosines of coordinates first: that is how people read such code, and nothing depends on their order.
    trigonometric = [s for s in statements if _of_coordinate(s.node)]
    trigonometric.sort(key=lambda s: (s.node.args[0].index, s.node.op))
    rest = [s for s in statements if not _of_coordinate(s.node)]
    return Schedule((*trigonometric, *rest), tuple(text[node.index][0] for node in wanted))


def _of_coordinate(node: Node) -> bool:
    """Return whether a node is the sine or cosine of a symbol, which has a name of its own."""
    return node.op in ("sin", "cos") and node.args[0].op == "symbol"


def write(node: Node, text: Mapping[int, tuple[str, int]], dialect: Dialect) -> tuple[str, int]:
    """Return a node in terms of its arguments' texts.

    Parameters
    ----------
    node : Node
        What to write.
    text : mapping of int to (str, int)
        Text and rank of the arguments: 1 sum, 2 sign, 3 product, 4 atom.
    dialect : Dialect
        How to write it.

    Returns
    -------
    tuple of (str, int)
        Text and rank.
    """
    if node.op == "const":
        return dialect.number(node.value), 4 if node.value >= 0.0 else 2
    if node.op == "symbol":
        return dialect.symbol(node.name), 4

    def arg(i: int, least: int) -> str:
        body, rank = text[node.args[i].index]
        return body if rank >= least else f"({body})"

    if node.op == "add":
        return f"{arg(0, 1)} + {arg(1, 2)}" if text[node.args[1].index][1] != 2 else f"{arg(0, 1)} + {arg(1, 3)}", 1
    if node.op == "sub":
        return f"{arg(0, 1)} - {arg(1, 3)}", 1
    if node.op == "neg":
        return f"-{arg(0, 3)}", 2
    if node.op == "mul" and dialect.square and node.args[0] is node.args[1]:
        return dialect.square.format(arg(0, 4)), 3
    if node.op == "mul":
        return f"{arg(0, 3)}{dialect.times}{arg(1, 4)}", 3
    if node.op == "div":
        return dialect.over.format(arg(0, 3), arg(1, 4)), 3
    return dialect.call[node.op].format(*(text[arg.index][0] for arg in node.args)), 4
