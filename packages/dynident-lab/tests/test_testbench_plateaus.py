"""Friction experiments on simulated axes with known truth: plateaus, gravity, curves, warm-up, multi-profile test."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import dynident as di
from dynident.errors import IdentificationError, LogError
from dynident.friction import Coulomb, Polynomial, Stribeck, Viscous
from dynident.signals import Log
from dynident_lab.testbench import FrictionHistory, find_plateaus, fit_warmup, friction_curves, plateau_gravity, single_axis
from dynident_lab.thermal import SecondOrder

# Axis 4 of [Pagani2022, eq. 130], 27.2 N m cold at 60 % speed.
AXIS4 = SecondOrder(alpha=-0.0141, beta=0.9971, K1=4.41, K2=4.57, C1=737.61, C2=9163.45)
POWER, TOP = 97.65, 5.585
LAW, TRUE = Polynomial(3), np.array([8.0, 6.0, -0.9, 0.09])
LEVELS = (5, 20, 40, 60, 80, 100)
RATE = 250.0


def sweep(levels=LEVELS, ways=(1, -1), plateau=0.5, acceleration=20.0, pause=0.15):
    """Speeds of trapezoids, one per level and direction, on a clock of 4 ms."""
    parts = [np.zeros(int(pause * RATE))]
    for percent in levels:
        v = percent / 100 * TOP
        steps = int(np.ceil(v / acceleration * RATE))
        ramp = np.arange(1, steps + 1) / steps * v
        shape = np.concatenate([ramp, np.full(int(plateau * RATE), v), ramp[::-1][1:], [0.0], np.zeros(int(pause * RATE))])
        parts += [way * shape for way in ways]
    return np.concatenate(parts)


def simulated(v, rng, ratio=1.0, start=0.0, Qa=12.0, Qb=5.0, J=0.4, noise=0.3, temperature=None, limit=np.inf, name="test"):
    """Log of one axis: inertia, gravity, the cubic friction law times a ratio, noise on torque and encoder."""
    q = -1.2 + np.concatenate([[0.0], np.cumsum(0.5 * (v[1:] + v[:-1]))]) / RATE
    tau = J * np.gradient(v, 1 / RATE) + Qa * np.cos(q) - Qb * np.sin(q) + LAW.columns(v) @ TRUE * ratio
    tau = np.clip(tau + noise * rng.standard_normal(v.size), -limit, limit)
    heat = None if temperature is None else np.broadcast_to(np.reshape(temperature, (-1, 1)), (v.size, 1))
    t = start + np.arange(v.size) / RATE
    position = (q + 2e-5 * rng.standard_normal(v.size))[:, None]
    return Log(
        t=t, joints=["axis"], position=position, effort=tau[:, None], effort_kind="joint_torque", temperature=heat, name=name
    )


def campaign(rng, cycles=24, gain=1.0, **options):
    """One log per cycle of 5 min while the axis warms up at full duty."""
    t = 300.0 * np.arange(cycles)
    warming = AXIS4.simulate(t, POWER)
    return [
        simulated(sweep(), rng, gain * r, start, temperature=T, name=f"cycle {k}", **options)
        for k, (start, r, T) in enumerate(zip(t, warming.ratio, warming.temperature, strict=True))
    ]


def test_plateaus_are_found_by_themselves():
    rng = np.random.default_rng(1)
    v = np.tile(sweep(), 2)
    found = find_plateaus(simulated(v, rng), "axis")
    assert len(found) == 24
    assert found.directions == ("forward", "backward")
    np.testing.assert_allclose(found.levels / TOP, np.array(LEVELS) / 100, rtol=5e-3)
    for p in found.items:
        inside = np.arange(int((p.t - p.duration / 2) * RATE) + 1, int((p.t + p.duration / 2) * RATE))
        assert np.ptp(v[inside]) == 0.0, "accelerated samples are inside a plateau"
        assert p.speed == pytest.approx(np.interp(p.t, np.arange(v.size) / RATE, v), rel=5e-3)
        assert p.alone and not p.saturated
    assert "6 speeds" in found.summary()


@pytest.mark.parametrize("frequency", [0.3, 0.7, 2.0, 6.0])
def test_the_top_of_a_sine_is_no_plateau(frequency):
    t = np.arange(0.0, 20.0, 1 / RATE)
    with pytest.raises(IdentificationError, match="no plateau of joint 'axis'"):
        find_plateaus(simulated(2.0 * np.cos(frequency * t), np.random.default_rng(0)), "axis")


def test_plateaus_survive_servo_ripple_and_gaps():
    rng = np.random.default_rng(2)
    v = sweep(plateau=1.0)
    rippled = v * (1.0 + 0.05 * np.sin(2 * np.pi * 7.0 * np.arange(v.size) / RATE))
    assert len(find_plateaus(simulated(rippled, rng), "axis")) == 12
    log = simulated(np.tile(v, 2), rng)
    t = log.t + 100.0 * (np.arange(len(log)) >= v.size)
    assert (
        len(
            find_plateaus(
                Log(t=t, joints=["axis"], position=log.position, effort=log.effort, effort_kind="joint_torque"), "axis"
            )
        )
        == 24
    )


def test_gravity_and_friction_lie_within_their_predicted_uncertainty():
    errors, gravity = [], []
    for seed in range(8):
        curves = friction_curves(find_plateaus(simulated(sweep(), np.random.default_rng(seed)), "axis"), by="all")
        (curve,) = curves.curves
        assert curve.both and curves.gravity.removed
        errors.append((curve.torque - LAW.columns(curve.speed) @ TRUE) / curve.std)
        gravity.append((np.array([curves.gravity.Qa, curves.gravity.Qb]) - (12.0, 5.0)) / curves.gravity.std)
    assert 0.6 < np.sqrt(np.mean(np.square(errors))) < 1.5
    assert 0.4 < np.sqrt(np.mean(np.square(gravity))) < 1.7
    fit = curve.fit()
    assert np.all(np.abs(fit.values - TRUE) < 5 * fit.std)
    assert fit.relative < 0.01


def test_no_gravity_is_removed_where_there_is_none():
    found = find_plateaus(simulated(sweep(), np.random.default_rng(5), Qa=0.0, Qb=0.0), "axis")
    assert not plateau_gravity(found).removed
    assert friction_curves(found).gravity.torque(np.array([1.0])) == 0.0


def test_single_axis_model_recovers_inertia_gravity_and_friction():
    found = single_axis(simulated(np.tile(sweep(), 2), np.random.default_rng(3)), "axis")
    assert found["J"] == pytest.approx(0.4, rel=0.02)
    assert found["Qa"] == pytest.approx(12.0, rel=0.02)
    assert found["Qb"] == pytest.approx(5.0, rel=0.03)
    v = np.array([0.3, 1.0, 3.0, 5.5])
    np.testing.assert_allclose(LAW.columns(v) @ found.values[3:], LAW.columns(v) @ TRUE, rtol=0.01)
    with pytest.raises(IdentificationError, match="shape parameters vs"):
        single_axis(simulated(sweep(), np.random.default_rng(3)), "axis", Stribeck())


def test_curves_per_temperature_are_multiples_of_each_other():
    rng = np.random.default_rng(4)
    logs = campaign(rng, cycles=6)
    parts = [find_plateaus(log, "axis", top=TOP) for log in logs]
    merged = type(parts[0])("axis", "N m", tuple(p for part in parts for p in part.items), TOP)
    curves = friction_curves(merged)
    assert len(curves.curves) >= 3
    assert all("degC" in c.label for c in curves.curves)
    for c in curves.curves:
        np.testing.assert_allclose(c.torque / (LAW.columns(c.speed) @ TRUE), AXIS4.ratio(c.temperature), rtol=0.03)
    by_time = friction_curves(merged, by="time")
    assert len(by_time.curves) == 6
    history = curves.history(0.6)
    assert len(history) == 6
    np.testing.assert_allclose(history.friction, AXIS4.ratio(history.temperature) * (LAW.columns(0.6 * TOP) @ TRUE), rtol=0.01)


def test_one_direction_gives_half_a_curve_and_says_so():
    curves = friction_curves(find_plateaus(simulated(sweep(ways=(1,)), np.random.default_rng(0)), "axis"))
    assert not curves.curves[0].both
    assert any("only forward plateaus" in note for note in curves.notes)


def test_one_speed_is_refused_with_a_sentence():
    plateaus = find_plateaus(simulated(sweep(levels=(60,)), np.random.default_rng(0)), "axis")
    with pytest.raises(IdentificationError, match=r"one speed only .* at least 2 speeds"):
        friction_curves(plateaus)


def test_saturated_plateaus_are_left_out():
    plateaus = find_plateaus(simulated(sweep(), np.random.default_rng(0), limit=36.0), "axis")
    assert any(p.saturated for p in plateaus.items)
    curves = friction_curves(plateaus)
    assert any("saturated" in note for note in curves.notes)
    np.testing.assert_allclose(curves.curves[0].torque, LAW.columns(curves.curves[0].speed) @ TRUE, rtol=0.03)
    with pytest.raises(IdentificationError, match="saturated"):
        friction_curves(find_plateaus(simulated(sweep(), np.random.default_rng(0), limit=0.5), "axis"))


def test_temperatures_that_turn_back_are_grouped_by_time():
    rng = np.random.default_rng(0)
    heat = np.concatenate([np.full(sweep().size, T) for T in (20.0, 35.0, 25.0)])
    plateaus = find_plateaus(simulated(np.tile(sweep(), 3), rng, temperature=heat), "axis")
    curves = friction_curves(plateaus)
    assert len(curves.curves) == 3
    assert any("rises by 15.0 K and falls by 10.0 K" in note for note in curves.notes)
    assert any("mixes heating and cooling" in note for note in friction_curves(plateaus, by="temperature").notes)


def test_plateaus_with_other_joints_in_motion_are_left_out():
    rng = np.random.default_rng(0)
    log = simulated(np.tile(sweep(), 2), rng)
    other = np.where(np.arange(len(log)) < len(log) // 2, 0.0, np.sin(log.t))
    both = Log(
        t=log.t,
        joints=["axis", "other"],
        position=np.column_stack([log.position[:, 0], other + 2e-5 * rng.standard_normal(len(log))]),
        effort=np.column_stack([log.effort[:, 0], np.zeros(len(log))]),
        effort_kind="joint_torque",
    )
    plateaus = find_plateaus(both, "axis")
    assert sum(p.alone for p in plateaus.items) == 12
    assert any("other joints moved" in note for note in friction_curves(plateaus).notes)


def test_wrong_arguments_are_named():
    log = simulated(sweep(), np.random.default_rng(0))
    plateaus = find_plateaus(log, "axis")
    with pytest.raises(LogError, match="no channel 'elbow'"):
        find_plateaus(log, "elbow")
    with pytest.raises(LogError, match="shortest = -1"):
        find_plateaus(log, "axis", shortest=-1)
    with pytest.raises(IdentificationError, match="by = 'heat'"):
        friction_curves(plateaus, by="heat")
    with pytest.raises(IdentificationError, match="no measured temperature"):
        friction_curves(plateaus, by="temperature")
    with pytest.raises(IdentificationError, match="width = 0"):
        friction_curves(plateaus, by="time", width=0.0)
    with pytest.raises(IdentificationError, match="shape parameters"):
        friction_curves(plateaus).curves[0].fit(Stribeck())
    with pytest.raises(IdentificationError, match="t must increase"):
        FrictionHistory(t=[1.0, 1.0], friction=[1.0, 1.0])
    assert friction_curves(plateaus).curves[0].fit(Coulomb() + Viscous()).values.size == 2


def test_warm_up_recovers_the_time_constants_of_axis_4():
    """Table 6's contrast: the second order fits to 0.3 %, the first cannot go below 2 %."""
    rng = np.random.default_rng(6)
    t = np.arange(0.0, 120.0, 2.5) * 60.0
    y = 27.2 * AXIS4.simulate(t, POWER).ratio * (1.0 + 0.001 * rng.standard_normal(t.size))
    best = fit_warmup(t, y)
    assert best.order == 2 and best.complete
    tau = AXIS4.time_constants(POWER)
    assert np.all(np.abs(best.time_constants - tau) < 4 * best.time_constants_std)
    np.testing.assert_allclose(best.time_constants, tau, rtol=0.05)
    assert best.settled == pytest.approx(27.2 * float(AXIS4.steady_ratio(POWER)), rel=2e-3)
    assert best.errors[0] < 3e-3 and best.errors[1] < 1.1e-2
    first = fit_warmup(t, y, orders=(1,))
    assert first.errors[0] > 0.015 and first.errors[1] > 0.06
    # The warm-up time is where the drift of the fitted curve crosses the tolerance for the last time.
    wait = best.warmup_time(0.02)
    assert float(best(wait)) / best.settled - 1.0 == pytest.approx(0.02, abs=5e-4)
    assert 0.0 < best.warmup_time_std(0.02) < 0.15 * wait
    assert best.warmup_time(0.1) < wait


@pytest.mark.parametrize("cycles", [8, 24])
def test_short_campaigns_recommend_a_warm_up_that_is_right_within_its_deviation(cycles: int) -> None:
    """A sum of two exponentials with 0.2 % noise; AICc alone takes one of 6 min and recommends a third of the true time."""

    def true(t: np.ndarray) -> np.ndarray:
        return 20.0 * (1.0 + 0.35 * np.exp(-t / 1620.0) + 0.6 * np.exp(-t / 132.0))

    wait = 1620.0 * np.log(0.35 / 0.02)  # the fast one is gone by then
    t = 300.0 * np.arange(cycles) + 90.0
    std = np.full(cycles, 0.04)
    found = [fit_warmup(t, true(t) + rng.normal(size=cycles) * std, std=std) for rng in map(np.random.default_rng, range(20))]
    assert all(fit.order == 2 for fit in found)
    z = [(fit.warmup_time() - wait) / fit.warmup_time_std() for fit in found]
    assert np.sqrt(np.mean(np.square(z))) < 1.5
    if cycles == 8:
        t = t[:8]
        blind = fit_warmup(t, true(t) + 0.04 * np.random.default_rng(0).normal(size=8))
        assert blind.warmup_time() < 0.5 * wait


def test_a_constant_has_no_warm_up_and_bad_points_are_refused():
    rng = np.random.default_rng(0)
    flat = fit_warmup(np.arange(20.0) * 60, 5.0 + 0.01 * rng.standard_normal(20))
    assert flat.order == 0 and flat.warmup_time() == 0.0
    short = fit_warmup(np.arange(12.0) * 60, 1.0 + np.exp(-np.arange(12.0) / 30.0), orders=(1,))
    assert not short.complete and "too short" in short.summary()
    with pytest.raises(IdentificationError, match="3 points"):
        fit_warmup([0.0, 1.0, 2.0], [1.0, 1.0, 1.0], orders=(1,))
    with pytest.raises(IdentificationError, match="finite"):
        fit_warmup([0.0, 1.0], [1.0, np.nan])
    with pytest.raises(IdentificationError, match="tolerance = 2"):
        flat.warmup_time(2.0)


@pytest.mark.real
def test_plateaus_of_the_emps_agree_with_the_published_asymmetric_friction(shared_data: Path):
    """The published law comes from a fit of the whole motion, the curve only from constant speeds: two different ways."""
    schema = {"time": "t", "position": ["qm"], "effort": ["vir"], "joints": ["slide"], "effort_kind": "voltage", "gain": 35.15}
    plateaus = find_plateaus(Log.read(shared_data / "emps" / "DATA_EMPS.mat", schema=schema), "slide", unit="N")
    assert len(plateaus) == 32 and plateaus.levels.size == 3
    (curve,) = friction_curves(plateaus, by="all", gravity=False).curves
    law = json.loads((shared_data / "emps" / "published.json").read_text(encoding="utf-8"))["IDIM_LS_asymmetric"]
    forward = law["Fc_pos"][0] + law["Fv_pos"][0] * curve.speed
    backward = -law["Fc_neg"][0] + law["Fv_neg"][0] * curve.speed
    np.testing.assert_allclose(curve.torque, np.where(curve.speed > 0.0, forward, backward), rtol=0.035)


@pytest.mark.real
@pytest.mark.filterwarnings("ignore::dynident.errors.DescriptionWarning")
def test_every_trapezoid_of_the_kinova_is_one_plateau(shared_data: Path):
    robot = di.Mechanism.from_urdf(shared_data / "kinova_gen3_dynamapp" / "gen3.urdf")
    channels = {key: [f"{name}{k}" for k in range(1, 8)] for key, name in (("position", "Position"), ("effort", "TorqueCur"))}
    schema = {**channels, "rate": 1000.0, "joints": list(robot.joint_names), "effort_kind": "joint_torque"}
    for k, joint in enumerate(robot.joint_names, 1):
        log = Log.read(shared_data / "kinova_gen3_dynamapp" / "jointwise_motion" / f"joint_{k}_trapez.csv.gz", schema=schema)
        found = find_plateaus(log, joint)
        assert len(found) == 1, joint
        (plateau,) = found.items
        middle = slice(int(plateau.t * 1000) - 500, int(plateau.t * 1000) + 500)
        slope = np.polyfit(np.arange(1000) / 1000, log.position[middle, k - 1], 1)[0]
        assert plateau.speed == pytest.approx(slope, rel=0.05)
        assert plateau.duration > 0.5 * log.duration
