"""What the ready machines share: stated assumptions, joints without the terms that drives carry, gains from a bandwidth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.control import gains_for
from dynident.mechanics import actuator_jacobian, mass_matrix
from dynident.mechanism import Mechanism
from dynident.simulate.model import joint_side

Array = NDArray[np.float64]

DRIVE_TERMS = ("ia", "fv", "fc", "off")


class Assumption(NamedTuple):
    """A number that no document gives.

    Parameters
    ----------
    value : object
        Number, or one per axis or link.
    unit : str
        SI unit.
    why : str
        Why this value.
    """

    value: Any
    unit: str
    why: str


def listed(assumptions: Mapping[str, Assumption]) -> str:
    """Return assumptions as lines to read.

    Parameters
    ----------
    assumptions : mapping of str to Assumption
        Table of a machine.

    Returns
    -------
    str
        One line each: name, value, unit, reason.
    """
    return "\n".join(f"{name} = {a.value} {a.unit}: {a.why}" for name, a in assumptions.items())


def without_terms(mechanism: Mechanism, joints: Sequence[str], terms: Sequence[str] = DRIVE_TERMS) -> Mechanism:
    """Return a robot whose driven joints have no rotor inertia and friction: its drives carry them, and only once.

    Parameters
    ----------
    mechanism : Mechanism
        Robot.
    joints : sequence of str
        Joints that drives turn.
    terms : sequence of str
        Terms to take away.

    Returns
    -------
    Mechanism
        The copy.
    """
    bare = [
        replace(joint, terms={k: v for k, v in joint.terms.items() if k.split(".")[0] not in terms})
        if joint.name in joints
        else joint
        for joint in mechanism.joints
    ]
    return replace(mechanism, joints=tuple(bare), terms=tuple(t for t in mechanism.terms if t not in terms))


def servo_gains(model: Mechanism, q: ArrayLike, bandwidth: float, damping: float) -> tuple[Array, Array]:
    """Return PD gains of every actuator: kp = w^2 J, kd = 2 d w J with the inertia J that it moves at one pose.

    J_k = (k / n) [(A^+)^T M A^+]_kk: with more actuators than freedoms (k > n) the same J everywhere then gives
    A^T J A = M in the mean, so that the closed loop has the wanted bandwidth.

    Parameters
    ----------
    model : Mechanism
        Robot with n coordinates and k actuators, rotors and gears included.
    q : array_like, (n,)
        Pose.
    bandwidth, damping : float
        Of the closed loop [Hz, -].

    Returns
    -------
    kp, kd : ndarray, (k,)
        Gains [N m/rad, N/m] and [N m s/rad, N s/m].
    """
    robot, x = joint_side(model), np.atleast_2d(np.asarray(q, dtype=np.float64))
    A = actuator_jacobian(robot, x)[0]
    inverse = np.linalg.pinv(A)
    J = A.shape[0] / A.shape[1] * np.diag(inverse.T @ mass_matrix(robot, x)[0] @ inverse)
    kp, kd = gains_for(bandwidth, damping)
    return np.asarray(kp * J), np.asarray(kd * J)
