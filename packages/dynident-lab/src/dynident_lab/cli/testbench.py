"""Commands of the test bench: friction over speed, temperature and time; the proof of a model in closed loop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import dynident as di
from dynident.cli.consoles import out, print_json, save_figures
from dynident.cli.machines import Bandwidth, Controller, DrivesFile, Seed, no_drives
from dynident.cli.options import AS_LOGGED, AS_WRITTEN, AsJson, Folder, LogOptions, Quiet, Robot, RobotOptions, check_output
from dynident.cli.progress import progress
from dynident.cli.robots import find_robot, is_known
from dynident.drive import read_drives
from dynident.errors import DynidentError
from dynident.files import to_json, write_atomic
from dynident.outputs import output_set
from dynident_lab import campaigns, testbench  # their names load on first use
from dynident_lab.cli.machines import Machine, Results
from dynident_lab.testbench.tracking_case import own_case


def friction(
    robot: Robot,
    logs: list[Path],
    /,
    *,
    logged: LogOptions = AS_LOGGED,
    output: Folder = Path("friction"),
    robots: str | None = None,
    by: str = "auto",
    level: float = 0.6,
    tolerance: float = 0.02,
    shortest: float = 0.25,
    alone: str | None = None,
    described: RobotOptions = AS_WRITTEN,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> int:
    """Study friction: against speed per temperature, over time with warm-up models, time constants, robots compared.

    Example: dynident friction robot.urdf cold.csv warm.csv --effort joint_torque -o friction/

    Parameters
    ----------
    logs
        Logs with constant-speed plateaus in time order, or a campaign.
    output
        Folder for friction.html and friction.json.
    robots
        Comma-separated robots, one for each log, to compare several of one kind.
    by
        How plateaus make curves: auto, temperature, time or all.
    level
        Speed followed over time, as a part of the top speed.
    tolerance
        Drift that the recommended warm-up may leave.
    shortest
        Shortest plateau that counts [s].
    alone
        Joint that moves alone in one log: print its friction by a Kalman filter with m(q) and g(q) of the robot.
    """
    if alone is not None:
        return _alone(described.robot(robot), logs, logged, alone, as_json)
    check_output(output, folder=True)
    options = {"by": by, "level": level, "tolerance": tolerance, "shortest": shortest}
    if len(logs) == 1 and campaigns.is_campaign(logs[0]):
        from dynident_lab.cli.campaigns import friction_campaign  # noqa: PLC0415 - `track` does not need it

        with progress(2, quiet) as step:
            step("studying the campaign cycle by cycle")
            whole = friction_campaign(described.robot(robot), logs[0], output, options)
        if as_json:
            print_json(whole.numbers())
        elif not quiet:
            out.print(whole.summary())
            out.print(f"\nwritten: {output / 'friction.html'}, {output / 'friction.json'}, {output / 'compensation.json'}")
        return 0
    read_log = logged.reader()
    with progress(len(logs) + 3, quiet) as step:
        step("reading the robot")
        mechanism = described.robot(robot)
        read: list[di.Log] = []
        for path in logs:
            step(f"reading {path.name}")
            found = read_log(path)
            read += list(found.cycles().values()) if isinstance(found, campaigns.CampaignLog) else [found]
        step("finding plateaus and fitting")
        owners = None if robots is None else [name.strip() for name in robots.split(",")]
        study = testbench.friction_study(mechanism, read, robots=owners, **options)  # type: ignore[arg-type]
        step("writing the report")
        with output_set(output, ("friction.html", "friction.json")) as stage:
            testbench.write_friction_report(stage / "friction.html", study)
            study.save(stage / "friction.json")
    if as_json:
        print_json(study.numbers())
    elif not quiet:
        out.print(study.summary())
        out.print(f"\nwritten: {output / 'friction.html'}, {output / 'friction.json'}")
    return 0


def _alone(mechanism: di.Mechanism, logs: list[Path], logged: LogOptions, joint: str, as_json: bool) -> int:
    """Print the friction of a joint that moves alone."""
    from dynident_lab.testbench.friction_filter import filter_joint  # noqa: PLC0415 - `track` does not need it

    log = logged.reader()(logs[0])
    if len(logs) > 1 or isinstance(log, campaigns.CampaignLog):
        raise DynidentError(f"--alone {joint} needs one log in which this joint moves alone")
    found = filter_joint(mechanism, log, joint)
    if as_json:
        print_json({"joint": joint, **found.parameters, "consistency": found.consistency, "notes": list(found.notes)})
    else:
        speed = np.abs(found.history[:, 1]).max() * np.array([0.05, 0.1, 0.2, 0.5, 1.0])
        curve = ", ".join(f"{v:.3g}: {f:.4g}" for v, f in zip(speed, found.friction(speed), strict=True))
        out.print(f"friction of {joint} at speeds up to the largest: {curve}")
        out.print(f"B_v v + B_f1 tanh(w_1 v) + B_f2 tanh(w_2 v)\n{found.summary()}")
    return 0


def _tests_table(tests: Sequence[Mapping[str, Any]]) -> str:
    """Return a document's tests as text: result here, of its own model, of its experiment."""
    lines = [f"{'tests of the source':<64}{'found':>9}{'model':>9}{'measured':>10}"]
    for row in tests:
        cells = ["-" if row[key] is None else f"{row[key]:.3g}" for key in ("found", "model", "experiment")]
        what = f"{row['test']}: {row['quantity']} [{row['unit']}]"
        lines.append(f"{what:<64}{cells[0]:>9}{cells[1]:>9}{cells[2]:>10}")
    return "\n".join(lines)


def track(
    machine: Machine,
    /,
    *,
    fit: Path | None = None,
    controller: Controller = "computed_torque",
    bandwidth: Bandwidth = 10.0,
    drives: DrivesFile = None,
    described: RobotOptions = AS_WRITTEN,
    seed: Seed = 0,
    output: Results = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> int:
    """Test an identified model in closed loop: feedback alone, with a catalogue model, with the identified model.

    Example: dynident track dualv -o out/

    Parameters
    ----------
    fit
        fit.json: tried on a ready machine too; of your own robot it counts as true, the description as catalogue.
    """
    if output is not None:
        check_output(output, folder=True)
    if seed < 0:
        raise DynidentError(f"--seed is {seed}; give a whole number, 0 or above")
    with progress(3, quiet) as step:
        step("preparing")
        known = find_robot(machine) if is_known(machine) else None
        if known is not None:
            no_drives(machine, drives)
            if known.proof_case is None:
                raise DynidentError(f"robot '{machine}' has no motions to track; give a description of the robot instead")
            case = known.proof_case(seed)
        else:
            catalogue = described.robot(Path(machine))
            true = catalogue if fit is None else di.Fit.load(fit, catalogue).model
            turned = None if drives is None else read_drives(drives, true)
            case = own_case(true, None if fit is None else catalogue, controller, bandwidth, seed, turned)
        others = {} if known is None or fit is None else {f"model of {fit.name}": di.Fit.load(fit).model}
        step("identifying from its own log, then tracking")
        proof = case.run(seed, others=others)
        tests = [] if known is None or known.compare is None else known.compare()  # tests described in the source
        notes = list(case.options.get("notes", ())) if tests else []  # reasons for different results
        published = {"document_tests": tests, "document_notes": notes} if tests else {}
        numbers = {**proof.numbers(), "conclusion": proof.conclusion(), **published}
        step("writing")
        files = []
        if output is not None:
            with output_set(output, ("tracking.json", "errors_*.png", "largest_errors*.png", "efforts.png")) as stage:
                write_atomic(stage / "tracking.json", to_json(numbers))
                save_figures(lambda: proof.figures(case.published), stage)
                files = [output / path.name for path in sorted(stage.iterdir())]
    if as_json:
        print_json({**numbers, "written": [str(f) for f in files]})
    elif not quiet:
        out.print(case.table(proof))
        if tests:
            out.print("\n" + "\n".join([_tests_table(tests), *(f"note: {text}" for text in notes)]))
        out.print(proof.conclusion())
        if files:
            out.print("written: " + ", ".join(str(path) for path in files))
    return 0
