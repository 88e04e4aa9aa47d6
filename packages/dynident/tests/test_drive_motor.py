"""Motors, transmissions and drives: equations, limits, and one sentence for every wrong number."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import FrozenInstanceError, fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynident.drive import CurrentSensor, Drive, Encoder, Motor, Transmission
from dynident.drive.drive import gear_share, shaft_torque
from dynident.errors import DynidentError
from dynident.friction import Coulomb, LuGre, Viscous

positive = st.floats(1e-3, 1e3)


def sentence(error: BaseException) -> str:
    text = str(error)
    assert text
    assert "\n" not in text
    assert "; " in text, text
    return text


def test_ratios_of_gears_screws_and_belts() -> None:
    assert Transmission.gear(40.0).ratio == 40.0
    assert Transmission.screw(0.01).ratio == pytest.approx(200.0 * math.pi)
    assert Transmission.belt(0.07, 15.0).ratio == pytest.approx(2.0 * math.pi * 15.0 / 0.07, rel=1e-15)
    assert Transmission.screw(-0.01, 2.0).ratio < 0.0
    carriage = 4.524e-4 / 225.0 + 0.076 * (0.07 / (30.0 * math.pi)) ** 2  # kg m^2
    drive = Drive("rho1", Motor(30.2e-3, inertia=2e-5), Transmission.belt(0.07, 15.0, inertias=(carriage,)))
    assert drive.rigid
    assert drive.states == 0
    assert drive.reflected_inertia == pytest.approx((30.0 * math.pi / 0.07) ** 2 * (2e-5 + carriage), rel=1e-14)


@given(
    ratio=st.floats(-100.0, 100.0).filter(lambda r: abs(r) > 0.01),
    eta=st.floats(0.1, 1.0),
    tau=st.floats(-10.0, 10.0),
    omega=st.floats(-10.0, 10.0),
)
def test_efficiency_takes_power_and_is_inverted(ratio: float, eta: float, tau: float, omega: float) -> None:
    box = Transmission(ratio, efficiency=eta)
    out = ratio * tau * gear_share(tau, omega, eta)
    np.testing.assert_allclose(box.motor_torque(out, omega), tau, rtol=1e-12, atol=1e-300)
    power = tau * omega
    assert float(out) * omega / ratio <= power + 1e-12 * abs(power) + 1e-300  # what comes out never exceeds what goes in
    if power > 0.0:
        assert float(out) == pytest.approx(ratio * eta * tau)
    elif power < 0.0:
        assert float(out) == pytest.approx(ratio * tau / eta)


def test_shaft_with_play() -> None:
    twist, rate = np.array([0.0, 0.009, 0.03, -0.03]), np.array([1.0, 1.0, 0.0, 2.0])
    np.testing.assert_allclose(shaft_torque(twist, rate, 100.0, 0.1, 0.01), [0.0, 0.0, 2.0, -1.8])
    np.testing.assert_allclose(shaft_torque(np.array([0.01, 0.0]), np.ones(2), 100.0, 0.1), [1.1, 0.1])


def test_an_elastic_drive() -> None:
    box = Transmission.gear(10.0, inertias=(2e-6, 3e-6), stiffness=(50.0, 60.0), efficiency=0.9)
    friction = (Coulomb() + Viscous()).using(fc=0.1, fv=1e-3)
    drive = Drive("a", Motor(0.1, inertia=1e-5), box, friction, Encoder(1e-3), CurrentSensor(0.01))
    assert not drive.rigid
    assert drive.states == 2
    assert box.damping == (0.0, 0.0)
    assert drive.inertia == pytest.approx(1.5e-5)
    assert drive.reflected_inertia == pytest.approx(1.5e-3)
    assert drive.chain.inertias == (1e-5, 2e-6, 3e-6)
    assert Drive("a", Motor(0.1, inertia=1e-5)).chain.inertias == (1e-5,)
    lugre = LuGre(sigma0=1e3, sigma1=1.0, fv=0.01, fc=0.1, fs=0.15, vs=0.1)
    assert Drive("a", Motor(0.1), friction=lugre).friction is lugre


WRONG: dict[str, tuple[Callable[[], object], str]] = {
    "negative torque constant": (lambda: Motor(-0.1), "torque_constant is -0.1"),
    "torque constant that is text": (lambda: Motor("0.1"), "torque_constant is '0.1'"),
    "torque constant that is true": (lambda: Motor(True), "torque_constant is True"),
    "negative inertia": (lambda: Motor(0.1, inertia=-1e-5), "inertia is -1e-05"),
    "not a number": (lambda: Motor(0.1, resistance=math.nan), "resistance is nan"),
    "no current allowed": (lambda: Motor(0.1, current_limit=0.0), "current_limit is 0"),
    "ratio zero": (lambda: Transmission(0.0), "ratio is 0"),
    "lead zero": (lambda: Transmission.screw(0.0), "lead is 0"),
    "efficiency above one": (lambda: Transmission(efficiency=1.1), "efficiency is 1.1"),
    "efficiency zero": (lambda: Transmission(efficiency=0.0), "efficiency is 0"),
    "shafts without masses": (lambda: Transmission(stiffness=(1.0,)), "1 stiffnesses and 0 inertias"),
    "too few shafts": (lambda: Transmission(inertias=(1.0, 1.0), stiffness=(1.0,)), "1 stiffnesses and 2 inertias"),
    "damping of a rigid shaft": (lambda: Transmission(inertias=(1.0,), damping=(1.0,)), "1 dampings and 0 stiffnesses"),
    "mass of zero on a spring": (lambda: Transmission(inertias=(0.0,), stiffness=(1.0,)), r"inertias\[0\] is 0"),
    "negative stiffness": (lambda: Transmission(inertias=(1.0,), stiffness=(-1.0,)), r"stiffness\[0\] is -1"),
    "play without a shaft": (lambda: Transmission(backlash=0.1), "no shaft to hold it"),
    "resolution below zero": (lambda: Encoder(-1e-3), "resolution is -0.001"),
    "side of nowhere": (lambda: Encoder(side="load"), "side is 'load'"),
    "velocity of magic": (lambda: Encoder(velocity="magic"), "velocity is 'magic'"),
    "half a line": (lambda: Encoder.lines(0.5), "count is 0.5"),
    "gain error of everything": (lambda: CurrentSensor(gain_error=-1.0), "gain_error is -1"),
    "actuator without name": (lambda: Drive("", Motor(0.1)), "actuator is ''"),
    "motor of text": (lambda: Drive("a", "motor"), "motor is a str"),
    "friction without numbers": (lambda: Drive("a", Motor(0.1), friction=Coulomb()), "give a law with numbers"),
    "rotor without inertia": (
        lambda: Drive("a", Motor(0.1), Transmission(inertias=(1.0,), stiffness=(1.0,))),
        "motor.inertia is 0",
    ),
}


def test_wrong_numbers_are_one_sentence(subtests: pytest.Subtests) -> None:
    for case, (call, words) in WRONG.items():
        with subtests.test(case):
            with pytest.raises(DynidentError, match=words) as caught:
                call()
            sentence(caught.value)


@pytest.mark.parametrize("part", [CurrentSensor(), Encoder(), Motor(1.0), Transmission(), Drive("joint", Motor(1.0))])
def test_parts_of_a_drive_are_not_changed_but_copied(part):
    """Machines that share a drive share their compiled code and numbers."""
    for each in fields(part):
        with pytest.raises(FrozenInstanceError):
            setattr(part, each.name, None)


def test_parts_of_drives_do_not_change():
    """A changed copy is made by `replace`: parts are shared by machines."""
    for part in (Transmission(3.0), Encoder(), CurrentSensor()):
        with pytest.raises(FrozenInstanceError):
            setattr(part, fields(part)[0].name, 1.0)
