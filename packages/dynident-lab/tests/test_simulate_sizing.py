"""Motor sizing against a slide whose torque, current and heat are known in closed form."""

from __future__ import annotations

import numpy as np
import pytest

from dynident.control import PID
from dynident.drive import Drive, Motor, Transmission
from dynident.errors import DynidentError
from dynident.friction import Coulomb, Viscous
from dynident.mechanics import Motion
from dynident.mechanism import Body, Joint, Mechanism
from dynident.simulate import VirtualRobot
from dynident_lab.servo import size_motors, torque_split

MASS, AMPLITUDE, W, RATIO = 4.0, 0.1, 6.0, 50.0


def slide(friction: bool = False, **limits: float) -> VirtualRobot:
    body = Body("carriage", np.array([MASS, *[0.0] * 9]))
    joint = Joint("x", "prismatic", "base", "carriage", axis=np.array([1.0, 0.0, 0.0]))
    robot = Mechanism("slide", (Body("base"), body), (joint,), terms=(), gravity=np.zeros(3))
    law = (Coulomb() + Viscous()).using(fc=0.02, fv=1e-3) if friction else None
    motor = Motor(0.05, resistance=2.0, inertia=1e-4, **limits)
    return VirtualRobot(robot, [Drive("x", motor, Transmission(RATIO), law)], PID(1.0, 1.0, cycle=1e-3), step=1e-3)


def swing(periods: int = 2) -> Motion:
    t = np.linspace(0.0, periods * 2.0 * np.pi / W, 4001)
    s, c = np.sin(W * t)[:, None], np.cos(W * t)[:, None]
    return Motion(t, AMPLITUDE * s, AMPLITUDE * W * c, -AMPLITUDE * W**2 * s)


def test_torque_current_and_heat_of_a_sine() -> None:
    (load,) = size_motors(swing(), slide()).motors
    inertia = 1e-4 + MASS / RATIO**2
    peak = inertia * RATIO * AMPLITUDE * W**2
    assert load.peak_torque == pytest.approx(peak, rel=1e-6)
    assert load.rms_torque == pytest.approx(peak / np.sqrt(2.0), rel=1e-6)
    assert load.peak_speed == pytest.approx(RATIO * AMPLITUDE * W, rel=1e-6)
    assert load.rms_current == pytest.approx(peak / 0.05 / np.sqrt(2.0), rel=1e-6)
    assert load.copper_loss == pytest.approx(2.0 * (peak / 0.05) ** 2 / 2.0, rel=1e-6)
    assert load.peak_power == pytest.approx(peak * RATIO * AMPLITUDE * W / 2.0, rel=1e-5)
    assert load.mean_power == pytest.approx(0.0, abs=1e-9)
    assert load.inertia_ratio == pytest.approx(MASS / RATIO**2 / 1e-4, rel=1e-9)
    # V = R i + K_E omega: in quadrature
    assert load.peak_voltage == pytest.approx(np.hypot(2.0 * peak / 0.05, 0.05 * RATIO * AMPLITUDE * W), rel=1e-5)


def test_friction_costs_power() -> None:
    (load,) = size_motors(swing(), slide(friction=True)).motors
    top = RATIO * AMPLITUDE * W
    assert load.mean_power == pytest.approx(0.02 * top * 2.0 / np.pi + 1e-3 * top**2 / 2.0, rel=1e-4)


def test_limits_and_ratings_are_judged_in_words() -> None:
    inertia = 1e-4 + MASS / RATIO**2
    current = inertia * RATIO * AMPLITUDE * W**2 / 0.05
    wide = size_motors(swing(), slide(current_limit=2.0 * current), continuous_current=current)
    assert wide.ok
    assert wide.motors[0].use["current"] == pytest.approx(0.5, rel=1e-5)
    assert wide.motors[0].use["heat"] == pytest.approx(0.5, rel=1e-5)
    assert wide.motors[0].margin == pytest.approx(0.5, rel=1e-5)
    assert "times the drive inertia" in wide.sentences()[0]
    narrow = size_motors(swing(), slide(current_limit=0.5 * current, speed_limit=20.0), continuous_current={"x": 0.5 * current})
    assert not narrow.ok
    text = " ".join(narrow.sentences())
    assert "current is at 200 %" in text
    assert "overheat" in text
    assert "speed is at 150 %" in text
    data = narrow.to_dict()
    assert data["ok"] is False
    assert data["motors"][0]["margin"] == pytest.approx(-1.0, rel=1e-5)
    assert narrow.table().count("\n") == 1


def test_bad_input_is_one_sentence() -> None:
    for call in (
        lambda: size_motors(swing()),
        lambda: size_motors("motion", slide()),  # type: ignore[arg-type]
        lambda: size_motors(swing()[:2], slide()),
        lambda: size_motors(swing(), slide(), continuous_current=-1.0),
        lambda: size_motors(swing(), slide(), continuous_current=[1.0, 2.0]),
        lambda: size_motors(swing(), slide(), continuous_current={"y": 1.0}),
    ):
        with pytest.raises(DynidentError) as error:
            call()
        assert "\n" not in str(error.value)


def test_a_run_asks_what_inverse_dynamics_says() -> None:
    robot = slide(friction=True)
    robot = VirtualRobot(robot.mechanism, robot.drives, PID(4e4, 1.2e3, cycle=1e-3), step=5e-4)
    motion = swing(1)
    (asked,), (given,) = size_motors(motion, robot).motors, size_motors(robot.simulate(motion)).motors
    assert given.rms_torque == pytest.approx(asked.rms_torque, rel=0.03)
    assert given.peak_speed == pytest.approx(asked.peak_speed, rel=0.02)
    assert given.copper_loss == pytest.approx(asked.copper_loss, rel=0.06)


def test_figures_of_a_run() -> None:
    pytest.importorskip("matplotlib")
    robot = slide(friction=True)
    run = VirtualRobot(robot.mechanism, robot.drives, PID(4e4, 1.2e3, cycle=1e-3), step=5e-4).simulate(swing(1))
    assert len(run.plot().axes) == 2
    assert len(torque_split(run).plot().axes) == 2
    for call in (lambda: run.plot(["y"]), lambda: torque_split(run).plot(["y"])):
        with pytest.raises(DynidentError, match="cannot draw"):
            call()


def test_the_peak_power_of_a_motor_that_brakes_counts() -> None:
    t = np.linspace(0.0, 1.0, 2001)[:, None]
    braking = Motion(t[:, 0], t - t**2 / 2.0, 1.0 - t, -np.ones_like(t))  # from full speed to rest
    (load,) = size_motors(braking, slide()).motors
    assert load.peak_power == pytest.approx((1e-4 + MASS / RATIO**2) * RATIO**2, rel=1e-6)
    assert load.mean_power == pytest.approx(-load.peak_power / 2.0, rel=1e-6)
