"""The commands, thin: each is one verb of the pipeline. Results go to standard output, progress and notes to standard error."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import click
import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

import dynident as di
from dynident.errors import DynidentError, DynidentWarning
from dynident.files import write_atomic
from dynident.mechanism.describe import description
from dynident.mechanism.files import read_robot, write_robot

NOT_OK = 3

app = typer.Typer(
    help="From a robot's description and its logs to a validated dynamic model.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
notes = Console(stderr=True, highlight=False, soft_wrap=True)
out = Console(highlight=False, soft_wrap=True)

Robot = Annotated[Path, typer.Argument(help="Robot description: URDF, xacro or MJCF file.", show_default=False)]
Sidecar = Annotated[Path | None, typer.Option(help="TOML file with actuators, couplings, loops and joint terms.")]
Effort = Annotated[
    str | None,
    typer.Option(help="What the effort channels are: joint_torque, joint_force, motor_torque, motor_current, voltage."),
]
Schema = Annotated[Path | None, typer.Option(help="TOML file that maps columns, units and drive gains of the logs.")]
Joints = Annotated[str | None, typer.Option(help="Joint names of the log's channels, separated by commas.")]
Gain = Annotated[str | None, typer.Option(help="Drive gains (Nm/A, N/V ...), one number or one per channel, by commas.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON on standard output.")]
Debug = Annotated[bool, typer.Option(help="Show the Python traceback of an internal error.", hidden=True)]


def run() -> int:
    """Run the command line on ``sys.argv``.

    Returns
    -------
    int
        Exit code.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("always", DynidentWarning)
        warnings.showwarning = _show_warning
        try:
            return int(app(standalone_mode=False) or 0)
        except click.ClickException as error:
            error.show()
            return error.exit_code
        except click.exceptions.Exit as error:
            return error.exit_code


def _show_warning(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, file: object = None, line: str | None = None
) -> None:
    """Tell a warning of ours in one line; others are for developers."""
    if issubclass(category, DynidentWarning):
        notes.print(f"note: {message}", style="yellow", markup=False)


@contextmanager
def _progress(quiet: bool) -> Iterator[Any]:
    """Yield a function that announces the next step; a bar on a terminal, nothing when quiet."""
    with Progress(
        TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), console=notes, disable=quiet, transient=True
    ) as bar:
        task = bar.add_task("starting", total=None)
        yield lambda text, done=None, total=None: bar.update(task, description=text, completed=done, total=total)


def _read_log(path: Path, effort: str | None, schema: Path | None, joints: str | None, gain: str | None) -> di.Log:
    try:
        gains = [float(g) for g in gain.split(",")] if gain else None
    except ValueError:
        raise DynidentError(f"--gain is '{gain}'; give numbers separated by commas") from None
    names = [name.strip() for name in joints.split(",")] if joints else None
    return di.Log.read(path, effort=effort, schema=schema, joints=names, gain=gains[0] if gains and len(gains) == 1 else gains)


@app.command()
def describe(
    robot: Robot,
    sidecar: Sidecar = None,
    terms: Annotated[str | None, typer.Option(help="Joint terms, by commas.")] = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> int:
    """Show what a robot is made of, whether its inertias are possible, and what torques can identify."""
    mechanism = _with_terms(read_robot(robot, sidecar), terms)
    data = description(mechanism)
    if not mechanism.loops and mechanism.dof:
        base = di.base_parameters(mechanism)
        data["base_parameters"] = {"rank": base.rank, "rank_gap": base.rank_gap, "expressions": list(base.expressions)}
        data["unidentifiable"] = list(base.unidentifiable)
    if as_json:
        out.print_json(json.dumps(data))
        return 0
    out.print(
        f"robot {mechanism.name}: {mechanism.dof} degrees of freedom, {len(mechanism.tree.bodies)} moving bodies", markup=False
    )
    table = Table("joint", "kind", "parent", "child", "lower", "upper", "follows")
    for joint in data["joints"]:
        table.add_row(*(str(joint[k]) for k in ("name", "kind", "parent", "child", "lower", "upper", "follows")))
    out.print(table)
    for sentence in data["consistency"]:
        out.print(sentence, markup=False)
    if "base_parameters" in data:
        out.print(
            f"{data['base_parameters']['rank']} base parameters (with {', '.join(mechanism.terms) or 'no joint terms'}):",
            markup=False,
        )
        for line in data["base_parameters"]["expressions"]:
            out.print("  " + line, markup=False)
        if data["unidentifiable"]:
            out.print(f"no torque ever shows: {', '.join(data['unidentifiable'])}", markup=False)
    elif mechanism.loops:
        out.print(
            f"loops: {', '.join(loop.name for loop in mechanism.loops)} (described, not computed by this version)", markup=False
        )
    return 0


def _with_terms(mechanism: di.Mechanism, terms: str | None) -> di.Mechanism:
    return mechanism if terms is None else mechanism.with_terms([t.strip() for t in terms.split(",") if t.strip()])


def _estimator(name: str, recovery: str) -> Any:
    known = {"wls": di.WLS, "ols": di.OLS}
    if name not in known:
        raise DynidentError(f"--estimator is '{name}'; it must be one of {', '.join(known)}")
    return known[name](recovery=recovery)


def _options(cutoff: str, decimation: str) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for label, text, kind in (("cutoff", cutoff, float), ("decimation", decimation, int)):
        if text != "auto":
            try:
                options[label] = kind(text)
            except ValueError:
                raise DynidentError(f"--{label} is '{text}'; give 'auto' or a number") from None
    return options


@app.command()
def identify(
    robot: Robot,
    logs: Annotated[list[Path], typer.Argument(help="Logs to fit, all of the same robot.", show_default=False)],
    effort: Effort = None,
    validate: Annotated[list[Path] | None, typer.Option(help="Held-out log; may be given several times.")] = None,
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for the results.")] = Path("dynident_out"),
    sidecar: Sidecar = None,
    schema: Schema = None,
    joints: Joints = None,
    gain: Gain = None,
    terms: Annotated[str | None, typer.Option(help="Joint terms by commas, e.g. ia,fv,fc,off or ia,fvp,fvn,fcp,fcn.")] = None,
    estimator: Annotated[str, typer.Option(help="wls or ols.")] = "wls",
    recovery: Annotated[
        str, typer.Option(help="Standard parameters: auto, physical (possible bodies), prior or minimum_norm.")
    ] = "auto",
    essential: Annotated[
        float | None, typer.Option(help="Keep essential parameters only, up to this ratio (10 is usual).")
    ] = None,
    cutoff: Annotated[str, typer.Option(help="Low-pass frequency in Hz, or auto.")] = "auto",
    decimation: Annotated[str, typer.Option(help="Factor of the parallel decimation, or auto.")] = "auto",
    strict: Annotated[bool, typer.Option(help="Exit with 3 when the verdict is not ok.")] = False,
    as_json: AsJson = False,
    quiet: Annotated[bool, typer.Option(help="No progress bar and no table.")] = False,
    debug: Debug = False,
) -> int:
    """Identify a robot from its logs: writes fit.json, the identified description, report.html and verdict.json."""
    from dynident.report import write_report  # noqa: PLC0415 - matplotlib
    from dynident.validate import judge  # noqa: PLC0415

    with _progress(quiet) as step:
        step("reading the robot")
        mechanism = _with_terms(read_robot(robot, sidecar), terms)
        evidence: di.Regression | None = None
        for i, path in enumerate(logs):
            step(f"reading and compressing {path.name}", i, len(logs))
            log = _read_log(path, effort, schema, joints, gain)
            base = evidence.base if evidence is not None else None
            found = di.Regression.from_log(mechanism, log, base, **_options(cutoff, decimation))
            evidence = found if evidence is None else evidence + found
        if evidence is None:
            raise DynidentError("no log is given; name at least one")
        step("estimating")
        solver = _estimator(estimator, _recovery(recovery))
        fit = di.essential_parameters(evidence, solver, essential) if essential is not None else solver.fit(evidence).result_
        training = [_read_log(path, effort, schema, joints, gain) for path in logs[:1]]
        scores = []
        for i, path in enumerate(validate or []):
            step(f"validating on {path.name}", i, len(validate or []))
            scores.append(fit.score(_read_log(path, effort, schema, joints, gain)))
        verdict = judge(fit, scores)
        step("writing the results")
        output.mkdir(parents=True, exist_ok=True)
        model = write_robot(robot, fit.mechanism, fit.standard, output / f"identified{_suffix(robot)}")
        write_atomic(output / "fit.json", fit.to_json())
        write_atomic(output / "verdict.json", verdict.to_json())
        report = write_report(
            output / "report.html", fit, scores, verdict, None if scores else fit.score(training[0], allow_training=True)
        )
    if as_json:
        out.print_json(verdict.to_json())
    elif not quiet:
        out.print(fit.summary(), markup=False)
        for score in scores:
            out.print("\n" + score.summary(), markup=False)
        out.print("\n" + verdict.summary(), markup=False)
        out.print(f"\nwritten: {output / 'fit.json'}, {model}, {report}, {output / 'verdict.json'}", markup=False)
    return NOT_OK if strict and not verdict.ok else 0


def _recovery(name: str) -> str:
    """Return the recovery rule; auto is physical when its solver is installed."""
    if name != "auto":
        return name
    try:
        import cvxpy  # noqa: F401, PLC0415 - only to know whether it is there
    except ImportError:
        notes.print(
            "note: standard parameters may be physically impossible: pip install 'dynident[physical]'",
            style="yellow",
            markup=False,
        )
        return "prior"
    return "physical"


def _suffix(robot: Path) -> str:
    return ".urdf" if robot.suffix in (".urdf", ".xacro") else robot.suffix or ".urdf"


def _load_fit(path: Path, mechanism: di.Mechanism) -> di.Fit:
    try:
        return di.Fit.from_json(path.read_text(encoding="utf-8"), mechanism)
    except (OSError, UnicodeDecodeError) as error:
        raise DynidentError(f"cannot read the fit '{path}': {getattr(error, 'strerror', None) or error}") from error


@app.command()
def validate(
    robot: Robot,
    fit: Annotated[Path, typer.Argument(help="fit.json written by identify.", show_default=False)],
    logs: Annotated[list[Path], typer.Argument(help="Held-out logs.", show_default=False)],
    effort: Effort = None,
    sidecar: Sidecar = None,
    schema: Schema = None,
    joints: Joints = None,
    gain: Gain = None,
    allow_training: Annotated[bool, typer.Option(help="Accept logs that were used for the fit.")] = False,
    strict: Annotated[bool, typer.Option(help="Exit with 3 when the verdict is not ok.")] = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> int:
    """Compare an identified model with logs it was not fitted to."""
    from dynident.validate import judge  # noqa: PLC0415

    model = _load_fit(fit, read_robot(robot, sidecar))
    scores = [model.score(_read_log(path, effort, schema, joints, gain), allow_training) for path in logs]
    verdict = judge(model, scores)
    if as_json:
        out.print_json(verdict.to_json())
    else:
        for score in scores:
            out.print(score.summary() + "\n", markup=False)
        out.print(verdict.summary(), markup=False)
    return NOT_OK if strict and not verdict.ok else 0


@app.command()
def export(
    robot: Robot,
    fit: Annotated[Path, typer.Argument(help="fit.json written by identify.", show_default=False)],
    output: Annotated[Path, typer.Option("-o", "--output", help="File to write.")],
    sidecar: Sidecar = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> int:
    """Write the identified parameters into a copy of the robot's URDF or MJCF, or as parameters (.json)."""
    model = _load_fit(fit, read_robot(robot, sidecar))
    if output.suffix == ".json":
        path = write_atomic(output, model.standard.to_json())
    else:
        path = write_robot(robot, model.mechanism, model.standard, output)
    impossible = [c.sentence for c in model.consistency() if not c.ok]
    for sentence in impossible:
        notes.print(f"note: {sentence}", style="yellow", markup=False)
    if as_json:
        out.print_json(json.dumps({"written": str(path), "impossible": impossible}))
    else:
        out.print(f"written: {path}", markup=False)
    return 0


@app.command()
def report(
    robot: Robot,
    fit: Annotated[Path, typer.Argument(help="fit.json written by identify.", show_default=False)],
    logs: Annotated[list[Path] | None, typer.Argument(help="Held-out logs to show.", show_default=False)] = None,
    output: Annotated[Path, typer.Option("-o", "--output", help="HTML file to write.")] = Path("report.html"),
    effort: Effort = None,
    sidecar: Sidecar = None,
    schema: Schema = None,
    joints: Joints = None,
    gain: Gain = None,
    allow_training: Annotated[bool, typer.Option(help="Accept logs that were used for the fit.")] = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> int:
    """Write the HTML report of a fit."""
    from dynident.report import write_report  # noqa: PLC0415 - matplotlib
    from dynident.validate import judge  # noqa: PLC0415

    model = _load_fit(fit, read_robot(robot, sidecar))
    scores = [model.score(_read_log(path, effort, schema, joints, gain), allow_training) for path in logs or []]
    verdict = judge(model, scores)
    path = write_report(output, model, scores, verdict)
    if as_json:
        out.print_json(json.dumps({"written": str(path), "verdict": json.loads(verdict.to_json())}))
    else:
        out.print(f"written: {path}", markup=False)
    return 0
