"""Dead time of controllers: exact recursions, z^-d and e^{-s d} of linear models, python-control, a second implementation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from plant_cases import slide

import dynident as di
from dynident.control import PID, Cascade, ComputedTorque, CoordinateSpace, CurrentLoop, TaskCascade, TaskPID
from dynident.drive import Drive, Encoder, Motor, Transmission
from dynident.errors import DynidentError, SimulationError
from dynident.simulate import VirtualRobot

H = 1.25e-4
MOTOR = Motor(0.1, 0.6, 1e-3, inertia=1e-4)
DRIVE = Drive("s", MOTOR, Transmission(80.0), encoder=Encoder(filter=400.0))
LOOPS = Cascade(
    25.0, 0.08, 2.0, position_cycle=2e-3, velocity_cycle=5e-4, current=CurrentLoop(0.8, 200.0, 2.5e-4), position_filter=60.0
)
IDEAL = replace(LOOPS, current=None)


def wave(seconds: float, cycle: float, size: float = 0.02) -> di.Motion:
    """Return a sine of 2 Hz that starts at rest."""
    t = np.arange(round(seconds / cycle) + 1) * cycle
    w = 4.0 * np.pi
    parts = (size * (1.0 - np.cos(w * t)), size * w * np.sin(w * t), size * w * w * np.cos(w * t))
    return di.Motion(t, *(part[:, None] for part in parts))


@pytest.mark.parametrize("steps", [0, 1, 8, 20])
def test_a_delayed_p_loop_on_an_integrator_is_its_recursion(steps: int) -> None:
    """m v' = g (v_ref - v) with a cycle of 8 steps: v is linear between changes of the force, so the recursion is exact."""
    m, g, cycle, h = 2.0, 25.0, 8, 1e-3
    law = PID(0.0, g, cycle=cycle * h, delay=steps * h)
    robot = VirtualRobot(slide(m), [Drive("s", Motor(1.0), encoder=Encoder(velocity="exact"))], law, step=h)
    t = np.arange(61) * cycle * h
    line = di.Motion(t, 0.4 * t[:, None], np.full((61, 1), 0.4), np.zeros((61, 1)))
    run = robot.simulate(line, start={"q": [0.0], "velocity": [0.0]}, log_cycle=h)
    v, sent, speeds = 0.0, {}, []
    for i in range(run.truth.t.size):
        speeds.append(v)
        if i % cycle == 0:
            sent[i] = g * (0.4 - v)
        v += h * sent.get((i - steps) // cycle * cycle, 0.0) / m
    np.testing.assert_allclose(run.truth.motion.v[:, 0], speeds, atol=1e-12)
    assert (run.truth.current[:steps, 0] == 0.0).all()
    assert max(speeds) > 0.39


@pytest.mark.parametrize("loops", [LOOPS, IDEAL])
def test_a_delayed_cascade_in_the_coordinates_is_the_plain_one(loops: Cascade) -> None:
    """The cascade in a work space that is the coordinates themselves."""
    law, drive = replace(loops, delay=4 * H, position_delay=2e-3), replace(DRIVE, encoder=Encoder(velocity="exact"))
    runs = [
        VirtualRobot(slide(4.0), [drive], controller, step=H).simulate(wave(0.2, 2e-3))
        for controller in (law, TaskCascade(CoordinateSpace(), law))
    ]
    np.testing.assert_allclose(runs[1].truth.motion.q, runs[0].truth.motion.q, atol=1e-10)
    assert np.abs(runs[0].truth.motion.q).max() > 0.01


def test_laws_with_a_model_and_in_work_space_are_late_too() -> None:
    robot = slide(4.0)
    believed = VirtualRobot(robot, [DRIVE], IDEAL, step=H).model
    for law in (ComputedTorque(believed, 900.0, 60.0, cycle=1e-3), TaskPID(CoordinateSpace(), 900.0, 60.0, cycle=1e-3)):
        if isinstance(law, ComputedTorque):
            late: object = replace(law, delay=3e-3)
        else:
            late = TaskPID(CoordinateSpace(), 900.0, 60.0, cycle=1e-3, delay=3e-3)
        prompt, slow = (VirtualRobot(robot, [DRIVE], x, step=H).simulate(wave(0.1, 1e-3)) for x in (law, late))  # type: ignore[arg-type]
        assert (slow.truth.current[:3] == 0.0).all()
        np.testing.assert_allclose(slow.truth.current[3], prompt.truth.current[0], rtol=1e-9)


def test_a_delay_that_does_not_fit_is_one_sentence() -> None:
    cases = [
        (lambda: replace(IDEAL, delay=-1.0), "cascade: delay is -1; give a number"),
        (lambda: replace(IDEAL, delay=[1e-3, 2e-3]), "cascade: delay is .* give a number"),
        (lambda: replace(IDEAL, position_delay=3e-4), "velocity_cycle = 0.0005 s is longer than position_delay"),
        (lambda: replace(IDEAL, position_delay=7e-4), "position_delay = 0.0007 s is 1.4 times velocity_cycle"),
        (lambda: PID(1.0, 1.0, cycle=1e-3, delay=float("nan")), "PID: delay is nan; give a number"),
        (lambda: ComputedTorque(slide(1.0), 1.0, 1.0, cycle=1e-3, delay="late"), "computed torque: delay"),
        (lambda: TaskPID(CoordinateSpace(), 1.0, 1.0, cycle=1e-3, delay=-1e-3), "task PID: delay is -0.001"),
    ]
    for make, text in cases:
        with pytest.raises(DynidentError, match=text) as error:
            make()
        assert "\n" not in str(error.value)
    with pytest.raises(SimulationError, match=r"delay = 0.0003 s is 2.4 times the step 0.000125 s; make it a whole multiple"):
        VirtualRobot(slide(1.0), [DRIVE], replace(IDEAL, delay=3e-4), step=H).simulate(wave(0.1, 1e-3))
