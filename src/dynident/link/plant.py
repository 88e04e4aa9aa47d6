"""The virtual robot one chunk after the other: each run starts in the state in which the last one ended.

This is the only file of the room that knows the simulation: `advance` for a chunk of setpoints, `rest` for a pause in which
nothing moves and only temperatures change.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.errors import LinkError, SimulationWarning
from dynident.mechanics import Motion
from dynident.signals import Log
from dynident.simulate import End, VirtualRobot
from dynident.trajectory import Interpolated

Array = NDArray[np.float64]

COOLING = 1.0  # between two temperatures of a rest [s]


class _Later:
    """Setpoints that begin at a given time of the machine's clock, as a trajectory."""

    def __init__(self, setpoints: Motion, begin: float) -> None:
        self._curve, self._begin = Interpolated(setpoints), begin
        self.length = float(setpoints.t[-1] - setpoints.t[0])
        self.duration, self.dof = begin + self.length, setpoints.dof

    def __call__(self, t: ArrayLike) -> tuple[Array, Array, Array]:
        return self._curve(np.asarray(t, dtype=np.float64) - self._begin)


class Plant:
    """A virtual robot that goes on from where it was.

    Parameters
    ----------
    robot : VirtualRobot
        The machine.
    q : array_like (n,), optional
        Where it stands at the start; the mechanism's home, or zero, when omitted.
    period : float
        Time between two samples [s].
    seed : int
        Of all noise.
    """

    def __init__(self, robot: VirtualRobot, q: ArrayLike | None = None, period: float = 0.004, seed: int = 0) -> None:
        self.robot, self.period, self.seed = robot, period, seed
        n = robot.mechanism.dof
        self.q = start_pose(robot) if q is None else np.array(q, dtype=np.float64)
        if self.q.shape != (n,):
            raise LinkError(f"the start has {self.q.size} numbers; robot '{robot.mechanism.name}' has {n} coordinates")
        self._end: End | None = None
        self._uncooled = 0.0  # time of rest that the temperatures do not know yet [s]
        self.advance(Motion([0.0, 1.0], *(np.tile(x, (2, 1)) for x in (self.q, 0 * self.q, 0 * self.q))))  # loops settle

    def advance(self, setpoints: Motion) -> tuple[Array, Array, Array, Array]:
        """Follow setpoints from t = 0 to their end, and return what the sensors say after each period.

        Parameters
        ----------
        setpoints : Motion
            Wanted motion, quintics between its samples; whole periods long.

        Returns
        -------
        position, velocity, effort, temperature : ndarray, (N, n)
            Samples at period, 2 period, ..., the end; channels as in the robot's log.
        """
        log = self.follow(setpoints)
        velocity = np.gradient(log.position, self.period, axis=0) if log.velocity is None else log.velocity
        heat = np.full_like(log.position, np.nan) if log.temperature is None else log.temperature
        return log.position[1:], velocity[1:], log.effort[1:], heat[1:]

    def follow(self, setpoints: Motion) -> Log:
        """Follow setpoints and return the log, whose first sample is where the last one ended.

        Parameters
        ----------
        setpoints : Motion
            Wanted motion, quintics between its samples; whole periods long.

        Returns
        -------
        Log
            What the sensors say.
        """
        self._cool()
        start: Any = {"q": self.q} if self._end is None else self._end
        wanted = _Later(setpoints, 0.0 if self._end is None else self._end.time)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SimulationWarning)  # limits are watched by the controller itself
            run = self.robot.simulate(wanted, start=start, duration=wanted.length, log_cycle=self.period, seed=self.seed)
        self._end = run.end
        self._last = run.log.position[-1], run.log.effort[-1]
        return run.log

    def rest(self, duration: float) -> tuple[Array, Array, Array, Array]:
        """Stand still for some time; the joints cool down, in steps of `COOLING` at least.

        Parameters
        ----------
        duration : float
            How long [s].

        Returns
        -------
        position, velocity, effort, temperature : ndarray, (1, n)
            One sample at its end.
        """
        assert self._end is not None
        self._uncooled += duration
        if self._uncooled >= COOLING:
            self._cool()
        position, effort = self._last
        heat = np.full(position.shape, np.nan) if self._end.heat is None else self._end.heat.temperature
        return position[None], np.zeros_like(position)[None], effort[None], heat[None]

    def memory(self) -> dict[str, Any]:
        """Return the state as plain data, for `remember`.

        Returns
        -------
        dict
            JSON-ready.
        """
        self._cool()
        assert self._end is not None
        return {"end": self._end.to_dict(), "last": [x.tolist() for x in self._last]}

    def remember(self, memory: Mapping[str, Any]) -> None:
        """Go on from a state that `memory` returned.

        Parameters
        ----------
        memory : mapping
            The state.
        """
        self._end, self._uncooled = End.from_dict(memory["end"], self.robot), 0.0
        position, effort = (np.array(x, dtype=np.float64) for x in memory["last"])
        self._last = position, effort

    def _cool(self) -> None:
        """Let the temperatures know how long the robot has rested."""
        if self._end is not None and self._uncooled:
            self._end, self._uncooled = self._end.rested(self._uncooled), 0.0

    @property
    def channels(self) -> tuple[str, ...]:
        """Names of the channels of a sample."""
        mechanism = self.robot.mechanism
        if self.robot.sensors.side == "joint" and not mechanism.loops:
            return mechanism.coordinate_names
        return tuple(actuator.name for actuator in mechanism.actuators)

    @property
    def still(self) -> bool:
        """True when nothing moves."""
        return self._end is not None and float(np.abs(self._end.state["v"]).max()) < 1e-4

    @property
    def coordinates(self) -> Array:
        """Where the robot is, (n,)."""
        if self._end is None:
            return self.q
        mechanism, q = self.robot.mechanism, self._end.state["q"]
        return np.asarray(q[mechanism.closure.independent] if mechanism.loops else q)


def start_pose(robot: VirtualRobot) -> Array:
    """Return a pose in which the robot can stand: zero moved into its ranges."""
    lower, upper = position_limits(robot)
    zero = np.zeros(robot.mechanism.dof)
    home = getattr(robot.mechanism, "home", None)
    if robot.mechanism.loops and home:
        zero = np.array([dict(home).get(name, 0.0) for name in robot.mechanism.coordinate_names])
    return np.asarray(np.clip(zero, lower, upper))


def position_limits(robot: VirtualRobot) -> tuple[Array, Array]:
    """Return lower and upper limits of the coordinates, infinite where there are none."""
    found = {joint.name: joint.limits for joint in robot.mechanism.joints}
    limits = [found.get(name) for name in robot.mechanism.coordinate_names]
    return (
        np.array([-np.inf if x is None else x.lower for x in limits]),
        np.array([np.inf if x is None else x.upper for x in limits]),
    )


def velocity_limits(robot: VirtualRobot) -> Array:
    """Return the largest speeds of the coordinates, infinite where there are none."""
    found = {joint.name: joint.limits for joint in robot.mechanism.joints}
    limits = [found.get(name) for name in robot.mechanism.coordinate_names]
    return np.array([np.inf if x is None or not x.velocity else x.velocity for x in limits])
