"""Commands of the virtual robot: simulate a plan, measure the bandwidth."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from dynident.cli.consoles import Step, note, out, print_json, progress
from dynident.cli.machines import (
    Controller,
    DrivesFile,
    Machine,
    Results,
    Seed,
    any_machine,
    machine_of,
    robot_of_plan,
    save_figures,
)
from dynident.cli.shared import Arg, AsJson, Debug, Quiet, Search, Sidecar, app, check_output, three_numbers
from dynident.cli.structure import choices
from dynident.errors import DynidentError, SimulationError
from dynident.figures import new_figure
from dynident.files import to_json, write_atomic
from dynident.outputs import output_set
from dynident.signals.writers import check_log_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dynident.simulate.record import Run
    from dynident.simulate.robot import VirtualRobot
    from dynident_lab.servo import SineResponse

GRID = (0.4, 1.0, 2.0, 3.0, 4.0, 5.0, 7.0, 10.0)  # Hz
AMPLITUDES = {"N": 5e-3, "N m": 0.02}  # m, rad: of coordinates whose effort has this unit
SATURATED = 0.01  # share of time at a motor's limits from which on they shape the response
CAMPAIGN_CYCLE = 0.004  # between two samples of a campaign, as recorders write it [s]

RobotOption = Annotated[
    Path | None,
    typer.Option(
        "--robot",
        help="URDF, xacro, MJCF or SDF file, or a ready machine such as dualv; that of the plan's robot when absent.",
        show_default=False,
    ),
]
Figures = Annotated[Path | None, typer.Option(help="Folder for figures (PNG).")]


@app.command(epilog="Example: dynident simulate plan/ --robot dualv -o virtual.csv")
def simulate(
    plan: Annotated[
        Path,
        typer.Argument(help="Folder or plan.json of excite, or a motion as CSV (t, q_..., v_..., a_...).", show_default=False),
    ],
    robot: RobotOption = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", help="Log to write: .parquet, .csv, .csv.gz, .npz, .mat or .mcap; with --cycles a folder."
        ),
    ] = None,
    cycles: Annotated[
        int | None,
        typer.Option(help="Run so many cycles of the plan into the folder of a campaign; run again, it goes on where it was."),
    ] = None,
    log_cycle: Annotated[
        float | None, typer.Option(help="Time between two samples of the log [s]; 0.001, or 0.004 with --cycles.")
    ] = None,
    duty: Annotated[float | None, typer.Option(help="With --cycles: share of time in motion, 0 to 1.")] = None,
    fault: Annotated[
        list[str] | None,
        typer.Option(help="With --cycles: friction of a joint times a factor from a time on, as joint_1=1.32@60min."),
    ] = None,
    controller: Annotated[
        str | None,
        choices("Controller instead of the machine's own.", "computed_torque", "feedforward", "pd", "cascade"),
    ] = None,
    bandwidth: Annotated[float, typer.Option(help="Bandwidth of such a controller [Hz].")] = 10.0,
    drives: DrivesFile = None,
    method: Annotated[
        str, choices("Decoupled takes the mechanism as a disturbance of each drive.", "coupled", "decoupled")
    ] = "coupled",
    loop: Annotated[str, choices("Algebraic loop of the decoupled method.", "exact", "iterated", "delayed")] = "exact",
    step: Annotated[float | None, typer.Option(help="Step of the simulation [s]; the machine's own when absent.")] = None,
    noise: Annotated[
        float | None, typer.Option(help="Noise of the logged efforts over their RMS, as 0.01; the machine's own when absent.")
    ] = None,
    added_inertia: Annotated[
        float | None, typer.Option(help="Inertia added to q4 and q5 of cft [kg m^2]; 0.2 when absent, 0 as published.")
    ] = None,
    payload: Annotated[
        float | None, typer.Option(help="Mass of a load that the robot carries and its controller does not know [kg].")
    ] = None,
    payload_link: Annotated[str | None, typer.Option(help="Link that carries it; the last one when absent.")] = None,
    payload_com: Annotated[str | None, typer.Option(help="Its centre of mass in the frame of the link [m], as x,y,z.")] = None,
    payload_inertia: Annotated[
        str | None, typer.Option(help="Ixx,Iyy,Izz about its centre of mass [kg m^2]; a point when absent.")
    ] = None,
    seed: Seed = 0,
    truth: Annotated[Path | None, typer.Option(help="Write the true signals to this .npz file.")] = None,
    figures: Figures = None,
    sidecar: Sidecar = None,
    search: Search = None,
    arg: Arg = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> int:
    """Run a plan on a virtual robot: writes the log that a recorder would have written, prints errors, limits and speed."""
    from dynident.simulate.standard import with_noise  # noqa: PLC0415 - only this command needs it

    if cycles is not None:
        _check_campaign(output, truth, figures, method, noise)
    elif fault or duty is not None:
        raise DynidentError("--fault and --duty are settings of a campaign; give --cycles too")
    else:
        _check_files(output, truth, figures)
    with progress(5, quiet) as announce:
        announce("reading the robot and the plan")
        named = robot if robot is not None else robot_of_plan(plan)
        machine, wanted = machine_of(named, sidecar, plan, controller, bandwidth, search, arg, added_inertia, drives)
        machine = machine if step is None else replace(machine, step=step)
        machine = _loaded(machine, payload, payload_link, payload_com, payload_inertia)
        if cycles is not None:
            assert output is not None, "checked above"
            how = {"cycles": cycles, "duty": duty}
            done = _campaign(output, wanted, machine, how, fault or [], seed, log_cycle or CAMPAIGN_CYCLE, announce)
            return _tell_campaign(output, done, as_json, quiet)
        if getattr(wanted, "cycles", 1) > 1:
            note(f"one of {wanted.cycles} cycles is run; --cycles {wanted.cycles} runs all of them")
        announce("measuring efforts for the noise" if noise else "preparing")
        machine = machine if noise is None else with_noise(machine, wanted, noise, 1e-5 if noise > 0.0 else 0.0)
        announce("compiling the machine, where it is new")
        cycle = machine.step  # a few steps: what they take to compile is no part of the speed below
        machine.simulate(wanted, method=method, loop=loop, seed=seed, duration=4.0 * cycle, log_cycle=cycle)
        announce("simulating")
        begin = time.perf_counter()
        run = machine.simulate(
            wanted,
            method=method,
            loop=loop,
            seed=seed,
            log_cycle=log_cycle,
            progress=partial(_tell, announce),
        )
        seconds = time.perf_counter() - begin
        announce("writing")
        written = _write_run(run, output, truth, figures)
    duration = float(run.truth.t[-1] - run.truth.t[0])
    if as_json:
        speed = {"seconds": seconds, "real_time_factor": duration / seconds, "written": [str(path) for path in written]}
        print_json({**run.numbers(), **speed})
    elif not quiet:
        out.print(run.summary())
        out.print(f"{duration:.4g} s simulated in {seconds:.3g} s, {duration / seconds:.3g} times as fast as real time")
        if written:
            out.print("written: " + ", ".join(str(path) for path in written))
    return 0


def _check_campaign(output: Path | None, truth: Path | None, figures: Path | None, method: str, noise: float | None) -> None:
    """Refuse options that a campaign does not have, before any long work."""
    if output is None:
        raise DynidentError("--cycles writes the folder of a campaign; name it with -o")
    if truth is not None or figures is not None or method != "coupled" or noise is not None:
        raise DynidentError("--truth, --figures, --method and --noise are for one cycle; leave them out, or leave out --cycles")
    check_output(output, folder=True)


def _campaign(
    folder: Path,
    plan: Any,
    machine: VirtualRobot,
    how: dict[str, Any],
    faults: list[str],
    seed: int,
    log_cycle: float,
    step: Step,
) -> dict[str, Any]:
    """Run a plan cycle by cycle into a folder; return what was done."""
    from dynident.excitation.plan import Plan  # noqa: PLC0415 - only this command needs it
    from dynident_lab.link import Fault, Settings, simulate_campaign  # noqa: PLC0415

    if not isinstance(plan, Plan):
        raise DynidentError("--cycles repeats a plan; give the folder or plan.json of dynident excite, not a motion")
    settings = Settings.of(plan, how)

    def tell(done: int, whole: int) -> None:
        step(f"simulating: {done} of {whole} cycles", advance=0)

    begin = time.perf_counter()
    wrong = [Fault.parse(text) for text in faults]
    new = simulate_campaign(folder, plan, machine, settings, period=log_cycle, seed=seed, faults=wrong, progress=tell)
    seconds = time.perf_counter() - begin
    return {"folder": str(folder), "plan": plan.identity, "cycles": settings.cycles, "new": new, "seconds": seconds}


def _tell_campaign(folder: Path, done: dict[str, Any], as_json: bool, quiet: bool) -> int:
    if as_json:
        print_json(done)
    elif not quiet:
        times = f"{done['cycles']} {'cycles' if done['cycles'] > 1 else 'cycle'}"
        out.print(f"{times} in '{folder}', {done['new']} new, in {done['seconds']:.3g} s")
        out.print(f"next: dynident friction ROBOT {folder} -o study/    dynident identify ROBOT {folder} -o fits/")
    return 0


def _loaded(
    machine: VirtualRobot, payload: float | None, link: str | None, com: str | None, inertia: str | None
) -> VirtualRobot:
    """Return the machine with a load on a link."""
    if payload is None:
        if link or com or inertia:
            raise DynidentError(
                "--payload-link, --payload-com and --payload-inertia describe a load; give its mass with --payload"
            )
        return machine
    about = np.diag(three_numbers(inertia, "--payload-inertia"))
    robot = machine.mechanism.with_payload(payload, three_numbers(com, "--payload-com"), about, body=link)
    return replace(machine, mechanism=robot)


def _tell(step: Step, done: float, whole: float) -> None:
    """Show how far a run is."""
    step(f"simulating: {done:.1f} of {whole:.1f} s", advance=0)


def _write_run(run: Run, output: Path | None, truth: Path | None, figures: Path | None) -> list[Path]:
    """Write log, truth and figures; those of one folder appear together."""
    makers: dict[Path, Callable[[Path], Any]] = {}
    if output is not None:
        makers[output] = run.log_with_reference().save
    if truth is not None:
        makers[truth] = run.truth.save
    for folder in dict.fromkeys(path.parent for path in makers):
        mine = {path.name: make for path, make in makers.items() if path.parent == folder}
        with output_set(folder, tuple(mine)) as stage:
            for name, make in mine.items():
                make(stage / name)
    drawn = _run_figures(run) if figures is not None else {}
    if figures is not None:
        with output_set(figures, tuple(f"{name}.png" for name in drawn)) as stage:
            save_figures(lambda: drawn, stage)
    return [*makers, *(figures / f"{name}.png" for name in drawn if figures is not None)]


def _check_files(output: Path | None, truth: Path | None, figures: Path | None) -> None:
    """Refuse outputs that cannot be written, before any long work."""
    if output is not None:
        check_log_file(output)
    if truth is not None and truth.suffix != ".npz":
        raise DynidentError(f"truth '{truth}' has the ending '{truth.suffix}'; it is written as .npz")
    for path in (output, truth):
        if path is not None:
            check_output(path)
    if figures is not None:
        check_output(figures, folder=True)
        new_figure(1.0, 1.0)  # says now if matplotlib is missing


def _run_figures(run: Run) -> dict[str, Figure]:
    return {"tracking": run.plot(), "torque_split": run.torque_split().plot()}


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


def _published_bode(machine: str, coordinate: str) -> Mapping[float, tuple[float, float]]:
    """Return measured points of a machine's paper, frequency to ratio and phase; nothing where it has none."""
    from dynident_papers import robots  # noqa: PLC0415 - rarely needed

    data: Mapping[float, tuple[float, float]] = getattr(getattr(robots, machine, None), "BODE", {})
    return data if coordinate == "z" else {}


def _amplitude(machine: str, robot: VirtualRobot, coordinate: str) -> float:
    """Return an amplitude that moves the motors as far as the one that a machine's paper assumes, else a small one."""
    from dynident.mechanics.actuation import actuator_jacobian  # noqa: PLC0415 - rarely needed
    from dynident.mechanism.describe import effort_units  # noqa: PLC0415 - rarely needed
    from dynident.simulate.standard import home_of  # noqa: PLC0415 - only this command needs it
    from dynident_papers import robots  # noqa: PLC0415 - rarely needed

    assumed = getattr(getattr(robots, machine, None), "ASSUMPTIONS", {}).get("amplitude")  # of the first coordinate
    names = robot.mechanism.coordinate_names
    if assumed is not None and coordinate in names:
        way = np.abs(actuator_jacobian(robot.mechanism, home_of(robot.mechanism))[0]).max(axis=0)
        return float(assumed.value) * float(way[0] / way[names.index(coordinate)])
    sliding = coordinate.startswith("tool.") or effort_units(robot.mechanism).get(coordinate) == "N"
    return AMPLITUDES["N" if sliding else "N m"]


def _numbers(text: str, option: str, what: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise DynidentError(f"{option} is '{text}'; give {what} separated by commas") from None


def _conclusion(robot: str, coordinate: str, found: Mapping[str, Any]) -> str:
    """Return what the responses say in one sentence."""

    def said(bode: Any) -> str:
        if np.isfinite(bode.bandwidth):
            return f"up to {bode.bandwidth:.3g} Hz"
        low = bode.magnitude[0] ** 2 <= 0.5  # -3 dB
        return f"not even up to {bode.frequency[0]:.3g} Hz" if low else f"beyond {bode.frequency[-1]:.3g} Hz"

    loaded = found["with mechanism"]
    full = loaded.frequency[loaded.saturated > SATURATED]  # there the numbers are those of the motors' limits, not of the loop
    limited = (
        f"; motors reach their limits at {full[0]:.3g} Hz, a smaller --amplitude shows the loop itself" if full.size else ""
    )
    bare = found.get("actuators alone")
    alone = f"; its actuators alone {said(bare)}" if bare is not None else ""
    return f"{coordinate} of '{robot}' follows its command {said(loaded)} (-3 dB){alone}{limited}"


def _turn_alone(robot: VirtualRobot) -> bool:
    """Tell whether the actuators can be measured alone, with a note if not: some papers print no rotors."""
    from dynident_lab.servo import actuators_alone  # noqa: PLC0415 - only this command needs it

    try:
        actuators_alone(robot)
    except SimulationError as error:
        note(f"the actuators alone are left out: {error}")
        return False
    return True


@app.command(epilog="Example: dynident bandwidth mast --coordinate z --frequencies 0.4,1,2,5,10 -o out/")
def bandwidth(
    machine: Machine,
    coordinate: Annotated[
        str | None, typer.Option(help="Coordinate, or tool.x, tool.y, tool.z; the first when absent.")
    ] = None,
    amplitude: Annotated[float | None, typer.Option(help="Amplitude of the command [rad or m].")] = None,
    frequencies: Annotated[str | None, typer.Option(help="Frequencies by commas [Hz]; 0.4 to 10 Hz when absent.")] = None,
    centre: Annotated[
        str | None, typer.Option(help="Pose about which to swing, its coordinates by commas [rad or m]; home when absent.")
    ] = None,
    alone: Annotated[bool, typer.Option(help="Measure the actuators alone too, with and without friction.")] = True,
    controller: Controller = "cascade",
    loop_bandwidth: Annotated[float, typer.Option("--bandwidth", help="Bandwidth of that controller [Hz].")] = 10.0,
    drives: DrivesFile = None,
    sidecar: Sidecar = None,
    search: Search = None,
    arg: Arg = None,
    output: Results = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> int:
    """Measure the bandwidth of a machine by stepped sines, with its mechanism and of the actuators alone."""
    from dynident_lab.servo import bandwidth as measure  # noqa: PLC0415 - only this command needs it
    from dynident_papers import robots  # noqa: PLC0415 - rarely needed

    if output is not None:
        check_output(output, folder=True)
    robot = any_machine(machine, controller, loop_bandwidth, sidecar, search, arg, drives)
    name = coordinate or robot.mechanism.coordinate_names[0]
    published = _published_bode(machine, name)
    grid = np.array(_numbers(frequencies, "--frequencies", "numbers in Hz")) if frequencies else np.unique([*GRID, *published])
    size = amplitude if amplitude is not None else _amplitude(machine, robot, name)
    pose = _numbers(centre, "--centre", "the coordinates of a pose") if centre else None
    alone = alone and _turn_alone(robot)
    with progress(3 if alone else 1, quiet) as step:
        step("with the mechanism")
        found = {"with mechanism": measure(robot, name, size, grid, centre=pose)}
        if alone:
            bare = getattr(getattr(robots, machine, None), "unloaded", None)  # drives that rub less without their load
            step("actuators alone")
            found["actuators alone"] = measure(bare() if bare else robot, name, size, grid, centre=pose, mechanism=False)
            step("actuators alone, without friction")  # their transfer function
            found["actuators alone, linear"] = measure(robot, name, size, grid, centre=pose, mechanism=False, friction=False)
        data: dict[str, Any] = {label: _response(bode) for label, bode in found.items()}
        points = {f"{f:g}": {"ratio": ratio, "phase": phase} for f, (ratio, phase) in published.items()}
        module = getattr(robots, machine, None)
        corners = getattr(module, "BANDWIDTHS", {}) if published else {}
        notes = list(getattr(module, "BANDWIDTH_NOTES", ())) if corners else []
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
