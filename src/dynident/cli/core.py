"""The main commands: describe, identify, validate, export, report."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

import dynident as di
from dynident.cli.shared import (
    NOT_OK,
    Absent,
    AllowTraining,
    Arg,
    AsJson,
    Debug,
    Effort,
    FitFile,
    Gain,
    Joints,
    LogRate,
    Quiet,
    Robot,
    Schema,
    Search,
    Sidecar,
    Strict,
    Terms,
    Topic,
    Trust,
    Unit,
    app,
    check_output,
    log_reader,
    note,
    out,
    print_json,
    progress,
    robot_of,
    with_terms,
)
from dynident.errors import DescriptionError, DynidentError, IdentificationError
from dynident.files import write_atomic
from dynident.mechanism import description, description_text, is_mjcf, write_robot, write_svg
from dynident.outputs import output_set


@app.command(epilog="Example: dynident describe robot.urdf --sidecar drives.toml --json")
def describe(
    robot: Robot,
    sidecar: Sidecar = None,
    search: Search = None,
    arg: Arg = None,
    trust: Trust = False,
    terms: Terms = None,
    svg: Annotated[
        Path | None, typer.Option(help="Draw the graph of bodies, joints, loops and actuators to this file.")
    ] = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> int:
    """Show what a robot is made of, whether its inertias are possible, and what torques can identify."""
    mechanism = with_terms(robot_of(robot, sidecar, search, arg, trust), terms)
    data = description(mechanism)
    if svg is not None:
        check_output(svg)
        write_svg(mechanism, svg)
    if mechanism.dof:
        try:
            base = di.base_parameters(mechanism)
        except IdentificationError as error:  # too large
            note(str(error))
        else:
            data["base_parameters"] = {"rank": base.rank, "rank_gap": base.rank_gap, "expressions": list(base.expressions)}
            data["unidentifiable"] = list(base.unidentifiable)
    if as_json:
        print_json(data)
    else:
        out.print(description_text(data))
    return 0


def _estimator(name: str, recovery: str) -> Any:
    known = {"wls": di.WLS, "ols": di.OLS}
    rules = ("auto", "physical", "prior", "minimum_norm")
    for label, value, choices in (("estimator", name, known), ("recovery", recovery, rules)):
        if value not in choices:
            raise DynidentError(f"--{label} is '{value}'; it must be one of {', '.join(choices)}")
    if recovery == "auto":
        recovery = "physical" if find_spec("cvxpy") else "prior"
        if recovery == "prior":
            note("standard parameters may be physically impossible: pip install 'dynident[physical]'")
    return known[name](recovery=recovery)


def _options(cutoff: str, decimation: str, standstill: float) -> dict[str, Any]:
    options: dict[str, Any] = {"standstill": standstill} if standstill else {}
    for label, text, kind in (("cutoff", cutoff, float), ("decimation", decimation, int)):
        if text != "auto":
            try:
                options[label] = kind(text)
            except ValueError:
                raise DynidentError(f"--{label} is '{text}'; give 'auto' or a {'whole ' * (kind is int)}number") from None
    return options


def _projection(text: str) -> str | tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    return text if text in ("gls", "independent") else names


@app.command(epilog="Example: dynident identify robot.urdf run.csv --effort joint_torque --validate other.csv -o out/")
def identify(
    robot: Robot,
    logs: Annotated[list[Path], typer.Argument(help="Logs to fit, all of the same robot.", show_default=False)],
    effort: Effort = None,
    validate: Annotated[list[Path] | None, typer.Option(help="Held-out log; may be given several times.")] = None,
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for the results.")] = Path("dynident_out"),
    sidecar: Sidecar = None,
    search: Search = None,
    arg: Arg = None,
    trust: Trust = False,
    schema: Schema = None,
    joints: Joints = None,
    gain: Gain = None,
    topic: Topic = None,
    unit: Unit = None,
    log_rate: LogRate = None,
    terms: Terms = None,
    estimator: Annotated[str, typer.Option(help="wls (every joint has its own noise) or ols.")] = "wls",
    recovery: Annotated[
        str, typer.Option(help="Standard parameters: auto, physical (possible bodies), prior or minimum_norm.")
    ] = "auto",
    essential: Annotated[
        float | None, typer.Option(help="Keep essential parameters only, up to this ratio (10 is usual).")
    ] = None,
    cutoff: Annotated[str, typer.Option(help="Low-pass frequency in Hz, or auto.")] = "auto",
    decimation: Annotated[str, typer.Option(help="Factor of the parallel decimation, or auto.")] = "auto",
    standstill: Annotated[
        float, typer.Option(help="Leave out speeds below this share of a joint's RMS speed, where it may stick (0.1 is usual).")
    ] = 0.0,
    projection: Annotated[
        str, typer.Option(help="Robots with loops: gls (least variance), independent, or names of motors by commas.")
    ] = "gls",
    strict: Strict = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> int:
    """Identify a robot from its logs: writes fit.json, the identified description, report.html and verdict.json."""
    from dynident.report import write_report  # noqa: PLC0415 - matplotlib
    from dynident.validate import judge  # noqa: PLC0415

    solver, options = _estimator(estimator, recovery), _options(cutoff, decimation, standstill)
    check_output(output, folder=True)
    read = log_reader(effort, schema, joints, gain, topic, unit, log_rate)
    with progress(2 * len(logs) + len(validate or []) + 3, quiet) as step:
        step("reading the robot")
        mechanism = with_terms(robot_of(robot, sidecar, search, arg, trust), terms)
        evidence: di.Regression | None = None
        for path in logs:
            step(f"reading and compressing {path.name}")
            log = read(path)
            base = evidence.base if evidence is not None else None
            found = di.Regression.from_log(mechanism, log, base, _projection(projection), **options)
            evidence = found if evidence is None else evidence + found
        assert evidence is not None, "typer asks for one log at least"
        step("estimating")
        fit = di.essential_parameters(evidence, solver, essential) if essential is not None else solver.fit(evidence).result_
        scores = []
        for path in validate or []:
            step(f"validating on {path.name}")
            scores.append(fit.score(read(path)))
        verdict = judge(fit, scores)
        shown = list(scores)
        for path in logs:  # read again rather than kept: a fit may have many long logs
            step(f"comparing with {path.name}")
            shown.append(fit.score(read(path), allow_training=True))
        step("writing the results")
        with output_set(output, ("fit.json", "identified.*", "report.html", "verdict.json")) as stage:
            fit.save(stage / "fit.json")
            _write_model(robot, fit, stage, output, search, trust)
            write_report(stage / "report.html", fit, shown, verdict)
            verdict.save(stage / "verdict.json")
            written = [output / file.name for file in sorted(stage.iterdir())]
    if as_json:
        print_json(verdict.to_dict())
    elif not quiet:
        out.print("\n\n".join([fit.summary(), *(score.summary() for score in scores), verdict.summary()]))
        out.print(f"\nwritten: {', '.join(map(str, written))}")
    return NOT_OK if strict and not verdict.ok else 0


def _write_model(robot: Path, fit: di.Fit, stage: Path, output: Path, search: list[Path] | None, trust: bool) -> None:
    """Write the identified description; where the file's format cannot hold the parameters, say so and keep the fit."""
    if not robot.is_file():  # a robot of the library has no description to copy
        note(f"no description is written: '{robot}' is not a file; fit.json has the identified parameters")
        return
    name = f"identified{robot.suffix if is_mjcf(robot) else '.urdf'}"
    try:
        write_robot(robot, fit.mechanism, fit.standard, stage / name, search or (), trust)
    except DescriptionError as error:
        stale = "; the one in the folder is of an earlier fit" if (output / name).exists() else ""
        note(f"{name} is not written: {error}{stale}")


@app.command(epilog="Example: dynident validate robot.urdf out/fit.json other.csv --effort joint_torque --strict")
def validate(
    robot: Robot,
    fit: FitFile,
    logs: Annotated[list[Path], typer.Argument(help="Held-out logs.", show_default=False)],
    effort: Effort = None,
    sidecar: Sidecar = None,
    search: Search = None,
    arg: Arg = None,
    trust: Trust = False,
    schema: Schema = None,
    joints: Joints = None,
    gain: Gain = None,
    topic: Topic = None,
    unit: Unit = None,
    log_rate: LogRate = None,
    absent: Absent = None,
    allow_training: AllowTraining = False,
    strict: Strict = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> int:
    """Compare an identified model with logs it was not fitted to."""
    from dynident.validate import judge  # noqa: PLC0415

    read = log_reader(effort, schema, joints, gain, topic, unit, log_rate)
    with progress(len(logs) + 1) as step:
        step("reading the fit")
        model = di.Fit.load(fit, robot_of(robot, sidecar, search, arg, trust)).without(*(absent or ()))
        scores = []
        for path in logs:
            step(f"validating on {path.name}")
            scores.append(model.score(read(path), allow_training))
    verdict = judge(model, scores)
    if as_json:
        print_json(verdict.to_dict())
    else:
        out.print("\n\n".join([*(score.summary() for score in scores), verdict.summary()]))
    return NOT_OK if strict and not verdict.ok else 0


@app.command(epilog="Example: dynident export robot.urdf out/fit.json -o identified.urdf")
def export(
    robot: Robot,
    fit: FitFile,
    output: Annotated[Path, typer.Option("-o", "--output", help="File to write: like the robot's, or .json.")],
    sidecar: Sidecar = None,
    search: Search = None,
    arg: Arg = None,
    trust: Trust = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> int:
    """Write the identified parameters into a copy of the robot's URDF or MJCF, or as parameters (.json)."""
    endings = (".xml", ".mjcf", ".json") if is_mjcf(robot) else (".urdf", ".xml", ".json")
    if output.suffix.lower() not in endings:
        raise DynidentError(f"output '{output}' has the ending '{output.suffix}'; for this robot it is {', '.join(endings)}")
    check_output(output)
    model = di.Fit.load(fit, robot_of(robot, sidecar, search, arg, trust))
    if output.suffix.lower() == ".json":
        path = write_atomic(output, model.standard.to_json())
    else:
        path = write_robot(robot, model.mechanism, model.standard, output, search or (), trust)
    impossible = [c.sentence for c in model.consistency() if not c.ok]
    for sentence in impossible:
        note(sentence)
    if as_json:
        print_json({"written": str(path), "impossible": impossible})
    else:
        out.print(f"written: {path}")
    return 0


@app.command(epilog="Example: dynident report robot.urdf out/fit.json other.csv --effort joint_torque -o report.html")
def report(
    robot: Robot,
    fit: FitFile,
    logs: Annotated[list[Path] | None, typer.Argument(help="Held-out logs to show.", show_default=False)] = None,
    output: Annotated[Path, typer.Option("-o", "--output", help="HTML file to write.")] = Path("report.html"),
    effort: Effort = None,
    sidecar: Sidecar = None,
    search: Search = None,
    arg: Arg = None,
    trust: Trust = False,
    schema: Schema = None,
    joints: Joints = None,
    gain: Gain = None,
    topic: Topic = None,
    unit: Unit = None,
    log_rate: LogRate = None,
    allow_training: AllowTraining = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> int:
    """Write the HTML report of a fit."""
    from dynident.report import write_report  # noqa: PLC0415 - matplotlib
    from dynident.validate import judge  # noqa: PLC0415

    check_output(output)
    read = log_reader(effort, schema, joints, gain, topic, unit, log_rate)
    with progress(len(logs or []) + 2) as step:
        step("reading the fit")
        model = di.Fit.load(fit, robot_of(robot, sidecar, search, arg, trust))
        scores = []
        for path in logs or []:
            step(f"comparing with {path.name}")
            scores.append(model.score(read(path), allow_training))
        step("drawing the report")
        verdict = judge(model, scores)
        written = write_report(output, model, scores, verdict)
    if as_json:
        print_json({"written": str(written), "verdict": verdict.to_dict()})
    else:
        out.print(f"written: {written}")
    return 0
