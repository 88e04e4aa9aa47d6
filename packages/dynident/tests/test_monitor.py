"""The identified model at work: what the observer sees, when it calls, and that a healthy robot does not make it call."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import replace

import numpy as np
import pytest
from optional import optional
from random_mechanisms import PinRobot, build, close, coupled, random_motion
from scipy.signal import butter, lfilter
from simulate_cases import excitation, geared_arm
from small_robots import five_bar, platform, platform_machine, platform_motion

import dynident as di
from dynident.errors import DescriptionError, DynidentError, LogError
from dynident.friction import Coulomb, TemperatureDependent, Viscous
from dynident.identify.regression.rows import Rows, unprojected
from dynident.mechanics import actuator_jacobian, actuator_torques, close_positions, jacobian
from dynident.mechanics.closure import random_closed_motion
from dynident.mechanics.functions import function_of
from dynident.monitor import Event, Monitor, MonitorRecord, Reading, alarm_threshold, false_alarm_rate

pin = optional("pinocchio")

GCC = shutil.which("gcc")
STRICT = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-Wconversion", "-Wdouble-promotion", "-Wshadow", "-Wvla"]
RAIL = """<robot name="slide"><link name="base"/><link name="cart"><inertial><mass value="2"/>
<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>
<joint name="rail" type="prismatic">
<parent link="base"/>
<child link="cart"/><axis xyz="1 0 0"/><limit lower="-9" upper="9" effort="99" velocity="9"/></joint></robot>"""


def known(robot: di.Mechanism, noise: float = 1e-6) -> di.Fit:
    """Return a fit that knows the robot, from unrelated states."""
    motion = random_motion(robot, 40 * robot.dof + 100)
    effort = di.inverse_dynamics(robot, motion) + noise * np.random.default_rng(0).normal(size=motion.q.shape)
    return di.WLS().fit(di.Regression.from_motion(robot, motion, effort)).result_


def slide(fc: float = 0.0, noise: float = 0.05) -> tuple[di.Mechanism, di.Fit]:
    """Return a mass of 2 kg on a rail with Coulomb friction, and a fit of it with that noise."""
    body = di.Body("cart", np.array([2.0, 0, 0, 0, 1, 0, 0, 1, 0, 1]))
    rail = di.Joint("rail", "prismatic", "base", "cart", axis=(1, 0, 0))
    robot = di.Mechanism("slide", (di.Body("base"), body), (rail,), terms=("fc",))
    robot = robot.with_parameters(robot.parameters.replace({"fc_rail": fc}))
    return robot, known(robot, noise)


@pytest.fixture(scope="module")
def arm():
    machine = geared_arm()
    training = machine.simulate(excitation(3, 10.0), seed=1).log
    return machine, di.WLS().fit(di.Regression.from_log(machine.model, training)).result_


# ---- the terms -----------------------------------------------------------------------------------------------------------


def test_momentum_and_its_rate_are_those_of_pinocchio() -> None:
    """P = M v and dp/dt = C^T v - g + tau, at the state behind the low-pass."""
    robot = build((("revolute", -1, False), ("prismatic", 0, False), ("revolute", 1, False), ("universal", 2, False)), 3, ())
    monitor = Monitor(known(robot).altered(standard=robot.parameters), bandwidth=5.0)
    rng = np.random.default_rng(1)
    q, v = rng.normal(size=(2, robot.dof))
    for k in range(60):
        monitor.update(0.002 * k, q + 0.002 * k * v, np.arange(robot.dof))
    state = monitor.state
    close(state["velocity"], v, 2e-2)  # the low-pass follows a ramp
    oracle = PinRobot(robot)
    x = oracle.state(state["position"], state["velocity"], 0.0 * v)
    M = pin.crba(oracle.model, oracle.data, x.q)
    M = np.triu(M) + np.triu(M, 1).T
    C = pin.computeCoriolisMatrix(oracle.model, oracle.data, x.q, x.v)
    g = pin.computeGeneralizedGravity(oracle.model, oracle.data, x.q)
    close(state["momentum"], x.B.T @ M @ x.v, 1e-12)
    close(state["rate"], x.B.T @ (C.T @ x.v - g) + state["effort"], 1e-12)


@pytest.mark.parametrize(
    "robot", [coupled(), build((("revolute", -1, False), ("revolute", 0, False)), 1)], ids=["coupled", "tree"]
)
def test_nothing_is_seen_where_only_the_model_acts(robot: di.Mechanism) -> None:
    """Momentum balance along a smooth motion, rotors, springs and friction included; then a push is seen as it is."""
    t = np.arange(3000) / 2000.0
    phase = 1.0 + np.arange(robot.dof)
    swing = np.sin(2.0 * t[:, None] + phase), 2.0 * np.cos(2.0 * t[:, None] + phase), -4.0 * np.sin(2.0 * t[:, None] + phase)
    motion = di.Motion(t, *(0.4 * x for x in swing))
    push = np.linspace(1.0, 2.0, robot.dof) * (t[:, None] > 0.9)
    # tau_ext = push moves with the motors, so they need less
    effort = di.inverse_dynamics(robot, motion)
    monitor = Monitor(known(robot, 1e-4), bandwidth=20.0, cutoff=200.0)
    record = monitor.feed_arrays(t, motion.q, effort - push)
    n = robot.dof
    moving = np.all(np.abs(motion.v) > 0.2, axis=1)
    before, after = (t > 0.3) & (t < 0.9) & moving, (t > 1.1) & moving
    size = np.abs(effort).max()
    assert np.abs(record[before, :n]).max() < 0.02 * size
    assert np.median(np.abs(record[after, :n] - push[after])) < 0.01 * size


# ---- when it calls -------------------------------------------------------------------------------------------------------


def test_the_rate_of_false_alarms_is_that_of_filtered_noise() -> None:
    bandwidth, rate, z = 10.0, 2000.0, 3.0
    noise = np.random.default_rng(0).normal(size=int(1500 * rate))
    x = lfilter(*butter(3, bandwidth, fs=rate), noise)
    x /= x.std()
    calls = np.count_nonzero((np.abs(x[1:]) > z) & (np.abs(x[:-1]) <= z))
    stated = false_alarm_rate(z, [2.0 * np.pi * bandwidth]) * 1500.0 / 3600.0
    assert abs(calls - stated) < 4.0 * np.sqrt(stated)
    assert alarm_threshold(false_alarm_rate(4.5, [30.0, 60.0]), [30.0, 60.0]) == pytest.approx(4.5)
    with pytest.raises(DescriptionError, match="false_alarms is 1e\\+09 per hour"):
        alarm_threshold(1e9, [60.0])


def test_noise_like_that_of_the_fit_stays_below_the_stated_rate() -> None:
    robot, _ = slide()
    rng = np.random.default_rng(5)
    t = np.arange(20_000) / 1000.0
    q = np.sin(t)[:, None] + 0.3 * np.sin(7.0 * t)[:, None]
    clean = 2.0 * (-np.sin(t) - 0.3 * 49.0 * np.sin(7.0 * t))[:, None]
    logs = [di.Log(t, ["rail"], q, clean + 0.5 * rng.normal(size=q.shape), "joint_force") for _ in range(2)]
    fit = di.WLS().fit(di.Regression.from_log(robot, logs[0])).result_
    monitor = Monitor(fit, false_alarms=3600.0, hold=0.0)  # one per second
    calls = len(monitor.run(logs[1]).events)
    assert 2 < calls < 45


def test_friction_at_rest_may_do_anything_within_its_limits() -> None:
    robot, fit = slide(fc=5.0, noise=0.01)
    assert robot.dof == 1
    rng = np.random.default_rng(2)
    t = np.arange(8000) / 1000.0
    held = np.repeat(rng.choice([-5.0, 5.0, 0.0, 3.0], 80), 100)[:, None]
    monitor = Monitor(fit, bandwidth=8.0)
    result = monitor.feed_arrays(t, np.zeros((8000, 1)), held)
    assert not result[:, 2].any()
    assert np.nanmax(np.abs(result[:, 0])) > 3.0  # it is seen, and explained
    assert monitor.state["rest"] == pytest.approx(7.5, rel=0.01)
    monitor.reset()
    assert monitor.feed_arrays(t, np.zeros((8000, 1)), 2.0 * held)[:, 2].any()


def test_the_flag_is_confirmed_and_held() -> None:
    _, fit = slide(noise=0.01)
    t = np.arange(3000) / 1000.0
    push = np.where((t > 1.0) & (t < 1.1), -5.0, 0.0)[:, None]
    calls = [
        Monitor(fit, bandwidth=20.0, confirm=confirm, hold=0.5).feed_arrays(t, 0.0 * push, push)[:, 2]
        for confirm in (0.0, 0.05)
    ]
    first = [t[np.argmax(flag)] for flag in calls]
    assert 1.0 < first[0] < 1.01
    assert first[1] - first[0] == pytest.approx(0.05, abs=0.0021)
    assert t[np.flatnonzero(calls[0])[-1]] > 1.6
    assert not calls[0][-500:].any()
    with pytest.raises(DescriptionError, match="hold is -1"):
        Monitor(fit, hold=-1.0)


def test_samples_that_are_no_numbers_are_passed_over_and_late_ones_start_it_anew() -> None:
    _, fit = slide(noise=0.01)
    monitor = Monitor(fit, bandwidth=20.0)
    for k in range(500):
        reading = monitor.update(0.001 * k, [0.0], [-1.0])
    assert isinstance(reading, Reading)
    assert reading.flag
    assert reading.torque[0] == pytest.approx(1.0, abs=0.01)
    lost = monitor.update(0.5, [np.nan], [-1.0])
    assert np.isnan(lost.torque[0])
    assert lost.flag  # still held
    assert monitor.update(0.501, [0.0], [-1.0]).torque[0] == pytest.approx(1.0, abs=0.01)
    late = monitor.update(9.0, [3.0], [0.0])
    assert np.isnan([late.torque[0], late.threshold[0], late.share]).all()  # nothing is known, which is not nothing
    with pytest.raises(DynidentError, match="wrong size"):
        monitor.update(9.1, [1.0, 2.0], [0.0])


# ---- a robot that is touched -----------------------------------------------------------------------------------------------


def test_a_push_on_the_virtual_robot_is_found_and_measured(arm) -> None:
    machine, fit = arm
    monitor = Monitor(fit)
    wrench = np.array([0.0, 0.0, 20.0, 0.0, 0.0, 0.0])
    other = excitation(3, 6.0, seed=3)  # faster than the training
    healthy = monitor.run(machine.simulate(other, seed=2).log)
    assert isinstance(healthy, MonitorRecord)
    assert not healthy.events
    assert np.all(healthy.coverage > 0.85)
    assert "no event" in healthy.summary()
    run = machine.simulate(other, seed=4, wrenches={"link_3": lambda t: wrench if t >= 3.0 else 0.0 * wrench})
    record = monitor.run(run.log)
    (event,) = record.events
    assert isinstance(event, Event)
    assert 3.0 < event.start < 3.03
    assert event.joint == "joint_1"
    assert "times its threshold" in record.summary()
    # The truth, as late as the observer is by its two filters.
    true = jacobian(fit.mechanism, record.q, "link_3").transpose(0, 2, 1) @ wrench * (record.t >= 3.0)[:, None]
    fc, rate = monitor.settings.gains[0] / (2.0 * np.pi), 1000.0
    late = lfilter(*butter(2, monitor.settings.cutoff, fs=rate), lfilter(*butter(3, fc, fs=rate), true, axis=0), axis=0)
    touched = (record.t > 3.0) & (record.threshold[:, 0] < 0.3)  # not where friction at rest is unknown
    error = np.sqrt(np.mean((record.torque - late)[touched, 0] ** 2) / np.mean(late[touched, 0] ** 2))
    assert error < 0.01
    force, left = monitor.wrench(record.q[-500:], record.torque[-500:], "link_3", moment=False)
    assert np.abs(np.median(force[:, 2]) / 20.0 - 1.0) < 0.1
    assert left.shape == (500, 3)
    whole, _ = monitor.wrench(record.q, record.torque, "link_3", moment=False)  # nothing is known before the low-pass settles
    np.testing.assert_array_equal(np.isnan(whole).any(axis=1), np.isnan(record.torque[:, 0]))
    np.testing.assert_allclose(whole[-500:], force)
    assert record.to_dict()["events"][0]["joint"] == "joint_1"
    assert len(record.plot().axes) == 3


def test_a_healthy_run_raises_thresholds_and_never_lowers_them(arm) -> None:
    machine, fit = arm
    log = machine.simulate(excitation(3, 6.0, seed=3), seed=2).log
    rough = replace(
        log, effort=log.effort + 0.02 * np.random.default_rng(0).normal(size=log.effort.shape).cumsum(axis=0) / 30.0
    )
    monitor = Monitor(fit)
    assert monitor.run(rough).events
    calm = monitor.calibrated(rough)
    assert not calm.run(rough).events
    assert np.all(calm.settings.variance >= monitor.settings.variance)


def test_friction_follows_a_logged_temperature() -> None:
    """A joint that warms by 40 K loses half its friction; the law that knows it sees nothing, the cold one calls."""
    _, fit = slide(fc=4.0, noise=0.02)
    law = TemperatureDependent(Coulomb() + Viscous(), 20.0).using(fc=4.0, fv=0.0, alpha=-0.0125)
    t = np.arange(6000) / 1000.0
    q, v, a = np.sin(t)[:, None], np.cos(t)[:, None], -np.sin(t)[:, None]
    T = np.full((6000, 1), 60.0)
    effort = 2.0 * a + 2.0 * np.sign(v) + 0.02 * np.random.default_rng(0).normal(size=q.shape)
    log = di.Log(t, ["rail"], q, effort, "joint_force", temperature=T)
    warm, cold = Monitor(fit, friction={"rail": law}), Monitor(fit)
    assert not warm.run(log).events
    assert cold.run(log).events
    with pytest.raises(LogError, match="friction of rail needs a temperature"):
        warm.run(replace(log, temperature=None))
    with pytest.raises(DynidentError, match="needs a temperature"):
        warm.update(0.0, [0.0], [0.0])
    with pytest.raises(DescriptionError, match=r"friction of 'arm'.*no such joint"):
        Monitor(fit, friction={"arm": law})


def test_a_fit_of_friction_laws_is_monitored_too(arm) -> None:
    from dynident.identify import fit_friction

    machine, _ = arm
    log = machine.simulate(excitation(3, 10.0), seed=1).log
    monitor = Monitor(fit_friction(machine.model, log, Coulomb() + Viscous()))
    assert not monitor.run(machine.simulate(excitation(3, 6.0, seed=3), seed=2).log).events


# ---- C, commands, bad input ------------------------------------------------------------------------------------------------


@pytest.mark.skipif(GCC is None, reason="gcc is not installed")
def test_generated_c_says_the_same(tmp_path, arm) -> None:
    _, fit = arm
    Monitor(fit, false_alarms=1.0).to_c(tmp_path, "arm")
    subprocess.run([GCC, *STRICT, "-O1", "arm.c", "arm_test.c", "-o", "check", "-lm"], check=True, cwd=tmp_path)
    done = subprocess.run([tmp_path / "check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert float(done.stdout.split()[-1]) < 1e-12


def test_the_command_tells_events_and_its_code(tmp_path, capsys, monkeypatch) -> None:
    from dynident.cli import run

    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(5)
    t = np.arange(4000) / 500.0
    q, a = np.sin(2.0 * t)[:, None], -4.0 * np.sin(2.0 * t)[:, None]
    effort = 2.0 * a + 0.1 * rng.normal(size=a.shape)
    log = di.Log(t, ["rail"], q, effort, "joint_force")
    push = di.Log(t, ["rail"], q, effort - 5.0 * ((t > 3.0) & (t < 4.0))[:, None], "joint_force")
    (tmp_path / "robot.urdf").write_text(RAIL, encoding="utf-8")
    described = di.Mechanism.from_urdf("robot.urdf").with_terms(("fc",))
    fit = di.WLS().fit(di.Regression.from_log(described, log)).result_
    fit.save("fit.json")
    log.save("calm.csv")
    push.save("push.csv")
    assert run(["monitor", "fit.json", "calm.csv", "--strict"]) == 0
    assert "no event" in capsys.readouterr().out
    code = run(["monitor", "fit.json", "push.csv", "--strict", "--json", "--plot", "p.png", "--c", "c"])
    assert code == 3
    data = json.loads(capsys.readouterr().out)
    assert data["logs"][0]["events"][0]["start"] == pytest.approx(3.0, abs=0.1)
    assert (tmp_path / "p.png").stat().st_size > 1000
    assert (tmp_path / "c" / "monitor_test.c").is_file()
    di.Log(t[::50], ["rail"], q[::50], effort[::50], "joint_force").save("slow.csv")
    with pytest.raises(DynidentError, match="has 10 samples per second"):
        run(["monitor", "fit.json", "slow.csv"])
    assert run(["monitor", "fit.json", "slow.csv", "--cutoff", "4", "--bandwidth", "1"]) == 0


def test_robots_that_it_cannot_watch_are_refused() -> None:
    robot = build((("spherical", -1, False),), 0, ())
    with pytest.raises(DescriptionError, match="spherical or free joint"):
        Monitor(known(robot))
    with pytest.raises(DescriptionError, match="fit is a str"):
        Monitor("fit.json")
    with pytest.raises(DynidentError, match="bandwidth is"):
        Monitor(slide()[1], bandwidth=-1.0)


# ---- robots with loops -------------------------------------------------------------------------------------------------------


def closed_motion(robot: di.Mechanism, size: float, t: np.ndarray) -> tuple[di.Motion, np.ndarray]:
    """Return a smooth motion about home and the motors' positions along it."""
    home, phase = robot.closure.home[robot.closure.independent], 1.0 + np.arange(robot.dof)
    w = 2.0 * t[:, None] + phase
    motion = di.Motion(t, home + size * np.sin(w), 2.0 * size * np.cos(w), -4.0 * size * np.sin(w))
    N, n0 = robot.actuator_matrix
    return motion, close_positions(robot, motion.q) @ N.T + n0


def known_loops(robot: di.Mechanism, projection: str = "gls", noise: float = 1e-4) -> di.Fit:
    """Return a fit that knows a robot with loops, from unrelated states."""
    motion = random_closed_motion(robot, 300)
    torques = actuator_torques(robot, motion.q, di.inverse_dynamics(robot, motion))
    torques = torques + noise * np.random.default_rng(0).normal(size=torques.shape)
    return di.WLS().fit(di.Regression.from_motion(robot, motion, torques, projection=projection)).result_


@pytest.mark.parametrize(
    ("robot", "projection", "size"),
    [
        (five_bar(), "gls", 0.2),
        (five_bar("platform"), ("motor1", "motor4"), 0.05),
    ],
    ids=["motors", "platform"],
)
def test_a_robot_with_loops_is_watched_by_its_motors(robot: di.Mechanism, projection: str, size: float, tmp_path) -> None:
    """Inverse dynamics with a known push."""
    monitor = Monitor(known_loops(robot, projection), bandwidth=20.0, cutoff=200.0)
    t = np.arange(3000) / 2000.0
    motion, rho = closed_motion(robot, size, t)
    model = di.inverse_dynamics(robot, motion)
    push = np.linspace(1.0, 2.0, robot.dof) * (t[:, None] > 0.9)
    effort = actuator_torques(robot, motion.q, model - push)
    n, result = robot.dof, monitor.feed_arrays(t, rho, effort)
    fast = np.all(np.abs(motion.v) > 0.2 * size, axis=1)  # friction of the motors turns about where they stop
    before, after = (t > 0.3) & (t < 0.9) & fast, (t > 1.1) & fast
    assert np.median(np.abs(result[before, :n])) < 1e-3 * np.abs(model).max()
    assert np.median(np.abs(result[after, :n] - push[after])) < 1e-3
    state = monitor.state
    assert np.abs(close_positions(robot, state["closed"][None, robot.closure.independent]) - state["closed"]).max() < 1e-9
    lost = monitor.update(t[-1] + 5e-4, rho[-1] + 1e4 * (1.0 + np.arange(rho.shape[1])), effort[-1])
    assert np.isnan(lost.torque).all()  # out of reach: nothing is said, and it starts anew
    for k in range(1, int(monitor.settling / 5e-4) + 6):
        again = monitor.update(t[-1] + 5e-4 * (1 + k), rho[-1], effort[-1])
    assert np.isfinite(again.threshold).all()
    with pytest.raises(DynidentError, match="one number per motor"):
        monitor.update(2.0, np.zeros(5), effort[-1])
    if GCC is not None and size < 0.1:
        monitor.to_c(tmp_path, "bars")
        subprocess.run([GCC, *STRICT, "-O0", "bars.c", "bars_test.c", "-o", "check", "-lm"], check=True, cwd=tmp_path)
        assert subprocess.run([tmp_path / "check"], capture_output=True, check=False).returncode == 0


def test_a_force_on_the_platform_of_a_virtual_machine_is_measured() -> None:
    """DualV with elastic structure, friction, encoders and preload: 30 N on the platform, from logs of its motors."""
    machine, motion, robot = platform_machine(), platform_motion(), platform()
    monitor = Monitor(di.WLS().fit(di.Regression.from_log(robot, machine.simulate(motion, seed=1).log)).result_)
    assert not monitor.run(machine.simulate(motion, seed=2).log).events
    force = np.array([30.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    record = monitor.run(
        machine.simulate(motion, seed=3, wrenches={"platform": lambda t: force if t > 0.5 else 0.0 * force}).log
    )
    (event,) = record.events
    assert event.start == pytest.approx(0.505, abs=0.006)
    late = record.t > 0.55
    wrench, _ = monitor.wrench(record.q[late], record.torque[late], "platform")
    assert np.median(wrench[:, 0]) == pytest.approx(30.0, rel=0.01)
    assert np.abs(np.median(wrench[:, 1])) < 0.5


def test_friction_of_loops_follows_the_temperature_of_the_motors() -> None:
    robot = five_bar("platform")
    fit, t = known_loops(robot, noise=1e-3), np.arange(2000) / 1000.0
    motion, rho = closed_motion(robot, 0.05, t)
    hot = robot.with_parameters(robot.parameters.replace({f"{c}_alpha{i}": 0.0 for c in ("fc", "fv") for i in (1, 4)}))
    law = TemperatureDependent(Coulomb() + Viscous(), 20.0).using(fc=20.0, fv=0.0, alpha=-0.0125)
    torque = actuator_torques(hot, motion.q, di.inverse_dynamics(hot, motion))
    effort = torque + 10.0 * np.sign(np.gradient(rho, axis=0)) / robot.actuators[0].ratio  # half of it at 60 degrees
    warm = Monitor(fit, friction={"alpha1": law, "alpha4": law})
    assert tuple(warm.terms.warm) == ("alpha1", "alpha4")
    assert not warm.feed_arrays(t, rho, effort, np.full_like(rho, 60.0))[:, 4].any()
    warm.reset()
    assert warm.feed_arrays(t, rho, effort, np.full_like(rho, 20.0))[:, 4].any()


@pytest.mark.parametrize("projection", ["gls", "independent", ("motor1", "motor2", "motor3")])
def test_errors_of_projected_equations_return_to_the_coordinates(projection: str | tuple[str, ...]) -> None:
    """S^-1 S^-T is A^T A for alike motors; named motors bring their own columns of A^T."""
    robot = platform()
    names = [actuator.name for actuator in robot.actuators]
    rows = Rows(robot, projection if isinstance(projection, str) else tuple(names[:3]))
    q = platform_motion().q[:5]
    function = function_of(
        robot, "errors_back", lambda x: {"U": [entry for row in unprojected(x, rows) for entry in row]}, (rows.projection,)
    )
    U, zero = np.empty((5, 3, 3)), np.zeros((5, 3))
    function(5, {"q": close_positions(robot, q), "v": zero, "a": zero, "U": U})
    A = actuator_jacobian(robot, q)
    if projection == "gls":
        np.testing.assert_allclose(U @ U.transpose(0, 2, 1), A.transpose(0, 2, 1) @ A, atol=1e-12)
    else:
        expected = np.tile(np.eye(3), (5, 1, 1)) if projection == "independent" else A[:, :3].transpose(0, 2, 1)
        np.testing.assert_allclose(U, expected, atol=1e-12)
