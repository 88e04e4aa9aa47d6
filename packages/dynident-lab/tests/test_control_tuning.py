"""Tuning: pole placement with the documents' numbers, and warnings about slow cycles."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from dynident.control import gains_for, pi_gains
from dynident.drive import Drive, Encoder, Motor, Transmission
from dynident.errors import DynidentError
from dynident_lab.servo import Axis, ControlWarning, pi_poles, tune_cascade

MOTOR = Motor(1.43, 1.2, 6e-3, inertia=13e-4)
DRIVE = Drive("A", MOTOR, encoder=Encoder(velocity="exact"))


def test_dualv_gains() -> None:
    kp, kd = gains_for(70.0, 0.7)
    assert kp == pytest.approx(1.934e5, rel=1e-3)
    assert kd == pytest.approx(615.75, abs=0.01)


def test_five_bar_velocity_loop() -> None:
    w, zeta = pi_poles(13e-4, 1.7e-3, 1.43, 0.14, 11.45)
    assert w == pytest.approx(112.2, abs=0.05)
    assert zeta == pytest.approx(0.692, abs=5e-4)
    np.testing.assert_allclose(pi_gains(13e-4, 1.7e-3, 1.43, w / (2.0 * np.pi), zeta), [0.14, 11.45], rtol=1e-12)


def _continuous(kv: float, kP: float, kI: float, J: float, c: float, Kt: float) -> Any:
    """Return the closed position loop of a rigid axis from its blocks, by python-control."""
    control = pytest.importorskip("control")
    s = control.tf("s")
    velocity = control.feedback((kP + kI / s) * Kt / (J * s + c))
    return control.minreal(control.feedback(kv * velocity / s), verbose=False)


@pytest.mark.parametrize("bandwidth", [1.0, 8.0, 40.0])
@pytest.mark.parametrize("damping", [0.3, 0.7, 1.0])
@pytest.mark.parametrize("viscous", [0.0, 5e-3])
def test_a_rigid_axis_has_the_bandwidth_and_damping_that_were_asked_for(
    bandwidth: float, damping: float, viscous: float
) -> None:
    cycles = {"position_cycle": 1e-4, "velocity_cycle": 1e-5}
    wishes = {"load": 4e-4, "viscous": viscous, "least_margin": 0.0}
    loops = tune_cascade(DRIVE, bandwidth, damping, sampled=False, **cycles, **wishes)  # type: ignore[arg-type]
    kv, kP, kI = (float(np.asarray(x)) for x in (loops.position_gain, loops.velocity_gain, loops.velocity_integral))
    closed = _continuous(kv, kP, kI, 17e-4, viscous, 1.43)
    assert closed.bandwidth(dbdrop=-10.0 * np.log10(2.0)) / (2.0 * np.pi) == pytest.approx(bandwidth, rel=1e-5)
    poles = closed.poles()
    fast = poles[np.argsort(np.abs(poles))][1:]  # the real pole is the slowest with loops this far apart
    assert -fast.sum().real / (2.0 * np.sqrt(fast.prod().real)) == pytest.approx(damping, rel=1e-6)
    assert np.sqrt(1.43 * kI / 17e-4) == pytest.approx(2.0 * np.pi * 5.0 * bandwidth)  # the third condition


@pytest.mark.parametrize(
    "cycles",
    [
        {"position_cycle": 1e-3, "velocity_cycle": 2.5e-4},
        {"position_cycle": 5e-3, "velocity_cycle": 2.5e-4, "current_cycle": 6.25e-5},
        {"position_cycle": 2e-3, "velocity_cycle": 5e-4, "delay": 5e-4},
    ],
)
def test_sampled_loops_have_the_bandwidth_and_damping_that_were_asked_for(cycles: dict[str, float]) -> None:
    drive = Drive("j", Motor(0.08, 0.5, 0.5e-3, inertia=1e-4), Transmission.gear(20.0))  # its encoder differences positions
    loops = tune_cascade(drive, 8.0, 0.7, load=1.25e-3, **cycles)  # type: ignore[arg-type]
    pytest.importorskip("control")
    axis = Axis(drive, loops, load=1.25e-3, delay=cycles.get("delay", 0.0))
    closed = axis.loop("position", sampled=True).to_control()
    z = np.exp(2j * np.pi * 8.0 * closed.dt)
    assert abs(closed(z)[0, 0]) == pytest.approx(np.sqrt(0.5), rel=1e-5)
    below = np.exp(2j * np.pi * np.linspace(0.1, 7.9, 50) * closed.dt)
    assert min(abs(closed(x)[0, 0]) for x in below) > np.sqrt(0.5)
    poles = closed.poles()
    pair = np.log(poles[(poles.imag > 1e-9) & (np.abs(poles) > 1e-3)])
    assert np.abs(-pair.real / np.abs(pair) - 0.7).min() < 1e-5
    assert np.all(np.abs(poles) < 1.0 + 1e-9)  # a sum that an ideal current does not use stays at 1


def test_loops_can_be_set_apart() -> None:
    apart = tune_cascade(DRIVE, 2.0, position_cycle=1e-3, velocity_cycle=1e-4, velocity_bandwidth=33.0, current_cycle=2e-5)
    w, _ = pi_poles(13e-4, 0.0, 1.43, apart.velocity_gain, apart.velocity_integral)  # type: ignore[arg-type]
    assert w / (2.0 * np.pi) == pytest.approx(33.0)
    assert apart.current is not None
    w, zeta = pi_poles(6e-3, 1.2, 1.0, apart.current.gain, apart.current.integral)  # type: ignore[arg-type]
    assert (w / (2.0 * np.pi), zeta) == pytest.approx((165.0, 1.0))


def test_a_winding_without_inductance_gets_an_integrator() -> None:
    drive = Drive("A", Motor(1.43, 1.2, inertia=13e-4), encoder=Encoder(velocity="exact"))
    loops = tune_cascade(drive, 1.0, position_cycle=1e-3, velocity_cycle=1e-4, current_cycle=1e-5, current_bandwidth=200.0)
    assert loops.current is not None
    assert loops.current.gain == 0.0
    assert loops.current.integral == pytest.approx(2.0 * np.pi * 200.0 * 1.2)


def test_slow_cycles_are_warned_about_with_the_numbers() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tune_cascade(DRIVE, 3.0, position_cycle=5e-3, velocity_cycle=250e-6)
    with pytest.warns(
        ControlWarning, match=r"velocity loop of drive 'A' keeps .* 33 degrees at its cycle of 0.00025 s \(58 degrees"
    ):
        tune_cascade(DRIVE, 100.0, position_cycle=1e-3, velocity_cycle=250e-6)
    for cycle in (20e-3, 90e-3):
        with pytest.raises(DynidentError, match=r"cannot reach 3 Hz with damping 0\.7 .* shorten the cycles"):
            tune_cascade(DRIVE, 3.0, position_cycle=cycle, velocity_cycle=cycle)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: gains_for(-1.0), "bandwidth is -1; give a number above 0"),
        (lambda: gains_for(1.0, float("nan")), "damping is nan; give a number above 0"),
        (lambda: pi_gains(1e-3, 1.0, 1.0, 1.0), "needs a negative proportional gain.*give more than 113.7 Hz"),
        (
            lambda: tune_cascade(DRIVE, 3.0, 1.2, position_cycle=1e-3, velocity_cycle=1e-3),
            "damping = 1.2 is above 1",
        ),
        (
            lambda: tune_cascade(DRIVE, 3.0, 0.1, separation=1.0, position_cycle=1e-3, velocity_cycle=1e-3),
            "bandwidth = 3 Hz with damping 0.1 is not possible with a velocity loop of 3 Hz",
        ),
        (
            lambda: tune_cascade(DRIVE, 3.0, position_cycle=1e-3, velocity_cycle=1e-3, viscous=0.2),
            "needs a negative velocity gain because friction alone damps more",
        ),
        (lambda: tune_cascade("A", 1.0, position_cycle=1e-3, velocity_cycle=1e-3), "drive is a str"),
        (
            lambda: tune_cascade(
                Drive("A", Motor(1.0, inertia=1.0)), 1.0, position_cycle=1e-3, velocity_cycle=1e-3, current_cycle=1e-3
            ),
            "neither resistance nor inductance",
        ),
    ],
)
def test_bad_wishes_are_refused(call: object, sentence: str) -> None:
    with pytest.raises(DynidentError, match=sentence):
        call()  # type: ignore[operator]
