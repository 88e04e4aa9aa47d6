"""When what happens in a run, in steps, after checking cycle times and step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dynident.control import OpenLoop
from dynident.errors import SimulationError
from dynident.signals import MINIMUM_SAMPLES
from dynident.simulate.laws import loops_of
from dynident.simulate.stability import log_ticks, ticks

if TYPE_CHECKING:
    from dynident.simulate.options import Options
    from dynident.simulate.reference import Reference
    from dynident.simulate.robot import VirtualRobot

LOG_CYCLE = 1e-3  # recorders are rarely faster [s]
MOST_NUMBERS = 50_000_000  # of a record, 400 MB
MOST_WANTED = 250_000_000  # of the reference at every control cycle, 2 GB


def loop_cycles(controller: Any) -> dict[str, float]:
    """Return the cycle times of a controller by name [s]; none of an open loop."""
    if isinstance(controller, OpenLoop):
        return {}
    loops = loops_of(controller)
    if loops is not None:
        inner = {} if loops.current is None else {"current.cycle": loops.current.cycle}
        return {"position_cycle": loops.position_cycle, "velocity_cycle": loops.velocity_cycle, **inner}
    cycle = controller.cycle
    if isinstance(cycle, bool) or not isinstance(cycle, int | float | np.number) or not 0.0 < cycle < np.inf:
        raise SimulationError(f"controller: cycle is {cycle!r}; give a time in seconds, above zero")
    return {"cycle": float(cycle)}


@dataclass(frozen=True)
class Schedule:
    """When what happens in a run, in steps.

    Parameters
    ----------
    cycles : dict of str to float
        Cycle times of the controller [s].
    every : int
        Steps between two samples of the log.
    rows : int
        Samples of the log.
    finest : int
        Steps between two changes of the motor currents.
    """

    cycles: dict[str, float]
    every: int
    rows: int
    finest: int

    @property
    def steps(self) -> int:
        """Steps from the first sample of the log to the last."""
        return (self.rows - 1) * self.every

    def thinning(self, width: int) -> int:
        """Return how many rows of some width are recorded per sample of the log, so that efforts can be averaged between them.

        One row for every change of the currents where memory allows, fewer otherwise.
        """
        if self.rows * width > MOST_NUMBERS:
            raise SimulationError(
                f"{self.rows} samples of {width} signals are too many for memory; use robot.stream(...), or a longer log_cycle="
            )
        parts = [k for k in range(1, self.every + 1) if self.every % k == 0 and self.every // k >= self.finest]
        return max((k for k in parts if k * self.rows * width <= MOST_NUMBERS // 5), default=1)


def log_every(robot: VirtualRobot, options: Options) -> int:
    """Return the steps between two samples of the log."""
    fastest = min(loop_cycles(robot.controller).values(), default=robot.step)
    usual = fastest * max(1, round(np.ceil(LOG_CYCLE / fastest - 1e-9)))
    return log_ticks(float(usual if options.log_cycle is None else options.log_cycle), robot.step)


def schedule(robot: VirtualRobot, reference: Reference, options: Options, first: int = 0) -> Schedule:
    """Return when what happens in a run that begins at step `first`."""
    step, cycles = robot.step, loop_cycles(robot.controller)
    counts = ticks(cycles, step)
    every = log_every(robot, options)
    if first % every:
        raise SimulationError(
            f"start is at t = {first * step:g} s, which is no sample of a log of {every * step:g} s; give another log_cycle="
        )
    rest = reference.duration - first * step
    duration = rest if options.duration is None else float(options.duration)
    if duration < step * (1.0 - 1e-9):
        raise SimulationError(f"duration = {duration:g} s is shorter than one step of {step:g} s; give duration=")
    total = int(np.floor(duration / step * (1.0 + 1e-12) + 1e-9))
    width = 3 * reference.dof + 2 * len(robot.drives)
    most = MOST_WANTED // width * min(counts.values(), default=every)
    if total > most:
        raise SimulationError(
            f"duration = {duration:g} s is more than memory holds at this cycle; use robot.stream(...), or simulate up to "
            f"{most * step:.3g} s at a time"
        )
    rows = total // every + 1
    if rows < MINIMUM_SAMPLES:
        raise SimulationError(f"log_cycle = {every * step:g} s leaves {rows} samples in {duration:g} s; a log needs at least 4")
    finest = min((count for name, count in counts.items() if name != "current.cycle"), default=every)
    return Schedule(cycles, every, rows, finest)
