"""Runs of robots with drives against equations written here, integrated by scipy: nothing of the simulation is shared.

A serial arm with rotors on Pinocchio's matrices, a five-bar as Lagrange multipliers on the angles of its bars, a 2-PRR in
closed form with gravity. Coupled and decoupled (exact, iterated) must all be that solution within 1e-6 after a second.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from plant_cases import without_terms
from scipy.integrate import solve_ivp

import dynident as di
from dynident.control import OpenLoop
from dynident.drive import Drive, Motor, Transmission
from dynident.errors import SimulationError, SimulationWarning
from dynident.friction import Viscous
from dynident.simulate import VirtualRobot
from dynident_papers.robots import five_bar, prr2
from dynident_papers.robots.shared import without_terms as bare_joints

WAYS = (("coupled", "exact"), ("decoupled", "exact"), ("decoupled", "iterated"))
TOLERANCE = 1e-6  # relative, over a second
GEAR, VISCOUS = 50.0, 1e-3  # and N m s/rad at the motor


def machine(robot: di.Mechanism, rotors: list[float], torque: list[float], step: float = 2.5e-4) -> VirtualRobot:
    """Return a robot whose geared motors have inertia and viscous friction and hold a torque behind the gear."""
    rub = Viscous().using(fv=VISCOUS)
    pairs = zip(robot.actuators, rotors, strict=True)
    drives = [Drive(a.name, Motor(0.1, inertia=J), Transmission.gear(GEAR), rub) for a, J in pairs]
    return VirtualRobot(robot, drives, OpenLoop(torque=torque), step=step)


def still(q: np.ndarray, duration: float = 1.0) -> di.Motion:
    zero = np.zeros((2, q.size))
    return di.Motion([0.0, duration], np.tile(q, (2, 1)), zero, zero)


def end_of(robot: VirtualRobot, q: np.ndarray, v: np.ndarray, method: str, loop: str) -> np.ndarray:
    """Return coordinates and velocities after a second."""
    run = robot.simulate(still(q), start={"q": q, "velocity": v}, method=method, loop=loop)
    return np.concatenate([run.truth.motion.q[-1], run.truth.motion.v[-1]])


def solved(rates: Callable[[float, np.ndarray], np.ndarray], y: np.ndarray) -> np.ndarray:
    found = solve_ivp(rates, (0.0, 1.0), y, "DOP853", rtol=1e-11, atol=1e-12)
    assert found.success
    return np.asarray(found.y[:, -1])


def assert_same(found: np.ndarray, exact: np.ndarray) -> None:
    n = exact.size // 2
    for part in (slice(0, n), slice(n, None)):
        assert np.abs(found[part] - exact[part]).max() < TOLERANCE * np.abs(exact[part]).max()


# ---------------------------------------------------------------------------------------------------------- a serial arm
@pytest.fixture(scope="module")
def arm_case() -> tuple[VirtualRobot, np.ndarray, np.ndarray, np.ndarray]:
    pin = pytest.importorskip("pinocchio", reason="the arm's equations come from Pinocchio")
    path = Path(__file__).parents[3] / "benchmarks" / "arm.urdf"
    model = pin.buildModelFromUrdf(str(path))
    data = model.createData()
    q, v = np.array([0.3, -0.7, 0.9, 0.4, -0.5, 0.2]), np.array([0.4, -0.2, 0.3, 0.5, -0.4, 0.6])
    rotors, torque = [8e-3, 8e-3, 3e-3, 6e-4, 6e-4, 6e-4], np.array([40.0, -90.0, -30.0, 8.0, 4.0, -2.0])
    added = GEAR**2 * np.array(rotors)

    def rates(_: float, y: np.ndarray) -> np.ndarray:
        pos, vel = y[:6].copy(), y[6:].copy()
        upper = np.triu(pin.crba(model, data, pos))
        M = upper + np.triu(upper, 1).T + np.diag(added)
        force = torque - GEAR**2 * VISCOUS * vel - pin.rnea(model, data, pos, vel, np.zeros(6))
        return np.concatenate([vel, np.linalg.solve(M, force)])

    robot = without_terms(di.Mechanism.from_urdf(path))
    return machine(robot, rotors, torque.tolist()), q, v, solved(rates, np.concatenate([q, v]))


@pytest.mark.parametrize(("method", "loop"), WAYS)
def test_an_arm_with_rotors_moves_as_pinocchio_and_scipy_say(arm_case: tuple, method: str, loop: str) -> None:
    robot, q, v, exact = arm_case
    assert_same(end_of(robot, q, v, method, loop), exact)


# -------------------------------------------------------------------------------------------------------------- five-bar
def bars(alpha: np.ndarray, rate: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return M, bias, constraint Jacobian and its bias of a five-bar in absolute angles: uniform rods, a mass at P on bar 2."""
    l1, l2, l3, l4 = 0.6, 0.7, 0.7, 0.6
    m1, m2, m3, m4, p = 1.8, 1.0, 1.0, 1.8, 1.0
    M, h = np.zeros((4, 4)), np.zeros(4)
    M[0, 0] = m1 * l1**2 / 3.0 + (m2 + p) * l1**2
    M[1, 1] = m2 * l2**2 / 3.0 + p * l2**2
    M[3, 3] = m4 * l4**2 / 3.0 + m3 * l4**2
    M[2, 2] = m3 * l3**2 / 3.0
    for i, j, size in ((0, 1, (0.5 * m2 + p) * l1 * l2), (3, 2, 0.5 * m3 * l4 * l3)):
        M[i, j] = M[j, i] = size * np.cos(alpha[i] - alpha[j])
        h[i] += size * np.sin(alpha[i] - alpha[j]) * rate[j] ** 2
        h[j] -= size * np.sin(alpha[i] - alpha[j]) * rate[i] ** 2
    # A + l2 e(a2) = B + l3 e(a3)
    signed = np.array([l1, l2, -l3, -l4])
    J = np.array([-signed * np.sin(alpha), signed * np.cos(alpha)])
    bias = np.array([-signed * np.cos(alpha), -signed * np.sin(alpha)]) @ rate**2
    return M, h, J, bias


@pytest.fixture(scope="module")
def five_bar_case() -> tuple[VirtualRobot, np.ndarray, np.ndarray, np.ndarray]:
    described = bare_joints(five_bar.mechanism(), ("alpha1", "alpha4"))  # their rotors are in the drives below
    bare = replace(described, actuators=tuple(replace(a, ratio=1.0, gain=None) for a in described.actuators))
    rotors, torque = [1e-3, 1e-3], np.array([0.9, -0.6])
    start = five_bar.inverse_kinematics((0.05, 0.85))[0]
    speed = np.array([0.25, -0.15])
    J = bars(start, np.zeros(4))[2]
    passive = np.linalg.solve(J[:, 1:3], -J[:, [0, 3]] @ speed)
    push = np.array([torque[0], 0.0, 0.0, torque[1]])
    added, viscous = np.zeros(4), np.zeros(4)
    added[[0, 3]], viscous[[0, 3]] = GEAR**2 * np.array(rotors), GEAR**2 * VISCOUS

    def rates(_: float, y: np.ndarray) -> np.ndarray:
        M, h, J, bias = bars(y[:4], y[4:])
        K = np.block([[M + np.diag(added), J.T], [J, np.zeros((2, 2))]])
        a = np.linalg.solve(K, np.concatenate([push - viscous * y[4:] - h, -bias]))[:4]
        return np.concatenate([y[4:], a])

    y = solved(rates, np.concatenate([start, [speed[0], *passive, speed[1]]]))
    closed = np.array([0.2, 0.0]) + 0.6 * np.array([np.cos(y[3]), np.sin(y[3])]) + 0.7 * np.array([np.cos(y[2]), np.sin(y[2])])
    closed -= 0.6 * np.array([np.cos(y[0]), np.sin(y[0])]) + 0.7 * np.array([np.cos(y[1]), np.sin(y[1])])
    assert np.abs(closed).max() < 1e-9  # the reference itself did not drift open
    assert np.abs(y[:4] - start).max() > 0.05
    return machine(bare, rotors, torque.tolist()), start[[0, 3]], speed, y[[0, 3, 4, 7]]


@pytest.mark.parametrize(("method", "loop"), WAYS)
def test_a_five_bar_moves_as_lagrange_multipliers_say(five_bar_case: tuple, method: str, loop: str) -> None:
    robot, q, v, exact = five_bar_case
    assert_same(end_of(robot, q, v, method, loop), exact)


# ----------------------------------------------------------------------------------------------------------------- 2-PRR
@pytest.mark.parametrize(("method", "loop"), WAYS)
@pytest.mark.parametrize("parameters", ["paper", "full"])
def test_a_2prr_moves_as_its_energies_say(parameters: str, method: str, loop: str) -> None:
    """By hand: T = what moves along the rail + f s'^2 / 2, s = rho1 + rho2, f = (carried / 4 + m6) A^2 + sum I B^2."""
    phi = {**prr2.THEORETICAL, "m1": 3.0, "m2": 2.5, "Fc1": 0.0, "Fc2": 0.0, "c1": 0.0, "c2": 0.0}
    robot = prr2.mechanism(parameters, phi)
    rotors, force = [1.2e-2, 1.2e-2], np.array([-10.0, -20.0])  # stays within the guides
    L, a, d, g = prr2.BAR, prr2.RAIL, prr2.SPACING, prr2.GRAVITY
    both, sum_i, carried = np.ones(2), phi["I3"] + phi["I4"] + phi["I5"], phi["m3"] + phi["m4"] + phi["m5"]
    along = ((phi["m3"] + phi["m4"], (0.75, -0.25)), (phi["m5"], (0.25, -0.75)), (phi["m6"], (0.5, -0.5)))
    constant = np.diag([phi["m1"], phi["m2"]]) + GEAR**2 * np.diag(rotors)
    constant = constant + sum(m * np.outer(j, j) for m, j in along)

    def rates(_: float, y: np.ndarray) -> np.ndarray:
        alpha = np.arccos(0.5 * (a - d - y[0] - y[1]) / L)
        A, B = 0.5 / np.tan(alpha), 0.5 / (L * np.sin(alpha))
        dA, dB = -0.5 / np.sin(alpha) ** 2, -0.5 * np.cos(alpha) / (L * np.sin(alpha) ** 2)
        f = (0.25 * carried + phi["m6"]) * A**2 + sum_i * B**2
        slope = 2.0 * ((0.25 * carried + phi["m6"]) * A * dA + sum_i * B * dB) * B
        weight = -g * A * (phi["m6"] + 0.5 * carried)
        push = force - GEAR**2 * VISCOUS * y[2:] - both * (0.5 * slope * (y[2] + y[3]) ** 2 + weight)
        return np.concatenate([y[2:], np.linalg.solve(constant + f * np.outer(both, both), push)])

    q, v = np.array(prr2.START), np.array([0.05, -0.03])
    exact = solved(rates, np.concatenate([q, v]))
    assert np.abs(exact[:2] - q).max() > 0.02
    assert_same(end_of(machine(robot, rotors, force.tolist()), q, v, method, loop), exact)


# ------------------------------------------------------------------------------------------------- the delayed loop, theory
def slide(mass: float, reflected: float, force: float) -> VirtualRobot:
    """Return a mass on a slide; its motor has the inertia `reflected` [kg] behind the gear."""
    body = di.Body("load", np.array([mass, *np.zeros(9)]))
    joint = di.Joint("s", "prismatic", "base", "load", axis=np.array([1.0, 0.0, 0.0]))
    robot = di.Mechanism("slide", (di.Body("base"), body), (joint,), terms=(), gravity=np.zeros(3))
    drive = Drive("s", Motor(0.1, inertia=reflected / GEAR**2), Transmission.gear(GEAR))
    return VirtualRobot(robot, [drive], OpenLoop(torque=[force]), step=1e-3)


@pytest.mark.parametrize("share", [0.3, 0.95])
def test_a_delayed_loop_converges_geometrically_below_the_actuator_s_inertia(share: float) -> None:
    """J a_k = F - m a_(k-1): a_k = F / (J + m) (1 - (-m/J)^k), so it swings in with the ratio m / J of the inertias."""
    J, force, N = 2.0, 3.0, 40
    robot = slide(share * J, J, force)
    run = robot.simulate(still(np.zeros(1), N * 1e-3), method="decoupled", loop="delayed", integrator="euler", log_cycle=1e-3)
    k = 1.0 + np.arange(N)
    expected = force / (J * (1.0 + share)) * (1.0 - (-share) ** k)
    np.testing.assert_allclose(run.truth.motion.a[:N, 0], expected, rtol=1e-9)


def test_a_delayed_loop_diverges_above_the_actuator_s_inertia_and_warns_exactly_then(recwarn: pytest.WarningsRecorder) -> None:
    rest = still(np.zeros(1), 0.5)
    slide(0.99, 1.0, 3.0).simulate(rest, method="decoupled", loop="delayed")
    assert not [w for w in recwarn if issubclass(w.category, SimulationWarning)]
    with pytest.warns(SimulationWarning, match="diverges"), pytest.raises(SimulationError, match="instability"):
        slide(1.05, 1.0, 3.0).simulate(rest, method="decoupled", loop="delayed")
    exact = slide(1.05, 1.0, 3.0).simulate(rest, method="decoupled", loop="exact")
    assert exact.truth.motion.v[-1, 0] == pytest.approx(0.5 * 3.0 / 2.05, rel=1e-9)
