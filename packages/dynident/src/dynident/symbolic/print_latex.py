"""LaTeX: numbered equations, aligned, with the list of what the symbols mean."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dynident.friction.terms import term_of
from dynident.graph.print_latex import latex_align, latex_equations, latex_number, latex_text
from dynident.mechanism.inertia import SYMBOLS as INERTIA_SYMBOLS
from dynident.symbolic.program import Program, Quantity, place

_COORDINATE = {"q": "q", "v": r"\dot{q}", "a": r"\ddot{q}", "tau": r"\tau"}
_RESULT = {"tau": r"\tau", "beta": r"\beta", "E": "E", "acc": r"\ddot{q}"}
_TITLE = {
    "inverse_dynamics": "Inverse dynamics",
    "base_inverse_dynamics": "Inverse dynamics in base parameters",
    "coriolis_matrix": "Coriolis matrix",
}


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
        rf"\title{{Closed forms of {latex_text(program.name)}}}",
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


def _symbol(program: Program, array: str, element: int) -> str:
    """Return the LaTeX of one input."""
    if array in _COORDINATE:
        return f"{_COORDINATE[array]}_{{{element + 1}}}"
    if array == "beta":
        return rf"\beta_{{{element + 1}}}"
    own = program.inputs[array][element]
    if array == "x":
        return f"p_{{{own}}}"
    if array == "geometry":
        return _length(own)
    symbol, _, owner = own.partition("_")
    if (symbol not in INERTIA_SYMBOLS and term_of(own) is None) or not owner:  # of a friction law or a force element
        return rf"\mathrm{{{latex_text(own)}}}"
    number = _owners(program).get((symbol in INERTIA_SYMBOLS, owner), 0)
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
    return rf"r_{{\mathrm{{{latex_text(parts[1])}}},{parts[2]}}}" if parts else latex_text(name)


def _owners(program: Program) -> dict[tuple[bool, str], int]:
    """Number bodies and joints, each from 1 on, in the order of the parameters."""
    numbers: dict[tuple[bool, str], int] = {}
    for name in program.inputs.get("phi", ()):
        symbol, _, owner = name.partition("_")
        key = (symbol in INERTIA_SYMBOLS, owner)
        if key not in numbers:
            numbers[key] = 1 + sum(inertial == key[0] for inertial, _ in numbers)
    return numbers


def _section(program: Program, form: Quantity) -> list[str]:
    cost, expanded = program.operations(form.name), program.expanded_operations(form.name)
    title = _TITLE.get(form.name, form.name.replace("_", " ").capitalize())
    # Functions of sums are not multiplied out, so closed forms with roots may look cheaper than they are.
    grows = expanded.total > cost.total
    more = rf"; multiplied out it would be ${latex_number(float(expanded.total))}$ operations" if grows else ""
    lines = [
        rf"\section{{{title}}}",
        f"{latex_text(form.meaning[:1].upper() + form.meaning[1:])}: {cost['+']} additions, {cost['*']} products, "
        f"{cost['sin']} sines, {cost['cos']} cosines, {cost['other']} other functions{more}.",
    ]
    result = _RESULT.get(form.result, form.result)
    rows = []
    for i, node in enumerate(form.entries):
        if not node.is_const(0.0):
            at = f"{i // form.shape[1] + 1},{i % form.shape[1] + 1}" if len(form.shape) == 2 else str(i + 1)
            rows.append((f"{result}_{{{at}}}", node))
    if len(rows) < len(form.entries):
        lines.append("Entries that are not listed are zero.")
    return lines + latex_equations(rows, lambda name: _symbol(program, *place(name)), f"eq:{form.name.replace('_', '-')}")


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
    return [head, *latex_align(rows, "eq:base")]


def _where(program: Program, forms: Sequence[Quantity]) -> list[str]:
    used = {array for form in forms for array in program.needed(form.name)}
    lines = [r"\section{Symbols}", r"\begin{itemize}"]
    for i, name in enumerate(program.inputs["q"]):
        lines.append(rf"\item $q_{{{i + 1}}}$: position of joint {latex_text(name)}")
    lines.append(r"\item $c_{i} = \cos q_{i}$, $s_{i} = \sin q_{i}$")
    if "phi" in used or program.regrouping is not None:
        for (inertial, owner), number in _owners(program).items():
            if inertial:
                meaning = rf"mass, first moments and inertia about the origin of {latex_text(owner)}"
                lines.append(rf"\item $m_{{{number}}}$, $mc_{{x{number}}}, \ldots$, $I_{{xx{number}}}, \ldots$: {meaning}")
            else:
                friction = rf"friction $f_{{v{number}}}$, $f_{{c{number}}}$, offset $o_{{{number}}}$"
                symbols = rf"rotor inertia $i_{{a{number}}}$, {friction}"
                lines.append(rf"\item {symbols} (those that occur) of {latex_text(owner)}")
    for i, name in enumerate(program.inputs.get("geometry", ())):
        value = latex_number(float(program.values["geometry"][i]))
        lines.append(rf"\item ${_length(name)} = {value}$")
    if "x" in used:
        lines.append(r"\item $p_{x}$, $p_{y}$, $p_{z}$: position of the tip")
    if "beta" in used:
        lines += [rf"\item $\beta_{{{i + 1}}}$: {latex_text(name)}" for i, name in enumerate(program.inputs["beta"])]
    return [*lines, r"\end{itemize}"]
