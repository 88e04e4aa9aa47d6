"""The excite command: design the motion that makes the parameters visible, and write the plan of the experiment."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.progress import ProgressColumn, Task, TextColumn, TimeElapsedColumn
from rich.progress_bar import ProgressBar

import dynident as di
from dynident.cli.consoles import note, out, print_json, save_figures, shown
from dynident.cli.options import (
    AS_LOGGED,
    AS_WRITTEN,
    AsJson,
    LogOptions,
    OptionalFolder,
    Quiet,
    Robot,
    RobotOptions,
    check_output,
)
from dynident.cli.published import published_limits
from dynident.cli.robots import is_known
from dynident.errors import DynidentError
from dynident.excitation.designs import design
from dynident.excitation.limits import Collision
from dynident.excitation.limits_file import assume_limits, limits_of, limits_settings
from dynident.excitation.stages import complete_shares, payload_plan
from dynident.files import read_json, to_json
from dynident.outputs import output_set
from dynident.trajectory.export import REPETITIONS, from_spec, to_csv, to_ros_controller, to_ros_json
from dynident.trajectory.family import Trajectory
from dynident.trajectory.sines import Fourier

if TYPE_CHECKING:
    from dynident.excitation.designs import Design
    from dynident.excitation.limits_file import MotionLimits
    from dynident.excitation.plan import Plan
    from dynident.trajectory.family import Curve

VALIDATIONS = 8  # motions for validation that are tried
PAYLOAD = "payload"  # name of the body that --payload adds
ROS_RATE = 100.0  # points per second of a trajectory message; the controller interpolates
MOST_STAGES = 2  # of a plan whose table of the motion holds the training motion alone; of others it holds the whole cycle
TIGHTEST = 5  # limits shown in the table
FILES = (
    "plan*.json",
    "design.json",
    "motion.csv",
    "motion_ros.json",
    "joint_trajectory_controller.yaml",
    *(f"{figure}.png" for figure in ("motions", "singular_values", "deviations", "tool_path")),
)


def excite(
    robot: Robot,
    /,
    *,
    limits: Path | None = None,
    floor: float | None = None,
    no_collision: bool = False,
    criterion: str = "d",
    time_budget: float = 30.0,
    iterations: int | None = None,
    output: OptionalFolder = None,
    starts: int | None = None,
    seed: int = 0,
    frequency: float | None = None,
    harmonics: int | None = None,
    rate: float = 100.0,
    start: Path | None = None,
    scale: str | None = None,
    recorded: list[Path] | None = None,
    payload: float | None = None,
    payload_link: str | None = None,
    complete: bool = False,
    repetitions: int = 1,
    described: RobotOptions = AS_WRITTEN,
    logged: LogOptions = AS_LOGGED,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> int:
    """Design an exciting motion within limits; prints criterion values, margins and expected standard deviations.

    Example: dynident excite robot.urdf --limits limits.toml --time-budget 30 -o plan/

    Parameters
    ----------
    limits
        limits.toml, or MoveIt's joint_limits.yaml; it completes the description's limits.
    floor
        Height below which no body goes [m], 0 for the robot's base.
    no_collision
        Do not keep the robot's bodies, as capsules, away from each other.
    criterion
        d, cond, a, e, sigma_min, inverse_det, correlation, or a:1,d:2.
    time_budget
        Time for the search [s].
    iterations
        Steps of every start, instead of a time: the same motion on a busy machine.
    output
        Folder for the plan, the motion and figures.
    starts
        Random feasible motions to start from; 12 when absent.
    seed
        Seed of the starts.
    frequency
        Fundamental of the Fourier series [Hz]; 0.1 when absent.
    harmonics
        Harmonics of the Fourier series; 5 when absent.
    rate
        Samples per second of the experiment [Hz].
    start
        plan.json or design.json whose motion is tried first; it must keep the limits.
    scale
        column: the criterion sees columns of unit length.
    recorded
        Log already recorded, to which the motion adds; may be given several times.
    payload
        Design for the parameters of a payload of about this mass [kg]: two plans.
    payload_link
        Link that carries the payload; the last one when absent.
    complete
        Plan the complete test: friction plateaus and warming, 24 cycles of 5 min.
    repetitions
        Periods of the motion in a row, to average over.
    """
    _sensible(time_budget, iterations, starts, repetitions, complete, payload)
    if output is not None:
        check_output(output, folder=True)
    mechanism = described.robot(robot)
    if payload_link is not None and payload is None:
        raise DynidentError("--payload-link says where a payload is; give its mass with --payload too")
    if payload is not None:
        mechanism = mechanism.with_payload(payload, body=payload_link, name=PAYLOAD, separate=True)
    notes: list[str] = []
    mechanism, options, source = _setting(robot, mechanism, limits, floor, not no_collision, frequency, harmonics, start, notes)
    if payload is not None:
        options |= {"goal": (PAYLOAD,), "base": di.base_parameters(mechanism, removable=(PAYLOAD,)) if recorded else None}
    if recorded:
        read = logged.reader()
        logs = [read(path) for path in recorded]
        options |= _known(mechanism, logs, options.get("base"), payload is not None)
    options |= {} if starts is None else {"starts": starts}
    with searching(None if iterations else time_budget, quiet or as_json) as tell:
        result = design(
            mechanism,
            criterion=criterion,
            time_budget=time_budget,
            seed=seed,
            rate=rate,
            scale=scale,
            progress=tell,
            iterations=iterations,
            **options,
        )
    plans = _plans(result, complete, repetitions, payload is not None)
    data = {"robot": mechanism.name, "limits": source, "assumed": notes, **result.numbers()}
    if complete:
        data["complete"] = complete_shares(plans["plan"], result.problem.limits)
    data["plans"] = {
        name: {"identity": plan.identity, "cycle": plan.curve.duration, "cycles": plan.cycles, "duration": plan.duration}
        for name, plan in plans.items()
    }
    files = [] if output is None else _write(result, plans, data, output)
    seconds = result.optimum.seconds
    if as_json:
        print_json({**data, "seconds": seconds, "files": [str(path) for path in files]})
    elif not quiet:
        for text in (*notes, f"limits: {source}"):
            note(text)
        if _same(data["before"], data["after"]):
            how = f"{iterations} steps" if iterations else f"{time_budget:g} s"
            more = "--iterations" if iterations else "--time-budget"
            note(f"no improvement in {how}: the best random motion is kept; give more {more}, or other --starts or --seed")
        if result.optimum.cut:
            note("the time budget ended the search; --iterations gives the same motion whenever it is run")
        out.print(f"{_text(data)}\nsearch: {seconds:.1f} s, {result.optimum.starts} starts")
        if files:
            out.print("written: " + ", ".join(str(path) for path in files))
    return 0


def _sensible(
    time_budget: float, iterations: int | None, starts: int | None, repetitions: int, complete: bool, payload: float | None
) -> None:
    """Refuse numbers that cannot be meant, before any work."""
    if not 0.0 < time_budget < 1e6:
        raise DynidentError(f"--time-budget is {time_budget:g}; give the seconds that the search may take, above zero")
    if iterations is not None and iterations < 1:
        raise DynidentError(f"--iterations is {iterations}; give at least one step")
    if starts is not None and starts < 1:
        raise DynidentError(f"--starts is {starts}; give at least one")
    if not 1 <= repetitions <= REPETITIONS:
        raise DynidentError(f"--repetitions is {repetitions}; give at least one and at most {REPETITIONS}")
    if complete and payload is not None:
        raise DynidentError("--complete and --payload are two different experiments; ask for one of them")


def _setting(
    robot: Path,
    mechanism: di.Mechanism,
    limits: Path | None,
    floor: float | None,
    collision: bool,
    frequency: float | None,
    harmonics: int | None,
    start: Path | None,
    notes: list[str],
) -> tuple[di.Mechanism, dict[str, Any], str]:
    """Return the robot that moves; limits, family, start and base parameters; and where the limits come from."""
    options: dict[str, Any] = {}
    family = Fourier(0.1, 5)
    if limits is None and floor is None and is_known(robot):
        known = published_limits(str(robot), mechanism)
        options["limits"], source, family = known.limits, known.source, known.family
        if known.base is not None:
            options["base"] = known.base
    else:
        mechanism, options["limits"] = _limits(mechanism, limits, floor, collision, notes)
        source = "those of the description" if limits is None else f"the description's, completed by {limits}"
    options["family"] = Fourier(
        family.frequency if frequency is None else frequency,
        family.harmonics if harmonics is None else harmonics,
        family.rest,
    )
    if start is not None:
        if frequency is not None or harmonics is not None:
            raise DynidentError("--start brings its own frequency and harmonics; leave out --frequency and --harmonics")
        first = _first(start)
        options["family"], options["start"] = first.family, first.vector
    return mechanism, options, source


def _limits(
    mechanism: di.Mechanism, limits: Path | None, floor: float | None, collision: bool, notes: list[str]
) -> tuple[di.Mechanism, MotionLimits]:
    """Return the robot without a free base and its limits, those that nobody gave assumed and said."""
    settings = {} if limits is None else limits_settings(limits)
    if floor is not None:
        settings["floor"] = floor
    automatic = collision and "capsule" not in settings
    if automatic:
        settings["capsule"] = "auto"
    assumed = assume_limits(mechanism, settings)
    notes += assumed.notes
    found = limits_of(assumed.mechanism, assumed.settings)
    kept = next((limit for limit in found.others if isinstance(limit, Collision)), None)
    if automatic and kept is not None:
        pairs = f"{len(kept.pairs)} pairs of bodies are" if len(kept.pairs) > 1 else "one pair of bodies is"
        notes.append(
            f"{pairs} kept apart as capsules with the bodies' inertia; --no-collision leaves "
            "that out, [[capsule]] in a limits file gives better shapes"
        )
    if "floor" not in settings and "tool" not in settings:
        notes.append("no floor was given: --floor 0 keeps all bodies above the robot's base")
    return assumed.mechanism, found


def limits_for(robot: Path, mechanism: di.Mechanism, file: Path | None) -> MotionLimits:
    """Return the limits of a robot: those of its document, or of its description and a file."""
    if file is None and is_known(robot):
        return published_limits(str(robot), mechanism).limits
    return _limits(mechanism, file, None, False, [])[1]


def _known(mechanism: di.Mechanism, logs: list[di.Log], base: di.BaseParameters | None, payload: bool) -> dict[str, Any]:
    """Return the information of recorded logs and their noise, to which the new motion adds; they were without the payload."""
    evidence: di.Regression | None = None
    for log in logs:
        known = base if evidence is None else evidence.base
        found = di.Regression.from_log(mechanism, log, known, absent=(PAYLOAD,) if payload else ())
        evidence = found if evidence is None else evidence + found
    assert evidence is not None, "called with at least one log"
    return {"evidence": evidence, "base": evidence.base, "noise": di.WLS().fit(evidence).result_.sigma}


def _first(path: Path) -> Any:
    """Return the trajectory of a plan.json or design.json."""
    try:
        data = read_json(path, "a motion")
        curve = from_spec(data["stages"][0]["motion"] if "stages" in data else data["trajectory"])
    except (ValueError, KeyError, IndexError, TypeError) as error:
        raise DynidentError(f"--start '{path}' holds no motion ({error}); give a plan.json or design.json") from error
    if not isinstance(curve, Trajectory):
        raise DynidentError(f"--start '{path}' does not start with an exciting motion; give one of the excite command")
    return curve


class _Clock(ProgressColumn):
    """A bar that fills with the time budget by itself, also while nothing is reported."""

    def render(self, task: Task) -> ProgressBar:
        """Return the bar."""
        return ProgressBar(total=task.total, completed=min(task.elapsed or 0.0, task.total or 0.0), width=30)


@contextmanager
def searching(budget: float | None, quiet: bool) -> Iterator[Callable[[dict[str, Any]], None]]:
    """Yield a function that shows the best value and the tightest limit so far; a bar on a terminal, nothing elsewhere."""
    with shown((_Clock(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False)), quiet) as bar:
        task = bar.add_task("looking for motions inside the limits", total=budget)

        def tell(state: dict[str, Any]) -> None:
            value = ", ".join(f"{name} {number:.5g}" for name, number in state["values"].items())
            bar.update(task, description=f"best {value}; tightest limit: {state['limit']}, {state['margin']:.1%} left")

        yield tell


def _plans(found: Design, complete: bool, repetitions: int, payload: bool) -> dict[str, Plan]:
    """Return the plans by file name: training and validation, or the complete test, or runs without and with the payload."""
    refused: DynidentError | None = None
    for seed in range(1, VALIDATIONS + 1):  # a limit may lie between one motion and the next
        other: Curve = found.validation(seed)
        try:
            if not payload:
                return {"plan": found.plan(complete=complete, validation=other, repetitions=repetitions)}
            assert found.mechanism is not None, "the command always has a robot"
            limits, motion, notes_ = found.problem.limits, found.trajectory, found.numbers(short=True)
            times = max(repetitions, 1)
            bare, loaded = payload_plan(found.mechanism.name, limits, motion, found.rate, PAYLOAD, times, other, notes_)
        except DynidentError as error:
            refused = refused or error
            continue
        return {"plan_without": bare, "plan_with": loaded}
    assert refused is not None, "at least one was tried"
    raise refused


def _same(before: dict[str, float], after: dict[str, float]) -> bool:
    """Return whether the search left the criteria as they were."""
    return all(abs(after[name] - x) <= 1e-3 * abs(x) for name, x in before.items())


def _text(data: dict[str, Any]) -> str:
    """Return criterion values before and after, the tightest limits and the plans as lines."""
    lines = [f"{'criterion':<14} {'before':>12} {'after':>12}"]
    lines += [f"{name:<14} {data['before'][name]:>12.5g} {value:>12.5g}" for name, value in data["after"].items()]
    tight = sorted(data["margins"].items(), key=lambda item: item[1])[:TIGHTEST]
    lines += ["tightest limits (share of the limit that is left):", *(f"  {name:<32} {value:.2%}" for name, value in tight)]
    for name, plan in data["plans"].items():
        cycles = f"{plan['cycles']} cycles, {plan['duration'] / 60.0:.0f} min" if plan["cycles"] > 1 else "one cycle"
        lines.append(f"{name} {plan['identity']}: {cycles}, {plan['cycle']:.1f} s of motion in each")
    if "complete" in data:
        head = ("full speed", "longest plateau", "at top speed", "warming: speed", "range")
        lines.append(f"{'complete test':<16}" + "".join(f"{text:>17}" for text in head))
        for joint, row in data["complete"].items():
            cells = [f"{row[key]:.0%}" if key not in ("plateau", "fastest_plateau") else f"{row[key]:.2f} s" for key in row]
            lines.append(f"  {joint:<14}" + "".join(f"{text:>17}" for text in cells))
    return "\n".join(lines)


def _approach(plan: Plan) -> float:
    """Return a time in which every joint gets anywhere at less than half its speed limit, by a quintic."""
    lower, upper = (
        np.full(len(plan.coordinates), x) if b is None else b for b, x in ((plan.lower, -np.pi), (plan.upper, np.pi))
    )
    way = np.where(np.isfinite(upper - lower), upper - lower, 2.0 * np.pi)
    return max(3.0, float(np.ceil(np.max(way / (0.25 * plan.speed)))))


def _write(found: Design, plans: dict[str, Plan], data: dict[str, Any], folder: Path) -> list[Path]:
    """Write plans, motion and figures as one set."""
    names = found.problem.limits.coordinates
    with output_set(folder, FILES) as staged:
        for name, plan in plans.items():
            plan.save(staged / f"{name}.json")
        whole = next(iter(plans.values()))
        to_csv(staged / "motion.csv", whole.motion() if len(whole.stages) > MOST_STAGES else found.motion(), names)
        to_ros_json(staged / "motion_ros.json", whole.motion(min(whole.rate, ROS_RATE)), names, approach=_approach(whole))
        (staged / "joint_trajectory_controller.yaml").write_text(to_ros_controller(names), encoding="utf-8")
        (staged / "design.json").write_text(to_json(data), encoding="utf-8")
        save_figures(found.figures, staged)
        return [folder / path.name for path in sorted(staged.iterdir())]
