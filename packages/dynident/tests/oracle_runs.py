"""Runs of robots whose geared motors hold a torque for a second, to compare with equations integrated by scipy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.integrate import solve_ivp

import dynident as di
from dynident.control import OpenLoop
from dynident.drive import Drive, Motor, Transmission
from dynident.friction import Viscous
from dynident.simulate import VirtualRobot

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
