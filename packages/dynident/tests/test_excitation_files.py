"""Plans, limits and starts of any content: one sentence before anything large is made, and bytes that repeat."""

from __future__ import annotations

import json
import os
from dataclasses import replace

import numpy as np
import pytest
from identify_cases import RRR, arm

import dynident as di
from dynident.errors import DynidentError
from dynident.excitation import (
    Capsule,
    Collision,
    Floor,
    MotionLimits,
    Plan,
    Stage,
    assume_limits,
    capsules_of,
    design,
    limits_of,
    read_limits,
)
from dynident.excitation.designs import check_motion, plan_within
from dynident.excitation.limits import State
from dynident.excitation.limits_file import limits_settings
from dynident.excitation.objective import Criterion, Objective, RobotEquations
from dynident.excitation.optimise import Problem, feasible_start, optimise
from dynident.files import to_json
from dynident.identify import base_parameters
from dynident.trajectory import Fourier, Trajectory
from dynident.trajectory.export import from_spec

BOX = {"lower": -1.5, "upper": 1.5, "velocity": 2.0, "acceleration": 8.0}
FAMILY = Fourier(0.25, 4)
HUGE = 10**400
DEEP = "[" * 100_000


@pytest.fixture(scope="module")
def robot():
    return arm(RRR)


@pytest.fixture(scope="module")
def plan(robot):
    curve = Trajectory(FAMILY, np.random.default_rng(0).normal(size=(3, FAMILY.size)) * 0.03)
    stages = [Stage("excitation", "training", curve)]
    return plan_within("arm", limits_of(robot, {"default": BOX}), stages, 100.0, notes={"by": "hand"})


def load_with(plan, tmp_path, change):
    data = json.loads(plan.save(tmp_path / "plan.json").read_text())
    del data["identity"]
    change(data)
    (tmp_path / "plan.json").write_text(json.dumps(data))
    return Plan.load(tmp_path / "plan.json")


def put(*path, value):
    def change(data):
        for key in path[:-1]:
            data = data[key]
        data[path[-1]] = value

    return change


def test_wrong_content_of_a_plan_is_one_sentence(plan, tmp_path, subtests):
    for change, words in [
        (put("cycles", value=float("inf")), "cycles of the plan is inf; give a whole number"),
        (put("cycles", value=2.5), "cycles of the plan is 2.5"),
        (put("cycles", value=10**12), "cycles of the plan is 1000000000000"),
        (put("rate", value="fast"), "rate of the plan is 'fast'"),
        (put("rate", value=1e9), "more than 4000000 samples"),
        (put("rate", value=HUGE), "hundreds of digits: .*rate.*1000"),
        (put("period", value=-1.0), "period of the plan is -1"),
        (put("period", value=1e12), "more than 4000000 samples"),
        (put("notes", value=3), "notes of the plan are 3"),
        (put("notes", value="x"), "notes of the plan are 'x'"),
        (put("coordinates", value=["a", "b", 5]), "a coordinate of the plan is 5"),
        (put("coordinates", value=["a", "b", [[1]]]), r"a coordinate of the plan is \[\[1\]\]"),
        (put("coordinates", value=["a", "a", "b"]), "different names"),
        (put("coordinates", value="abc"), "coordinates of the plan are 'abc'"),
        (put("home", value=[1e308, 0, 0]), "home of the plan"),
        (put("lower", value=[HUGE, 0, 0]), "hundreds of digits: .*lower"),
        (put("upper", value=[[1.0], 0, 0]), "'plan.upper.0.' is .*, not a number"),
        (put("speed", value=5), "'plan.speed' is '5', not a list"),
        (put("robot", value=7), "robot of the plan is 7"),
        (put("stages", value={}), "'plan.stages' is '{}', not a list"),
        (put("stages", value=7), "cannot read a plan"),
        (put("stages", 0, "name", value=[1]), "name of a stage"),
        (put("stages", 0, "purpose", value={}), "purpose is {}"),
        (put("stages", 0, "repetitions", value=10_000_000), "repetitions is 10000000; give a whole number from 1 to 10000"),
        (put("stages", 0, "repetitions", value=True), "repetitions is True"),
        (put("stages", 0, "payload", value=1), "payload is 1"),
        (put("stages", 0, "record", value="yes"), "record is 'yes'"),
        (put("stages", 0, "motion", "coefficients", value=[[HUGE]]), "hundreds of digits: .*coefficients"),
        (put("stages", 0, "motion", "family", value=[]), "cannot"),
        (put("stages", 0, "motion", value=None), "a motion is described by a table"),
        (
            put("stages", 0, "motion", value={"kind": "lead", "curve": {"kind": "trajectory"}, "periods": 1e400}),
            "periods' is 'inf', not int",
        ),
        (lambda data: data.pop("rate"), "'plan.rate' is missing"),
    ]:
        with subtests.test(str(words)):
            with pytest.raises(DynidentError, match=words) as told:
                load_with(plan, tmp_path, change)
            assert "\n" not in str(told.value) and len(str(told.value)) < 500


def test_files_that_are_no_plan(plan, tmp_path):
    path = tmp_path / "p.json"
    for content in (DEEP, '{"format": "dynident-plan-1", "stages": ' + DEEP, '{"cycles": ' + "9" * 5000 + "}", "\x00", "3"):
        path.write_text(content)
        with pytest.raises(DynidentError, match="plan"):
            Plan.load(path)
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(DynidentError, match="not a regular file"):
            Plan.load(tmp_path / "pipe")
    with pytest.raises(DynidentError, match="nested too deeply"):
        motion: dict = {"kind": "joined", "pieces": []}
        for _ in range(20_000):
            motion = {"kind": "joined", "pieces": [motion]}
        from_spec(motion)


def test_wrong_content_of_limits_is_one_sentence(robot, tmp_path, subtests):
    for toml, words in [
        ("[joints.joint_1]\nupper = 99999999999999999999\n", "write numbers beyond 64 bits with a decimal point"),
        ("margin = " + "9" * 5000 + "\n", "cannot read limits"),
        ("margin = 1" + "0" * 400 + "\n", "hundreds of digits: .margin = 1000"),
        ("a = " + "[" * 5000 + "\n", "cannot read limits"),
        ("margin = true\n", "margin is True; give a number"),
        ("bandwidth = nan\n", "bandwidth is nan"),
        (
            "[[capsule]]\nlink = 'base'\nfrom = [1" + "0" * 400 + ", 0, 0]\nto = [0, 0, 0]\nradius = 1\n",
            "hundreds of digits: .from = ",
        ),
        ("[[capsule]]\nlink = 3\nfrom = [0, 0, 0]\nto = [0, 0, 0]\nradius = 1\n", "link of a capsule is 3"),
        ("capsule = 3\n", "capsule is 3; it must be a list of tables"),
        ("polygon = 'x'\n", "polygon is 'x'"),
        ("[[polygon]]\njoints = 5\nvertices = []\n", "polygon"),
        ("[tool]\nframe = 7\n", "tool.frame is 7"),
        ("[tool]\nframe = 'base'\nx = 3\n", "limits: x of tool is 3; give a list of 2"),
        (
            "collision = 5\n[[capsule]]\nlink = 'base'\nfrom = [0, 0, 0]\nto = [0, 0, 0]\nradius = 1\n",
            "limits: collision is 5; it must be a table",
        ),
        ("default = 3\n", "default is 3; it must be a table"),
    ]:
        with subtests.test(str(words)):
            (tmp_path / "limits.toml").write_text(toml)
            with pytest.raises(DynidentError, match=words) as told:
                read_limits(tmp_path / "limits.toml", robot)
            assert "\n" not in str(told.value)


def test_wrong_arguments_are_one_sentence(robot, subtests):
    for call, words in [
        (lambda r: limits_of(r, 3), "limits are 3"),
        (lambda r: MotionLimits("abc", 0, 1, 1, 1, 1), "coordinates are 'abc'"),
        (lambda r: MotionLimits(("a",), "x", 1, 1, 1, 1), "lower limits"),
        (lambda r: MotionLimits(("a",), [0, 0], 1, 1, 1, 1), "lower limits"),
        (lambda r: MotionLimits(("a",), 0, 1, 1, 1, 1, margin="x"), "margin is 'x'"),
        (lambda r: Capsule("a", "x", [0, 0, 0], 1.0), "start"),
        (lambda r: design(7), "mechanism"),
        (lambda r: design(r, {"default": BOX}, family=FAMILY, rate=1e9), "lower the rate"),
        (lambda r: design(r, {"default": BOX}, family=FAMILY, rate="x"), "rate is 'x'"),
        (lambda r: design(r, {"default": BOX}, family=FAMILY, samples=10**9), "more than 4000000 samples"),
        (lambda r: design(r, {"default": BOX}, family=FAMILY, samples=2.5), "samples is 2.5"),
        (lambda r: design(r, {"default": BOX}, family=FAMILY, starts=1.5), "starts is 1.5"),
        (lambda r: design(r, {"default": BOX}, family=FAMILY, start="x"), "start"),
        (lambda r: design(r, {"default": BOX}, family=FAMILY, starts=10**12), "from 1 to 1000000"),
        (lambda r: design(r, {"default": BOX}, family=3), "family is 3; give a family"),
        (lambda r: design(r, {"default": BOX}, family=FAMILY, seed=-1), "seed is -1"),
        (lambda r: design(r, {"default": BOX}, criterion=3), "criterion is 3"),
        (lambda r: design(r, {"default": BOX}, scale={}), "scale"),
        (lambda r: design(r, {"default": BOX}, goal="x"), "goal is 'x'"),
        (lambda r: design(r, {"default": BOX}, base=1), "base is a int"),
        (lambda r: design(r, {"default": BOX}, time_budget="x"), "time_budget is 'x'"),
        (lambda r: plan_within("a", 3, [], 100.0), "limits is a int"),
        (lambda r: plan_within("a", limits_of(r, {"default": BOX}), [1], 100.0), "stages are"),
        (lambda r: Stage("a", "training", 3), "curve is 3; give a motion"),
        (lambda r: check_motion(limits_of(r, {"default": BOX}), 3), "curve is 3"),
    ]:
        with subtests.test(str(words)), pytest.raises(DynidentError, match=words):
            call(robot)


def test_a_plan_is_known_by_its_motion(robot, plan):
    """Not by its notes, and so not by the time its search took."""
    assert replace(plan, notes={"other": 1}).identity == plan.identity
    assert replace(plan, rate=50.0).identity != plan.identity
    assert replace(plan, home=plan.home + 0.01).identity != plan.identity


def test_the_same_seed_and_steps_give_the_same_bytes(robot, tmp_path):
    found = [
        design(robot, {"default": BOX}, family=FAMILY, starts=2, workers=workers, iterations=8, samples=40)
        for workers in (1, 2)
    ]
    assert to_json(found[0].numbers()) == to_json(found[1].numbers())
    assert not found[0].optimum.cut and found[0].numbers()["cut_by_time"] is False
    written = [one.plan().save(tmp_path / f"{k}.json").read_bytes() for k, one in enumerate(found)]
    assert written[0] == written[1] and b"seconds" not in written[0]


@pytest.mark.parametrize("workers", [1, 2])
def test_a_budget_of_time_is_kept_with_any_number_of_starts(robot, workers):
    """Starts that cannot begin in time do not begin (a million would take hours); the result says that time ended it."""
    t = np.arange(40) / 40 * FAMILY.duration
    objective = Objective(RobotEquations(base_parameters(robot), 0.04), FAMILY, Criterion.parse("d"), t)
    problem = Problem(objective, limits_of(robot, {"default": BOX}))
    feasible_start(problem, np.random.default_rng(0))
    found = optimise(problem, starts=1_000_000, time_budget=0.5, workers=workers)
    assert found.cut and 0 < found.starts < 100_000 and problem.feasible(found.x, True)


# ---- what is assumed -------------------------------------------------------------------------------------------------


def test_a_capsule_has_the_size_of_the_cylinder_with_the_same_inertia():
    """A solid cylinder of radius r and length 2 h: m r^2 / 2 and m (3 r^2 + (2 h)^2) / 12, textbook."""
    r, h, m = 0.05, 0.2, 3.0
    across = m * (3 * r**2 + (2 * h) ** 2) / 12
    phi = di.mechanism.from_com(m, [0.0, 0.0, 0.3], np.diag([across, across, m * r**2 / 2]))
    bodies = (di.Body("base"), di.Body("a", phi))
    robot = di.Mechanism("one", bodies, (di.Joint("j", "revolute", "base", "a", axis=[1, 0, 0]),))
    (capsule,) = capsules_of(robot)
    assert capsule.radius == pytest.approx(r, rel=1e-12)
    ends = sorted([capsule.start[2] - r, capsule.end[2] + r, capsule.start[2] + r, capsule.end[2] - r])
    np.testing.assert_allclose([ends[0], ends[-1]], [0.3 - h, 0.3 + h], atol=1e-12)


def chain(links: int) -> di.Mechanism:
    """A planar arm of sticks of 0.5 m in a vertical plane, on a base at the origin."""
    phi = di.mechanism.from_com(1.0, [0.0, 0.0, 0.25], np.diag([0.0211, 0.0211, 0.0002]))
    names = ["base", *(f"stick{k}" for k in range(links))]
    up = [di.mechanism.Placement(translation=[0.0, 0.0, 0.5 * (k > 0)]) for k in range(links)]
    joints = [di.Joint(f"j{k}", "revolute", names[k], names[k + 1], up[k], axis=[0, 1, 0]) for k in range(links)]
    return di.Mechanism("sticks", (di.Body("base"), *(di.Body(n, phi) for n in names[1:])), tuple(joints))


def test_bodies_that_meet_and_the_floor_are_limits():
    """Four sticks: folded into a triangle the third meets the first; hanging down they are below the floor."""
    robot = chain(4)
    settings = {"default": {"lower": -3.0, "upper": 3.0, "velocity": 1.0}, "capsule": "auto", "floor": 0.05}
    limits = limits_of(robot, settings)
    (meeting,) = (x for x in limits.others if isinstance(x, Collision))
    (floor,) = (x for x in limits.others if isinstance(x, Floor))

    def over(limit, q):
        q = np.array([q], dtype=float)
        return limit.excess(State(q, 0 * q, 0 * q, 0 * q))[0].max() > 0.0

    folded, straight = [0.0, 2.2, 2.2, 0.2], [0.0, 0.2, 0.2, 0.2]
    assert over(meeting, folded) and not over(meeting, straight)
    assert over(floor, [0.0, 2.8, 0.5, 0.0]) and not over(floor, [0.3, 0.2, 0.2, 0.2])
    assert all("stick0" not in name for name in floor.names) or not over(floor, [0.0, 0.0, 0.0, 0.0])


def test_missing_limits_are_assumed_and_said_and_given_ones_stay():
    robot = di.Mechanism("two", chain(2).bodies, chain(2).joints).with_free_base()
    assert robot.dof == 8
    assumed = assume_limits(robot, {"joints": {"j0": {"lower": -0.5, "upper": 0.5}}})
    assert assumed.mechanism.coordinate_names == ("j0", "j1")
    limits = limits_of(assumed.mechanism, assumed.settings)
    np.testing.assert_array_equal(limits.lower, [-0.5, -np.pi])
    np.testing.assert_array_equal(limits.velocity, [1.0, 1.0])
    told = " ".join(assumed.notes)
    assert "free base" in told and "positions within 3.14 rad assumed for j1;" in told and "speeds up to 1 rad/s" in told


MOVEIT = """default_velocity_scaling_factor: 0.5
joint_limits:
  j0: {has_velocity_limits: true, max_velocity: 2.0, has_acceleration_limits: true, max_acceleration: 4.0}
  j1: {has_velocity_limits: true, max_velocity: 3.0, has_acceleration_limits: false, max_acceleration: 0.0}
"""


def test_limits_of_moveit(tmp_path):
    pytest.importorskip("yaml", reason="an extra: pip install 'dynident[yaml]'")
    file = tmp_path / "joint_limits.yaml"
    file.write_text(MOVEIT)
    robot = chain(2)
    settings = assume_limits(robot, limits_settings(file)).settings
    limits = limits_of(robot, settings)
    np.testing.assert_array_equal(limits.velocity, [1.0, 1.5])
    np.testing.assert_array_equal(limits.acceleration, [4.0, np.inf])
    for bad, words in (
        ("joint_limits: 3", "no table 'joint_limits'"),
        ("a: [", "cannot read limits"),
        ("!!python/object:os.x {}", "cannot read"),
    ):
        file.write_text(bad)
        with pytest.raises(DynidentError, match=words):
            limits_settings(file)


@pytest.mark.parametrize("text", ["upper = [true]", "lower = {a = 1}", 'upper = "1"', "velocity = []", "lower = 2020-01-01"])
@pytest.mark.parametrize("table", ["joints.joint_1", "default"])
def test_limits_that_are_no_numbers_are_named(text, table, tmp_path):
    file = tmp_path / "limits.toml"
    file.write_text(f"[{table}]\n{text}\n")
    settings = limits_settings(file)
    robot = di.Mechanism.from_dh([(0.3, 0.0, 0.0, 0.0), (0.2, 0.0, 0.0, 0.0)])
    for read in (assume_limits, limits_of):
        with pytest.raises(di.DynidentError, match=rf"limits: {table}\.{text.split()[0]} is "):
            read(robot, settings)


def test_a_speed_of_zero_in_a_limits_file_is_refused_and_not_replaced():
    robot = di.Mechanism.from_dh([(0.3, 0.0, 0.0, 0.0)])
    assumed = assume_limits(robot, {"joints": {"joint_1": {"velocity": 0.0}}})
    with pytest.raises(di.DynidentError, match="velocity limit of 'joint_1' is 0"):
        limits_of(assumed.mechanism, assumed.settings)


def test_the_first_moving_link_stays_above_the_floor_too():
    robot = arm(RRR)
    capsules = [{"link": body, "from": [0, 0, 0], "to": [0, 0, 0.1], "radius": 0.05} for body in robot.tree.bodies]
    limits = limits_of(robot, {"default": BOUNDS, "capsule": capsules, "floor": 0.0, "collision": {"clearance": -1.0}})
    (floor,) = (x for x in limits.others if isinstance(x, Floor))
    assert {c.link for c in floor.capsules} == set(robot.tree.bodies)


BOUNDS = {"lower": -1.0, "upper": 1.0, "velocity": 1.0}
