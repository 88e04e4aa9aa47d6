"""Computed torque in a work space [Roldan2017, section 3.3.3]: PID and acceleration feed-forward, inverse dynamics of a model.

u = w_ref'' + kp e + kd e' + ki int e dt,    a = J^-1 (u - J' v),    A^T tau = ID_model(x, v, a)

With fewer rows than coordinates J^-1 is the inertia-weighted inverse, and the freedoms that are left follow the posture of the
reference (`posture.py`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.control.controller import Machine, Measurement, Reference
from dynident.control.evaluate import solve
from dynident.control.posture import Posture, weighted_inverse
from dynident.control.task import check_coordinates, enough
from dynident.control.task_law import TaskErrorPID
from dynident.control.workspace import Spot, Workspace
from dynident.errors import require
from dynident.mechanism import Mechanism

Array = NDArray[np.float64]


class TaskComputedTorque(TaskErrorPID):
    """Computed torque in a work space with at most as many rows as the robot has coordinates; a `Controller`.

    The model must hold everything that the motors move: rotor and gear inertia and friction as joint terms (ia, fv, fc)
    too, which [Roldan2017, section 3.3.3] leaves out.

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
    posture : array_like (2,), optional
        Gains kp [1/s^2] and kd [1/s] with which the freedoms that fewer rows than coordinates leave follow the reference's
        posture; the smallest of the task when omitted.
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
        posture: ArrayLike | None = None,
    ) -> None:
        require(model, Mechanism, f"{self._owner}: model")
        super().__init__(space, kp, kd, ki, cycle=cycle, derivative_filter=derivative_filter, preload=preload, delay=delay)
        self.model = model
        self.posture = posture
        self._posture = Posture.of(self._owner, posture, self.kp, self.kd)

    def _prepare(self, robot: Machine) -> None:
        check_coordinates(self._owner, self.model, robot.mechanism)
        self._left = enough(self._owner, self.space.bind(self.model), self.model)
        self._look_with(self.model, robot)

    def _forces(self, reference: Reference, measurement: Measurement, wanted: Spot, actual: Spot, push: Array) -> Array:
        u = wanted.jacobian @ reference.a + wanted.bias + push
        here = self._eyes.here
        if self._left:
            inverse, free = weighted_inverse(actual.jacobian, here.inertia(), here)
            a = inverse @ (u - actual.bias) + free @ (reference.a + self._posture.pull(reference, measurement))
            return here.torques(a)
        a = solve(actual.jacobian, u - actual.bias, self.model, "the work space does not determine the coordinates")
        return here.torques(a)
