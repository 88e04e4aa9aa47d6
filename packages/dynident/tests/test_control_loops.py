"""Controllers as data: what they accept, what they refuse, and how numbers spread over actuators."""

from __future__ import annotations

import re

import numpy as np
import pytest
from small_robots import arm3

from dynident.checks import per_actuator
from dynident.control import PID, Cascade, ComputedTorque, CurrentLoop, OpenLoop
from dynident.control.tick import AxisLoops, period_map, rigid_plant
from dynident.drive import Encoder
from dynident.drive.drive import low_pass_coefficient
from dynident.errors import DynidentError


def cascade(**changes: object) -> Cascade:
    options: dict[str, object] = {"position_cycle": 5e-3, "velocity_cycle": 250e-6, **changes}
    gains = [options.pop(name, value) for name, value in (("kv", 19.2), ("kP", 0.14), ("kI", 11.45))]
    return Cascade(*gains, **options)  # type: ignore[arg-type]


def test_a_cascade_knows_how_its_cycles_fit() -> None:
    loops = cascade(current=CurrentLoop(2.0, 500.0, 62.5e-6))
    assert (loops.velocity_ticks, loops.current_ticks, loops.cycle) == (20, 4, 5e-3)
    assert cascade().current_ticks == 1
    assert loops == cascade(current=CurrentLoop(2.0, 500.0, 62.5e-6)), "plain data compare by value"


def test_gains_are_scalars_or_one_per_actuator() -> None:
    law = PID([1.0, 2.0], np.array([3.0, 4.0]), cycle=1e-3)
    assert law.kp == (1.0, 2.0)
    assert law.kd == (3.0, 4.0)
    np.testing.assert_array_equal(per_actuator(law.kp, 2, "kp"), [1.0, 2.0])
    np.testing.assert_array_equal(per_actuator(law.ki, 3, "ki"), np.zeros(3))
    with pytest.raises(DynidentError, match=r"kp has shape \(2,\); give one number, or 3"):
        per_actuator(law.kp, 3, "kp")


def test_bad_numbers_are_refused_in_one_sentence(subtests: pytest.Subtests) -> None:
    for make, sentence in [
        (lambda: cascade(position_cycle=0.0), "position_cycle is 0; give a number [s] above 0"),
        (lambda: cascade(velocity_cycle=float("nan")), "velocity_cycle is nan; give a number [s] above 0"),
        (lambda: cascade(position_cycle=[1e-3, 2e-3]), "position_cycle is [0.001, 0.002]; give a number [s]"),
        (lambda: cascade(position_cycle=1e-4), "velocity_cycle = 0.00025 s is longer than position_cycle = 0.0001 s"),
        (lambda: cascade(position_cycle=6e-4), "is 2.4 times velocity_cycle = 0.00025 s; make it a whole multiple"),
        (lambda: cascade(current=CurrentLoop(1.0, 1.0, 1e-3)), "current.cycle = 0.001 s is longer than velocity_cycle"),
        (lambda: cascade(current=1.0), "current is a float; give a CurrentLoop, or None for an ideal one"),
        (lambda: cascade(kv=-1.0), "position_gain = -1.0 must be zero or a number above it"),
        (lambda: cascade(kP=[1.0, np.inf]), "velocity_gain = inf must be zero or a number above it"),
        (lambda: cascade(kI="much"), "velocity_integral is not an array of real numbers"),
        (lambda: cascade(kI=np.ones((2, 2))), r"velocity_integral has shape (2, 2); give one number"),
        (lambda: cascade(speed_limit=0.0), "speed_limit = 0.0 must be a number above zero"),
        (lambda: cascade(velocity_filter=-3.0), "velocity_filter = -3.0"),
        (lambda: cascade(anti_windup=1), "anti_windup = 1 must be True or False"),
        (lambda: cascade(torque_feedforward="rrr"), "torque_feedforward is a str; give a dynident.Mechanism"),
        (lambda: CurrentLoop(-1.0, 0.0, 1e-4), "current loop: gain = -1.0"),
        (lambda: PID(1.0, 1.0, cycle=-1.0), "PID: cycle is -1; give a number [s] above 0"),
        (lambda: PID(1.0, 1.0, cycle=1e-3, project="yes"), "PID: project = 'yes' must be True or False"),
        (lambda: PID(1.0, 1.0, cycle=1e-3, preload=[1.0, np.nan]), "PID: preload = nan must be a finite number"),
        (lambda: ComputedTorque("rrr", 1.0, 1.0, cycle=1e-3), "computed torque: model is a str; give a dynident.Mechanism"),
        (
            lambda: ComputedTorque(arm3(), 1.0, 1.0, cycle=1e-3, on="hope"),
            "on is 'hope'; it is one of measurement, reference",
        ),
        (OpenLoop, "nothing is given; give one of torque, current, voltage"),
        (lambda: OpenLoop(torque=[1.0], voltage=[1.0]), "torque and voltage is given"),
        (lambda: OpenLoop(current=[[1.0], [np.inf]]), "current is not finite at sample 1"),
        (lambda: OpenLoop(torque=np.zeros((2, 2, 2))), "torque has shape (2, 2, 2); give (samples, actuators)"),
    ]:
        with subtests.test(str(sentence)):
            with pytest.raises(DynidentError, match=re.escape(sentence)) as caught:
                make()
            assert "\n" not in str(caught.value)


def test_an_infinite_speed_limit_and_a_negative_preload_are_meant() -> None:
    assert cascade().speed_limit == np.inf
    assert PID(1.0, 1.0, cycle=1e-3, preload=[-2.0, 2.0]).preload == (-2.0, 2.0)


def test_open_loop_tables_are_private_copies() -> None:
    given = np.ones((3, 2))
    law = OpenLoop(torque=given)
    given[:] = 7.0
    np.testing.assert_array_equal(law.table, np.ones((3, 2)))
    with pytest.raises(ValueError, match="read-only"):
        law.table[0, 0] = 1.0
    assert OpenLoop(voltage=[24.0, 0.0]).table.shape == (1, 2)


def test_the_low_pass_coefficient_is_the_sampled_step_response() -> None:
    f, T = 30.0, 1e-3
    t = np.arange(50) * T
    y, share = 0.0, float(low_pass_coefficient(f, T))
    for k in range(50):
        assert y == pytest.approx(1.0 - np.exp(-2.0 * np.pi * f * t[k]), abs=1e-12)
        y += share * (1.0 - y)
    assert low_pass_coefficient([0.0, 1e9], T).tolist() == [1.0, 1.0]
    with pytest.raises(DynidentError, match=r"cycle is 0.0"):
        low_pass_coefficient(1.0, 0.0)
    with pytest.raises(DynidentError, match=r"frequency is -1.0 Hz"):
        low_pass_coefficient([1.0, -1.0], T)


@pytest.mark.parametrize(("delay", "edge"), [(0.0, 20.0), (0.1, 10.0)])
def test_a_sampled_integrator_has_its_textbook_margins(delay: float, edge: float) -> None:
    """L = k T / (z - 1): unstable from k T = 2 on, and with a cycle of delay, k T / (z (z - 1)), from k T = 1 on."""
    loops = Cascade(0.0, 1.0, 0.0, position_cycle=0.1, velocity_cycle=0.1)
    period = period_map(AxisLoops(loops, Encoder(velocity="exact")), rigid_plant(1.0), "velocity", delay=delay)
    assert period.stable(0.999 * edge) and not period.stable(1.001 * edge)
    w = 2.0 * np.arcsin(0.05)  # |z - 1| = T at the crossover, where the phase of L is -(90 deg + w / 2), and -w more with delay
    left = np.pi / 2.0 - w / 2.0 - w * (delay / 0.1)
    assert period.stable(np.exp(-0.999j * left)) and not period.stable(np.exp(-1.001j * left))
