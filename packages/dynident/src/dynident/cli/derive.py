"""The command derive."""

from __future__ import annotations

from pathlib import Path

import dynident as di
from dynident import symbolic
from dynident.cli.consoles import out, print_json
from dynident.cli.options import AS_WRITTEN, AsJson, Folder, Robot, RobotOptions, check_output
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
    fit: Path | None = None,
    described: RobotOptions = AS_WRITTEN,
    as_json: AsJson = False,
) -> int:
    """Derive a robot's equations in closed form: LaTeX, C and NumPy with parameters to give, or with those of a fit inside.

    Example: dynident derive robot.urdf --fit out/fit.json --c -o model/

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
        Write CasADi functions; with --fit.
    fit
        fit.json: write the identified model with its numbers inside, ready for a controller.
    """
    check_output(output, folder=True)
    if casadi and fit is None:
        raise DynidentError("--casadi needs --fit, as in --fit out/fit.json: CasADi functions have their numbers inside")
    if latex and fit is not None:
        raise DynidentError("--latex prints symbols, not numbers; leave out --fit or --latex")
    if fit is not None:
        model = di.Fit.load(fit, described.robot(robot))
        every = not (c or numpy or casadi)
        files = symbolic.write_model(model.model, output, c or every, numpy or every, casadi or every)
        files = [remark(path, model.provenance()) for path in files]
        if as_json:
            print_json({"written": [str(path) for path in files]})
        else:
            out.print("written: " + ", ".join(str(path) for path in files))
        return 0
    every = not (latex or c or numpy)
    with progress(4) as step:
        step("reading the robot")
        mechanism = described.robot(robot)
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
