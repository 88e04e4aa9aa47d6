"""The command identify."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
from cyclopts import Parameter

import dynident as di
from dynident.cli.consoles import note, out, print_json, print_next
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
from dynident.cli.groups import COLUMNS, OUTPUT, RARE_LOGS
from dynident.cli.options import (
    AS_LOGGED,
    AS_WRITTEN,
    NOT_OK,
    RANK_TOLERANCE,
    Accept,
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
    typed,
    understood,
)
from dynident.cli.progress import progress
from dynident.cli.robots import KnownRobot, find_robot, is_known
from dynident.cli.words import COMMAND, in_options
from dynident.errors import DynidentError
from dynident.signals.matching import match

FOLLOWS = 0.5  # largest distance of a recording from its plan, as a share of the spread of the plan's positions


def identify(
    robot: Robot,
    logs: list[Path],
    /,
    *,
    logged: LogOptions = AS_LOGGED,
    validate: list[Path] | None = None,
    hold_out: str = "1/3",
    refit: Annotated[bool, Parameter(group=COLUMNS)] = False,
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
    table: Annotated[bool, Parameter(group=OUTPUT)] = False,
    accept: Accept = None,
    strict: Strict = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> int:
    """Identify a robot from its logs: writes fit.json, the identified description, report.html and verdict.json.

    Example: dynident identify robot.urdf run.csv --effort joint_torque -o out/

    Parameters
    ----------
    logs
        Logs to fit, all of the same robot.
    validate
        Log to judge the model on, not fitted; several times.
    hold_out
        Share to hold out where no log or stage of a plan validates; 0 for none.
    refit
        Fit once more to all data after validation; the verdict stays that of the first fit.
    output
        Folder for the results.
    contributing
        Drop parameters that make less than this share of every joint's torque (0.01 is usual); by wls.
    plan
        Plan that the logs are recordings of, where they do not say it themselves.
    table
        Print all base parameters and the errors per joint.
    """
    told, options = known.knowledge(described.sidecar), filtered.options()
    if (essential, contributing) != (None, None) and estimator == "map":
        estimator = "wls"
    check_estimator(estimator, recovery, told)
    looped.check(estimator)
    _check_columns(order, rank_tolerance, friction)
    _check_linear(estimator, friction, essential, contributing)
    if is_known(robot):
        linear = estimator not in ("map", "wls", "ols") or (essential, contributing, order) != (None, None, None)
        friction, recovery = _as_known(find_robot(str(robot)), friction, recovery, linear or rank_tolerance != RANK_TOLERANCE)
    check_output(output, folder=True)
    share = _share(hold_out)
    read = logged.reader()
    # A model from positions alone is judged by logs with efforts.
    judging = replace(logged, effort=None).reader() if logged.effort == "none" else read
    linear = estimator in ("map", "wls", "ols") and looped.loop is None and friction is None
    stream = logged.stream(logs[0]) if linear and len(logs) == 1 and plan is None and not refit else None
    with progress((2 if stream is None else stream.pieces) * len(logs) + 2 * len(validate or []) + 3, quiet) as step:
        step("reading the robot")
        mechanism = described.robot(robot)  # its errors are reported before long logs are read
        if plan is not None:
            read, judging = (_plan_reader(reader, plan, mechanism) for reader in (read, judging))
        runs: list[di.Log] = []
        others: list[di.Log] = []
        for paths, found, reader in ((logs if stream is None else [], runs, read), (validate or [], others, judging)):
            for path in paths:
                step(f"reading {path.name}")
                found.append(reader(path))
        if stream is not None:
            runs = [next(iter(stream))]
            understood(logs[0], runs[0])
        mechanism = described.robot_of_log(robot, runs[0], mechanism)
        blind = any(run.effort_kind == "none" for run in runs)
        solver = estimator_of(estimator, recovery, told, looped.closed(mechanism, runs, blind), looped.period)
        base = None
        if order is not None or rank_tolerance != RANK_TOLERANCE:
            base = di.base_parameters(match(mechanism, runs[0]).mechanism, column_order(order), tolerance=rank_tolerance)
        done = di.identify(
            mechanism,
            runs if stream is None else stream,
            others or share,
            refit=refit,
            laws=friction_laws(mechanism, friction),
            estimator=solver,
            data=without_efforts(mechanism, runs, solver, options) if blind else None,
            base=base,
            projection=projection_of(projection),
            essential=essential,
            contributing=contributing,
            accept=accept or (),
            progress=step,
            **options,
        )
        step("writing the results")
        source = robot if robot.is_file() else None
        written = done.write(output, source, described.search, described.arguments(), described.sidecar, COMMAND.get())
    for each in done.fit.notes:
        if each.kind == "channels_left_out":
            note(each.sentence)
    if as_json:
        print_json(done.verdict.to_dict())
    elif quiet:  # the summary, which has them too, is not printed
        for finding in done.verdict.findings:
            note(f"{finding.severity} ({finding.kind}): {finding.sentence}")
    else:
        _print_result(done, robot, table)
        out.print(f"\nFiles: {'  '.join(map(str, written))}")
        inspected = [str(logs[0]), "--robot", str(robot), *typed(described)]
        print_next(*_next_step(output / "fit.json", done, logged, inspected))
    return NOT_OK if strict and not done.verdict.ok else 0


def _print_result(done: di.report.Identification, robot: Path, table: bool) -> None:
    """Print the summary; with `table` all parameters and checks first, for known robots the parameters of their source last."""
    if table:
        parts = [*done.fit.removals, done.fit.summary(), *(score.summary() for score in done.scores if not score.training)]
        out.print(in_options("\n\n".join([*parts, done.verdict.summary()])) + "\n")
    out.print(in_options(done.summary()))
    if is_known(robot) and (of_source := find_robot(str(robot)).parameters) is not None:
        out.print(f"\n{of_source(done.fit)}")


def _as_known(robot: KnownRobot, friction: list[str] | None, recovery: str, linear: bool) -> tuple[list[str] | None, str]:
    """Return friction laws and recovery, by default those of the known robot, with a note."""
    if friction is None and robot.friction and not linear:
        friction = [f"{joint}={law}" for joint, law in robot.friction.items()]
        note(f"friction laws of the description: {', '.join(friction)}; --friction chooses others")
    if recovery == "auto" and not robot.possible:
        recovery = "prior"
        note(
            "the description has inconsistent bodies, so physical consistency is not enforced; --recovery physical enforces it"
        )
    return friction, recovery


def _share(text: str) -> float:
    """Return the share of --hold-out, a number or a fraction."""
    above, _, below = text.partition("/")
    try:
        share = float(above) / float(below or 1.0)
    except (ValueError, ZeroDivisionError):
        share = -1.0
    if not 0.0 <= share < 1.0:
        raise DynidentError(f"--hold-out is '{text}'; give a share from 0 to below 1, such as 1/3 or 0.33")
    return share


def _plan_reader(read: Callable[[Path], di.Log], plan: Path, robot: di.Mechanism) -> Callable[[Path], di.Log]:
    """Return a reader of recordings of a plan."""
    from dynident.excitation.plan import Plan, plan_identity, refer  # noqa: PLC0415 - rarely needed

    file = plan / "plan.json" if plan.is_dir() else plan
    if not file.exists():
        raise DynidentError(f"plan '{plan}' does not exist; give the folder or plan.json that the log was recorded with")
    wanted = Plan.load(file)
    if others := [name for name in wanted.coordinates if name not in robot.coordinate_names]:
        raise DynidentError(
            f"plan '{plan}' moves {', '.join(others)}, which robot '{robot.name}' does not have; give its own plan"
        )

    def recording(path: Path) -> di.Log:
        given = read(path)
        log = refer(given, wanted)
        shared = [name for name in wanted.coordinates if name in log.joints and plan_identity(given) is None]
        lasts = log.t - log.t[0] <= wanted.curve.duration
        q = wanted.curve((log.t - log.t[0])[lasts])[0]
        for name in shared:
            planned = q[:, wanted.coordinates.index(name)]
            off = log.position[lasts, log.joints.index(name)] - planned
            if not np.sqrt(np.mean(off**2)) <= FOLLOWS * max(float(np.std(planned)), 1e-3):
                raise DynidentError(
                    f"log '{log.name}' does not follow the plan '{plan}' ({name} is elsewhere); give its own plan"
                )
        return log

    return recording


def _next_step(fit: Path, done: di.report.Identification, logged: LogOptions, inspected: list[str]) -> list[str]:
    """Return the next command: judge the model, look for faults of the log, or use the model."""
    verdict, options = done.verdict, [] if logged.effort == "none" else typed(logged)
    if any(not check.ok and check.name != "new_motion" for check in verdict.checks):
        return ["inspect", *inspected, *options]
    if not verdict.validated:
        return ["validate", str(fit), "OTHER_LOG", *options]
    if done.robot.loops:
        return ["derive", str(fit), "--c", "-o", str(fit.parent / "controller")]
    return ["export", str(fit), "--for", "mujoco", "-o", str(fit.parent / "mujoco")]


def _check_columns(order: str | None, rank_tolerance: float, friction: list[str] | None) -> None:
    """Refuse a choice of base columns if the fit uses other columns."""
    check_tolerance(rank_tolerance)
    given = {"--order": order is not None, "--rank-tolerance": rank_tolerance != RANK_TOLERANCE}
    for option in (name for name, here in given.items() if here):
        if friction is not None:
            raise DynidentError(f"{option} applies to linear friction terms; omit it or --friction")


def _check_linear(estimator: str, friction: list[str] | None, essential: float | None, contributing: float | None) -> None:
    """Refuse contradictory options on columns: searched, dropped, or fitted row by row."""
    given = {"--friction": friction, "--essential": essential, "--contributing": contributing}
    options = [name for name, value in given.items() if value is not None]
    if options and estimator not in ("map", "wls", "ols"):
        raise DynidentError(f"{options[0]} works with the estimators map, wls and ols, not with '{estimator}'")
    if len(options) > 1:
        raise DynidentError(f"{options[0]} and {options[1]} exclude each other; omit one")
