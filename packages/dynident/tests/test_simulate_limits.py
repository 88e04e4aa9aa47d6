"""What limits a drive and what its sensors say: voltage between ticks, speed, preload, noise of the current sensor."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from plant_cases import slide
from simulate_cases import arm, geared_drives

import dynident as di
from dynident.control import PID, Cascade, ComputedTorque, CoordinateSpace, CurrentLoop, OpenLoop, TaskCascade, TaskPID
from dynident.drive import CurrentSensor, Drive, Encoder, Motor, Transmission
from dynident.errors import DynidentError, SimulationError, SimulationWarning
from dynident.simulate import Sensors, VirtualRobot

MOTOR = Motor(0.05, 0.5, inertia=2e-5, voltage_limit=5.0)


def rest(seconds: float, count: int = 1) -> di.Motion:
    return di.Motion([0.0, seconds], *(np.zeros((2, count)) for _ in range(3)))


@pytest.mark.parametrize(
    "law", [OpenLoop(current=[6.0]), PID(2000.0, 1.0, cycle=0.02), PID(2000.0, 1.0, cycle=0.02, delay=0.01)]
)
def test_the_voltage_limit_holds_between_ticks(law: object) -> None:
    """An ideal source holds i <= (U - K_E omega) / R: the speed comes up as that of a motor at U, exponentially."""
    robot = VirtualRobot(slide(0.2), [Drive("s", MOTOR, Transmission(20.0))], law, step=1e-4)  # type: ignore[arg-type]
    with pytest.warns(SimulationWarning, match="voltage limit"):
        run = robot.simulate(rest(0.5), start={"q": [-2.0]}, log_cycle=1e-4)
    assert np.abs(run.truth.voltage).max() <= 5.0
    assert np.abs(run.truth.voltage).max() > 4.999
    at_limit = np.abs(run.truth.voltage[:, 0]) > 5.0 * (1.0 - 1e-12)
    assert run.saturation["s"] >= at_limit.mean() - 1e-9
    if isinstance(law, OpenLoop):
        # 6 A until the voltage is used up, then omega -> (U - ...): (J + m / ratio^2) omega' = K (U - K omega) / R
        J, K, R = 2e-5 + 0.2 / 400.0, 0.05, 0.5
        free = (5.0 - R * 6.0) / K  # speed at which 6 A need 5 V
        t, t0 = run.truth.t, free * J / (K * 6.0)
        omega = np.where(t < t0, K * 6.0 / J * t, 5.0 / K + (free - 5.0 / K) * np.exp(-K * K / (R * J) * (t - t0)))
        np.testing.assert_allclose(run.truth.omega[:, 0], omega, atol=2e-4 * omega.max())
        assert run.saturation["s"] == pytest.approx(1.0 - t0 / 0.5, abs=1e-3)


def test_a_motor_driven_beyond_its_no_load_speed_generates() -> None:
    robot = VirtualRobot(slide(0.2), [Drive("s", MOTOR)], OpenLoop(current=[0.0]), step=1e-4)
    with pytest.warns(SimulationWarning):
        run = robot.simulate(rest(0.1), start={"q": [0.0], "velocity": [150.0]}, log_cycle=1e-3)
    np.testing.assert_allclose(run.truth.current[0, 0], (5.0 - 0.05 * 150.0) / 0.5)
    assert (run.truth.voltage <= 5.0).all()
    assert run.truth.omega[-1, 0] < 150.0


def test_a_step_too_long_for_the_voltage_limit_is_refused() -> None:
    fast = Motor(0.5, 0.05, inertia=1e-5, voltage_limit=5.0)  # J R / K^2 = 2 us
    with pytest.raises(SimulationError, match="too long for the winding"):
        VirtualRobot(slide(1e-6), [Drive("s", fast)], OpenLoop(current=[0.0]), step=1e-4).simulate(rest(0.1))


def test_the_speed_limit_is_reported_with_motor_time_and_share() -> None:
    drive = Drive("s", Motor(0.05, inertia=1e-3, speed_limit=50.0))
    robot = VirtualRobot(slide(1e-6), [drive], OpenLoop(current=[2.0]), step=1e-3)  # 100 rad/s^2
    with pytest.warns(SimulationWarning, match="motor of 's' was above its speed limit of 50 rad/s"):
        run = robot.simulate(rest(1.0))
    assert run.notes == (
        "motor of 's' was above its speed limit of 50 rad/s 50 % of the time, first at t = 0.501 s and with up to 99.9 rad/s",
    )


def test_a_preload_without_room_for_it_is_refused() -> None:
    robot = arm()
    for law in (PID(1.0, 1.0, cycle=1e-3, preload=[1.0, -1.0, 0.0]), ComputedTorque(robot, 1.0, 1.0, cycle=1e-3, preload=2.0)):
        with pytest.raises(
            DynidentError, match=r"preload requires more motors than degrees of freedom; robot 'arm' has 3 and 3"
        ) as error:
            VirtualRobot(robot, geared_drives(robot), law)
        assert "\n" not in str(error.value)
    with pytest.raises(DynidentError, match="task PID: preload requires more motors"):
        VirtualRobot(robot, geared_drives(robot), TaskPID(CoordinateSpace(), 1.0, 1.0, cycle=1e-3, preload=1.0))


# ---- the current sensor in the loop ----------------------------------------------------------------------------------
SENSOR = CurrentSensor(resolution=0.01, noise=0.05, gain_error=0.02)
LOOP = CurrentLoop(2.0, 400.0, 2.5e-4)
LAW = Cascade(25.0, 0.08, 2.0, position_cycle=2e-3, velocity_cycle=5e-4, current=LOOP)


def servo(sensor: CurrentSensor, law: object = LAW, **sensors: object) -> VirtualRobot:
    drive = Drive(
        "s", Motor(0.1, 0.6, 1e-3, inertia=1e-4), Transmission(80.0), encoder=Encoder(velocity="exact"), current_sensor=sensor
    )
    return VirtualRobot(slide(4.0), [drive], law, step=2.5e-4, sensors=Sensors(averaged=False, **sensors))  # type: ignore[arg-type]


def test_the_current_loop_sees_what_the_log_shows() -> None:
    """From voltages kP e + kI int e and readings of the log the wanted currents follow: e + reading, which the velocity loop
    holds for two ticks."""
    run = servo(SENSOR).simulate(rest(0.2), seed=3, log_cycle=2.5e-4)
    assert run.log.effort_kind == "motor_current"
    reading, volts = run.log.effort[:, 0], run.truth.voltage[:, 0]
    spread = reading - 1.02 * run.truth.current[:, 0]
    assert np.std(spread) == pytest.approx(np.hypot(0.05, 0.01 / np.sqrt(12.0)), rel=0.1)
    kp, ki = 2.0, 400.0 * 2.5e-4
    wanted, error = np.zeros_like(volts), 0.0
    charge = 0.0
    for n in range(volts.size):
        e = (volts[n] - charge) / (kp + ki)  # V = kp e + charge + ki e
        charge += ki * e
        wanted[n] = e + reading[n]
        error = max(error, abs(wanted[n] - wanted[n - 1])) if n % 2 else error
    assert error < 1e-9
    assert np.std(wanted) > 1e-3


def test_noise_of_the_current_is_deterministic_and_heats() -> None:
    one, two, other = (servo(SENSOR).simulate(rest(0.1), seed=s).truth.current for s in (1, 1, 2))
    quiet = servo(replace(SENSOR, noise=0.0)).simulate(rest(0.1)).truth.current
    np.testing.assert_array_equal(one, two)
    assert np.abs(one - other).max() > 1e-3
    assert np.std(one) > 5.0 * np.std(quiet)


def test_encoder_noise_stays_what_it_was_beside_current_noise() -> None:
    law = replace(LAW, current=None)  # nobody reads the current sensor: its noise is in the log only
    calm, loud = (servo(sensor, law).simulate(rest(0.1), seed=1) for sensor in (CurrentSensor(), SENSOR))
    np.testing.assert_array_equal(calm.truth.motion.q, loud.truth.motion.q)
    assert np.std(loud.log.effort) > 0.04


def test_a_cascade_in_a_work_space_reads_the_same_noise() -> None:
    plain, task = (servo(SENSOR, law).simulate(rest(0.1), seed=5) for law in (LAW, TaskCascade(CoordinateSpace(), LAW)))
    np.testing.assert_allclose(task.truth.current, plain.truth.current, atol=1e-9)
    assert np.std(plain.truth.current) > 1e-3
