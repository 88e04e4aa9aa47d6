"""Advancing a virtual robot: compiled in one piece, in stretches while it warms up, or cycle by cycle under Python control."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dynident.control import PID, Cascade, ComputedTorque, OpenLoop
from dynident.errors import SimulationError
from dynident.mechanics import close_rates
from dynident.mechanics.motion import numbers
from dynident.simulate.failure import FASTEST, reason
from dynident.simulate.thermal import Heat, scaled_numbers

if TYPE_CHECKING:
    from dynident.simulate.controllers import Wanted
    from dynident.simulate.plant import Assembly, Inputs
    from dynident.simulate.robot import VirtualRobot

Array = NDArray[np.float64]

COMMANDS = ("torque", "current", "voltage")


@dataclass(frozen=True, eq=False)
class Wish:
    """What a controller in Python is asked for.

    Parameters
    ----------
    q, v, a : ndarray, (n,)
        Of the robot's coordinates.
    rho, rho_v : ndarray, (k,)
        Of the actuators.
    """

    q: Array
    v: Array
    a: Array
    rho: Array
    rho_v: Array


@dataclass(frozen=True, eq=False)
class Reading:
    """What a controller in Python is told.

    Parameters
    ----------
    rho, rho_v : ndarray, (k,)
        Actuators as sensed.
    x, v : ndarray, (n,)
        Coordinates that belong to them.
    current : ndarray, (k,)
        Motor currents [A].
    """

    rho: Array
    rho_v: Array
    x: Array
    v: Array
    current: Array


class Stretch:
    """Advances a robot in stretches, between which it warms up or a controller in Python speaks.

    Parameters
    ----------
    robot : VirtualRobot
        The machine.
    assembly : Assembly
        The same as arrays, at its start.
    wanted : Wanted
        Tables of the reference.
    inputs : Inputs
        External torques and wrenches.
    record : ndarray, (N, width)
        Receives the true signals.
    every : int
        Steps between its rows.
    thermal_cycle : float
        Length of a stretch of constant friction while the robot warms up [s].
    """

    def __init__(
        self,
        robot: VirtualRobot,
        assembly: Assembly,
        wanted: Wanted,
        inputs: Inputs,
        record: Array,
        every: int,
        thermal_cycle: float,
    ) -> None:
        self.robot, self.assembly, self.wanted, self.inputs = robot, assembly, wanted, inputs
        self.record, self.every = record, every
        self.compiled = isinstance(robot.controller, Cascade | PID | ComputedTorque | OpenLoop)
        self.heat = Heat(robot.mechanism, robot.drives, robot.thermal, robot.ambient) if robot.thermal else None
        self.chunk = max(1, round(thermal_cycle / (every * assembly.step))) * every

    def all(self, steps: int) -> Array | None:
        """Advance to the end.

        Parameters
        ----------
        steps : int
            Number of steps.

        Returns
        -------
        ndarray (N, k) or None
            Temperatures at the rows of the record, when the robot warms up.
        """
        if not self.compiled:
            self._reset()
        laws, base = self.assembly.plant.laws, self.assembly.plant.laws.values.copy()
        if self.heat is None:
            if self.assembly.rubbing.warms:
                still = Heat(self.robot.mechanism, self.robot.drives, {}, self.robot.ambient)
                laws.values[:] = scaled_numbers(self.assembly, base, still.scales())
            self._some(steps)
            return None
        shown, times = [self.heat.temperature], [0.0]
        while self.assembly.done < steps:
            begin = self.assembly.done
            laws.values[:] = scaled_numbers(self.assembly, base, self.heat.scales())
            self._some(min(self.chunk, steps - begin))
            self._warm(self.heat, begin)
            shown.append(self.heat.temperature)
            times.append(self.assembly.done * self.assembly.step)
        t = np.arange(self.record.shape[0]) * (self.every * self.assembly.step)
        table = np.array(shown)
        return np.column_stack([np.interp(t, times, table[:, j]) for j in range(table.shape[1])])

    def _warm(self, heat: Heat, begin: int) -> None:
        """Let the friction of the last stretch heat the robot."""
        c = self.assembly.columns
        rows = self.record[-(-begin // self.every) : (self.assembly.done - 1) // self.every + 1]
        speed = self._tree_speed(rows)
        joint = np.zeros(speed.shape[1])
        for f, form in enumerate(self.assembly.rubbing.forms):
            used = np.flatnonzero(form)
            if used.size == 1:
                joint[used[0]] += np.mean(rows[:, c.joint_rub][:, f] * (speed @ form))
        drive = np.mean(rows[:, c.rub] * rows[:, c.omega], axis=0)
        current = np.sqrt(np.mean(rows[:, c.current] ** 2, axis=0))
        heat.advance(joint, drive, current, (self.assembly.done - begin) * self.assembly.step)

    def _tree_speed(self, rows: Array) -> Array:
        """Return the velocities of all tree coordinates, (N, n_tree)."""
        mechanism, c = self.robot.mechanism, self.assembly.columns
        if mechanism.loops:
            return close_rates(mechanism, rows[:, c.tree], rows[:, c.v], np.zeros_like(rows[:, c.v])).v
        return np.asarray(rows[:, c.v] @ mechanism.coupling_map[0].T)

    def _some(self, steps: int) -> None:
        """Advance by some steps."""
        if self.compiled:
            self._check(self.assembly.run(steps, self.wanted, self.inputs, self.record, self.every, FASTEST))
            return
        tick, end = int(self.wanted.every[0]), self.assembly.done + steps
        while self.assembly.done < end:
            here = self.assembly.done
            if here % tick == 0:
                self._ask(here // tick)
            go = min(tick - here % tick, end - here)
            self._check(self.assembly.run(go, self.wanted, self.inputs, self.record, self.every, FASTEST))

    def _reset(self) -> None:
        law = self.robot.controller
        if law.command not in COMMANDS:  # type: ignore[union-attr]
            raise SimulationError(f"controller: command is {law.command!r}; it is one of {', '.join(COMMANDS)}")  # type: ignore[union-attr]
        law.reset(self.robot, Reading(*self.assembly.measure(self.wanted)))  # type: ignore[union-attr]

    def _ask(self, row: int) -> None:
        """Let the controller in Python decide."""
        law, w = self.robot.controller, self.wanted
        t = self.assembly.done * self.assembly.step
        i = min(row, w.x.shape[0] - 1)
        wish = Wish(w.x[i], w.v[i], w.a[i], w.rho[i], w.rho_v[i])
        answer = law.update(t, wish, Reading(*self.assembly.measure(w)))  # type: ignore[union-attr]
        command = np.atleast_1d(numbers(answer, "what the controller returns"))
        if command.shape != (len(self.robot.drives),):
            raise SimulationError(
                f"controller returns shape {command.shape} at t = {t:.6g} s; give one number for each of "
                f"{len(self.robot.drives)} actuators"
            )
        if not np.all(np.isfinite(command)):
            name = self.robot.drives[int(np.argmin(np.isfinite(command)))].actuator
            raise SimulationError(
                f"instability: the controller's command for '{name}' is infinite or undefined at t = {t:.6g} s; check its gains"
            )
        self.assembly.hold(law.command, command)  # type: ignore[union-attr]

    def _check(self, result: tuple[int, int, int]) -> None:
        """Say in one sentence why a run stopped, if it did."""
        from dynident.simulate.plant import FINE  # noqa: PLC0415 - numba is imported on first use

        if result[0] != FINE:
            raise SimulationError(reason(self.robot, self.assembly, result, self.record, self.every))
