"""PID on the pose of the tool or platform (document 4, fig. 2.23, after Callegari): forces there, brought to the motors by J^T.

F = kp e + kd e' + ki int e dt,     A^T tau = J^T F + ID_model(reference)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.control.checks import optional_model
from dynident.control.controller import Machine, Reference
from dynident.control.evaluate import Evaluator
from dynident.control.task import check_coordinates
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
    ) -> None:
        super().__init__(space, kp, kd, ki, cycle=cycle, derivative_filter=derivative_filter, preload=preload, delay=delay)
        optional_model(self._owner, "feedforward", feedforward)
        self.feedforward = feedforward

    def _prepare(self, robot: Machine) -> None:
        self._look_with(robot.mechanism, robot)
        self._model: Evaluator | None = None
        if self.feedforward is not None:
            check_coordinates(self._owner, self.feedforward, robot.mechanism)
            self._model = Evaluator(self.feedforward)

    def _forces(self, reference: Reference, wanted: Spot, actual: Spot, push: Array) -> Array:
        f = actual.jacobian.T @ push
        if self._model is not None:
            self._model.place(reference.q, reference.v)
            f = f + self._model.torques(reference.a)
        return np.asarray(f)
