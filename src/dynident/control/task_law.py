"""What controllers in a work space have in common: how they are called, and the PID of those that command torques."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import SimpleNamespace
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.checks import gain, per_actuator
from dynident.control.checks import cycle_time, dead_time, no_room
from dynident.control.controller import Machine, Measurement, Reference
from dynident.control.filters import low_pass_share
from dynident.control.task import Eyes, drives_of, torque_limits
from dynident.control.tick import low_pass_step, pid_law
from dynident.control.workspace import Spot, Workspace
from dynident.errors import DynidentError
from dynident.mechanism import Mechanism

Array = NDArray[np.float64]


class TaskLaw(ABC):
    """A `Controller` in a work space.

    Parameters
    ----------
    space : Workspace
        What is controlled.
    """

    _owner: ClassVar[str]  # how messages name it

    def __init__(self, space: Workspace) -> None:
        if not callable(getattr(space, "bind", None)):
            raise DynidentError(f"space is a {type(space).__name__}; give a ToolSpace, CoordinateSpace or MapSpace")
        self.space = space

    def reset(self, robot: Machine, start: Measurement) -> None:
        """Prepare for a run.

        Parameters
        ----------
        robot : Machine
            Robot with k actuators and their drives.
        start : Measurement
            What the sensors say at the start.
        """
        self._prepare(robot)

    def update(self, t: float, reference: Reference, measurement: Measurement) -> Array:
        """Return what is held until the next update: torques, currents or voltages, as `command` says.

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
            Torques behind the gears [N m, N], motor currents [A] or motor voltages [V].
        """
        return self._output(reference, measurement)

    @abstractmethod
    def _prepare(self, robot: Machine) -> None:
        """Forget the past and read the robot."""

    @abstractmethod
    def _output(self, reference: Reference, measurement: Measurement) -> Array:
        """Return the command, (k,)."""

    def _each(self, values: ArrayLike, count: int, field: str) -> Array:
        return per_actuator(values, count, f"{self._owner}: {field}")


class TaskErrorPID(TaskLaw):
    """kp e + kd e' + ki int e dt in the work space, which subclasses turn into torques; the integral waits at their limits.

    Parameters
    ----------
    space : Workspace
        What is controlled.
    kp, kd, ki : float or array_like (m,)
        Gains of the error, its derivative and its integral.
    cycle : float
        Cycle time [s].
    derivative_filter : float or array_like (m,)
        Corner frequency of a first-order low-pass on the velocity error [Hz]; 0 is none.
    preload : float or array_like (k,)
        Torques whose internal part is added [N m, N]; refused on a robot without more motors than freedoms.
    delay : float
        Time from the sampling of the sensors to the command at the motors [s], a whole multiple of the simulation's step.
    """

    command: Literal["torque"] = "torque"

    def __init__(
        self,
        space: Workspace,
        kp: ArrayLike,
        kd: ArrayLike,
        ki: ArrayLike,
        *,
        cycle: float,
        derivative_filter: ArrayLike,
        preload: ArrayLike,
        delay: float,
    ) -> None:
        super().__init__(space)
        self.kp, self.kd, self.ki = (gain(self._owner, n, x) for n, x in (("kp", kp), ("kd", kd), ("ki", ki)))
        self.derivative_filter = gain(self._owner, "derivative_filter", derivative_filter)
        self.cycle = cycle_time(self._owner, "cycle", cycle)
        self.preload = gain(self._owner, "preload", preload, signed=True)
        self.delay = dead_time(self._owner, "delay", delay)

    def _look_with(self, believed: Mechanism, robot: Machine) -> None:
        """See the work space through a model of the robot, with empty integrals and filters."""
        self._eyes = Eyes(self.space, believed)
        rows = self._eyes.space.rows
        self._gains = [self._each(x, rows, "gain") for x in (self.kp, self.kd, self.ki)]
        self._share = self._each(low_pass_share(self.derivative_filter, self.cycle), rows, "derivative_filter")
        no_room(self._owner, self.preload, believed)
        u = self._each(self.preload, len(believed.actuators), "preload")
        self._preload = u if np.any(u) else None
        self._limits = torque_limits(drives_of(robot))
        self._sum, self._rate, self._first, self._full = np.zeros(rows), np.zeros(rows), True, False

    def _output(self, reference: Reference, measurement: Measurement) -> Array:
        kp, kd, ki = self._gains
        wanted, actual, e = self._eyes.look(reference, measurement)
        rate = wanted.velocity - actual.velocity
        self._rate = low_pass_step(self._rate, rate, 1.0 if self._first else self._share)
        if not self._full:
            self._sum = self._sum + self.cycle * e
        self._first = False
        f = self._forces(reference, measurement, wanted, actual, pid_law(e, self._rate, self._sum, (kp, kd, ki)))
        tau = self._eyes.here.actuator_torques(f, self._preload)
        self._full = bool(np.any(np.abs(tau) > self._limits))
        return np.clip(tau, -self._limits, self._limits)

    def feedback(self, x: Array) -> tuple[Array, Array, Array, Array]:
        """Return what the law does about rest at a pose of the robot of its last run.

        Forces are S (kp e + kd e' + ki int e dt) + P dx + D dv with e = J dx, dx the reference less the measurement.

        Parameters
        ----------
        x : ndarray, (n,)
            Pose.

        Returns
        -------
        J : ndarray, (m, n)
            Jacobian of the work space.
        S : ndarray, (n, m)
            Generalised forces per output of the PID.
        P, D : ndarray, (n, n)
            Generalised forces per error of posture and of its velocity.
        """
        zero = np.zeros(x.size)
        rest: Any = SimpleNamespace(q=x, v=zero, a=zero)

        def seen(position: Array, velocity: Array) -> Any:
            return SimpleNamespace(x=position, v=velocity)

        wanted, actual, e = self._eyes.look(rest, seen(x, zero))
        still = self._forces(rest, seen(x, zero), wanted, actual, 0.0 * e)
        S = [self._forces(rest, seen(x, zero), wanted, actual, one) - still for one in np.eye(e.size)]
        P = [still - self._forces(rest, seen(x + one, zero), wanted, actual, 0.0 * e) for one in np.eye(x.size)]
        D = [still - self._forces(rest, seen(x, one), wanted, actual, 0.0 * e) for one in np.eye(x.size)]
        return actual.jacobian, np.array(S).T, np.array(P).T, np.array(D).T

    @abstractmethod
    def _forces(self, reference: Reference, measurement: Measurement, wanted: Spot, actual: Spot, push: Array) -> Array:
        """Return the generalised forces (n,) for what the PID asks for in the work space, (m,)."""
