"""Friction in the compiled machine: the same laws as in the friction room, sticking without chatter, bristles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from plant_cases import go, home, machine, slide
from small_robots import five_bar

import dynident as di
from dynident.control import OpenLoop
from dynident.drive import Drive, Motor, Transmission
from dynident.errors import SimulationError
from dynident.friction import (
    Asymmetric,
    Coulomb,
    Friction,
    FrictionLaw,
    LoadDependent,
    LuGre,
    Ripple,
    Sigmoid,
    SmoothStribeck,
    Stribeck,
    Tanh,
    Viscous,
)
from dynident.friction.law import Point, State
from dynident.graph import absolute, sign

STATIC = [
    (Coulomb() + Viscous()).using(fc=1.2, fv=0.3),
    (Stribeck() + Viscous()).using(fc=1.0, fs=1.5, vs=0.2, fv=0.1),
    Stribeck(None).using(fc=1.0, fs=1.5, vs=0.2, delta=1.3),
    Tanh().using(fc=1.1, beta=20.0),
    SmoothStribeck().using(fc=1.0, fcs=0.4, alpha=8.0, beta=30.0),
    Sigmoid(2).using(Bv=0.2, Bf1=0.7, Bf2=-0.2, w1=12.0, w2=3.0),
    Asymmetric().using(fcp=1.2, fcn=0.9, fvp=0.3, fvn=0.4),
]


@pytest.mark.parametrize("law", STATIC, ids=lambda law: law.law.name)
@pytest.mark.parametrize("speed", [-0.7, -0.05, 0.0, 0.05, 0.7])
def test_static_laws_are_those_of_the_friction_room(law: object, speed: float) -> None:
    robot = slide(2.0)
    truth = go(machine(robot, step=1e-6, friction={"s": law}), 4, v=[speed]).truth
    assert truth.joint_friction[0, 0] == pytest.approx(float(law(speed)), abs=1e-12)
    assert truth.motion.a[0, 0] == pytest.approx(-float(law(speed)) / 2.0, abs=1e-12)
    motor = Drive("s", Motor(1.0), Transmission(4.0), friction=law)
    truth = go(machine(robot, [motor], step=1e-6), 4, v=[speed / 4.0]).truth
    assert truth.friction[0, 0] == pytest.approx(float(law(speed)), abs=1e-12)


def test_coulomb_friction_stops_and_holds_without_chatter() -> None:
    law = Coulomb().using(fc=5.0)
    speed = go(machine(slide(2.0), law=OpenLoop(torque=[4.0]), friction={"s": law}), 3000, v=[0.5]).truth.motion.v[:, 0]
    slope = (5.0 - 4.0) / 2.0
    t = np.arange(3000) * 1e-3
    moving = t < 0.5 / slope - 0.01
    np.testing.assert_allclose(speed[moving], (0.5 - slope * t)[moving], atol=1e-12)
    assert np.abs(speed[-500:]).max() < 1e-15


DYNAMIC = [
    LuGre(1e4, 60.0, 1.0, 1.5, 0.05, fv=0.4),
]


def shaken(law: object, h: float, size: float, refine: int = 1, duration: float = 0.8) -> tuple[np.ndarray, ...]:
    """Return time, speed and friction of a mass of 2 kg under a force that is held for h; the plant's step is h / refine."""
    robot = slide(2.0)
    t = np.arange(round(duration / h)) * h
    push = np.repeat(size * np.sin(2.0 * np.pi * 2.0 * t), refine)[:, None]
    zero = np.zeros((push.size, 1))
    still = di.Motion(np.arange(push.size) * (h / refine), zero, zero, zero)
    truth = go(machine(robot, law=OpenLoop(torque=push), step=h / refine, friction={"s": law}), push.size, motion=still).truth
    return truth.t, truth.motion.v[:, 0], truth.joint_friction[:, 0]


@pytest.mark.parametrize("law", DYNAMIC, ids=lambda law: type(law).__name__)
def test_dynamic_laws_follow_their_own_simulation(law: object) -> None:
    t, v, rub = shaken(law, 2e-4, 3.0)
    np.testing.assert_allclose(rub, law.simulate(t, v).force, atol=1e-9)
    _, fine, _ = shaken(law, 2e-4, 3.0, refine=8)
    assert np.abs(v - fine[::8]).max() < 2e-3 * np.abs(fine).max()


@pytest.mark.parametrize("law", DYNAMIC, ids=lambda law: type(law).__name__)
def test_dynamic_laws_follow_their_own_simulation_from_a_moving_start(law: object) -> None:
    truth = go(machine(slide(2.0), law=OpenLoop(torque=[2.0]), step=2e-4, friction={"s": law}), 500, v=[0.3]).truth
    assert truth.motion.v[0, 0] == 0.3
    np.testing.assert_allclose(truth.joint_friction[:, 0], law.simulate(truth.t, truth.motion.v[:, 0]).force, atol=1e-9)


@pytest.mark.parametrize("law", DYNAMIC, ids=lambda law: type(law).__name__)
def test_bristles_hold_a_force_below_breakaway(law: object) -> None:
    _, v, _ = shaken(law, 2e-4, 0.3, duration=4.0)
    early, late = np.abs(v[:5000]).max(), np.abs(v[-5000:]).max()
    assert late < 1.2 * early  # the stiff spring does not gain energy
    assert late < 0.05


def test_lugre_is_the_solution_of_its_differential_equation() -> None:
    from scipy.integrate import solve_ivp

    law = DYNAMIC[0]

    def rate(t: float, y: np.ndarray) -> list[float]:
        v, z = y
        dz = float(law.rate(z, v))
        return [(3.0 * np.sin(4.0 * np.pi * t) - law.sigma0 * z - law.sigma1 * dz - law.fv * v) / 2.0, dz]

    oracle = solve_ivp(rate, (0.0, 0.6), [0.0, 0.0], method="LSODA", rtol=1e-9, atol=1e-12, t_eval=np.arange(3000) * 2e-4)
    _, v, _ = shaken(law, 2e-4, 3.0, duration=0.6)
    assert np.abs(v - oracle.y[0]).max() < 2e-3 * np.abs(oracle.y[0]).max()


@pytest.mark.parametrize("way", [1.0, -1.0])
def test_any_law_made_of_laws_is_simulated(way: float) -> None:
    law = Ripple((1.0,), LoadDependent(Coulomb(), (1.0,))).using(fc_tau1_c1=0.1, fc_tau1_s1=0.2)
    lift = replace(slide(2.0), gravity=(0.0, 0.0, -9.81))
    robot = machine(lift, law=OpenLoop(torque=[2.0 * 9.81]), friction={"s": law})
    truth = go(robot, 50, [0.7], [0.3 * way]).truth
    wave = 0.1 * np.cos(truth.motion.q[1:, 0]) + 0.2 * np.sin(truth.motion.q[1:, 0])
    load = 2.0 * 9.81 - truth.joint_friction[:-1, 0]  # what the drive left of the joint one step before
    np.testing.assert_allclose(truth.joint_friction[1:, 0], way * wave * load, rtol=1e-12)


RIPPLES = [
    (Coulomb() + Ripple((2.0, 5.0))).using(fc=1.0, torque_c2=0.1, torque_s2=0.2, torque_c5=-0.1, torque_s5=0.05),
    (Stribeck() + Ripple((3.0,), Stribeck())).using(
        {"stribeck.fc": 1.0, "stribeck.fs": 1.5, "stribeck.vs": 0.2}
        | {"ripple.fc_c3": 0.2, "ripple.fc_s3": 0.1, "ripple.fs_c3": 0.3, "ripple.fs_s3": 0.0, "ripple.vs": 0.2}
    ),
    Asymmetric(Coulomb() + Ripple((1.0,), Viscous())).using(
        {"coulomb.fcp": 1.0, "coulomb.fcn": 0.7, "ripple.fv_c1p": 0.3, "ripple.fv_c1n": 0.2}
        | {"ripple.fv_s1p": 0.1, "ripple.fv_s1n": 0.4}
    ),
]


@pytest.mark.parametrize("law", RIPPLES, ids=lambda law: law.law.name)
@pytest.mark.parametrize("speed", [-0.7, 0.05, 0.7])
def test_ripples_are_those_of_the_friction_room(law: Friction, speed: float) -> None:
    place = 0.37
    exact = float(law(State(np.array(speed), np.array(place))))
    joint = go(machine(slide(2.0), step=1e-6, friction={"s": law}), 4, [place], [speed]).truth
    assert joint.joint_friction[0, 0] == pytest.approx(exact, abs=1e-12)
    motor = Drive("s", Motor(1.0), Transmission(4.0), friction=law)  # a rotor's ripple goes with the angle of the rotor
    rotor = go(machine(slide(2.0), [motor], step=1e-6), 4, [place / 4.0], [speed / 4.0]).truth
    assert rotor.friction[0, 0] == pytest.approx(exact, abs=1e-12)


def test_a_ripple_holds_more_in_some_places_than_in_others() -> None:
    law = (Coulomb() + Ripple((1.0,), Coulomb())).using({"coulomb.fc": 1.0, "ripple.fc_c1": 0.5, "ripple.fc_s1": 0.0})
    for place, level in ((0.0, 1.5), (np.pi, 0.5), (np.pi / 2.0, 1.0)):
        for push, holds in ((level - 1e-6, True), (level + 1e-3, False)):
            x = go(machine(slide(2.0), law=OpenLoop(torque=[push]), friction={"s": law}), 200, [place]).truth.motion.q[:, 0]
            assert (np.abs(x - place).max() < 1e-14) == holds


def test_cogging_is_a_potential_with_the_closed_form_of_its_energy() -> None:
    law = Ripple((6.0,)).using(torque_c6=0.0, torque_s6=0.4)
    motion = go(machine(slide(2.0), friction={"s": law}), 4000, v=[0.5]).truth.motion
    x, v = motion.q[:, 0], motion.v[:, 0]
    energy = v**2 + 0.4 / 6.0 * (1.0 - np.cos(6.0 * x))
    assert np.abs(energy - 0.25).max() < 1e-10
    assert np.ptp(v) > 0.1


def test_friction_that_grows_with_the_load_settles_at_the_load_of_the_links() -> None:
    law = LoadDependent(Coulomb()).using(fc_tau1=0.1, fc_tau2=0.002)
    lift = slide(2.0)
    lift = replace(lift, gravity=(0.0, 0.0, -9.81))
    load = 2.0 * 9.81
    exact = 0.1 * load + 0.002 * load**2
    for where in ("joint", "rotor"):
        turns = 1.0 if where == "joint" else 4.0
        drive = Drive("s", Motor(1.0), Transmission(4.0), friction=None if where == "joint" else law)
        force = load + (exact if where == "joint" else turns * (0.1 * load / turns + 0.002 * (load / turns) ** 2))
        robot = machine(lift, [drive], OpenLoop(torque=[force]), friction={"s": law} if turns == 1.0 else {})
        truth = go(robot, 500, v=[0.3]).truth
        v = truth.motion.v[:, 0]
        assert v[-1] == pytest.approx(v[20], abs=1e-9)  # one step late at the start, then in balance
        rub = truth.joint_friction[-1, 0] if turns == 1.0 else turns * truth.friction[-1, 0]
        assert rub == pytest.approx(force - load, rel=1e-9)
    with pytest.raises(SimulationError, match="no drive acts on that joint"):
        go(machine(five_bar(), friction={"elbow2": law}), 4, home(five_bar()))


@dataclass(frozen=True)
class Worn(FrictionLaw):
    """A law of this test: dry friction that rises from fc to fm with the speed."""

    name = "worn"
    linear = ("fc", "fm")
    shape = ("vm",)

    def torque(self, x: Point, p: Mapping[str, Any]) -> Any:
        share = absolute(x.v) / (p["vm"] + absolute(x.v))
        return sign(x.v) * (p["fc"] + (p["fm"] - p["fc"]) * share)


@pytest.mark.parametrize("where", ["joint", "rotor", "elastic rotor"])
def test_a_law_of_ones_own_slides_stops_and_holds(where: str) -> None:
    law = Worn().using(fc=2.0, fm=3.0, vm=0.5)
    shafts = {"inertias": (1e-3,), "stiffness": (1e4,), "damping": (5.0,)} if where == "elastic rotor" else {}
    drive = Drive("s", Motor(1.0, inertia=1e-3), Transmission(1.0, 1.0, **shafts), friction=None if where == "joint" else law)
    friction = {"s": law} if where == "joint" else {}
    for push, holds in ((1.99, True), (-1.99, True), (2.2, False)):
        truth = go(machine(slide(2.0), [drive], OpenLoop(torque=[push]), 2e-4, friction=friction), 5001).truth
        assert (np.abs(truth.motion.v[-1, 0]) < 1e-12) == holds
    truth = go(machine(slide(2.0), [drive], step=2e-4, friction=friction), 5001, v=[0.4]).truth
    rub = truth.joint_friction if where == "joint" else truth.friction
    speed = truth.omega if where != "joint" else truth.motion.v
    moving = speed[:, 0] > 1e-3
    np.testing.assert_allclose(rub[moving, 0], law(speed[moving, 0]), rtol=1e-9)
    assert np.abs(speed[-100:]).max() < 1e-14  # behind an elastic shaft the load still swings, the rotor stands
