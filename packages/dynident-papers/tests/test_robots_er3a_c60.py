"""The ER3A-C60-like arm: printed numbers hold, identifiability as in Tables 2 and 3, limits that leave room, thermal models."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import dynident as di
from dynident.excitation import check_plan
from dynident.excitation.limits import State, all_excess, all_names
from dynident.mechanics import forward_kinematics
from dynident.mechanism import check_consistency
from dynident.trajectory import Moves
from dynident.trajectory.profiles import Strokes
from dynident_lab import testbench as bench
from dynident_lab.thermal import FirstOrder, SecondOrder
from dynident_lab.thermal.complete import complete_shares, complete_test
from dynident_papers.robots import er3a_c60
from dynident_papers.robots import er3a_c60 as er
from dynident_papers.thermal import TwoPole


@pytest.fixture(scope="module")
def arm():
    return er.mechanism()


def test_printed_lengths_and_limits(arm):
    a1, a2, a3, d4, d6 = (er.assumed(name) for name in ("a1", "a2", "a3", "d4", "d6"))
    assert (a2 + a3, d4 + d6) == pytest.approx(er.LINK_LENGTHS, abs=1e-9)
    q = np.random.default_rng(0).uniform(er.RANGES[:, 0], er.RANGES[:, 1], (4000, 6))
    wrist = forward_kinematics(arm, q, "link_4")[1]
    reach = np.hypot(wrist[:, 0], wrist[:, 1]).max()
    assert reach < er.REACH and a1 + a2 + np.hypot(a3, d4) == pytest.approx(er.REACH, abs=1.5e-3) and reach > 0.99 * er.REACH
    at_zero = forward_kinematics(arm, np.zeros((1, 6)), "link_6")[1][0]
    assert at_zero == pytest.approx([a1 + d4 + d6, 0.0, er.assumed("d1") + a2 + a3])
    assert np.rad2deg(er.SPEEDS) == pytest.approx([230, 230, 250, 320, 320, 420])
    assert [(j.limits.lower, j.limits.upper, j.limits.velocity) for j in arm.joints] == [
        (low, high, speed) for (low, high), speed in zip(er.RANGES.tolist(), er.SPEEDS.tolist(), strict=True)
    ]
    assert sum(er.assumed("masses")) < er.MASS and arm.joint_names == er.JOINTS


def test_every_assumption_has_a_reason():
    assert all(len(a.why) > 10 and a.value is not None for a in er.ASSUMPTIONS.values())


def test_bodies_are_possible(arm):
    assert all(check_consistency(body.inertia, body.name).ok for body in arm.bodies[1:])
    assert er.mechanism(payload=True).bodies[-1].inertia[0] >= er.PAYLOAD


def test_identifiable_parameters_are_those_of_tables_2_and_3(arm):
    base = di.base_parameters(arm)
    names = {arm.parameters.names[c] for c in base.columns}
    # Table 3: 36 inertial parameters, rotor inertias of axes 1 and 2 in Izz; here friction has two terms per axis, not four.
    assert base.rank == 36 + 4 + 12
    assert sum(name.startswith("ia_") for name in names) == 4
    counts = []
    motion = di.Motion(np.arange(400.0), *np.random.default_rng(1).normal(size=(3, 400, 6)))
    Y = di.regressor(arm.with_terms(()), motion)
    for j in range(6):
        counts.append(int(np.sum(np.abs(np.diag(np.linalg.qr(Y[:, j], mode="r"))) > 1e-4)))
    assert counts == [34, 35, 28, 21, 14, 7]  # Table 2, joint by joint


def test_friction_and_thermal_models():
    laws = er.friction_laws()
    assert float(laws[3](0.6 * er.SPEEDS[3])) == pytest.approx(er.FRICTION_4)
    assert all(np.all(np.diff(law(np.linspace(0.01, speed, 50))) > 0) for law, speed in zip(laws, er.SPEEDS, strict=True))
    powers, models = er.friction_powers(), er.thermal_models()
    assert powers[3] == pytest.approx(er.POWER_4)
    for i, (model, power) in enumerate(zip(models, powers, strict=True)):
        assert model.C1 > 0 and model.C2 > model.C1
        if i != 3:
            assert model.time_constants(power) == pytest.approx(er.TIME_CONSTANTS[i])
    assert models[3].time_constants(er.POWER_4) / 60 == pytest.approx([28.5513, 2.0222], abs=1e-3)
    linear = er.linear_friction()
    v = er.SPEEDS * 0.5
    assert [float(law(x)) for law, x in zip(laws, v, strict=True)] == pytest.approx(linear[:, 0] + linear[:, 1] * v, rel=0.06)


def test_limits_leave_room_and_hold_everything(arm):
    limits = er.limits(arm, margin=0.02)
    names = all_names(limits.all)
    for word in ("position of joint_1", "velocity", "acceleration", "jerk", "torque", "power", "link_6.z", "clearance"):
        assert any(word in name for name in names)
    q = np.random.default_rng(0).uniform(er.RANGES[:, 0], er.RANGES[:, 1], (2000, 6))
    still = np.zeros_like(q)
    free = all_excess(limits.all, State(q, still, still, still)).max(axis=1) <= -limits.margin
    assert 0.4 < free.mean() < 0.95
    assert limits.margin == 0.02 and all_excess(limits.all, State(*np.zeros((4, 1, 6)))).max() < -0.1


AXIS4 = SecondOrder(**er3a_c60.AXIS_4)


def test_models_compare_as_table_6_does():
    t = 60.0 * np.arange(0.0, 240.0, 2.5)
    test = bench.ThermalTest(t, AXIS4.simulate(t, er3a_c60.POWER_4).ratio, er3a_c60.POWER_4)
    rows = {kind: bench.fit_thermal(test, kind).errors(er3a_c60.FRICTION_4) for kind in (FirstOrder, SecondOrder, TwoPole)}
    assert rows[FirstOrder]["abs mean"][0] == pytest.approx(0.229, abs=0.01)  # of a single exponential over 240 min
    assert rows[FirstOrder]["abs max"][0] == pytest.approx(2.42, abs=0.05)
    assert max(rows[SecondOrder]["abs max"][0], rows[TwoPole]["abs max"][0]) < 1e-3


def test_the_complete_test_of_the_er3a_is_that_of_section_2_4():
    limits = er3a_c60.limits()
    middle = 0.5 * (limits.lower + limits.upper)
    motion = Moves([middle, middle + 0.2, middle], [2.0, 2.0])
    robot = er3a_c60.mechanism()
    plan = complete_test("ER3A-C60", limits, motion, 100.0, mechanism=robot)
    assert min(check_plan(plan, limits).values()) >= -1e-2
    assert (plan.cycles, plan.period, plan.stages[-1].curve.duration) == (24, 300.0, 180.0)
    friction = next(s.curve for s in plan.stages if s.name == "friction")
    for j, speed in enumerate(er3a_c60.SPEEDS):
        found = sorted({round(abs(v) / speed, 6) for k, v, _, _ in friction.plateaus if k == j})
        assert found == list(er3a_c60.PLATEAUS)
        assert min(end - begin for k, _, begin, end in friction.plateaus if k == j) > 0.3  # the study asks for 0.25 s
        if j in (0, 3, 4, 5):  # their axes are upright: gravity has no moment about them
            q = friction(np.array([begin for k, _, begin, _ in friction.plateaus if k == j]))[0]
            axes = di.forward_kinematics(robot, q, f"link_{j + 1}")[0] @ robot.joint(f"joint_{j + 1}").axis
            np.testing.assert_allclose(np.abs(axes[:, 2]), 1.0, atol=1e-5)
    for name, shares in complete_shares(plan, limits).items():
        assert shares["full_speed"] == pytest.approx(1.0, abs=2e-3) and shares["warming_speed"] == pytest.approx(1.0)
        if name != "joint_2":  # it would hit the floor
            assert shares["warming_range"] == pytest.approx(0.8)


def test_stages_whose_straight_way_collides_are_joined_over_the_posture() -> None:
    """From here the flange would pass below the floor on its way to the start of the strokes at full speed."""
    limits = er3a_c60.limits()
    rest, there = 0.5 * (limits.lower + limits.upper), np.array([-2.36, -1.9, 1.3, 0.8, -0.01, -4.02])
    excitation = Strokes(there, [(0, 0.0, 0.05, 0.1, 0.2), (0, 2.0, -0.05, 0.1, 0.2)])
    plan = complete_test("ER3A-C60", limits, excitation, 100.0, posture=rest)
    assert [stage.name for stage in plan.stages] == ["excitation", "rest_1", "full_speed", "friction", "warming"]
    assert min(check_plan(plan, limits).values()) > -1e-6  # of a whole cycle, joins included
    straight = replace(plan, stages=[stage for stage in plan.stages if not stage.name.startswith("rest")])
    with pytest.raises(di.DynidentError, match=r"a join between stages breaks limit 'position of link_6\.z'"):
        check_plan(straight, limits)
