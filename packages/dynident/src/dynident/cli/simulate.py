"""The command simulate: a virtual robot runs a plan and writes its log."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from cyclopts import Group, Parameter

from dynident.cli.consoles import note, out, print_json, print_next, save_figures
from dynident.cli.groups import OUTPUT, RARE
from dynident.cli.machines import CONTROLLERS, DrivesFile, Seed, machine_of, robot_of_plan
from dynident.cli.options import AS_WRITTEN, AsJson, OptionalFolder, Quiet, RobotOptions, check_output, three_numbers, typed
from dynident.cli.progress import Step, progress
from dynident.errors import DynidentError
from dynident.excitation.plan import Plan, refer
from dynident.figures import new_figure
from dynident.outputs import output_set
from dynident.signals.writers import check_log_file
from dynident.simulate.robot import with_noise

if TYPE_CHECKING:
    from dynident.simulate.record import Run
    from dynident.simulate.robot import VirtualRobot

RobotOption = Annotated[
    Path | None,
    Parameter(
        name="--robot",
        help="URDF, xacro, MJCF or SDF file, or a ready machine such as dualv; that of the plan's robot when absent.",
    ),
]
PlanFile = Annotated[Path, Parameter(help="Folder or plan.json of excite, or a motion as CSV (t, q_JOINT, v_JOINT, a_JOINT).")]
OtherController = Annotated[str | None, Parameter(help="Controller instead of the machine's own.", choices=CONTROLLERS)]
OtherBandwidth = Annotated[float, Parameter(help="Bandwidth of such a controller [Hz].")]
StepSize = Annotated[float | None, Parameter(help="Step of the simulation [s]; the machine's own when absent.", group=RARE)]
LOAD = Group("Load", sort_key=15)


@Parameter(name="*", group=LOAD)
@dataclass(frozen=True)
class LoadOptions:
    """Options of a load on the robot."""

    payload: float | None = None
    """Mass of a load that the robot carries and its controller does not know [kg]."""
    payload_link: str | None = None
    """Link that carries it; the last one when absent."""
    payload_com: str | None = None
    """Its centre of mass in the frame of the link [m], as x,y,z."""
    payload_inertia: str | None = None
    """Ixx,Iyy,Izz about its centre of mass [kg m^2]; a point when absent."""

    def on(self, machine: VirtualRobot) -> VirtualRobot:
        """Return the machine with the load on its link."""
        if self.payload is None:
            if self.payload_link or self.payload_com or self.payload_inertia:
                raise DynidentError(
                    "--payload-link, --payload-com and --payload-inertia describe a load; give its mass with --payload"
                )
            return machine
        about = np.diag(three_numbers(self.payload_inertia, "--payload-inertia"))
        centre = three_numbers(self.payload_com, "--payload-com")
        return replace(machine, mechanism=machine.mechanism.with_payload(self.payload, centre, about, body=self.payload_link))


NO_LOAD = LoadOptions()


def simulate(
    plan: PlanFile,
    /,
    *,
    robot: RobotOption = None,
    output: OptionalFolder = None,
    log_cycle: float | None = None,
    controller: OtherController = None,
    bandwidth: OtherBandwidth = 10.0,
    drives: DrivesFile = None,
    method: Annotated[str, Parameter(choices=("coupled", "decoupled"))] = "coupled",
    loop: Annotated[str, Parameter(choices=("exact", "iterated", "delayed"))] = "exact",
    step: StepSize = None,
    noise: float | None = None,
    load: LoadOptions = NO_LOAD,
    seed: Seed = 0,
    truth: Path | None = None,
    figures: Annotated[Path | None, Parameter(help="Folder for figures (PNG).", group=OUTPUT)] = None,
    described: RobotOptions = AS_WRITTEN,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> int:
    """Run a plan on a virtual robot: writes the log as a recorder would, prints tracking errors and reached limits.

    Example: dynident simulate plan/ --robot dualv -o virtual.csv

    Parameters
    ----------
    output
        Log to write: .parquet, .csv, .csv.gz, .npz, .mat or .mcap.
    log_cycle
        Time between two samples of the log [s]; 0.001 when absent.
    method
        Decoupled takes the mechanism as a disturbance of each drive.
    loop
        Algebraic loop of the decoupled method.
    noise
        Noise of the logged efforts over their RMS, as 0.01; the machine's own when absent.
    truth
        Write the true signals to this .npz file.
    """
    _check_files(output, truth, figures)
    with progress(5, quiet) as announce:
        announce("reading the robot and the plan")
        named = robot if robot is not None else robot_of_plan(plan)
        machine, wanted = machine_of(named, plan, controller, bandwidth, described, drives)
        machine = machine if step is None else replace(machine, step=step)
        machine = load.on(machine)
        if getattr(wanted, "cycles", 1) > 1:
            note(f"one of {wanted.cycles} cycles is run; dynident simulate-campaign runs all of them")
        announce("measuring efforts for the noise" if noise else "preparing")
        machine = machine if noise is None else with_noise(machine, wanted, noise, 1e-5 if noise > 0.0 else 0.0)
        announce("compiling the machine, where it is new")
        cycle = machine.step  # a few steps, so that the speed below excludes compilation
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
        written = _write_run(run, wanted, output, truth, figures)
    duration = float(run.truth.t[-1] - run.truth.t[0])
    if as_json:
        speed = {"seconds": seconds, "real_time_factor": duration / seconds, "written": [str(path) for path in written]}
        print_json({**run.numbers(), **speed})
    elif not quiet:
        out.print(run.summary())
        out.print(f"{duration:.4g} s simulated in {seconds:.3g} s, {duration / seconds:.3g} times as fast as real time")
        if written:
            out.print("written: " + ", ".join(str(path) for path in written))
        if output is not None:
            print_next("identify", named, output, *typed(described), "-o", f"{output.parent / output.stem}_out")
    return 0


def _tell(step: Step, done: float, whole: float) -> None:
    """Show the progress of a run."""
    step(f"simulating: {done:.1f} of {whole:.1f} s", advance=0)


def _write_run(run: Run, plan: Any, output: Path | None, truth: Path | None, figures: Path | None) -> list[Path]:
    """Write log, truth and figures; all files of one folder appear at the same time."""
    makers: dict[Path, Callable[[Path], Any]] = {}
    if output is not None:
        log = run.log_with_reference()
        makers[output] = (refer(log, plan) if isinstance(plan, Plan) else log).save
    if truth is not None:
        makers[truth] = run.truth.save
    for folder in dict.fromkeys(path.parent for path in makers):
        mine = {path.name: make for path, make in makers.items() if path.parent == folder}
        with output_set(folder, tuple(mine)) as stage:
            for name, make in mine.items():
                make(stage / name)
    drawn = {"tracking": run.plot()} if figures is not None else {}
    if figures is not None:
        with output_set(figures, tuple(f"{name}.png" for name in drawn)) as stage:
            save_figures(lambda: drawn, stage)
    return [*makers, *(figures / f"{name}.png" for name in drawn if figures is not None)]


def _check_files(output: Path | None, truth: Path | None, figures: Path | None) -> None:
    """Refuse outputs that cannot be written, before long work."""
    if output is not None:
        check_log_file(output)
    if truth is not None and truth.suffix != ".npz":
        raise DynidentError(f"truth '{truth}' has the ending '{truth.suffix}'; it is written as .npz")
    for path in (output, truth):
        if path is not None:
            check_output(path)
    if figures is not None:
        check_output(figures, folder=True)
        new_figure(1.0, 1.0)  # fails now if matplotlib is missing
