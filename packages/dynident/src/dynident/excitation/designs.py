"""`design`: from a robot and its limits to the motion that makes its parameters visible; figures of the result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.checks import number, shown, whole
from dynident.errors import DynidentError, require
from dynident.excitation.input_checks import fits, motion_curve, motion_family, per_coordinate
from dynident.excitation.limits import ToolBox, all_names, least_margins
from dynident.excitation.limits_file import MotionLimits, limits_of
from dynident.excitation.objective import (
    NAMES,
    Criterion,
    Objective,
    RobotEquations,
    expected_deviations,
    information,
    prior_factor,
)
from dynident.excitation.optimise import Optimum, Problem, Progress, check_frequencies, optimise
from dynident.excitation.plan import Plan, Stage
from dynident.excitation.stages import curve_excess, plan_within, validation_motion
from dynident.figures import BLUE, INK, MUTED, ORANGE, label, new_figure, plain_axes, plain_decades, pretty_unit
from dynident.identify.base import BaseParameters, base_parameters, columns_of
from dynident.identify.regression.regression import Regression
from dynident.identify.regression.rows import Projection
from dynident.mechanics.kinematics import forward_kinematics
from dynident.mechanics.motion import Motion
from dynident.mechanism.describe import effort_units
from dynident.mechanism.mechanism import Mechanism
from dynident.results import Result
from dynident.trajectory.family import Curve, Family, Trajectory, positive, sample
from dynident.trajectory.sines import Fourier

if TYPE_CHECKING:
    from matplotlib.figure import Figure


SMOOTH = 0.01  # share of the largest speed over which signs of friction are smoothed
LEAST = 8  # samples per period of the highest harmonic on which a criterion is taken


@dataclass(frozen=True, eq=False)
class Design(Result):
    """A designed motion and what it will show."""

    trajectory: Trajectory  #: The motion
    problem: Problem  #: Cost and limits
    optimum: Optimum  #: What the optimiser found
    exact: RobotEquations  #: Rows with true signs of friction
    rate: float  #: Samples per second of the experiment [Hz]
    noise: Array  #: (rows,), standard deviation of each equation that expected deviations are for
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

    def singular_values(self, curve: Curve | None = None) -> Array:
        """Return the singular values of the regressor along a motion, columns scaled as the criterion sees them."""
        scale, R = self.problem.objective.criterion.scale, self._factor(curve)
        if isinstance(scale, str):
            length = np.linalg.norm(R, axis=0)
            R = R / np.where(length > 0.0, length, 1.0)
        elif scale is not None:
            R = R * np.asarray(scale)
        return np.asarray(np.linalg.svd(R, compute_uv=False))

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

    def validation(self, seed: int = 1) -> Trajectory:
        """Return another motion inside all limits, for validation: faded sines of random frequencies (`validation_motion`)."""
        return validation_motion(self.problem, seed)

    def plan(self, validation: Curve | None = None, repetitions: int = 1, **options: Any) -> Plan:
        """Return the plan of the experiment, checked against all limits."""
        limits = self.problem.limits
        robot = self.mechanism.name if self.mechanism is not None else "robot"
        notes = {"notes": self.numbers(short=True), **options}
        stages = [Stage("excitation", "training", self.trajectory, repetitions)]
        stages += [] if validation is None else [Stage("validation", "validation", validation)]
        return plan_within(robot, limits, stages, self.rate, **notes)

    def numbers(self, short: bool = False) -> dict[str, Any]:
        """Return what a design is judged by: criteria before and after, margins, expected deviations."""
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

    def figures(self) -> dict[str, Figure]:
        """Return the figures: motions against limits, tool path, singular values, expected deviations. Figures by name."""
        return all_figures(self)


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
    evidence: Regression | None = None,
    goal: Sequence[str] = (),
    base: BaseParameters | None = None,
    projection: Projection = "gls",
    starts: int = 8,
    seed: int = 0,
    workers: int | None = None,
    start: ArrayLike | None = None,
    progress: Progress | None = None,
    iterations: int | None = None,
    client: Any = None,
) -> Design:
    """Design the motion that makes a robot's base parameters visible.

    Parameters
    ----------
    mechanism : Mechanism
        Robot, with or without loops.
    limits : MotionLimits, mapping or None
        Limits, or the content of a limits.toml; those of the description when omitted.
    criterion : str, mapping or Criterion
        "d", "cond", "a", "e", "sigma_min", "inverse_det", "correlation", or weights such as "cond:1,d:0.5".
    time_budget, iterations
        When to stop [s]; or most steps of every start, which gives the same motion on a busy machine.
    family : Family, optional
        Trajectories to choose from; a Fourier series of five harmonics and 10 s from rest to rest when omitted.
    rate, samples
        Samples per second of the experiment [Hz]; samples on which the criterion is taken.
    scale : None, "column", "relative" or sequence of float
        Scaling of the regressor's columns for the criterion; "relative" uses the prior parameters, see `relative_sizes`.
    noise : array_like (rows,), optional
        Standard deviation of each equation's effort; all 1 when omitted.
    evidence : Regression, optional
        Data recorded already: the motion completes them.
    goal : sequence of str
        Bodies whose parameters matter (a payload with parameters of its own). With `evidence` of runs without it the others
        are estimated too, without evidence they count as known.
    base, projection
        Base parameters, found when omitted; equations of a robot with loops.
    start, starts, seed
        A start of the user's; number of random feasible starts and their seed.
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
    if evidence is not None:
        require(evidence, Regression, "evidence")
    if isinstance(goal, str) or not isinstance(goal, Sequence) or not all(isinstance(name, str) for name in goal):
        raise DynidentError(f"goal is {shown(goal)}; give the names of bodies")
    fits(chosen.duration, positive("rate", rate), mechanism.dof, "a motion")
    if samples is not None:
        fits(whole("samples", samples, least=1), 1.0, mechanism.dof, "a motion")
    check_frequencies(chosen, whole_limits.bandwidth, rate)
    if base is None:
        base = evidence.base if evidence is not None else base_parameters(mechanism, removable=tuple(goal))
    wanted = set(columns_of(mechanism, goal)) if goal else set()
    use = [i for i, c in enumerate(base.columns) if int(c) in wanted]
    if goal and not use:
        raise DynidentError(f"none of the base parameters belongs to {', '.join(goal)}; add it with separate=True")
    if goal and evidence is None:  # one run cannot tell a payload from its link: the rest of the robot counts as known
        base = replace(base, columns=base.columns[use], regrouping=base.regrouping[use], seen=base.seen[:, use])
        use = []
    finite = whole_limits.velocity[np.isfinite(whole_limits.velocity)]
    eps = SMOOTH * float(np.min(finite)) if finite.size else SMOOTH
    exact = RobotEquations(base, 0.0, projection)
    sizes = np.ones(exact.seen.shape[0]) if noise is None else per_coordinate(noise, exact.seen.shape[0], "noise")
    prior = None if evidence is None else prior_factor(evidence, sizes)
    count = samples or max(64, int(np.ceil(LEAST * chosen.highest * chosen.duration)))
    t = np.arange(count) / count * chosen.duration
    if isinstance(scale, str) and scale == "relative":
        scale = relative_sizes(base).tolist()
    objective = Objective(
        RobotEquations(base, eps, projection), chosen, Criterion.parse(criterion, scale, use), t, np.array(sizes), prior
    )
    home = mechanism.closure.home[mechanism.closure.independent] if mechanism.loops else None
    problem = Problem(objective, whole_limits, home)

    def told(state: dict[str, Any]) -> None:
        """Add the expected deviations over the described values to what the search reports."""
        motion = sample(Trajectory.from_vector(chosen, state["x"]), rate)
        relative = relative_to_description(exact, expected_deviations(exact, motion, sizes, prior))
        assert progress is not None
        progress({**state, "names": list(exact.names), "relative": relative})

    tell = None if progress is None else told
    found = optimise(problem, starts, time_budget, seed, workers, start, tell, iterations, client)
    if start is not None:  # the search smooths the signs of friction; with true signs, too, it may not end worse than it began
        given, true = np.array(start, dtype=np.float64), replace(objective, equations=exact)
        if true.cost(given) < true.cost(found.x):
            found = replace(found, x=given, cost=objective.cost(given), start=given)
    return Design(Trajectory.from_vector(chosen, found.x), problem, found, exact, rate, np.array(sizes), mechanism)


def relative_to_description(equations: RobotEquations, deviations: Array) -> Array:
    """Return deviations of base parameters over their described values; inf without one."""
    size = np.abs(equations.base.values(equations.mechanism.parameters.values))
    with np.errstate(divide="ignore"):
        return np.where(size > 0.0, deviations / np.where(size > 0.0, size, 1.0), np.inf)


def relative_sizes(base: BaseParameters, floor: float = 1e-3) -> Array:
    """Return what deviations of base parameters are relative to: their prior values, or a share of the largest of that unit.

    With these sizes as the scale of criterion "a", the sum of the relative variances is minimised. A parameter far below the
    others of its unit is not worth a precision of its own, hence the floor.
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
FAR = 10.0  # times the largest value of a motion, above which a limit is told in words: drawn, it would flatten the curve
RATES = ("position", "velocity", "acceleration")
SECONDS = ("", "/s", "/s\N{SUPERSCRIPT TWO}")
ENDS = ("tool", "platform")  # names of the link to draw when a robot has several ends


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


def drawn_link(design: Design) -> str | None:
    """Return the link whose path is drawn: the one that limits name, an end called tool or platform, or the last end."""
    robot = design.mechanism
    if robot is None:
        return None
    for limit in design.problem.limits.others:
        if isinstance(limit, ToolBox):
            return limit.frame
    parents = {joint.parent for joint in robot.joints}
    tips = [joint.child for joint in robot.joints if joint.child not in parents]
    return next((tip for name in ENDS for tip in tips if tip == name), tips[-1])


def tool_path_figure(design: Design) -> Figure | None:
    """Return the way of the tool through space; None without a robot."""
    robot, tip = design.mechanism, drawn_link(design)
    if robot is None or tip is None:
        return None
    figure = new_figure(7.0, 6.5)
    axis: Any = figure.add_subplot(projection="3d")
    place = forward_kinematics(robot, design.motion().q, tip)[1]
    before = forward_kinematics(robot, design.start.sample(design.rate).q, tip)[1]
    axis.plot(*before.T, color=MUTED, linewidth=0.8, label="start of the search")
    axis.plot(*place.T, color=BLUE, linewidth=1.3, label="designed")
    axis.scatter(*place[0], color=ORANGE, label="first sample", depthshade=False)
    both = np.concatenate([place, before])
    middle, half = 0.5 * (both.min(axis=0) + both.max(axis=0)), 0.55 * float(np.max(np.ptp(both, axis=0))) or 1.0
    sides = (axis.xaxis, axis.set_xlim, axis.set_xlabel), (axis.yaxis, axis.set_ylim, axis.set_ylabel)
    for name, x, (ticks, limit, put) in zip("xyz", middle, (*sides, (axis.zaxis, axis.set_zlim, axis.set_zlabel)), strict=True):
        limit(x - half, x + half)
        ticks.get_major_locator().set_params(nbins=5)
        put(f"{name} [m]", fontsize=9, labelpad=8)
    axis.tick_params(labelsize=SMALL)
    axis.set_box_aspect((1, 1, 1), zoom=0.95)
    figure.subplots_adjust(0.0, 0.02, 0.95, 0.98)
    figure.suptitle(f"path of {label(tip)}", color=INK, fontsize=10)
    figure.legend(loc="upper left", frameon=False, fontsize=9)
    return figure


def singular_values_figure(design: Design) -> Figure:
    """Return the singular values of the base regressor before and after, columns scaled as the criterion sees them."""
    from matplotlib.ticker import MaxNLocator  # noqa: PLC0415 - matplotlib is an extra

    figure = new_figure(7.5, 4.2)
    axis = figure.subplots()
    plain_axes(axis)
    drawn = []
    for curve, colour, what in ((design.start, ORANGE, "before"), (None, BLUE, "after")):
        values = design.singular_values(curve)
        ratio = values[0] / values[-1] if values[-1] > 0.0 else np.inf
        shown = np.where(values > 1e-12 * values[0], values, np.nan)
        drawn.append(shown)
        axis.semilogy(np.arange(1, values.size + 1), shown, color=colour, marker=".", label=f"{what}: ratio {ratio:.4g}")
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    plain_decades(axis.yaxis, np.concatenate(drawn))
    axis.set_xlabel("number of the singular value", color=INK, fontsize=9)
    scale = design.problem.objective.criterion.scale
    unit = "SI units" if scale is None else "unit columns" if isinstance(scale, str) else "scaled columns"
    axis.set_ylabel(f"singular value ({unit})", color=INK, fontsize=9)
    axis.set_title("singular values of the base regressor, and their ratio first over last", color=INK, fontsize=10)
    axis.legend(frameon=False, fontsize=9)
    figure.tight_layout()
    return figure


def deviations_figure(design: Design) -> Figure:
    """Return the expected standard deviation of every base parameter before and after."""
    before, after = design.deviations(design.start), design.deviations()
    names = design.exact.names
    units = design.exact.base.units
    height = 1.6 + 0.2 * len(names)
    figure = new_figure(8.0, height)
    axis = figure.subplots()
    plain_axes(axis)
    place = np.arange(len(names))
    for y, old, new in zip(place, before, after, strict=True):
        if np.isfinite(old) and np.isfinite(new):
            axis.plot([old, new], [y, y], color=MUTED, linewidth=0.8, zorder=1)
    for values, colour, what in ((before, ORANGE, "before"), (after, BLUE, "after")):
        seen = np.isfinite(values)
        text = what if seen.all() else f"{what} ({np.count_nonzero(~seen)} not visible)"
        axis.scatter(values[seen], place[seen], s=22, color=colour, label=text, zorder=2)
    texts = [f"{label(name, 26)} [{pretty_unit(unit)}]" for name, unit in zip(names, units, strict=True)]
    axis.set_yticks(place, texts, fontsize=SMALL)
    axis.set_xscale("log")
    plain_decades(axis.xaxis, np.concatenate([before, after]))
    axis.set_ylim(len(names) - 0.4, -0.6)
    noise = ", ".join(f"{x:.3g}" for x in np.unique(np.round(design.noise, 12))[:4])
    axis.set_xlabel(f"expected standard deviation after one run, in the unit of the parameter (noise {noise})", fontsize=9)
    figure.tight_layout(rect=(0.0, 0.0, 1.0, 1.0 - 0.3 / height))
    figure.legend(loc="upper right", ncols=2, frameon=False, fontsize=9)
    return figure


def all_figures(design: Design) -> dict[str, Figure]:
    """Return all figures of a design by name."""
    made = {
        "motions": motions_figure(design),
        "singular_values": singular_values_figure(design),
        "deviations": deviations_figure(design),
    }
    path = tool_path_figure(design)
    return made if path is None else {**made, "tool_path": path}
