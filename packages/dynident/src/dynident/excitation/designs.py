"""`design`: an exciting motion for a robot's parameters within its limits; plans whose joins keep the limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.checks import number, shown, whole
from dynident.errors import DynidentError, require
from dynident.excitation.limits import State, all_excess, all_names, least_margins
from dynident.excitation.limits_file import MotionLimits, limits_of
from dynident.excitation.objective import (
    NAMES,
    Criterion,
    Objective,
    RobotEquations,
    expected_deviations,
    fits,
    information,
    motion_curve,
    motion_family,
    per_coordinate,
    prior_factor,
    text,
)
from dynident.excitation.optimise import Optimum, Problem, Progress, check_frequencies, feasible_start, optimise
from dynident.excitation.plan import Plan, Stage
from dynident.figures import BLUE, INK, ORANGE, label, new_figure, plain_axes
from dynident.identify.base import BaseParameters, base_parameters, columns_of
from dynident.identify.regression.regression import Regression
from dynident.identify.regression.rows import Projection
from dynident.mechanics.functions import Motion
from dynident.mechanism.describe import effort_units
from dynident.mechanism.mechanism import Mechanism
from dynident.results import Result
from dynident.trajectory.curves import Curve, Family, Fourier, Multisine, Trajectory, positive, sample
from dynident.trajectory.joins import resting_place

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CHECK_RATE = 100.0  # samples per second on which plans are checked
CROSSING = 1.0  # time in which a joint without a known speed crosses its range [s]


def rates_of(limits: MotionLimits) -> tuple[Array, Array]:
    """Return speeds and accelerations for joins; unknown ones are set to cross the range in a few seconds."""
    span = limits.upper - limits.lower
    speed = np.where(np.isfinite(limits.velocity), limits.velocity, span / CROSSING)
    return speed, np.where(np.isfinite(limits.acceleration), limits.acceleration, 4.0 * span / CROSSING**2)


TONES = 8  # sines of a validation motion


def plan_within(
    robot: str,
    limits: MotionLimits,
    stages: list[Stage],
    rate: float,
    cycles: int = 1,
    period: float = 0.0,
    home: ArrayLike | None = None,
    notes: Mapping[str, Any] | None = None,
) -> Plan:
    """Return a plan whose joins keep the limits of positions and rates, after checking all limits on all of it."""
    plan = joined_plan(robot, limits, stages, rate, home, cycles, period=period, notes={} if notes is None else notes)
    check_plan(plan, limits)
    return plan


def joined_plan(
    robot: str, limits: MotionLimits, stages: list[Stage], rate: float, home: ArrayLike | None, cycles: int = 1, **fields: Any
) -> Plan:
    """Return the plan of `plan_within` before it is checked."""
    require(limits, MotionLimits, "limits")
    if not isinstance(stages, list | tuple) or not stages or not all(isinstance(stage, Stage) for stage in stages):
        raise DynidentError(f"stages are {shown(stages)}; give a list of Stage")
    speed, push = rates_of(limits)
    rest = resting_place(stages[0].curve, push) if home is None else per_coordinate(home, len(limits.coordinates), "home")
    fields |= {"lower": limits.lower, "upper": limits.upper, "jerk": limits.jerk if np.isfinite(limits.jerk).any() else None}
    return Plan(robot, limits.coordinates, stages, cycles, rate, speed, push, rest, **fields)


def check_plan(plan: Plan, limits: MotionLimits) -> dict[str, float]:
    """Return the margins of a whole cycle of `plan` to each of the `limits`; a violated limit raises an error."""
    require(plan, Plan, "plan")
    require(limits, MotionLimits, "limits")
    t, excess = curve_excess(plan.curve, limits)
    names = all_names(limits.all)
    worst = np.unravel_index(int(np.argmax(excess)), excess.shape)
    if excess[worst] > rounding(names[worst[1]]):
        where = next((p for p in reversed(plan.entries()) if p.start <= t[worst[0]]), None)
        part = f"stage '{where.stage.name}'" if where is not None and where.stage is not None else "a join between stages"
        raise DynidentError(
            f"plan: {part} breaks limit '{names[worst[1]]}' by {excess[worst]:.3g} of its size at t = {t[worst[0]]:.2f} s; "
            "choose another posture or home, or relax the limit"
        )
    return least_margins(names, excess.max(axis=0))


def curve_excess(
    curve: Curve, limits: MotionLimits, rate: float = CHECK_RATE, what: str = "a cycle of the plan"
) -> tuple[Array, Array]:
    """Return times (N,) and the excess of all limits (N, k) along a curve; the jerk is by differences."""
    fits(curve.duration, rate, curve.dof, what)
    motion = sample(curve, rate)
    jerk = np.gradient(motion.a, motion.t, axis=0)
    return motion.t, all_excess(limits.all, State(motion.q, motion.v, motion.a, jerk))


def rounding(name: str) -> float:
    """Return the tolerance of a limit for rounding; the jerk at a corner comes from differences and is less certain."""
    return 1e-2 if name.startswith("jerk of") else 1e-6


def payload_plan(
    robot: str,
    limits: MotionLimits,
    excitation: Curve,
    rate: float,
    payload: str,
    repetitions: int = 3,
    validation: Curve | None = None,
    notes: Mapping[str, Any] | None = None,
) -> tuple[Plan, Plan]:
    """Return two plans with the same motion, without and with a payload, which separate it from the link that carries it.

    `robot`, `limits` (which must hold with the payload), `excitation`, `rate` [Hz] and `notes` as in a `Plan`; `payload`
    is a name; the motion is averaged over `repetitions`, and `validation` is another motion, run with the payload.
    """
    if not text(payload, "payload"):
        raise DynidentError("payload has no name; give the name of the mounted body")
    bare = [Stage("without", "payload", excitation, repetitions)]
    loaded = [Stage("with", "payload", excitation, repetitions, payload)]
    if validation is not None:
        loaded.append(Stage("validation", "validation", validation, 1, payload))
    first, second = (plan_within(robot, limits, stages, rate, notes=notes) for stages in (bare, loaded))
    return first, second


def validation_motion(
    problem: Problem, seed: int = 1, duration: float | None = None, around: Array | None = None, spread: float = 1.0
) -> Trajectory:
    """Return a motion for validation, different from any training motion: faded sines of random frequencies and phases.

    It starts and ends near the position `around`, (n,), or near a random one when omitted; with ``spread=0`` exactly there.
    """
    require(problem, Problem, "problem")
    generator = np.random.default_rng([whole("seed", seed, least=0, most=np.inf), 20])
    T = problem.family.duration if duration is None else positive("duration", duration)
    lowest, highest = min(1.0 / T, 0.5 * problem.family.highest), problem.family.highest
    tones = np.sort(generator.uniform(lowest, highest, TONES))
    family = Multisine(tuple(tones.tolist()), tuple(generator.uniform(0.0, 2.0 * np.pi, TONES).tolist()), T, 0.2 * T)
    count = problem.objective.t.size
    other = replace(problem, objective=replace(problem.objective, family=family, t=np.arange(count) / count * T))
    for _ in range(10):
        x = other.shrink(feasible_start(other, generator, around, spread))
        if x is not None:
            return Trajectory.from_vector(family, x)
    raise DynidentError("no motion for validation was found inside the limits; relax them, or give one of your own")


SMOOTH = 0.01  # share of the largest speed over which signs of friction are smoothed
LEAST = 8  # samples per period of the highest harmonic for a criterion


@dataclass(frozen=True, eq=False)
class Design(Result):
    """A designed motion and its expected accuracy."""

    trajectory: Trajectory  #: The motion
    problem: Problem  #: Cost and limits
    optimum: Optimum  #: Result of the optimiser
    exact: RobotEquations  #: Rows with true signs of friction
    rate: float  #: Samples per second of the experiment [Hz]
    noise: Array  #: (rows,), standard deviation of each equation, assumed for the expected deviations
    mechanism: Mechanism | None = None  #: The robot

    def motion(self) -> Motion:
        """Return the motion at the rate of the experiment."""
        return sample(self.trajectory, self.rate)

    @property
    def start(self) -> Trajectory:
        """The feasible motion from which the optimiser started."""
        return Trajectory.from_vector(self.trajectory.family, self.optimum.start)

    def values(self, curve: Curve | None = None) -> dict[str, float]:
        """Return every criterion of a motion (by default the designed one) on the grid of the design, friction not smoothed."""
        objective, R = self.problem.objective, self._factor(curve)
        found: dict[str, float] = {}
        for name in NAMES:
            found |= Criterion(((name, 1.0),), objective.criterion.scale, objective.criterion.goal).evaluate(R)[0]
        return found

    def _factor(self, curve: Curve | None) -> Array:
        """Return the factor of the information of a motion, with true signs of friction."""
        objective = self.problem.objective
        states = (self.trajectory if curve is None else curve)(objective.t)
        return information(self.exact, Motion(objective.t, *states), objective.noise, objective.prior)

    def deviations(self, curve: Curve | None = None) -> Array:
        """Return the expected standard deviation of every base parameter after one run, (b,), in its unit."""
        motion = sample(self.trajectory if curve is None else curve, self.rate)
        return expected_deviations(self.exact, motion, self.noise, self.problem.objective.prior)

    def margins(self) -> dict[str, float]:
        """Return the smallest margin to every limit, relative, on the dense grid."""
        return self.problem.margins(self.optimum.x)

    def validation(self, seed: int = 1, around: Array | None = None, spread: float = 1.0) -> Trajectory:
        """Return another motion inside all limits, for validation: faded sines of random frequencies (`validation_motion`)."""
        return validation_motion(self.problem, seed, None, around, spread)

    def plan(self, validation: Curve | None = None, repetitions: int = 1, **options: Any) -> Plan:
        """Return the plan of the experiment, checked against all limits."""
        limits = self.problem.limits
        robot = self.mechanism.name if self.mechanism is not None else "robot"
        notes = {"notes": self.numbers(short=True), **options}
        stages = [Stage("excitation", "training", self.trajectory, repetitions)]
        stages += [] if validation is None else [Stage("validation", "validation", validation)]
        return plan_within(robot, limits, stages, self.rate, **notes)

    def numbers(self, short: bool = False) -> dict[str, Any]:
        """Return the figures of a design: criteria before and after, margins, expected deviations."""
        margins = self.margins()
        worst = min(margins, key=lambda name: margins[name])
        out: dict[str, Any] = {
            "criterion": self.problem.objective.criterion.label,
            "before": self.values(self.start),
            "after": self.values(),
            "margins": margins,
            "worst_limit": worst,
            "worst_margin": margins[worst],
            "stated_margin": self.problem.limits.margin,
            "starts": self.optimum.starts,
            "cut_by_time": self.optimum.cut,
        }
        if not short:
            before, after = self.deviations(self.start), self.deviations()
            out["parameters"] = [
                {"name": name, "deviation_before": float(b), "deviation": float(a)}
                for name, b, a in zip(self.exact.names, before, after, strict=True)
            ]
            out["trajectory"] = self.trajectory.spec()
        return out

    def summary(self) -> str:
        """Return the design as text. Criterion before and after, the tightest limit, the search."""
        found = self.numbers(short=True)
        name = found["criterion"]
        before, after = (found[when] for when in ("before", "after"))
        values = ", ".join(f"{key} {before[key]:.4g} -> {after[key]:.4g}" for key in after)
        ended = "cut by its time budget" if found["cut_by_time"] else "ended by itself"
        return "\n".join(
            [
                f"motion of {self.trajectory.duration:g} s for {len(self.exact.names)} parameters, criterion '{name}'",
                f"  {values}",
                f"  tightest limit: {found['worst_limit']}, {100 * found['worst_margin']:.3g} % left",
                f"  {found['starts']} starts, {ended}",
            ]
        )

    def plot(self) -> Figure:
        """Draw the motions against their limits."""
        return motions_figure(self)


def design(
    mechanism: Mechanism,
    limits: MotionLimits | Mapping[str, Any] | None = None,
    criterion: str | Mapping[str, float] | Criterion = "d",
    time_budget: float = 30.0,
    family: Family | None = None,
    rate: float = 100.0,
    samples: int | None = None,
    scale: str | Sequence[float] | None = None,
    noise: ArrayLike | None = None,
    recorded: Regression | None = None,
    goal: Sequence[str] = (),
    base: BaseParameters | None = None,
    projection: Projection = "gls",
    starts: int = 8,
    seed: int = 0,
    workers: int | None = None,
    start: ArrayLike | None = None,
    offsets: ArrayLike | None = None,
    progress: Progress | None = None,
    iterations: int | None = None,
    client: Any = None,
) -> Design:
    """Design an exciting motion for a robot's base parameters.

    Parameters
    ----------
    mechanism : Mechanism
        Robot, with or without loops.
    limits : MotionLimits, mapping or None
        Limits, or the content of a limits.toml; limits of the description when omitted.
    criterion : str, mapping or Criterion
        "d", "cond", "a", "e", "sigma_min", "inverse_det", "correlation", or weights such as "cond:1,d:0.5".
    time_budget, iterations
        Time limit [s]; or step limit of every start, with a result independent of the machine's load.
    family : Family, optional
        Trajectories to choose from; a Fourier series of five harmonics and 10 s from rest to rest when omitted.
    rate, samples
        Samples per second of the experiment [Hz]; number of samples for the criterion.
    scale : None, "column", "relative" or sequence of float
        Scaling of the regressor's columns for the criterion; "relative" uses the prior parameters, see `relative_sizes`.
    noise : array_like (rows,), optional
        Standard deviation of each equation's effort; all 1 when omitted.
    recorded : Regression, optional
        Data recorded already: the motion completes them.
    goal : sequence of str
        Bodies of interest (a payload with separate parameters). With `recorded` runs without it the other parameters
        are estimated too; otherwise they count as known.
    base, projection
        Base parameters, found when omitted; equations of a robot with loops.
    start, starts, seed, offsets
        A given start; number of random feasible starts and their seed; mean positions to keep, free when omitted.
    workers, client, progress
        Processes, or a dask client or executor; called with the best cost and the worst margin after every run.

    Returns
    -------
    Design
        The motion, its criteria and expected deviations.
    """
    require(mechanism, Mechanism, "mechanism")
    whole_limits = limits if isinstance(limits, MotionLimits) else limits_of(mechanism, limits)
    chosen = Fourier(0.1, 5) if family is None else family
    motion_family(chosen, "family")
    if base is not None:
        require(base, BaseParameters, "base")
    if recorded is not None:
        require(recorded, Regression, "recorded")
    if isinstance(goal, str) or not isinstance(goal, Sequence) or not all(isinstance(name, str) for name in goal):
        raise DynidentError(f"goal is {shown(goal)}; give the names of bodies")
    fits(chosen.duration, positive("rate", rate), mechanism.dof, "a motion")
    if samples is not None:
        fits(whole("samples", samples, least=1), 1.0, mechanism.dof, "a motion")
    check_frequencies(chosen, whole_limits.bandwidth, rate)
    if base is None:
        base = recorded.base if recorded is not None else base_parameters(mechanism, removable=tuple(goal))
    wanted = set(columns_of(mechanism, goal)) if goal else set()
    use = [i for i, c in enumerate(base.columns) if int(c) in wanted]
    if goal and not use:
        raise DynidentError(f"none of the base parameters belongs to {', '.join(goal)}; add it with separate=True")
    if goal and recorded is None:  # one run cannot separate a payload from its link: the rest of the robot counts as known
        base = replace(base, columns=base.columns[use], regrouping=base.regrouping[use], seen=base.seen[:, use])
        use = []
    finite = whole_limits.velocity[np.isfinite(whole_limits.velocity)]
    eps = SMOOTH * float(np.min(finite)) if finite.size else SMOOTH
    exact = RobotEquations(base, 0.0, projection)
    sizes = np.ones(exact.seen.shape[0]) if noise is None else per_coordinate(noise, exact.seen.shape[0], "noise")
    prior = None if recorded is None else prior_factor(recorded, sizes)
    count = samples or max(64, int(np.ceil(LEAST * chosen.highest * chosen.duration)))
    t = np.arange(count) / count * chosen.duration
    if isinstance(scale, str) and scale == "relative":
        scale = relative_sizes(base).tolist()
    objective = Objective(
        RobotEquations(base, eps, projection), chosen, Criterion.parse(criterion, scale, use), t, np.array(sizes), prior
    )
    home = mechanism.closure.home[mechanism.closure.independent] if mechanism.loops else None
    held = None if offsets is None else per_coordinate(offsets, mechanism.dof, "offsets")
    problem = Problem(objective, whole_limits, home, held)

    def made(found: Optimum) -> Design:
        motion = Trajectory.from_vector(chosen, found.x)
        return Design(motion, problem, found, exact, rate, np.array(sizes), mechanism)

    def told(state: dict[str, Any]) -> None:
        """Add the best design so far to the report of the search."""
        assert progress is not None
        progress({**state, "design": made(Optimum(state["x"], state["cost"], state["x"], state["done"], state["seconds"]))})

    tell = None if progress is None else told
    found = optimise(problem, starts, time_budget, seed, workers, start, tell, iterations, client)
    if start is not None:  # the search smooths signs of friction; with true signs the result must not be worse than the start
        given, true = np.array(start, dtype=np.float64), replace(objective, equations=exact)
        if true.cost(given) < true.cost(found.x):
            found = replace(found, x=given, cost=objective.cost(given), start=given)
    return made(found)


def relative_sizes(base: BaseParameters, floor: float = 1e-3) -> Array:
    """Return the reference sizes of base parameters: their prior values, or a share of the largest value of the same unit.

    With these sizes as the scale of criterion "a", the sum of the relative variances is minimised. The floor avoids
    excessive precision of parameters far below the others of their unit.
    """
    require(base, BaseParameters, "base")
    prior = base.mechanism.parameters
    values = np.abs(base.values(prior.values))
    units = np.array([prior.units[int(c)] for c in base.columns])
    largest = np.array([values[units == unit].max() for unit in units])
    if not np.all(largest > 0.0):
        empty = units[int(np.argmin(largest))]
        raise DynidentError(
            f"robot '{base.mechanism.name}' has no prior values of parameters in {empty}; give them, or another scale than "
            "'relative'"
        )
    return np.asarray(np.maximum(values, number("floor", floor) * largest))


def check_motion(limits: MotionLimits, curve: Curve, rate: float = 200.0) -> dict[str, float]:
    """Return the smallest margin of any motion to every limit; negative where it breaks one. The jerk is by differences."""
    require(limits, MotionLimits, "limits")
    motion_curve(curve, "curve")
    excess = curve_excess(curve, limits, positive("rate", rate), "a motion")[1]
    return least_margins(all_names(limits.all), excess.max(axis=0))


SMALL = 8  # points, of tick labels
FAR = 10.0  # times the largest value of a motion, above which a limit is given as text: drawn, it would flatten the curve
RATES = ("position", "velocity", "acceleration")
SECONDS = ("", "/s", "/s\N{SUPERSCRIPT TWO}")


def motions_figure(design: Design) -> Figure:
    """Return positions, velocities and accelerations of every coordinate against their limits."""
    limits, motion = design.problem.limits, design.motion()
    n = motion.dof
    sliding = {} if design.mechanism is None else effort_units(design.mechanism)
    height = 1.3 + 1.5 * n
    figure = new_figure(11.0, height)
    # margins by hand: tight_layout and aligned labels measure every text of every panel, a third of excite on a quadruped
    room = {"left": 0.08, "right": 0.985, "wspace": 0.3, "top": 1.0 - 0.6 / height, "bottom": 0.55 / height, "hspace": 0.2}
    axes = figure.subplots(n, 3, sharex=True, squeeze=False, gridspec_kw=room)
    columns = (motion.q, motion.v, motion.a)
    for j, name in enumerate(limits.coordinates):
        unit = {"N": "m", "N m": "rad"}.get(sliding.get(name, ""), "SI")
        bounds = ((limits.lower[j], limits.upper[j]), *((-x[j], x[j]) for x in (limits.velocity, limits.acceleration)))
        for axis, y, pair, per in zip(axes[j], columns, bounds, SECONDS, strict=True):
            plain_axes(axis)
            axis.plot(motion.t, y[:, j], color=BLUE, linewidth=1.2, label="motion")
            reach = FAR * float(np.max(np.abs(y[:, j])))
            for value in pair:
                if np.isfinite(value) and abs(value) <= reach:
                    axis.axhline(value, color=ORANGE, linewidth=1.0, linestyle="--", label="limit")
            far = ", ".join(f"{value:.4g}" for value in pair if np.isfinite(value) and abs(value) > reach)
            if far:
                axis.text(1.0, 1.0, f"limit {far}", transform=axis.transAxes, ha="right", va="bottom", color=ORANGE, fontsize=7)
            axis.set_ylabel(f"{unit}{per}", color=INK, fontsize=SMALL)
            axis.yaxis.set_label_coords(-0.17, 0.5)
        axes[j][0].set_ylabel(f"{label(name, 16)}\n{unit}", color=INK, fontsize=SMALL)
    for axis, what in zip(axes[0], RATES, strict=True):
        axis.set_title(what, color=INK, fontsize=10)
    for axis in axes[-1]:
        axis.set_xlabel("time [s]", color=INK, fontsize=9)
    entries = {what: line for axis in axes.flat for line, what in zip(*axis.get_legend_handles_labels(), strict=True)}
    figure.legend(entries.values(), entries.keys(), loc="upper right", ncols=2, frameon=False, fontsize=9)
    return figure
