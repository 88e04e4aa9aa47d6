"""Heating: friction power from logs, thermal models with powers that change, compensation, thermal tests, maintenance."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from unittest.mock import Mock

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from small_robots import arm6_limits

import dynident as di
from dynident.errors import DynidentError
from dynident.excitation import check_plan
from dynident.friction import LuGre
from dynident.trajectory import Moves
from dynident_lab import testbench as bench
from dynident_lab.thermal import AdvancedSecondOrder, FirstOrder, SecondOrder, cooling_test, heating_test
from dynident_lab.thermal.complete import complete_shares, complete_test

GCC = shutil.which("gcc")
AXIS4 = SecondOrder(alpha=-0.014, beta=1.0, K1=4.4, K2=4.6, C1=740.0, C2=9200.0)


def test_friction_power_of_a_sine_is_its_closed_form():
    A, w, a = 2.0, 2.0 * np.pi, (3.0, 2.0, -0.5, 0.1)
    t = np.arange(0.0, 60.0, 0.004)
    log = di.Log(t, ["axis"], A / w * np.sin(w * t)[:, None], np.zeros((t.size, 1)), "joint_torque")
    means = np.array([2.0 / np.pi * A, A**2 / 2.0, 4.0 / (3.0 * np.pi) * A**3, 3.0 / 8.0 * A**4])
    assert bench.friction_power(log, "axis", a) == pytest.approx(
        float(means @ a), rel=1e-2
    )  # smoothing takes 0.5 % of the speed
    parts = bench.SpeedMoments.of(log, 10.0)
    assert parts.power("axis", a).shape == (6,) and parts.t[0] == 0.0
    v = A * np.cos(w * t)
    power = np.abs(v) * np.polynomial.polynomial.polyval(np.abs(v), a)
    assert parts.rms_power("axis", a) == pytest.approx(np.full(6, np.sqrt(np.mean(power**2))), rel=1e-2)
    with pytest.raises(DynidentError, match="no speeds of joint 'elbow'"):
        parts.power("elbow", a)


def test_a_warmup_is_not_extrapolated_before_its_first_point():
    t = 60.0 * np.arange(2.0, 120.0, 5.0)
    y = 10.0 + 3.0 * np.exp(-t / 1500.0) + 2.0 * np.exp(-t / 150.0)
    fit = bench.fit_warmup(t, y, orders=(2,))
    assert fit.change == pytest.approx((y[0] - 10.0) / 10.0, abs=1e-6) and fit.change_std < 1e-4
    noise = np.random.default_rng(0).normal(0.0, 0.02, (200, t.size))
    fits = [bench.fit_warmup(t, y + e, orders=(2,)) for e in noise[:40]]
    spread = np.std([f.change for f in fits])
    assert np.median([f.change_std for f in fits]) == pytest.approx(spread, rel=0.4)


def test_a_thermal_model_is_found_from_few_measurements_of_a_changing_power():
    t = np.arange(0.0, 7200.0, 20.0)
    power = np.where((t % 300.0) < 180.0, 120.0, 10.0)
    measured = (t % 300.0) == 240.0
    ratio = np.where(measured, AXIS4.simulate(t, power).ratio, 1.0)  # what lies between is never looked at
    fit = bench.fit_thermal(bench.ThermalTest(t, ratio, power, measured=measured), SecondOrder)
    for name, value in AXIS4.scale_free().items():
        assert fit.identifiable[name] == pytest.approx(value, rel=1e-3)
    slow, fast = AXIS4.time_constants(float(power[:-1].mean()))
    assert [v for v, _ in fit.constants.values()] == pytest.approx([slow, fast], rel=1e-3)
    assert fit.errors(27.2)["abs max"][0] < 1e-3


def test_the_advanced_model_is_fitted_by_global_search():
    true = AdvancedSecondOrder(
        alpha=-0.0141, beta=1.0, K12=4.0, K13=0.8, K23=0.6, K2e=4.0, C1=740.0, C2=9000.0, We=6.0, reference=20.0
    )
    tests = []
    for k, duty in enumerate((0.2, 0.6, 1.0)):
        t = np.arange(0.0, 9000.0, 250.0)
        zone = 20.0 + 8.0 * duty * (1.0 - np.exp(-t / 2400.0)) + 3.0 * np.sin(t / (900.0 + 300.0 * k))
        ambient = 20.0 + np.sin(t / 4000.0)
        ratio = true.simulate(t, 97.65 * duty, ambient=ambient, zone=zone).ratio
        tests.append(bench.ThermalTest(t, ratio, 97.65 * duty, zone=zone, ambient=ambient, name=f"D {duty}"))
    fit = bench.fit_thermal(tests, AdvancedSecondOrder)
    assert fit.max_error < 1e-4 and fit.anchored
    slow, fast = true.time_constants(97.65 * 0.2)
    assert [v for v, _ in fit.constants.values()] == pytest.approx([slow, fast], rel=0.02)
    assert fit.model.alpha == pytest.approx(true.alpha, rel=0.05)  # T3 fixes the scale
    with pytest.raises(DynidentError, match="needs a measured temperature T3"):
        bench.fit_thermal(bench.ThermalTest(t, ratio, 97.65), AdvancedSecondOrder)


def test_compensation_follows_the_temperature():
    law = (5.0, 3.0, -0.4, 0.05)
    study = bench.FrictionCompensation(("axis",), (law,), (AXIS4,))
    speed, dt, state = 3.0, 5.0, study.start()
    for _ in range(240):
        torque, state = study.step([speed], dt, state)
    cold = float(np.polynomial.polynomial.polyval(speed, law))
    power = cold * speed

    def rate(_: float, y: np.ndarray) -> list[float]:
        heat = power * (AXIS4.alpha * (y[0] - 20.0) + AXIS4.beta)
        return [(heat - AXIS4.K1 * (y[0] - y[1])) / AXIS4.C1, (AXIS4.K1 * (y[0] - y[1]) - AXIS4.K2 * (y[1] - 20.0)) / AXIS4.C2]

    after = solve_ivp(rate, (0.0, 239 * dt), [20.0, 20.0], rtol=1e-9, atol=1e-9).y[0, -1]
    assert torque[0] == pytest.approx(cold * float(AXIS4.ratio(after)), rel=1e-6)
    assert study.step([-speed], dt, state)[0][0] < 0.0
    with pytest.raises(DynidentError, match="give 1 speeds: axis"):
        study.step([1.0, 2.0], dt, state)


def test_a_complete_test_has_plateaus_of_every_joint_and_warms_each():
    limits = arm6_limits()
    middle = 0.5 * (limits.lower + limits.upper)
    motion = Moves([middle, middle + 0.2, middle], [2.0, 2.0])
    plan = complete_test("arm6", limits, motion, 100.0)
    assert min(check_plan(plan, limits).values()) >= -1e-2
    assert (plan.cycles, plan.period, plan.stages[-1].curve.duration) == (24, 300.0, 180.0)
    friction = next(s.curve for s in plan.stages if s.name == "friction")
    for j, speed in enumerate(limits.velocity):
        found = sorted({round(abs(v) / speed, 6) for k, v, _, _ in friction.plateaus if k == j})
        assert found == [0.05, 0.2, 0.4, 0.6, 0.8, 1.0]
        assert min(end - begin for k, _, begin, end in friction.plateaus if k == j) > 0.25  # the study asks for 0.25 s
    for name, shares in complete_shares(plan, limits).items():
        assert shares["full_speed"] == pytest.approx(1.0, abs=2e-3) and shares["warming_speed"] == pytest.approx(1.0)
        if name in ("joint2", "joint3"):  # they would hit the floor
            assert 0.5 < shares["warming_range"] < 0.8
        else:
            assert shares["warming_range"] == pytest.approx(0.8)


def test_thermal_tests_heat_one_joint_at_their_duty_and_cool_every_five_minutes():
    limits = arm6_limits()
    for duty in (0.2, 1.0):
        plan = heating_test("arm6", limits, "joint4", duty=duty, cycles=3, power="on")
        assert plan.notes["campaign"] == {"idle": 7200.0} and plan.notes["protocol"]["duty"] == duty
        warm = plan.stages[1].curve.sample(50.0)
        moving = np.abs(warm.v[:, 3]) > 1e-6
        assert moving.mean() == pytest.approx(duty, rel=0.02) and np.ptp(np.delete(warm.q, 3, axis=1), axis=0).max() == 0.0
        assert np.abs(warm.v[:, 3]).max() == pytest.approx(limits.velocity[3], rel=1e-3)
        assert plan.stages[1].curve.duration == pytest.approx(120.0, abs=1e-9)
    cold = cooling_test("arm6", limits, "joint4", cycles=4)
    assert cold.period == 300.0 and [s.purpose for s in cold.stages] == ["friction"]
    for bad, words in (
        ({"joint": "elbow"}, "joint 'elbow' does not exist"),
        ({"duty": 0.0}, "duty = 0"),
        ({"power": "half"}, "power is 'half'"),
    ):
        with pytest.raises(DynidentError, match=words):
            heating_test("arm6", limits, **{"joint": "joint1", **bad})


def test_a_robot_is_checked_against_its_baseline():
    t = 300.0 * np.arange(24.0)
    heat = AXIS4.simulate(t, 80.0)

    def study(factor: float, seed: int) -> bench.FrictionStudy:
        rng = np.random.default_rng(seed)
        joints = []
        for name, scale in (("one", factor), ("two", 1.0)):
            wrong = np.where(t >= 3600.0, scale, 1.0)
            friction = 27.2 * heat.ratio * wrong * (1.0 + 0.003 * rng.normal(size=t.size))
            history = bench.FrictionHistory(t, friction, temperature=heat.temperature, joint=name, speed=3.0)
            joints.append(bench.JointStudy("r", name, Mock(spec=bench.FrictionCurves), history, ()))
        return bench.FrictionStudy("r", 0.6, 0.02, tuple(joints), (), ())

    healthy = [study(1.0, k) for k in (1, 2, 3)]
    found = bench.check_robot(study(1.32, 9), healthy)
    assert found.alarms == ("one",) and found.compensation == "temperature"
    assert found.joints[0].size == pytest.approx(0.32, abs=0.01) and found.joints[0].onset == 3600.0
    assert bench.check_robot(study(1.0, 10), healthy).alarms == ()
    with pytest.raises(DynidentError, match="the baseline is missing"):
        bench.check_robot(study(1.0, 1), [])
    with pytest.raises(DynidentError, match="compensation is 'luck'"):
        bench.check_robot(study(1.0, 1), healthy, compensation="luck")


def test_without_sensors_the_thermal_model_finds_a_fault_that_heats_its_joint():
    """Power, seen every 10 s, is off for two of five minutes; the fault heats the joint, which lowers its friction."""
    fine = 10.0 * np.arange(720.0)
    power = np.where(fine % 300.0 < 180.0, 90.0, 0.0)

    def study(size: float, seed: int) -> bench.CampaignStudy:
        heat = AXIS4.simulate(fine, power * np.where(fine >= 3600.0, size, 1.0))
        t = fine[::30]
        friction = 27.2 * heat.ratio[::30] * np.where(t >= 3600.0, size, 1.0)
        friction *= 1.0 + 0.003 * np.random.default_rng(seed).normal(size=t.size)
        history = bench.FrictionHistory(t, friction, joint="one", speed=3.0)
        joint = bench.JointStudy("r", "one", Mock(spec=bench.FrictionCurves), history, ())
        plain = bench.FrictionStudy("r", 0.6, 0.02, (joint,), (), ())
        own = (t, history.friction / friction[0], history.std, fine, power)
        heating = bench.JointHeating("one", "N m", float(friction[0]), (1.0,), *own, (Mock(model=AXIS4),))
        return bench.CampaignStudy(plain, (heating,))

    healthy = [study(1.0, k) for k in (1, 2, 3)]
    found = bench.check_robot(study(1.32, 9), healthy)
    assert found.compensation == "thermal" and found.alarms == ("one",)
    assert found.joints[0].size == pytest.approx(0.32, abs=0.01) and found.joints[0].onset == 3600.0
    late = bench.check_robot(study(1.32, 9), healthy, compensation="time")
    assert late.joints[0].size < 0.28
    assert bench.check_robot(study(1.0, 10), healthy).alarms == ()


@pytest.mark.skipif(GCC is None, reason="gcc is not installed")
def test_the_compensation_in_c_is_the_one_in_python(tmp_path):
    models = (AXIS4, FirstOrder(alpha=-0.01, beta=1.0, K=2.0, C=900.0))
    made = bench.FrictionCompensation(("axis 4", "axis 5"), ((9.0, 7.0, -0.6, 0.04), (3.0, 1.0)), models)
    assert [file.name for file in made.to_c(tmp_path)] == ["compensation.h", "compensation.c", "compensation_test.c"]
    strict = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-Wconversion", "-Wshadow"]
    sources = [str(tmp_path / name) for name in ("compensation.c", "compensation_test.c")]
    subprocess.run([GCC, *strict, *sources, "-lm", "-o", str(tmp_path / "check")], check=True)
    assert subprocess.run([str(tmp_path / "check")], check=False, capture_output=True).returncode == 0
    library = tmp_path / "compensation.so"
    subprocess.run([GCC, "-shared", "-fPIC", sources[0], "-lm", "-o", str(library)], check=True)
    step = ctypes.CDLL(str(library)).compensation_step
    array, torque = ctypes.c_double * 3, (ctypes.c_double * 2)()
    state, speeds = array(*(x for zone in made.start() for x in zone)), (ctypes.c_double * 2)(3.0, -2.0)
    for _ in range(7200):  # half a minute at a control period, then two hours: series and exponential both
        step(speeds, ctypes.c_double(0.004), state, torque)
    for _ in range(7200):
        step(speeds, ctypes.c_double(1.0), state, torque)
    power = [float(f * v) for f, v in zip(made.cold([3.0, -2.0]), (3.0, -2.0), strict=True)]
    end = 7200 * 1.004
    expected = [model.simulate([0.0, end], p).state[1] for model, p in zip(models, power, strict=True)]
    assert np.array(state) == pytest.approx(np.concatenate(expected), abs=1e-9)


def test_what_holds_curves_draws_them():
    pytest.importorskip("matplotlib")
    t = np.arange(0.0, 7200.0, 60.0)
    warming = AXIS4.simulate(t, 97.65)
    drawn = [axes.lines[0].get_ydata() for axes in warming.plot().axes]
    assert all(np.array_equal(a, b) for a, b in zip(drawn, (warming.temperature, warming.ratio, warming.power), strict=True))
    some = np.arange(t.size) % 4 == 0
    points = bench.ThermalTest(t, warming.ratio, 97.65, measured=some).plot().axes[0].lines[0]
    assert np.array_equal(points.get_ydata(), warming.ratio[some])
    v = np.array([-2.0, -1.0, -0.5, 0.5, 1.0, 2.0])
    curve = bench.FrictionCurve("21 degC", 0.0, 21.0, v, np.sign(v) * (3.0 + v**2), np.full(6, 0.1), np.ones(6, dtype=int))
    lines = curve.plot().axes[0].lines  # a polynomial on each side, then the points
    assert lines[0].get_ydata()[0] == pytest.approx(-7.0) and lines[1].get_ydata()[-1] == pytest.approx(7.0)
    response = LuGre(sigma0=1e3, sigma1=10.0, fc=1.0, fs=1.5, vs=0.1, fv=0.4).simulate(t[:50] / 600.0, np.full(50, 0.2))
    assert np.array_equal(response.plot().axes[0].lines[0].get_ydata(), response.force)
