"""The robot and the data of the benchmarks: the 6-axis arm of arm.urdf and an exciting motion."""

from __future__ import annotations

from dataclasses import dataclass
from math import pi
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import dynident as di

Array = NDArray[np.float64]

RATE = 1000.0  # [Hz]
NOISE = (4.0, 5.0, 3.0, 1.0, 0.8, 0.5)  # standard deviation of the torque sensors [N m]

URDF = Path(__file__).with_name("arm.urdf")


@dataclass(frozen=True)
class Data:
    """A motion and its measured torques.

    Parameters
    ----------
    motion : Motion
        N samples of 6 joints.
    effort : ndarray, (N, 6)
        Torques with friction, rotor inertia, offset and noise [N m].
    """

    motion: di.Motion
    effort: Array


def arm() -> di.Mechanism:
    """Return the arm with rotor inertia, viscous and Coulomb friction and offset at every joint.

    Returns
    -------
    Mechanism
        84 standard parameters.
    """
    return di.Mechanism.from_urdf(URDF)


def truth(robot: di.Mechanism) -> Array:
    """Return the true parameters of the torques: those of the URDF and invented joint terms.

    Parameters
    ----------
    robot : Mechanism
        The arm.

    Returns
    -------
    ndarray, (84,)
        Standard parameters.
    """
    phi = robot.parameters.values.copy()
    joint_terms = slice(robot.tree.inertias.size, None)
    phi[joint_terms] = np.random.default_rng(1).uniform(0.1, 1.0, phi[joint_terms].size)
    return phi


def record(robot: di.Mechanism, samples: int, seed: int = 0) -> Data:
    """Return a motion of five harmonics per joint and its noisy torques.

    Parameters
    ----------
    robot : Mechanism
        The arm.
    samples : int
        Number of samples at 1 kHz.
    seed : int
        Seed of amplitudes, phases and noise.

    Returns
    -------
    Data
        Motion and torques.
    """
    generator = np.random.default_rng(seed)
    t = np.arange(samples) / RATE
    q, v, a = (np.zeros((samples, robot.dof)) for _ in range(3))
    for j in range(robot.dof):
        for k in range(1, 6):
            w = 2.0 * pi * 0.13 * k
            size, phase = generator.normal() / k, generator.uniform(0.0, 2.0 * pi)
            q[:, j] += size * np.sin(w * t + phase)
            v[:, j] += size * w * np.cos(w * t + phase)
            a[:, j] -= size * w**2 * np.sin(w * t + phase)
    motion = di.Motion(t, q, v, a)
    effort = di.inverse_dynamics(robot, motion, truth(robot))
    effort += generator.normal(size=effort.shape) * np.array(NOISE)
    return Data(motion, effort)
