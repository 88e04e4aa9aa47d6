"""`design`: the one call from a robot and its limits to the motion that makes its parameters visible."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.checks import number, shown, whole
from dynident.errors import DynidentError, require
from dynident.excitation.campaigns import complete_test, curve_excess, plan_within, validation_motion
from dynident.excitation.checks import fits, motion_curve, motion_family, vector
from dynident.excitation.criteria import NAMES, Criterion
from dynident.excitation.equations import ExcitationEquations, RobotEquations
from dynident.excitation.limits import all_names, least_margins
from dynident.excitation.limits_file import MotionLimits, limits_of
from dynident.excitation.objective import Objective, expected_deviations, information, prior_factor
from dynident.excitation.optimise import Optimum, Progress, optimise
from dynident.excitation.plan import Plan, Stage
from dynident.excitation.problem import Problem, check_frequencies
from dynident.files import to_json
from dynident.identify.base import BaseParameters, base_parameters, columns_of
from dynident.identify.regression.regression import Regression
from dynident.identify.regression.rows import Projection
from dynident.mechanics.motion import Motion
from dynident.mechanism.mechanism import Mechanism
from dynident.results import Result
from dynident.trajectory.family import Curve, Family, Trajectory, positive, sample
from dynident.trajectory.fourier import Fourier

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = NDArray[np.float64]

SMOOTH = 0.01  # share of the largest speed over which signs of friction are smoothed
LEAST = 8  # samples per period of the highest harmonic on which a criterion is taken


@dataclass(frozen=True, eq=False)
class Design(Result):
    """A designed motion and what it will show.

    Parameters
    ----------
    trajectory : Trajectory
        The motion.
    problem : Problem
        Cost and limits.
    optimum : Optimum
        What the optimiser found.
    exact : Equations
        Rows with true signs of friction.
    rate : float
        Samples per second of the experiment [Hz].
    noise : ndarray, (rows,)
        Standard deviation of each equation that expected deviations are for.
    mechanism : Mechanism, optional
        The robot.
    """

    trajectory: Trajectory
    problem: Problem
    optimum: Optimum
    exact: ExcitationEquations
    rate: float
    noise: Array
    mechanism: Mechanism | None = None

    def motion(self) -> Motion:
        """Return the motion at the rate of the experiment."""
        return sample(self.trajectory, self.rate)

    @property
    def start(self) -> Trajectory:
        """The feasible motion from which the optimiser started."""
        return Trajectory.from_vector(self.trajectory.family, self.optimum.start)

    def values(self, curve: Curve | None = None) -> dict[str, float]:
        """Return every criterion of a motion, with true signs of friction, on the grid of the design.

        Parameters
        ----------
        curve : Curve, optional
            The designed motion when omitted.

        Returns
        -------
        dict of str to float
            Values by name.
        """
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
        """Return the expected standard deviation of every base parameter after one run.

        Parameters
        ----------
        curve : Curve, optional
            The designed motion when omitted.

        Returns
        -------
        ndarray, (b,)
            In the units of ``exact.names``.
        """
        motion = sample(self.trajectory if curve is None else curve, self.rate)
        return expected_deviations(self.exact, motion, self.noise, self.problem.objective.prior)

    def margins(self) -> dict[str, float]:
        """Return the smallest margin to every limit, relative, on the dense grid."""
        return self.problem.margins(self.optimum.x)

    def validation(self, seed: int = 1) -> Trajectory:
        """Return another motion inside all limits, for validation.

        Parameters
        ----------
        seed : int
            Seed.

        Returns
        -------
        Trajectory
            Faded sines of random frequencies, see `validation_motion`.
        """
        return validation_motion(self.problem, seed)

    def plan(self, complete: bool = False, validation: Curve | None = None, repetitions: int = 1, **options: Any) -> Plan:
        """Return the plan of the experiment, checked against all limits."""
        limits = self.problem.limits
        robot = self.mechanism.name if self.mechanism is not None else "robot"
        notes = {"notes": self.numbers(short=True), **options}
        if complete:
            return complete_test(robot, limits, self.trajectory, self.rate, validation, repetitions=repetitions, **notes)
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

    def to_json(self) -> str:
        """Return `numbers` as JSON text."""
        return to_json(self.numbers())

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
        from dynident.excitation import figures  # noqa: PLC0415 - matplotlib is an extra

        return figures.motions(self)

    def figures(self) -> dict[str, Figure]:
        """Return the figures: motions against limits, tool path, singular values, expected deviations. Figures by name."""
        from dynident.excitation import figures  # noqa: PLC0415 - matplotlib is an extra

        return figures.all_figures(self)


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
        Limits, or what a limits.toml holds; those of the description when omitted.
    criterion : str, mapping or Criterion
        What to improve: "d", "cond", "a", "e", "sigma_min", "inverse_det", "correlation", or weights such as "cond:1,d:0.5".
    time_budget : float
        When to stop [s].
    family : Family, optional
        Trajectories to choose from; a Fourier series of five harmonics and 10 s from rest to rest when omitted.
    rate : float
        Samples per second of the experiment [Hz].
    samples : int, optional
        Samples on which the criterion is taken; enough for the highest harmonic when omitted.
    scale : None, "column", "relative" or sequence of float
        Scaling of the regressor's columns for the criterion; "relative" for deviations relative to the robot's prior
        parameters, see `relative_sizes`.
    noise : array_like (rows,), optional
        Standard deviation of each equation's effort; all 1 when omitted.
    evidence : Regression, optional
        Data recorded already: the motion completes them.
    goal : sequence of str
        Bodies whose parameters matter (a payload with parameters of its own). With `evidence` of runs without it the others
        are estimated along, without evidence they count as known.
    base : BaseParameters, optional
        Base parameters; found when omitted.
    projection : str or tuple of str
        Equations of a robot with loops.
    starts : int
        Random feasible starts.
    seed : int
        Seed.
    workers : int, optional
        Parallel processes.
    start : array_like, optional
        A start of the user's.
    progress : callable, optional
        Told the best cost and the worst margin after every run.
    iterations : int, optional
        Most steps of every start, instead of the time budget: the same motion on a busy machine, see `optimise`.
    client : dask.distributed.Client or concurrent.futures.Executor, optional
        Where to compute; processes of this machine when omitted (see `dynident.fleet.connect`).

    Returns
    -------
    Design
        The motion and what it will show.
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
    sizes = np.ones(exact.seen.shape[0]) if noise is None else vector(noise, exact.seen.shape[0], "noise")
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
    found = optimise(problem, starts, time_budget, seed, workers, start, progress, iterations, client)
    if start is not None:  # the search smooths the signs of friction; with true signs, too, it may not end worse than it began
        given, true = np.array(start, dtype=np.float64), replace(objective, equations=exact)
        if true.cost(given) < true.cost(found.x):
            found = replace(found, x=given, cost=objective.cost(given), start=given)
    return Design(Trajectory.from_vector(chosen, found.x), problem, found, exact, rate, np.array(sizes), mechanism)


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
