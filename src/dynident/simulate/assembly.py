"""A virtual robot as arrays that can be advanced: what `plant.build` makes and `Assembly.run` moves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.errors import SimulationError
from dynident.friction import DynamicLaw, Friction
from dynident.mechanism import Mechanism
from dynident.simulate import kernels
from dynident.simulate import layout as at
from dynident.simulate.control_kernels import sense
from dynident.simulate.controllers import Controller, Wanted
from dynident.simulate.laws import law_rows, row_numbers
from dynident.simulate.layout import FINE
from dynident.simulate.model_kernels import measured_pose, model_tick
from dynident.simulate.skeleton import Rubbing

Array = NDArray[np.float64]
Law = Friction | DynamicLaw


@dataclass(frozen=True)
class Columns:
    """Where each signal is in a row of the record.

    Parameters
    ----------
    x, v, a : slice
        Coordinates, velocities, accelerations (n).
    tree : slice
        All tree positions (n_tree).
    torque : slice
        Torque that each drive exerts on its actuator coordinate [N m, N] (k): behind gear, losses, rotor friction and shafts;
        the inertia of a rigid drive belongs to the mechanism.
    motor : slice
        K_t i [N m at the motor] (k).
    current : slice
        [A] (k).
    rub : slice
        Friction of each rotor [N m at the motor] (k).
    rho, rho_v : slice
        Actuator coordinates and their velocities (k).
    theta, omega : slice
        Angle and speed of each rotor (k).
    voltage : slice
        Of each motor [V] (k); of an ideal current without the part of the inductance.
    sensed, sensed_v : slice
        Actuator positions and velocities as the controller last saw them (k).
    loss : slice
        What the efficiency of each gear takes from the torque behind it [N m, N] (k).
    joint_rub : slice
        Friction of each joint form, in the order of `Assembly.rubbing.owners`.
    energy : slice
        Kinetic and potential energy [J].
    """

    x: slice
    v: slice
    a: slice
    tree: slice
    torque: slice
    motor: slice
    current: slice
    rub: slice
    rho: slice
    rho_v: slice
    theta: slice
    omega: slice
    voltage: slice
    sensed: slice
    sensed_v: slice
    loss: slice
    joint_rub: slice
    energy: slice

    @classmethod
    def of(cls, n: int, tree: int, k: int, forms: int) -> Columns:
        """Return the layout of a robot.

        Parameters
        ----------
        n, tree, k, forms : int
            Numbers of coordinates, tree coordinates, actuators and friction forms.

        Returns
        -------
        Columns
            One slice per signal.
        """
        widths = [n, n, n, tree, *[k] * 12, forms, 2]
        ends = np.cumsum(widths)
        return cls(*(slice(int(e - w), int(e)) for e, w in zip(ends, widths, strict=True)))

    @property
    def width(self) -> int:
        """Numbers per row."""
        return int(self.energy.stop)


class Inputs(NamedTuple):
    """What acts from outside, linear between rows and held after the last.

    Parameters
    ----------
    table : ndarray, (P, k + 6 w)
        Torques on the k actuator coordinates, then (force, moment) on w nodes at their origin and in their axes; may be empty.
    node : ndarray of int, (w,)
        Tree nodes with a wrench.
    every : int
        Steps between two rows.
    """

    table: Array
    node: NDArray[np.int64]
    every: int


class Laws(NamedTuple):
    """Friction rows, of the joint forms first and then of the rotors; views of the plant's arrays, so changes act at once.

    Parameters
    ----------
    first : ndarray of int, (owners + 1,)
        First row of each owner; the last entry is the number of rows.
    kind, way : ndarray of int, (rows,)
        Law, and direction and wave of each row, see `layout`.
    values : ndarray, (rows, 9)
        Its numbers; they may be changed between two calls of `Assembly.run`.
    """

    first: NDArray[np.int64]
    kind: NDArray[np.int64]
    way: NDArray[np.int64]
    values: Array


class Plant(NamedTuple):
    """Mechanism, drives, friction and state as arrays; all but K and F are views of those.

    Parameters
    ----------
    K, F : ndarray
        Packed arrays.
    laws : Laws
        Friction.
    feed : ndarray of int, (k, 5)
        How each drive is fed, number of its shaft masses, the first of them, its winding, its only coordinate.
    drive : ndarray, (k, 30)
        Constants, command and signals of each drive, see `layout`.
    base, motors : ndarray, (n_tree, n_tree)
        Inertias of joints, and those of actuators when they are kept apart (decoupled).
    y : ndarray
        State vector [q_t, nu, theta, omega, i].
    last : ndarray, (n + 2,)
        Last accelerations, side of the closure, steps done.
    """

    K: NDArray[np.int64]
    F: Array
    laws: Laws
    feed: NDArray[np.int64]
    drive: Array
    base: Array
    motors: Array
    y: Array
    last: Array


@dataclass(eq=False)
class Assembly:
    """A virtual robot as arrays, with its state; not shared between threads.

    Parameters
    ----------
    mechanism : Mechanism
        The robot.
    plant : Plant
        Mechanism, drives and friction with their state.
    controller : Controller
        Control law with its state.
    rubbing : Rubbing
        All friction, by owner.
    columns : Columns
        Layout of the record.
    step : float
        Step of the plant [s].
    integrator : int
        RK4, MIDPOINT or EULER.
    """

    mechanism: Mechanism
    plant: Plant
    controller: Controller
    rubbing: Rubbing
    columns: Columns
    step: float
    integrator: int

    @property
    def done(self) -> int:
        """Steps made so far."""
        return int(self.plant.last[-1])

    @property
    def saturated(self) -> Array:
        """Steps that each actuator spent at a limit, (k,)."""
        return np.asarray(self.plant.drive[:, at.CUT_STEPS] + self.plant.drive[:, at.AT_LIMIT])

    def run(
        self, steps: int, wanted: Wanted, inputs: Inputs, record: Array, every: int = 1, limit: float = 1e6
    ) -> tuple[int, int, int]:
        """Advance by a number of steps; can be called again to go on.

        Parameters
        ----------
        steps : int
            How many.
        wanted : Wanted
            Tables of the whole run (see `controllers.tables`).
        inputs : Inputs
            External torques and wrenches of the whole run.
        record : ndarray, (rows, columns.width)
            Row s / every receives the truth at the start of step s; no rows for no record.
        every : int
            Steps between two rows.
        limit : float
            Velocity, current or rotor speed beyond which the run counts as unstable.

        Returns
        -------
        status : int
            FINE, SINGULAR_MASS, LOST_CLOSURE or UNSTABLE.
        step : int
            Steps done, or the step at which it stopped.
        index : int
            UNSTABLE: which velocity, 0..n-1 the coordinate, then rotors and windings; -1 otherwise.
        """
        asks = self.controller.plan[at.LAW_OF] in (at.PROJECTED, at.COMPUTED)
        here = self.done
        tick, end = int(self.controller.plan[at.OUTER]), here + steps
        tables = (wanted.table, wanted.noise, int(wanted.every[0]))
        rest = (self.step, self.integrator, record, every, float(limit))
        arrays = (self.plant.K, self.plant.F, self.controller.K, self.controller.F)
        known, pushed = (*arrays, *tables), tuple(inputs)
        status, index = FINE, -1
        while here < end and status == FINE:
            go = end - here
            if asks:
                go = min(tick - here % tick, go)
                if here % tick == 0:
                    status = model_tick(*known, here, self.step)
                    if status != FINE:
                        break
            status, here, index = kernels.run(*known, *pushed, go, *rest)
        return int(status), int(here), int(index)

    def measure(self, wanted: Wanted) -> tuple[Array, Array, Array, Array, Array]:
        """Read the sensors now, for a controller in Python; call it once per sensing tick.

        Parameters
        ----------
        wanted : Wanted
            Tables of the run (the noise).

        Returns
        -------
        rho, rho_v : ndarray, (k,)
            Sensed actuator positions and velocities.
        x, v : ndarray, (n,)
            Coordinates that belong to them.
        current : ndarray, (k,)
            Sensed currents [A].
        """
        law = self.controller
        sense(self.plant.K, self.plant.F, law.K, law.F, wanted.noise, self.done, self.step)
        if measured_pose(law.K, law.F) != FINE:
            raise SimulationError(
                f"robot '{self.mechanism.name}': the sensed actuator positions belong to no pose at t = "
                f"{self.done * self.step:.6g} s; it is too close to a singularity"
            )
        k = self.plant.drive.shape[0]
        rho, rho_v, current = law.loop[[at.RHO, at.RHO_V, at.SENSED_CURRENT], :k]
        return rho, rho_v, law.measured[0].copy(), law.measured[1].copy(), current

    def hold(self, kind: str, values: ArrayLike) -> NDArray[np.bool_]:
        """Hold a command until the next one, within the limits of motors and amplifiers; it arrives after the law's delay.

        Parameters
        ----------
        kind : {"torque", "current", "voltage"}
            Of the actuator coordinates [N m, N], or of the motors [A, V].
        values : array_like, (k,)
            The command.

        Returns
        -------
        ndarray of bool, (k,)
            Which were cut at a limit.
        """
        drive, k = self.plant.drive, self.plant.drive.shape[0]
        wanted = np.array(values, dtype=np.float64)
        if kind == "torque":
            wanted = wanted / (drive[:, at.RATIO] * drive[:, at.TORQUE])
        top = drive[:, at.VOLTAGE_LIMIT]
        if kind == "voltage":
            held = np.clip(wanted, -top, top)
        else:
            held = np.clip(wanted, -drive[:, at.CURRENT_LIMIT], drive[:, at.CURRENT_LIMIT])
            bound = (drive[:, at.RESISTANCE] > 0.0) & np.isfinite(top)
            ohm, reach = np.where(bound, drive[:, at.RESISTANCE], 1.0), np.where(bound, top, 0.0)
            back = drive[:, at.EMF] * drive[:, at.RATIO] * self.controller.loop[at.RHO_V, :k]
            held = np.where(bound, np.clip(held, (-reach - back) / ohm, (reach - back) / ohm), held)
        self.controller.loop[at.SENT, :k] = held
        drive[:, at.BEYOND] = held != wanted
        if self.controller.plan[at.LATE] == 0:
            drive[:, at.COMMAND] = held
        return np.asarray(held != wanted)

    def set_friction(self, owner: str, law: Law) -> None:
        """Give an owner's law new numbers between two calls of `run` (it has warmed up).

        Parameters
        ----------
        owner : str
            One of ``rubbing.owners``.
        law : Friction or DynamicLaw
            A law of the same structure as at the start; joint terms of the mechanism on the same joint stay as they are.
        """
        i = self.rubbing.owners.index(owner)
        new = law_rows(law, owner)
        laws = self.plant.laws
        last = int(laws.first[i + 1])
        first = last - len(new)
        if first < laws.first[i] or [row.kind for row in new] != laws.kind[first:last].tolist():
            raise SimulationError(f"friction of '{owner}': its structure may not change during a run; only its numbers may")
        for r, row in zip(range(first, last), new, strict=True):
            laws.values[r] = row_numbers(row, float(self.rubbing.stick[i]))
