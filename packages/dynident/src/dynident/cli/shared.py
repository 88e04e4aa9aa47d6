"""What the commands share: the application, options, reading of robots and logs."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
import typer.core

import dynident as di
from dynident.cli.consoles import note, out
from dynident.cli.robots import find_machine, find_robot, is_known
from dynident.cli.structure import COLUMNS, choices, has_legs, restructured, spoken, with_structure
from dynident.errors import DynidentError
from dynident.files import check_replaceable
from dynident.mechanism.files import read_robot, write_robot
from dynident.mechanism.sidecar import apply_sidecar
from dynident.plugins import check_versions, installed

USAGE, NOT_OK = 2, 3
# Recent typer carries its own copy of click, older ones import it: the base class is found from what both export.
UsageError: Any = typer.BadParameter.__bases__[0]

START, EXPERIMENTS, MODEL = "Start here", "Motions and experiments", "The model at work"
CONTROL, FILES, OTHERS = "Drives and control", "Files", "Others"
PANELS = (START, EXPERIMENTS, MODEL, CONTROL, FILES, OTHERS)
"""Panels of the list of commands, in their order."""


class _Wordless:
    """Help that names no Python types: typer shows <path> and <bool> beside arguments and --help."""

    def get_params(self, context: Any) -> Any:
        """Return the parameters, with nothing in the column of types where nobody gave a word for it."""
        found = super().get_params(context)  # type: ignore[misc]
        for parameter in found:
            if parameter.param_type_name == "argument":
                vars(parameter)["display_type_rich"] = lambda ctx: None
            else:
                parameter.metavar = parameter.metavar or " "
        return found


class _Command(_Wordless, typer.core.TyperCommand):
    """One verb."""


class _Group(_Wordless, typer.core.TyperGroup):
    """The verbs."""


class App(typer.Typer):
    """Commands in panels; those with a robot can hold its joints and free its base."""

    def __init__(self, **options: Any) -> None:
        super().__init__(cls=_Group, **options)

    def command(self, name: str | None = None, panel: str = OTHERS, **options: Any) -> Callable[[Any], Any]:
        """Register a command, in a panel of the list of commands."""

        def register(function: Any) -> Any:
            has_robot = bool({"robot", "machine"} & set(inspect.signature(function).parameters))
            outer = super(App, self).command(name, cls=_Command, rich_help_panel=panel, **options)
            outer(with_structure(spoken(function)) if has_robot else spoken(function))
            return function

        return register


def command_name(info: Any) -> str:
    """Return the name of a registered command."""
    return str(info.name or info.callback.__name__.replace("_", "-"))


app = App(
    help="From a robot's description and its logs to a validated dynamic model.",
    epilog="Exit codes: 0 done; 1 bad input, told in one sentence; 2 wrong usage; 3 done, but the verdict is not ok (with "
    "--strict); 70 a bug in dynident; 130 interrupted.",
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)


Robot = Annotated[
    Path, typer.Argument(help="URDF, xacro, MJCF or SDF file, or the name of a known robot such as dualv.", show_default=False)
]
Sidecar = Annotated[Path | None, typer.Option(help="TOML file with actuators, couplings, loops and joint terms.")]
Search = Annotated[
    list[Path] | None, typer.Option(help="Folder outside the robot's own that it may read from; may be given several times.")
]
Arg = Annotated[list[str] | None, typer.Option(help="Value of an argument of a .xacro, as name:=value; several times.")]
Effort = Annotated[
    str | None,
    choices(
        "What the effort columns are; a file cannot tell, so it has no default. motor_...: before the gears; none: not logged.",
        *("joint_torque", "joint_force", "motor_torque", "motor_current", "voltage", "none"),
    ),
]
Schema = Annotated[Path | None, typer.Option(help="TOML file that maps columns, units and drive gains of the logs.")]
Joints = Annotated[str | None, typer.Option(help="Joint names of the log's channels, separated by commas.")]
Gain = Annotated[
    str | None,
    typer.Option(
        help="Drive gains [N m/A, N m/V], one number or one per channel, by commas: at the motor where the robot's gear ratios "
        "are known (transmissions, --sidecar), else at the joint, torque constant times gear ratio."
    ),
]
Delay = Annotated[
    str | None,
    typer.Option(help="Seconds by which efforts are later than positions, one number or one per channel."),
]
Topic = Annotated[
    list[str] | None,
    typer.Option(help="Topic of a ROS bag or MCAP file; several may be given, the first gives the clock."),
]
Episode = Annotated[
    str | None, typer.Option(help="Run of a table that holds several (LeRobot data sets), by its number or name.")
]
Unit = Annotated[
    list[str] | None,
    typer.Option(help="Unit of a quantity in the logs, e.g. position=deg or time=ms; several may be given."),
]
Counts = Annotated[
    str | None,
    typer.Option(help="Encoder counts per rad (or m), for positions in counts: one number or one per channel."),
]
LogRate = Annotated[
    float | None, typer.Option("--rate", help="Sampling rate [Hz] of logs whose time column is missing or too coarse.")
]
FitFile = Annotated[Path, typer.Argument(help="fit.json written by identify.", show_default=False)]
Order = Annotated[
    str | None,
    typer.Option(
        help="Parameters that should lead base parameters, by commas, most wanted first; symmetric: equal legs alike.",
        rich_help_panel=COLUMNS,  # another command has a byte order
    ),
]
Projection = Annotated[
    str, typer.Option(help="Robots with loops: gls (least variance), independent, or names of motors by commas.")
]
Terms = Annotated[
    list[str] | None,
    typer.Option(
        help="Joint terms by commas, e.g. ia,fv,fc,off or ia,fvp,fvn,fcp,fcn; '' for none; joint2=ia,fv,k for one joint. "
        "May be given several times."
    ),
]
FrictionLaws = Annotated[
    list[str] | None,
    typer.Option(
        help="Friction law to fit with the bodies: 'stribeck + viscous' for all joints, joint2=tanh+viscous for one, or auto, "
        "which chooses by held-out blocks. May be given several times."
    ),
]
Essential = Annotated[
    float | None,
    typer.Option(
        help="Drop parameters until relative deviations differ by this factor at most (10 is usual), while residuals do not "
        "grow; by wls."
    ),
]
Absent = Annotated[
    list[str] | None,
    typer.Option(help="Body that the fit knows apart and the robot did not carry, such as payload; several times."),
]
AllowTraining = Annotated[bool, typer.Option("--allow-training", help="Accept logs that were used for the fit.")]
Strict = Annotated[bool, typer.Option("--strict", help="Exit with 3 when the verdict is not ok.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar and no table.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON on standard output.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the Python traceback of an internal error.", hidden=True)]


@app.callback(invoke_without_command=True)
def _start(
    context: typer.Context, version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False
) -> None:
    if version:
        check_versions()
        out.print("\n".join(f"{package} {number}" for package, number in installed().items()))
        raise typer.Exit
    if context.invoked_subcommand is None:
        out.print(context.get_help())
        raise typer.Exit(USAGE)


def log_reader(
    effort: str | None,
    schema: Path | None,
    joints: str | None,
    gain: str | None,
    topic: list[str] | None = None,
    unit: list[str] | None = None,
    rate: float | None = None,
    episode: str | None = None,
    delay: str | None = None,
    counts: str | None = None,
) -> Callable[[Path], di.Log]:
    """Return a function that reads logs with the options of the command line and says once what it understood."""
    gains, delays = _numbers(gain, "--gain"), _numbers(delay, "--delay")
    per_unit = _numbers(counts, "--counts-per-unit")
    names = None if joints is None else [name.strip() for name in joints.split(",")]
    units: dict[str, object] = {}
    for entry in unit or []:
        quantity, equals, name = entry.partition("=")
        if not equals or not name.strip():
            raise DynidentError(f"--unit is '{entry}'; give a quantity and its unit, such as position=deg")
        units[quantity.strip()] = name.strip()
    said: set[Path] = set()

    def read(path: Path) -> di.Log:
        log = di.Log.read(
            path,
            effort=effort,
            schema=schema,
            joints=names,
            gain=gains,
            delay=delays,
            topic=topic or None,
            episode=episode,
            units=units or None,
            counts_per_unit=per_unit,
            rate=rate,
        )
        understood = log.provenance.get("conversions")
        # A file that dynident wrote carries the notes of the file it came from; those were told then.
        if path not in said and isinstance(understood, list) and understood and path.name in str(log.provenance.get("files")):
            note(f"{path.name}: {'; '.join(map(str, understood))}")
        said.add(path)
        return log

    return read


def _numbers(text: str | None, option: str) -> float | list[float] | None:
    """Return the numbers of an option: one alone, several as a list."""
    try:
        found = None if text is None else [float(x) for x in text.split(",")]
    except ValueError:
        raise DynidentError(f"{option} is '{text}'; give numbers separated by commas") from None
    return found[0] if found is not None and len(found) == 1 else found


@dataclass(frozen=True)
class LogOptions:
    """How the logs of a command are read; a parameter of this kind stands for one option per field."""

    schema: Schema = None
    joints: Joints = None
    gain: Gain = None
    delay: Delay = None
    topic: Topic = None
    episode: Episode = None
    unit: Unit = None
    counts_per_unit: Counts = None
    log_rate: LogRate = None

    def reader(self, effort: str | None) -> Callable[[Path], di.Log]:
        """Return a function that reads logs with these options and says once what it understood."""
        options = (self.schema, self.joints, self.gain, self.topic, self.unit, self.log_rate, self.episode, self.delay)
        return log_reader(effort, *options, self.counts_per_unit)


def stage_reader(read: Callable[[Path], di.Log], plan: Path | None) -> Callable[[Path], di.Log]:
    """Return a reader that keeps the part of a log that its plan names for training; without a plan it hints at it."""
    if plan is None:
        told: set[str] = set()

        def asking(path: Path) -> di.Log:
            log = read(path)
            named = log.provenance.get("plan")
            source = log.provenance.get("reference")
            named = named if named is not None or not isinstance(source, dict) else source.get("plan")
            if named and str(path) not in told:
                told.add(str(path))
                note(
                    f"{path.name} is a recording of plan {named}; with --plan only the stages it names for training are fitted"
                )
            return log

        return asking
    from dynident.excitation.plan import Plan, stage_logs  # noqa: PLC0415 - rarely needed

    file = plan / "plan.json" if plan.is_dir() else plan
    if not file.exists():
        raise DynidentError(f"plan '{plan}' does not exist; give the folder or plan.json that the log was recorded with")
    wanted = Plan.load(file)
    names = [stage.name for stage in wanted.stages if stage.purpose == "training"]
    if not names:
        raise DynidentError(f"plan '{plan}' has no stage for training; it has {', '.join(s.purpose for s in wanted.stages)}")

    def cut(path: Path) -> di.Log:
        parts = stage_logs(read(path), wanted)
        found = [log for name in names for log in parts.get(name, [])]
        if not found:
            raise DynidentError(f"log '{path}' holds no whole stage for training of plan '{plan}'; give the whole recording")
        first, last = found[0], found[-1]
        if len(found) == 1:
            return first
        note(f"{path.name}: stages {', '.join(names)}, {first.t[0]:.1f} to {last.t[-1]:.1f} s")
        return read(path).between(float(first.t[0]), float(last.t[-1]))

    return cut


def with_terms(mechanism: di.Mechanism, terms: list[str] | None) -> di.Mechanism:
    """Return the robot with the joint terms of the command line: of all joints, or joint=terms for one."""
    for text in terms or []:
        joint, equals, own = text.rpartition("=")
        symbols = [t.strip() for t in own.split(",") if t.strip()]
        mechanism = mechanism.with_terms({joint.strip(): symbols} if equals else symbols)
    return mechanism


def friction_laws(mechanism: di.Mechanism, laws: list[str] | None) -> Any:
    """Return the friction laws to fit, of the command line and of the sidecar; None where there are none."""
    found: dict[str, Any] = {name: friction.law for name, friction in mechanism.friction.items()}
    for text in laws or []:
        joint, equals, law = text.partition("=")
        if not equals or "(" in joint:  # an option of a law, as in stribeck(exponent=1), names no joint
            if len(laws or []) > 1:
                raise DynidentError(f"--friction is '{text}'; with several give joint=law for each")
            return text.strip()
        found[joint.strip()] = law.strip()
    return found or None


def column_order(text: str | None) -> list[str] | str | None:
    """Return the order of --order: symmetric, or names of parameters."""
    return text if text in (None, "symmetric") else [name.strip() for name in text.split(",")]


def projection_of(text: str) -> str | tuple[str, ...]:
    """Return the projection of --projection: a word, or names of motors."""
    return text if text in ("gls", "independent") else tuple(name.strip() for name in text.split(","))


def three_numbers(text: str | None, option: str) -> list[float]:
    """Return three numbers of an option, zeros when it was not given."""
    if text is None:
        return [0.0, 0.0, 0.0]
    try:
        values = [float(x) for x in text.split(",")]
    except ValueError:
        values = []
    if len(values) != 3:
        raise DynidentError(f"{option} is '{text}'; give three numbers separated by commas")
    return values


def check_output(path: Path, folder: bool = False) -> None:
    """Refuse an output that cannot be written, before any long work."""
    if path.exists() and path.is_dir() != folder:
        raise DynidentError(f"output '{path}' is a {'file; give a folder' if folder else 'folder; give a file name'}")
    if not folder:
        check_replaceable(path)
    above = next((p for p in (path, *path.absolute().parents) if p.is_dir()), Path())
    if not os.access(above, os.W_OK | os.X_OK):
        raise DynidentError(f"output '{path}' cannot be written: folder '{above}' is read-only; give another place")


def xacro_arguments(texts: list[str] | None) -> dict[str, str]:
    """Return the arguments given as name:=value."""
    pairs = [text.partition(":=") for text in texts or []]
    for text, (name, sign, _) in zip(texts or [], pairs, strict=True):
        if not (name and sign):
            raise DynidentError(f"--arg is '{text}'; give name:=value")
    return {name: value for name, _, value in pairs}


def robot_of(
    robot: Path,
    sidecar: Path | None = None,
    search: list[Path] | None = None,
    arg: list[str] | None = None,
) -> di.Mechanism:
    """Return the robot of a file, or the known one of that name."""
    for folder in search or ():
        if not folder.is_dir():
            raise DynidentError(f"--search is '{folder}', which is no folder; give one that holds packages of robots")
    if not robot.suffix and (is_known(robot) or not robot.exists()):  # a folder of results may have the name of its robot
        mechanism = find_robot(str(robot)).mechanism()
        return restructured(mechanism if sidecar is None else apply_sidecar(mechanism, sidecar))
    mechanism = restructured(read_robot(robot, sidecar, search or (), xacro_arguments(arg)))
    if has_legs(mechanism):
        note(f"the base '{mechanism.root}' of robot '{mechanism.name}' is held still; --floating frees it")
    return mechanism


@dataclass(frozen=True)
class RobotOptions:
    """How the robot of a command is read; a parameter of this kind stands for one option per field."""

    sidecar: Sidecar = None
    search: Search = None
    arg: Arg = None

    def robot(self, file: Path, terms: list[str] | None = None) -> di.Mechanism:
        """Return the robot of a file, or the known one of that name, with joint terms of the command line."""
        return with_terms(robot_of(file, self.sidecar, self.search, self.arg), terms)

    def robot_of_log(self, file: Path, log: di.Log, terms: list[str] | None = None) -> di.Mechanism:
        """Return the robot; a known one with motors and gears of its machine for logs of their positions."""
        mechanism = self.robot(file, terms)
        if log.position_side != "motor" or self.sidecar is not None or not is_known(file):
            return mechanism
        driven = find_machine(str(file)).model
        own, ready = ({actuator.name: actuator.ratio for actuator in x.actuators} for x in (mechanism, driven))
        return with_terms(driven, terms) if own != ready and set(log.joints) <= set(ready) else mechanism

    def write(self, file: Path, fit: di.Fit, path: Path) -> Path:
        """Write a copy of the robot's description with the parameters of a fit."""
        from dynident.export.robot import remark  # noqa: PLC0415 - few commands write a robot

        arguments = xacro_arguments(self.arg)
        write_robot(file, fit.mechanism, fit.standard, path, self.search or (), arguments)
        return remark(path, fit.provenance())


AS_WRITTEN, AS_LOGGED = RobotOptions(), LogOptions()
