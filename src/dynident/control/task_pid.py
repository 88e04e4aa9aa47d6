"""PID on the pose of the tool or platform [Roldan2017, fig. 2.23; Callegari2006]: forces there, brought to the motors by J^T.

F = kp e + kd e' + ki int e dt,     A^T tau = J^T F + ID_model(reference) + N^T M a_posture

The last term is there with fewer rows than coordinates: the freedoms that are left follow the posture of the reference, which
the tool does not feel (`posture.py`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.control.checks import optional_model
from dynident.control.controller import Machine, Measurement, Reference
from dynident.control.evaluate import Evaluator
from dynident.control.posture import Posture, loaded, weighted_inverse
from dynident.control.task import check_coordinates, drives_of, enough
from dynident.control.task_law import TaskErrorPID
from dynident.control.workspace import Spot, Workspace
from dynident.mechanism import Mechanism

Array = NDArray[np.float64]


class TaskPID(TaskErrorPID):
    """PID in a work space of m rows; a `Controller`.

    Parameters
    ----------
    space : Workspace
        What is controlled: ``ToolSpace("tool")``, ``CoordinateSpace()`` or ``MapSpace(position, jacobian)``.
    kp : float or array_like (m,)
        Stiffness [N/m, N m/rad].
    kd : float or array_like (m,)
        Damping [N s/m, N m s/rad].
    ki : float or array_like (m,)
        Integral gain [N/(m s), N m/(rad s)]; it waits while an actuator is at its limit.
    cycle : float
        Cycle time [s].
    derivative_filter : float or array_like (m,)
        Corner frequency of a first-order low-pass on the velocity error [Hz]; 0 is none.
    feedforward : Mechanism, optional
        Model whose inverse dynamics on the reference is added.
    preload : float or array_like (k,)
        Torques whose internal part is added [N m, N]; refused on a robot without more motors than freedoms.
    delay : float
        Time from the sampling of the sensors to the command at the motors [s], a whole multiple of the simulation's step.
    posture : array_like (2,), optional
        Gains kp [1/s^2] and kd [1/s] with which the freedoms that fewer rows than coordinates leave follow the reference's
        posture; when omitted as fast as the slowest row where the run starts, kp = min_i kp_i (J M^-1 J^T)_ii, and
        critically damped.
    """

    _owner = "task PID"

    def __init__(
        self,
        space: Workspace,
        kp: ArrayLike,
        kd: ArrayLike,
        ki: ArrayLike = 0.0,
        *,
        cycle: float,
        derivative_filter: ArrayLike = 0.0,
        feedforward: Mechanism | None = None,
        preload: ArrayLike = 0.0,
        delay: float = 0.0,
        posture: ArrayLike | None = None,
    ) -> None:
        super().__init__(space, kp, kd, ki, cycle=cycle, derivative_filter=derivative_filter, preload=preload, delay=delay)
        optional_model(self._owner, "feedforward", feedforward)
        self.feedforward = feedforward
        self.posture = posture
        Posture.of(self._owner, posture, self.kp, self.kd)  # checks it

    def _prepare(self, robot: Machine) -> None:
        self._look_with(robot.mechanism, robot)
        self._left = enough(self._owner, self._eyes.space, robot.mechanism)
        self._rotors = np.array([drive.reflected_inertia for drive in drives_of(robot)])
        self._posture: Posture | None = None
        self._model: Evaluator | None = None
        if self.feedforward is not None:
            check_coordinates(self._owner, self.feedforward, robot.mechanism)
            self._model = Evaluator(self.feedforward)

    def _forces(self, reference: Reference, measurement: Measurement, wanted: Spot, actual: Spot, push: Array) -> Array:
        f = actual.jacobian.T @ push
        if self._left:
            here, J = self._eyes.here, actual.jacobian
            M = loaded(here, self._rotors)
            _, free = weighted_inverse(J, M, here)
            if self._posture is None:
                kp = float(np.min(self._gains[0] * np.einsum("ij,ji->i", J, np.linalg.solve(M, J.T))))
                self._posture = Posture.of(self._owner, self.posture, kp, 2.0 * np.sqrt(kp))
            f = f + free.T @ (M @ self._posture.pull(reference, measurement))
        if self._model is not None:
            self._model.place(reference.q, reference.v)
            f = f + self._model.torques(reference.a)
        return np.asarray(f)
