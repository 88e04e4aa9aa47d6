"""The cascade with its position loop in the work space [Roldan2017, section 3.3.2, figs. 3.14 and 3.15].

w_v0 = kv e + share w_ref'          every position cycle, e in the work space
rho_v0 = A J^-1 w_v0                at the measured place
then the velocity (and current) loops of every actuator, as in `Cascade`

With fewer rows than coordinates J^-1 is the inertia-weighted inverse J+, and the freedoms that are left follow the posture of
the reference, N (k_posture (q_ref - q) + share v_ref) (`posture.py`).
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dynident.checks import finite_scalar
from dynident.control.cascade import Cascade
from dynident.control.controller import Machine, Measurement, Reference
from dynident.control.evaluate import Evaluator, solve
from dynident.control.filters import low_pass_share
from dynident.control.posture import loaded, weighted_inverse
from dynident.control.task import Eyes, check_coordinates, drives_of, enough
from dynident.control.task_law import TaskLaw
from dynident.control.tick import clip, current_loop, low_pass_step, velocity_loop
from dynident.control.workspace import Workspace
from dynident.errors import DynidentError, require

Array = NDArray[np.float64]


class TaskCascade(TaskLaw):
    """P position loop in a work space, PI velocity and current loops of every actuator; a `Controller`.

    Parameters
    ----------
    space : Workspace
        What is controlled, with at most as many rows as the robot has coordinates.
    loops : Cascade
        Gains, cycles, filters, delays and limits. Position gain, filter and feed-forward share are per row of the work space;
        all others per actuator. Without a current loop the controller commands currents, else voltages.
    posture : float, optional
        Gain k_posture [1/s]; the smallest position gain when omitted.
    """

    _owner = "task cascade"

    def __init__(self, space: Workspace, loops: Cascade, *, posture: float | None = None) -> None:
        require(loops, Cascade, f"{self._owner}: loops")
        super().__init__(space)
        self.loops = loops
        self.delay = loops.delay
        self.posture = float(np.min(loops.position_gain)) if posture is None else finite_scalar(self._owner, "posture", posture)
        if self.posture < 0.0:
            raise DynidentError(f"{self._owner}: posture = {self.posture} must be zero or above it; check its sign")
        self.cycle = loops.velocity_cycle if loops.current is None else loops.current.cycle
        self.command: Literal["current", "voltage"] = "current" if loops.current is None else "voltage"

    def _prepare(self, robot: Machine) -> None:
        loops, mechanism, drives = self.loops, robot.mechanism, drives_of(robot)
        self._eyes = Eyes(self.space, mechanism)
        m, k = self._eyes.space.rows, len(drives)
        self._left = enough(self._owner, self._eyes.space, mechanism)
        self._rotors = np.array([drive.reflected_inertia for drive in drives])
        self._kv = self._each(loops.position_gain, m, "position_gain")
        self._share = self._each(loops.velocity_feedforward, m, "velocity_feedforward")
        slow = low_pass_share(loops.position_filter, loops.position_cycle)
        self._slow = self._each(slow, m, "position_filter")
        fast = low_pass_share(loops.velocity_filter, loops.velocity_cycle)
        self._fast = self._each(fast, k, "velocity_filter")
        self._kp = self._each(loops.velocity_gain, k, "velocity_gain")
        self._ki = self._each(loops.velocity_integral, k, "velocity_integral")
        self._top = self._each(loops.speed_limit, k, "speed_limit")
        self._ratio = np.array([drive.transmission.ratio for drive in drives])
        self._torque = np.array([drive.motor.torque_constant for drive in drives])
        self._amperes = np.array([drive.motor.current_limit for drive in drives])
        self._volts = np.array([drive.motor.voltage_limit for drive in drives])
        if loops.current is not None:
            self._current = [self._each(x, k, "current") for x in (loops.current.gain, loops.current.integral)]
        self._model: Evaluator | None = None
        if loops.torque_feedforward is not None:
            check_coordinates(self._owner, loops.torque_feedforward, mechanism)
            self._model = Evaluator(loops.torque_feedforward)
        self._tick = 0
        self._way = [np.zeros(k)] * loops.late_ticks  # wanted speeds between the position loop and the drives
        self._speed, self._wanted, self._feed = np.zeros(m), np.zeros(k), np.zeros(k)
        self._sum, self._amps, self._charge = np.zeros(k), np.zeros(k), np.zeros(k)

    def _output(self, reference: Reference, measurement: Measurement) -> Array:
        inner, outer = self.loops.current_ticks, self.loops.velocity_ticks
        if self._tick % (inner * outer) == 0:
            self._position_loop(reference, measurement)
        if self._tick % inner == 0:
            self._velocity_loop(measurement)
        self._tick += 1
        return self._amps if self.loops.current is None else self._current_loop(measurement)

    def _position_loop(self, reference: Reference, measurement: Measurement) -> None:
        wanted, actual, e = self._eyes.look(reference, measurement)
        here = self._eyes.here
        speed = self._kv * e + self._share * wanted.velocity
        self._speed = low_pass_step(self._speed, speed, self._slow if self._tick else 1.0)
        if self._left:
            inverse, free = weighted_inverse(actual.jacobian, loaded(here, self._rotors), here)
            drift = self.posture * (reference.q - measurement.x) + float(np.min(self._share)) * reference.v
            v = inverse @ self._speed + free @ drift
        else:
            v = solve(actual.jacobian, self._speed, here.mechanism, "the work space does not determine the coordinates")
        self._wanted = self._ratio * np.clip(here.actuator_rows() @ v, -self._top, self._top)
        if self._model is not None:
            self._model.place(reference.q, reference.v)
            tau = self._model.actuator_torques(self._model.torques(reference.a))
            self._feed = tau / (self._ratio * self._torque)

    def _velocity_loop(self, measurement: Measurement) -> None:
        self._way.append(self._wanted)
        moved = velocity_loop(
            self._way.pop(0) - self._ratio * measurement.rho_v,
            self._feed,
            self._sum,
            self._amps,
            (self._kp, self._ki, self._fast if self._tick else 1.0),
            self.loops.velocity_cycle,
            lambda current: clip(current, self._amperes),
            float(self.loops.anti_windup),
        )
        self._amps, self._sum = moved.output, moved.integral

    def _current_loop(self, measurement: Measurement) -> Array:
        error, windup = self._amps - measurement.current, float(self.loops.anti_windup)
        moved = current_loop(error, self._charge, self._current, self.cycle, self._volts, windup)
        self._charge = moved.integral
        return np.asarray(moved.output)
