"""Commands about models: closed forms, inverse kinematics, checks of the dynamics, motors of redundant robots."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray

import dynident as di
from dynident.cli.consoles import out, print_json, progress
from dynident.cli.machines import read_plan, ready_machine
from dynident.cli.robots import is_known, published_range
from dynident.cli.shared import AS_WRITTEN, MODEL, NOT_OK, AsJson, Debug, Robot, RobotOptions, Strict, Terms, app, check_output
from dynident.errors import DynidentError

SAMPLES = 1000  # poses along a motion at which motors are ranked


@app.command(panel=MODEL, epilog="Example: dynident derive robot.urdf --fit out/fit.json --c -o model/")
def derive(
    robot: Robot,
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for the files.")] = Path("derived"),
    latex: Annotated[bool, typer.Option("--latex", help="Write the equations as LaTeX.")] = False,
    c: Annotated[bool, typer.Option("--c", help="Write standalone C99 with a test harness.")] = False,
    numpy: Annotated[bool, typer.Option("--numpy", help="Write a readable NumPy module.")] = False,
    casadi: Annotated[bool, typer.Option("--casadi", help="Write CasADi functions; with --fit.")] = False,
    fit: Annotated[
        Path | None, typer.Option(help="fit.json: write the identified model with its numbers inside, ready for a controller.")
    ] = None,
    described: RobotOptions = AS_WRITTEN,
    terms: Terms = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> int:
    """Derive a robot's equations in closed form: LaTeX, C and NumPy with parameters to give, or with those of a fit inside."""
    from dynident import symbolic  # noqa: PLC0415 - only this command needs it

    check_output(output, folder=True)
    if casadi and fit is None:
        raise DynidentError("--casadi needs --fit, as in --fit out/fit.json: CasADi functions have their numbers inside")
    if latex and fit is not None:
        raise DynidentError("--latex prints symbols, not numbers; leave out --fit or --latex")
    if fit is not None:
        model = di.Fit.load(fit, described.robot(robot, terms))
        every = not (c or numpy or casadi)
        files = symbolic.write_model(model.model, output, c or every, numpy or every, casadi or every)
        from dynident.export.robot import remark  # noqa: PLC0415 - only with numbers of a fit

        files = [remark(path, model.provenance()) for path in files]
        if as_json:
            print_json({"written": [str(path) for path in files]})
        else:
            out.print("written: " + ", ".join(str(path) for path in files))
        return 0
    every = not (latex or c or numpy)
    with progress(4) as step:
        step("reading the robot")
        mechanism = described.robot(robot, terms)
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


def _numbers(text: str, count: int, option: str) -> NDArray[np.float64]:
    try:
        values = np.array([float(x) for x in text.split(",")])
    except ValueError:
        raise DynidentError(f"{option} is '{text}'; give {count} numbers separated by commas") from None
    if values.size != count:
        raise DynidentError(f"{option} has {values.size} numbers; give {count}, separated by commas")
    return values


@app.command(panel=MODEL, epilog="Example: dynident ik robot.urdf --position 0.4,0.1,0.5 --rpy 0,3.14,0 --frame tool0")
def ik(
    robot: Robot,
    position: Annotated[str, typer.Option(help="Target position x,y,z in the base frame [m].")],
    rpy: Annotated[str | None, typer.Option(help="Target orientation roll,pitch,yaw [rad]; position only when absent.")] = None,
    frame: Annotated[str | None, typer.Option(help="Link to place; the last one when absent.")] = None,
    numeric: Annotated[bool, typer.Option("--numeric", help="Use the numeric solver (damped least squares).")] = False,
    start: Annotated[str | None, typer.Option(help="Start of the numeric solver, joint positions by commas.")] = None,
    described: RobotOptions = AS_WRITTEN,
    as_json: AsJson = False,
    debug: Debug = False,
) -> int:
    """Solve inverse kinematics: all branches in closed form, or one solution numerically."""
    mechanism = described.robot(robot)
    target = _numbers(position, 3, "--position")
    rotation = None if rpy is None else di.Placement.from_rpy((0.0, 0.0, 0.0), _numbers(rpy, 3, "--rpy")).rotation
    if numeric:
        from dynident.mechanics.inverse_kinematics_damped import inverse_kinematics_numeric  # noqa: PLC0415

        begin = None if start is None else _numbers(start, mechanism.dof, "--start")
        found = inverse_kinematics_numeric(mechanism, rotation, target, start=begin, frame=frame)
        solutions, names = np.atleast_2d(found), ["numeric"]
    else:
        from dynident.mechanics.inverse_kinematics_closed import arm_structure, inverse_kinematics, reach  # noqa: PLC0415

        solutions = inverse_kinematics(mechanism, rotation, target, frame=frame)[0]
        names = list(arm_structure(mechanism, frame).postures)
        if np.all(np.isnan(solutions)):
            away = reach(mechanism, rotation, target, frame=frame)
            raise DynidentError(
                f"the target {position} is out of reach of robot '{mechanism.name}' by {float(away.distance[0]):.4g} m"
            )
    rows = {name: None if np.isnan(q).any() else q.tolist() for name, q in zip(names, solutions, strict=True)}
    if as_json:
        print_json({"joints": list(mechanism.coordinate_names), "branches": rows})
    else:
        for name, values in rows.items():
            text = "does not exist" if values is None else "  ".join(f"{x:+.6f}" for x in values)
            out.print(f"{name:<20} {text}")
    return 0


@app.command(panel=MODEL, epilog="Example: dynident check robot.urdf --fit out/fit.json --strict")
def check(
    robot: Robot,
    fit: Annotated[Path | None, typer.Option(help="fit.json: check the identified model.")] = None,
    samples: Annotated[int, typer.Option(help="Number of random poses.")] = 200,
    seed: Annotated[int, typer.Option(help="Seed of poses and velocities.")] = 0,
    described: RobotOptions = AS_WRITTEN,
    strict: Strict = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> int:
    """Check properties that every robot's dynamics have: M > 0, skew-symmetry, energy, Jacobians; bounds of M, C and g."""
    mechanism = described.robot(robot)
    within = None
    if is_known(robot) and described.sidecar is None:
        if not mechanism.parameters.values.any():  # its source prints no masses: those of the ready machine
            mechanism = ready_machine(str(robot)).model
        within = published_range(str(robot), mechanism)
    if fit is not None:
        mechanism = di.Fit.load(fit, mechanism).model
    found = di.check(mechanism, within=within, samples=samples, seed=seed)
    if as_json:
        print_json(found.to_dict())
    else:
        out.print(found.summary())
    return NOT_OK if strict and not found.ok else 0


@app.command(panel=MODEL, epilog="Example: dynident partitions dualv plan/")
def partitions(
    robot: Robot,
    plan: Annotated[
        Path,
        typer.Argument(help="Folder or plan.json of excite, or a motion as CSV (t, q_..., v_..., a_...).", show_default=False),
    ],
    described: RobotOptions = AS_WRITTEN,
    as_json: AsJson = False,
    debug: Debug = False,
) -> int:
    """Rank the motors on which torques of a robot with more motors than freedoms can be projected, along a motion."""
    from dynident.identify.partitions import rank_partitions  # noqa: PLC0415 - only this command needs it
    from dynident.simulate.reference import reference_of  # noqa: PLC0415

    mechanism = described.robot(robot)
    wanted = reference_of(read_plan(plan, mechanism), mechanism)
    found = rank_partitions(mechanism, wanted.sample(np.linspace(0.0, wanted.duration, SAMPLES)))
    if as_json:
        print_json(found.to_dict())
    else:
        out.print(found.summary())
    return 0
