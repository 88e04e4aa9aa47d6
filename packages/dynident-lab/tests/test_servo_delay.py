"""Dead time in linear models of loops: z^-d and e^{-s d}, python-control, tuning."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from plant_cases import slide

import dynident as di
from dynident.control import (
    Cascade,
    CurrentLoop,
)
from dynident.control.cascade import cascade_for
from dynident.drive import Drive, Encoder, Motor, Transmission
from dynident.mechanism import from_com
from dynident.simulate import VirtualRobot, small_motions
from dynident_lab.servo import Axis, tune_cascade

H = 1.25e-4


MOTOR = Motor(0.1, 0.6, 1e-3, inertia=1e-4)


DRIVE = Drive("s", MOTOR, Transmission(80.0), encoder=Encoder(filter=400.0))


LOOPS = Cascade(
    25.0, 0.08, 2.0, position_cycle=2e-3, velocity_cycle=5e-4, current=CurrentLoop(0.8, 200.0, 2.5e-4), position_filter=60.0
)


IDEAL = replace(LOOPS, current=None)


F = np.array([0.5, 3.0, 11.0, 40.0])


def wave(seconds: float, cycle: float, size: float = 0.02) -> di.Motion:
    """Return a sine of 2 Hz that starts at rest."""
    t = np.arange(round(seconds / cycle) + 1) * cycle
    w = 4.0 * np.pi
    parts = (size * (1.0 - np.cos(w * t)), size * w * np.sin(w * t), size * w * w * np.cos(w * t))
    return di.Motion(t, *(part[:, None] for part in parts))


@pytest.mark.parametrize("loops", [LOOPS, IDEAL])
def test_the_phase_of_an_open_loop_falls_by_omega_delay(loops: Cascade) -> None:
    """Sampled: z^-d exactly, in every loop; continuous: e^{-s d} by a Pade approximation."""
    late, far = replace(loops, delay=4 * 5e-4), replace(loops, position_delay=8 * 5e-4)
    inner = "velocity" if loops.current is None else "current"
    turn = np.exp(-2j * np.pi * F * 2e-3)
    for sampled in (True, False):

        def response(loop: str, law: Cascade, sampled: bool = sampled) -> np.ndarray:
            return Axis(DRIVE, law).loop(loop, sampled=sampled, open=True).response(F)[:, 0, 0]  # type: ignore[arg-type]

        tolerance = 1e-9 if sampled else 1e-6
        np.testing.assert_allclose(response(inner, late), response(inner, loops) * turn, rtol=tolerance)
        moved = response("position", far) / response("position", loops)
        np.testing.assert_allclose(moved, np.exp(-2j * np.pi * F * 4e-3), rtol=tolerance)
        np.testing.assert_allclose(response("velocity", far), response("velocity", loops), rtol=1e-9)


@pytest.mark.parametrize("loops", [LOOPS, IDEAL])
@pytest.mark.parametrize("delays", [{"delay": 3 * H}, {"position_delay": 3e-3}, {"delay": 4 * H, "position_delay": 5e-4}])
def test_the_simulated_loops_are_the_lifted_ones(loops: Cascade, delays: dict[str, float]) -> None:
    law = replace(loops, **delays)
    axis, motion = Axis(DRIVE, law, load=4.0 / 80.0**2), wave(0.4, law.position_cycle)
    run = VirtualRobot(slide(4.0), [DRIVE], law, step=H).simulate(motion, log_cycle=2e-3)
    system, z, lifted = axis.loop(sampled=True), 0.0, []
    z = np.zeros(len(system.A))
    for wanted in motion.q[:, 0]:
        lifted.append((system.C @ z)[0])
        z = system.A @ z + system.B[:, 0] * wanted
    np.testing.assert_allclose(run.truth.motion.q[:, 0], lifted, atol=1e-8)
    without = VirtualRobot(slide(4.0), [DRIVE], loops, step=H).simulate(motion, log_cycle=2e-3)
    assert np.abs(run.truth.motion.q - without.truth.motion.q).max() > 1e-5


def test_margins_of_python_control_see_the_delay() -> None:
    control = pytest.importorskip("control")
    for delay in (0.0, 1e-3):
        axis = Axis(DRIVE, replace(IDEAL, delay=delay, position_delay=delay))
        ours = axis.margins("velocity")
        theirs = axis.loop("velocity", sampled=True, open=True).to_control()
        assert isinstance(theirs, control.StateSpace)
        at = theirs(np.exp(2j * np.pi * np.array([ours.phase_frequency, ours.gain_frequency]) * theirs.dt))
        np.testing.assert_allclose(np.abs(at), [1.0, 1.0 / ours.gain], rtol=1e-6)
        np.testing.assert_allclose(np.degrees(np.angle(-at)), [ours.phase, 0.0], atol=1e-4)
        closed = axis.loop("velocity", sampled=True).to_control()
        assert np.abs(control.poles(closed)).max() < 1.0 + 1e-7
    without, late = (Axis(DRIVE, replace(IDEAL, delay=d)).margins("velocity") for d in (0.0, 1e-3))
    assert without.phase - late.phase == pytest.approx(360.0 * without.phase_frequency * 1e-3, rel=1e-6)


def test_tuning_carries_the_delay_into_the_loops() -> None:
    loops = tune_cascade(DRIVE, 2.0, position_cycle=2e-3, velocity_cycle=5e-4, delay=1e-3)
    assert loops.delay == 1e-3
    assert Axis(DRIVE, loops).margins("velocity") == Axis(DRIVE, loops, delay=1e-3).margins("velocity")
    assert Axis(DRIVE, loops, delay=0.0).margins("velocity").phase > Axis(DRIVE, loops).margins("velocity").phase + 5.0


def single(inertia: float) -> di.Mechanism:
    plain = di.Mechanism.from_dh([{"a": 0.0, "alpha": 0.0, "d": 0.0, "joint": "j1"}], "modified", "one").with_terms(())
    return plain.with_parameters(plain.parameters.replace(from_com(1e-9, (0.0, 0.0, 0.0), np.eye(3) * inertia)))


def test_small_motions_of_one_axis_are_those_of_its_loops() -> None:
    robot = single(0.5)
    for kv, kP, vf, pf, velocity in ((200.0, 0.5, 100.0, 30.0, "exact"), (20.0, 20.0, 0.0, 0.0, "difference")):
        drive = Drive("j1", Motor(0.1, inertia=1e-4), Transmission.gear(50.0), encoder=Encoder(velocity=velocity, filter=60.0))
        law = Cascade(kv, kP, 10.0, position_cycle=2e-3, velocity_cycle=5e-4, velocity_filter=vf, position_filter=pf)
        found = small_motions(VirtualRobot(robot, [drive], law, step=5e-4), np.zeros(1))
        poles = np.abs(Axis(drive, law, load=0.5 / 2500.0).loop("position", sampled=True).poles)
        assert found is not None
        assert np.abs(poles - found.factor).min() < 1e-9 * found.factor
        assert found.period == 2e-3


@pytest.mark.parametrize("rates", [(1.0, 1.0), (0.5, 8.0), (0.1, 30.0), (0.02, 2.0)])
def test_a_cascade_for_two_directions_is_stable_in_both_and_in_between(rates: tuple[float, float]) -> None:
    pytest.importorskip("control")
    loops, _ = cascade_for(rates, 10.0, 0.7, 1e-3)
    for rate in (*rates, float(np.sqrt(rates[0] * rates[1]))):
        axis = Axis(Drive("d", Motor(1.0, inertia=1.0 / rate), encoder=Encoder(velocity="exact")), loops)
        assert np.all(np.abs(axis.loop("position", sampled=True).to_control().poles()) < 1.0 + 1e-9)
