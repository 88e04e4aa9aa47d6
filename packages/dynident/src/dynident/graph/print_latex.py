"""LaTeX of expressions: aligned equations, long sums on several lines, shared sub-expressions below."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from dynident.checks import real
from dynident.graph.expression import Node
from dynident.graph.printing import Dialect, coordinate, schedule

LONGEST = 60  # characters of source before a sub-expression gets its own line
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
    """Return plain text as LaTeX; what is not printable ASCII becomes a question mark."""
    return "".join(_SPECIAL.get(c, c if c.isascii() and c.isprintable() else "?") for c in text)


def latex_number(value: float) -> str:
    """Return a number with up to ten digits."""
    text = f"{real('value', value):.10g}".replace("inf", r"\infty").replace("nan", r"\mathrm{undefined}")
    if not re.fullmatch(r"[-\d.]+e.*", text):
        return text
    head, power = text.split("e")
    return rf"{head}\cdot 10^{{{int(power)}}}"


def latex_equations(rows: Sequence[tuple[str, Node]], symbol: Callable[[str], str], label: str = "") -> list[str]:
    """Return equations (left side in LaTeX, expression), below them what they share; their labels are ``<label>-1`` ..."""

    def name(node: Node, count: int) -> str:
        place = coordinate(node)
        return f"x_{{{count}}}" if place is None else f"{node.op[0]}_{{{place + 1}}}"

    dialect = Dialect(symbol, latex_number, _CALLS, r" \, ", r"\frac{{{0}}}{{{1}}}", "{0}^{{2}}")
    statements, results = schedule([node for _, node in rows], dialect, name, LONGEST)
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
