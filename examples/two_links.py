"""The machine that several examples share: two links in a vertical plane on geared servo drives."""

from __future__ import annotations

from typing import Any

import numpy as np

import dynident as di
from dynident.control import Cascade
from dynident.drive import Drive, Encoder, Motor, Transmission
from dynident.friction import Coulomb, Viscous
from dynident.mechanism import from_com

JOINTS = ("shoulder", "elbow")


def arm() -> di.Mechanism:
    """Two links, gravity along -y; rotor inertia and friction are the drives'."""
    rows = [{"a": 0.0, "alpha": 0.0, "d": 0.0, "joint": JOINTS[0]}, {"a": 0.3, "alpha": 0.0, "d": 0.0, "joint": JOINTS[1]}]
    bare = di.Mechanism.from_dh(rows, "modified", "two links", (0.0, -9.81, 0.0)).with_terms(())
    links = [from_com(2.0, (0.15, 0.0, 0.0), np.eye(3) * 0.02), from_com(1.2, (0.12, 0.0, 0.0), np.eye(3) * 0.01)]
    return bare.with_parameters(bare.parameters.replace(np.concatenate(links)))


def machine(robot: di.Mechanism | None = None, controller: Any = None) -> di.VirtualRobot:
    """The arm, or another robot with its two joints, with motors, gears, friction, encoders and cascaded loops."""
    motor = Motor(torque_constant=0.05, inertia=2e-5, current_limit=8.0)
    rubbing = (Coulomb() + Viscous()).using(fc=0.004, fv=2e-5)  # N m at the motor
    drives = tuple(Drive(name, motor, Transmission.gear(80.0), rubbing, Encoder.lines(2048)) for name in JOINTS)
    loops = Cascade(25.0, 0.15, 6.0, position_cycle=1e-3, velocity_cycle=2.5e-4, velocity_feedforward=1.0)
    return di.VirtualRobot(arm() if robot is None else robot, drives, controller or loops, step=2.5e-4)
