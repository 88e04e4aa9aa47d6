"""How a run is made (`Options`), when what happens in it (`Schedule`), and from where another goes on (`End`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynident.checks import choice, number
from dynident.control.laws import OpenLoop
from dynident.errors import SimulationError
from dynident.signals.log import MINIMUM_SAMPLES
from dynident.simulate.laws import loops_of, whole_steps
from dynident.simulate.start import Start
from dynident.simulate.thermal import Heat

if TYPE_CHECKING:
    from dynident.simulate.inputs import Reference
    from dynident.simulate.robot import VirtualRobot

Array = NDArray[np.float64]
Progress = Callable[[float, float], object]
METHODS = ("coupled", "decoupled")
LOOPS = ("exact", "iterated", "delayed")
LOG_CYCLE = 1e-3  # recorders are rarely faster [s]
LONGEST_CYCLE = 1e9  # steps between two samples of a log
MOST_NUMBERS = 50_000_000  # of a record, 400 MB
MOST_STEPS = 2e8  # of one run: minutes
MOST_WANTED = 250_000_000  # of the reference at every control cycle, 2 GB


@dataclass(frozen=True, eq=False, repr=False)
class End:
    """Everything at the end of a run; ``simulate(..., start=run.end)`` goes on as if it had not ended."""

    time: float  # When it ended, counted from the start of the first run [s]
    state: Mapping[str, Array]
    origin: Array  # Where the first run started
    noise: Mapping[str, dict[str, Any]]  # States of the random generators
    heat: Heat | None = None  # Temperatures of all thermal zones
    tail: Array = field(default_factory=lambda: np.zeros((0, 0)))
    last_noise: Array | None = None  # Noise of the last tick of the sensors, where the run ended between two ticks

    def __repr__(self) -> str:
        return f"End(t = {self.time:g} s, {', '.join(self.state)})"

    def rested(self, duration: float) -> End:
        """Return the same after standing still for some time: only temperatures have changed."""
        return replace(self, heat=None if self.heat is None else self.heat.rested(duration))

    def to_dict(self) -> dict[str, Any]:
        """Return plain data from which `from_dict` makes the same state, to the last bit; infinity as Python writes it."""
        return {
            "time": self.time,
            "state": {name: np.asarray(values).tolist() for name, values in self.state.items()},
            "origin": self.origin.tolist(),
            "noise": {name: dict(state) for name, state in self.noise.items()},
            "heat": None if self.heat is None else self.heat.memory(),
            "tail": {"shape": list(self.tail.shape), "values": self.tail.ravel().tolist()},
            "last_noise": None if self.last_noise is None else self.last_noise.tolist(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], robot: VirtualRobot) -> End:
        """Return the state that `to_dict` described."""
        try:
            heat = None if data["heat"] is None else Heat(robot)
            if heat is not None:
                heat.remember(data["heat"])
            return cls(
                float(data["time"]),
                {str(name): np.array(values, dtype=np.float64) for name, values in data["state"].items()},
                np.array(data["origin"], dtype=np.float64),
                {str(name): dict(state) for name, state in data["noise"].items()},
                heat,
                np.array(data["tail"]["values"], dtype=np.float64).reshape(data["tail"]["shape"]),
                None if data["last_noise"] is None else np.array(data["last_noise"], dtype=np.float64),
            )
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise SimulationError(f"the state of the machine cannot be read ({error}); start the run again") from error


@dataclass(frozen=True, eq=False)
class Options:
    """How to make a run; see `VirtualRobot.simulate`."""

    start: Start | End | None = None
    duration: float | None = None
    method: str = "coupled"
    loop: str = "exact"
    integrator: str = "rk4"
    seed: int | np.random.SeedSequence = 0
    log_cycle: float | None = None
    disturbance: Any = None
    wrenches: Any = None
    thermal_cycle: float = 1.0
    progress: Progress | None = None

    def __post_init__(self) -> None:
        for label, choices in (("method", METHODS), ("loop", LOOPS)):
            choice(label, getattr(self, label), choices, SimulationError)
        for label in ("duration", "log_cycle", "thermal_cycle"):
            if getattr(self, label) is not None:
                number(label, getattr(self, label), above=0.0, unit="s", kind=SimulationError)
        if self.progress is not None and not callable(self.progress):
            raise SimulationError(f"progress is a {type(self.progress).__name__}; give a function of (seconds done, seconds)")


def ticks(cycles: Mapping[str, float], step: float) -> dict[str, int]:
    """Return how many steps each cycle takes, all of them whole numbers."""
    for name, cycle in cycles.items():
        if not whole_steps(cycle, step):
            better = _common(list(cycles.values()), step)
            what = f"give VirtualRobot(step={better:.9g})" if better else "make the cycle times multiples of each other"
            raise SimulationError(
                f"{name} = {cycle:g} s is {cycle / step:.6g} times the step {step:g} s, not a whole multiple; {what}"
            )
    return {name: round(cycle / step) for name, cycle in cycles.items()}


def log_every(robot: VirtualRobot, options: Options) -> int:
    """Return the whole number of steps between two samples of the log."""
    step, fastest = robot.step, min(loop_cycles(robot.controller).values(), default=robot.step)
    usual = fastest * max(1, round(np.ceil(LOG_CYCLE / fastest - 1e-9)))
    cycle = float(usual if options.log_cycle is None else options.log_cycle)
    count, ratio = whole_steps(cycle, step), cycle / step
    if not ratio < LONGEST_CYCLE:
        raise SimulationError(f"log_cycle = {cycle:g} s is {ratio:.6g} steps of {step:g} s; give fewer than {LONGEST_CYCLE:g}")
    if not count:
        near = max(1, round(ratio)) * step
        raise SimulationError(
            f"log_cycle = {cycle:g} s is {ratio:.6g} steps of {step:g} s, not a whole number; give log_cycle={near:.9g}"
        )
    return count


def _common(cycles: Sequence[float], step: float) -> float:
    """Return the step nearest to the given one of which all cycles are whole multiples; 0 when there is none."""
    fastest = min(cycles)
    first = max(1, round(fastest / step))
    for offset in range(1000):
        for count in {first - offset, first + offset}:
            if count < 1:
                continue
            if all(whole_steps(cycle, fastest / count) for cycle in cycles):
                return fastest / count
    return 0.0


def loop_cycles(controller: Any) -> dict[str, float]:
    """Return the cycle times of a controller by name [s]; none of an open loop."""
    if isinstance(controller, OpenLoop):
        return {}
    loops = loops_of(controller)
    if loops is not None:
        inner = {} if loops.current is None else {"current.cycle": loops.current.cycle}
        return {"position_cycle": loops.position_cycle, "velocity_cycle": loops.velocity_cycle, **inner}
    return {"cycle": number("controller: cycle", controller.cycle, above=0.0, unit="s", kind=SimulationError)}


@dataclass(frozen=True)
class Schedule:
    """When what happens in a run, in steps."""

    cycles: dict[str, float]  # cycle times of the controller [s]
    every: int  # steps between two samples of the log
    rows: int  # samples of the log
    finest: int  # steps between two changes of the motor currents

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


def rhythm(robot: VirtualRobot, options: Options) -> tuple[dict[str, float], int, int]:
    """Return the cycle times of the controller [s], the steps between two samples of the log, and between two commands."""
    cycles = loop_cycles(robot.controller)
    counts, every = ticks(cycles, robot.step), log_every(robot, options)
    return cycles, every, min((count for name, count in counts.items() if name != "current.cycle"), default=every)


def schedule(robot: VirtualRobot, reference: Reference, options: Options, first: int = 0) -> Schedule:
    """Return when what happens in a run that begins at step `first`."""
    step = robot.step
    cycles, every, finest = rhythm(robot, options)
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
    most = MOST_WANTED // width * min((round(cycle / step) for cycle in cycles.values()), default=every)
    if total > most:
        raise SimulationError(
            f"duration = {duration:g} s is more than memory holds at this cycle; use robot.stream(...), or simulate up to "
            f"{most * step:.3g} s at a time"
        )
    if total > MOST_STEPS:
        raise SimulationError(
            f"duration = {duration:g} s has {duration / step:.3g} steps of {step:g} s, more than the {MOST_STEPS:g} of one "
            "run; give a longer step, or simulate it in pieces"
        )
    rows = total // every + 1
    if rows < MINIMUM_SAMPLES:
        raise SimulationError(f"log_cycle = {every * step:g} s leaves {rows} samples in {duration:g} s; a log needs at least 4")
    return Schedule(cycles, every, rows, finest)
