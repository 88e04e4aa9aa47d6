"""Statements of a graph, names valid in any language, and the printers of Python (NumPy, CasADi) and LaTeX.

A sub-expression used more than once gets a name; one used once is inlined, so that the code
reads like formulas, up to a length that fits a line.
"""

from __future__ import annotations

import hashlib
import keyword
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynident.checks import real
from dynident.graph.expression import Function, Node, reachable
from dynident.graph.operations import DSINC_SERIES, SINC_SERIES, SMALL

LONGEST = 100  # characters of an inlined expression
LONGEST_NAME = 100  # letters of an identifier
_RANK = {"add": 1, "sub": 1, "neg": 2, "mul": 3, "div": 3}  # and 4 for text without need of brackets


@dataclass(frozen=True)
class Dialect:
    """Syntax of expressions in a language."""

    symbol: Callable[[str], str]  # text of a symbol's name
    number: Callable[[float], str]  # text of a constant
    call: Mapping[str, str]  # format of every other operation, with {0}, {1}, ... for its arguments
    times: str = " * "  # between factors
    over: str = "{0} / {1}"
    square: str = ""  # format of a square; a product when empty


@dataclass(frozen=True)
class Statement:
    """One named sub-expression: its name, its text, and its node."""

    name: str
    text: str
    node: Node


def coordinate(node: Node) -> int | None:
    """Return i when a node is the sine or cosine of ``q[i]``, which has a name of its own in every language."""
    if node.op in ("sin", "cos") and node.args[0].name.startswith("q["):
        return int(node.args[0].name[2:-1])
    return None


def use_counts(outputs: Iterable[Node]) -> dict[int, int]:
    """Return the number of uses of each node, including outputs."""
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
    """Writes expressions one after the other, reusing the earlier ones.

    `uses` is the number of uses of each node in the whole output. ``name(node, count)`` names the count-th named
    sub-expression, sines and cosines of coordinates not counted; above `longest` characters also one that is used once.
    """

    def __init__(
        self, dialect: Dialect, uses: Mapping[int, int], name: Callable[[Node, int], str], longest: int = LONGEST
    ) -> None:
        self.dialect, self.uses, self.name, self.longest = dialect, uses, name, longest
        self.text: dict[int, tuple[str, int]] = {}  # text and rank of known nodes
        self._count = 0

    def __getitem__(self, node: Node) -> str:
        return self.text[node.index][0]

    def statements(self, outputs: Iterable[Node]) -> list[Statement]:
        """Return the missing statements of some outputs, and store the texts of these."""
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
    # Sines and cosines first, for readability; the order has no other effect.
    first = sorted((s for s in statements if coordinate(s.node) is not None), key=lambda s: (coordinate(s.node), s.node.op))
    rest = [s for s in statements if coordinate(s.node) is None]
    return [*first, *rest], [writer[node] for node in wanted]


def local_name(taken: Iterable[str] = ()) -> Callable[[Node, int], str]:
    """Return a function that names sub-expressions: c1, s1 for cosine and sine of q[0], else t<number>; skips taken names."""
    used = set(taken)

    def name(node: Node, count: int) -> str:
        place = coordinate(node)
        label = f"t{count}" if place is None else f"{node.op[0]}{place + 1}"
        while label in used:
            label += "_"
        return label

    return name


# Words of C, and names used by generated code; Python's own words come from `keyword`.
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
    """Return identifiers that differ from each other, ignoring case."""
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
    """Return text that is safe in a comment of C, Python or LaTeX."""
    line = "".join(c if c.isascii() and c.isprintable() else "?" for c in text)
    return line.replace("*/", "* /").replace("/*", "/ *").replace("\\", "/").replace('"""', "'''").replace("??", "?")


_NUMPY = {"atan2": "arctan2", "pow": "power", "min": "minimum", "max": "maximum", "select": "where"}
_CASADI = {"abs": "fabs", "pow": "power", "min": "fmin", "max": "fmax", "select": "if_else"}


def _calls(package: str, names: Mapping[str, str], order: str) -> dict[str, str]:
    """Return the formats of all operations; `names` maps operations to differing names of the package."""
    calls = {op: f"{{0}} {sign} {{1}}" for op, sign in (("lt", "<"), ("le", "<="), ("eq", "=="))}
    calls = {op: order.format(text) for op, text in calls.items()}
    for op in ("sin", "cos", "sqrt", "exp", "log", "tanh", "floor", "abs", "sign"):
        calls[op] = f"{package}.{names.get(op, op)}({{0}})"
    for op in ("pow", "atan2", "min", "max"):
        calls[op] = f"{package}.{names.get(op, op)}({{0}}, {{1}})"
    calls["select"] = f"{package}.{names['select']}({{0}} != 0.0, {{1}}, {{2}})"
    return calls | {"sinc": "_sinc({0})", "dsinc": "_dsinc({0})"}


def _number(value: float) -> str:
    """Return a number as Python; CasADi has no names for infinity and not a number."""
    return repr(float(value)) if math.isfinite(value) else f"float('{value}')"


def _helpers(package: str, names: Mapping[str, str]) -> dict[str, str]:
    """Return the definitions of sinc and its derivative, functions of x^2 with their series near zero."""
    sinc = f"{package}.sin(x) / x"
    parts = {
        "_sinc": ("sin(x)/x", SINC_SERIES, sinc),
        "_dsinc": ("the derivative of sin(x)/x by s", DSINC_SERIES, f"({package}.cos(x) - {sinc}) / (2.0 * s)"),
    }
    found = {}
    for name, (meaning, series, away) in parts.items():
        near = repr(float(series[-1]))
        for factor in reversed(series[:-1]):
            near = f"({near}) * square + {float(factor)!r}"
        found[name] = f'''def {name}(square):
    """Return {meaning} of s = x^2."""
    s = {package}.{names["max"]}(square, {SMALL!r})
    x = {package}.sqrt(s)
    return {package}.{names["select"]}(square > {SMALL!r}, {away}, {near})
'''
    return found


def numpy_helpers(text: str) -> list[str]:
    """Return the helper functions called by NumPy code."""
    return [body for name, body in _helpers("np", _NUMPY).items() if f"{name}(" in text]


def casadi_helpers(text: str) -> list[str]:
    """Return the helper functions called by CasADi code."""
    return [body for name, body in _helpers("ca", _CASADI).items() if f"{name}(" in text]


def numpy_function(
    function: Function,
    labels: Mapping[str, tuple[str, str]] | None = None,
    about: Sequence[str] = (),
    shapes: Mapping[str, tuple[int, ...]] | None = None,
) -> str:
    """Return the definition of a function of arrays, given by name, whose last axis is the element.

    It needs ``np`` and `numpy_helpers`. `labels` are local name and place, such as ``m_elbow`` and ``phi[..., 3]``,
    of the symbols; `about` the lines of its docstring; `shapes` the shapes of outputs. Entries that are None stay zero.
    """
    inputs = (*function.inputs, *function.shared)
    known = labels if labels is not None else _labels(function)
    dialect = Dialect(lambda name: known[name][0], _number, _calls("np", _NUMPY, "np.where({0}, 1.0, 0.0)"))
    taken = [*function.arrays, *(label for label, _ in known.values())]
    statements, texts = schedule(function.entries, dialect, local_name(taken))
    lines = [f"def {function.name}({', '.join(inputs)}):"]
    if about:
        lines += [f'    """{about[0]}', *(f"    {line}".rstrip() for line in about[1:]), '    """']
    lines += [f"    {array} = np.asarray({array}, dtype=float)" for array in inputs]
    lines += [f"    {label} = {place}" for label, place in known.values()]
    lines += [f"    {s.name} = {s.text}" for s in statements]
    batch = "np.broadcast_shapes(" + ", ".join(f"{array}.shape[:-1]" for array in inputs) + ")" if inputs else "()"
    result = iter(texts)
    for array, nodes in function.outputs.items():
        shape = (shapes or {}).get(array, (len(nodes),))
        lines.append(f"    {array} = np.zeros((*{batch}, {', '.join(map(str, shape))}))")
        for i, node in enumerate(nodes):
            if node is not None:
                text = next(result)
                place = f"{i // shape[1]}, {i % shape[1]}" if len(shape) == 2 else str(i)
                if not node.is_const(0.0):
                    lines.append(f"    {array}[..., {place}] = {text}")
    return "\n".join([*lines, f"    return {', '.join(function.outputs)}", ""])


def numpy_callable(function: Function, shapes: Mapping[str, tuple[int, ...]] | None = None) -> Callable[..., Any]:
    """Return `numpy_function` as a callable, for a few evaluations that do not justify a compilation."""
    text = numpy_function(function, shapes=shapes)
    names: dict[str, Any] = {"np": np}
    exec("\n".join([*numpy_helpers(text), text]), names)
    code: Callable[..., Any] = names[function.name]
    return code


def _labels(function: Function) -> dict[str, tuple[str, str]]:
    """Return local name and place of every symbol, as in ``q3`` for ``q[3]``."""
    found: dict[str, tuple[str, str]] = {}
    for node in reachable(function.entries):
        if node.op == "symbol":
            array, place = node.name[:-1].split("[")
            found[node.name] = (f"{array}_{place}", f"{array}[..., {place}]")
    return found


def casadi_function(function: Function, shapes: Mapping[str, tuple[int, ...]] | None = None) -> str:
    """Return the definition of a name that is a `casadi.Function` of one sample; it needs ``ca`` and `casadi_helpers`.

    `shapes` are the shapes of outputs that are matrices, not columns. Entries that are None are zero.
    """
    inputs = {**function.inputs, **function.shared}
    dialect = Dialect(str, _number, _calls("ca", _CASADI, "({0})"))
    statements, texts = schedule(function.entries, dialect, local_name(function.arrays))
    lines = [f"def _{function.name}():"]
    lines += [f'    {array} = ca.SX.sym("{array}", {size})' for array, size in inputs.items()]
    lines += [f"    {s.name} = {s.text}" for s in statements]
    result = iter(texts)
    for array, nodes in function.outputs.items():
        entries = [next(result) if node is not None else "0.0" for node in nodes]
        shape = (shapes or {}).get(array, (len(nodes),))
        wide = shape[1] if len(shape) == 2 else 1
        rows = [entries[i : i + wide] for i in range(0, len(entries), wide)]
        joined = [f"ca.horzcat({', '.join(row)})" if wide > 1 else row[0] for row in rows]
        lines += [f"    {array} = ca.vertcat(", *(f"        {row}," for row in joined), "    )"]
    takes, gives = ", ".join(inputs), ", ".join(function.outputs)
    names = [", ".join(f'"{name}"' for name in group) for group in (inputs, function.outputs)]
    lines.append(f'    return ca.Function("{function.name}", [{takes}], [{gives}], [{names[0]}], [{names[1]}])')
    return "\n".join([*lines, "", "", f"{function.name} = _{function.name}()", ""])


LONGEST_TERM = 60  # characters of source before a sub-expression gets its own line
WIDEST = 120  # characters of source before a sum goes on in the next line
_CALLS = {op: rf"\{op}({{0}})" for op in ("sin", "cos", "exp", "tanh")}
_CALLS |= {op: rf"\{op}({{0}}, {{1}})" for op in ("min", "max")}
_CALLS |= {op: rf"[{{0}} {sign} {{1}}]" for op, sign in (("lt", "<"), ("le", r"\le"), ("eq", "="))}
_CALLS |= {
    "sqrt": r"\sqrt{{{0}}}",
    "log": r"\ln({0})",
    "pow": r"({0})^{{{1}}}",
    "atan2": r"\operatorname{{atan2}}({0}, {1})",
    "abs": r"|{0}|",
    "sign": r"\operatorname{{sign}}({0})",
    "floor": r"\lfloor {0} \rfloor",
    "select": r"{{\begin{{cases}} {1} & \text{{where }} {0} \ne 0 \\ {2} & \text{{elsewhere}} \end{{cases}}}}",
    "sinc": r"\operatorname{{sinc}}\sqrt{{{0}}}",
    "dsinc": r"{{\left. \frac{{\mathrm{{d}}}}{{\mathrm{{d}} s}} \operatorname{{sinc}}\sqrt{{s}} \right|_{{s = {0}}}}}",
}
_SPECIAL = {"\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
_SPECIAL |= {c: f"\\{c}" for c in "&%$#_"}


def latex_text(text: str) -> str:
    """Return plain text as LaTeX; characters other than printable ASCII become question marks."""
    return "".join(_SPECIAL.get(c, c if c.isascii() and c.isprintable() else "?") for c in text)


def latex_number(value: float) -> str:
    """Return a number with up to ten digits."""
    text = f"{real('value', value):.10g}".replace("inf", r"\infty").replace("nan", r"\mathrm{undefined}")
    if not re.fullmatch(r"[-\d.]+e.*", text):
        return text
    head, power = text.split("e")
    return rf"{head}\cdot 10^{{{int(power)}}}"


def latex_equations(rows: Sequence[tuple[str, Node]], symbol: Callable[[str], str], label: str = "") -> list[str]:
    """Return equations (left side in LaTeX, expression), followed by shared terms; labels are ``<label>-1`` ..."""

    def name(node: Node, count: int) -> str:
        place = coordinate(node)
        return f"x_{{{count}}}" if place is None else f"{node.op[0]}_{{{place + 1}}}"

    dialect = Dialect(symbol, latex_number, _CALLS, r" \, ", r"\frac{{{0}}}{{{1}}}", "{0}^{{2}}")
    statements, results = schedule([node for _, node in rows], dialect, name, LONGEST_TERM)
    lines = latex_align([(left, text) for (left, _), text in zip(rows, results, strict=True)], label)
    if statements:
        lines += [r"\noindent where", *latex_align([(s.name, s.text) for s in statements])]
    return lines


def latex_align(rows: Sequence[tuple[str, str]], label: str = "") -> list[str]:
    """Return equations, left and right sides in LaTeX, one below the other."""
    if not rows:
        return []
    lines = [r"\begin{align}"]
    for i, (left, right) in enumerate(rows):
        mark = rf" \label{{{label}-{i + 1}}}" if label else ""
        lines.append(rf"{left} &= {_wrapped(right)}{mark}" + (r" \\" if i + 1 < len(rows) else ""))
    return [*lines, r"\end{align}"]


def _wrapped(text: str) -> str:
    """Return a long sum on several lines, broken between terms only; the number stands at the last line."""
    lines, current, depth = [], "", 0
    for piece in re.split(r"(?= [+-] )", text):
        if len(current) > WIDEST and depth == 0:
            lines.append(current)
            current = ""
        current += piece
        depth += sum(piece.count(c) for c in "({") - sum(piece.count(c) for c in ")}")
    return " \\nonumber \\\\\n&\\quad".join([*lines, current])
