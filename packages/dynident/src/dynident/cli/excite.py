"""The command excite."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter
from rich.progress import ProgressColumn, Task, TextColumn, TimeElapsedColumn
from rich.progress_bar import ProgressBar

import dynident as di
from dynident.cli.consoles import note, out, print_json, print_next
from dynident.cli.groups import RARE
from dynident.cli.options import (
    AS_WRITTEN,
    AsJson,
    OptionalFolder,
    Quiet,
    RecordedOptions,
    Robot,
    RobotOptions,
    check_output,
    numbers_of,
    typed,
)
from dynident.cli.progress import for_programs, print_progress, shown
from dynident.cli.published import published_limits
from dynident.cli.robots import is_known
from dynident.errors import DynidentError
from dynident.excitation.experiment import PAYLOAD, motion_limits
from dynident.excitation.limits_file import MotionLimits
from dynident.report.plan_page import write_plan_page
from dynident.trajectory.curves import Fourier
from dynident.trajectory.export import REPETITIONS

BEYOND = 1e9  # replaces an infinite relative deviation, which JSON cannot hold
AS_RECORDED = RecordedOptions()


def excite(
    robot: Robot,
    /,
    *,
    limits: Path | None = None,
    speed: float | None = None,
    floor: float | None = None,
    grippers: Annotated[bool, Parameter(group=RARE)] = False,
    no_collision: bool = False,
    criterion: str = "d",
    time_budget: float = 30.0,
    iterations: Annotated[int | None, Parameter(group=RARE)] = None,
    output: OptionalFolder = None,
    starts: Annotated[int | None, Parameter(group=RARE)] = None,
    seed: Annotated[int, Parameter(group=RARE)] = 0,
    frequency: Annotated[float | None, Parameter(group=RARE)] = None,
    harmonics: Annotated[int | None, Parameter(group=RARE)] = None,
    rate: Annotated[float, Parameter(group=RARE)] = 100.0,
    start: Annotated[Path | None, Parameter(group=RARE)] = None,
    offsets: Annotated[str | None, Parameter(group=RARE)] = None,
    scale: Annotated[str | None, Parameter(group=RARE)] = None,
    recorded: list[Path] | None = None,
    payload: float | None = None,
    payload_link: str | None = None,
    complete: bool = False,
    repetitions: Annotated[int, Parameter(group=RARE)] = 1,
    described: RobotOptions = AS_WRITTEN,
    logged: RecordedOptions = AS_RECORDED,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> int:
    """Design an excitation within the limits: writes the plan, its expected precision and a page that shows it.

    Example: dynident excite robot.urdf --limits limits.toml --time-budget 30 -o plan/

    Parameters
    ----------
    limits
        limits.toml, or MoveIt's joint_limits.yaml; it completes the description's limits.
    speed
        Share of the limits of speed and acceleration to use, 0.5 when absent; 1 for all of them.
    floor
        Height below which no body goes [m]; 0, the robot's base, when absent and possible.
    grippers
        Move joints that are named like a gripper, too.
    no_collision
        Do not keep the robot's bodies, as capsules, away from each other.
    criterion
        d, cond, a, e, sigma_min, inverse_det, correlation, or a:1,d:2.
    time_budget
        Time for the search [s].
    iterations
        Steps of every start, instead of a time: the same motion on a busy machine.
    output
        Folder for the plan, the motion and plan.html, which shows them.
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
    offsets
        Mean position of every coordinate, separated by commas, which the search keeps; free when absent.
    scale
        column: the criterion sees columns of unit length.
    recorded
        Log already recorded, to which the motion adds; may be given several times.
    payload
        Design for the parameters of a payload of about this mass [kg]: two plans.
    payload_link
        Link that carries the payload; the last one when absent.
    complete
        Plan the complete test: friction plateaus and warming, 24 cycles of 5 min (dynident-lab).
    repetitions
        Periods of the motion in a row, to average over.
    """
    _sensible(time_budget, iterations, starts, repetitions, complete, payload)
    if output is not None:
        check_output(output, folder=True)
    if start is not None and (frequency is not None or harmonics is not None):
        raise DynidentError("--start has its own frequency and harmonics; omit --frequency and --harmonics")
    mechanism = described.robot(robot)
    read = logged.reader()
    known = None
    if limits is None and floor is None and is_known(robot):
        loaded = None if payload is None else mechanism.with_payload(payload, body=payload_link, name=PAYLOAD, separate=True)
        known = published_limits(str(robot), loaded or mechanism)
    family = Fourier(0.1, 5) if known is None else known.family
    with searching(None if iterations else time_budget, quiet or as_json) as tell:
        made = di.excite(
            mechanism,
            limits if known is None else known.limits,
            source=None if known is None else known.source,
            speed=speed,
            floor=floor,
            grippers=grippers,
            collision=not no_collision,
            family=Fourier(
                family.frequency if frequency is None else frequency,
                family.harmonics if harmonics is None else harmonics,
                family.rest,
            ),
            base=None if known is None else known.base,
            start=start,
            recorded=[read(path) for path in recorded or []],
            payload=payload,
            payload_link=payload_link,
            complete=complete,
            repetitions=repetitions,
            progress=tell,
            criterion=criterion,
            time_budget=time_budget,
            iterations=iterations,
            seed=seed,
            rate=rate,
            scale=scale,
            offsets=numbers_of(offsets, "--offsets"),
            **({} if starts is None else {"starts": starts}),
        )
    files = [] if output is None else [*made.write(output), write_plan_page(output / "plan.html", made)]
    optimum = made.design.optimum
    if as_json:
        print_json({**made.numbers(), "seconds": optimum.seconds, "files": [str(path) for path in files]})
    elif not quiet:
        for text in (*made.notes, f"limits: {made.source}"):
            note(text)
        if not made.improved:
            how = f"{iterations} steps" if iterations else f"{time_budget:g} s"
            more = "--iterations" if iterations else "--time-budget"
            note(f"no improvement in {how}: the best random motion is used; give more {more}, or another --starts or --seed")
        if optimum.cut:
            note("the search ended at its time budget; use --iterations for a reproducible motion")
        out.print(f"{made.summary()}\nsearch: {optimum.seconds:.1f} s, {optimum.starts} starts")
        if files:
            out.print("written: " + ", ".join(str(path) for path in files))
        if output is not None and payload is None:
            print_next("simulate", output, "--robot", robot, *typed(described), "-o", f"{output}_run.csv")
    return 0


def _sensible(
    time_budget: float, iterations: int | None, starts: int | None, repetitions: int, complete: bool, payload: float | None
) -> None:
    """Refuse implausible numbers before any work."""
    if not 0.0 < time_budget < 1e6:
        raise DynidentError(f"--time-budget is {time_budget:g}; give the seconds that the search may take, above zero")
    if iterations is not None and iterations < 1:
        raise DynidentError(f"--iterations is {iterations}; give at least one step")
    if starts is not None and starts < 1:
        raise DynidentError(f"--starts is {starts}; give at least one")
    if not 1 <= repetitions <= REPETITIONS:
        raise DynidentError(f"--repetitions is {repetitions}; give at least one and at most {REPETITIONS}")
    if complete and payload is not None:
        raise DynidentError("--complete and --payload are different experiments; give one of them")


def limits_for(robot: Path, mechanism: di.Mechanism, file: Path | None) -> MotionLimits:
    """Return the limits of a robot: from its document, or from its description and a file."""
    if file is None and is_known(robot):
        return published_limits(str(robot), mechanism).limits
    return motion_limits(mechanism, file)[1]


class _Clock(ProgressColumn):
    """A bar that fills with the time budget, even without progress reports."""

    def render(self, task: Task) -> ProgressBar:
        """Return the bar."""
        return ProgressBar(total=task.total, completed=min(task.elapsed or 0.0, task.total or 0.0), width=30)


@contextmanager
def searching(budget: float | None, quiet: bool) -> Iterator[Callable[[dict[str, Any]], None]]:
    """Yield a function that shows the best value and the tightest limit so far; a bar on a terminal, silent elsewhere."""
    if for_programs():
        print_progress({"step": 0, "of": budget, "text": "looking for motions inside the limits"})

        def line(state: dict[str, Any]) -> None:
            value = ", ".join(f"{name} {number:.5g}" for name, number in state["values"].items())
            text = f"best {value}; tightest limit: {state['limit']}, {state['margin']:.1%} left"
            relative = [min(float(x), BEYOND) for x in state["relative"]]
            known = {"names": state["names"], "relative": relative}
            print_progress({"step": state["seconds"], "of": budget, "text": text, **known})

        yield line
        return
    with shown((_Clock(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False)), quiet) as bar:
        task = bar.add_task("looking for motions inside the limits", total=budget)

        def tell(state: dict[str, Any]) -> None:
            value = ", ".join(f"{name} {number:.5g}" for name, number in state["values"].items())
            bar.update(task, description=f"best {value}; tightest limit: {state['limit']}, {state['margin']:.1%} left")

        yield tell
