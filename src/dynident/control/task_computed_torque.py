"""Computed torque in a work space (document 4, 3.3.3): PID and acceleration feed-forward there, inverse dynamics of a model.

u = w_ref'' + kp e + kd e' + ki int e dt,    a = J^-1 (u - J' v),    A^T tau = ID_model(x, v, a)
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.control.checks import cycle_time, gain, per_actuator
from dynident.control.controller import Machine, Measurement, Reference
from dynident.control.evaluate import solve
from dynident.control.filters import low_pass_share
from dynident.control.task import Eyes, check_coordinates, drives_of, square, torque_limits
from dynident.control.workspace import Workspace
from dynident.errors import require
from dynident.mechanism import Mechanism

Array = NDArray[np.float64]


class TaskComputedTorque:
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
        Torques whose internal part is added [N m, N].
    """

    command: Literal["torque"] = "torque"

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
    ) -> None:
        self.space = space
        require(model, Mechanism, "task computed torque: model")
        self.model = model
        self.kp, self.kd, self.ki = (gain("task computed torque", n, x) for n, x in (("kp", kp), ("kd", kd), ("ki", ki)))
        self.derivative_filter = gain("task computed torque", "derivative_filter", derivative_filter)
        self.cycle = cycle_time("task computed torque", "cycle", cycle)
        self.preload = gain("task computed torque", "preload", preload, signed=True)

    def reset(self, robot: Machine, start: Measurement) -> None:
        """Prepare for a run.

        Parameters
        ----------
        robot : Machine
            Robot with k actuators.
        start : Measurement
            What the sensors say at the start.
        """
        check_coordinates("task computed torque", self.model, robot.mechanism)
        self._eyes = Eyes(self.space, self.model)
        rows = self._eyes.space.rows
        square("task computed torque", self._eyes.space, self.model)
        self._gains = [per_actuator(x, rows, "task computed torque: gain") for x in (self.kp, self.kd, self.ki)]
        share = low_pass_share(self.derivative_filter, self.cycle)
        self._share = per_actuator(share, rows, "task computed torque: derivative_filter")
        u = per_actuator(self.preload, len(self.model.actuators), "task computed torque: preload")
        self._preload = u if np.any(u) else None
        self._limits = torque_limits(drives_of(robot))
        self._sum, self._rate, self._first, self._full = np.zeros(rows), np.zeros(rows), True, False

    def update(self, t: float, reference: Reference, measurement: Measurement) -> Array:
        """Return the torques that are held until the next update.

        Parameters
        ----------
        t : float
            Time [s].
        reference : Reference
            What is wanted now.
        measurement : Measurement
            What the sensors say now.

        Returns
        -------
        ndarray, (k,)
            Torques behind the gears [N m, N].
        """
        kp, kd, ki = self._gains
        wanted, actual, e = self._eyes.look(reference, measurement)
        rate = wanted.velocity - actual.velocity
        self._rate = rate if self._first else self._rate + self._share * (rate - self._rate)
        if not self._full:
            self._sum = self._sum + self.cycle * e
        self._first = False
        u = wanted.jacobian @ reference.a + wanted.bias + kp * e + kd * self._rate + ki * self._sum
        a = solve(actual.jacobian, u - actual.bias, self.model, "the work space does not determine the coordinates")
        robot = self._eyes.here
        tau = robot.actuator_torques(robot.torques(a), self._preload)
        self._full = bool(np.any(np.abs(tau) > self._limits))
        return np.clip(tau, -self._limits, self._limits)
