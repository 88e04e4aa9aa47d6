"""The main commands: describe, identify, validate, report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

import dynident as di
from dynident.cli.consoles import note, out, print_json, progress
from dynident.cli.estimators import (
    EstimatorName,
    FilterOptions,
    LoopOptions,
    Recovery,
    check_estimator,
    estimator_of,
    without_efforts,
)
from dynident.cli.known import Centre, Mass, PopulationFile, TotalMass, Without, knowledge
from dynident.cli.shared import (
    AS_LOGGED,
    AS_WRITTEN,
    NOT_OK,
    START,
    Absent,
    AllowTraining,
    AsJson,
    Debug,
    Effort,
    Essential,
    FitFile,
    FrictionLaws,
    LogOptions,
    Order,
    Projection,
    Quiet,
    Robot,
    RobotOptions,
    Strict,
    Terms,
    app,
    check_output,
    column_order,
    friction_laws,
    projection_of,
    stage_reader,
)
from dynident.cli.words import in_options
from dynident.errors import DescriptionError, DynidentError, IdentificationError, MissingExtraError
from dynident.identify import contributing_parameters
from dynident.mechanism.describe import description, description_text
from dynident.mechanism.drawing import write_svg
from dynident.mechanism.files import is_mjcf
from dynident.mechanism.sidecar import write_sidecar
from dynident.outputs import output_set

RANK_TOLERANCE = 3e-5
AS_NEEDED, NO_LOOP = FilterOptions(), LoopOptions()
RankTolerance = Annotated[
    float, typer.Option(help="Relative size below which a parameter counts as unseen; 1e-3 where axes are almost parallel.")
]

UPRIGHT = (0.0, 0.0, -9.81)  # gravity that readers of a URDF take for granted [m/s^2]


@app.command(panel=START, epilog="Example: dynident describe robot.urdf --sidecar drives.toml --json")
def describe(
    robot: Robot,
    described: RobotOptions = AS_WRITTEN,
    terms: Terms = None,
    rank_tolerance: RankTolerance = RANK_TOLERANCE,
    svg: Annotated[
        Path | None, typer.Option(help="Draw the graph of bodies, joints, loops and actuators to this file.")
    ] = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> int:
    """Show what a robot is made of, whether its inertias are possible, and what torques can identify."""
    _check_tolerance(rank_tolerance)
    mechanism = described.robot(robot, terms)
    data = description(mechanism)
    if svg is not None:
        check_output(svg)
        write_svg(mechanism, svg)
    if mechanism.dof:
        try:
            base = di.base_parameters(mechanism, tolerance=rank_tolerance)
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


@app.command(
    panel=START, epilog="Example: dynident identify robot.urdf run.csv --effort joint_torque --validate other.csv -o out/"
)
def identify(
    robot: Robot,
    logs: Annotated[list[Path], typer.Argument(help="Logs to fit, all of the same robot.", show_default=False)],
    effort: Effort = None,
    validate: Annotated[
        list[Path] | None, typer.Option(help="Log that is not fitted, to judge the model on; several times.")
    ] = None,
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for the results.")] = Path("dynident_out"),
    described: RobotOptions = AS_WRITTEN,
    logged: LogOptions = AS_LOGGED,
    terms: Terms = None,
    rank_tolerance: RankTolerance = RANK_TOLERANCE,
    friction: FrictionLaws = None,
    estimator: EstimatorName = "map",
    looped: LoopOptions = NO_LOOP,
    recovery: Recovery = "auto",
    mass: Mass = None,
    total_mass: TotalMass = None,
    centre: Centre = None,
    without: Without = None,
    population: PopulationFile = None,
    essential: Essential = None,
    contributing: Annotated[
        float | None,
        typer.Option(help="Drop parameters that make less than this share of every joint's torque (0.01 is usual); by wls."),
    ] = None,
    filtered: FilterOptions = AS_NEEDED,
    projection: Projection = "gls",
    order: Order = None,
    plan: Annotated[
        Path | None, typer.Option(help="Plan that the logs are recordings of: the stages it names for training are fitted.")
    ] = None,
    strict: Strict = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> int:
    """Identify a robot from its logs: writes fit.json, the identified description, report.html and verdict.json."""
    from dynident.validate.diagnosis.inspection import doubts_of, with_findings  # noqa: PLC0415
    from dynident.validate.verdict import judge  # noqa: PLC0415

    known, options = knowledge(described.sidecar, mass, total_mass, centre, without, population), filtered.options()
    if (essential, contributing) != (None, None) and estimator == "map":
        estimator = "wls"
    check_estimator(estimator, recovery, known)
    looped.check(estimator)
    _check_columns(order, rank_tolerance, friction)
    _check_linear(estimator, friction, essential, contributing)
    check_output(output, folder=True)
    if len(logs) == 1 and (logs[0] / "campaign.json").is_file():
        raise DynidentError(
            f"'{logs[0]}' is a campaign, which is identified cycle by cycle: run dynident cycles {robot} {logs[0]} -o {output}"
        )
    read = stage_reader(logged.reader(effort), plan)
    judging = logged.reader(None) if effort == "none" else read  # a model from positions alone is judged by logs with efforts
    with progress(2 * len(logs) + len(validate or []) + 3, quiet) as step:
        step("reading the robot")
        described.robot(robot, terms)  # what is wrong with it is said before long logs are read
        runs = []
        for path in logs:
            step(f"reading {path.name}")
            runs.append(read(path))
        mechanism = described.robot_of_log(robot, runs[0], terms)
        laws = friction_laws(mechanism, friction)
        step("estimating")
        blind = any(run.effort_kind == "none" for run in runs)
        solver = estimator_of(estimator, recovery, known, looped.closed(mechanism, runs, blind), looped.period)
        if laws is not None:
            fit = _with_laws(mechanism, runs, laws, solver, projection, options)
        else:
            evidence = _evidence(mechanism, runs, solver, order, rank_tolerance, projection_of(projection), options)
            fit = _fitted(evidence, solver, essential, contributing)
        fit, scores = with_findings(fit), []
        for path in validate or []:
            step(f"validating on {path.name}")
            scores.append(fit.score(judging(path)))
        verdict = judge(fit, scores)
        shown = list(scores)
        for run in () if blind else runs:
            step(f"comparing with {run.name}")
            shown.append(fit.score(run, allow_training=True))
        step("writing the results")
        with output_set(output, ("fit.json", "identified.*", "report.html", "verdict.json")) as stage:
            fit.save(stage / "fit.json")
            _write_model(robot, fit, stage, output, described)
            _write_report(stage / "report.html", fit, shown, verdict)
            verdict.save(stage / "verdict.json")
            written = [output / file.name for file in sorted(stage.iterdir())]
    if as_json:
        print_json(verdict.to_dict())
    elif quiet:  # the summary, which has them too, is not printed
        for text in doubts_of(fit):
            note(text)
    else:
        _tell(fit, scores, verdict, written)
        out.print(_next_step(robot, output, verdict, effort))
    return NOT_OK if strict and not verdict.ok else 0


def _tell(fit: di.Fit, scores: list[Any], verdict: Any, written: list[Path]) -> None:
    """Print the model, its errors, the verdict and the files."""
    removed = ["\n".join(fit.removals)] if fit.removals else []
    out.print(in_options("\n\n".join([*removed, *(result.summary() for result in (fit, *scores, verdict))])))
    out.print(f"\nwritten: {', '.join(map(str, written))}")


def _next_step(robot: Path, output: Path, verdict: Any, effort: str | None) -> str:
    """Return what to do with the results: look at them, judge them or use them; a failed check says by itself what to do."""
    page, fit = output / "report.html", output / "fit.json"
    lines = [f"open the report: {page.resolve().as_uri()}"] if page.is_file() else []
    if not verdict.validated:
        options = "" if effort in (None, "none") else f" --effort {effort}"
        lines.append(
            "next: judge it on a log that was not fitted, with the same options for the log: "
            f"dynident validate {robot} {fit} OTHER_LOG{options}"
        )
    elif verdict.ok and robot.is_file():
        lines.append(
            "next: use it, friction and rotors included, in MuJoCo, Pinocchio, Gazebo or Drake: "
            f"dynident export {robot} {fit} --for mujoco -o model/"
        )
    return "\n".join(lines)


def _evidence(
    mechanism: di.Mechanism,
    runs: list[di.Log],
    solver: Any,
    order: str | None,
    tolerance: float,
    projection: Any,
    options: dict[str, Any],
) -> di.Regression:
    """Return the evidence of the logs in one band, with its rows where the estimator looks at them."""
    from dynident.identify.estimators.entropic import Entropic  # noqa: PLC0415
    from dynident.identify.regression.matching import match  # noqa: PLC0415

    if any(run.effort_kind == "none" for run in runs):
        return without_efforts(mechanism, runs, solver, options)
    base = None
    if order is not None or tolerance != RANK_TOLERANCE:
        columns = None if order is None else column_order(order)
        base = di.base_parameters(match(mechanism, runs[0]).mechanism, columns, tolerance=tolerance)
    rows = not isinstance(solver, di.MAP | di.WLS | di.OLS | Entropic)
    return di.Regression.from_logs(mechanism, runs, base, projection, keep_rows=rows, **options)


def _fitted(evidence: di.Regression, solver: Any, essential: float | None, contributing: float | None) -> di.Fit:
    """Return the fit, of fewer parameters where that was asked for."""
    if essential is not None:
        return di.essential_parameters(evidence, solver, essential)
    if contributing is not None:
        return contributing_parameters(evidence, solver, contributing)
    fit: di.Fit = solver.fit(evidence).result_
    return fit


def _check_tolerance(rank_tolerance: float) -> None:
    if not 0.0 < rank_tolerance < 1.0:
        raise DynidentError(f"--rank-tolerance is {rank_tolerance:g}; it must be between 0 and 1 (3e-5 is usual)")


def _check_columns(order: str | None, rank_tolerance: float, friction: list[str] | None) -> None:
    """Refuse a choice of base columns where others are fitted."""
    _check_tolerance(rank_tolerance)
    given = {"--order": order is not None, "--rank-tolerance": rank_tolerance != RANK_TOLERANCE}
    for option in (name for name, here in given.items() if here):
        if friction is not None:
            raise DynidentError(f"{option} is for linear friction terms; leave it out, or leave out --friction")


def _check_linear(estimator: str, friction: list[str] | None, essential: float | None, contributing: float | None) -> None:
    """Refuse what does not go together: columns that are searched, dropped, or looked at row by row."""
    given = {"--friction": friction, "--essential": essential, "--contributing": contributing}
    options = [name for name, value in given.items() if value is not None]
    if options and estimator not in ("map", "wls", "ols"):
        raise DynidentError(f"{options[0]} goes with the estimators map, wls and ols, not with '{estimator}'")
    if len(options) > 1:
        raise DynidentError(f"{options[0]} and {options[1]} do not go together; leave one out")


def _write_report(path: Path, fit: di.Fit, scores: list[Any], verdict: Any) -> None:
    """Write the report; a plain installation, which cannot draw, goes on without it."""
    try:
        from dynident.report.report import write_report  # noqa: PLC0415 - matplotlib

        write_report(path, fit, scores, verdict)
    except MissingExtraError as error:
        note(f"no report is written: {error}")


def _with_laws(
    mechanism: di.Mechanism,
    logs: list[di.Log],
    laws: Any,
    solver: Any,
    projection: str,
    options: dict[str, Any],
) -> di.Fit:
    """Return the fit of bodies and friction laws together."""
    wanted = None if projection == "gls" else projection_of(projection)
    return di.fit_log(mechanism, logs, laws, options, wanted, solver)


def _write_model(robot: Path, fit: di.Fit, stage: Path, output: Path, described: RobotOptions) -> None:
    """Write the identified description; where the file's format cannot hold the parameters, say so and keep the fit."""
    if not robot.is_file():  # a robot of the library has no description to copy
        note(f"no description is written: '{robot}' is not a file; fit.json has the identified parameters")
        return
    name = f"identified{robot.suffix if is_mjcf(robot) else '.urdf'}"
    try:
        described.write(robot, fit, stage / name)
    except DescriptionError as error:
        stale = "; the one in the folder is of an earlier fit" if (output / name).exists() else ""
        note(f"{name} is not written: {error}{stale}")
    upright = bool(abs(fit.mechanism.gravity - UPRIGHT).max() < 0.01)
    if fit.mechanism.friction or fit.mechanism.forces or not upright:
        write_sidecar(fit.model, stage / "identified.toml", structure=False)


@app.command(panel=START, epilog="Example: dynident validate robot.urdf out/fit.json other.csv --effort joint_torque --strict")
def validate(
    robot: Robot,
    fit: FitFile,
    logs: Annotated[list[Path], typer.Argument(help="Held-out logs.", show_default=False)],
    effort: Effort = None,
    described: RobotOptions = AS_WRITTEN,
    logged: LogOptions = AS_LOGGED,
    absent: Absent = None,
    allow_training: AllowTraining = False,
    strict: Strict = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> int:
    """Compare an identified model with logs it was not fitted to."""
    from dynident.validate.verdict import judge  # noqa: PLC0415

    read = logged.reader(effort)
    with progress(len(logs) + 1) as step:
        step("reading the fit")
        model = di.Fit.load(fit, described.robot(robot)).without(*(absent or ()))
        scores = []
        for path in logs:
            step(f"validating on {path.name}")
            scores.append(model.score(read(path), allow_training))
    verdict = judge(model, scores)
    if as_json:
        print_json(verdict.to_dict())
    else:
        out.print(in_options("\n\n".join([*(score.summary() for score in scores), verdict.summary()])))
    return NOT_OK if strict and not verdict.ok else 0


def _apart(one: Path, two: Path) -> tuple[str, str]:
    """Return short names of two files, what their paths do not share: spring and autumn of spring/fit.json, autumn/fit.json."""
    a, b = list(one.with_suffix("").parts), list(two.with_suffix("").parts)
    for end in (-1, 0):
        while min(len(a), len(b)) > 1 and a[end] == b[end]:
            del a[end], b[end]
    return "/".join(a), "/".join(b)


@app.command(
    panel=START,
    epilog="Example: dynident report robot.urdf out/fit.json other.csv --effort joint_torque -o report.html; "
    "two fits: dynident report before.json after.json -o comparison.html",
)
def report(
    robot: Annotated[Path, typer.Argument(help="Description of the robot, or the first of two fits.", show_default=False)],
    fit: FitFile,
    logs: Annotated[list[Path] | None, typer.Argument(help="Held-out logs to show.", show_default=False)] = None,
    output: Annotated[Path, typer.Option("-o", "--output", help="HTML file to write.")] = Path("report.html"),
    effort: Effort = None,
    described: RobotOptions = AS_WRITTEN,
    logged: LogOptions = AS_LOGGED,
    allow_training: AllowTraining = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> int:
    """Write the HTML report of a fit, or, given two fits, the page that compares them."""
    from dynident.report.comparison import write_comparison  # noqa: PLC0415
    from dynident.report.report import write_report  # noqa: PLC0415
    from dynident.validate.verdict import judge  # noqa: PLC0415

    check_output(output)
    read = logged.reader(effort)
    if robot.suffix.lower() == ".json":
        with progress(2) as step:
            step("reading the fits")
            fits = dict(zip(_apart(robot, fit), (di.Fit.load(robot), di.Fit.load(fit)), strict=True))
            step("comparing them")
            page = write_comparison(output, fits, [read(path) for path in logs or []])
        if as_json:
            print_json({"written": str(page)})
        else:
            out.print(f"written: {page}")
        return 0
    with progress(len(logs or []) + 2) as step:
        step("reading the fit")
        model = di.Fit.load(fit, described.robot(robot))
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
