"""Commands of thermal tests: the plan of a heating or cooling test."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from dynident.cli.consoles import out, print_json
from dynident.cli.excite import limits_for
from dynident.cli.options import AS_WRITTEN, AsJson, Folder, Robot, RobotOptions, check_output
from dynident.errors import DynidentError
from dynident.outputs import output_set
from dynident.trajectory import to_csv
from dynident_lab.thermal.schedules import cooling_test, heating_test


def schedule(
    robot: Robot,
    /,
    *,
    joint: Annotated[str, Parameter(metavar="NAME")],
    output: Folder,
    kind: Annotated[str, Parameter(choices=("heating", "cooling"))] = "heating",
    duty: float = 1.0,
    interval: float | None = None,
    cycles: int | None = None,
    power: Annotated[str, Parameter(choices=("off", "on"))] = "off",
    limits: Path | None = None,
    rate: float = 100.0,
    described: RobotOptions = AS_WRITTEN,
    as_json: AsJson = False,
) -> int:
    """Plan the heating or cooling test of one joint; simulate-campaign or record runs it.

    Example: dynident schedule er3a_c60 --joint joint_4 --duty 0.6 -o plan/

    Parameters
    ----------
    joint
        Joint that is heated or cools down.
    output
        Folder for plan.json and motion.csv.
    kind
        Heating has a test every 2 min, cooling every 5 min.
    duty
        Share of the warming in motion, above 0 and up to 1.
    interval
        Between two tests [s]; 120 heating, 300 cooling.
    cycles
        Tests; 40 heating, 24 cooling.
    power
        Before a heating test. Off: from cold; on: energised for two hours without motion.
    limits
        TOML file with limits.
    rate
        Samples per second of the experiment [Hz].
    """
    if kind == "cooling" and (duty != 1.0 or power != "off"):
        raise DynidentError("--duty and --power apply to heating only; omit them for cooling")
    check_output(output, folder=True)
    mechanism = described.robot(robot)
    room = limits_for(robot, mechanism, limits)
    given = {key: value for key, value in (("interval", interval), ("cycles", cycles)) if value is not None}
    if kind == "heating":
        plan = heating_test(mechanism.name, room, joint, rate, duty=duty, power=power, **given)  # type: ignore[arg-type]
    else:
        plan = cooling_test(mechanism.name, room, joint, rate, **given)  # type: ignore[arg-type]
    with output_set(output, ("plan.json", "motion.csv")) as stage:
        plan.save(stage / "plan.json")
        to_csv(stage / "motion.csv", plan.motion(), plan.coordinates)
    if as_json:
        print_json({"identity": plan.identity, "cycles": plan.cycles, "duration": plan.duration, "notes": dict(plan.notes)})
    else:
        before = ", after two hours with the motors on and without motion" if power == "on" else ""
        out.print(f"{plan.summary()}\n{plan.duration / 60.0:.0f} min in all{before}\nwritten: {output / 'plan.json'}")
    return 0
