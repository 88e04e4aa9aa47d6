"""Friction in the compiled plant: the same laws as in the friction room, sticking without chatter, bristles."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynident.control import OpenLoop
from dynident.drive import Drive, Motor, Transmission
from dynident.errors import SimulationError
from dynident.friction import (
    Asymmetric,
    Coulomb,
    Dahl,
    Friction,
    GeneralisedMaxwellSlip,
    LoadDependent,
    LuGre,
    Ripple,
    Sigmoid,
    SmoothStribeck,
    State,
    Stribeck,
    Tanh,
    Viscous,
)
from dynident.mechanics.batch import at_rest
from dynident.robots import five_bar
from dynident.simulate.plant import build
from plant_cases import free, go, plain, slide

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
    assembly = free(robot, np.zeros(1), np.array([speed]), step=1e-6, friction={"s": law})
    row = go(assembly, 1)[0]
    assert row[assembly.columns.joint_rub][0] == pytest.approx(float(law(speed)), abs=1e-12)
    assert row[assembly.columns.a][0] == pytest.approx(-float(law(speed)) / 2.0, abs=1e-12)
    motor = Drive("s", Motor(1.0), Transmission(4.0), friction=law)
    on_rotor = free(robot, np.zeros(1), np.array([speed / 4.0]), step=1e-6, drives=[motor])
    assert go(on_rotor, 1)[0, on_rotor.columns.rub][0] == pytest.approx(float(law(speed)), abs=1e-12)


def test_coulomb_friction_stops_and_holds_without_chatter() -> None:
    law = Coulomb().using(fc=5.0)
    robot = slide(2.0)
    open_loop = OpenLoop(torque=[4.0])
    assembly = build(robot, plain(robot), open_loop, step=1e-3, x=[0.0], v=[0.5], friction={"s": law})
    speed = go(assembly, 3000, open_loop, command=np.array([[4.0]]))[:, assembly.columns.v][:, 0]
    slope = (5.0 - 4.0) / 2.0
    t = np.arange(3000) * 1e-3
    moving = t < 0.5 / slope - 0.01
    np.testing.assert_allclose(speed[moving], (0.5 - slope * t)[moving], atol=1e-12)
    assert np.abs(speed[-500:]).max() < 1e-15


DYNAMIC = [
    LuGre(1e4, 60.0, 1.0, 1.5, 0.05, fv=0.4),
    Dahl(1e4, 1.2, fv=0.3),
    GeneralisedMaxwellSlip((6e3, 4e3), (0.6, 0.4), 1.0, 1.4, 0.05, 40.0, (3.0, 2.0), fv=0.2),
]


def shaken(law: object, h: float, size: float, refine: int = 1, duration: float = 0.8) -> tuple[np.ndarray, ...]:
    """Return time, speed and friction of a mass of 2 kg under a force that is held for h; the plant's step is h / refine."""
    robot = slide(2.0)
    t = np.arange(round(duration / h)) * h
    push = np.repeat(size * np.sin(2.0 * np.pi * 2.0 * t), refine)[:, None]
    still = at_rest(robot, np.zeros((push.size, 1)))
    open_loop = OpenLoop(torque=push)
    assembly = build(robot, plain(robot), open_loop, step=h / refine, x=[0.0], friction={"s": law})
    record = go(assembly, push.size, open_loop, still, command=push)
    c = assembly.columns
    return np.arange(push.size) * (h / refine), record[:, c.v][:, 0], record[:, c.joint_rub][:, 0]


@pytest.mark.parametrize("law", DYNAMIC, ids=lambda law: type(law).__name__)
def test_dynamic_laws_follow_their_own_simulation(law: object) -> None:
    t, v, rub = shaken(law, 2e-4, 3.0)
    np.testing.assert_allclose(rub, law.simulate(t, v).force, atol=1e-9)
    _, fine, _ = shaken(law, 2e-4, 3.0, refine=8)
    assert np.abs(v - fine[::8]).max() < 2e-3 * np.abs(fine).max()


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


def test_a_law_without_compiled_form_is_named() -> None:
    with pytest.raises(SimulationError, match=r"friction of 's'.*ripple of load"):
        law = Ripple((1.0,), LoadDependent(Coulomb()))
        free(slide(), np.zeros(1), friction={"s": law.using(dict.fromkeys(law.parameters, 1.0))})


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
    joint = free(slide(2.0), np.array([place]), np.array([speed]), step=1e-6, friction={"s": law})
    assert go(joint, 1)[0, joint.columns.joint_rub][0] == pytest.approx(exact, abs=1e-12)
    motor = Drive("s", Motor(1.0), Transmission(4.0), friction=law)  # a rotor's ripple goes with the angle of the rotor
    rotor = free(slide(2.0), np.array([place / 4.0]), np.array([speed / 4.0]), step=1e-6, drives=[motor])
    assert go(rotor, 1)[0, rotor.columns.rub][0] == pytest.approx(exact, abs=1e-12)


def test_a_ripple_holds_more_in_some_places_than_in_others() -> None:
    law = (Coulomb() + Ripple((1.0,), Coulomb())).using({"coulomb.fc": 1.0, "ripple.fc_c1": 0.5, "ripple.fc_s1": 0.0})
    for place, level in ((0.0, 1.5), (np.pi, 0.5), (np.pi / 2.0, 1.0)):
        for push, holds in ((level - 1e-6, True), (level + 1e-3, False)):
            assembly = free(slide(2.0), np.array([place]), friction={"s": law})
            x = go(assembly, 200, OpenLoop(torque=[push]), command=np.array([[push]]))[:, assembly.columns.x][:, 0]
            assert (np.abs(x - place).max() < 1e-14) == holds


def test_cogging_is_a_potential_with_the_closed_form_of_its_energy() -> None:
    law = Ripple((6.0,)).using(torque_c6=0.0, torque_s6=0.4)
    assembly = free(slide(2.0), np.zeros(1), np.array([0.5]), step=1e-3, friction={"s": law})
    record = go(assembly, 4000)
    x, v = record[:, assembly.columns.x][:, 0], record[:, assembly.columns.v][:, 0]
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
        assembly = build(
            lift, [drive], OpenLoop(torque=[force]), step=1e-3, x=[0.0], v=[0.3], friction={"s": law} if turns == 1.0 else {}
        )
        record = go(assembly, 500, OpenLoop(torque=[force]), command=np.array([[force]]))
        v, c = record[:, assembly.columns.v][:, 0], assembly.columns
        assert v[-1] == pytest.approx(v[20], abs=1e-9)  # one step late at the start, then in balance
        rub = record[-1, c.joint_rub][0] if turns == 1.0 else turns * record[-1, c.rub][0]
        assert rub == pytest.approx(force - load, rel=1e-9)
    with pytest.raises(SimulationError, match="no drive loads that joint"):
        robot = five_bar.mechanism()
        free(robot, robot.closure.home[robot.closure.independent], friction={"elbow2": law})
