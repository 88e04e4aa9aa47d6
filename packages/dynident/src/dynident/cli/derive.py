"""The command derive."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

import dynident as di
from dynident import symbolic
from dynident.cli.consoles import out, print_json
from dynident.cli.options import AS_WRITTEN, AsJson, Folder, Robot, RobotOptions, check_output, fit_in
from dynident.cli.progress import progress
from dynident.errors import DynidentError
from dynident.export.robot import remark


def derive(
    robot: Robot,
    /,
    *,
    output: Folder = Path("derived"),
    latex: bool = False,
    c: bool = False,
    numpy: bool = False,
    casadi: bool = False,
    friction: str = "exact",
    ik: Annotated[str | None, Parameter(metavar="LINK")] = None,
    described: RobotOptions = AS_WRITTEN,
    as_json: AsJson = False,
) -> int:
    """Write a robot's model as code: with the identified numbers for a controller, or in closed form with symbols.

    Example: dynident derive out/fit.json --c -o model/

    Models of fit.json, of robots with loops and with --ik have their numbers inside.

    Parameters
    ----------
    output
        Folder for the files.
    latex
        Write the equations as LaTeX.
    c
        Write standalone C99 with a test harness.
    numpy
        Write a readable NumPy module.
    casadi
        Write CasADi functions of a model with numbers.
    friction
        Friction of a model with numbers: none, exact, or smooth=0.02 with the speed over which its jumps are spread [rad/s].
    ik
        Write forward and inverse kinematics of this link too (C and NumPy).
    """
    check_output(output, folder=True)
    width = _friction(friction)
    mechanism = described.robot(robot)
    model = fit_in(robot)
    if model is not None or mechanism.loops or ik is not None:
        if latex:
            raise DynidentError(
                "--latex prints closed forms of trees with symbols; give a description without loops, not a fit"
            )
        every = not (c or numpy or casadi)
        files = symbolic.write_model(mechanism, output, c or every, numpy or every, casadi or every, width, ik)
        for path in files:
            if model is not None and path.suffix in (".h", ".py"):  # the files that are read first
                remark(path, model.provenance())
        if as_json:
            print_json({"written": [str(path) for path in files]})
        else:
            out.print("written: " + ", ".join(str(path) for path in files))
        return 0
    if casadi:
        raise DynidentError("--casadi writes functions with numbers inside; give fit.json in place of the description")
    every = not (latex or c or numpy)
    with progress(3) as step:
        step("finding the base parameters")
        base = di.base_parameters(mechanism)
        step("deriving and printing")
        files = symbolic.write_program(
            mechanism, output, latex or every, c or every, numpy or every, columns=base.columns.tolist()
        )
        step("counting operations")
        program = symbolic.derive(mechanism, ("inverse_dynamics", "base_regressor"), columns=base.columns.tolist())
        table = symbolic.operation_table(program, mechanism)
    if as_json:
        counts = {name: program.operations(name).total for name in ("inverse_dynamics", "base_regressor")}
        print_json({"written": [str(path) for path in files], "base_parameters": base.rank, "operations": counts})
    else:
        out.print(table)
        out.print("written: " + ", ".join(str(path) for path in files))
    return 0


def _friction(text: str) -> float | None:
    """Return the speed over which friction jumps are spread, 0 for exact jumps; None omits friction."""
    kind, _, number = text.partition("=")
    if text in ("none", "exact"):
        return None if text == "none" else 0.0
    try:
        width = float(number)
    except ValueError:
        width = 0.0
    if kind != "smooth" or not 0.0 < width < 1e3:
        raise DynidentError(f"--friction is '{text}'; use none, exact, or smooth=0.02 with a speed [rad/s, m/s]")
    return width
