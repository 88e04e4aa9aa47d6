"""Closed forms to files, and tables of what they cost."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from dynident.files import write_atomic
from dynident.graph.printing import identifier
from dynident.mechanism.mechanism import Mechanism
from dynident.symbolic.derivation import DEFAULT, derive
from dynident.symbolic.printers import to_c, to_casadi, to_latex, to_numpy
from dynident.symbolic.program import Operations, Program

LATEX = ("inverse_dynamics", "mass_matrix", "gravity", "forward_kinematics", "jacobian", "base_regressor")

# Additions, products and trigonometric functions per tree node of a numeric Newton-Euler recursion that knows nothing of the
# robot: rotation 18 + 18, motion 57 + 66, wrench 39 + 51, torque and transfer 26 + 27, one sine, one cosine.
NUMERIC_NODE = {"+": 140, "*": 162, "sin": 1, "cos": 1}


def write_program(
    mechanism: Mechanism,
    folder: str | os.PathLike[str],
    latex: bool = True,
    c: bool = True,
    numpy: bool = True,
    *,
    quantities: Sequence[str] = DEFAULT,
    columns: Sequence[int] | None = None,
    geometry: str = "numeric",
) -> list[Path]:
    """Write closed forms of a robot and return the files.

    Parameters
    ----------
    mechanism, folder
        The robot, and where its files are written.
    latex, c, numpy
        Write ``<robot>.tex`` (with symbols for the lengths); ``<robot>.h``, ``.c`` and ``_test.c``; ``<robot>.py``.
    quantities, columns, geometry
        See `derive`; `geometry` is that of the C and NumPy code.
    """
    target, name = Path(folder), identifier(mechanism.name).lower()
    files: dict[str, str] = {}
    if c or numpy:
        program = derive(mechanism, quantities, geometry=geometry, columns=columns)
        if c:
            files |= to_c(program).files
        if numpy:
            files[f"{name}.py"] = to_numpy(program)
    if latex:
        chosen = [quantity for quantity in quantities if quantity in LATEX] or list(quantities)
        files[f"{name}.tex"] = to_latex(derive(mechanism, chosen, geometry="symbolic", columns=columns))
    return [write_atomic(target / file, text) for file, text in files.items()]


MODEL = {"inverse_dynamics": "torque", "forward_dynamics": "acceleration", "mass_matrix": "mass_matrix", "gravity": "gravity"}


def model_program(mechanism: Mechanism) -> Program:
    """Derive a robot's model with its own numbers inside, for controllers: no parameter enters any more."""
    program = derive(mechanism, tuple(MODEL), parameters="numeric")
    forms = {name: replace(program[old], name=name) for old, name in MODEL.items()}
    inputs = {array: program.inputs[array] for array in ("q", "v", "a", "tau")}
    return replace(program, inputs=MappingProxyType(inputs), values={}, quantities=MappingProxyType(forms))


def write_model(
    mechanism: Mechanism, folder: str | os.PathLike[str], c: bool = True, numpy: bool = True, casadi: bool = True
) -> list[Path]:
    """Write the model of a `mechanism` with its own numbers, such as ``fit.model``, to `folder`; returns the files.

    `c`: ``<robot>_torque(q, v, a, tau)`` and ``<robot>_acceleration(q, v, tau, acc)`` with a self-test. `numpy`: ``<robot>.py``
    with ``torque(q, v, a)`` and ``acceleration(q, v, tau)``. `casadi`: ``<robot>_casadi.py`` with the same functions.
    """
    program, name = model_program(mechanism), identifier(mechanism.name).lower()
    files = to_c(program).files if c else {}
    if numpy:
        files[f"{name}.py"] = to_numpy(program)
    if casadi:
        files[f"{name}_casadi.py"] = to_casadi(program)
    return [write_atomic(Path(folder) / file, text) for file, text in files.items()]


def numeric_operations(mechanism: Mechanism) -> Operations:
    """Return what inverse dynamics by the generic numeric recursion costs, which knows nothing of the robot."""
    nodes = int(mechanism.tree.arrays.parent.size)
    return Operations({kind: nodes * x for kind, x in NUMERIC_NODE.items()})


def operation_table(program: Program, mechanism: Mechanism | None = None) -> str:
    """Return the operations of every quantity of a `program` as text, as generated and multiplied out.

    A `mechanism` adds the generic numeric Newton-Euler recursion to compare with. Functions are sines, cosines, roots, signs.
    """
    rows: list[tuple[str, Operations, str]] = []
    for name in program.quantities:
        expanded = program.expanded_operations(name).total
        rows.append((name, program.operations(name), str(expanded) if expanded < 10**7 else f"{float(expanded):.1e}"))
    if mechanism is not None:
        rows.append(("numeric Newton-Euler", numeric_operations(mechanism), "-"))
    lines = [f"{'method':<24}{'+':>8}{'*':>8}{'/':>6}{'functions':>10}{'total':>8}{'multiplied out':>16}"]
    for name, cost, expanded_text in rows:
        functions = cost["sin"] + cost["cos"] + cost["other"]
        numbers = f"{cost['+']:>8}{cost['*']:>8}{cost['/']:>6}{functions:>10}{cost.total:>8}{expanded_text:>16}"
        lines.append(f"{name:<24}{numbers}")
    return "\n".join(lines)
