"""Shared parts of the printers of C, Python and LaTeX: statements of a graph, and names that any language accepts.

A sub-expression that is used more than once gets a name; one that is used once stands inside its user, so that the code
reads like formulas, up to a length that still fits a line.
"""

from __future__ import annotations

import hashlib
import keyword
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from dynident.graph.expression import Node, reachable

LONGEST = 100  # characters of an inlined expression
LONGEST_NAME = 100  # letters of an identifier
_RANK = {"add": 1, "sub": 1, "neg": 2, "mul": 3, "div": 3}  # and 4 for what needs no brackets


@dataclass(frozen=True)
class Dialect:
    """How a language writes expressions."""

    symbol: Callable[[str], str]  # text of a symbol's name
    number: Callable[[float], str]  # text of a constant
    call: Mapping[str, str]  # format of every other operation, with {0}, {1}, ... for its arguments
    times: str = " * "  # between factors
    over: str = "{0} / {1}"
    square: str = ""  # format of a square; a product when empty


@dataclass(frozen=True)
class Statement:
    """One named sub-expression: its name, what it is equal to, and its node."""

    name: str
    text: str
    node: Node


def coordinate(node: Node) -> int | None:
    """Return i when a node is the sine or cosine of ``q[i]``, which has a name of its own in every language."""
    if node.op in ("sin", "cos") and node.args[0].name.startswith("q["):
        return int(node.args[0].name[2:-1])
    return None


def use_counts(outputs: Iterable[Node]) -> dict[int, int]:
    """Return how often each node is used, being an output included."""
    wanted = list(outputs)
    uses: dict[int, int] = {}
    for node in reachable(wanted):
        uses.setdefault(node.index, 0)
        for arg in node.args:
            uses[arg.index] += 1
    for node in wanted:
        uses[node.index] += 1
    return uses


class Writer:
    """Writes expressions one after the other; what was written before is known.

    `uses` says how often each node is used in all that will be written. ``name(node, count)`` names the count-th named
    sub-expression, sines and cosines of coordinates not counted; above `longest` characters also one that is used once.
    """

    def __init__(
        self, dialect: Dialect, uses: Mapping[int, int], name: Callable[[Node, int], str], longest: int = LONGEST
    ) -> None:
        self.dialect, self.uses, self.name, self.longest = dialect, uses, name, longest
        self.text: dict[int, tuple[str, int]] = {}  # text and rank of what is known
        self._count = 0

    def __getitem__(self, node: Node) -> str:
        return self.text[node.index][0]

    def statements(self, outputs: Iterable[Node]) -> list[Statement]:
        """Return the statements that are missing for some outputs, whose texts are known afterwards."""
        found = []
        for node in reachable(outputs, set(self.text)):
            body, rank = self._write(node)
            plain = node.op in ("const", "symbol") or (node.op == "neg" and self.text[node.args[0].index][1] > 3)
            called = node.op not in _RANK and not plain
            if not plain and (called or self.uses[node.index] > 1 or len(body) > self.longest):
                self._count += coordinate(node) is None
                label = self.name(node, self._count)
                found.append(Statement(label, body, node))
                body, rank = label, 4
            self.text[node.index] = (body, rank)
        return found

    def _write(self, node: Node) -> tuple[str, int]:
        """Return text and rank of a node in terms of its arguments' texts."""
        dialect = self.dialect
        if node.op == "const":
            return dialect.number(node.value), 4 if node.value >= 0.0 else 2
        if node.op == "symbol":
            return dialect.symbol(node.name), 4

        def arg(i: int, least: int) -> str:
            body, rank = self.text[node.args[i].index]
            return body if rank >= least else f"({body})"

        if node.op == "add":
            return f"{arg(0, 1)} + {arg(1, 3 if self.text[node.args[1].index][1] == 2 else 1)}", 1
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
        return dialect.call[node.op].format(*(self[arg] for arg in node.args)), 4


def schedule(
    outputs: Iterable[Node], dialect: Dialect, name: Callable[[Node, int], str], longest: int = LONGEST
) -> tuple[list[Statement], list[str]]:
    """Return the statements that compute outputs, sines and cosines of coordinates first, and the outputs in terms of them."""
    wanted = list(outputs)
    writer = Writer(dialect, use_counts(wanted), name, longest)
    statements = writer.statements(wanted)
    # That is how people read such code, and nothing depends on the order.
    first = sorted((s for s in statements if coordinate(s.node) is not None), key=lambda s: (coordinate(s.node), s.node.op))
    rest = [s for s in statements if coordinate(s.node) is None]
    return [*first, *rest], [writer[node] for node in wanted]


def local_name(taken: Iterable[str] = ()) -> Callable[[Node, int], str]:
    """Return how code names sub-expressions: c1 and s1 for cosine and sine of q[0], otherwise t<number>; never a taken name."""
    used = set(taken)

    def name(node: Node, count: int) -> str:
        place = coordinate(node)
        label = f"t{count}" if place is None else f"{node.op[0]}{place + 1}"
        while label in used:
            label += "_"
        return label

    return name


# Words of C, and what generated code uses itself; Python's own words come from `keyword`.
RESERVED = re.compile(
    "auto|break|case|char|const|continue|default|do|double|else|enum|extern|float|for|goto|if|inline|int|long|register|"
    "restrict|return|short|signed|sizeof|static|struct|switch|typedef|union|unsigned|void|volatile|while|bool|true|false|"
    "main|sin|cos|sqrt|exp|log|tanh|pow|atan2|floor|fabs|math|np|numpy"
)


def identifier(name: str) -> str:
    """Return a legal C and Python identifier for a name."""
    text = re.sub(r"[\s\-./:]+", "_", name)
    text = "".join(c if c.isascii() and (c.isalnum() or c == "_") else f"u{ord(c):04x}" for c in text)
    text = re.sub(r"_+", "_", text).strip("_")
    if not text or text[0].isdigit():
        text = f"n{text}" if text else "unnamed"
    if len(text) > LONGEST_NAME:  # it names files too
        text = f"{text[: LONGEST_NAME - 9]}_{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"
    return f"{text}_" if RESERVED.fullmatch(text) or keyword.iskeyword(text) else text


def identifiers(names: Iterable[str]) -> tuple[str, ...]:
    """Return identifiers that also differ from each other, whatever their case."""
    used: set[str] = set()
    result = []
    for name in names:
        plain = label = identifier(name)
        count = 2
        while label.lower() in used:
            label, count = f"{plain}_{count}", count + 1
        used.add(label.lower())
        result.append(label)
    return tuple(result)


def comment(text: str) -> str:
    """Return text that may stand in a comment of C, Python or LaTeX."""
    line = "".join(c if c.isascii() and c.isprintable() else "?" for c in text)
    return line.replace("*/", "* /").replace("/*", "/ *").replace("\\", "/").replace('"""', "'''").replace("??", "?")
