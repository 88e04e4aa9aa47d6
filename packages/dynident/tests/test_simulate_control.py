"""Compiled control laws against loops written in NumPy; runs in pieces; runs that stop."""

from __future__ import annotations

import numpy as np
import pytest
from loop_cases import four_bar
from plant_cases import bare_motors, go, home, machine, plain, slide, without_terms
from simulate_cases import arm, cascade, geared_drives
from small_robots import five_bar, platform

import dynident as di
from dynident.control import PID, Cascade, ComputedTorque, CurrentLoop, OpenLoop
from dynident.drive import CurrentSensor, Drive, Encoder, Motor, Transmission
from dynident.errors import SimulationError, SimulationWarning
from dynident.friction import Coulomb, LuGre
from dynident.mechanics import actuator_jacobian, inverse_dynamics
from dynident.mechanics.functions import at_rest
from dynident.simulate import Run, Sensors, VirtualRobot
from dynident.simulate.closed_loop import _with_gain
from dynident.simulate.run import machine_of


def sine(robot: di.Mechanism, x: np.ndarray, period: float, count: int, size: float = 0.1, hertz: float = 1.0) -> di.Motion:
    """Return a motion that starts at rest at x."""
    t = np.arange(count) * period
    w = 2.0 * np.pi * hertz
    one = np.ones(robot.dof)
    q = x + size * (1.0 - np.cos(w * t))[:, None] * one
    return di.Motion(t, q, size * w * np.sin(w * t)[:, None] * one, size * w * w * np.cos(w * t)[:, None] * one)


def test_a_cascade_is_the_loop_written_in_numpy() -> None:
    ratio, mass, Kt, R, L = 80.0, 4.0, 0.1, 0.6, 1e-3
    motor = Motor(Kt, R, L, inertia=1e-4, current_limit=3.0, voltage_limit=9.0)
    resolution = 2.0 * np.pi / 2000.0
    drive = Drive("s", motor, Transmission(ratio), encoder=Encoder(resolution, filter=200.0))
    law = Cascade(
        15.0,
        0.05,
        1.5,
        position_cycle=2e-3,
        velocity_cycle=5e-4,
        current=CurrentLoop(2.0, 400.0, 1.25e-4),
        velocity_feedforward=0.8,
        position_filter=150.0,
        velocity_filter=300.0,
        speed_limit=0.6,
    )
    robot, h = slide(mass), 1.25e-4
    motion = sine(robot, np.zeros(1), 5e-4, 2000, 0.15)
    with pytest.warns(SimulationWarning, match="at its voltage limit"):
        run = go(machine(robot, [drive], law, h), 8000, motion=motion)

    J = mass + ratio**2 * 1e-4
    y = np.zeros(3)  # position, speed, current
    share = lambda f, T: -np.expm1(-2.0 * np.pi * f * T)  # noqa: E731
    seen = estimate = wish = integral = asked = electric = volts = 0.0
    rows, cut = [], 0

    def rate(y: np.ndarray) -> np.ndarray:
        return np.array([y[1], ratio * Kt * y[2] / J, (volts - R * y[2] - Kt * ratio * y[1]) / L])

    for step in range(8000):
        row = step // 4
        if step % 4 == 0:
            old, seen = seen, resolution * np.floor(y[0] * ratio / resolution + 0.5) / ratio
            estimate = estimate + share(200.0, 5e-4) * ((seen - old) / 5e-4 - estimate) if step else 0.0
        if step % 16 == 0:
            speed = np.clip(15.0 * (motion.q[row, 0] - seen) + 0.8 * motion.v[row, 0], -0.6, 0.6)
            wish += (share(150.0, 2e-3) if step else 1.0) * (speed - wish)
        if step % 4 == 0:
            error = ratio * (wish - estimate)
            new = integral + 1.5 * error * 5e-4
            s = share(300.0, 5e-4) if step else 1.0
            smooth = asked + s * (0.05 * error + new - asked)
            limited = np.clip(smooth, -3.0, 3.0)
            flag = limited != smooth
            if flag and (smooth - limited) * error > 0.0:
                new = integral
                limited = np.clip(asked + s * (0.05 * error + new - asked), -3.0, 3.0)
            integral, asked = new, limited
        error = asked - y[2]
        new = electric + 400.0 * error * h
        volts = np.clip(2.0 * error + new, -9.0, 9.0)
        if volts != 2.0 * error + new:
            flag = True
            if (2.0 * error + new - volts) * error > 0.0:
                new = electric
                volts = np.clip(2.0 * error + new, -9.0, 9.0)
        electric = new
        cut += bool(flag)
        rows.append([*y, volts])
        k1 = rate(y)
        k2 = rate(y + 0.5 * h * k1)
        k3 = rate(y + 0.5 * h * k2)
        k4 = rate(y + h * k3)
        y = y + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
    t = run.truth
    ours = np.column_stack([t.motion.q, t.motion.v, t.current, t.voltage])
    np.testing.assert_allclose(ours, np.array(rows), atol=1e-8)
    assert round(run.saturation["s"] * 8000) == cut > 0


def test_pid_with_its_own_model_as_feedforward_stays_on_the_reference() -> None:
    robot = arm()
    x = np.array([0.2, 0.3, -0.4])
    law = PID(1500.0, 20.0, 100.0, cycle=1e-3, feedforward=robot)
    motion = sine(robot, x, 1e-3, 1000)
    drives = [Drive(a.name, Motor(1.0), encoder=Encoder(velocity="exact")) for a in robot.actuators]
    run = go(machine(robot, drives, law, 2.5e-4), 1000, x, motion=motion, every=4)
    assert np.abs(run.truth.motion.q - motion.q).max() < 2e-3
    run = go(machine(robot, drives, PID(1500.0, 20.0, cycle=1e-3), 2.5e-4), 1000, x, motion=motion, every=4)
    assert np.abs(run.truth.motion.q - motion.q).max() > 5e-3


@pytest.mark.parametrize("make", [arm, five_bar, platform])
@pytest.mark.parametrize("on", ["measurement", "reference"])
def test_computed_torque_with_the_true_model(make: object, on: str) -> None:
    robot = bare_motors(without_terms(make()))
    x = np.array([0.2, 0.3, -0.4]) if not robot.loops else home(robot)
    law = ComputedTorque(robot, 2500.0, 70.0, cycle=1e-3, on=on)
    motion = sine(robot, x, 1e-3, 500, 0.02)
    drives = [Drive(a.name, Motor(1.0), encoder=Encoder(velocity="exact")) for a in robot.actuators]
    error = np.abs(go(machine(robot, drives, law, 2.5e-4), 500, x, motion=motion, every=4).truth.motion.q - motion.q).max()
    assert 0.0 < error < 2e-4


def test_redundant_motors_share_the_load_and_carry_the_preload() -> None:
    robot = without_terms(platform())
    x = home(robot)
    motion = sine(robot, x, 1e-3, 200, 0.01)
    preload = np.array([1.0, -1.0, 1.0, -1.0])
    A = actuator_jacobian(robot, x)[0]
    internal = preload - A @ np.linalg.lstsq(A, preload, rcond=None)[0]
    for law in (
        ComputedTorque(robot, 2500.0, 70.0, cycle=1e-3, preload=preload),
        PID(800.0, 10.0, cycle=1e-3, project=True, preload=preload),
    ):
        tau = go(machine(robot, law=law, step=2.5e-4), 4, x, motion=motion).truth.motor_torque[0]
        part = tau - A @ np.linalg.lstsq(A, tau, rcond=None)[0]
        np.testing.assert_allclose(part, internal, atol=1e-8)


# ---- going on, and stopping ------------------------------------------------------------------------------------------


def same(one: Run, *pieces: Run) -> None:
    """Assert that runs that went on from each other are one run."""
    for name, whole in one.truth.arrays().items():
        parts = [run.truth.arrays()[name] for run in pieces]
        joined = np.concatenate([*(part[:-1] for part in parts[:-1]), parts[-1]])
        np.testing.assert_allclose(joined, whole, rtol=1e-12, atol=1e-12 * max(1.0, np.abs(whole).max()), err_msg=name)
    for name, values in one.end.state.items():
        if name != "cut":  # counted anew in every run
            np.testing.assert_allclose(pieces[-1].end.state[name], values, rtol=1e-12, atol=1e-12, err_msg=name)


def in_pieces(robot: VirtualRobot, motion: object, whole: float, *pieces: float, **options: object) -> tuple[Run, ...]:
    """Return one run, and runs of its pieces."""
    one = robot.simulate(motion, duration=whole, **options)
    found, start = [], options.pop("start", None)
    for piece in pieces:
        found.append(robot.simulate(motion, duration=piece, start=start, **options))
        start = found[-1].end
    return one, *found


def test_a_run_in_pieces_is_the_run_in_one_go() -> None:
    robot = arm()
    x = np.array([0.2, 0.3, -0.4])
    law = Cascade(20.0, 0.5, 5.0, position_cycle=2e-3, velocity_cycle=1e-3, delay=5e-4, position_delay=1e-3)
    friction = {"joint_1": Coulomb().using(fc=2.0), "joint_2": LuGre(1e4, 60.0, 1.0, 1.5, 0.05, fv=0.4)}
    noisy = {"encoder": Encoder(1e-4, noise=1e-4), "current_sensor": CurrentSensor(noise=0.01)}
    drives = [Drive(a.name, Motor(0.1, inertia=1e-4), Transmission(100.0, 0.8), **noisy) for a in robot.actuators]
    virtual = machine(robot, drives, law, 2.5e-4, friction=friction, sensors=Sensors(position_noise=1e-5, effort_noise=1e-2))
    one, *pieces = in_pieces(virtual, sine(robot, x, 1e-3, 1001), 1.0, 0.3, 0.1, 0.6, seed=3)
    same(one, *pieces)
    logs = [run.log for run in pieces]
    for name in ("t", "position", "effort"):
        joined = np.concatenate([*(getattr(log, name)[:-1] for log in logs[:-1]), getattr(logs[-1], name)])
        np.testing.assert_allclose(joined, getattr(one.log, name), rtol=1e-12, atol=1e-12, err_msg=name)
    with pytest.raises(SimulationError, match="end of a run of another machine"):
        machine(robot, drives, OpenLoop(torque=np.zeros(3)), 2.5e-4).simulate(sine(robot, x, 1e-3, 1001), start=pieces[0].end)


def test_loops_and_current_loops_go_on_from_an_end() -> None:
    robot = bare_motors(five_bar())
    x = home(robot)
    current = CurrentLoop(2.0, 400.0, 1.25e-4)
    law = Cascade(30.0, 0.05, 1.5, position_cycle=2e-3, velocity_cycle=5e-4, current=current)
    meter = CurrentSensor(noise=0.02)
    drives = [
        Drive(a.name, Motor(0.1, 0.6, 1e-3, inertia=1e-4), Transmission(80.0), current_sensor=meter) for a in robot.actuators
    ]
    virtual = machine(robot, drives, law, 1.25e-4)
    same(*in_pieces(virtual, sine(robot, x, 1e-3, 301, 0.02), 0.3, 0.11, 0.19))
    computed = machine(robot, plain(robot), ComputedTorque(robot, 2500.0, 70.0, 100.0, cycle=1e-3), 2.5e-4)
    same(*in_pieces(computed, sine(robot, x, 1e-3, 301, 0.02), 0.3, 0.11, 0.19))


def test_unstable_gains_stop_the_run_with_time_and_joint() -> None:
    robot = arm()
    x = np.array([0.2, 0.3, -0.4])
    with pytest.raises(SimulationError, match=r"instability: joint 'joint_\d' passed 1e\+06 rad/s at t = "):
        go(machine(robot, law=PID(1e7, 0.0, cycle=1e-2)), 100_000, x + 0.01, motion=sine(robot, x, 1e-2, 100, 0.0))


def test_a_motion_into_a_singularity_is_reported() -> None:
    robot = without_terms(four_bar(lengths=(0.5, 0.6, 0.5, 0.9)))  # the crank cannot turn fully
    with pytest.raises(SimulationError, match="its loops cannot be closed at t = "):
        go(machine(robot, law=OpenLoop(torque=[5.0])), 20_000, home(robot))


class Gravity:
    """A controller in Python that holds the weight of the links."""

    cycle, command = 1e-3, "torque"

    def reset(self, robot: VirtualRobot, start: object) -> None:
        self.robot, self.calls = robot.mechanism, 0

    def update(self, t: float, reference: object, measurement: object) -> np.ndarray:
        shapes = {getattr(measurement, name).shape for name in ("rho", "rho_v", "x", "v", "current")}
        assert shapes == {(3,)}
        self.calls += 1
        return inverse_dynamics(self.robot, at_rest(self.robot, measurement.x))[0]


def test_python_controllers_measure_and_hold() -> None:
    robot = arm()
    x = np.array([0.2, 0.3, -0.4])
    law = Gravity()
    virtual = machine(robot, plain(robot, current_limit=40.0), law, 5e-4)
    run = go(virtual, 201, x)
    assert law.calls == 101
    np.testing.assert_allclose(run.truth.motion.q[-1], x, atol=1e-9)
    assert max(run.saturation.values()) == 0.0
    weak = machine(robot, plain(robot, current_limit=5.0), Gravity(), 5e-4)
    with pytest.warns(SimulationWarning, match="at its current limit"):
        cut = go(weak, 201, x)
    assert np.abs(cut.truth.current).max() == 5.0
    low = machine(robot, plain(robot, voltage_limit=6.0, resistance=1.5), Gravity(), 5e-4)
    with pytest.warns(SimulationWarning, match="at its voltage limit"):
        cut = go(low, 201, x)
    assert np.abs(cut.truth.current[0]).max() == 4.0  # 6 V at 1.5 ohm, at rest
    standing = machine_of(low, x)
    assert standing.hold("current", [20.0, 3.0, -20.0]).tolist() == [True, False, True]
    np.testing.assert_allclose(standing.of(standing.layout.state.sent), [4.0, 3.0, -4.0], rtol=1e-12)
    same(*in_pieces(virtual, di.Motion([0.0], x[None], 0 * x[None], 0 * x[None]), 0.1, 0.05, 0.05, log_cycle=5e-4))


def test_a_drive_with_another_gain_gives_more_torque_than_its_controller_assumes() -> None:
    drives = list(geared_drives(arm()))
    changed, law = _with_gain(drives, cascade(), 1, 1.25)
    constants = np.array([[d.motor.torque_constant for d in each] for each in (drives, changed)])
    np.testing.assert_allclose(constants[1] / constants[0], [1.0, 1.25, 1.0])
    assert law == cascade()
