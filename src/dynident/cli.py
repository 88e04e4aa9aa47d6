"""The commands, thin: each is one verb of the pipeline. Results go to standard output, progress and notes to standard error."""

from __future__ import annotations

import json
import os
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

import dynident as di
from dynident.errors import DescriptionError, DynidentError, DynidentWarning
from dynident.files import to_json, write_atomic
from dynident.mechanism.describe import description, description_text
from dynident.mechanism.files import is_mjcf, read_robot, write_robot

USAGE, NOT_OK = 2, 3
# Recent typer carries its own copy of click, older ones import it: the base class is found from what both export.
UsageError: Any = typer.BadParameter.__bases__[0]

app = typer.Typer(
    help="From a robot's description and its logs to a validated dynamic model.",
    epilog="Exit codes: 0 done; 1 bad input, told in one sentence; 2 wrong usage; 3 done, but the verdict is not ok (with "
    "--strict); 70 a bug in dynident; 130 interrupted.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
# Names in a robot are data: no markup and no emoji codes are read in them.
notes = Console(stderr=True, highlight=False, soft_wrap=True, markup=False, emoji=False)
out = Console(highlight=False, soft_wrap=True, markup=False, emoji=False)

Robot = Annotated[Path, typer.Argument(help="Robot description: URDF, xacro or MJCF file.", show_default=False)]
Sidecar = Annotated[Path | None, typer.Option(help="TOML file with actuators, couplings, loops and joint terms.")]
Effort = Annotated[
    str | None,
    typer.Option(help="What the effort channels are: joint_torque, joint_force, motor_torque, motor_current, voltage."),
]
Schema = Annotated[Path | None, typer.Option(help="TOML file that maps columns, units and drive gains of the logs.")]
Joints = Annotated[str | None, typer.Option(help="Joint names of the log's channels, separated by commas.")]
Gain = Annotated[str | None, typer.Option(help="Drive gains (Nm/A, N/V ...), one number or one per channel, by commas.")]
FitFile = Annotated[Path, typer.Argument(help="fit.json written by identify.", show_default=False)]
Terms = Annotated[str | None, typer.Option(help="Joint terms by commas, e.g. ia,fv,fc,off or ia,fvp,fvn,fcp,fcn; '' for none.")]
AllowTraining = Annotated[bool, typer.Option("--allow-training", help="Accept logs that were used for the fit.")]
Strict = Annotated[bool, typer.Option("--strict", help="Exit with 3 when the verdict is not ok.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar and no table.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON on standard output.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the Python traceback of an internal error.", hidden=True)]


def run(args: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    args : sequence of str, optional
        Arguments; ``sys.argv[1:]`` when omitted.

    Returns
    -------
    int
        Exit code.
    """
    told: set[str] = set()

    def show(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
        """Tell a warning of ours once, in one line; others are for developers."""
        text = " ".join(str(message).split())
        if issubclass(category, DynidentWarning) and text not in told:
            told.add(text)
            _note(text)

    with warnings.catch_warnings():
        warnings.simplefilter("always", DynidentWarning)
        warnings.showwarning = show
        try:
            return int(app(args, standalone_mode=False, prog_name="dynident") or 0)
        except UsageError as error:
            command = error.ctx.command_path if error.ctx else "dynident"
            problem = " ".join(error.format_message().split()).rstrip(".")
            typer.echo(f"dynident: {problem}; see '{command} --help'", err=True)
            return USAGE
        except typer.Abort:
            raise KeyboardInterrupt from None


def _note(text: str) -> None:
    notes.print(f"note: {text}", style="yellow")


def _print_json(data: Any) -> None:
    typer.echo(data if isinstance(data, str) else to_json(data))


@contextmanager
def _progress(steps: int, quiet: bool = False) -> Iterator[Callable[[str], None]]:
    """Yield a function that announces the next of `steps`; a bar on a terminal, nothing elsewhere."""
    hidden = quiet or not notes.is_terminal or notes.is_dumb_terminal
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=notes, disable=hidden, transient=True) as bar:
        task = bar.add_task("starting", total=steps, completed=-1)
        yield lambda text: bar.update(task, description=text, advance=1)


@app.callback(invoke_without_command=True)
def _start(
    context: typer.Context, version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False
) -> None:
    if version:
        out.print(f"dynident {di.__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        out.print(context.get_help())
        raise typer.Exit(USAGE)


def _read_log(path: Path, effort: str | None, schema: Path | None, joints: str | None, gain: str | None) -> di.Log:
    try:
        gains = None if gain is None else [float(g) for g in gain.split(",")]
    except ValueError:
        raise DynidentError(f"--gain is '{gain}'; give numbers separated by commas") from None
    names = None if joints is None else [name.strip() for name in joints.split(",")]
    return di.Log.read(path, effort=effort, schema=schema, joints=names, gain=gains[0] if gains and len(gains) == 1 else gains)


def _with_terms(mechanism: di.Mechanism, terms: str | None) -> di.Mechanism:
    return mechanism if terms is None else mechanism.with_terms([t.strip() for t in terms.split(",") if t.strip()])


def _check_output(path: Path, folder: bool = False) -> None:
    """Refuse an output that cannot be written, before any long work."""
    if path.exists() and path.is_dir() != folder:
        raise DynidentError(f"output '{path}' is a {'file; give a folder' if folder else 'folder; give a file name'}")
    above = next((p for p in (path, *path.absolute().parents) if p.is_dir()), Path())
    if not os.access(above, os.W_OK | os.X_OK):
        raise DynidentError(f"output '{path}' cannot be written: folder '{above}' is read-only; give another place")


@app.command(epilog="Example: dynident describe robot.urdf --sidecar drives.toml --json")
def describe(robot: Robot, sidecar: Sidecar = None, terms: Terms = None, as_json: AsJson = False, debug: Debug = False) -> int:
    """Show what a robot is made of, whether its inertias are possible, and what torques can identify."""
    mechanism = _with_terms(read_robot(robot, sidecar), terms)
    data = description(mechanism)
    if mechanism.dof:
        base = di.base_parameters(mechanism)
        data["base_parameters"] = {"rank": base.rank, "rank_gap": base.rank_gap, "expressions": list(base.expressions)}
        data["unidentifiable"] = list(base.unidentifiable)
    if as_json:
        _print_json(data)
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
            _note("standard parameters may be physically impossible: pip install 'dynident[physical]'")
    return known[name](recovery=recovery)


def _options(cutoff: str, decimation: str) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for label, text, kind in (("cutoff", cutoff, float), ("decimation", decimation, int)):
        if text != "auto":
            try:
                options[label] = kind(text)
            except ValueError:
                raise DynidentError(f"--{label} is '{text}'; give 'auto' or a {'whole ' * (kind is int)}number") from None
    return options


@app.command(epilog="Example: dynident identify robot.urdf run.csv --effort joint_torque --validate other.csv -o out/")
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
    strict: Strict = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> int:
    """Identify a robot from its logs: writes fit.json, the identified description, report.html and verdict.json."""
    from dynident.report import write_report  # noqa: PLC0415 - matplotlib
    from dynident.validate import judge  # noqa: PLC0415

    solver, options = _estimator(estimator, recovery), _options(cutoff, decimation)
    _check_output(output, folder=True)
    with _progress(2 * len(logs) + len(validate or []) + 3, quiet) as step:
        step("reading the robot")
        mechanism = _with_terms(read_robot(robot, sidecar), terms)
        evidence: di.Regression | None = None
        for path in logs:
            step(f"reading and compressing {path.name}")
            log = _read_log(path, effort, schema, joints, gain)
            base = evidence.base if evidence is not None else None
            found = di.Regression.from_log(mechanism, log, base, **options)
            evidence = found if evidence is None else evidence + found
        assert evidence is not None, "typer asks for one log at least"
        step("estimating")
        fit = di.essential_parameters(evidence, solver, essential) if essential is not None else solver.fit(evidence).result_
        scores = []
        for path in validate or []:
            step(f"validating on {path.name}")
            scores.append(fit.score(_read_log(path, effort, schema, joints, gain)))
        verdict = judge(fit, scores)
        shown = list(scores)
        for path in logs:  # read again rather than kept: a fit may have many long logs
            step(f"comparing with {path.name}")
            shown.append(fit.score(_read_log(path, effort, schema, joints, gain), allow_training=True))
        step("writing the results")
        with tempfile.TemporaryDirectory() as folder:  # all results or none: a failure here leaves what was there
            stage = Path(folder)
            write_atomic(stage / "fit.json", fit.to_json())
            _write_model(robot, fit, stage, output)
            write_report(stage / "report.html", fit, shown, verdict)
            write_atomic(stage / "verdict.json", verdict.to_json())
            written = [write_atomic(output / file.name, file.read_bytes()) for file in sorted(stage.iterdir())]
    if as_json:
        _print_json(verdict.to_json())
    elif not quiet:
        out.print("\n\n".join([fit.summary(), *(score.summary() for score in scores), verdict.summary()]))
        out.print(f"\nwritten: {', '.join(map(str, written))}")
    return NOT_OK if strict and not verdict.ok else 0


def _write_model(robot: Path, fit: di.Fit, stage: Path, output: Path) -> None:
    """Write the identified description; where the file's format cannot hold the parameters, say so and keep the fit."""
    name = f"identified{robot.suffix if is_mjcf(robot) else '.urdf'}"
    try:
        write_robot(robot, fit.mechanism, fit.standard, stage / name)
    except DescriptionError as error:
        stale = "; the one in the folder is of an earlier fit" if (output / name).exists() else ""
        _note(f"{name} is not written: {error}{stale}")


def _load_fit(path: Path, mechanism: di.Mechanism) -> di.Fit:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise DynidentError(f"cannot read the fit '{path}': {getattr(error, 'strerror', None) or error}") from error
    try:
        return di.Fit.from_json(text, mechanism)
    except DynidentError as error:
        raise DynidentError(f"fit '{path}': {error}") from error


@app.command(epilog="Example: dynident validate robot.urdf out/fit.json other.csv --effort joint_torque --strict")
def validate(
    robot: Robot,
    fit: FitFile,
    logs: Annotated[list[Path], typer.Argument(help="Held-out logs.", show_default=False)],
    effort: Effort = None,
    sidecar: Sidecar = None,
    schema: Schema = None,
    joints: Joints = None,
    gain: Gain = None,
    allow_training: AllowTraining = False,
    strict: Strict = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> int:
    """Compare an identified model with logs it was not fitted to."""
    from dynident.validate import judge  # noqa: PLC0415

    with _progress(len(logs) + 1) as step:
        step("reading the fit")
        model = _load_fit(fit, read_robot(robot, sidecar))
        scores = []
        for path in logs:
            step(f"validating on {path.name}")
            scores.append(model.score(_read_log(path, effort, schema, joints, gain), allow_training))
    verdict = judge(model, scores)
    if as_json:
        _print_json(verdict.to_json())
    else:
        out.print("\n\n".join([*(score.summary() for score in scores), verdict.summary()]))
    return NOT_OK if strict and not verdict.ok else 0


@app.command(epilog="Example: dynident export robot.urdf out/fit.json -o identified.urdf")
def export(
    robot: Robot,
    fit: FitFile,
    output: Annotated[Path, typer.Option("-o", "--output", help="File to write: like the robot's, or .json.")],
    sidecar: Sidecar = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> int:
    """Write the identified parameters into a copy of the robot's URDF or MJCF, or as parameters (.json)."""
    endings = (".xml", ".mjcf", ".json") if is_mjcf(robot) else (".urdf", ".xml", ".json")
    if output.suffix.lower() not in endings:
        raise DynidentError(f"output '{output}' has the ending '{output.suffix}'; for this robot it is {', '.join(endings)}")
    _check_output(output)
    model = _load_fit(fit, read_robot(robot, sidecar))
    if output.suffix.lower() == ".json":
        path = write_atomic(output, model.standard.to_json())
    else:
        path = write_robot(robot, model.mechanism, model.standard, output)
    impossible = [c.sentence for c in model.consistency() if not c.ok]
    for sentence in impossible:
        _note(sentence)
    if as_json:
        _print_json({"written": str(path), "impossible": impossible})
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
    schema: Schema = None,
    joints: Joints = None,
    gain: Gain = None,
    allow_training: AllowTraining = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> int:
    """Write the HTML report of a fit."""
    from dynident.report import write_report  # noqa: PLC0415 - matplotlib
    from dynident.validate import judge  # noqa: PLC0415

    _check_output(output)
    with _progress(len(logs or []) + 2) as step:
        step("reading the fit")
        model = _load_fit(fit, read_robot(robot, sidecar))
        scores = []
        for path in logs or []:
            step(f"comparing with {path.name}")
            scores.append(model.score(_read_log(path, effort, schema, joints, gain), allow_training))
        step("drawing the report")
        verdict = judge(model, scores)
        written = write_report(output, model, scores, verdict)
    if as_json:
        _print_json({"written": str(written), "verdict": json.loads(verdict.to_json())})
    else:
        out.print(f"written: {written}")
    return 0
