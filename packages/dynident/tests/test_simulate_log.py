"""The log of a virtual robot has the contract of a real one: it is read, prepared and identified, and the truth is found."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2
from simulate_cases import arm, cascade, excitation, geared_arm, geared_drives, pid
from small_robots import ROTOR, TORQUE_CONSTANT, bare, five_bar, platform

import dynident as di
from dynident.drive import CurrentSensor, Drive, Encoder, Motor, Transmission
from dynident.friction import Coulomb, Viscous
from dynident.signals import Log, prepare
from dynident.simulate import Run, Sensors, VirtualRobot
from dynident.simulate.run import MOST_NUMBERS, thinning


def identify(run: Run, **options: Any) -> tuple[di.Fit, np.ndarray, float]:
    """Return the fit, its errors in standard deviations, and the squared distance from the truth."""
    model = run.robot.model
    base = di.base_parameters(model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = di.WLS().fit(di.Regression.from_log(model, run.log, base, **options)).result_
    error = fit.values - base.values(model.parameters.values)
    deviation = np.sqrt(np.diag(fit.covariance))
    return fit, error / deviation, float(error @ np.linalg.solve(fit.covariance, error))


def within(distance: float, count: int) -> bool:
    """Tell whether the truth lies where the covariance says it does with 99.9 %."""
    return bool(chi2.ppf(0.0005, count) < distance < chi2.ppf(0.9995, count))


@pytest.mark.parametrize("seed", [1, 2])
def test_a_geared_arm_is_identified_within_its_covariance(seed: int) -> None:
    robot = geared_arm(sensors=Sensors(effort_noise=0.05))
    run = robot.simulate(excitation(3, 6.0, size=0.8), seed=seed)
    fit, scaled, distance = identify(run)
    assert within(distance, fit.values.size), distance / fit.values.size
    assert np.abs(scaled).max() < 4.0


def test_without_noise_the_arm_is_found_to_a_few_parts_in_a_thousand() -> None:
    run = geared_arm().simulate(excitation(3, 6.0, size=0.8))
    fit, _, _ = identify(run)
    true = di.base_parameters(run.robot.model).values(run.robot.model.parameters.values)
    assert np.abs(fit.values - true).max() < 4e-3 * np.abs(true).max()  # counts and Coulomb reversals remain


@pytest.mark.parametrize(
    "sensors",
    [
        Sensors(effort="motor_torque"),
        Sensors(effort="joint_torque", side="joint"),
        Sensors(effort="joint_torque"),
        Sensors(side="joint"),
        Sensors(effort="voltage"),
    ],
    ids=lambda s: f"{s.effort}-{s.side}",
)
def test_every_effort_and_side_gives_the_same_robot(sensors: Sensors) -> None:
    robot = arm()
    drives = geared_drives(robot, resistance=0.5)
    run = VirtualRobot(robot, drives, cascade(), sensors=sensors).simulate(excitation(3, 4.0, size=0.8))
    assert run.log.effort_kind == sensors.effort
    assert run.log.position_side == sensors.side
    fit, _, _ = identify(run)
    model = run.robot.model
    true = di.base_parameters(model).values(model.parameters.values)
    assert np.abs(fit.values - true).max() < 4e-3 * np.abs(true).max()
    if sensors.effort == "voltage":  # back electromotive force is viscous friction behind a voltage
        assert model.parameters["fv_joint_1"] == pytest.approx(100.0**2 * (2e-4 + 0.15**2 / 0.5))


def test_a_coupled_wrist_is_identified_from_its_motors() -> None:
    wrist = replace(
        arm(),
        actuators=(
            di.Actuator("m1", {"joint_1": 1.0}),
            di.Actuator("m2", {"joint_2": 1.0}),
            di.Actuator("m3", {"joint_2": 1.0, "joint_3": -1.0}),
        ),
    )
    robot = VirtualRobot(wrist, geared_drives(wrist), cascade(), sensors=Sensors(effort_noise=0.05))
    run = robot.simulate(excitation(3, 6.0, size=0.8), seed=1)
    assert run.robot.model.parameters["ia_m3"] == pytest.approx(2.0)
    fit, _, distance = identify(run)
    assert within(distance, fit.values.size), distance / fit.values.size


def five_bar_with_geared_drives(**options: Any) -> VirtualRobot:
    friction = (Coulomb() + Viscous()).using(fc=0.4, fv=1.7e-3)
    motor = Motor(TORQUE_CONSTANT, inertia=ROTOR)
    drives = [Drive(f"motor{i}", motor, Transmission.gear(40.0), friction, Encoder(2e-4, filter=200.0)) for i in (1, 4)]
    law = pid(2e5, 4e3, cycle=1e-3)
    return VirtualRobot(bare(five_bar()), drives, law, **options)


def test_a_robot_with_loops_is_identified_within_its_covariance() -> None:
    robot = five_bar_with_geared_drives(sensors=Sensors(effort_noise=0.05))
    home = robot.mechanism.closure.home[robot.mechanism.closure.independent]
    curve = excitation(2, 5.0, seed=3, size=0.15)
    t = np.arange(0.0, 5.0001, 5e-3)
    q, v, a = curve(t)
    run = robot.simulate(di.Motion(t, q - q[0] + home, v, a), seed=1)
    assert run.log.joints == ("motor1", "motor4")
    fit, scaled, distance = identify(run)
    assert within(distance, fit.values.size), distance / fit.values.size
    assert np.abs(scaled).max() < 4.0


def test_a_redundant_robot_is_identified_whatever_its_preload() -> None:
    machine = platform()
    drives = [Drive(a.name, Motor(1.0), encoder=Encoder(1e-6, velocity="exact")) for a in machine.actuators]
    law = pid(3000.0, 60.0, cycle=1e-3, project=True, preload=[2.0, -1.0, 1.5, 1.0])
    robot = VirtualRobot(machine, drives, law, sensors=Sensors(effort_noise=0.05), step=2.5e-4)
    t = np.arange(0.0, 2.0001, 5e-3)
    q, v, a = excitation(3, 2.0, seed=2, size=0.2)(t)
    scale = np.array([0.3, 0.3, 1.0])
    run = robot.simulate(di.Motion(t, (q - q[0]) * scale, v * scale, a * scale), seed=1)
    fit, _, distance = identify(run)
    assert within(distance, fit.values.size), distance / fit.values.size


# ------------------------------------------------------------------------------------------------------------ the recorder
def test_the_log_survives_every_writer(tmp_path: Path) -> None:
    sensors = Sensors(effort_noise=0.05, velocity_noise=0.1, dropped=0.02, missing="nan", delay=1e-3)
    log = geared_arm(sensors=sensors).simulate(excitation(3, 0.5), seed=9).log
    pytest.importorskip("pyarrow", reason="Parquet needs pyarrow: pip install 'dynident[parquet]'")
    for path in (log.save(tmp_path / "a.csv"), log.save(tmp_path / "a.npz"), log.save(tmp_path / "a.parquet")):
        back = Log.read(path)
        assert back.joints == log.joints
        assert np.array_equal(back.position, log.position, equal_nan=True)
        assert np.array_equal(back.effort, log.effort, equal_nan=True)
        assert back.effort_kind == "motor_current"
        assert back.position_side == "motor"
        assert np.array_equal(back.gain, log.gain)  # type: ignore[arg-type]
        assert back.truth is not None
        assert back.truth["parameters"] == log.truth["parameters"]  # type: ignore[index]
        assert back.provenance["seed"] == 9
        assert back.provenance["simulated"] == "arm"


def test_positions_are_whole_counts_and_currents_go_through_their_sensor() -> None:
    robot = arm(2)
    drives = tuple(replace(d, current_sensor=CurrentSensor(0.01, gain_error=0.1)) for d in geared_drives(robot))
    run = VirtualRobot(robot, drives, cascade()).simulate(excitation(2, 0.5))
    counts = run.log.position / (2.0 * np.pi / 4096)
    assert np.abs(counts - np.round(counts)).max() < 1e-6
    assert np.abs(run.log.position - run.truth.theta).max() <= np.pi / 4096 + 1e-9
    assert np.abs(run.log.effort - 1.1 * run.truth.mean_current).max() <= 0.005 + 1e-9
    assert np.abs(run.log.effort / 0.01 - np.round(run.log.effort / 0.01)).max() < 1e-6


def test_efforts_lag_by_their_delay_and_noise_has_its_size() -> None:
    plain = geared_arm(2).simulate(excitation(2, 1.0))
    late = geared_arm(2, sensors=Sensors(delay=[0.01, 0.0])).simulate(excitation(2, 1.0))
    assert np.allclose(late.log.effort[10:, 0], plain.log.effort[:-10, 0], atol=1e-9)
    assert np.allclose(late.log.effort[:, 1], plain.log.effort[:, 1], atol=1e-12)
    loud = geared_arm(2, sensors=Sensors(effort_noise=0.3, position_noise=0.5, velocity_noise=2.0)).simulate(excitation(2, 1.0))
    assert np.std(loud.log.effort - plain.log.effort) == pytest.approx(0.3, rel=0.05)
    assert np.std(loud.log.position - plain.log.position) == pytest.approx(0.5, rel=0.05)
    assert loud.log.velocity is not None
    assert np.std(loud.log.velocity - plain.truth.omega) == pytest.approx(2.0, rel=0.05)
    assert plain.log.velocity is None
    assert loud.truth.checksum() == plain.truth.checksum()  # what is logged does not change what happens


@pytest.mark.parametrize("sensors", [Sensors(dropped=0.03), Sensors(dropped=0.03, missing="nan"), Sensors(jitter=2e-4)])
@pytest.mark.parametrize("clock", ["stamps", "sampling"])
def test_lost_samples_and_jitter_are_what_prepare_can_mend(sensors: Sensors, clock: str) -> None:
    robot = geared_arm(sensors=replace(sensors, effort_noise=0.05, clock=clock))
    run = robot.simulate(excitation(3, 5.0, size=0.8), seed=3)
    assert np.all(np.diff(run.log.t) > 0.0)
    if sensors.dropped and sensors.missing == "rows":
        assert len(run.log) < 5001
        assert np.isfinite(run.log.position).all()
    if sensors.missing == "nan":
        assert np.isnan(run.log.effort).any()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        prepared = prepare(run.log)
    assert np.isfinite(prepared.motion.a).all()
    fit, scaled, _ = identify(run)
    assert np.abs(scaled).max() < 6.0
    assert fit.values.size == 25


def test_ripple_is_averaged_unless_asked_otherwise() -> None:
    """A position loop at 1 kHz makes steps of the wanted speed; sampled at its ticks they would look like torque."""
    raw = geared_arm(2, sensors=Sensors(averaged=False)).simulate(excitation(2, 1.0))
    mean = geared_arm(2).simulate(excitation(2, 1.0))
    assert np.array_equal(raw.log.effort, raw.truth.current)
    assert np.std(np.diff(raw.log.effort, axis=0)) > 2.0 * np.std(np.diff(mean.log.effort, axis=0))
    mine, theirs = np.mean(mean.truth.mean_current[10:-10], axis=0), np.mean(mean.truth.current[10:-10], axis=0)
    assert np.all(np.abs(mine) < 10.0)
    assert np.all(np.abs(theirs) < 10.0)


def test_efforts_are_averaged_over_every_change_of_the_currents_where_memory_allows() -> None:
    """12 steps per sample, currents that change every 5 steps: 2 rows of 6 steps, as 3 rows of 4 would be finer than that."""
    assert thinning(1000, 12, 5, 3) == 2
    assert thinning(1000, 12, 1, 3) == 12
    assert thinning(1000, 7, 2, 3) == 1  # a prime number of steps is not shared out
    assert thinning(MOST_NUMBERS // 5 // 3, 12, 1, 1) == 3


@dataclass
class Clock:
    """A thermal model of 20 + t^2 degrees, whatever the losses."""

    now: float = 0.0

    def heating(self) -> Clock:
        return self

    def begin(self, robot: VirtualRobot) -> Clock:
        return Clock()

    @property
    def temperature(self) -> np.ndarray:
        return np.full(3, 20.0 + self.now**2)

    def zones(self) -> dict[str, np.ndarray]:
        return {"joint_1": self.temperature[:1]}

    def scales(self, owners: Any) -> tuple[np.ndarray, np.ndarray]:
        return np.ones(len(owners)), np.full(len(owners), self.temperature[0])

    def add(self, *powers: np.ndarray) -> None:
        """Losses change nothing."""

    def advance(self, dt: float) -> None:
        self.now += dt


def test_temperatures_are_interpolated_up_to_the_end_of_a_run() -> None:
    robot = replace(geared_arm(), thermal={"joint_1": Clock()})
    truth = robot.simulate(excitation(3), duration=0.95, thermal_cycle=0.1).truth
    times = [*np.arange(10) * 0.1, 0.95]
    expected = 20.0 + np.interp(truth.t, times, np.square(times))
    np.testing.assert_allclose(truth.temperature, np.tile(expected[:, None], 3), atol=1e-9)
    np.testing.assert_allclose(truth.zones["joint_1"][:, 0], expected, atol=1e-9)


def test_a_run_goes_on_to_the_end_of_its_reference() -> None:
    robot, motion = geared_arm(), excitation(3)
    first = robot.simulate(motion, duration=motion.duration - 0.2)
    later = robot.simulate(motion, start=first.end).truth.t
    np.testing.assert_allclose(later[[0, -1]], [motion.duration - 0.2, motion.duration])
