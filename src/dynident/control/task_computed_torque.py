"""Computed torque in a work space (document 4, 3.3.3): PID and acceleration feed-forward there, inverse dynamics of a model.

u = w_ref'' + kp e + kd e' + ki int e dt,    a = J^-1 (u - J' v),    A^T tau = ID_model(x, v, a)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.control.controller import Machine, Reference
from dynident.control.evaluate import solve
from dynident.control.task import check_coordinates, square
from dynident.control.task_law import TaskErrorPID
from dynident.control.workspace import Spot, Workspace
from dynident.errors import require
from dynident.mechanism import Mechanism

Array = NDArray[np.float64]


class TaskComputedTorque(TaskErrorPID):
    """Computed torque in a work space with as many rows as the robot has coordinates; a `Controller`.

    The model must hold everything that the motors move: rotor and gear inertia and friction as joint terms (ia, fv, fc)
    too, which the thesis leaves out (ERR-20 of its digest).

    Parameters
    ----------
    space : Workspace
        What is controlled: ``ToolSpace("tool")``, ``CoordinateSpace()`` or ``MapSpace(position, jacobian)``.
    model : Mechanism
        What the controller believes, kinematics and dynamics; its coordinates are those of the robot.
    kp : float or array_like (n,)
        Gain of the position error [1/s^2].
    kd : float or array_like (n,)
        Gain of the velocity error [1/s].
    ki : float or array_like (n,)
        Gain of the error's integral [1/s^3]; it waits while an actuator is at its limit.
    cycle : float
        Cycle time [s].
    derivative_filter : float or array_like (n,)
        Corner frequency of a first-order low-pass on the velocity error [Hz]; 0 is none.
    preload : float or array_like (k,)
        Torques whose internal part is added [N m, N]; refused on a robot without more motors than freedoms.
    delay : float
        Time from the sampling of the sensors to the command at the motors [s], a whole multiple of the simulation's step.
    """

    _owner = "task computed torque"

    def __init__(
        self,
        space: Workspace,
        model: Mechanism,
        kp: ArrayLike,
        kd: ArrayLike,
        ki: ArrayLike = 0.0,
        *,
        cycle: float,
        derivative_filter: ArrayLike = 0.0,
        preload: ArrayLike = 0.0,
        delay: float = 0.0,
    ) -> None:
        require(model, Mechanism, f"{self._owner}: model")
        super().__init__(space, kp, kd, ki, cycle=cycle, derivative_filter=derivative_filter, preload=preload, delay=delay)
        self.model = model

    def _prepare(self, robot: Machine) -> None:
        check_coordinates(self._owner, self.model, robot.mechanism)
        square(self._owner, self.space.bind(self.model), self.model)
        self._look_with(self.model, robot)

    def _forces(self, reference: Reference, wanted: Spot, actual: Spot, push: Array) -> Array:
        u = wanted.jacobian @ reference.a + wanted.bias + push
        a = solve(actual.jacobian, u - actual.bias, self.model, "the work space does not determine the coordinates")
        return self._eyes.here.torques(a)
