"""What commands do with the folder of a campaign: identification cycle by cycle, friction with heating, maintenance."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

import dynident as di
from dynident.cli.consoles import out, print_json, progress
from dynident.cli.estimators import OF_FACTORS, FilterOptions, Recovery, check_estimator, estimator_of
from dynident.cli.known import Centre, Mass, PopulationFile, TotalMass, Without, knowledge
from dynident.cli.machines import DrivesFile, Seed, machine_of, robot_of_plan, save_figures
from dynident.cli.shared import (
    AS_WRITTEN,
    EXPERIMENTS,
    NOT_OK,
    Arg,
    AsJson,
    Debug,
    FrictionLaws,
    Quiet,
    Robot,
    RobotOptions,
    Search,
    Sidecar,
    Strict,
    Terms,
    app,
    check_output,
    friction_laws,
)
from dynident.cli.simulate import NO_LOAD, LoadOptions, OtherBandwidth, OtherController, PlanFile, RobotOption, StepSize
from dynident.cli.structure import choices
from dynident.errors import DynidentError
from dynident.outputs import output_set

SHOWN = ("my_", "mx_", "Ixx_", "Izz_", "a0_")  # beginnings of parameters that are drawn over the cycles
MOST = 12  # such figures
AS_NEEDED = FilterOptions()


@app.command(panel=EXPERIMENTS, epilog="Example: dynident cycles er3a_c60 campaign/ -o fits/")
def cycles(
    robot: Robot,
    campaign: Annotated[Path, typer.Argument(help="Folder of a campaign.", show_default=False)],
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for cycles.json, the last fit and figures.")] = Path(
        "cycles_out"
    ),
    cycle: Annotated[list[int] | None, typer.Option(help="Only this cycle, from 0 on; may be given several times.")] = None,
    friction: FrictionLaws = None,
    estimator: Annotated[
        str, choices("Map weighs the description as a belief; the others fit the data alone.", *OF_FACTORS)
    ] = "map",
    recovery: Recovery = "auto",
    described: RobotOptions = AS_WRITTEN,
    terms: Terms = None,
    filtered: FilterOptions = AS_NEEDED,
    mass: Mass = None,
    total_mass: TotalMass = None,
    centre: Centre = None,
    without: Without = None,
    population: PopulationFile = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> int:
    """Identify a robot from each cycle of a campaign, with the stages of its plan and the cubic friction law."""
    from dynident_lab.testbench.cycles import identify_cycles  # noqa: PLC0415 - only this command needs it

    check_output(output, folder=True)
    known = knowledge(described.sidecar, mass, total_mass, centre, without, population)
    check_estimator(estimator, recovery, known)
    if estimator not in OF_FACTORS:
        raise DynidentError(f"a campaign is fitted by {', '.join(OF_FACTORS)}, not by '{estimator}'")
    least = None if estimator == "map" and known is None else estimator_of(estimator, recovery, known)
    mechanism = described.robot(robot, terms)
    law = friction_laws(mechanism, friction)
    if isinstance(law, dict):
        raise DynidentError("a campaign is fitted with one friction law for all joints; give --friction without joint=")
    fits, last = identify_cycles(mechanism, campaign, law, cycles=cycle, estimator=least, **filtered.options())
    with output_set(output, ("cycles.json", "repeatability.json", "fit.json", "cycle_*.png")) as stage:
        fits.save(stage / "cycles.json")
        last.save(stage / "fit.json")
        if len(fits.cycles) > MOST // 2:
            fits.repeatability().save(stage / "repeatability.json")
        names = [name for name in fits.names if name.startswith(SHOWN)][:MOST]
        save_figures(lambda: {f"cycle_{name}": fits.plot(name) for name in names}, stage)
        written = [output / file.name for file in sorted(stage.iterdir())]
    if as_json:
        print_json(fits.to_dict())
    elif not quiet:
        out.print(fits.summary())
        out.print(f"\nfit.json is of cycle {fits.cycles[-1]}\nwritten: {', '.join(map(str, written))}")
    return 0


@app.command(
    "simulate-campaign",
    panel=EXPERIMENTS,
    epilog="Example: dynident simulate-campaign plan/ --robot er3a_c60 --cycles 24 -o healthy/",
)
def simulate_campaign(
    plan: PlanFile,
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder of the campaign; run again, it goes on where it was.")],
    robot: RobotOption = None,
    cycles: Annotated[int | None, typer.Option(help="Cycles of the plan; its own number when absent.")] = None,
    duty: Annotated[float | None, typer.Option(help="Share of time in motion, 0 to 1.")] = None,
    fault: Annotated[
        list[str] | None,
        typer.Option(help="Friction of a joint times a factor from a time on, as joint_1=1.32@60min; several times."),
    ] = None,
    log_cycle: Annotated[float, typer.Option(help="Time between two samples [s].")] = 0.004,
    controller: OtherController = None,
    bandwidth: OtherBandwidth = 10.0,
    drives: DrivesFile = None,
    step: StepSize = None,
    load: LoadOptions = NO_LOAD,
    seed: Seed = 0,
    sidecar: Sidecar = None,
    search: Search = None,
    arg: Arg = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> int:
    """Run the cycles of a plan on a virtual robot, into the folder that record would have written."""
    from dynident.excitation import Plan  # noqa: PLC0415 - only this command needs it
    from dynident_lab import link  # noqa: PLC0415 - only this command needs it

    check_output(output, folder=True)
    with progress(2, quiet) as announce:
        announce("reading the robot and the plan")
        named = robot if robot is not None else robot_of_plan(plan)
        machine, wanted = machine_of(named, sidecar, plan, controller, bandwidth, search, arg, drives)
        if not isinstance(wanted, Plan):
            raise DynidentError("a campaign repeats a plan; give the folder or plan.json of dynident excite, not a motion")
        machine = load.on(machine if step is None else replace(machine, step=step))
        settings = link.Settings.of(wanted, {"cycles": cycles, "duty": duty})
        announce("simulating")

        def tell(done: int, whole: int) -> None:
            announce(f"simulating: {done} of {whole} cycles", advance=0)

        faults = [link.Fault.parse(text) for text in fault or ()]
        begin = time.perf_counter()
        new = link.simulate_campaign(
            output, wanted, machine, settings, period=log_cycle, seed=seed, faults=faults, progress=tell
        )
        seconds = time.perf_counter() - begin
    count = settings.cycles or wanted.cycles
    if as_json:
        print_json({"folder": str(output), "plan": wanted.identity, "cycles": count, "new": new, "seconds": seconds})
    elif not quiet:
        times = f"{count} {'cycles' if count > 1 else 'cycle'}"
        out.print(f"{times} in '{output}', {new} new, in {seconds:.3g} s")
        out.print(f"next: dynident friction ROBOT {output} -o study/    dynident cycles ROBOT {output} -o fits/")
    return 0


def friction_campaign(mechanism: di.Mechanism, folder: Path, output: Path, options: dict[str, Any]) -> Any:
    """Study the friction of a campaign; write page, numbers and the compensation that follows from them."""
    from dynident_lab.testbench.friction_compensation import FrictionCompensation  # noqa: PLC0415
    from dynident_lab.testbench.heating import campaign_study  # noqa: PLC0415
    from dynident_lab.testbench.report import write_friction_report  # noqa: PLC0415

    found = campaign_study(mechanism, folder, **options)
    with output_set(output, ("friction.html", "friction.json", "compensation*", "heating_*.png")) as stage:
        write_friction_report(stage / "friction.html", found.study)
        found.save(stage / "friction.json")
        if found.heating:
            compensation = FrictionCompensation.of(found)
            compensation.save(stage / "compensation.json")
            compensation.to_c(stage)
        save_figures(lambda: {f"heating_{entry.joint}": entry.plot() for entry in found.heating}, stage)
    return found


@app.command(
    panel=EXPERIMENTS, epilog="Example: dynident maintenance er3a_c60 today/ --baseline healthy/friction.json -o check/"
)
def maintenance(
    robot: Robot,
    campaign: Annotated[Path, typer.Argument(help="Campaign to check, or friction.json of its study.", show_default=False)],
    baseline: Annotated[
        list[Path], typer.Option(help="friction.json of a healthy test; better five of different days.", show_default=False)
    ],
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Folder for maintenance.json and figures.")] = None,
    compensation: Annotated[str, choices("What makes up for the warming.", "auto", "temperature", "time", "none")] = "auto",
    false_alarm: Annotated[float, typer.Option(help="Probability of a false alarm per joint and test.")] = 0.01,
    window: Annotated[int, typer.Option(help="Points averaged before they are compared.")] = 3,
    strict: Strict = False,
    described: RobotOptions = AS_WRITTEN,
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> int:
    """Check the joints of a robot against healthy tests at the same temperature; --strict exits with 3 on an alarm."""
    from dynident_lab.testbench.checkup import check_robot  # noqa: PLC0415 - only this command needs it
    from dynident_lab.testbench.heating import campaign_study  # noqa: PLC0415 - only this command needs it

    if output is not None:
        check_output(output, folder=True)
    with progress(3, quiet) as step:
        step("reading the baseline")
        healthy = [_study(path) for path in baseline]
        step("studying the friction")
        test = _study(campaign) if campaign.is_file() else campaign_study(described.robot(robot), campaign)
        step("comparing")
        found = check_robot(test, healthy, compensation=compensation, false_alarm=false_alarm, window=window)
        if output is not None:
            with output_set(output, ("maintenance.json", "maintenance_*.png")) as stage:
                found.save(stage / "maintenance.json")
                names = [entry.history.joint for entry in found.joints]
                save_figures(lambda: {f"maintenance_{name}": found.plot(name) for name in names}, stage)
    if as_json:
        print_json(found.to_dict())
    elif not quiet:
        out.print(found.summary())
        out.print(f"temperature compensated by: {found.compensation}; alarms: {', '.join(found.alarms) or 'none'}")
    return NOT_OK if strict and found.alarms else 0


@app.command(panel=EXPERIMENTS, epilog="Example: dynident repeatability day1/cycles.json day2/cycles.json --robots A,A -o out/")
def repeatability(
    tests: Annotated[
        list[Path],
        typer.Argument(help="cycles.json of cycles, or friction.json of friction, one per campaign.", show_default=False),
    ],
    robots: Annotated[str | None, typer.Option(help="Robot of each campaign, by commas; all the same when absent.")] = None,
    tolerance: Annotated[float, typer.Option(help="Drift that the recommended warm-up may leave.")] = 0.02,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Folder for repeatability.json and figures.")] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> int:
    """Compare campaigns of several days and robots: drift over the warm-up, spread of cycles, tests and robots."""
    from dynident_lab.testbench.repeatability_study import repeatability as compare  # noqa: PLC0415 - only this command needs it

    if output is not None:
        check_output(output, folder=True)
    owners = [name.strip() for name in robots.split(",")] if robots else ["robot"] * len(tests)
    if len(owners) != len(tests):
        raise DynidentError(f"--robots names {len(owners)} robots for {len(tests)} campaigns; name one for each, by commas")
    rows = [row for path, owner in zip(tests, owners, strict=True) for row in _estimates(path, owner)]
    found = compare(rows, tolerance)
    if output is not None:
        with output_set(output, ("repeatability.json", "repeat_*.png")) as stage:
            found.save(stage / "repeatability.json")
            names = [p.name for p in found.parameters if p.name.startswith((*SHOWN, "friction_"))][:MOST]
            save_figures(lambda: {f"repeat_{name}": found.plot(name) for name in names}, stage)
    if as_json:
        print_json(found.to_dict())
    elif not quiet:
        out.print(found.summary())
    return 0


def _estimates(path: Path, robot: str) -> list[Any]:
    """Return the rows of one campaign: parameters per cycle, or friction of every joint at one speed."""
    from dynident_lab.testbench.cycles import CycleFits  # noqa: PLC0415 - only this command needs it
    from dynident_lab.testbench.heating import CampaignStudy  # noqa: PLC0415 - only this command needs it
    from dynident_lab.testbench.repeatability_study import Estimate  # noqa: PLC0415 - only this command needs it

    if not path.is_file():
        raise DynidentError(f"there is no file '{path}'; give cycles.json of dynident cycles or friction.json of friction")
    found = di.load(path)
    test = path.parent.name or path.stem
    if isinstance(found, CycleFits):
        return found.estimates(robot, test)
    if isinstance(found, CampaignStudy):
        histories = [entry.history for entry in found.study.joints]
        shortest = min(len(history) for history in histories)
        return [
            Estimate(robot, test, float(histories[0].t[k]), {f"friction_{h.joint}": float(h.friction[k]) for h in histories})
            for k in range(shortest)
        ]
    raise DynidentError(
        f"'{path}' is a {type(found).__name__}; give cycles.json of dynident cycles or friction.json of friction"
    )


def _study(path: Path) -> Any:
    """Return a friction study of a file."""
    from dynident_lab.testbench.heating import CampaignStudy  # noqa: PLC0415 - only this command needs it
    from dynident_lab.testbench.study import FrictionStudy  # noqa: PLC0415 - only this command needs it

    if not path.is_file():
        raise DynidentError(f"there is no study '{path}'; give friction.json of dynident friction")
    found = di.load(path)
    if not isinstance(found, CampaignStudy | FrictionStudy):
        raise DynidentError(f"'{path}' is no friction study; give friction.json of dynident friction")
    return found
