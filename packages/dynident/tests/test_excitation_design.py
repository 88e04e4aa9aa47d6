"""Limits, starts, optimisers, plans: a designed motion keeps every limit, or the call says which one cannot be kept."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest
from identify_cases import RRR, arm
from scipy.optimize import minimize
from small_robots import five_bar

from dynident.errors import DynidentError
from dynident.excitation import Capsule, Collision, Plan, Polygon, design, limits_of, payload_plan, read_limits
from dynident.excitation.designs import check_motion
from dynident.excitation.experiment import excite
from dynident.excitation.limits import Box, State
from dynident.excitation.objective import Criterion, Objective, RobotEquations
from dynident.excitation.optimise import Optimum, Problem, at, feasible_start, optimise, peaks, posture, slopes
from dynident.files import to_json
from dynident.identify import Regression, base_parameters
from dynident.mechanics import forward_kinematics
from dynident.trajectory import Fourier, Trajectory, sample

BOX = {"lower": -1.5, "upper": 1.5, "velocity": 2.0, "acceleration": 8.0}
FAMILY = Fourier(0.25, 4)


@pytest.fixture(scope="module")
def robot():
    return arm(RRR)


def problem(robot, settings, criterion="d", family=FAMILY, samples=60):
    t = np.arange(samples) / samples * family.duration
    objective = Objective(RobotEquations(base_parameters(robot), 0.04), family, Criterion.parse(criterion), t)
    return Problem(objective, limits_of(robot, settings))


def dense_margin(found, limits):
    return min(check_motion(limits, found, 500.0).values())


def test_design_improves_and_keeps_every_limit(robot, tmp_path):
    tip = robot.bodies[-1].name
    settings = {
        "margin": 0.02,
        "default": {**BOX, "jerk": 100.0, "torque": 60.0, "power": 80.0},
        "tool": {"frame": tip, "height": 0.2},
        "polygon": [
            {"joints": list(robot.coordinate_names[1:3]), "vertices": [[-1.4, -1.4], [1.4, -1.4], [1.4, 1.0], [-1.4, 1.4]]}
        ],
    }
    seen = []
    found = design(robot, settings, "d", family=FAMILY, starts=2, workers=1, progress=seen.append, iterations=100)
    before, after = found.values(found.start), found.values()
    assert after["d"] > before["d"] + 5.0 and seen and seen[-1]["margin"] >= 0.019
    margins = found.margins()
    assert min(margins.values()) >= 0.02 - 1e-6 and {"torque of " + robot.coordinate_names[0], f"position of {tip}.z"} <= set(
        margins
    )
    assert dense_margin(found.trajectory, found.problem.limits) >= 0.019
    assert np.all(found.deviations() > 0) and np.exp(np.mean(np.log(found.deviations() / found.deviations(found.start)))) < 1.0
    data = json.loads(to_json(found.numbers()))
    assert data["after"]["d"] == pytest.approx(after["d"]) and len(data["parameters"]) == len(found.exact.names)
    plan = found.plan(repetitions=2)
    again = Plan.load(plan.save(tmp_path / "plan.json"))
    assert again.identity == plan.identity and np.array_equal(again.motion().q, plan.motion().q)
    assert len(found.plot().axes) == 3 * robot.dof


def test_offsets_that_are_given_are_kept_and_the_criterion_still_improves(robot):
    wanted = np.linspace(-0.1, 0.1, robot.dof)
    found = design(robot, {"default": BOX}, "cond", family=FAMILY, starts=1, iterations=10, workers=1, offsets=wanted)
    np.testing.assert_allclose(found.trajectory.coefficients[:, 0], wanted, atol=1e-7)
    assert found.values()["cond"] < found.values(found.start)["cond"]
    assert min(found.margins().values()) > 0.0


def test_the_same_seed_gives_the_same_motion(robot):
    """However many processes share the work."""
    p = problem(robot, {"default": BOX})
    runs = [optimise(p, starts=3, seed=3, workers=workers, iterations=20) for workers in (1, 1, 3)]
    assert np.array_equal(runs[0].x, runs[1].x) and np.array_equal(runs[0].x, runs[2].x)


def test_a_search_that_is_cut_short_is_inside_the_limits(robot):
    """Whatever the machine manages in so short a time."""
    p = problem(robot, {"default": BOX})
    found = optimise(p, starts=2, time_budget=0.05, workers=1)
    assert p.feasible(found.x, True) and found.cost <= p.objective.cost(found.start)


def test_more_steps_are_never_worse(robot):
    p = problem(robot, {"default": BOX})
    x = feasible_start(p, np.random.default_rng(2))
    costs = [optimise(p, starts=1, workers=1, start=x, iterations=n).cost for n in (1, 10, 60)]
    assert p.objective.cost(x) >= costs[0] >= costs[1] >= costs[2] and p.objective.cost(x) > costs[2]
    with pytest.raises(DynidentError, match="iterations is 0; give a whole number, 1 or more"):
        optimise(p, iterations=0)


def test_a_design_is_never_worse_than_its_start(robot, monkeypatch):
    limits = limits_of(robot, {"default": BOX})
    good = design(robot, limits, family=FAMILY, criterion="d", starts=1, workers=1, iterations=20)
    poor = good.optimum.start
    module = sys.modules["dynident.excitation.designs"]
    monkeypatch.setattr(module, "optimise", lambda *given: Optimum(poor, -1e9, good.optimum.x, 1, 0.0))
    kept = design(robot, limits, family=FAMILY, criterion="d", start=good.optimum.x)
    assert kept.values() == good.values() and kept.values(kept.start) == good.values()


def test_scipys_slsqp_with_finite_differences_finds_nothing_better(robot):
    p = problem(robot, {"default": BOX})
    x = feasible_start(p, np.random.default_rng(1))
    kept = {"type": "ineq", "fun": lambda z: -(p.excess(z) + p.limits.margin)}
    theirs = minimize(p.objective.cost, x, method="SLSQP", constraints=kept, options={"maxiter": 100})
    assert theirs.fun < p.objective.cost(x) - 2.0 and np.min(kept["fun"](theirs.x)) > -1e-6
    assert optimise(p, 1, workers=1, start=x, iterations=100).cost < theirs.fun + 0.05


def test_parallel_robot_within_its_limits():
    robot = five_bar()
    settings = {"default": {"acceleration": 5.0}, "singularity": 0.02, "passive": {"elbow3": {"lower": 0.2, "upper": 2.5}}}
    found = design(robot, settings, "cond", family=Fourier(0.4, 4), starts=1, workers=1, samples=40, iterations=12)
    assert found.values()["cond"] < 0.9 * found.values(found.start)["cond"]
    names = {"closure singularity", "actuation singularity", "position of elbow3"}
    assert min(found.margins().values()) >= 0.01 - 1e-6 and names <= set(found.margins())


def test_parallel_robot_without_limits_stays_away_from_singularities():
    """A description of a loop seldom has limits: ranges are centred on home, and postures that do not close are left out."""
    experiment = excite(five_bar(), iterations=3, starts=1)
    margins = experiment.design.margins()
    assert min(margins["closure singularity"], margins["actuation singularity"]) >= 0.0
    assert np.isfinite(experiment.design.values()["cond"]) and any("singularities" in note for note in experiment.notes)


def test_slopes_of_limits(robot):
    tip = robot.bodies[-1].name
    settings = {"default": {**BOX, "torque": 60.0, "power": 90.0, "jerk": 90.0}, "tool": {"frame": tip, "x": [-0.5, 0.5]}}
    p = problem(robot, settings)
    x = feasible_start(p, np.random.default_rng(0))
    picks = sorted(peaks(p, x))
    J = slopes(p, x, picks)
    d = np.random.default_rng(1).normal(size=x.size)
    change = (at(p, x + 1e-6 * d, picks) - at(p, x - 1e-6 * d, picks)) / 2e-6
    assert len(picks) > 20 and np.abs(J @ d - change).max() < 1e-5 * np.abs(change).max()


def test_polygon():
    inside = Polygon((0, 1), np.array([[0, 0], [4, 0], [4, 4], [2, 1], [0, 4]]))
    q = np.array([[1.0, 1.0], [2.0, 2.0], [3.5, 3.0], [5.0, 1.0], [2.0, 0.5]])
    e = inside.excess(State(q, q, q, q))[:, 0]
    assert (e < 0).tolist() == [True, False, True, False, True] and e[3] == pytest.approx(0.5) and e[4] == pytest.approx(-0.25)
    reverse = Polygon((0, 1), inside.vertices[::-1])
    assert reverse.excess(State(q, q, q, q))[:, 0] == pytest.approx(e)


def test_capsules(robot):
    rng = np.random.default_rng(0)
    tip, grid = robot.bodies[-1].name, np.linspace(0, 1, 201)
    q = rng.uniform(-1.5, 1.5, (30, 3))
    R, p = forward_kinematics(robot, q, tip)
    for ends in (rng.normal(size=(4, 3)), np.array([[0.3, 0, 0], [0.3, 0, 0], [0, 1, 1], [0, 2, 2]]), np.ones((4, 3))):
        carried, fixed = Capsule(tip, *ends[:2], 0.05), Capsule(robot.root, *ends[2:], 0.1)
        gap = 0.15 * (1.0 - Collision(robot, [carried, fixed], 0.0).excess(State(q, q, q, q))[:, 0])
        on_fixed = fixed.start + np.outer(grid, fixed.end - fixed.start)
        for k in range(30):
            on_tip = (carried.start + np.outer(grid, carried.end - carried.start)) @ R[k].T + p[k]
            brute = np.linalg.norm(on_tip[:, None] - on_fixed[None], axis=2).min()
            assert brute - 1e-2 < gap[k] <= brute + 1e-9
    wall = Capsule(robot.root, [0.3, -1, 0.9], [0.3, 1, 0.9], 0.1)
    limit = Collision(robot, [wall, Capsule(tip, [0, 0, 0], [-0.3, 0, 0], 0.05)], 0.02)
    assert limit.names == (f"clearance of {robot.root} and {tip}",)
    settings = {
        "default": BOX,
        "capsule": [{"link": c.link, "from": c.start, "to": c.end, "radius": c.radius} for c in limit.capsules],
    }
    p = problem(robot, settings)
    assert p.feasible(feasible_start(p, np.random.default_rng(0)), True)
    with pytest.raises(DynidentError, match="no two capsules"):
        Collision(robot, [wall])


def test_payload_plan(robot):
    limits = limits_of(robot, {"default": BOX})
    excitation = Trajectory(FAMILY, np.random.default_rng(0).normal(size=(3, FAMILY.size)) * 0.05)
    other = Trajectory(FAMILY, np.random.default_rng(1).normal(size=(3, FAMILY.size)) * 0.05)
    without, loaded = payload_plan("arm", limits, excitation, 100.0, "weight", validation=other)
    assert without.stages[0].payload == "" and loaded.stages[0].payload == "weight" and loaded.stages[0].repetitions == 3


def test_payload_goal(robot):
    loaded = robot.with_payload(2.0, separate=True) if "separate" in robot.with_payload.__code__.co_varnames else None
    if loaded is None:
        pytest.skip("payloads are separate bodies of the description here")
    name = loaded.bodies[-1].name
    found = design(loaded, {"default": BOX}, "d", 3.0, FAMILY, goal=[name], starts=1, workers=1, samples=40)
    assert all(name in parameter for parameter in found.exact.names) and len(found.exact.names) == 10
    assert found.values()["d"] > found.values(found.start)["d"]
    base = base_parameters(loaded, removable=[name])
    bare = sample(Trajectory(FAMILY, np.random.default_rng(0).normal(size=(3, FAMILY.size)) * 0.4), 100.0)
    recorded = Regression.from_motion(loaded, bare, np.zeros_like(bare.q), base, absent=[name])
    found = design(loaded, {"default": BOX}, "d", 3.0, FAMILY, recorded=recorded, goal=[name], starts=1, workers=1, samples=40)
    assert len(found.problem.objective.criterion.goal) == 10 and len(found.exact.names) == base.rank
    assert np.isfinite(found.deviations()).all() and found.values()["d"] > found.values(found.start)["d"]


def test_limits_file(robot, tmp_path):
    first = robot.coordinate_names[0]
    path = tmp_path / "limits.toml"
    path.write_text(
        f"margin = 0.05\nbandwidth = 3.0\n[default]\nlower = -1\nupper = 1\nvelocity = 2\n[joints.{first}]\nupper = 0.5\n"
    )
    limits = read_limits(path, robot)
    assert limits.upper.tolist() == [0.5, 1, 1] and limits.margin == 0.05 and limits.bandwidth == 3.0


def run(robot, settings, **kw):
    return design(robot, settings, "d", 2.0, kw.pop("family", FAMILY), starts=1, workers=1, samples=40, **kw)


def test_bad_input_is_answered_in_a_sentence(robot, subtests):
    for settings, options, words in [
        ({}, {}, "has no position limits"),
        ({"default": {"lower": -1, "upper": 1}}, {}, "neither a velocity nor an acceleration"),
        ({"default": {**BOX, "lower": 2.0}}, {}, "which is empty"),
        ({"default": {**BOX, "torque": 0.01}}, {}, "limit 'torque of .*' cannot be kept"),
        ({"default": BOX, "tool": {"frame": "link_3", "height": 5.0}}, {}, "link_3.z' cannot be kept"),
        ({"default": BOX, "tool": {"frame": "nowhere"}}, {}, "nowhere"),
        ({"default": BOX, "bandwidth": 0.5}, {}, "drives follow 0.5 Hz"),
        ({"default": BOX}, {"family": Fourier(0.25, 40)}, "Nyquist"),
        ({"default": BOX}, {"start": np.full(21, 5.0)}, "the start breaks limit"),
        ({"default": BOX}, {"start": np.zeros(3)}, "start has shape"),
        ({"default": {"speed": 1.0}}, {}, "unknown field 'speed'"),
        ({"defaults": BOX}, {}, "unknown entry 'defaults'"),
        ({"joints": {"x": BOX}}, {}, "unknown joint 'x'"),
        ({"default": BOX, "singularity": 0.1}, {}, "robots with loops"),
        ({"default": {**BOX, "velocity": "fast"}}, {}, "give a number"),
        ({"default": BOX, "margin": 1.5}, {}, "margin is 1.5"),
        ({"default": BOX, "polygon": [{"joints": ["x", "y"], "vertices": []}]}, {}, "polygon"),
    ]:
        with subtests.test(str(words)), pytest.raises(DynidentError, match=words):
            run(robot, settings, **options)


def test_bad_files(robot, tmp_path):
    (tmp_path / "l.toml").write_text("[default\n")
    with pytest.raises(DynidentError, match="cannot read limits"):
        read_limits(tmp_path / "l.toml", robot)
    for text in ("[]", "{}", '{"format": "dynident-plan-1"}', "\x00"):
        (tmp_path / "p.json").write_text(text)
        with pytest.raises(DynidentError, match=r"plan"):
            Plan.load(tmp_path / "p.json")


@pytest.mark.parametrize("workers", [0, -2])
def test_fewer_than_one_worker_is_refused(workers):
    robot = arm(RRR)
    limits = limits_of(robot, {"default": {"lower": -1.0, "upper": 1.0, "velocity": 1.0, "acceleration": 5.0}})
    with pytest.raises(DynidentError, match=f"workers is {workers}; give a whole number, 1 or more"):
        design(robot, limits, workers=workers, iterations=1, starts=1)


def test_a_search_begins_in_the_middle_of_the_ranges(robot):
    p = problem(robot, {"default": {**BOX, "lower": 0.25, "upper": 1.25}})
    np.testing.assert_allclose(posture(p, np.random.default_rng(0)), 0.75)


def test_margins_are_shares_of_half_the_range_or_of_the_larger_rate():
    state = State(*np.array([[[0.5], [2.0], [3.0]], [[0.0], [3.0], [-1.0]]] * 2))
    places = Box(0, np.array([1.0]), np.array([3.0]), ("slide",))
    np.testing.assert_allclose(places.excess(state), [[-2.5, 0.5], [-1.0, -1.0], [0.0, -2.0]])
    rates = Box(1, np.array([-1.0]), np.array([4.0]), ("slide",))
    np.testing.assert_allclose(rates.excess(state), [[-1.0, -0.25], [-0.25, -1.0], [-1.25, 0.0]])
