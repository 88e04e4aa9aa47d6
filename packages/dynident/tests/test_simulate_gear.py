"""Efficiency of gears: it acts on the power through the gear, in both directions, with the rotor in front of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from plant_cases import slide
from scipy.integrate import solve_ivp
from simulate_cases import arm, excitation, geared_arm

import dynident as di
from dynident.control import Cascade, OpenLoop
from dynident.control.feedforward import motor_torques
from dynident.drive import Drive, Encoder, Motor, Transmission
from dynident.friction import Viscous
from dynident.mechanics import inverse_dynamics
from dynident.simulate import VirtualRobot

RATIO, ETA, J, MASS, KT = 20.0, 0.7, 2e-3, 3.0, 0.2


def rest(seconds: float) -> di.Motion:
    return di.Motion([0.0, seconds], *(np.zeros((2, 1)) for _ in range(3)))


def run_slide(current: float, push: float, speed: float, seconds: float = 0.05, **options: Any) -> Any:
    """Return a run of a slide whose motor has a constant current, with a constant force on it."""
    gear = Transmission(RATIO, efficiency=options.pop("eta", ETA), **options.pop("gear", {}))
    drive = Drive("s", Motor(KT, inertia=options.pop("inertia", J)), gear, options.pop("friction", None))
    robot = VirtualRobot(slide(MASS), [drive], OpenLoop(current=[current]), step=options.pop("step", 1e-4))
    start = {"q": [0.0], "velocity": [speed]}
    return robot.simulate(rest(seconds), start=start, disturbance=[push], log_cycle=5e-4, **options)


def oracle(current: float, push: float, speed: float) -> float:
    """Return the acceleration: M a = ratio e (K_t i - J ratio a) + push, e by the direction of the power through the gear."""
    found = []
    for e in (ETA, 1.0 / ETA):
        a = (RATIO * e * KT * current + push) / (MASS + e * RATIO**2 * J)
        through = KT * current - J * RATIO * a
        if (through * speed > 0.0) == (e < 1.0):
            found.append(a)
    assert len(found) == 1  # the direction does not depend on what the gear leaves
    return found[0]


CASES = {
    "the motor lifts": (5.0, -10.0, 1.0),
    "the load drives the motor": (1.0, -60.0, -1.0),
    "the motor brakes": (-4.0, 30.0, 1.0),
    "only the rotor is driven": (0.0, 50.0, 1.0),
    "only the rotor drives": (0.0, -50.0, 1.0),
    "the rotor's inertia turns the power around": (1.0, 60.0, 1.0),
    "backwards": (-5.0, 10.0, -1.0),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("method", ["coupled", "decoupled"])
def test_accelerations_are_those_of_the_power_through_the_gear(case: str, method: str) -> None:
    current, push, speed = CASES[case]
    run, a = run_slide(current, push, 10.0 * speed, method=method), oracle(current, push, speed)
    t = run.truth.t
    np.testing.assert_allclose(run.truth.motion.v[:, 0], 10.0 * speed + a * t, rtol=1e-12)
    np.testing.assert_allclose(run.truth.motion.a[:, 0], a, rtol=1e-9)
    through = KT * current - J * RATIO * a
    e = ETA if through * speed > 0.0 else 1.0 / ETA
    np.testing.assert_allclose(run.truth.gear_loss[:, 0], RATIO * through * (1.0 - e), rtol=1e-9)
    assert (run.truth.gear_loss[:, 0] * speed > 0.0).all()


@pytest.mark.parametrize("stiffness", [(), (500.0,)])
@pytest.mark.parametrize(("speed", "share"), [(0.5, 1.0 / ETA), (-0.5, ETA)])
def test_steady_states_are_exact_both_ways(stiffness: tuple[float, ...], speed: float, share: float) -> None:
    """A weight is lifted and lowered at constant speed: tau = W / (ratio eta) up, W eta / ratio down."""
    weight = 80.0
    gear = Transmission(RATIO, ETA, (1e-4,) if stiffness else (), stiffness, (0.5,) if stiffness else ())
    drive = Drive("s", Motor(KT, inertia=1e-4), gear, encoder=Encoder(velocity="exact"))
    law = Cascade(8.0, 0.5, 20.0, position_cycle=1e-3, velocity_cycle=1e-3, velocity_feedforward=1.0)
    t = np.linspace(0.0, 4.0, 2001)
    line = di.Motion(t, speed * t[:, None], np.full((2001, 1), speed), np.zeros((2001, 1)))
    run = VirtualRobot(slide(1.0), [drive], law, step=1.25e-4).simulate(line, disturbance=[-weight])
    np.testing.assert_allclose(run.truth.motion.v[-100:, 0], speed, rtol=1e-7)
    np.testing.assert_allclose(run.truth.motor_torque[-100:, 0], share * weight / RATIO, rtol=1e-6)
    np.testing.assert_allclose(run.truth.gear_loss[-1, 0], (share - 1.0) * weight, rtol=1e-5)
    np.testing.assert_allclose(run.truth.torques[-1, 0], weight, rtol=1e-5)  # behind the gear


def test_a_gear_at_rest_holds_what_lies_between() -> None:
    """Motor torques between W eta and W / eta move nothing: the gear creeps at most with the speed of one step's loss."""
    for torque in (0.75, 1.0, 1.35):
        run = run_slide(torque * 80.0 / RATIO / KT, -80.0, 0.0, 0.5)
        assert np.abs(run.truth.motion.v).max() < 80.0 * 1e-4 / MASS
    assert run_slide(0.65 * 80.0 / RATIO / KT, -80.0, 0.0, 0.5).truth.motion.q[-1, 0] < -1e-2
    assert run_slide(1.5 * 80.0 / RATIO / KT, -80.0, 0.0, 0.5).truth.motion.q[-1, 0] > 1e-2


def test_a_changing_load_against_scipy_and_the_size_of_the_approximation() -> None:
    """Losses are exact at every evaluation; only a step in which the direction of power turns costs the order of the method."""
    fv, amp = 1e-4, 60.0

    def triangle(t: float) -> float:  # corners at samples of the log, between which a disturbance is linear
        return amp * (1.0 - 4.0 * abs((t / 0.2) % 1.0 - 0.5))

    def rate(t: float, y: np.ndarray) -> np.ndarray:
        load, t0 = triangle(t), KT * 1.0 - fv * RATIO * y[1]
        for e in (ETA, 1.0 / ETA):
            a = (RATIO * e * t0 + load) / (MASS + e * RATIO**2 * J)
            if ((t0 - J * RATIO * a) * y[1] > 0.0) == (e < 1.0):
                break
        return np.array([y[1], a])

    truth = solve_ivp(rate, (0.0, 0.5), [0.0, 20.0], rtol=1e-12, atol=1e-13, max_step=5e-4).y[0, -1]
    drive = Drive("s", Motor(KT, inertia=J), Transmission(RATIO, ETA), Viscous().using(fv=fv))
    robot = VirtualRobot(slide(MASS), [drive], OpenLoop(current=[1.0]), step=1e-3)
    errors = []
    for step in (1e-3, 2.5e-4):
        run = replace(robot, step=step).simulate(
            rest(0.5), start={"q": [0.0], "velocity": [20.0]}, disturbance=lambda t: [triangle(t)], log_cycle=5e-3
        )
        errors.append(abs(run.truth.motion.q[-1, 0] - truth))
        t = run.truth
        through = RATIO * (t.motor_torque - t.friction) - RATIO**2 * J * t.motion.a
        np.testing.assert_allclose(np.unique((t.gear_loss / through).round(9)), [1.0 - 1.0 / ETA, 1.0 - ETA], atol=1e-8)
    assert errors[0] < 1e-7 * abs(truth)
    assert errors[1] < 0.3 * errors[0]


def test_the_simulation_inverts_the_feedforward_of_the_drives() -> None:
    """What `motor_torques` asks for the motion of a run is what the motors gave: rotor and first inertia before the gear."""
    gear = Transmission(100.0, 0.8, (1e-4, 2e-4))
    friction = Viscous().using(fv=2e-4)
    drives = [Drive(a.name, Motor(0.15, inertia=1e-4), gear, friction) for a in arm().actuators]
    run = geared_arm(drives=drives).simulate(excitation(3, 2.0))
    t, m = run.truth, run.truth.motion
    asked = motor_torques(drives, m, inverse_dynamics(arm(), m))
    quick = np.abs(m.v) > 1e-2
    np.testing.assert_allclose(asked[quick], t.motor_torque[quick], atol=1e-9 * np.abs(t.motor_torque).max())
    assert quick.mean() > 0.8


def test_energy_goes_into_motion_and_losses() -> None:
    """Work of a push and of the motor is kinetic energy, friction and loss of the gear, while the power goes both ways."""
    drive = Drive("s", Motor(KT, inertia=J), Transmission(RATIO, ETA), Viscous().using(fv=1e-3))
    robot = VirtualRobot(slide(MASS), [drive], OpenLoop(current=[1.0]), step=1e-4)
    push = lambda t: [60.0 * np.sin(25.0 * t)]  # noqa: E731
    run = robot.simulate(rest(1.0), start={"q": [0.0], "velocity": [3.0]}, disturbance=push, log_cycle=1e-4)
    t = run.truth
    given = run.energy["mechanical"][0] + np.trapezoid(t.external[:, 0] * t.rho_v[:, 0], t.t)
    lost = run.energy["friction"][0] + run.energy["gear"][0]
    stored = t.energy.sum(axis=1)
    kinetic = 0.5 * (MASS + RATIO**2 * J) * t.rho_v[:, 0] ** 2
    np.testing.assert_allclose(stored, kinetic, rtol=1e-12)
    assert given - lost == pytest.approx(stored[-1] - stored[0], abs=1e-5 * np.abs(stored).max())
    assert run.energy["gear"][0] > 1.0
