"""The complete test: every joint at all speeds, warmed over its range, inside all limits; its strokes; `excite --complete`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from identify_cases import RRR, arm
from test_cli_excite import QUICK, URDF

from dynident.cli import run
from dynident.errors import DynidentError
from dynident.excitation import Plan, check_plan, limits_of
from dynident.excitation.designs import check_motion
from dynident.excitation.objective import Criterion, Objective, RobotEquations
from dynident.excitation.optimise import Problem, feasible_start
from dynident.identify import base_parameters
from dynident.trajectory import Fourier, Trajectory, from_spec
from dynident_lab.thermal import complete_test, friction_plateaus, warming
from dynident_lab.thermal.complete import complete_shares

BOX = {"lower": -1.5, "upper": 1.5, "velocity": 2.0, "acceleration": 8.0}
RANGES = ([-1.0, -2.0], [1.0, 1.5], [1.0, 2.0], [5.0, 9.0])
STROKES = {
    "friction plateaus": friction_plateaus(*RANGES),
    "friction plateaus, jerk": friction_plateaus(*RANGES, jerk=[20.0, 40.0]),
    "warming": warming(*RANGES, duration=20.0),
}


@pytest.fixture(scope="module")
def robot():
    return arm(RRR)


def motion_of(robot, settings, family, seed=0):
    """A random motion inside limits, as strong as they allow."""
    t = np.arange(60) / 60 * family.duration
    p = Problem(
        Objective(RobotEquations(base_parameters(robot), 0.04), family, Criterion.parse("d"), t), limits_of(robot, settings)
    )
    return Trajectory.from_vector(family, p.shrink(feasible_start(p, np.random.default_rng(seed))))


@pytest.mark.parametrize("name", STROKES)
def test_strokes_are_smooth_rest_at_their_ends_and_come_back_from_json(name):
    curve = STROKES[name]
    t = np.random.default_rng(0).uniform(0.001, 0.999, 300) * curve.duration
    near = [curve(t + 1e-4 * k) for k in (-2, -1, 1, 2)]  # derivatives of q and v by differences of fourth order
    for i, ours in enumerate(curve(t)[1:]):
        slope = (near[0][i] - 8 * near[1][i] + 8 * near[2][i] - near[3][i]) / 12e-4
        off = np.abs(ours - slope).max(axis=1) / np.abs(ours).max()
        assert np.quantile(off, 0.9) < 1e-7 and off.max() < 2e-3  # not exact across a kink of the jerk
    t = np.linspace(0.0, curve.duration, 160001)
    q, v, a = curve(t)
    assert np.abs([v[0], v[-1], a[0], a[-1]]).max() < 1e-9
    assert np.abs(np.diff(q, axis=0)).max() <= t[1] * np.abs(v).max() * 1.01 + 1e-12
    assert np.abs(np.diff(v, axis=0)).max() <= t[1] * np.abs(a).max() * 1.01 + 1e-12
    assert np.abs(np.diff(a, axis=0)).max() <= 0.2 * np.abs(a).max() + 1e-12  # no jump of the acceleration
    again = from_spec(json.loads(json.dumps(curve.spec())))
    assert type(again) is type(curve) and all(np.array_equal(x, y) for x, y in zip((q, v, a), again(t), strict=True))


def test_friction_plateaus_and_warming_keep_their_ranges():
    low, high, speed, push = [-1.0, -2.0], [1.0, 1.0], [1.0, 2.0], [5.0, 8.0]
    friction = friction_plateaus(low, high, speed, push)
    m = friction.sample(200)
    assert np.all(m.q >= np.array(low) - 1e-9) and np.all(m.q <= np.array(high) + 1e-9)
    assert np.all(np.abs(m.v).max(axis=0) <= np.array(speed) + 1e-9) and np.all(
        np.abs(m.a).max(axis=0) <= np.array(push) + 1e-9
    )
    for j in range(2):
        speeds = {round(v, 9) for k, v, t0, t1 in friction.plateaus if k == j and t1 - t0 > 0.05}
        wanted = {round(s * share * speed[j], 9) for share in (0.05, 0.2, 0.4, 0.6, 0.8, 1.0) for s in (-1, 1)}
        assert wanted <= speeds
        for k, v, t0, t1 in friction.plateaus:
            if k == j and t1 - t0 > 0.02:
                inside = (m.t > t0 + 1e-9) & (m.t < t1 - 1e-9)
                assert np.abs(m.v[inside, j] - v).max(initial=0.0) < 1e-12
    w = warming(low, high, speed, push, duration=20.0)
    m = w.sample(200)
    assert w.duration == 20.0 and np.ptp(m.q, axis=0) == pytest.approx([1.6, 2.4], abs=1e-9)
    assert np.abs(m.q[-1] - m.q[0]).max() < 1e-9 and np.abs(m.v).max(axis=0) == pytest.approx(speed)


def test_bad_ranges_are_answered_in_a_sentence():
    with pytest.raises(DynidentError, match="ranges"):
        friction_plateaus([-np.inf], [1.0], 1.0, 1.0)
    with pytest.raises(DynidentError, match="cannot reach"):
        friction_plateaus([-0.1], [0.1], 5.0, 1.0)


def test_the_complete_test_of_document_3(robot, tmp_path):
    settings = {"default": {**BOX, "jerk": 200.0, "torque": 90.0}}
    limits = limits_of(robot, settings)
    training = motion_of(robot, settings, Fourier(0.25, 4))
    plan = complete_test("arm", limits, training, 100.0, repetitions=2)
    assert (plan.cycles, plan.period, plan.duration) == (24, 300.0, 7200.0)
    assert [s.name for s in plan.stages] == ["excitation", "full_speed", "friction", "warming"]
    assert [s.record for s in plan.stages] == [True, True, True, False] and plan.stages[0].repetitions == 2
    assert plan.stages[3].curve.duration == 180.0 and plan.curve.duration <= 300.0
    assert min(check_plan(plan, limits).values()) >= -1e-2  # of the jerk, which is by differences
    speeds = {round(abs(v), 6) for j, v, t0, t1 in plan.stages[2].curve.plateaus if j == 0 and t1 - t0 > 0.4}
    assert speeds == {round(share * 2.0, 6) for share in (0.05, 0.2, 0.4, 0.6, 0.8, 1.0)}  # of the limit itself, and no other
    for shares in complete_shares(plan, limits).values():
        assert shares["full_speed"] == pytest.approx(1.0, abs=1e-3) and shares["warming_speed"] == pytest.approx(1.0)
        assert shares["warming_range"] == pytest.approx(0.8, abs=1e-6)
    two = plan.motion(20.0, cycles=2)
    assert two.t[-1] == 600.0 and np.abs(two.q[6000:12000] - two.q[:6000]).max() < 1e-12 and np.abs(two.v[5999]).max() == 0.0
    with pytest.raises(DynidentError, match="shorten them or lengthen the cycle"):
        complete_test("arm", limits, training, 100.0, period=60.0)
    again = Plan.load(plan.save(tmp_path / "plan.json"))
    assert again.identity == plan.identity and np.array_equal(again.motion(10.0).q, plan.motion(10.0).q)


def test_plateaus_shrink_where_other_limits_are_in_the_way(robot):
    tip = robot.bodies[-1].name
    settings = {"default": {**BOX, "velocity": 0.5}, "tool": {"frame": tip, "height": 0.45}}
    limits = limits_of(robot, settings)
    plan = complete_test("arm", limits, motion_of(robot, settings, Fourier(0.25, 4)), 100.0, cycles=2)
    assert min(check_plan(plan, limits).values()) >= -1e-6
    small = {"default": {**BOX, "lower": -0.1, "upper": 0.1, "acceleration": 0.05}}
    with pytest.raises(DynidentError, match="plateaus around the posture satisfies the limits: joint 0 cannot reach"):
        complete_test("arm", limits_of(robot, small), motion_of(robot, small, Fourier(0.05, 4)), 100.0)


def test_the_plan_has_all_stages_and_keeps_rates_between_samples(robot, tmp_path):
    limits, family = limits_of(robot, {"default": BOX}), Fourier(0.25, 4)
    excitation, other = (
        Trajectory(family, np.random.default_rng(seed).normal(size=(3, family.size)) * 0.05) for seed in (0, 1)
    )
    plan = complete_test("arm", limits, excitation, 100.0, other)
    assert plan.cycles == 24 and plan.period == 300.0 and plan.duration == 7200.0
    assert [stage.purpose for stage in plan.stages] == ["training", "training", "validation", "friction", "warming"]
    m = plan.motion()
    assert np.abs(np.diff(m.q, axis=0)).max() <= 2.0 / 100 + 1e-9 and np.abs(np.diff(m.v, axis=0)).max() <= 8.0 / 100 + 1e-9
    assert min(check_motion(limits, plan.curve, 50.0).values()) > -1e-9
    schedule = plan.schedule()
    assert [e["name"] for e in schedule] == ["excitation", "full_speed", "validation", "friction", "warming"]
    q, _, _ = plan.curve([schedule[0]["start"] + 1.0])
    assert q == pytest.approx(excitation([1.0])[0])
    assert Plan.load(plan.save(tmp_path / "p.json")).duration == plan.duration


def test_excite_plans_the_complete_test(monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    Path("robot.urdf").write_text(URDF, encoding="utf-8")
    Path("limits.toml").write_text("margin = 0.02\nbandwidth = 3.0\n[default]\nacceleration = 8\n", encoding="utf-8")
    words = ("excite", "robot.urdf", "--limits", "limits.toml", *QUICK, "-o", "plan", "--complete", "--repetitions", "3")
    assert run(list(words)) == 0
    assert "longest plateau" in capsys.readouterr().out
    plan = Plan.load("plan/plan.json")
    assert plan.cycles == 24 and plan.duration == 7200.0 and plan.stages[0].repetitions == 3
    assert [s.name for s in plan.stages] == ["excitation", "full_speed", "validation", "friction", "warming"]
    table = np.loadtxt("plan/motion.csv", delimiter=",", skiprows=1)  # the whole cycle, as the plan holds it
    assert table[-1, 0] == pytest.approx(plan.curve.duration, abs=0.02) and np.array_equal(table[:, 1:3], plan.motion().q)
    reached = json.loads(Path("plan/design.json").read_text(encoding="utf-8"))["complete"]
    assert set(reached) == {"shoulder", "elbow"} and plan.notes["complete"] == reached
