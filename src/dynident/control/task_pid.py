"""PID on the pose of the tool or platform (document 4, fig. 2.23, after Callegari): forces there, brought to the motors by J^T.

F = kp e + kd e' + ki int e dt,     A^T tau = J^T F + ID_model(reference)
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.control.checks import cycle_time, gain, optional_model, per_actuator
from dynident.control.controller import Machine, Measurement, Reference
from dynident.control.evaluate import Evaluator
from dynident.control.filters import low_pass_share
from dynident.control.task import Eyes, check_coordinates, drives_of, torque_limits
from dynident.control.workspace import Workspace
from dynident.mechanism import Mechanism

Array = NDArray[np.float64]


class TaskPID:
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
        Torques whose internal part is added [N m, N].
    """

    command: Literal["torque"] = "torque"

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
    ) -> None:
        self.space = space
        self.kp, self.kd, self.ki = (gain("task PID", n, x) for n, x in (("kp", kp), ("kd", kd), ("ki", ki)))
        self.derivative_filter = gain("task PID", "derivative_filter", derivative_filter)
        self.cycle = cycle_time("task PID", "cycle", cycle)
        optional_model("task PID", "feedforward", feedforward)
        self.feedforward = feedforward
        self.preload = gain("task PID", "preload", preload, signed=True)

    def reset(self, robot: Machine, start: Measurement) -> None:
        """Prepare for a run.

        Parameters
        ----------
        robot : Machine
            Robot with k actuators.
        start : Measurement
            What the sensors say at the start.
        """
        mechanism = robot.mechanism
        self._eyes = Eyes(self.space, mechanism)
        rows = self._eyes.space.rows
        self._gains = [per_actuator(x, rows, "task PID: gain") for x in (self.kp, self.kd, self.ki)]
        self._share = per_actuator(low_pass_share(self.derivative_filter, self.cycle), rows, "task PID: derivative_filter")
        u = per_actuator(self.preload, len(mechanism.actuators), "task PID: preload")
        self._preload = u if np.any(u) else None
        self._limits = torque_limits(drives_of(robot))
        self._model: Evaluator | None = None
        if self.feedforward is not None:
            check_coordinates("task PID", self.feedforward, mechanism)
            self._model = Evaluator(self.feedforward)
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
        f = actual.jacobian.T @ (kp * e + kd * self._rate + ki * self._sum)
        if self._model is not None:
            self._model.place(reference.q, reference.v)
            f = f + self._model.torques(reference.a)
        tau = self._eyes.here.actuator_torques(f, self._preload)
        self._full = bool(np.any(np.abs(tau) > self._limits))
        return np.clip(tau, -self._limits, self._limits)
