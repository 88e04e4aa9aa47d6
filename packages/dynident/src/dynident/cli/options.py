"""Options that commands share, in groups: reading of a robot and its logs, and output."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from cyclopts import Parameter

import dynident as di
from dynident.cli.consoles import note
from dynident.cli.groups import COLUMNS, LOGS, OUTPUT, RARE_LOGS, RARE_ROBOT, ROBOT
from dynident.cli.robots import find_machine, find_robot, is_known
from dynident.errors import DynidentError
from dynident.files import check_replaceable
from dynident.mechanism.files import read_robot
from dynident.mechanism.sidecar import apply_sidecar
from dynident.signals.reading import RULES
from dynident.signals.stream import LogStream, is_long

NOT_OK = 3
PIECE = 100_000  # samples of a long file that are in memory at a time
EFFORTS = ("joint_torque", "joint_force", "motor_torque", "motor_current", "voltage", "none")

Robot = Annotated[
    Path,
    Parameter(help="URDF, xacro, MJCF, SDF or JSON file, fit.json of identify, or a known robot such as dualv."),
]
FitFile = Annotated[Path, Parameter(help="fit.json written by identify; it holds its robot.")]
OwnRobot = Annotated[
    Path | None,
    Parameter(help="Robot of a fit whose file cannot hold it (couplings or columns that are functions).", group=RARE_ROBOT),
]
Folder = Annotated[Path, Parameter(alias="-o", group=OUTPUT)]
OptionalFolder = Annotated[Path | None, Parameter(alias="-o", group=OUTPUT)]
Order = Annotated[
    str | None,
    Parameter(
        help="Comma-separated parameters that should name base parameters, by preference; symmetric: equal legs equally.",
        group=COLUMNS,
    ),
]
Projection = Annotated[
    str,
    Parameter(help="Robots with loops: gls (least variance), independent, or a comma-separated list of motors.", group=COLUMNS),
]
RANK_TOLERANCE = 3e-5
RankTolerance = Annotated[
    float,
    Parameter(help="Relative size below which a parameter is unidentifiable; 1e-3 for almost parallel axes.", group=COLUMNS),
]
FrictionLaws = Annotated[
    list[str] | None,
    Parameter(help="Friction law to fit, as 'stribeck + viscous' or joint2=tanh; auto chooses. Several times."),
]
Essential = Annotated[
    float | None,
    Parameter(
        help="Remove parameters until relative deviations differ by at most this factor (10 is usual) without larger "
        "residuals; by wls.",
        group=COLUMNS,
    ),
]
Absent = Annotated[
    list[str] | None,
    Parameter(help="Separate body of the fit that the robot did not carry, such as payload; several times."),
]
AllowTraining = Annotated[bool, Parameter(help="Accept logs that were used for the fit.")]
Accept = Annotated[
    list[str] | None,
    Parameter(help="Code of a finding that does not fail the verdict, such as gain; several times.", group=OUTPUT),
]
Strict = Annotated[bool, Parameter(help="Exit with 3 when the verdict is not ok.", group=OUTPUT)]
Quiet = Annotated[bool, Parameter(alias="-q", help="No progress bar and no table.", group=OUTPUT)]
AsJson = Annotated[bool, Parameter(name="--json", help="Print the result as JSON on standard output.", group=OUTPUT)]


@Parameter(name="*", group=RARE_ROBOT)
@dataclass(frozen=True)
class RobotOptions:
    """Options for reading a robot: its description, held joints, mounting and joint terms."""

    sidecar: Annotated[Path | None, Parameter(group=ROBOT, allow_repeating=False)] = None
    """TOML file with actuators, couplings, loops and joint terms."""
    lock: Annotated[tuple[str, ...], Parameter(group=ROBOT)] = ()
    """Hold a joint still, as name or name=position."""
    keep: str | None = None
    """Comma-separated joints that move; the others are fixed at zero."""
    floating: bool = False
    """The base is free to move (legged, flying robots)."""
    gravity: str | None = None
    """Gravity x,y,z in the root frame [m/s^2], for a robot on a ceiling, a wall or a slope, as --gravity 0,0,9.81."""
    search: tuple[Path, ...] = ()
    """Folder outside the robot's own that it may read from; several times."""
    arg: tuple[str, ...] = ()
    """Value of an argument of a .xacro, as name:=value; several times."""
    terms: tuple[str, ...] = ()
    """Comma-separated joint terms, as ia,fv,fc,off; '' for none; joint2=ia,fv,k for one joint; several times."""

    def robot(self, file: Path) -> di.Mechanism:
        """Return the robot of a file, or the known robot of that name."""
        for folder in self.search:
            if not folder.is_dir():
                raise DynidentError(f"--search is '{folder}', which is not a folder; give one that holds packages of robots")
        if not file.suffix and (is_known(file) or not file.exists()):  # a folder of results may have the name of its robot
            mechanism = find_robot(str(file)).mechanism()
            mechanism = mechanism if self.sidecar is None else apply_sidecar(mechanism, self.sidecar)
            return self._with_terms(self._restructured(mechanism))
        if (
            self.sidecar is None
            and file.suffix.lower() not in ("", ".json")
            and (beside := file.with_suffix(".toml")).is_file()
        ):
            note(f"'{beside}' is not read; --sidecar {shlex.quote(str(beside))} adds it to the robot")
        mechanism = self._restructured(read_robot(file, self.sidecar, self.search, self.arguments()))
        if _has_legs(mechanism):
            note(f"the base '{mechanism.root}' of robot '{mechanism.name}' is held still; --floating frees it")
        return self._with_terms(mechanism)

    def robot_of_log(self, file: Path, log: di.Log, read: di.Mechanism | None = None) -> di.Mechanism:
        """Return the robot; for logs of motor positions, a known one with motors and gears of its machine."""
        mechanism = self.robot(file) if read is None else read
        own_names = {*mechanism.joint_names, *(actuator.name for actuator in mechanism.actuators)}
        without: Any = log.provenance.get("without_gain", ())
        if forgotten := [name for name in without if name in own_names]:
            raise DynidentError(
                f"--gain has no number for {', '.join(forgotten)} of robot '{mechanism.name}'; name all its motors"
            )
        if log.position_side != "motor" or self.sidecar is not None or not is_known(file):
            return mechanism
        driven = find_machine(str(file)).model
        own, ready = ({actuator.name: actuator.ratio for actuator in x.actuators} for x in (mechanism, driven))
        return self._with_terms(driven) if own != ready and set(log.joints) <= set(ready) else mechanism

    def arguments(self) -> dict[str, str]:
        """Return the arguments of a .xacro by name."""
        pairs = [text.partition(":=") for text in self.arg]
        for text, (name, sign, _) in zip(self.arg, pairs, strict=True):
            if not (name and sign):
                raise DynidentError(f"--arg is '{text}'; give name:=value")
        return {name: value for name, _, value in pairs}

    def _with_terms(self, mechanism: di.Mechanism) -> di.Mechanism:
        for text in self.terms:
            joint, equals, own = text.rpartition("=")
            symbols = [t.strip() for t in own.split(",") if t.strip()]
            mechanism = mechanism.with_terms({joint.strip(): symbols} if equals else symbols)
        return mechanism

    def _restructured(self, robot: di.Mechanism) -> di.Mechanism:
        """Return the robot with gravity, base and held joints according to the options."""
        if self.gravity is not None:
            robot = robot.with_gravity(three_numbers(self.gravity, "--gravity"))
        if self.floating:
            robot = robot.with_free_base()
        if self.keep is not None:
            names = [name.strip() for name in self.keep.split(",") if name.strip()]
            if not names:
                raise DynidentError("--keep names no joint; give a comma-separated list of joints")
            robot = robot.keep(names)
        positions: dict[str, list[float]] = {}
        for text in self.lock:
            name, equals, where = text.partition("=")
            joint = robot.joint(name.strip())
            try:
                positions[joint.name] = [float(x) for x in where.split(",")] if equals else [0.0] * len(joint.coordinates)
            except ValueError:
                raise DynidentError(f"--lock is '{text}'; give name or name=position, in radians or metres") from None
        return robot.lock(positions) if positions else robot


@Parameter(name="*", group=RARE_LOGS)
@dataclass(frozen=True)
class RecordedOptions:
    """Options for reading logs, of a command with its own rate and delay."""

    effort: Annotated[str | None, Parameter(choices=EFFORTS, group=LOGS)] = None
    """Meaning of the effort columns (required); motor_torque and motor_current are before the gears."""
    joints: Annotated[str | None, Parameter(group=LOGS)] = None
    """Joint names of the log's channels, separated by commas."""
    gain: Annotated[str | None, Parameter(group=LOGS)] = None
    """Drive gains [N m/A, N m/V], one, one per channel or joint1=0.1,joint2=0.2; at the motor if ratios are known."""
    unit: Annotated[tuple[str, ...], Parameter(group=LOGS)] = ()
    """Unit of a quantity in the logs, e.g. position=deg or time=ms; several times."""
    schema: Annotated[Path | None, Parameter(group=LOGS)] = None
    """TOML file that maps columns, units and drive gains."""
    topic: tuple[str, ...] = ()
    """Topic of a ROS bag or MCAP file; several times, the first gives the clock."""

    def more(self) -> dict[str, Any]:
        """Return other options of `Log.read`."""
        return {}

    def given(self) -> dict[str, Any]:
        """Return the arguments of `Log.read` from the given options."""
        gains = None if _named_gains(self.gain) else numbers_of(self.gain, "--gain")
        names = None if self.joints is None else [name.strip() for name in self.joints.split(",")]
        units: dict[str, object] = {}
        for entry in self.unit:
            quantity, equals, name = entry.partition("=")
            if not equals or not name.strip():
                raise DynidentError(f"--unit is '{entry}'; give a quantity and its unit, such as position=deg")
            units[quantity.strip()] = name.strip()
        found = {"effort": self.effort, "schema": self.schema, "joints": names, "gain": gains, "units": units or None}
        every = {**found, "topic": list(self.topic) or None, **self.more()}
        return {name: value for name, value in every.items() if value is not None}

    def reader(self) -> Callable[[Path], di.Log]:
        """Return a function that reads logs with these options and notes its interpretation once."""
        named, given = _named_gains(self.gain), self.given()
        said: set[Path] = set()

        def read(path: Path) -> di.Log:
            log = di.Log.read(path, **given)
            if named:
                log = _with_gains(log, named)
            if path not in said:
                understood(path, log)
            said.add(path)
            return log

        return read


def understood(path: Path, log: di.Log) -> None:
    """Note the interpretation of a file, unless dynident wrote it: then it was noted before."""
    notes = log.provenance.get("conversions")
    if isinstance(notes, list) and notes and path.name in str(log.provenance.get("files")):
        note(f"{path.name}: {'; '.join(map(str, notes))}")


@Parameter(name="*", group=RARE_LOGS)
@dataclass(frozen=True)
class LogOptions(RecordedOptions):
    """Options for reading logs."""

    episode: str | None = None
    """Run of a table that holds several (LeRobot data sets), by its number or name."""
    rate: float | None = None
    """Sampling rate [Hz] of logs whose time column is missing or too coarse."""
    delay: str | None = None
    """Seconds by which efforts are later than positions, one number or one per channel."""
    counts_per_unit: str | None = None
    """Encoder counts per rad (or m), for positions in counts: one number or one per channel."""

    def more(self) -> dict[str, Any]:
        """Return other options of `Log.read`."""
        counts, delay = numbers_of(self.counts_per_unit, "--counts-per-unit"), numbers_of(self.delay, "--delay")
        return {"episode": self.episode, "rate": self.rate, "delay": delay, "counts_per_unit": counts}

    def stream(self, path: Path) -> LogStream | None:
        """Return a stream over the pieces of a long file; None for others, and if options need the whole file."""
        if not is_long(path) or self.episode is not None or self.effort == "none" or _named_gains(self.gain):
            return None
        given = self.given()
        return LogStream(path, PIECE, given.pop("schema", None), {RULES.get(name, name): x for name, x in given.items()})


AS_WRITTEN, AS_LOGGED = RobotOptions(), LogOptions()


def read_fit(path: Path, robot: Path | None = None) -> di.Fit:
    """Return a fit of a file."""
    if path.suffix.lower() != ".json":
        raise DynidentError(f"'{path}' is not a fit; give fit.json of identify, then the logs")
    return di.Fit.load(path, None if robot is None else AS_WRITTEN.robot(robot))


def fit_in(robot: Path) -> di.Fit | None:
    """Return the fit in a file given in place of a robot; None for other files."""
    if robot.suffix.lower() != ".json" or not robot.is_file():
        return None
    found = di.load(robot)
    return found if isinstance(found, di.Fit) else None


def typed(options: Any) -> list[str]:
    """Return the words to type for the options that differ from the defaults."""
    words: list[str] = []
    for field in fields(options):
        value, name = getattr(options, field.name), f"--{field.name.replace('_', '-')}"
        if value == field.default:
            continue
        for each in value if isinstance(value, tuple) else (value,):
            words += [name] if each is True else [f"{name}={each}"] if str(each).startswith("-") else [name, str(each)]
    return words


def _named_gains(text: str | None) -> dict[str, float]:
    """Return gains given by channel, as joint1=12,joint2=9."""
    if text is None or "=" not in text:
        return {}
    pairs = [entry.rpartition("=") for entry in text.split(",")]
    try:
        return {name.strip(): float(value) for name, _, value in pairs}
    except ValueError:
        raise DynidentError(f"--gain is '{text}'; give numbers, or names with numbers as joint1=12,joint2=9") from None


def _with_gains(log: di.Log, gains: dict[str, float]) -> di.Log:
    """Return a log with gains by channel applied."""
    left = [name for name in log.joints if name not in gains]
    if left:
        note(f"channels without a gain are omitted: {', '.join(left)}")
    chosen = log.select(list(gains))
    known = {**chosen.provenance, "without_gain": left}
    return replace(chosen, gain=np.array(list(gains.values())), provenance=known)


def numbers_of(text: str | None, option: str) -> float | list[float] | None:
    """Return the numbers of an option: a single one, or several as a list."""
    try:
        found = None if text is None else [float(x) for x in text.split(",")]
    except ValueError:
        raise DynidentError(f"{option} is '{text}'; give numbers separated by commas") from None
    return found[0] if found is not None and len(found) == 1 else found


def three_numbers(text: str | None, option: str) -> list[float]:
    """Return three numbers of an option, zeros when omitted."""
    if text is None:
        return [0.0, 0.0, 0.0]
    try:
        values = [float(x) for x in text.split(",")]
    except ValueError:
        values = []
    if len(values) != 3:
        raise DynidentError(f"{option} is '{text}'; give three numbers separated by commas, such as 0,0,9.81")
    return values


def friction_laws(mechanism: di.Mechanism, laws: list[str] | None) -> str | dict[str, object] | None:
    """Return the friction laws to fit, from the command line and the sidecar; None if there are none."""
    found: dict[str, object] = {name: own if own.known else own.law for name, own in mechanism.friction.items()}
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


def check_tolerance(rank_tolerance: float) -> None:
    """Refuse a tolerance outside 0 to 1."""
    if not 0.0 < rank_tolerance < 1.0:
        raise DynidentError(f"--rank-tolerance is {rank_tolerance:g}; it must be between 0 and 1 (3e-5 is usual)")


def check_output(path: Path, folder: bool = False) -> None:
    """Refuse an output that cannot be written, before any long work."""
    if path.exists() and path.is_dir() != folder:
        raise DynidentError(f"output '{path}' is a {'file; give a folder' if folder else 'folder; give a file name'}")
    if not folder:
        check_replaceable(path)
    above = next((p for p in (path, *path.absolute().parents) if p.is_dir()), Path())
    if not os.access(above, os.W_OK | os.X_OK):
        raise DynidentError(f"output '{path}' cannot be written: folder '{above}' is read-only; give another place")


def _has_legs(robot: di.Mechanism) -> bool:
    """Return whether several chains start at a fixed base with mass, as of a legged robot."""
    if robot.loops:
        return False
    held = {robot.root}
    for joint in robot.joints:  # parents precede their children
        if joint.kind == "fixed" and joint.parent in held:
            held.add(joint.child)
    chains = [joint for joint in robot.joints if joint.kind != "fixed" and joint.parent in held]
    heavy = any(body.inertia is not None and body.inertia[0] > 0.0 for body in robot.bodies if body.name in held)
    return heavy and len(chains) > 1
