"""Compiled control laws against loops written in NumPy; runs in pieces; runs that stop."""

from __future__ import annotations

import numpy as np
import pytest

import dynident as di
from dynident.control import PID, Cascade, ComputedTorque, CurrentLoop, OpenLoop
from dynident.drive import Drive, Encoder, Motor, Transmission
from dynident.friction import LuGre
from dynident.mechanics import actuator_jacobian, inverse_dynamics
from dynident.mechanics.batch import at_rest
from dynident.robots import dualv, five_bar
from dynident.simulate.controllers import tables, tick_steps
from dynident.simulate.plant import FINE, LOST_CLOSURE, UNSTABLE, build, no_inputs
from loop_cases import four_bar
from plant_cases import go, plain, slide, without_terms
from simulate_cases import arm


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
        30.0,
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
    assembly = build(robot, [drive], law, step=h, x=[0.0])
    record = go(assembly, 8000, law, motion)

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
            speed = np.clip(30.0 * (motion.q[row, 0] - seen) + 0.8 * motion.v[row, 0], -0.6, 0.6)
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
    c = assembly.columns
    ours = np.column_stack([record[:, s] for s in (c.x, c.v, c.current, c.voltage)])
    np.testing.assert_allclose(ours, np.array(rows), atol=1e-8)
    assert assembly.saturated[0] == cut > 0


def test_pid_with_its_own_model_as_feedforward_stays_on_the_reference() -> None:
    robot = arm()
    x = np.array([0.2, 0.3, -0.4])
    law = PID(1500.0, 20.0, 100.0, cycle=1e-3, feedforward=robot)
    motion = sine(robot, x, 1e-3, 1000)
    drives = [Drive(a.name, Motor(1.0), encoder=Encoder(velocity="exact")) for a in robot.actuators]
    assembly = build(robot, drives, law, step=2.5e-4, x=x)
    record = go(assembly, 4000, law, motion, every=4)
    assert np.abs(record[:, assembly.columns.x] - motion.q).max() < 2e-3
    bare = PID(1500.0, 20.0, cycle=1e-3)
    assembly = build(robot, drives, bare, step=2.5e-4, x=x)
    record = go(assembly, 4000, bare, motion, every=4)
    assert np.abs(record[:, assembly.columns.x] - motion.q).max() > 5e-3


@pytest.mark.parametrize("make", [arm, five_bar.mechanism, dualv.mechanism])
@pytest.mark.parametrize("on", ["measurement", "reference"])
def test_computed_torque_with_the_true_model(make: object, on: str) -> None:
    robot = without_terms(make())
    x = np.array([0.2, 0.3, -0.4]) if not robot.loops else robot.closure.home[robot.closure.independent].copy()
    law = ComputedTorque(robot, 2500.0, 70.0, cycle=1e-3, on=on)
    motion = sine(robot, x, 1e-3, 500, 0.02)
    drives = [Drive(a.name, Motor(1.0), encoder=Encoder(velocity="exact")) for a in robot.actuators]
    assembly = build(robot, drives, law, step=2.5e-4, x=x)
    record = go(assembly, 2000, law, motion, every=4)
    assert np.abs(record[:, assembly.columns.x] - motion.q).max() < 2e-4
    assert np.abs(record[:, assembly.columns.x] - motion.q).max() > 0.0


def test_redundant_motors_share_the_load_and_carry_the_preload() -> None:
    robot = without_terms(dualv.mechanism())
    x = robot.closure.home[robot.closure.independent].copy()
    motion = sine(robot, x, 1e-3, 200, 0.01)
    preload = np.array([1.0, -1.0, 1.0, -1.0])
    A = actuator_jacobian(robot, x)[0]
    internal = preload - A @ np.linalg.lstsq(A, preload, rcond=None)[0]
    for law in (
        ComputedTorque(robot, 2500.0, 70.0, cycle=1e-3, preload=preload),
        PID(800.0, 10.0, cycle=1e-3, project=True, preload=preload),
    ):
        assembly = build(robot, plain(robot), law, step=2.5e-4, x=x)
        record = go(assembly, 4, law, motion)
        tau = record[0, assembly.columns.motor]
        part = tau - A @ np.linalg.lstsq(A, tau, rcond=None)[0]
        np.testing.assert_allclose(part, internal, atol=1e-8)


# ---- going on, and stopping ------------------------------------------------------------------------------------------


def test_a_run_in_pieces_is_the_run_in_one_go() -> None:
    robot = arm()
    x = np.array([0.2, 0.3, -0.4])
    law = Cascade(20.0, 0.5, 5.0, position_cycle=2e-3, velocity_cycle=1e-3)
    friction = LuGre(1e4, 60.0, 1.0, 1.5, 0.05, fv=0.4)
    motion, ends = sine(robot, x, 1e-3, 500), []
    for pieces in ([2000], [1, 7, 500, 3, 1489]):
        drives = [Drive(a.name, Motor(0.1, inertia=1e-4), Transmission(100.0)) for a in robot.actuators]
        assembly = build(robot, drives, law, step=2.5e-4, x=x, friction={robot.coordinate_names[1]: friction})
        wanted = tables(robot, law, motion, tick_steps(assembly.controller))
        record = np.zeros((200, assembly.columns.width))
        for steps in pieces:
            assert assembly.run(steps, wanted, no_inputs(3), record, 10)[0] == FINE
        ends.append((assembly.plant.y.copy(), record.copy()))
    np.testing.assert_array_equal(ends[0][0], ends[1][0])
    np.testing.assert_array_equal(ends[0][1], ends[1][1])


def test_unstable_gains_stop_the_run_with_time_and_joint() -> None:
    robot = arm()
    x = np.array([0.2, 0.3, -0.4])
    law = PID(1e7, 0.0, cycle=1e-2)
    assembly = build(robot, plain(robot), law, step=1e-3, x=x + 0.01)
    wanted = tables(robot, law, at_rest(robot, x), tick_steps(assembly.controller))
    status, step, which = assembly.run(100_000, wanted, no_inputs(3), np.zeros((0, assembly.columns.width)))
    assert status == UNSTABLE
    assert 0 < step < 100_000
    assert 0 <= which < 3


def test_a_motion_into_a_singularity_is_reported() -> None:
    robot = without_terms(four_bar(lengths=(0.5, 0.6, 0.5, 0.9)))  # the crank cannot turn fully
    law = OpenLoop(torque=[5.0])
    assembly = build(robot, plain(robot), law, step=1e-3, x=robot.closure.home[robot.closure.independent])
    wanted = tables(robot, law, at_rest(robot, robot.closure.home[robot.closure.independent]), 1, command=np.array([[5.0]]))
    status, step, _ = assembly.run(20_000, wanted, no_inputs(1), np.zeros((0, assembly.columns.width)))
    assert status == LOST_CLOSURE
    assert step > 10


def test_python_controllers_measure_and_hold() -> None:
    robot = arm()
    x = np.array([0.2, 0.3, -0.4])

    class Gravity:
        cycle = 1e-3
        command = "torque"

    law = Gravity()
    assembly = build(robot, plain(robot, current_limit=40.0), law, step=5e-4, x=x)
    wanted = tables(robot, law, at_rest(robot, x), tick_steps(assembly.controller))
    for _ in range(100):
        rho, rho_v, q, v, current = assembly.measure(wanted)
        assert rho.shape == rho_v.shape == q.shape == v.shape == current.shape == (3,)
        cut = assembly.hold("torque", inverse_dynamics(robot, at_rest(robot, q))[0])
        assert not cut.any()
        assert assembly.run(2, wanted, no_inputs(3), np.zeros((0, assembly.columns.width)))[0] == FINE
    np.testing.assert_allclose(assembly.plant.y[:3], x, atol=1e-9)
    assert assembly.hold("current", [50.0, 0.0, -50.0]).tolist() == [True, False, True]
    assert assembly.plant.drive[:, 10].tolist() == [40.0, 0.0, -40.0]
