"""The command identify."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

import dynident as di
from dynident.cli.consoles import note, out, print_json
from dynident.cli.estimators import (
    AS_NEEDED,
    NO_LOOP,
    NOTHING_KNOWN,
    EstimatorName,
    FilterOptions,
    KnownOptions,
    LoopOptions,
    Recovery,
    check_estimator,
    estimator_of,
    without_efforts,
)
from dynident.cli.groups import COLUMNS, RARE_LOGS
from dynident.cli.options import (
    AS_LOGGED,
    AS_WRITTEN,
    NOT_OK,
    RANK_TOLERANCE,
    AsJson,
    Essential,
    Folder,
    FrictionLaws,
    LogOptions,
    Order,
    Projection,
    Quiet,
    RankTolerance,
    Robot,
    RobotOptions,
    Strict,
    check_output,
    check_tolerance,
    column_order,
    friction_laws,
    projection_of,
)
from dynident.cli.progress import progress
from dynident.cli.words import in_options
from dynident.errors import DynidentError
from dynident.identify.regression.logs import match
from dynident.validate.diagnosis.inspection import doubts_of


def identify(
    robot: Robot,
    logs: list[Path],
    /,
    *,
    logged: LogOptions = AS_LOGGED,
    validate: list[Path] | None = None,
    output: Folder = Path("dynident_out"),
    described: RobotOptions = AS_WRITTEN,
    rank_tolerance: RankTolerance = RANK_TOLERANCE,
    friction: FrictionLaws = None,
    estimator: EstimatorName = "map",
    looped: LoopOptions = NO_LOOP,
    recovery: Recovery = "auto",
    known: KnownOptions = NOTHING_KNOWN,
    essential: Essential = None,
    contributing: Annotated[float | None, Parameter(group=COLUMNS)] = None,
    filtered: FilterOptions = AS_NEEDED,
    projection: Projection = "gls",
    order: Order = None,
    plan: Annotated[Path | None, Parameter(group=RARE_LOGS)] = None,
    strict: Strict = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> int:
    """Identify a robot from its logs: writes fit.json, the identified description, report.html and verdict.json.

    Example: dynident identify robot.urdf run.csv --effort joint_torque --validate other.csv -o out/

    Parameters
    ----------
    logs
        Logs to fit, all of the same robot.
    validate
        Log that is not fitted, to judge the model on; several times.
    output
        Folder for the results.
    contributing
        Drop parameters that make less than this share of every joint's torque (0.01 is usual); by wls.
    plan
        Plan that the logs are recordings of: the stages it names for training are fitted.
    """
    told, options = known.knowledge(described.sidecar), filtered.options()
    if (essential, contributing) != (None, None) and estimator == "map":
        estimator = "wls"
    check_estimator(estimator, recovery, told)
    looped.check(estimator)
    _check_columns(order, rank_tolerance, friction)
    _check_linear(estimator, friction, essential, contributing)
    check_output(output, folder=True)
    if len(logs) == 1 and (logs[0] / "campaign.json").is_file():
        raise DynidentError(
            f"'{logs[0]}' is a campaign, which is identified cycle by cycle: run dynident cycles {robot} {logs[0]} -o {output}"
        )
    read = logged.reader() if plan is None else _stage_reader(logged.reader(), plan)
    # A model from positions alone is judged by logs with efforts.
    judging = replace(logged, effort=None).reader() if logged.effort == "none" else read
    with progress(2 * len(logs) + 2 * len(validate or []) + 3, quiet) as step:
        step("reading the robot")
        described.robot(robot)  # what is wrong with it is said before long logs are read
        runs: list[di.Log] = []
        others: list[di.Log] = []
        for paths, found, reader in ((logs, runs, read), (validate or [], others, judging)):
            for path in paths:
                step(f"reading {path.name}")
                found.append(reader(path))
        if plan is None:
            _hint_at_plans(logs, runs)
        mechanism = described.robot_of_log(robot, runs[0])
        blind = any(run.effort_kind == "none" for run in runs)
        solver = estimator_of(estimator, recovery, told, looped.closed(mechanism, runs, blind), looped.period)
        base = None
        if order is not None or rank_tolerance != RANK_TOLERANCE:
            base = di.base_parameters(match(mechanism, runs[0]).mechanism, column_order(order), tolerance=rank_tolerance)
        done = di.identify(
            mechanism,
            runs,
            others,
            laws=friction_laws(mechanism, friction),
            estimator=solver,
            data=without_efforts(mechanism, runs, solver, options) if blind else None,
            base=base,
            projection=projection_of(projection),
            essential=essential,
            contributing=contributing,
            progress=step,
            **options,
        )
        step("writing the results")
        if not robot.is_file():  # a robot of the library has no description to copy
            note(f"no description is written: '{robot}' is not a file; fit.json has the identified parameters")
        written = done.write(output, robot if robot.is_file() else None, described.search, described.arguments())
    if as_json:
        print_json(done.verdict.to_dict())
    elif quiet:  # the summary, which has them too, is not printed
        for text in doubts_of(done.fit):
            note(text)
    else:
        removed = "".join(f"{text}\n" for text in done.fit.removals)
        out.print(in_options(f"{removed}\n{done.summary()}" if removed else done.summary()))
        out.print(f"\nwritten: {', '.join(map(str, written))}")
        out.print(_next_step(robot, output, done.verdict, logged.effort))
    return NOT_OK if strict and not done.verdict.ok else 0


def _hint_at_plans(paths: list[Path], logs: list[di.Log]) -> None:
    """Say which logs are recordings of a plan."""
    for path, log in zip(paths, logs, strict=True):
        if "plan" in log.provenance or "reference" in log.provenance:
            from dynident.excitation.plan import plan_identity  # noqa: PLC0415 - rarely needed

            if named := plan_identity(log):
                note(
                    f"{path.name} is a recording of plan {named}; with --plan only the stages it names for training are fitted"
                )


def _stage_reader(read: Callable[[Path], di.Log], plan: Path) -> Callable[[Path], di.Log]:
    """Return a reader that keeps the part of a log that its plan names for training."""
    from dynident.excitation.plan import Plan, training_log  # noqa: PLC0415 - rarely needed

    file = plan / "plan.json" if plan.is_dir() else plan
    if not file.exists():
        raise DynidentError(f"plan '{plan}' does not exist; give the folder or plan.json that the log was recorded with")
    wanted = Plan.load(file)

    def cut(path: Path) -> di.Log:
        part = training_log(read(path), wanted)
        note(f"{path.name}: {part.t[0]:.1f} to {part.t[-1]:.1f} s are for training")
        return part

    return cut


def _next_step(robot: Path, output: Path, verdict: Any, effort: str | None) -> str:
    """Return what to do with the results: look at them, judge them or use them; a failed check says by itself what to do."""
    page, fit = output / "report.html", output / "fit.json"
    lines = [f"open the report: {page.resolve().as_uri()}"] if page.is_file() else []
    if not verdict.validated:
        options = "" if effort in (None, "none") else f" --effort {effort}"
        lines.append(
            "next: judge it on a log of another motion, with the same options for the log: "
            f"dynident validate {robot} {fit} OTHER_LOG{options}"
        )
    elif verdict.ok and robot.is_file():
        lines.append(
            "next: use it, friction and rotors included, in MuJoCo, Pinocchio, Gazebo or Drake: "
            f"dynident export {robot} {fit} --for mujoco -o model/"
        )
    return "\n".join(lines)


def _check_columns(order: str | None, rank_tolerance: float, friction: list[str] | None) -> None:
    """Refuse a choice of base columns where others are fitted."""
    check_tolerance(rank_tolerance)
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
