"""The whole study: logs in, curves, warm-up, JSON, figures and one HTML page out."""

from __future__ import annotations

import re

import numpy as np
import pytest
from test_testbench_plateaus import AXIS4, POWER, campaign, simulated, sweep

import dynident as di
from dynident.errors import DynidentError, IdentificationError
from dynident.signals import Log
from dynident_lab.testbench import Plateaus, friction_study

pytest.importorskip("matplotlib", reason="figures need matplotlib: pip install 'dynident[report]'")


@pytest.fixture(scope="module")
def robot() -> di.Mechanism:
    return di.Mechanism.from_dh([{"a": 0.0, "alpha": 0.0, "d": 0.0, "theta": 0.0, "joint": "axis"}])


@pytest.fixture(scope="module")
def study(robot):
    rng = np.random.default_rng(3)
    logs = campaign(rng, cycles=20) + campaign(rng, cycles=20, gain=1.1)
    return friction_study(robot, logs, robots=["first"] * 20 + ["second"] * 20)


def test_study_finds_time_constants_and_differences_between_robots(study):
    assert study.robots == ("first", "second")
    for name in study.robots:
        entry = study.of("axis", name)
        best = entry.warmups[0]
        assert best.order == 2
        assert np.all(np.abs(best.time_constants - AXIS4.time_constants(POWER)) < 4 * best.time_constants_std)
        np.testing.assert_allclose(best.time_constants, AXIS4.time_constants(POWER), rtol=0.2)
        assert entry.warmups[1].errors[0] > 3 * best.errors[0]
    ratio = study.of("axis", "second").history.friction / study.of("axis", "first").history.friction
    np.testing.assert_allclose(ratio, 1.1, rtol=0.02)


def test_study_as_json_and_text(study):
    data = study.numbers()
    first = data["joints"][0]
    assert first["curves"]["gravity"]["Qa"] == pytest.approx(12.0, abs=5 * first["curves"]["gravity"]["std"][0])
    assert first["warmups"][0]["time_constants"][0] > first["warmups"][0]["time_constants"][1]
    assert "plateaus" not in first["curves"] and data["warmup_times"][0][0] > 0.0
    assert "recommended warm-up to within 2 %" in study.summary()
    with pytest.raises(DynidentError, match="no joint 'elbow'"):
        study.of("elbow")


def test_report_is_one_page_that_loads_nothing(study, tmp_path):
    from dynident_lab.testbench import write_friction_report

    page = write_friction_report(tmp_path / "friction.html", study).read_text(encoding="utf-8")
    for word in ("Friction against speed", "Warm-up", "Robots compared", "Time constants"):
        assert word in page
    assert "<script" not in page
    assert not re.search(r'(src|href)="(?!data:|#)', page)
    assert page.count("<img") >= 8


def test_report_with_repeatability_and_maintenance(study, tmp_path):
    from dynident_lab.testbench import (
        FaultDetector,
        FrictionHistory,
        WarmupTime,
        estimates_of,
        repeatability,
        write_friction_report,
    )

    histories = [entry.history for entry in study.joints]
    found = repeatability([e for h, r in zip(histories, study.robots, strict=True) for e in estimates_of(_named(h, r))])
    checks = [FaultDetector(WarmupTime()).fit(histories[:1]).check(histories[1])]
    page = write_friction_report(tmp_path / "friction.html", study, found, checks).read_text(encoding="utf-8")
    assert "Repeatability" in page and "Probability if healthy" in page
    assert isinstance(histories[0], FrictionHistory)


def _named(history, robot):
    from dataclasses import replace

    return replace(history, robot=robot, name="day 1")


def test_hostile_names_stay_text(tmp_path):
    from dynident_lab.testbench import write_friction_report

    name = '<b onload="x">$\\frac'
    robot = di.Mechanism.from_dh([{"a": 0.0, "alpha": 0.0, "d": 0.0, "theta": 0.0, "joint": name}])
    log = simulated(sweep(), np.random.default_rng(0))
    log = Log(t=log.t, joints=[name], position=log.position, effort=log.effort, effort_kind="joint_torque", name="<i>")
    page = write_friction_report(tmp_path / "friction.html", friction_study(robot, [log])).read_text(encoding="utf-8")
    assert "<b onload" not in page and "&lt;b onload" in page


def test_a_joint_without_plateaus_does_not_stop_the_others(robot):
    two = di.Mechanism.from_dh([{"a": 0.0, "alpha": 0.0, "d": 0.0, "theta": 0.0, "joint": name} for name in ("axis", "lazy")])
    log = simulated(sweep(), np.random.default_rng(0))
    still = 1e-6 * np.random.default_rng(1).standard_normal(len(log))
    both = Log(
        t=log.t,
        joints=["axis", "lazy"],
        position=np.column_stack([log.position[:, 0], still]),
        effort=np.column_stack([log.effort[:, 0], np.ones(len(log))]),
        effort_kind="joint_torque",
    )
    study = friction_study(two, [both])
    assert [entry.joint for entry in study.joints] == ["axis"]
    assert "no plateau of joint 'lazy'" in study.failures[0].sentence
    assert "lazy" in study.summary()


def test_clocks_that_restart_are_put_behind_each_other(robot):
    rng = np.random.default_rng(0)
    logs = [simulated(sweep(), rng, name=f"run {k}") for k in range(3)]
    t = friction_study(robot, logs).of("axis").history.t
    assert len(t) == 3 and np.all(np.diff(t) > 5.0)
    t = friction_study(robot, logs, starts=[0.0, 300.0, 600.0]).of("axis").history.t
    np.testing.assert_allclose(np.diff(t), 300.0, atol=1.0)


def test_a_sliding_joint_keeps_its_offset(robot):
    slide = di.Mechanism.from_dh([{"a": 0.0, "alpha": 0.0, "d": 0.0, "theta": 0.0, "kind": "prismatic", "joint": "axis"}])
    curves = friction_study(slide, [simulated(sweep(), np.random.default_rng(0), Qa=0.0, Qb=0.0)]).of("axis").curves
    assert curves.unit == "N" and not curves.gravity.removed


def test_wrong_arguments_of_a_study(robot):
    log = simulated(sweep(), np.random.default_rng(0))
    with pytest.raises(IdentificationError, match="no logs"):
        friction_study(robot, [])
    with pytest.raises(IdentificationError, match="robots has 2 entries for 1 logs"):
        friction_study(robot, [log], robots=["a", "b"])
    with pytest.raises(IdentificationError, match="level = 2"):
        friction_study(robot, [log], level=2.0)
    with pytest.raises(IdentificationError, match="no joint could be studied"):
        friction_study(robot, [log], joints=["elbow"])


def test_every_result_draws_itself(study):
    from matplotlib.figure import Figure

    from dynident_lab.testbench.plots import plot_plateaus
    from dynident_lab.testbench.report import plot_friction_over_time, plot_robots, plot_time_constants

    entry = study.of("axis")
    plateaus = Plateaus("axis", "N m", entry.curves.plateaus, entry.curves.top)
    drawn = (
        study.plot(),
        entry.curves.plot(),
        entry.warmups[0].plot(),
        plot_plateaus(plateaus),
        plot_friction_over_time(entry),
        plot_time_constants(study),
        plot_robots(study, "axis"),
    )
    assert all(isinstance(figure, Figure) and figure.axes for figure in drawn)
