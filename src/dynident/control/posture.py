"""The freedoms that a work space of fewer rows than coordinates leaves: they follow the posture of the reference.

J+ = M^-1 J^T (J M^-1 J^T)^-1,    N = 1 - J+ J

J+ is the inverse of J with the least kinetic energy, and N lets through what the work space does not feel, neither as a motion
(J N = 0) nor as a force of the robot's inertia (J M^-1 N^T = 0). An acceleration of the task and one of the posture become

    a = J+ w'' + N a_posture,    a_posture = a_ref + kd (v_ref - v) + kp (q_ref - q)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.checks import gain
from dynident.control.controller import Measurement, Reference
from dynident.control.distribution import SINGULAR
from dynident.control.evaluate import Evaluator
from dynident.errors import DynidentError

Array = NDArray[np.float64]


def weighted_inverse(J: Array, M: Array, robot: Evaluator) -> tuple[Array, Array]:
    """Return the inertia-weighted inverse of a Jacobian and what it leaves free."""
    if np.linalg.eigvalsh(M)[0] <= 0.0:
        raise DynidentError(
            f"robot '{robot.mechanism.name}': the mass matrix that the controller knows is not positive definite, so the "
            "freedoms that the work space leaves have no inertia; give every moving link one"
        )
    half = np.linalg.inv(np.linalg.cholesky(M))  # M^-1 = half^T half
    U, sizes, Vt = np.linalg.svd(J @ half.T, full_matrices=False)
    if sizes[-1] <= SINGULAR * sizes[0]:
        raise DynidentError(
            f"robot '{robot.mechanism.name}': the tool cannot move along all rows of the work space here (a singularity); keep "
            "the reference away from it, or leave rows out"
        )
    inverse = half.T @ Vt.T @ (U.T / sizes[:, None])
    return np.asarray(inverse), np.asarray(np.eye(M.shape[0]) - inverse @ J)


def loaded(robot: Evaluator, rotors: Array) -> Array:
    """Return the mass matrix of a robot with its drives."""
    A = robot.actuator_rows()
    return np.asarray(robot.inertia() + A.T @ (rotors[:, None] * A))


class Posture:
    """PD of all coordinates towards the reference, for the freedoms that a work space leaves.

    Parameters
    ----------
    kp : float
        [1/s^2].
    kd : float
        [1/s].
    """

    def __init__(self, kp: float, kd: float) -> None:
        self.kp, self.kd = kp, kd

    @classmethod
    def of(cls, owner: str, given: ArrayLike | None, kp: ArrayLike, kd: ArrayLike) -> Posture:
        """Return the posture's gains: those given, or the smallest of the task."""
        if given is None:
            return cls(float(np.min(kp)), float(np.min(kd)))
        values = np.asarray(gain(owner, "posture", given))
        if values.shape != (2,):
            raise DynidentError(f"{owner}: posture has shape {values.shape}; give two numbers, kp [1/s^2] and kd [1/s]")
        return cls(*values.tolist())

    def pull(self, reference: Reference, measurement: Measurement) -> Array:
        """Return the acceleration back to the reference."""
        return np.asarray(self.kd * (reference.v - measurement.v) + self.kp * (reference.q - measurement.x))
