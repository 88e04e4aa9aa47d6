"""Runs of robots with drives against equations written here, integrated by scipy: nothing of the simulation is shared.

A serial arm with rotors on Pinocchio's matrices, and a five-bar, lying and upright, as Lagrange multipliers on the angles of
its bars. Coupled and decoupled (exact, iterated) must all be that solution within 1e-6 after a second.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from oracle_runs import GEAR, VISCOUS, WAYS, assert_same, end_of, machine, solved, still
from plant_cases import without_terms
from small_robots import BASES, DISTAL, DRIVEN, POINT_MASS, ROD_MASSES, bare, direction, five_bar, five_bar_angles

import dynident as di
from dynident.control import OpenLoop
from dynident.drive import Drive, Motor, Transmission
from dynident.errors import SimulationError, SimulationWarning
from dynident.simulate import VirtualRobot


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
def bars(alpha: np.ndarray, rate: np.ndarray, g: float) -> tuple[np.ndarray, ...]:
    """Return M, bias, constraint Jacobian and its bias of a five-bar in absolute angles: uniform rods, a mass at P on bar 2.

    g acts against y.
    """
    l1, l2, l3, l4 = DRIVEN, DISTAL, DISTAL, DRIVEN
    (m1, m2), p = ROD_MASSES, POINT_MASS
    m3, m4 = m2, m1
    M, h = np.zeros((4, 4)), np.zeros(4)
    M[0, 0] = m1 * l1**2 / 3.0 + (m2 + p) * l1**2
    M[1, 1] = m2 * l2**2 / 3.0 + p * l2**2
    M[3, 3] = m4 * l4**2 / 3.0 + m3 * l4**2
    M[2, 2] = m3 * l3**2 / 3.0
    for i, j, size in ((0, 1, (0.5 * m2 + p) * l1 * l2), (3, 2, 0.5 * m3 * l4 * l3)):
        M[i, j] = M[j, i] = size * np.cos(alpha[i] - alpha[j])
        h[i] += size * np.sin(alpha[i] - alpha[j]) * rate[j] ** 2
        h[j] -= size * np.sin(alpha[i] - alpha[j]) * rate[i] ** 2
    lifted = np.array([(0.5 * m1 + m2 + p) * l1, (0.5 * m2 + p) * l2, 0.5 * m3 * l3, (0.5 * m4 + m3) * l4])
    h += g * lifted * np.cos(alpha)
    # A + l2 e(a2) = B + l3 e(a3)
    signed = np.array([l1, l2, -l3, -l4])
    J = np.array([-signed * np.sin(alpha), signed * np.cos(alpha)])
    bias = np.array([-signed * np.cos(alpha), -signed * np.sin(alpha)]) @ rate**2
    return M, h, J, bias


@pytest.fixture(scope="module", params=[0.0, 9.81], ids=["lying", "upright"])
def five_bar_case(request: pytest.FixtureRequest) -> tuple[VirtualRobot, np.ndarray, np.ndarray, np.ndarray]:
    g = request.param
    described = bare(five_bar())  # its rotors are in the drives below
    actuators = tuple(replace(a, ratio=1.0, gain=None) for a in described.actuators)
    robot = replace(described, actuators=actuators, gravity=np.array([0.0, -g, 0.0]))
    rotors, start, speed = [1e-3, 1e-3], five_bar_angles((0.05, 0.85)), np.array([0.25, -0.15])
    _, weight, J, _ = bars(start, np.zeros(4), g)
    passive = np.linalg.solve(J[:, 1:3], -J[:, [0, 3]] @ speed)
    # The weight at the start is held, so that the bars stay together for a second; 0.9 and -0.6 N m move them.
    held = weight[[0, 3]] - J[:, [0, 3]].T @ np.linalg.solve(J[:, 1:3].T, weight[1:3])
    torque = np.array([0.9, -0.6]) + held
    push = np.array([torque[0], 0.0, 0.0, torque[1]])
    added, viscous = np.zeros(4), np.zeros(4)
    added[[0, 3]], viscous[[0, 3]] = GEAR**2 * np.array(rotors), GEAR**2 * VISCOUS

    def rates(_: float, y: np.ndarray) -> np.ndarray:
        M, h, J, bias = bars(y[:4], y[4:], g)
        K = np.block([[M + np.diag(added), J.T], [J, np.zeros((2, 2))]])
        a = np.linalg.solve(K, np.concatenate([push - viscous * y[4:] - h, -bias]))[:4]
        return np.concatenate([y[4:], a])

    y = solved(rates, np.concatenate([start, [speed[0], *passive, speed[1]]]))
    e = direction(y[:4])
    closed = BASES[1] + DRIVEN * e[3] + DISTAL * e[2] - BASES[0] - DRIVEN * e[0] - DISTAL * e[1]
    assert np.abs(closed).max() < 1e-9  # the reference itself did not drift open
    assert np.abs(y[:4] - start).max() > 0.05
    return machine(robot, rotors, torque.tolist()), start[[0, 3]], speed, y[[0, 3, 4, 7]]


@pytest.mark.parametrize(("method", "loop"), WAYS)
def test_a_five_bar_moves_as_lagrange_multipliers_say(five_bar_case: tuple, method: str, loop: str) -> None:
    robot, q, v, exact = five_bar_case
    assert_same(end_of(robot, q, v, method, loop), exact)


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
    run = robot.simulate(still(np.zeros(1), N * 1e-3), method="decoupled", loop="delayed", log_cycle=1e-3)
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
