"""One run of a virtual robot: checks, tables, the compiled simulation in one piece or in stretches, and what it leaves."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynident.control import PID, Cascade, ComputedTorque, OpenLoop
from dynident.errors import SimulationError, SimulationWarning
from dynident.mechanism import Mechanism
from dynident.signals.log import MINIMUM_SAMPLES
from dynident.simulate.energy import energies
from dynident.simulate.inputs import disturbance_of, wrench_tables
from dynident.simulate.model import joint_side
from dynident.simulate.reference import Reference
from dynident.simulate.sensors import Readings, streams
from dynident.simulate.stability import check_step, log_ticks, ticks
from dynident.simulate.start import Start, start_state
from dynident.simulate.state import State, put_state, take_state
from dynident.simulate.stretch import Stretch

if TYPE_CHECKING:
    from dynident.simulate.plant import Assembly
    from dynident.simulate.robot import VirtualRobot

Array = NDArray[np.float64]

METHODS = ("coupled", "decoupled")
LOOPS = ("exact", "iterated", "delayed")
LOG_CYCLE = 1e-3  # recorders are rarely faster [s]
MOST_NUMBERS = 50_000_000  # of a record, 400 MB
MOST_WANTED = 250_000_000  # of the reference at every control cycle, 2 GB


@dataclass(frozen=True, eq=False)
class Options:
    """How to make a run; see `VirtualRobot.simulate`."""

    start: Start | State | None = None
    duration: float | None = None
    method: str = "coupled"
    loop: str = "exact"
    integrator: str = "rk4"
    seed: int | np.random.SeedSequence = 0
    log_cycle: float | None = None
    disturbance: Any = None
    wrenches: Any = None
    thermal_cycle: float = 1.0

    def __post_init__(self) -> None:
        for label, choices in (("method", METHODS), ("loop", LOOPS)):
            if getattr(self, label) not in choices:
                raise SimulationError(f"{label} is {getattr(self, label)!r}; it is one of {', '.join(choices)}")
        for label in ("duration", "log_cycle", "thermal_cycle"):
            value = getattr(self, label)
            if value is None:
                continue
            number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
            if not number or not np.isfinite(value) or value <= 0.0:
                raise SimulationError(f"{label} is {value!r}; give a time in seconds, above zero")


@dataclass(frozen=True, eq=False)
class Raw:
    """What the compiled simulation gave.

    Parameters
    ----------
    assembly : Assembly
        Robot as arrays, at the end of the run.
    record : ndarray, (N, width)
        Columns as in ``assembly.columns``.
    t : ndarray, (N,)
        Times of its rows [s].
    temperature : ndarray (N, k) or None
        Behind every actuator [degree Celsius].
    at_limit : ndarray, (k,)
        Share of time at a limit.
    mean_current, mean_voltage : ndarray, (N, k)
        Means over one cycle of the log around each row [A, V].
    energy : dict of str to ndarray, (k,)
        Energies of the run by kind [J].
    readings : Readings or None
        Noise of the current sensors that the control loops have seen.
    push : ndarray, (N, k)
        Disturbance torques at the rows [N m, N].
    wrenches : dict of str to ndarray, (N, 6)
        External wrenches at the rows.
    settings : dict
        Step, cycles, method, for the provenance.
    end : State
        The machine at the last row.
    """

    assembly: Assembly
    record: Array
    t: Array
    temperature: Array | None
    at_limit: Array
    mean_current: Array
    mean_voltage: Array
    energy: dict[str, Array]
    readings: Readings | None
    push: Array
    wrenches: dict[str, Array]
    settings: dict[str, Any]
    end: State


def loop_cycles(controller: Any) -> dict[str, float]:
    """Return the cycle times of a controller by name; none of an open loop.

    Parameters
    ----------
    controller : Cascade, PID, ComputedTorque, OpenLoop or Controller
        Control law.

    Returns
    -------
    dict of str to float
        Cycle times [s].
    """
    if isinstance(controller, OpenLoop):
        return {}
    if isinstance(controller, Cascade):
        inner = {} if controller.current is None else {"current.cycle": controller.current.cycle}
        return {"position_cycle": controller.position_cycle, "velocity_cycle": controller.velocity_cycle, **inner}
    cycle = controller.cycle
    if isinstance(cycle, bool) or not isinstance(cycle, int | float | np.number) or not 0.0 < cycle < np.inf:
        raise SimulationError(f"controller: cycle is {cycle!r}; give a time in seconds, above zero")
    return {"cycle": float(cycle)}


def believed(controller: Any, mechanism: Mechanism) -> Any:
    """Return a controller whose models have the robot's actuator coordinates, after checking that they fit.

    Parameters
    ----------
    controller : Cascade, PID, ComputedTorque, OpenLoop or Controller
        Control law.
    mechanism : Mechanism
        Robot.

    Returns
    -------
    Cascade, PID, ComputedTorque, OpenLoop or Controller
        The same law.
    """
    fields = {Cascade: "torque_feedforward", PID: "feedforward", ComputedTorque: "model"}
    label = fields.get(type(controller))
    model = None if label is None else getattr(controller, label)
    if model is None or label is None:
        return controller
    motors = [actuator.name for actuator in mechanism.actuators]
    theirs = [actuator.name for actuator in model.actuators]
    if model.coordinate_names != mechanism.coordinate_names or theirs != motors:
        raise SimulationError(
            f"controller: its model '{model.name}' has the coordinates {', '.join(model.coordinate_names)} and motors "
            f"{', '.join(theirs)}, the robot {', '.join(mechanism.coordinate_names)} and {', '.join(motors)}; they must agree"
        )
    if len(motors) < mechanism.dof:
        raise SimulationError(
            f"controller: a model needs a motor for every freedom, but robot '{mechanism.name}' has {len(motors)} "
            f"({', '.join(motors)}) for {mechanism.dof}; leave the model out (PID, Cascade) or add actuators"
        )
    return replace(controller, **{label: joint_side(model)})


def fed_with_voltage(controller: Any) -> bool:
    """Tell whether a controller feeds the motors with voltages.

    Parameters
    ----------
    controller : Cascade, PID, ComputedTorque, OpenLoop or Controller
        Control law.

    Returns
    -------
    bool
        False when it asks for currents or torques.
    """
    if isinstance(controller, Cascade):
        return controller.current is not None
    return getattr(controller, "command", "torque") == "voltage"


def run_plant(robot: VirtualRobot, reference: Reference, options: Options) -> Raw:
    """Run the compiled simulation.

    Parameters
    ----------
    robot : VirtualRobot
        The machine.
    reference : Reference
        What it is asked to do.
    options : Options
        How.

    Returns
    -------
    Raw
        Record of the true signals.
    """
    from dynident.simulate.controllers import tables, tick_steps  # noqa: PLC0415 - numba is imported on first use
    from dynident.simulate.plant import build, inputs_of, loop_gain  # noqa: PLC0415

    mechanism, step = robot.mechanism, robot.step
    plan = schedule(robot, reference, options)
    first = reference.sample([0.0])
    before = options.start if isinstance(options.start, State) else None
    place = {"q": before.q, "velocity": before.v} if before else options.start
    x, v = start_state(mechanism, place, (first.q[0], first.v[0]))  # type: ignore[arg-type]
    law = believed(robot.controller, mechanism)
    how = {"method": options.method, "loop": options.loop, "integrator": options.integrator}
    assembly = build(mechanism, robot.drives, law, step=step, x=x, v=v, friction=robot.friction, **how)
    if options.method == "decoupled" and options.loop != "exact":
        _warn_of_loop(robot, loop_gain(assembly, x), options.loop)
    tick = tick_steps(assembly.controller)
    at = _grid(plan.total // tick + 2, tick * step)
    noise, readings = _noise(robot, assembly.controller.plan, plan.total // tick + 2, options.seed)  # every tick senses once
    wanted = tables(mechanism, law, reference.sample(at), tick, noise, _command(law, reference, at, robot))
    pace = tick if plan.cycles else plan.every
    when = _grid(plan.total // pace + 2, pace * step)
    push, count = disturbance_of(options.disturbance), len(robot.drives)
    torque = None if push is None else push.sample(when, count)
    inputs = inputs_of(mechanism, torque, wrench_tables(mechanism, options.wrenches, when), pace)
    thin = plan.thinning(assembly.columns.width)
    record = np.zeros(((plan.rows - 1) * thin + 1, assembly.columns.width))
    steps = (plan.rows - 1) * plan.every + 1
    stretch = Stretch(robot, assembly, wanted, inputs, record, plan.every // thin, options.thermal_cycle)
    if before:
        put_state(assembly, before)
        if stretch.heat is not None:
            stretch.heat.state = {name: value.copy() for name, value in before.thermal.items()}
    temperature = stretch.all(steps - 1)
    thermal = {} if stretch.heat is None else dict(stretch.heat.state)
    held = take_state(assembly, thermal, record[-1])
    stretch._some(1)  # the last row is written at the start of its step
    end = replace(held, q=record[-1, assembly.columns.x].copy(), v=record[-1, assembly.columns.v].copy())
    t = _grid(plan.rows, plan.every * step)
    c = assembly.columns
    settings = {
        "step": step,
        "duration": float(t[-1]),
        "log_cycle": plan.every * step,
        "cycles": plan.cycles,
        **how,
        "controller": type(robot.controller).__name__,
        "start": {"q": x.tolist(), "v": v.tolist()},
    }
    return Raw(
        assembly,
        record[::thin],
        t,
        None if temperature is None else temperature[::thin],
        assembly.saturated / steps,
        _means(record[:, c.current], thin),
        _means(record[:, c.voltage], thin),
        energies(
            robot.drives,
            plan.every // thin * step,
            *(record[:, columns] for columns in (c.theta, c.omega, c.current, c.voltage, c.rub)),
        )
        | {"gear": np.asarray(np.trapezoid(record[:, c.loss] * record[:, c.rho_v], dx=plan.every // thin * step, axis=0))},
        readings,
        np.zeros((plan.rows, count)) if push is None else push.sample(t, count),
        wrench_tables(mechanism, options.wrenches, t),
        settings,
        end,
    )


@dataclass(frozen=True)
class Schedule:
    """When what happens in a run, in steps.

    Parameters
    ----------
    cycles : dict of str to float
        Cycle times of the controller [s].
    total : int
        Steps of the run.
    every : int
        Steps between two samples of the log.
    rows : int
        Samples of the log.
    finest : int
        Steps between two changes of the motor currents.
    """

    cycles: dict[str, float]
    total: int
    every: int
    rows: int
    finest: int

    def thinning(self, width: int) -> int:
        """Return how many rows are recorded per sample of the log, so that efforts can be averaged between samples.

        Parameters
        ----------
        width : int
            Numbers per row.

        Returns
        -------
        int
            One row for every change of the currents where memory allows, fewer otherwise.
        """
        if self.rows * width > MOST_NUMBERS:
            raise SimulationError(f"{self.rows} samples of {width} signals are too many; give a longer log_cycle=")
        parts = [k for k in range(1, self.every + 1) if self.every % k == 0 and self.every // k >= self.finest]
        return max((k for k in parts if k * self.rows * width <= MOST_NUMBERS // 5), default=1)


def schedule(robot: VirtualRobot, reference: Reference, options: Options) -> Schedule:
    """Return when what happens in a run, after checking cycle times and step.

    Parameters
    ----------
    robot : VirtualRobot
        The machine.
    reference : Reference
        What it is asked to do.
    options : Options
        How.

    Returns
    -------
    Schedule
        Counts of steps.
    """
    step, cycles = robot.step, loop_cycles(robot.controller)
    fastest = min(cycles.values(), default=step)
    log_cycle = fastest * max(1, round(np.ceil(LOG_CYCLE / fastest - 1e-9))) if options.log_cycle is None else options.log_cycle
    counts = ticks(cycles, step)
    every = log_ticks(float(log_cycle), step)
    check_step(robot.drives, step, options.integrator, fed_with_voltage(robot.controller), fastest)
    duration = reference.duration if options.duration is None else float(options.duration)
    if duration < step * (1.0 - 1e-9):
        raise SimulationError(f"duration = {duration:g} s is shorter than one step of {step:g} s; give duration=")
    total = int(np.floor(duration / step * (1.0 + 1e-12) + 1e-9))
    width = 3 * reference.dof + 2 * len(robot.drives)
    most = MOST_WANTED // width * min(counts.values(), default=every)
    if total > most:
        raise SimulationError(
            f"duration = {duration:g} s is more than memory holds at this cycle; simulate up to {most * step:.3g} s at a time"
        )
    rows = total // every + 1
    if rows < MINIMUM_SAMPLES:
        raise SimulationError(f"log_cycle = {log_cycle:g} s leaves {rows} samples in {duration:g} s; a log needs at least 4")
    finest = min((count for name, count in counts.items() if name != "current.cycle"), default=every)
    return Schedule(cycles, total, every, rows, finest)


def _means(values: Array, thin: int) -> Array:
    """Return the means over one cycle of the log around every thin-th row, each row being held until the next."""
    edges = np.arange(values.shape[0], dtype=np.float64)
    area = np.zeros_like(values)
    area[1:] = np.cumsum(values[:-1], axis=0)
    middle = edges[::thin]
    early, late = np.maximum(middle - 0.5 * thin, 0.0), np.minimum(middle + 0.5 * thin, edges[-1])
    columns = [np.interp(late, edges, y) - np.interp(early, edges, y) for y in area.T]
    return np.asarray(np.column_stack(columns) / (late - early)[:, None])


def _grid(count: int, cycle: float) -> Array:
    """Return the times 0, cycle, 2 cycle, ..."""
    return np.asarray(np.arange(count) * cycle, dtype=np.float64)


def _warn_of_loop(robot: VirtualRobot, gain: float, loop: str) -> None:
    if gain >= 1.0:
        warnings.warn(
            f"robot '{robot.name or robot.mechanism.name}': the mechanism's inertia is {gain:.3g} times that of the actuators, "
            f"so the {loop} algebraic loop diverges; use loop='exact' or method='coupled'",
            SimulationWarning,
            stacklevel=5,
        )


def _noise(
    robot: VirtualRobot, plan: NDArray[np.int64], count: int, seed: int | np.random.SeedSequence
) -> tuple[Array | None, Readings | None]:
    """Return the sensors' noise at every sensing tick of the control loops (see `controllers.Wanted`), and the currents' part.

    Encoders are read by every law, current sensors by current loops and by controllers in Python.
    """
    from dynident.simulate import layout as at  # noqa: PLC0415 - as above

    generators = streams(seed)  # checks the seed in any case
    deviation = np.array([drive.encoder.noise for drive in robot.drives])
    current = np.array([drive.current_sensor.noise for drive in robot.drives])
    k, cycle = deviation.size, int(plan[at.CURRENT] or plan[at.SENSE])
    rows = np.asarray(generators["loop"].standard_normal((count, k)) * deviation) if np.any(deviation) else None
    if not np.any(current) or not (plan[at.CURRENT] > 0 or plan[at.LAW_OF] == at.HELD):
        return rows, None
    table = generators["loop_current"].standard_normal((count * (int(plan[at.SENSE]) // cycle), k)) * current
    rows = np.zeros((count, k)) if rows is None else rows
    return np.concatenate([rows, table.reshape(count, -1)], axis=1), Readings(cycle * robot.step, table)


def _command(law: Any, reference: Reference, at: Array, robot: VirtualRobot) -> Array | None:
    """Return the table of an open loop at the ticks, held from each of its times to the next."""
    if not isinstance(law, OpenLoop):
        return None
    table, k = law.table, len(robot.drives)
    if table.shape[1] != k:
        raise SimulationError(f"open loop: {law.command} has {table.shape[1]} columns for {k} actuators; give one for each")
    if table.shape[0] == 1:
        return np.repeat(table, at.size, axis=0)
    if reference.knots is None or reference.knots.size != table.shape[0]:
        count = "no samples of its own" if reference.knots is None else f"{reference.knots.size} samples"
        raise SimulationError(
            f"open loop: {law.command} has {table.shape[0]} rows but the reference has {count}; give a Motion with one sample "
            "per row"
        )
    here = np.searchsorted(reference.knots, at + 1e-9 * (at[1] - at[0]), side="right") - 1
    return np.asarray(table[np.clip(here, 0, table.shape[0] - 1)])
