"""The command bandwidth: the frequency response of a machine, with its mechanism and of the actuators alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from cyclopts import Parameter

from dynident.cli.consoles import note, out, print_json, save_figures
from dynident.cli.machines import Controller, DrivesFile
from dynident.cli.options import AS_WRITTEN, AsJson, Quiet, RobotOptions, check_output
from dynident.cli.progress import progress
from dynident.cli.robots import PublishedResponse, find_robot, is_known
from dynident.errors import DynidentError, SimulationError
from dynident.files import to_json, write_atomic
from dynident.mechanics.actuation import actuator_jacobian
from dynident.mechanism.describe import effort_units
from dynident.outputs import output_set
from dynident.simulate.robot import home_of
from dynident_lab.cli.machines import Machine, Results, any_machine
from dynident_lab.servo import SineResponse, actuators_alone
from dynident_lab.servo import bandwidth as measure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dynident.simulate import VirtualRobot

GRID = (0.4, 1.0, 2.0, 3.0, 4.0, 5.0, 7.0, 10.0)  # Hz
AMPLITUDES = {"N": 5e-3, "N m": 0.02}  # m, rad: for coordinates with this unit of effort
SATURATED = 0.01  # share of time at a motor's limits above which the limits shape the response
NOTHING = PublishedResponse({}, {})


def _bode_figure(found: Mapping[str, SineResponse], published: Mapping[float, tuple[float, float]]) -> Figure:
    first, *others = found.values()
    return first.plot(*others, labels=list(found), points=published or None)


def _response(bode: SineResponse) -> dict[str, Any]:
    """Return a response for the file and for `--json`: ratio and phase instead of complex numbers."""
    data: dict[str, Any] = {key: getattr(bode, key) for key in ("robot", "coordinate", "amplitude", "mechanism", "bandwidth")}
    for key in ("frequency", "magnitude", "phase", "scatter", "distortion", "saturated"):
        data[{"magnitude": "ratio"}.get(key, key)] = getattr(bode, key).tolist()
    pairs = zip(bode.names, bode.actuators.T, strict=True)
    data["actuators"] = {name: {"ratio": np.abs(z).tolist(), "phase": np.rad2deg(np.angle(z)).tolist()} for name, z in pairs}
    return data


def _amplitude(robot: VirtualRobot, coordinate: str, assumed: float | None) -> float:
    """Return an amplitude with the motor travel of the published one of the first coordinate, otherwise a small one."""
    names = robot.mechanism.coordinate_names
    if assumed is not None and coordinate in names:
        way = np.abs(actuator_jacobian(robot.mechanism, home_of(robot.mechanism))[0]).max(axis=0)
        return assumed * float(way[0] / way[names.index(coordinate)])
    sliding = coordinate.startswith("tool.") or effort_units(robot.mechanism).get(coordinate) == "N"
    return AMPLITUDES["N" if sliding else "N m"]


def _numbers(text: str, option: str, what: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise DynidentError(f"{option} is '{text}'; give {what} separated by commas") from None


def _conclusion(robot: str, coordinate: str, found: Mapping[str, Any]) -> str:
    """Return the result of the responses as one sentence."""

    def said(bode: Any) -> str:
        if np.isfinite(bode.bandwidth):
            return f"up to {bode.bandwidth:.3g} Hz"
        low = bode.magnitude[0] ** 2 <= 0.5  # -3 dB
        return f"not even up to {bode.frequency[0]:.3g} Hz" if low else f"beyond {bode.frequency[-1]:.3g} Hz"

    loaded = found["with mechanism"]
    full = loaded.frequency[loaded.saturated > SATURATED]  # there the motors' limits determine the result, not the loop
    limited = (
        f"; motors reach their limits at {full[0]:.3g} Hz; use a smaller --amplitude to measure the loop alone"
        if full.size
        else ""
    )
    bare = found.get("actuators alone")
    alone = f"; its actuators alone {said(bare)}" if bare is not None else ""
    return f"{coordinate} of '{robot}' follows its command {said(loaded)} (-3 dB){alone}{limited}"


def _turn_alone(robot: VirtualRobot) -> bool:
    """Return whether the actuators can be measured alone, with a note if not: some papers give no rotor inertia."""
    try:
        actuators_alone(robot)
    except SimulationError as error:
        note(f"actuators alone are not computed: {error}")
        return False
    return True


def bandwidth(
    machine: Machine,
    /,
    *,
    coordinate: str | None = None,
    amplitude: float | None = None,
    frequencies: str | None = None,
    centre: str | None = None,
    alone: Annotated[bool, Parameter(negative="--no-alone")] = True,
    controller: Controller = "cascade",
    loop_bandwidth: Annotated[float, Parameter(name="--bandwidth")] = 10.0,
    drives: DrivesFile = None,
    described: RobotOptions = AS_WRITTEN,
    output: Results = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> int:
    """Measure the bandwidth of a machine by stepped sines, with its mechanism and for the actuators alone.

    Example: dynident bandwidth mast --coordinate z --frequencies 0.4,1,2,5,10 -o out/

    Parameters
    ----------
    coordinate
        Coordinate, or tool.x, tool.y, tool.z; the first when absent.
    amplitude
        Amplitude of the command [rad or m].
    frequencies
        Comma-separated frequencies [Hz]; 0.4 to 10 Hz when absent.
    centre
        Pose about which to oscillate: comma-separated coordinates [rad or m]; home when absent.
    alone
        Measure the actuators alone too, with and without friction.
    loop_bandwidth
        Bandwidth of that controller [Hz].
    """
    if output is not None:
        check_output(output, folder=True)
    robot = any_machine(machine, controller, loop_bandwidth, described, drives)
    name = coordinate or robot.mechanism.coordinate_names[0]
    describe = find_robot(machine).response if is_known(machine) else None
    source = NOTHING if describe is None else describe(name)
    published, corners, notes = source.points, source.bandwidths, list(source.notes)
    grid = np.array(_numbers(frequencies, "--frequencies", "numbers in Hz")) if frequencies else np.unique([*GRID, *published])
    size = amplitude if amplitude is not None else _amplitude(robot, name, source.amplitude)
    pose = _numbers(centre, "--centre", "the coordinates of a pose") if centre else None
    alone = alone and _turn_alone(robot)
    with progress(3 if alone else 1, quiet) as step:
        step("with the mechanism")
        found = {"with mechanism": measure(robot, name, size, grid, centre=pose)}
        if alone:
            bare = robot if source.unloaded is None else source.unloaded()  # guides have less friction without load
            step("actuators alone")
            found["actuators alone"] = measure(bare, name, size, grid, centre=pose, mechanism=False)
            step("actuators alone, without friction")  # frequency response of the linear model
            found["actuators alone, linear"] = measure(robot, name, size, grid, centre=pose, mechanism=False, friction=False)
        data: dict[str, Any] = {label: _response(bode) for label, bode in found.items()}
        points = {f"{f:g}": {"ratio": ratio, "phase": phase} for f, (ratio, phase) in published.items()}
        numbers = {"machine": machine, "coordinate": name, **data, "published": points, "published_bandwidth": dict(corners)}
        numbers["notes"] = notes
        files = []
        if output is not None:
            with output_set(output, ("bandwidth.json", "bandwidth.png")) as stage:
                write_atomic(stage / "bandwidth.json", to_json(numbers))
                save_figures(lambda: {"bandwidth": _bode_figure(found, published)}, stage)
                files = [output / path.name for path in sorted(stage.iterdir())]
    if as_json:
        print_json({**numbers, "written": [str(f) for f in files]})
    elif not quiet:
        out.print("\n\n".join(f"{label}\n{bode}" for label, bode in found.items()))
        if published:
            rows = [f"{f:>10.4g}{100 * ratio:>11.2f}{'':>9}{phase:>13.2f}" for f, (ratio, phase) in published.items()]
            out.print("\npublished, measured on the machine\n" + "\n".join(rows))
        if corners:
            out.print("published bandwidth: " + ", ".join(f"{label} {hz:g} Hz" for label, hz in corners.items()))
        for text in notes:
            out.print(f"note: {text}")
        out.print(f"conclusion: {_conclusion(robot.mechanism.name, name, found)}")
        if files:
            out.print("written: " + ", ".join(str(path) for path in files))
    return 0
