"""Commands on the folder of a campaign: identification cycle by cycle, friction with heating, maintenance."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

import dynident as di
from dynident.cli.consoles import out, print_json, print_next, save_figures
from dynident.cli.estimators import (
    NOTHING_KNOWN,
    OF_FACTORS,
    FilterOptions,
    KnownOptions,
    Recovery,
    check_estimator,
    estimator_of,
)
from dynident.cli.machines import DrivesFile, Seed, machine_of, robot_of_plan
from dynident.cli.options import (
    AS_WRITTEN,
    NOT_OK,
    AsJson,
    Folder,
    FrictionLaws,
    OptionalFolder,
    Quiet,
    Robot,
    RobotOptions,
    Strict,
    check_output,
    friction_laws,
    typed,
)
from dynident.cli.progress import progress
from dynident.cli.simulate import NO_LOAD, LoadOptions, OtherBandwidth, OtherController, PlanFile, RobotOption, StepSize
from dynident.errors import DynidentError
from dynident.excitation import Plan
from dynident.outputs import output_set
from dynident_lab import link
from dynident_lab.testbench.checkup import COMPENSATIONS, check_robot
from dynident_lab.testbench.cycles import CycleFits, identify_cycles
from dynident_lab.testbench.friction_compensation import FrictionCompensation
from dynident_lab.testbench.heating import CampaignStudy, campaign_study
from dynident_lab.testbench.repeatability_study import Estimate
from dynident_lab.testbench.repeatability_study import repeatability as compare
from dynident_lab.testbench.report import write_friction_report
from dynident_lab.testbench.study import FrictionStudy

SHOWN = ("my_", "mx_", "Ixx_", "Izz_", "a0_")  # prefixes of the parameters drawn over the cycles
MOST = 12  # limit of these figures
AS_NEEDED = FilterOptions()


def cycles(
    robot: Robot,
    campaign: Path,
    /,
    *,
    output: Folder = Path("cycles_out"),
    cycle: list[int] | None = None,
    friction: FrictionLaws = None,
    estimator: Annotated[str, Parameter(choices=(*OF_FACTORS,))] = "map",
    recovery: Recovery = "auto",
    described: RobotOptions = AS_WRITTEN,
    filtered: FilterOptions = AS_NEEDED,
    known: KnownOptions = NOTHING_KNOWN,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> int:
    """Identify a robot from each cycle of a campaign, with the stages of its plan and the cubic friction law.

    Example: dynident cycles er3a_c60 campaign/ -o fits/

    Parameters
    ----------
    campaign
        Folder of a campaign.
    output
        Folder for cycles.json, the last fit and figures.
    cycle
        Only this cycle, from 0 on; may be given several times.
    estimator
        map: least squares with the description as a prior; the others fit the data alone.
    """
    check_output(output, folder=True)
    told = known.knowledge(described.sidecar)
    check_estimator(estimator, recovery, told)
    least = None if estimator == "map" and told is None else estimator_of(estimator, recovery, told)
    mechanism = described.robot(robot)
    law = friction_laws(mechanism, friction)
    if isinstance(law, dict):
        raise DynidentError("a campaign uses one friction law for all joints; give --friction without joint=")
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


def simulate_campaign(
    plan: PlanFile,
    /,
    *,
    output: Folder,
    robot: RobotOption = None,
    cycles: int | None = None,
    duty: float | None = None,
    fault: list[str] | None = None,
    log_cycle: float = 0.004,
    controller: OtherController = None,
    bandwidth: OtherBandwidth = 10.0,
    drives: DrivesFile = None,
    step: StepSize = None,
    load: LoadOptions = NO_LOAD,
    seed: Seed = 0,
    described: RobotOptions = AS_WRITTEN,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> int:
    """Run the cycles of a plan on a virtual robot; writes the same folder as record.

    Example: dynident simulate-campaign plan/ --robot er3a_c60 --cycles 24 -o healthy/

    Parameters
    ----------
    output
        Folder of the campaign; run again, it continues.
    cycles
        Cycles of the plan; its own number when absent.
    duty
        Share of time in motion, 0 to 1.
    fault
        Friction of a joint times a factor from a time on, as joint_1=1.32@60min; several times.
    log_cycle
        Time between two samples [s].
    """
    check_output(output, folder=True)
    with progress(2, quiet) as announce:
        announce("reading the robot and the plan")
        named = robot if robot is not None else robot_of_plan(plan)
        machine, wanted = machine_of(named, plan, controller, bandwidth, described, drives)
        if not isinstance(wanted, Plan):
            raise DynidentError("a campaign needs a plan, not a motion; give the folder or plan.json of dynident excite")
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
        print_next("identify", named, output, *typed(described), "-o", f"{output}_out")
    return 0


def friction_campaign(mechanism: di.Mechanism, folder: Path, output: Path, options: dict[str, Any]) -> Any:
    """Study the friction of a campaign; write page, numbers and the resulting compensation."""
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


def maintenance(
    robot: Robot,
    campaign: Path,
    /,
    *,
    baseline: list[Path],
    output: OptionalFolder = None,
    compensation: Annotated[str, Parameter(choices=("auto", *COMPENSATIONS))] = "auto",
    false_alarm: float = 0.01,
    window: int = 3,
    strict: Strict = False,
    described: RobotOptions = AS_WRITTEN,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> int:
    """Check the joints of a robot against healthy tests at the same temperature; --strict exits with 3 on an alarm.

    Example: dynident maintenance er3a_c60 today/ --baseline healthy/friction.json -o check/

    Parameters
    ----------
    campaign
        Campaign to check, or friction.json of its study.
    baseline
        friction.json of a healthy test; better five of different days.
    output
        Folder for maintenance.json and figures.
    compensation
        What makes up for the warming: sensors, the thermal model of the healthy campaigns (no sensors), or time.
    false_alarm
        Probability of a false alarm per joint and test.
    window
        Points averaged before they are compared.
    """
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


def repeatability(
    tests: list[Path],
    /,
    *,
    robots: str | None = None,
    tolerance: float = 0.02,
    output: OptionalFolder = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> int:
    """Compare campaigns of several days and robots: drift over the warm-up, spread of cycles, tests and robots.

    Example: dynident repeatability day1/cycles.json day2/cycles.json --robots A,A -o out/

    Parameters
    ----------
    tests
        cycles.json of cycles, or friction.json of friction, one per campaign.
    robots
        Comma-separated robots, one for each campaign; one robot when absent.
    tolerance
        Drift that the recommended warm-up may leave.
    output
        Folder for repeatability.json and figures.
    """
    if output is not None:
        check_output(output, folder=True)
    owners = [name.strip() for name in robots.split(",")] if robots else ["robot"] * len(tests)
    if len(owners) != len(tests):
        raise DynidentError(f"--robots names {len(owners)} robots for {len(tests)} campaigns; give one for each (A,A,B)")
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
    """Return the values of one campaign: parameters per cycle, or friction of every joint at one speed."""
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
    if not path.is_file():
        raise DynidentError(f"there is no study '{path}'; give friction.json of dynident friction")
    found = di.load(path)
    if not isinstance(found, CampaignStudy | FrictionStudy):
        raise DynidentError(f"'{path}' is not a friction study; give friction.json of dynident friction")
    return found
