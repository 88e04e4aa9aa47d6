"""Small machines and motions that several tests of the virtual robot share."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

import dynident as di
from dynident.control import PID, Cascade
from dynident.drive import Drive, Encoder, Motor, Transmission
from dynident.friction import Coulomb, Viscous
from dynident.mechanism import parameters as inertia
from dynident.simulate import Run, Sensors, VirtualRobot
from dynident.trajectory import Fourier, Trajectory


def arm(axes: int = 3) -> di.Mechanism:
    """Return an arm of 2 or 3 axes with inertias, a vertical first axis and parallel others."""
    rows = [(0.0, np.pi / 2, 0.3, 0.0), (0.4, 0.0, 0.0, 0.0), (0.35, 0.0, 0.0, 0.0)][:axes]
    plain = di.Mechanism.from_dh(rows, name="arm")
    phi = plain.parameters
    values = {}
    for i, mass in enumerate((8.0, 5.0, 3.0)[:axes]):
        com = np.array([-0.2, 0.01 * i, 0.02]) if i else np.array([0.0, 0.02, 0.05])
        body = inertia.from_com(mass, com, np.diag([0.02, 0.03, 0.04]) * mass / 3.0)
        values |= {f"{symbol}_link_{i + 1}": value for symbol, value in zip(inertia.SYMBOLS, body, strict=True)}
    return plain.with_parameters(phi.replace(values))


def geared_drives(mechanism: di.Mechanism, **motor: Any) -> tuple[Drive, ...]:
    """Return drives with 100:1 gears, rotor inertia, viscous and Coulomb friction, and encoders of 4096 counts."""
    options = {"torque_constant": 0.15, "inertia": 2e-4, **motor}
    friction = (Coulomb() + Viscous()).using(fc=0.03, fv=2e-4)
    encoder = Encoder(2.0 * np.pi / 4096, filter=400.0)
    return tuple(Drive(a.name, Motor(**options), Transmission.gear(100.0), friction, encoder) for a in mechanism.actuators)


def cascade(**changes: Any) -> Cascade:
    """Return a cascade that suits the geared arm."""
    options: dict[str, Any] = {"position_cycle": 1e-3, "velocity_cycle": 2.5e-4, "velocity_feedforward": 1.0, **changes}
    return Cascade(40.0, 1.0, 40.0, **options)


def geared_arm(axes: int = 3, controller: Any = None, **options: Any) -> VirtualRobot:
    """Return the geared arm with its cascade."""
    robot = arm(axes)
    return VirtualRobot(robot, options.pop("drives", geared_drives(robot)), controller or cascade(), **options)


def excitation(dof: int, duration: float = 10.0, seed: int = 0, size: float = 0.5) -> Trajectory:
    """Return a Fourier series that starts and ends at rest."""
    family = Fourier(1.0 / duration, 5)
    rng = np.random.default_rng(seed)
    return Trajectory(family, rng.normal(size=(dof, family.size)) * size)


def pid(kp: float = 2000.0, kd: float = 100.0, **options: Any) -> PID:
    """Return a PID with the cycle that most tests use."""
    return PID(kp, kd, cycle=options.pop("cycle", 1e-3), **options)


def noisy_arm() -> VirtualRobot:
    drives = tuple(replace(d, encoder=replace(d.encoder, noise=1e-4)) for d in geared_drives(arm(2)))
    sensors = Sensors(position_noise=1e-5, effort_noise=0.02, velocity_noise=0.1, jitter=1e-4, dropped=0.05)
    return geared_arm(2, drives=drives, sensors=sensors)


def same(one: Run, other: Run) -> bool:
    arrays = ("t", "position", "effort", "velocity")
    logs = all(np.array_equal(getattr(one.log, name), getattr(other.log, name)) for name in arrays)
    return logs and one.truth.checksum() == other.truth.checksum()
