"""LaTeX: numbered equations, aligned, with the list of what the symbols mean."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dynident.mechanism.inertia import SYMBOLS
from dynident.symbolic.expression import Node
from dynident.symbolic.program import Program, Quantity
from dynident.symbolic.schedule import Dialect, schedule

LONGEST = 60  # characters of source before a sub-expression gets its own line
WIDEST = 120  # characters of source before a sum goes on in the next line
_COORDINATE = {"q": "q", "v": r"\dot{q}", "a": r"\ddot{q}"}
_RESULT = {"tau": r"\tau", "beta": r"\beta", "E": "E"}
_CALLS = {
    "sin": r"\sin({0})",
    "cos": r"\cos({0})",
    "sqrt": r"\sqrt{{{0}}}",
    "atan2": r"\operatorname{{atan2}}({0}, {1})",
    "sign": r"\operatorname{{sign}}({0})",
    "positive": r"\max({0}, 0)",
    "step": r"[{0} > 0]",
    "sinc": r"\operatorname{{sinc}}\sqrt{{{0}}}",
    "cosc": r"\frac{{1 - \cos\sqrt{{{0}}}}}{{{0}}}",
}
_SPECIAL = {"\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
_SPECIAL |= {c: f"\\{c}" for c in "&%$#_"}
_TITLE = {
    "inverse_dynamics": "Inverse dynamics",
    "base_inverse_dynamics": "Inverse dynamics in base parameters",
    "coriolis_matrix": "Coriolis matrix",
}


def escaped(text: str) -> str:
    """Return plain text as LaTeX.

    Parameters
    ----------
    text : str
        Any text.

    Returns
    -------
    str
        The same text with special characters escaped; what is not printable ASCII becomes a question mark.
    """
    return "".join(_SPECIAL.get(c, c if c.isascii() and c.isprintable() else "?") for c in text)


def to_latex(program: Program, quantities: Sequence[str] | None = None) -> str:
    """Print a program as a LaTeX document.

    Parameters
    ----------
    program : Program
        Closed forms; a symbolic geometry reads best.
    quantities : sequence of str, optional
        Which of them; all when omitted.

    Returns
    -------
    str
        Document of class `article` that needs amsmath only; entries that are zero are left out and said to be so.
    """
    names = list(program.quantities) if quantities is None else list(quantities)
    forms = [program[name] for name in names]
    lines = [
        r"\documentclass{article}",
        r"\usepackage{amsmath}",
        r"\usepackage[margin=20mm]{geometry}",
        r"\allowdisplaybreaks",
        r"\setlength{\jot}{2pt}",
        rf"\title{{Closed forms of {escaped(program.name)}}}",
        r"\date{}",
        r"\begin{document}",
        r"\maketitle",
    ]
    if program.regrouping is not None:
        lines += _base(program)
    for form in forms:
        lines += _section(program, form)
    lines += _where(program, forms)
    return "\n".join([*lines, r"\end{document}", ""])


def _number(value: float) -> str:
    text = f"{value:.10g}"
    if "e" not in text:
        return text
    head, power = text.split("e")
    return rf"{head}\cdot 10^{{{int(power)}}}"


def _symbol(program: Program, array: str, place: int) -> str:
    """Return the LaTeX of one input."""
    if array in _COORDINATE:
        return f"{_COORDINATE[array]}_{{{place + 1}}}"
    if array == "beta":
        return rf"\beta_{{{place + 1}}}"
    own = program.inputs[array][place]
    if array == "x":
        return f"p_{{{own}}}"
    if array == "geometry":
        return _length(own)
    symbol, owner = own.split("_", 1)
    number = _owners(program).get((symbol in SYMBOLS, owner), 0)
    head, tail = (symbol[0], symbol[1:]) if len(symbol) > 1 else (symbol, "")
    if symbol in ("mx", "my", "mz"):
        return rf"mc_{{{symbol[1]}{number}}}"
    if symbol == "off":
        return rf"o_{{{number}}}"
    return f"{head}_{{{tail}{number}}}"


def _length(name: str) -> str:
    short = re.fullmatch(r"([ad])(\d+)", name)
    if short:
        return f"{short[1]}_{{{short[2]}}}"
    parts = re.fullmatch(r"r_(.+)_([xyz])", name)
    return rf"r_{{\mathrm{{{escaped(parts[1])}}},{parts[2]}}}" if parts else escaped(name)


def _owners(program: Program) -> dict[tuple[bool, str], int]:
    """Number bodies and joints, each from 1 on, in the order of the parameters."""
    numbers: dict[tuple[bool, str], int] = {}
    for name in program.inputs.get("phi", ()):
        symbol, owner = name.split("_", 1)
        key = (symbol in SYMBOLS, owner)
        if key not in numbers:
            numbers[key] = 1 + sum(inertial == key[0] for inertial, _ in numbers)
    return numbers


def _section(program: Program, form: Quantity) -> list[str]:
    def symbol(name: str) -> str:
        return _symbol(program, *program.symbols[name])

    def name(node: Node, count: int) -> str:
        if node.op in ("sin", "cos") and node.args[0].op == "symbol" and node.args[0].name.startswith("q["):
            return f"{node.op[0]}_{{{int(node.args[0].name[2:-1]) + 1}}}"
        return f"x_{{{count}}}"

    plan = schedule(form.entries, Dialect(symbol, _number, _CALLS, r" \, ", r"\frac{{{0}}}{{{1}}}", "{0}^{{2}}"), name, LONGEST)
    cost, expanded = program.operations(form.name), program.expanded_operations(form.name)
    title = _TITLE.get(form.name, form.name.replace("_", " ").capitalize())
    # Functions of sums are not multiplied out, so closed forms with roots may look cheaper than they are.
    grows = expanded.total > cost.total
    more = rf"; multiplied out it would be ${_number(float(expanded.total))}$ operations" if grows else ""
    lines = [
        rf"\section{{{title}}}",
        f"{escaped(form.meaning[:1].upper() + form.meaning[1:])}: {cost['+']} additions, {cost['*']} products, "
        f"{cost['sin']} sines, {cost['cos']} cosines, {cost['other']} other functions{more}.",
    ]
    result = _RESULT.get(form.result, form.result)
    entries = []
    for i, (node, text) in enumerate(zip(form.entries, plan.results, strict=True)):
        if not node.is_const(0.0):
            place = f"{i // form.shape[1] + 1},{i % form.shape[1] + 1}" if len(form.shape) == 2 else str(i + 1)
            entries.append((f"{result}_{{{place}}}", text))
    lines += _align(entries, f"eq:{form.name.replace('_', '-')}")
    if len(entries) < len(form.entries):
        lines.append("The other entries are zero.")
    if plan.statements:
        lines += [r"\noindent where", *_align([(s.name, s.text) for s in plan.statements], "")]
    return lines


def _align(rows: Sequence[tuple[str, str]], label: str) -> list[str]:
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
        depth += piece.count("(") - piece.count(")")
    return " \\nonumber \\\\\n&\\quad".join([*lines, current])


def _base(program: Program) -> list[str]:
    """Return the base parameters as sums of standard ones."""
    grouping = program.regrouping
    assert grouping is not None
    rows = []
    for i, (leader, row) in enumerate(zip(grouping.columns, grouping.coefficients, strict=True)):
        text = _symbol(program, "phi", leader)
        for j, entry in row.items():
            if j == leader:
                continue
            inner = re.sub(r"r_\w+_[xyz]|[ad]\d+", lambda m: _length(m[0]), str(entry))
            inner = re.sub(r"\^(\d+)", r"^{\1}", inner)
            target = _symbol(program, "phi", j)
            if len(entry.terms) != 1:
                text += rf" + ({inner}) \, {target}"
            elif inner in ("1", "-1"):
                text += f" {'-' if inner == '-1' else '+'} {target}"
            else:
                text += rf" {'-' if inner.startswith('-') else '+'} {inner.removeprefix('-')} \, {target}"
        rows.append((rf"\beta_{{{i + 1}}}", text))
    note = "" if grouping.exact else " Numbers stand where no polynomial of the lengths was recognised."
    head = "\\section{Base parameters}" + f"\n{grouping.rank} combinations determine every torque.{note}"
    return [head, *_align(rows, "eq:base")]


def _where(program: Program, forms: Sequence[Quantity]) -> list[str]:
    used = {array for form in forms for array in program.needed(form.name)}
    lines = [r"\section{Symbols}", r"\begin{itemize}"]
    for i, name in enumerate(program.inputs["q"]):
        lines.append(rf"\item $q_{{{i + 1}}}$: position of joint {escaped(name)}")
    lines.append(r"\item $c_{i} = \cos q_{i}$, $s_{i} = \sin q_{i}$")
    if "phi" in used or program.regrouping is not None:
        for (inertial, owner), number in _owners(program).items():
            if inertial:
                meaning = rf"mass, first moments and inertia about the origin of {escaped(owner)}"
                lines.append(rf"\item $m_{{{number}}}$, $mc_{{x{number}}}, \ldots$, $I_{{xx{number}}}, \ldots$: {meaning}")
            else:
                friction = rf"friction $f_{{v{number}}}$, $f_{{c{number}}}$, offset $o_{{{number}}}$"
                symbols = rf"rotor inertia $i_{{a{number}}}$, {friction}"
                lines.append(rf"\item {symbols} (those that occur) of {escaped(owner)}")
    for i, name in enumerate(program.inputs.get("geometry", ())):
        value = _number(float(program.values["geometry"][i]))
        lines.append(rf"\item ${_length(name)} = {value}$")
    if "x" in used:
        lines.append(r"\item $p_{x}$, $p_{y}$, $p_{z}$: position of the tip")
    if "beta" in used:
        lines += [rf"\item $\beta_{{{i + 1}}}$: {escaped(name)}" for i, name in enumerate(program.inputs["beta"])]
    return [*lines, r"\end{itemize}"]
