"""Everything of a virtual robot as arrays, ready to run: `build` makes an `Assembly`, `Assembly.run` advances it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.control import Cascade
from dynident.drive import Drive
from dynident.errors import SimulationError
from dynident.friction import DynamicLaw, Friction
from dynident.mechanics.batch import at_rest, tree_motion
from dynident.mechanics.packed import BASE, Arena
from dynident.mechanism import Mechanism
from dynident.simulate import kernels
from dynident.simulate import layout as at
from dynident.simulate.control_kernels import sense
from dynident.simulate.controllers import Controller, Wanted, controller_of
from dynident.simulate.laws import WIDTH, law_rows, row_numbers
from dynident.simulate.layout import FINE, LOST_CLOSURE, SINGULAR_MASS, UNSTABLE
from dynident.simulate.model_kernels import measured_pose, model_tick
from dynident.simulate.skeleton import Rubbing, actuator_rows, add_skeleton, joint_inertias, rubbing_of, sticking

Array = NDArray[np.float64]

__all__ = [
    "FINE",
    "LOST_CLOSURE",
    "SINGULAR_MASS",
    "UNSTABLE",
    "Assembly",
    "Columns",
    "Law",
    "build",
    "loop_gain",
    "no_inputs",
]

METHODS = {"exact": at.EXACT, "iterated": at.ITERATED, "delayed": at.DELAYED}
INTEGRATORS = {"rk4": at.RK4, "midpoint": at.MIDPOINT, "euler": at.EULER}
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
    joint_rub : slice
        Friction of each joint form, in the order of `Assembly.rubbing.owners`.
    energy : slice
        Kinetic and potential energy [J].
    width : int
        Numbers per row.
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
    joint_rub: slice
    energy: slice
    width: int


def _columns(n: int, tree: int, k: int, forms: int) -> Columns:
    widths = [n, n, n, tree, *[k] * 11, forms, 2]
    ends = np.cumsum(widths)
    return Columns(*(slice(int(e - w), int(e)) for e, w in zip(ends, widths, strict=True)), width=int(ends[-1]))


class Inputs(NamedTuple):
    """What acts from outside, linear between rows and held after the last.

    Parameters
    ----------
    table : ndarray, (P, k + 6 w)
        Torques on the k actuator coordinates, then (force, moment) on w nodes at their origin and in their axes; no rows for none.
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
        Law and direction of each row, see `layout`.
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
    feed : ndarray of int, (k, 4)
        How each drive is fed, number of its shaft masses, the first of them, its winding.
    drive : ndarray, (k, 19)
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
        return self.controller.loop[at.CUT_STEPS, : self.plant.drive.shape[0]].copy()

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
        tick, end = int(self.controller.plan[at.OUTER]), self.done + steps
        tables = (wanted.table, wanted.noise, int(wanted.every[0]))
        rest = (self.step, self.integrator, record, every, float(limit))
        arrays = (self.plant.K, self.plant.F, self.controller.K, self.controller.F)
        result = (FINE, self.done, -1)
        while self.done < end and result[0] == FINE:
            here, go = self.done, end - self.done
            if asks:
                go = min(tick - here % tick, go)
                if here % tick == 0:
                    status = model_tick(*arrays, *tables, here, self.step)
                    if status != FINE:
                        return int(status), here, -1
            result = kernels.run(*arrays, *tables, inputs.table, inputs.node, inputs.every, go, *rest)
        return int(result[0]), int(result[1]), int(result[2])

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
        """Hold a command until the next one, within the limits of motors and amplifiers.

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


def no_inputs(actuators: int) -> Inputs:
    """Return inputs of a run without external torques and wrenches.

    Parameters
    ----------
    actuators : int
        Number of actuators k.

    Returns
    -------
    Inputs
        Empty tables.
    """
    return Inputs(np.zeros((0, actuators)), np.zeros(0, dtype=np.int64), 1)


def inputs_of(
    mechanism: Mechanism, push: Array | None, wrenches: Mapping[str, Array], every: int = 1
) -> Inputs:
    """Return external torques and wrenches as the kernels want them.

    Parameters
    ----------
    mechanism : Mechanism
        Robot.
    push : ndarray (P, k) or None
        Torques on the actuator coordinates.
    wrenches : mapping of str to ndarray (Q, 6)
        (force, moment) on links, at their origin and in their axes; all with the same number of rows.
    every : int
        Steps between two rows of all tables.

    Returns
    -------
    Inputs
        Linear between rows.
    """
    k = len(mechanism.actuators)
    if push is None and not wrenches:
        return no_inputs(k)
    nodes, tables = [], []
    for link, table in wrenches.items():
        node, pose = mechanism.frame(link)
        if node < 0:
            continue  # the base does not move
        force = table[:, :3] @ pose.rotation.T
        nodes.append(node)
        tables += [force, table[:, 3:] @ pose.rotation.T + np.cross(pose.translation, force)]
    rows = tables[0].shape[0] if tables else 1
    torques = np.zeros((rows, k)) if push is None else np.asarray(push, dtype=np.float64)
    if {part.shape[0] for part in tables} - {torques.shape[0]}:
        raise SimulationError("external torques and wrenches have tables of different lengths; sample them at the same times")
    return Inputs(np.ascontiguousarray(np.concatenate([torques, *tables], axis=1)), np.array(nodes, dtype=np.int64), every)


def _motor_inertias(mechanism: Mechanism, drives: Sequence[Drive], base: Array, apart: bool) -> tuple[Array, Array]:
    """Return (inertias that belong to the mechanism, those that belong to its actuators)."""
    N = actuator_rows(mechanism)
    own, motors = base.copy(), np.zeros_like(base)
    for row, drive in zip(N, drives, strict=True):
        inertia = drive.inertia if drive.rigid else drive.transmission.inertias[-1]
        motors += drive.transmission.ratio**2 * inertia * np.outer(row, row)
        used = np.flatnonzero(row)
        if apart and used.size == 1:  # the joint's rotor inertia turns with the actuator too
            c = used[0]
            motors[c, c] += own[c, c]
            own[c, c] = 0.0
    return (own, motors) if apart else (own + motors, motors)


def build(
    mechanism: Mechanism,
    drives: Sequence[Drive],
    controller: object,
    *,
    step: float,
    x: ArrayLike,
    v: ArrayLike | None = None,
    friction: Mapping[str, Law] | None = None,
    method: str = "coupled",
    loop: str = "exact",
    integrator: str = "rk4",
) -> Assembly:
    """Put a virtual robot together at its start.

    Parameters
    ----------
    mechanism : Mechanism
        Robot with n coordinates and k actuators.
    drives : sequence of Drive
        One per actuator, in their order.
    controller : Cascade, PID, ComputedTorque, OpenLoop or Controller
        Control law; any other object with `cycle` and `command` is a controller in Python, for which commands are held.
    step : float
        Step of the plant [s].
    x, v : array_like, (n,)
        Positions and velocities at the start; at rest when v is omitted.
    friction : mapping of str to Friction or DynamicLaw, optional
        Friction of joints beside the mechanism's own terms, by tree coordinate.
    method : {"coupled", "decoupled"}
        Constrained dynamics with the drives, or the mechanism's inverse dynamics as a disturbance of every drive.
    loop : {"exact", "iterated", "delayed"}
        How the decoupled form closes its algebraic loop.
    integrator : {"rk4", "midpoint", "euler"}
        Method of integration.

    Returns
    -------
    Assembly
        Ready to run.
    """
    start = np.array(x, dtype=np.float64)
    rates = np.zeros_like(start) if v is None else np.array(v, dtype=np.float64)
    base, rows = joint_inertias(mechanism)
    apart = method == "decoupled"
    own, motors = _motor_inertias(mechanism, drives, base, apart)
    rubbing = rubbing_of(mechanism, rows, friction or {}, [(d.actuator, d.friction) for d in drives])
    still = tree_motion(mechanism, at_rest(mechanism, start, rates))
    N, n0 = actuator_rows(mechanism), mechanism.actuator_matrix[1]
    ratio = np.repeat([d.transmission.ratio for d in drives], [d.states for d in drives])
    turned = np.repeat(np.stack([N @ still.q[0] + n0, N @ still.v[0]], axis=1), [d.states for d in drives], axis=0) * ratio[:, None]
    arena = Arena()
    add_skeleton(arena, mechanism, own, motors)
    rubbing.add(arena, own.shape[0])
    windings = _add_drives(arena, drives, _voltage(controller))
    y = np.concatenate([still.q[0], rates, turned[:, 0], turned[:, 1], np.zeros(windings)])
    arena.number(at.METHOD, METHODS[loop] if apart else at.ONE)
    arena.number(at.SIZE, y.size)
    for key, values in ((at.STATE, y), (at.STAGE, y), (at.RATES, np.zeros((4, y.size))), (at.LAST, np.zeros(start.size + 2))):
        arena.floats(key, values)
    K, F = arena.pack()
    _stick(arena, drives, rubbing, N, step)
    if still.G is not None and still.G.ndim == 3:
        arena.view(at.MAP)[...] = still.G[0]  # sensors read velocities before the first step computes G
    kinds = arena.integer_view(at.LAW_KIND)
    laws = Laws(arena.integer_view(at.LAW_FIRST), kinds[:, 0], kinds[:, 1], arena.view(at.LAW)[:, :WIDTH])
    views = (arena.view(key) for key in (at.DRIVE, BASE, at.MOTORS, at.STATE, at.LAST))
    plant = Plant(K, F, laws, arena.integer_view(at.FEED), *views)
    law = controller_of(mechanism, drives, controller, step, start, still.q[0])
    columns = _columns(start.size, own.shape[0], len(drives), len(rubbing.forms))
    return Assembly(mechanism, plant, law, rubbing, columns, step, INTEGRATORS[integrator])


def _voltage(controller: object) -> bool:
    """Tell whether a controller feeds the motors with voltages."""
    if isinstance(controller, Cascade):
        return controller.current is not None
    return getattr(controller, "command", "torque") == "voltage"


def _stick(arena: Arena, drives: Sequence[Drive], rubbing: Rubbing, N: Array, step: float) -> None:
    """Fill in how fast each friction stops its owner."""
    ratio = np.array([drive.transmission.ratio for drive in drives])
    forms = np.concatenate([np.array(rubbing.forms).reshape(-1, N.shape[1]), ratio[:, None] * N])
    loads = np.array([0.0] * len(rubbing.forms) + [0.0 if d.rigid else d.motor.inertia for d in drives])
    rubbing.settle(arena, sticking(arena, at.STATE, forms, loads, step, rubbing.jumps))
    arena.view(at.DRIVE)[:, at.STICK] = rubbing.stick[len(rubbing.forms) :]


def _add_drives(arena: Arena, drives: Sequence[Drive], voltage: bool) -> int:
    """Add the regions of the drives; return the number of windings with a current of their own."""
    feed = np.zeros((len(drives), at.FEED_WIDTH), dtype=np.int64)
    numbers = np.zeros((len(drives), at.DRIVE_WIDTH))
    shafts: list[tuple[float, float, float]] = []
    windings = 0
    for a, drive in enumerate(drives):
        motor, gear = drive.motor, drive.transmission
        if motor.torque_constant == 0.0:
            raise SimulationError(f"drive '{drive.actuator}': motor.torque_constant is 0; give it in N m/A")
        kind = at.IDEAL
        if voltage:
            kind = at.INDUCTIVE if motor.inductance > 0.0 else at.RESISTIVE
            if kind == at.RESISTIVE and motor.resistance == 0.0:
                raise SimulationError(
                    f"drive '{drive.actuator}' is fed with a voltage but its motor has neither resistance nor inductance; give them"
                )
        feed[a] = kind, drive.states, len(shafts), windings
        windings += int(kind == at.INDUCTIVE)
        if not drive.rigid:
            shafts += zip((motor.inertia, *gear.inertias[:-1]), gear.stiffness, gear.damping, strict=True)
        numbers[a, : at.STICK] = (
            gear.ratio,
            gear.efficiency,
            motor.torque_constant,
            motor.emf_constant,
            motor.resistance,
            motor.inductance,
            motor.current_limit,
            motor.voltage_limit,
            0.5 * gear.backlash,
        )
    arena.number(at.SHAFTS, len(shafts))
    arena.integers(at.FEED, feed)
    arena.floats(at.DRIVE, numbers)
    arena.floats(at.SHAFT, np.array(shafts, dtype=np.float64).reshape(-1, 3))
    return windings


def loop_gain(assembly: Assembly, x: ArrayLike) -> float:
    """Return the spectral radius of J_act^-1 M, above which the delayed and iterated algebraic loops diverge when it passes 1.

    Parameters
    ----------
    assembly : Assembly
        Built with method "decoupled".
    x : array_like, (n,)
        Pose.

    Returns
    -------
    float
        Inertia of the mechanism over that of the actuators, in the worst direction; infinite when a coordinate has no actuator.
    """
    from dynident.mechanics.dynamics import mass_matrix  # noqa: PLC0415 - only here

    mechanism, body = assembly.mechanism, assembly.plant
    still = tree_motion(mechanism, at_rest(mechanism, x))
    G = np.eye(still.q.shape[1]) if still.G is None else (still.G if still.G.ndim == 2 else still.G[0])
    base, _ = joint_inertias(mechanism)
    actuators = G.T @ body.motors @ G
    moved = mass_matrix(mechanism, x)[0] - G.T @ (base - body.base) @ G
    if np.linalg.matrix_rank(actuators) < actuators.shape[0]:
        return float("inf")
    return float(np.abs(np.linalg.eigvals(np.linalg.solve(actuators, moved))).max())
