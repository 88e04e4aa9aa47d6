"""Robots that warm up: the friction follows the thermal model that its own power heats."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from plant_cases import slide
from refusals import all_refused
from scipy.integrate import solve_ivp
from simulate_cases import geared_arm, pid
from warm_robots import warm_arm6

import dynident as di
from dynident.drive import Drive, Encoder, Motor, Transmission
from dynident.friction import Coulomb, LuGre, TemperatureDependent, Viscous
from dynident.simulate import Run, VirtualRobot
from dynident.trajectory import Fourier, Trajectory, random_motion
from dynident_lab.thermal import FirstOrder, Heating, SecondOrder, Thermal

MODEL = FirstOrder(alpha=-0.01, beta=1.0, K=2.0, C=40.0)


def turning() -> tuple[di.Mechanism, di.Motion]:
    """Return one axis without gravity, and a turn at constant speed."""
    axis = di.Mechanism.from_dh([(0.0, 0.0, 0.0, 0.0)], gravity=(0.0, 0.0, 0.0))
    axis = axis.with_payload(1.0, inertia=np.diag([0.1, 0.1, 0.1]))
    t = np.linspace(0.0, 60.0, 61)
    return axis, di.Motion(t, 5.0 * t[:, None], np.full((61, 1), 5.0), np.zeros((61, 1)))


@pytest.mark.parametrize("where", ["joint", "drive"])
def test_a_joint_at_constant_speed_warms_like_its_thermal_model(where: str) -> None:
    axis, motion = turning()
    law = (Coulomb() + Viscous()).using(fc=4.0, fv=0.8)
    drive = Drive("joint_1", Motor(1.0), encoder=Encoder(velocity="exact"))
    if where == "drive":
        drive = replace(drive, friction=law)
    friction = {"joint_1": law} if where == "joint" else {}
    control = pid(400.0, 40.0, ki=400.0)
    robot = VirtualRobot(axis, [drive], control, friction=friction, thermal={"joint_1": MODEL}, step=1e-3)
    run = robot.simulate(motion, log_cycle=1e-2, thermal_cycle=0.5)
    exact = MODEL.simulate(run.truth.t, 5.0 * 8.0)
    assert run.log.temperature is not None
    assert np.abs(run.log.temperature[:, 0] - exact.temperature).max() < 0.2
    rubbing = run.truth.joint_friction if where == "joint" else run.truth.friction
    late = run.truth.t > 2.0
    assert np.abs(rubbing[late, 0] - 8.0 * exact.ratio[late]).max() < 0.05
    assert np.abs(run.truth.current[late, 0] - 8.0 * exact.ratio[late]).max() < 0.2
    assert run.log.temperature[-1, 0] > 30.0


def test_copper_heats_too_and_a_warm_start_is_kept() -> None:
    axis, motion = turning()
    drive = Drive("joint_1", Motor(1.0, resistance=0.5), friction=Viscous().using(fv=1.0), encoder=Encoder(velocity="exact"))
    base = VirtualRobot(axis, [drive], pid(400.0, 40.0), thermal={"joint_1": MODEL}, step=1e-3)
    heated = replace(base, thermal={"joint_1": Heating(MODEL, copper=1.0, start=[50.0])})
    plain = base.simulate(motion, duration=20.0, log_cycle=1e-2).truth.temperature
    run = heated.simulate(motion, duration=20.0, log_cycle=1e-2)
    assert plain is not None
    assert run.truth.temperature is not None
    assert run.truth.temperature[0, 0] == 50.0
    ratio = MODEL.ratio(run.truth.temperature[:, 0])
    late = run.truth.t > 2.0
    assert np.abs(run.truth.friction[late, 0] - 5.0 * ratio[late]).max() < 0.05
    t = run.truth.t
    exact = MODEL.simulate(t, 25.0, start=[50.0], losses=0.5 * run.truth.current[:, 0] ** 2)
    assert np.abs(run.truth.temperature[:, 0] - exact.temperature).max() < 0.2


def test_laws_with_memory_and_a_thermal_that_brings_its_law() -> None:
    axis, motion = turning()
    drive = Drive("joint_1", Motor(1.0), encoder=Encoder(velocity="exact"))
    lugre = LuGre(1e4, 50.0, 4.0, 5.0, 0.05, fv=0.2)
    one = VirtualRobot(axis, [drive], pid(400.0, 40.0), friction={"joint_1": lugre}, thermal={"joint_1": MODEL}, step=1e-3)
    run = one.simulate(motion, duration=10.0, log_cycle=1e-2)
    ratio = MODEL.ratio(run.truth.temperature[-1, 0])  # type: ignore[index]
    assert run.truth.joint_friction[-1, 0] == pytest.approx(5.0 * ratio, rel=0.01)
    warm = Thermal(Viscous().using(fv=1.0), MODEL)
    other = VirtualRobot(axis, [drive], pid(400.0, 40.0), thermal={"joint_1": warm}, step=1e-3)
    assert other.friction["joint_1"] is warm.friction
    assert other.model.parameters["fv_joint_1"] == 1.0
    assert replace(other, step=5e-4).friction["joint_1"] is warm.friction


def test_a_six_axis_warm_up_of_minutes_logs_temperatures() -> None:
    rows = [(0.0, np.pi / 2, 0.3, 0.0), (0.4, 0.0, 0.0, 0.0), (0.05, np.pi / 2, 0.0, 0.0)]
    rows += [(0.0, -np.pi / 2, 0.4, 0.0), (0.0, np.pi / 2, 0.0, 0.0), (0.0, 0.0, 0.1, 0.0)]
    robot = di.Mechanism.from_dh(rows, name="six").with_payload(2.0, inertia=np.eye(3) * 0.02)
    drives = tuple(
        Drive(a.name, Motor(0.1, inertia=2e-4), Transmission.gear(100.0), (Coulomb() + Viscous()).using(fc=0.05, fv=5e-4))
        for a in robot.actuators
    )
    model = SecondOrder(alpha=-0.01, beta=1.0, K1=1.0, K2=1.0, C1=60.0, C2=600.0)
    thermal = dict.fromkeys(robot.coordinate_names, model)
    family = Fourier(0.2, 3, periods=24)
    curve = Trajectory(family, np.random.default_rng(0).normal(size=(6, family.size)) * 0.4)
    machine = VirtualRobot(robot, drives, pid(4000.0, 200.0, cycle=2e-3), thermal=thermal, step=1e-3)
    machine.simulate(curve, duration=0.1)
    run = machine.simulate(curve, log_cycle=2e-2)
    assert run.log.duration > 119.0
    assert run.log.temperature is not None
    rise = run.log.temperature[-1] - run.log.temperature[0]
    assert np.all(rise > 0.5)
    first, last = run.truth.t < 20.0, run.truth.t > 100.0
    moving = np.abs(run.truth.omega) > 5.0
    for j in range(6):
        early = np.mean(np.abs(run.truth.friction[first & moving[:, j], j]))
        late = np.mean(np.abs(run.truth.friction[last & moving[:, j], j]))
        assert late < early


@pytest.mark.parametrize("where", ["joint", "drive"])
def test_a_law_that_looks_at_the_temperature_follows_the_thermal_model(where: str) -> None:
    axis, motion = turning()
    law = TemperatureDependent(Coulomb() + Viscous(), 25.0).using({"coulomb.fc": 4.0, "viscous.fv": 0.8, "alpha": -0.02})
    drive = Drive("joint_1", Motor(1.0), encoder=Encoder(velocity="exact"), friction=law if where == "drive" else None)
    friction = {"joint_1": law} if where == "joint" else {}
    flat = FirstOrder(alpha=0.0, beta=1.0, K=2.0, C=40.0)  # the friction's own law tells what the temperature does
    robot = VirtualRobot(axis, [drive], pid(400.0, 40.0, ki=400.0), friction=friction, thermal={"joint_1": flat}, step=1e-3)
    run = robot.simulate(motion, log_cycle=1e-2, thermal_cycle=0.1)

    def rate(t: float, y: np.ndarray) -> list[float]:
        power = 5.0 * 8.0 * (1.0 - 0.02 * (y[0] - 25.0))
        return [(power - 2.0 * (y[0] - 20.0)) / 40.0]

    exact = solve_ivp(rate, (0.0, 60.0), [20.0], t_eval=run.truth.t, rtol=1e-9).y[0]
    assert run.log.temperature is not None
    assert exact[-1] > 30.0
    assert np.abs(run.log.temperature[:, 0] - exact).max() < 0.2
    late = run.truth.t > 2.0
    torque = 8.0 * (1.0 - 0.02 * (exact - 25.0))
    rubbing = run.truth.joint_friction if where == "joint" else run.truth.friction
    steepest = np.abs(np.gradient(torque, run.truth.t)[late]).max()
    assert np.abs(rubbing[late, 0] - torque[late]).max() < 1.1 * 0.1 * steepest  # held for one thermal cycle
    assert np.abs(run.truth.current[late, 0] - torque[late]).max() < 0.2
    assert torque[late][0] - torque[-1] > 1.0
    cold = replace(robot, thermal={}, ambient=10.0).simulate(motion, duration=4.0, log_cycle=1e-2)
    rubbing = cold.truth.joint_friction if where == "joint" else cold.truth.friction
    assert rubbing[-1, 0] == pytest.approx(8.0 * 1.3, rel=1e-3)
    assert robot.model.parameters["fc_joint_1"] == 4.0  # at its reference temperature


def test_identification_of_a_six_axis_arm_finds_less_friction_in_its_warm_log() -> None:
    cold = warm_arm6()
    models = {name: heating.model for name, heating in cold.thermal.items()}
    hot = replace(cold, thermal={name: Heating(model, start=[45.0, 40.0]) for name, model in models.items()})
    motion = random_motion(np.array([0.0, 0.2, -0.2, 0.0, 0.3, 0.0]), np.full(6, 0.8), seed=3, duration=12.0)
    level, ratio = [], []
    for seed, robot in enumerate((cold, hot)):
        run = robot.simulate(motion, seed=seed)
        assert run.log.temperature is not None
        names = robot.model.tree.coordinates
        ratio.append([models[name].ratio(run.log.temperature[:, j]).mean() for j, name in enumerate(names)])
        fit = di.WLS().fit(di.Regression.from_log(robot.model, run.log)).result_
        speed = np.abs(run.truth.motion.v).mean(axis=0)
        found = [fit.standard[f"fc_{name}"] + fit.standard[f"fv_{name}"] * speed[j] for j, name in enumerate(names)]
        level.append(found)
    true = np.array(ratio[1]) / np.array(ratio[0])
    assert np.all(true < 0.8)
    np.testing.assert_allclose(np.array(level[1]) / np.array(level[0]), true, rtol=0.08)


def test_a_warm_run_is_read_back_with_its_thermal_model(tmp_path: Path) -> None:
    axis, motion = turning()
    drive = Drive("joint_1", Motor(1.0), encoder=Encoder(velocity="exact"))
    warm = {"joint_1": Thermal(Viscous().using(fv=1.0), MODEL)}
    run = VirtualRobot(axis, [drive], pid(400.0, 40.0), thermal=warm, step=1e-3).simulate(motion, duration=2.0, log_cycle=1e-2)
    again = Run.load(run.save(tmp_path / "run.json"))
    assert again.robot.thermal["joint_1"].model == MODEL
    assert again.truth.checksum() == run.truth.checksum()


@pytest.mark.parametrize("cut", [2.0, 1.3])
def test_warming_goes_on_from_an_end_and_shows_all_zones(cut: float) -> None:
    law = (Coulomb() + Viscous()).using(fc=4.0, fv=2.0)
    model = SecondOrder(alpha=-0.01, beta=1.0, K1=1.0, K2=1.0, C1=60.0, C2=600.0)
    t = np.linspace(0.0, 4.0, 401)
    x = np.sin(3.0 * t)[:, None]
    motion = di.Motion(t, x, 3.0 * np.cos(3.0 * t)[:, None], -9.0 * x)
    from dynident.control import PID

    robot = VirtualRobot(
        slide(), [Drive("s", Motor(1.0))], PID(4000.0, 200.0, cycle=1e-3), friction={"s": law}, thermal={"s": model}, step=1e-3
    )
    one = robot.simulate(motion)
    assert one.truth.zones["s"].shape == (one.truth.t.size, 2)
    assert np.all(np.diff(one.truth.zones["s"][-1000:, 0]) > 0.0)
    first = robot.simulate(motion, duration=cut)
    second = robot.simulate(motion, start=first.end)
    np.testing.assert_allclose(second.truth.motion.q, one.truth.motion.q[round(cut * 1000) :], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(second.end.heat.state["s"], one.end.heat.state["s"], rtol=1e-12)


def test_heating_that_does_not_fit_is_refused() -> None:
    law, warm = Coulomb().using(fc=1.0), Thermal(Coulomb().using(fc=2.0), MODEL)
    rest = di.Motion([0.0, 0.02], np.zeros((2, 3)), np.zeros((2, 3)), np.zeros((2, 3)))
    all_refused(
        [
            (lambda: geared_arm(thermal={"nobody": MODEL}), "thermal names 'nobody'"),
            (lambda: geared_arm(thermal={"joint_1": law}), "thermal model such as SecondOrder"),
            (lambda: geared_arm(friction={"joint_1": law}, thermal={"joint_1": warm}), "another in thermal"),
            (lambda: Heating(MODEL, copper=2.0), "copper"),
            (lambda: geared_arm(thermal={"joint_1": Heating(MODEL, start=[1.0, 2.0])}).simulate(rest), "start"),
        ]
    )
