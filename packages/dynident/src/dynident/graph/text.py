"""Expressions in ordinary notation: parsed without running code, and written back.

    0.5 * k * (q[elbow] - 0.3)**2          sin(2 * q["joint 1"]) if v > 0 else tanh(v / 0.01)

Numbers, ``pi``, + - * / **, comparisons (1 or 0), ``x if condition else y`` and the functions of `FUNCTIONS`. Names and their
text in square brackets are looked up by the caller.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable
from functools import lru_cache

from dynident.errors import DescriptionError
from dynident.graph.expression import Graph, Node, reachable

Lookup = Callable[[str, str | None], Node]
"""Node of a name and of its text in square brackets (None without brackets); raises KeyError."""

LONGEST, DEEPEST = 4_000, 60  # characters and levels of one expression
LARGEST_TEXT = 100_000  # characters of a written expression: shared terms are repeated at every use

FUNCTIONS = dict.fromkeys(("sin", "cos", "tan", "sqrt", "exp", "log", "tanh", "abs", "sign", "floor"), 1)
FUNCTIONS |= dict.fromkeys(("min", "max", "atan2"), 2) | {"where": 3}  # by their number of arguments
_BINARY: dict[type, Callable[[Node, Node], Node]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: lambda x, y: x.graph.compare("eq", x, y),
    ast.NotEq: lambda x, y: x.graph.select(x.graph.compare("eq", x, y), x.graph.zero, x.graph.one),
}


@lru_cache(maxsize=512)
def _parsed(text: str) -> ast.expr:
    if len(text) > LONGEST:
        raise DescriptionError(f"an expression has {len(text)} characters; the limit is {LONGEST}")
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        reason = getattr(error, "msg", None) or "too long or too deep"
        raise DescriptionError(f"'{text[:200]}' is not an expression ({reason}); write it as in '0.5 * (q - 0.3)**2'") from None


def parse(graph: Graph, text: str, lookup: Lookup) -> Node:
    """Return the expression of a text, without running it; ``lookup(name, index or None)`` gives nodes or raises KeyError."""
    return _Reader(graph, text, lookup).node(_parsed(text), 0)


def _written(part: ast.expr, longest: int = 60) -> str:
    """Return a part of an expression as text."""
    try:
        return ast.unparse(part)[:longest]
    except RecursionError:
        return "too many operators or nested attributes"


class _Reader:
    def __init__(self, graph: Graph, text: str, lookup: Lookup) -> None:
        self.graph, self.text, self.lookup = graph, text, lookup

    def node(self, part: ast.expr, depth: int) -> Node:
        """Return the node of a part of the syntax tree."""
        if depth > DEEPEST:
            raise self.wrong(f"is nested more than {DEEPEST} deep")
        own = depth + 1
        match part:
            case ast.Constant(value=value) if isinstance(value, int | float) and not isinstance(value, bool):
                return self.graph.const(self._number(value))
            case ast.Name(id=name):
                return self.graph.const(math.pi) if name == "pi" else self._named(name, None)
            case ast.Subscript(value=ast.Name(id=name), slice=index):
                return self._named(name, self._index(index))
            case ast.UnaryOp(op=ast.USub() | ast.UAdd() as op, operand=inner):
                return -self.node(inner, own) if isinstance(op, ast.USub) else self.node(inner, own)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
                return _BINARY[type(op)](self.node(left, own), self.node(right, own))
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _BINARY:
                return _BINARY[type(op)](self.node(left, own), self.node(right, own))
            case ast.IfExp(test=test, body=body, orelse=other):
                return self.graph.select(self.node(test, own), self.node(body, own), self.node(other, own))
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in FUNCTIONS:
                if len(arguments) != FUNCTIONS[name]:
                    raise self.wrong(f"gives {len(arguments)} arguments to {name}(), which takes {FUNCTIONS[name]}")
                nodes = [self.node(argument, own) for argument in arguments]
                return nodes[0].tan() if name == "tan" else self.graph.make("select" if name == "where" else name, *nodes)
            case ast.Call(func=ast.Name(id=name)):
                raise self.wrong(f"calls {name}(); the functions are {', '.join(FUNCTIONS)}")
        raise self.wrong(f"contains '{_written(part)}', which is not allowed; use numbers, + - * / ** and functions")

    def _number(self, value: float) -> float:
        number = float(value) if abs(value) < 1e300 else math.inf
        if not math.isfinite(number):
            raise self.wrong(f"has the number {value}; give a finite one")
        return number

    def _index(self, part: ast.expr) -> str:
        match part:
            case ast.Constant(value=str(name)):
                return name
            case ast.Name() | ast.Attribute():  # q[elbow], q[wrist.r1]
                return _written(part, LONGEST)
        raise self.wrong(f"contains '[{_written(part)}]'; give a name, as in q[joint1] or q[\"joint 1\"]")

    def _named(self, name: str, index: str | None) -> Node:
        try:
            return self.lookup(name, index)
        except KeyError:
            whole = name if index is None else f"{name}[{index}]"
            raise self.wrong(f"uses '{whole}', which is not known here") from None

    def wrong(self, what: str) -> DescriptionError:
        """Return an error about the expression."""
        return DescriptionError(f"the expression '{self.text[:200]}' {what}")


_WRITTEN = {op: f"{op}({{0}})" for op in ("sqrt", "sin", "cos", "exp", "log", "tanh", "abs", "sign", "floor")}
_WRITTEN |= {"add": "({0} + {1})", "sub": "({0} - {1})", "mul": "{0} * {1}", "div": "({0} / {1})", "neg": "(-{0})"}
_WRITTEN |= {"pow": "({0})**({1})", "atan2": "atan2({0}, {1})", "min": "min({0}, {1})", "max": "max({0}, {1})"}
_WRITTEN |= {"lt": "({0} < {1})", "le": "({0} <= {1})", "eq": "({0} == {1})", "select": "where({0}, {1}, {2})"}


def write_text(node: Node) -> str:
    """Return an expression as text that `parse` reads back, symbols by their names, numbers exact."""
    texts: dict[int, str] = {}
    for part in reachable([node]):
        if part.op == "const":
            text = repr(part.value) if part.value >= 0.0 else f"({part.value!r})"
        elif part.op == "symbol":
            text = part.name
        elif part.op in _WRITTEN:
            text = _WRITTEN[part.op].format(*(texts[arg.index] for arg in part.args))
            if part.op == "mul":
                text = f"({text})"
        else:
            raise DescriptionError(f"the operation '{part.op}' has no text")
        if len(text) > LARGEST_TEXT:
            raise DescriptionError("an expression is too long to be written as text; give it in a shorter form")
        texts[part.index] = text
    whole = texts[node.index]
    return whole[1:-1] if _wrapped(whole) else whole


def _wrapped(text: str) -> bool:
    """Return whether the first bracket closes at the end."""
    depth = 0
    for i, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            return i == len(text) - 1 and text[0] == "("
    return False
