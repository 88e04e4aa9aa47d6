"""Plans: joins keep the limits, payloads, validation, repetitions, one file, and logs that refer to it."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from identify_cases import RRR, arm
from small_robots import five_bar

from dynident.errors import DynidentError
from dynident.excitation import Plan, Stage, ToolBox, average_log, check_plan, limits_of, payload_plan, refer, stage_logs
from dynident.excitation.designs import plan_within, validation_motion
from dynident.excitation.objective import Criterion, Objective, RobotEquations
from dynident.excitation.optimise import Problem, feasible_start
from dynident.excitation.plan import purpose_logs
from dynident.identify import base_parameters
from dynident.signals import Log
from dynident.trajectory import BSpline, Fourier, Interpolated, Moves, Trajectory
from dynident.workflow import divide

BOX = {"lower": -1.5, "upper": 1.5, "velocity": 2.0, "acceleration": 8.0}


@pytest.fixture(scope="module")
def robot():
    return arm(RRR)


@pytest.fixture(scope="module")
def limits(robot):
    return limits_of(robot, {"default": BOX})


def problem_of(robot, settings, family):
    t = np.arange(60) / 60 * family.duration
    objective = Objective(RobotEquations(base_parameters(robot), 0.04), family, Criterion.parse("d"), t)
    return Problem(objective, limits_of(robot, settings))


def motion_of(robot, settings, family, seed=0):
    """A random motion inside limits, as strong as they allow."""
    p = problem_of(robot, settings, family)
    return Trajectory.from_vector(family, p.shrink(feasible_start(p, np.random.default_rng(seed))))


@pytest.mark.parametrize(
    "family", [Fourier(0.25, 4), Fourier(0.25, 4, rest=False), BSpline(4.0, 7)], ids=["rest", "runs", "spline"]
)
def test_joins_and_leads_keep_the_limits(robot, limits, family):
    training, other = (motion_of(robot, {"default": BOX}, family, k) for k in range(2))
    stages = [Stage("excitation", "training", training, 3), Stage("validation", "validation", other)]
    plan = plan_within("arm", limits, stages, 200.0)
    margins = check_plan(plan, limits)
    assert min(margins.values()) >= -1e-6 and set(margins) >= {f"velocity of {name}" for name in robot.coordinate_names}
    m = plan.motion(2000.0)
    assert np.abs(m.q).max() <= 1.5 and np.abs(m.v).max() <= 2.0 + 1e-6 and np.abs(m.a).max() <= 8.0 + 1e-5
    assert np.abs(m.v[[0, -1]]).max() < 1e-9 and np.abs(m.a[[0, -1]]).max() < 1e-9 and m.q[-1] == pytest.approx(m.q[0])
    assert np.abs(np.diff(m.v, axis=0)).max() <= 8.0 / 2000 * 1.01  # nothing jumps
    pieces = plan.entries()
    assert [p.stage.name for p in pieces if p.stage] == ["excitation"] * 3 + ["validation"]
    assert all(a.end == pytest.approx(b.start) for a, b in pairwise(pieces))
    entry = plan.schedule()[1]
    assert entry["repetition"] == 1 and plan.curve([entry["start"] + 0.7])[0] == pytest.approx(training([0.7])[0])


def test_a_join_that_cannot_keep_the_limits_is_refused(robot, limits):
    runs = Moves([[0.0, 0, 0], [1.0, 0, 0]], [0.2])  # 1 rad in 0.2 s
    with pytest.raises(DynidentError, match=r"stage 'fast' breaks limit 'acceleration of .*' by .* at t = "):
        plan_within("arm", limits, [Stage("fast", "training", runs)], 100.0)
    away = Moves([[1.4, 0, 0], [0.0, 0, 0]], [4.0])
    low = replace(limits, others=(ToolBox(robot, robot.bodies[-1].name, np.full(3, -np.inf), np.array([0.0, np.inf, np.inf])),))
    with pytest.raises(DynidentError, match="breaks limit 'position of"):
        plan_within("arm", low, [Stage("away", "training", away)], 100.0)


def test_payload_plans_run_the_same_motion_without_and_with(robot, limits):
    training = motion_of(robot, {"default": BOX}, Fourier(0.25, 4))
    without, loaded = payload_plan("arm", limits, training, 100.0, "weight", 2)
    assert [s.payload for s in (*without.stages, *loaded.stages)] == ["", "weight"]
    assert np.array_equal(without.motion().q, loaded.motion().q) and without.identity != loaded.identity
    with pytest.raises(DynidentError, match="payload has no name"):
        payload_plan("arm", limits, training, 100.0, "")


def test_the_validation_motion_is_another_one_inside_all_limits(robot, limits):
    family = Fourier(0.25, 4)
    p = problem_of(robot, {"default": {**BOX, "torque": 60.0}, "margin": 0.02}, family)
    one, two = validation_motion(p, 1), validation_motion(p, 2)
    assert one.family.highest <= family.highest and one.duration == family.duration
    assert not {round(f / 0.25, 6) for f in one.family.frequencies} & {1.0, 2.0, 3.0, 4.0}  # none of the training's harmonics
    assert np.abs(one([1.0])[0] - two([1.0])[0]).max() > 0.01
    plan = plan_within("arm", p.limits, [Stage("validation", "validation", one)], 100.0)
    assert min(check_plan(plan, p.limits).values()) >= 0.02 - 1e-3


def test_a_robot_with_loops_is_led_into_a_motion_without_rest():
    robot = five_bar()
    limits = limits_of(robot, {"default": {"acceleration": 5.0}, "margin": 0.001})
    family = Fourier(0.2, 4, rest=False)
    t = np.arange(60) / 60 * family.duration
    p = Problem(Objective(RobotEquations(base_parameters(robot)), family, Criterion.parse("d"), t), limits)
    curve = Trajectory.from_vector(family, p.shrink(feasible_start(p, np.random.default_rng(0))))
    plan = plan_within("five-bar", limits, [Stage("excitation", "training", curve, 2)], 500.0)
    assert len(plan.entries()) == 4 and min(check_plan(plan, limits).values()) >= 0.0
    q = plan.motion().q
    assert np.all(q >= limits.lower) and np.all(q <= limits.upper)


def test_one_file_holds_the_plan_and_rooms_below_can_run_it(robot, limits, tmp_path):
    stages = [
        Stage("excitation", "training", motion_of(robot, {"default": BOX}, Fourier(0.25, 4, rest=False)), 2),
        Stage("moves", "validation", Moves.within([[0, 0, 0], [1, -1, 1]], 2.0, 8.0, "cycloid")),
        Stage("path", "validation", Interpolated(Moves.within([[0, 0, 0], [0.2, 0, 0]], 2.0, 8.0).sample(50.0))),
    ]
    plan = plan_within("arm", limits, stages, 100.0, notes={"cond": np.inf})
    path = plan.save(tmp_path / "plan.json")
    data = json.loads(path.read_text())
    assert data["identity"] == plan.identity == Plan.load(path).identity
    t = np.linspace(0, plan.curve.duration, 100)
    assert all(np.array_equal(x, y) for x, y in zip(Plan.load(path).curve(t), plan.curve(t), strict=True))
    path.write_text(path.read_text().replace('"rate": 100.0', '"rate": 50.0'))
    with pytest.raises(DynidentError, match="was changed after it was made"):
        Plan.load(path)
    with pytest.raises(DynidentError, match=r"'stage.motion' is missing"):
        Plan.from_dict({"stages": [{}]})


def recording(plan, noise=0.1, seed=0):
    m = plan.motion()
    generator = np.random.default_rng(seed)
    effort = np.sin(m.q) + generator.normal(0.0, noise, m.q.shape)
    return Log(m.t + 5.0, plan.coordinates, m.q, effort, "joint_torque", name="run")


def test_logs_refer_to_the_plan_and_are_cut_and_averaged_by_it(robot, limits):
    training = motion_of(robot, {"default": BOX}, Fourier(0.25, 4))
    stages = [
        Stage("excitation", "training", training, 4),
        Stage("validation", "validation", motion_of(robot, {"default": BOX}, BSpline(3.0, 6))),
    ]
    plan = plan_within("arm", limits, stages, 100.0)
    log = refer(recording(plan), plan, cycle=3)
    assert log.provenance["plan"] == plan.identity and log.provenance["cycle"] == 3
    parts = stage_logs(log, plan)
    assert [len(parts[name]) for name in ("excitation", "validation")] == [4, 1] and len(parts["excitation"][0]) == 400
    assert parts["excitation"][2].position == pytest.approx(training(np.arange(400) / 100)[0], abs=1e-9)
    purposes = purpose_logs(log)  # what `identify` fits and is judged by: all repetitions of the training stage are one stretch
    (fitted,), (judged,) = purposes["training"], purposes["validation"]
    assert (fitted.t[0], fitted.t[-1]) == (parts["excitation"][0].t[0], parts["excitation"][-1].t[-1])
    assert len(fitted) == 1600 and fitted.t[-1] < parts["validation"][0].t[0]
    assert (judged.t[0], judged.t[-1]) == (parts["validation"][0].t[0], parts["validation"][0].t[-1])
    assert purpose_logs(recording(plan)) == {}
    with pytest.raises(DynidentError, match="refers to plan"):
        refer(log, replace(plan, rate=50.0))
    only = refer(recording(plan), replace(plan, stages=tuple(replace(stage, purpose="validation") for stage in plan.stages)))
    with pytest.raises(DynidentError, match="no complete training stage of its plan"):
        divide([only], [], 0.3)
    mean = average_log(log, plan)
    assert len(mean) == 400 and mean.provenance["averaged"] == 4
    error = [np.std(x.effort - np.sin(x.position)) for x in (parts["excitation"][0], mean)]
    assert error[0] / error[1] == pytest.approx(2.0, rel=0.1)  # the root of four
    other = replace(plan, rate=50.0)
    with pytest.raises(DynidentError, match="refers to plan"):
        stage_logs(log, other)
    with pytest.raises(DynidentError, match="holds no whole stage"):
        stage_logs(log.rows(0, 100), plan)
    with pytest.raises(DynidentError, match="no repetition of stage 'nothing'"):
        average_log(log, plan, "nothing")


def test_bad_plans_are_answered_in_a_sentence(robot, limits, subtests):
    for change, words in [
        ({"stages": []}, "the plan has no stage"),
        ({"cycles": 0}, "cycles of the plan is 0"),
        ({"rate": np.nan}, "rate of the plan is nan"),
        ({"period": 1.0}, "is planned every 1.0 s"),
        ({"speed": np.full(3, np.nan)}, "speed of the plan holds NaN"),
        ({"coordinates": ("a", "b"), "speed": 1.0, "acceleration": 1.0, "home": 0.0, "lower": None, "upper": None}, "moves 3"),
    ]:
        with subtests.test(str(words)):
            plan = plan_within(
                "arm", limits, [Stage("excitation", "training", motion_of(robot, {"default": BOX}, Fourier(0.25, 4)))], 100.0
            )
            with pytest.raises(DynidentError, match=words):
                replace(plan, **change)
            with pytest.raises(DynidentError, match="purpose is 'x'"):
                Stage("s", "x", plan.stages[0].curve)
            with pytest.raises(DynidentError, match="repetitions is 0"):
                Stage("s", "training", plan.stages[0].curve, 0)
