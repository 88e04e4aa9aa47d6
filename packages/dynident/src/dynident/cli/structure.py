"""Options that every command with a robot has: which joints are held, how it is mounted, and whether the base is free."""

from __future__ import annotations

import errno
import functools
import inspect
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from copy import copy
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer
from typer.models import OptionInfo, ParameterInfo

import dynident as di
from dynident.errors import DynidentError
from dynident.files import shortened

ROBOT_OPTIONS = "Robot"  # panel of the help
LOG_OPTIONS, OUTPUT = "Logs", "Output"
FILTER, KNOWN, LOOP, COLUMNS = "Filter", "What else is known", "Periodic motions and closed loops", "Base parameters"
LOGGED = ("effort", "schema", "joints", "gain", "delay", "topic", "episode", "unit", "counts_per_unit", "log_rate")
GROUPS = {
    **dict.fromkeys(("sidecar", "search", "arg", "terms"), ROBOT_OPTIONS),
    **dict.fromkeys(LOGGED, LOG_OPTIONS),
    **dict.fromkeys(("cutoff", "filter_order", "causal", "decimation", "standstill"), FILTER),
    **dict.fromkeys(("rank_tolerance", "projection", "essential", "contributing"), COLUMNS),
    **dict.fromkeys(("output", "as_json", "quiet", "strict", "debug"), OUTPUT),
}
SMALLEST, LARGEST = 1e-100, 1e100  # size of a number that an option can mean: squares and quotients stay finite
#: What stands for a value in the help.
METAVARS: dict[Any, str] = {Path: "PATH", str: "TEXT", float: "NUMBER", int: "N", bool: " "}

Lock = Annotated[
    list[str] | None,
    typer.Option(
        help="Hold a joint still, as name or name=position [rad, m]; several times.",
        metavar="TEXT",
        rich_help_panel=ROBOT_OPTIONS,
    ),
]
Keep = Annotated[
    str | None,
    typer.Option(help="Hold all joints but these, by commas, at zero.", metavar="TEXT", rich_help_panel=ROBOT_OPTIONS),
]
Floating = Annotated[
    bool,
    typer.Option(
        "--floating", help="The base is free to move (legged, flying robots).", metavar=" ", rich_help_panel=ROBOT_OPTIONS
    ),
]
Gravity = Annotated[
    str | None,
    typer.Option(
        help="Gravity x,y,z in the root frame [m/s^2], for a robot on a ceiling, a wall or a slope, as --gravity=0,0,9.81.",
        metavar="TEXT",
        rich_help_panel=ROBOT_OPTIONS,
    ),
]


@dataclass(frozen=True)
class Structure:
    """What the options say."""

    lock: tuple[str, ...] = ()
    keep: str | None = None
    floating: bool = False
    gravity: str | None = None


_NOTHING = Structure()
_CHOSEN: ContextVar[Structure] = ContextVar("structure")


def choices(help_: str, *names: str) -> Any:
    """Return an option that takes one of some names: they stand in the help, and shells complete them.

    Blanks between them let the help break the line there, and not within a name.
    """
    return typer.Option(help=help_, metavar=f"[{' | '.join(names)}]", autocompletion=lambda: list(names))


def with_structure(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return a command that has the options too; `restructured` applies them while it runs."""
    signature = inspect.signature(command)
    own = list(signature.parameters.values())
    added = {"lock": Lock, "keep": Keep, "floating": Floating, "gravity": Gravity}
    more = [
        inspect.Parameter(
            name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=False if name == "floating" else None, annotation=kind
        )
        for name, kind in added.items()
    ]

    @functools.wraps(command)
    def run(*args: Any, lock: list[str] | None, keep: str | None, floating: bool, gravity: str | None, **options: Any) -> Any:
        token = _CHOSEN.set(Structure(tuple(lock or ()), keep, floating, gravity))
        try:
            return command(*args, **options)
        finally:
            _CHOSEN.reset(token)

    return shaped(run, [*own, *more])


def shaped(function: Callable[..., Any], parameters: Sequence[inspect.Parameter]) -> Callable[..., Any]:
    """Give a wrapper the parameters that typer shall see."""
    vars(function).pop("__wrapped__", None)  # typer would look at the annotations of what is inside
    function.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    function.__annotations__ = {p.name: p.annotation for p in parameters}
    return function


def spoken(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return a command whose help names what an option takes: PATH, NUMBER, TEXT, or its choices.

    A parameter that is a group of options (a dataclass) becomes one option per field, in its place.
    """
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: kind for name, kind in hints.items() if is_dataclass(kind)}
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(command).parameters.values():
        kind = groups.get(parameter.name)
        if kind is None:
            parameters.append(parameter.replace(annotation=_shown(parameter.name, hints[parameter.name])))
            continue
        inner = get_type_hints(kind, include_extras=True)
        parameters += [
            parameter.replace(name=own.name, default=own.default, annotation=_shown(own.name, inner[own.name]))
            for own in fields(kind)
        ]

    @functools.wraps(command)
    def run(*args: Any, **options: Any) -> Any:
        for parameter in parameters:
            _check_value(parameter, options.get(parameter.name))
        for name, kind in groups.items():
            options[name] = kind(**{own.name: options.pop(own.name) for own in fields(kind)})
        return command(*args, **options)

    return shaped(run, parameters)


def _check_value(parameter: inspect.Parameter, value: object) -> None:
    """Refuse what no option means: numbers that are undefined, endless or absurd, and paths that no system can have."""
    if isinstance(value, float | int) and value != 0 and not SMALLEST <= abs(value) <= LARGEST:
        text = f"{value:g}" if isinstance(value, float) else f"a number of {len(str(abs(value)))} digits"
        raise DynidentError(
            f"{_option(parameter)} is {text}; give a number of a size that can be meant ({SMALLEST:g} to {LARGEST:g}, or 0)"
        )
    for path in value if isinstance(value, list) else (value,):
        if isinstance(path, Path):
            try:
                path.stat()
            except OSError as error:
                if error.errno == errno.ENAMETOOLONG:
                    told = f"{_option(parameter)} is '{shortened(path)}', longer than a path can be; give another"
                    raise DynidentError(told) from None


def _option(parameter: inspect.Parameter) -> str:
    """Return the name of an option as it is typed, or of an argument."""
    info = next((one for one in get_args(parameter.annotation) if isinstance(one, ParameterInfo)), None)
    words = [word for word in getattr(info, "param_decls", None) or () if word.startswith("--")]
    return words[0] if words else f"{'--' * isinstance(info, OptionInfo)}{parameter.name.replace('_', '-')}"


def _shown(name: str, hint: Any) -> Any:
    """Return the annotation of an option with what stands for its value, and its panel."""
    if get_origin(hint) is not Annotated:
        return hint
    kind, info, *_ = get_args(hint)
    inner = next((k for k in (*get_args(kind), kind) if k is not type(None)), kind)
    inner = (get_args(inner) or (inner,))[0]
    if isinstance(info, OptionInfo):
        info = copy(info)
        info.metavar = info.metavar or METAVARS.get(inner)
        info.rich_help_panel = info.rich_help_panel or GROUPS.get(name)
        return Annotated[kind, info]
    return hint


def restructured(robot: di.Mechanism) -> di.Mechanism:
    """Return the robot with its base freed, joints held and gravity as the options say."""
    chosen = _CHOSEN.get(_NOTHING)
    if chosen.gravity is not None:
        try:
            down = [float(x) for x in chosen.gravity.split(",")]
        except ValueError:
            down = []
        if len(down) != 3:
            raise DynidentError(f"--gravity is '{chosen.gravity}'; give three numbers separated by commas, such as 0,0,9.81")
        robot = robot.with_gravity(down)
    if chosen.floating:
        robot = robot.with_free_base()
    if chosen.keep is not None:
        names = [name.strip() for name in chosen.keep.split(",") if name.strip()]
        if not names:
            raise DynidentError("--keep names no joint; name those that stay, with commas between them")
        robot = robot.keep(names)
    positions: dict[str, Any] = {}
    for text in chosen.lock:
        name, equals, where = text.partition("=")
        joint = robot.joint(name.strip())
        try:
            positions[joint.name] = [float(x) for x in where.split(",")] if equals else [0.0] * len(joint.coordinates)
        except ValueError:
            raise DynidentError(f"--lock is '{text}'; give name or name=position, in radians or metres") from None
    return robot.lock(positions) if positions else robot


def has_legs(robot: di.Mechanism) -> bool:
    """Tell whether several chains begin at a base that has a mass and is held still, as of a legged robot."""
    if robot.loops:
        return False
    held = {robot.root}
    for joint in robot.joints:  # parents come before their children
        if joint.kind == "fixed" and joint.parent in held:
            held.add(joint.child)
    chains = [joint for joint in robot.joints if joint.kind != "fixed" and joint.parent in held]
    heavy = any(body.inertia is not None and body.inertia[0] > 0.0 for body in robot.bodies if body.name in held)
    return heavy and len(chains) > 1
