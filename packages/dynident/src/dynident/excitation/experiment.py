"""`excite`: from a robot to the plan of an experiment: limits, exciting motion, stages and files."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dynident.arrays import Array
from dynident.errors import DynidentError
from dynident.excitation.designs import Design, design, payload_plan, rates_of
from dynident.excitation.limits import POSTURES, Collision, Floor, State
from dynident.excitation.limits_file import MotionLimits, assume_limits, capsules_of, limits_of, limits_settings
from dynident.excitation.plan import Plan
from dynident.files import read_json, to_json
from dynident.identify.base import BaseParameters, base_parameters
from dynident.identify.estimators.least_squares import WLS
from dynident.identify.regression.regression import Regression
from dynident.mechanics.actuation import actuator_torques
from dynident.mechanics.dynamics import inverse_dynamics
from dynident.mechanism.files import read_robot
from dynident.mechanism.mechanism import Mechanism
from dynident.outputs import output_set
from dynident.plugins import PLANS, entries, not_installed
from dynident.plugins import require as plugin
from dynident.results import Result, stored
from dynident.signals.log import Log
from dynident.trajectory.curves import Curve, Fourier, Trajectory
from dynident.trajectory.export import REPETITIONS, from_spec, to_csv, to_ros_controller, to_ros_json
from dynident.trajectory.joins import resting_place

File = str | os.PathLike[str]

VALIDATIONS = 8  # number of motions tried for validation
PAYLOAD = "payload"  # name of the payload body
SPEED = 0.5  # default share of the limits of speed and acceleration
ASIDE = 0.05  # of the range of positions that stays free at both ends
GRIPPER = re.compile(r"gripp|finger|jaw|knuckle|thumb", re.IGNORECASE)  # names of gripper joints
ABOVE = 0.05  # share of random postures that must be above a default floor
NOISE = 0.01  # of the largest torque: assumed noise without a log
KNOWN_TO, MOST_RUNS = 0.1, 10  # relative deviation of a known parameter, and the most repetitions that are recommended
ROS_RATE = 100.0  # points per second of a trajectory message; the controller interpolates
MOST_STAGES = 2  # of a plan whose motion table has only the training motion; other tables have the whole cycle
TIGHTEST = 5  # limits shown in the table
FILES = (
    "plan*.json",
    "design.json",
    "motion.csv",
    "motion_ros.json",
    "joint_trajectory_controller.yaml",
)


@dataclass(frozen=True, eq=False)
class Experiment(Result):
    """A designed motion with the plans that record it."""

    design: Design  #: The motion and its expected accuracy
    plans: dict[str, Plan]  #: By the name of the file: ``plan``, or ``plan_without`` and ``plan_with`` for a payload
    source: str  #: Origin of the limits
    notes: tuple[str, ...] = ()  #: Assumptions about missing limits

    @property
    def improved(self) -> bool:
        """Whether the search improved the best random motion."""
        data = self.design.numbers()
        return any(abs(data["after"][name] - x) > 1e-3 * abs(x) for name, x in data["before"].items())

    def numbers(self) -> dict[str, Any]:
        """Return criteria, margins, deviations and plans."""
        assert self.design.mechanism is not None, "an experiment has a robot"
        data: dict[str, Any] = {"robot": self.design.mechanism.name, "limits": self.source, "assumed": list(self.notes)}
        data |= {**self.design.numbers(), "sentence": self.sentence(), "repetitions": self.repetitions}
        for entry, relative in zip(data["parameters"], self.relative_deviations(), strict=True):
            entry["relative"] = float(relative) if np.isfinite(relative) else None
        reached = next(iter(self.plans.values())).notes.get("complete")
        if reached is not None:
            data["complete"] = reached
        data["plans"] = {
            name: {"identity": plan.identity, "cycle": plan.curve.duration, "cycles": plan.cycles, "duration": plan.duration}
            for name, plan in self.plans.items()
        }
        return data

    def relative_deviations(self) -> Array:
        """Return the expected deviation of every base parameter after one run, over its described value; inf without one."""
        return _relative(self.design)

    @property
    def repetitions(self) -> int:
        """Recommended number of runs, which determines all parameters that ten runs would determine."""
        relative = self.relative_deviations() / KNOWN_TO
        worth = relative[relative <= MOST_RUNS**0.5]
        return int(np.ceil(np.max(worth, initial=1.0) ** 2))

    def sentence(self) -> str:
        """Return the criterion and the expected result of the plan as a sentence."""
        data, relative, runs = self.design.numbers(short=True), self.relative_deviations(), self.repetitions
        name, total = data["criterion"], relative.size
        once, often = (int(np.sum(relative / n**0.5 <= KNOWN_TO)) for n in (1, runs))
        values = f" ({data['before'][name]:.4g} -> {data['after'][name]:.4g})" if name in data["after"] else ""
        low, high = float(np.min(self.design.noise)), float(np.max(self.design.noise))
        noise = f"{low:.2g} to {high:.2g}" if high > 1.05 * low else f"{high:.2g}"
        more = f"; {runs} repetitions are recommended (--repetitions {runs}: {often} of {total})" if runs > 1 else ""
        return (
            f"optimised criterion {name}{values}: one run makes {once} of {total} base parameters known to "
            f"{100 * KNOWN_TO:.0f} % with {noise} N m (N) of noise{more}"
        )

    def summary(self) -> str:
        """Return the expected result, the tightest limits and the plans as lines."""
        data = self.numbers()
        lines = [self.sentence()]
        tight = sorted(data["margins"].items(), key=lambda item: item[1])[:TIGHTEST]
        lines += [
            "tightest limits (share that is left of the limits in use):",
            *(f"  {name:<32} {value:.2%}" for name, value in tight),
        ]
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
        """Write plans and motion as one set; return the files. `dynident.report.write_plan_page` shows them."""
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
            return [folder / path.name for path in sorted(staged.iterdir())]


def excite(
    robot: Mechanism | File,
    limits: MotionLimits | File | None = None,
    *,
    source: str | None = None,
    speed: float | None = None,
    floor: float | None = None,
    collision: bool = True,
    grippers: bool = False,
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
        Limits, or a file that completes the limits of the description: limits.toml, or MoveIt's joint_limits.yaml.
    source : str, optional
        Origin of the limits, for the record.
    speed : float, optional
        Share of the limits of speed and acceleration to use, above 0 up to 1; 0.5 when omitted, or 1 for limits given as
        `MotionLimits`.
    floor : float, optional
        Height that no body goes below [m]; height of the base, 0, when omitted, if the robot can stay above it.
    collision : bool
        Whether bodies are kept away from each other, as capsules; not with limits that are given as `MotionLimits`.
    grippers : bool
        Whether joints named like a gripper move too; they are locked otherwise.
    family : Fourier, optional
        Motions to choose from; five harmonics of 0.1 Hz when omitted.
    base : BaseParameters, optional
        Parameters to identify; the robot's base parameters when omitted.
    start : path-like, optional
        plan.json or design.json whose motion is tried first.
    recorded : sequence of Log
        Recorded logs that the motion complements.
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
        Motion, plans and assumptions; ``save(folder)`` writes them.
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
    loaded = [joint for joint, friction in mechanism.friction.items() if "tau" in friction.law.looks_at]
    mechanism = mechanism.with_friction(dict.fromkeys(loaded))  # not linear; the bodies' excitation is that of their loads
    notes: tuple[str, ...] = ()
    if isinstance(limits, MotionLimits):
        found, origin = limits, "those given"
    else:
        mechanism, held = (mechanism, "") if grippers else _without_grippers(mechanism)
        mechanism, found, notes = motion_limits(mechanism, limits, floor, collision)
        notes = (*((held,) if held else ()), *notes)
        origin = "those of the description" if limits is None else f"the description's, completed by {limits}"
    if loaded:
        notes = (*notes, f"the motion is designed for the friction terms of {', '.join(loaded)}, not for laws of their load")
    if speed is not None or not isinstance(limits, MotionLimits):
        found = _slower(found, SPEED if speed is None else speed)
        notes = (*notes, f"{100 * (SPEED if speed is None else speed):.0f} % of the limits of speed and acceleration are used")
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

    def told(state: dict[str, Any]) -> None:
        """Add the expected relative deviations of the best design so far to the report of the search."""
        best: Design = state["design"]
        best = best if "noise" in options else replace(best, noise=_assumed_noise(best))
        assert progress is not None
        progress({**state, "names": list(best.exact.names), "relative": _relative(best)})

    result = design(mechanism, progress=None if progress is None else told, **options)
    if "noise" not in options:
        result = replace(result, noise=_assumed_noise(result))
        notes = (
            *notes,
            f"noise of {100 * NOISE:.0f} % of the largest torques is assumed; recorded= (--recorded) shows that of logs",
        )
    plans = _plans(result, planned, repetitions, payload is not None)
    return Experiment(result, plans, source or origin, notes)


def _relative(found: Design) -> Array:
    """Return the expected deviations of base parameters after one run over their described values; inf without one."""
    size = np.abs(found.exact.base.values(found.exact.mechanism.parameters.values))
    with np.errstate(divide="ignore"):
        return np.where(size > 0.0, found.deviations() / np.where(size > 0.0, size, 1.0), np.inf)


def _assumed_noise(found: Design) -> Array:
    """Return a share of the largest torque of every equation along the motion; with loops, of the largest motor torque."""
    assert found.mechanism is not None, "an experiment has a robot"
    motion = found.motion()
    torques = inverse_dynamics(found.mechanism, motion)
    if found.mechanism.loops:
        torques = np.full((1, found.noise.size), np.max(np.abs(actuator_torques(found.mechanism, motion.q, torques))))
    largest = np.max(np.abs(torques), axis=0)
    least = NOISE * float(np.max(largest))
    if found.noise.shape != largest.shape or not 0.0 < least < np.inf:  # a robot whose description has no masses
        return found.noise
    return np.asarray(np.maximum(NOISE * largest, NOISE * least))


def plan_of_experiment(name: str) -> Callable[..., Plan]:
    """Return the function of a plug-in that plans an experiment from a `Design`, `validation=` and `repetitions=`."""
    if name not in entries(PLANS):
        raise DynidentError(not_installed(PLANS, name) or f"no package provides the plan '{name}'")
    made: Callable[..., Plan] = plugin(PLANS, name)
    return made


def motion_limits(
    mechanism: Mechanism, file: File | None = None, floor: float | None = None, collision: bool = False
) -> tuple[Mechanism, MotionLimits, tuple[str, ...]]:
    """Return the robot with its free base locked, its limits, and notes on assumed limits."""
    settings = {} if file is None else limits_settings(file)
    if floor is not None:
        settings["floor"] = floor
    free = any(joint.kind == "free" for joint in mechanism.joints)
    guessed = collision and not free and not {"floor", "tool"} & set(settings) and bool(np.any(mechanism.gravity))
    automatic = collision and "capsule" not in settings
    if automatic:
        settings["capsule"] = "auto"
    assumed = assume_limits(mechanism, settings)
    notes = list(assumed.notes)
    found = limits_of(assumed.mechanism, assumed.settings)
    if collision and "margin" not in settings:
        aside = ASIDE * (found.upper - found.lower)
        found = replace(found, lower=found.lower + aside, upper=found.upper - aside)
        notes.append(
            f"{100 * ASIDE:.0f} % of every range of positions stay free at both ends; margin in a limits file says more"
        )
    if guessed and capsules_of(assumed.mechanism):
        grounded = limits_of(assumed.mechanism, {**assumed.settings, "floor": 0.0})
        plane = [limit for limit in grounded.others if isinstance(limit, Floor)]
        if _above(assumed.mechanism, found, plane):
            found = replace(found, others=(*found.others, *plane))
            notes.append("all bodies stay above the robot's base; floor= (--floor) gives another height")
            settings = {**settings, "floor": 0.0}
    kept = next((limit for limit in found.others if isinstance(limit, Collision)), None)
    if automatic and kept is not None:
        pairs = f"{len(kept.pairs)} pairs of bodies are" if len(kept.pairs) > 1 else "one pair of bodies is"
        notes.append(
            f"{pairs} kept apart as capsules with the bodies' inertia; collision=False (--no-collision) leaves "
            "that out, [[capsule]] in a limits file gives better shapes"
        )
    if "floor" not in settings and "tool" not in settings:
        low = ", because its usual postures are below its base" if guessed and capsules_of(assumed.mechanism) else ""
        notes.append(f"the robot has no floor{low}; floor= (--floor) gives its height")
    return assumed.mechanism, found, tuple(notes)


def _above(mechanism: Mechanism, limits: MotionLimits, floor: Sequence[Floor]) -> bool:
    """Return whether enough random postures (with loops, the home position) are above a floor."""
    if mechanism.loops:
        q = mechanism.closure.home[list(mechanism.closure.independent)][None, :]
    else:
        q = np.random.default_rng(0).uniform(limits.lower, limits.upper, (POSTURES, mechanism.dof))
    return all(np.mean(np.all(limit.excess(State(q, q, q, q)) <= -limits.margin, axis=1)) > ABOVE for limit in floor)


def _without_grippers(mechanism: Mechanism) -> tuple[Mechanism, str]:
    """Return the robot with the joints of its gripper locked, and a sentence about them."""
    found = [
        joint
        for joint in mechanism.joints
        if joint.name in mechanism.coordinate_names and len(joint.coordinates) == 1 and GRIPPER.search(joint.name)
    ]
    if mechanism.loops or not found or len(found) == mechanism.dof:
        return mechanism, ""
    middle = {j.name: 0.5 * (j.limits.lower + j.limits.upper) for j in found}
    held = mechanism.lock({name: x if np.isfinite(x) else 0.0 for name, x in middle.items()})
    return held, f"{', '.join(middle)} held still as a gripper; grippers=True (--grippers) moves it"


def _slower(limits: MotionLimits, speed: float) -> MotionLimits:
    """Return limits with a share of speeds and accelerations."""
    if not 0.0 < speed <= 1.0:
        raise DynidentError(f"speed is {speed:g}; give a share of the limits above 0 and up to 1 (--speed)")
    return replace(limits, velocity=speed * limits.velocity, acceleration=speed * limits.acceleration)


def _known(mechanism: Mechanism, logs: Sequence[Log], base: BaseParameters | None, payload: bool) -> dict[str, Any]:
    """Return the information and noise of logs, recorded without the payload, that the new motion complements."""
    data: Regression | None = None
    for log in logs:
        known = base if data is None else data.base
        found = Regression.from_log(mechanism, log, known, absent=(PAYLOAD,) if payload else ())
        data = found if data is None else data + found
    assert data is not None, "called with at least one log"
    return {"recorded": data, "base": data.base, "noise": WLS().fit(data).result_.sigma}


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
    # A limit may separate two motions: the second half of the trials starts ever closer to the rest position of training.
    rest = resting_place(found.trajectory, rates_of(found.problem.limits)[1])
    for k in range(2 * VALIDATIONS):
        near = k - VALIDATIONS + 1
        try:
            other: Curve = found.validation(k + 1, *((rest, 1.0 - near / VALIDATIONS) if near > 0 else ()))
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
    """Return a time for a quintic across any joint range at less than half the speed limit."""
    lower, upper = (
        np.full(len(plan.coordinates), x) if b is None else b for b, x in ((plan.lower, -np.pi), (plan.upper, np.pi))
    )
    way = np.where(np.isfinite(upper - lower), upper - lower, 2.0 * np.pi)
    return max(3.0, float(np.ceil(np.max(way / (0.25 * plan.speed)))))
