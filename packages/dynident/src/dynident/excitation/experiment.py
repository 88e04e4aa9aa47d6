"""`excite`: from a robot to the plan of an experiment: limits, exciting motion, stages and files."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dynident.errors import DynidentError, DynidentWarning, MissingExtraError, warn
from dynident.excitation.designs import Design, design
from dynident.excitation.limits import Collision
from dynident.excitation.limits_file import MotionLimits, assume_limits, limits_of, limits_settings
from dynident.excitation.plan import Plan
from dynident.excitation.stages import payload_plan
from dynident.files import read_json, to_json
from dynident.identify.base import BaseParameters, base_parameters
from dynident.identify.estimators.least_squares import WLS
from dynident.identify.regression.regression import Regression
from dynident.mechanism.files import read_robot
from dynident.mechanism.mechanism import Mechanism
from dynident.outputs import output_set
from dynident.plugins import PLANS, entries, not_installed
from dynident.plugins import require as plugin
from dynident.results import Result, stored
from dynident.signals.log import Log
from dynident.trajectory.export import REPETITIONS, from_spec, to_csv, to_ros_controller, to_ros_json
from dynident.trajectory.family import Curve, Trajectory
from dynident.trajectory.sines import Fourier

File = str | os.PathLike[str]

VALIDATIONS = 8  # motions for validation that are tried
PAYLOAD = "payload"  # name of the body that a payload is
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


@dataclass(frozen=True, eq=False)
class Experiment(Result):
    """A designed motion with the plans that record it."""

    design: Design  #: The motion and what it will show
    plans: dict[str, Plan]  #: By the name of the file: ``plan``, or ``plan_without`` and ``plan_with`` for a payload
    source: str  #: Where the limits come from
    notes: tuple[str, ...] = ()  #: Assumptions about limits that nobody gave

    @property
    def improved(self) -> bool:
        """Whether the search improved the best random motion."""
        data = self.design.numbers()
        return any(abs(data["after"][name] - x) > 1e-3 * abs(x) for name, x in data["before"].items())

    def numbers(self) -> dict[str, Any]:
        """Return criteria, margins, deviations and plans."""
        assert self.design.mechanism is not None, "an experiment has a robot"
        data: dict[str, Any] = {"robot": self.design.mechanism.name, "limits": self.source, "assumed": list(self.notes)}
        data |= self.design.numbers()
        reached = next(iter(self.plans.values())).notes.get("complete")
        if reached is not None:
            data["complete"] = reached
        data["plans"] = {
            name: {"identity": plan.identity, "cycle": plan.curve.duration, "cycles": plan.cycles, "duration": plan.duration}
            for name, plan in self.plans.items()
        }
        return data

    def summary(self) -> str:
        """Return criterion values before and after, the tightest limits and the plans as lines."""
        data = self.numbers()
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

    def write(self, folder: File) -> list[Path]:
        """Write plans, motion and figures as one set; return the files."""
        folder = Path(folder)
        names = self.design.problem.limits.coordinates
        with output_set(folder, FILES) as staged:
            for name, plan in self.plans.items():
                plan.save(staged / f"{name}.json")
            whole = next(iter(self.plans.values()))
            motion = whole.motion() if len(whole.stages) > MOST_STAGES else self.design.motion()
            to_csv(staged / "motion.csv", motion, names)
            to_ros_json(staged / "motion_ros.json", whole.motion(min(whole.rate, ROS_RATE)), names, approach=_approach(whole))
            (staged / "joint_trajectory_controller.yaml").write_text(to_ros_controller(names), encoding="utf-8")
            (staged / "design.json").write_text(to_json(self.numbers()), encoding="utf-8")
            try:
                figures = self.design.figures()
            except MissingExtraError as error:
                warn(f"no figures were written: {error}", DynidentWarning)
                figures = {}
            for name, figure in figures.items():
                figure.savefig(staged / f"{name}.png", dpi=120)
            return [folder / path.name for path in sorted(staged.iterdir())]


def excite(
    robot: Mechanism | File,
    limits: MotionLimits | File | None = None,
    *,
    source: str | None = None,
    floor: float | None = None,
    collision: bool = True,
    family: Fourier | None = None,
    base: BaseParameters | None = None,
    start: File | None = None,
    recorded: Sequence[Log] = (),
    payload: float | None = None,
    payload_link: str | None = None,
    complete: bool = False,
    repetitions: int = 1,
    progress: Callable[[dict[str, Any]], None] | None = None,
    **search: Any,
) -> Experiment:
    """Design an exciting motion within limits, and the plans that record it.

    Parameters
    ----------
    robot : Mechanism or path-like
        The robot, or its description.
    limits : MotionLimits or path-like, optional
        Limits, or a file that completes those of the description: limits.toml, or MoveIt's joint_limits.yaml.
    source : str, optional
        Where the limits come from, for the record.
    floor : float, optional
        Height below which no body goes [m].
    collision : bool
        Whether bodies are kept away from each other, as capsules; not with limits that are given as `MotionLimits`.
    family : Fourier, optional
        Motions to choose from; five harmonics of 0.1 Hz when omitted.
    base : BaseParameters, optional
        Parameters to show; those of the robot when omitted.
    start : path-like, optional
        plan.json or design.json whose motion is tried first.
    recorded : sequence of Log
        Logs already recorded, to which the motion adds.
    payload : float, optional
        Design for the parameters of a payload of about this mass [kg]: two plans, without and with it.
    payload_link : str, optional
        Link that carries the payload; the last one when omitted.
    complete : bool
        Whether to plan the complete test, with friction plateaus and warming; dynident-lab provides it.
    repetitions : int
        Periods of the motion in a row.
    progress : callable, optional
        As in `design`.
    **search
        Options of `design`: `criterion`, `time_budget`, `iterations`, `starts`, `seed`, `rate`, `scale`.

    Returns
    -------
    Experiment
        Motion, plans, and what was assumed; ``save(folder)`` writes them.
    """
    if not 1 <= repetitions <= REPETITIONS:
        raise DynidentError(f"repetitions={repetitions}; give at least one and at most {REPETITIONS}")
    if complete and payload is not None:
        raise DynidentError("the complete test and the design for a payload are two different experiments; ask for one of them")
    if payload_link is not None and payload is None:
        raise DynidentError("payload_link= says where a payload is; give its mass with payload= too")
    planned = plan_of_experiment("complete") if complete else Design.plan
    mechanism = robot if isinstance(robot, Mechanism) else read_robot(robot)
    if payload is not None:
        mechanism = mechanism.with_payload(payload, body=payload_link, name=PAYLOAD, separate=True)
    notes: tuple[str, ...] = ()
    if isinstance(limits, MotionLimits):
        found, origin = limits, "those given"
    else:
        mechanism, found, notes = motion_limits(mechanism, limits, floor, collision)
        origin = "those of the description" if limits is None else f"the description's, completed by {limits}"
    options: dict[str, Any] = {"limits": found, "family": Fourier(0.1, 5) if family is None else family, **search}
    if base is not None:
        options["base"] = base
    if start is not None:
        first = _first(Path(start))
        options |= {"family": first.family, "start": first.vector}
    if payload is not None:
        options |= {"goal": (PAYLOAD,), "base": base_parameters(mechanism, removable=(PAYLOAD,)) if recorded else None}
    if recorded:
        options |= _known(mechanism, recorded, options.get("base"), payload is not None)
    result = design(mechanism, progress=progress, **options)
    plans = _plans(result, planned, repetitions, payload is not None)
    return Experiment(result, plans, source or origin, notes)


def plan_of_experiment(name: str) -> Callable[..., Plan]:
    """Return the function of a plug-in that plans an experiment from a `Design`, `validation=` and `repetitions=`."""
    if name not in entries(PLANS):
        raise DynidentError(not_installed(PLANS, name) or f"no package provides the plan '{name}'")
    made: Callable[..., Plan] = plugin(PLANS, name)
    return made


def motion_limits(
    mechanism: Mechanism, file: File | None = None, floor: float | None = None, collision: bool = False
) -> tuple[Mechanism, MotionLimits, tuple[str, ...]]:
    """Return the robot without a free base, its limits, and what was assumed where nobody gave any."""
    settings = {} if file is None else limits_settings(file)
    if floor is not None:
        settings["floor"] = floor
    automatic = collision and "capsule" not in settings
    if automatic:
        settings["capsule"] = "auto"
    assumed = assume_limits(mechanism, settings)
    notes = list(assumed.notes)
    found = limits_of(assumed.mechanism, assumed.settings)
    kept = next((limit for limit in found.others if isinstance(limit, Collision)), None)
    if automatic and kept is not None:
        pairs = f"{len(kept.pairs)} pairs of bodies are" if len(kept.pairs) > 1 else "one pair of bodies is"
        notes.append(
            f"{pairs} kept apart as capsules with the bodies' inertia; collision=False (--no-collision) leaves "
            "that out, [[capsule]] in a limits file gives better shapes"
        )
    if "floor" not in settings and "tool" not in settings:
        notes.append("no floor was given: floor=0 keeps all bodies above the robot's base")
    return assumed.mechanism, found, tuple(notes)


def _known(mechanism: Mechanism, logs: Sequence[Log], base: BaseParameters | None, payload: bool) -> dict[str, Any]:
    """Return the information of recorded logs and their noise, to which the new motion adds; they were without the payload."""
    evidence: Regression | None = None
    for log in logs:
        known = base if evidence is None else evidence.base
        found = Regression.from_log(mechanism, log, known, absent=(PAYLOAD,) if payload else ())
        evidence = found if evidence is None else evidence + found
    assert evidence is not None, "called with at least one log"
    return {"evidence": evidence, "base": evidence.base, "noise": WLS().fit(evidence).result_.sigma}


def _first(path: Path) -> Any:
    """Return the trajectory of a plan.json or design.json."""
    try:
        data = read_json(path, "a motion")
        if isinstance(data, Mapping) and "stages" in data:
            data = {"trajectory": stored((stored(data, "stages", list[Any], "plan") or [{}])[0], "motion", Any, "stage")}
        curve = from_spec(stored(data, "trajectory", Mapping[str, Any], "design"))
    except DynidentError as error:
        raise DynidentError(f"start '{path}' holds no motion ({error}); give a plan.json or design.json") from error
    if not isinstance(curve, Trajectory):
        raise DynidentError(f"start '{path}' does not start with an exciting motion; give one of the excite command")
    return curve


def _plans(found: Design, planned: Callable[..., Plan], repetitions: int, payload: bool) -> dict[str, Plan]:
    """Return the plans by file name: training and validation, or the complete test, or runs without and with the payload."""
    refused: DynidentError | None = None
    for seed in range(1, VALIDATIONS + 1):  # a limit may lie between one motion and the next
        other: Curve = found.validation(seed)
        try:
            if not payload:
                return {"plan": planned(found, validation=other, repetitions=repetitions)}
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


def _approach(plan: Plan) -> float:
    """Return a time in which every joint gets anywhere at less than half its speed limit, by a quintic."""
    lower, upper = (
        np.full(len(plan.coordinates), x) if b is None else b for b, x in ((plan.lower, -np.pi), (plan.upper, np.pi))
    )
    way = np.where(np.isfinite(upper - lower), upper - lower, 2.0 * np.pi)
    return max(3.0, float(np.ceil(np.max(way / (0.25 * plan.speed)))))
