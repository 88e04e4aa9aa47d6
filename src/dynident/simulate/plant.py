"""Everything of a virtual robot as arrays, ready to run: `build` makes an `Assembly`, `Assembly.run` advances it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.control import Cascade
from dynident.drive import Drive
from dynident.errors import SimulationError
from dynident.mechanics.batch import at_rest, tree_motion
from dynident.mechanics.packed import BASE, Arena
from dynident.mechanism import Mechanism
from dynident.simulate import layout as at
from dynident.simulate.assembly import Assembly, Columns, Inputs, Law, Laws, Plant
from dynident.simulate.controllers import controller_of
from dynident.simulate.laws import WIDTH
from dynident.simulate.layout import FINE, LOST_CLOSURE, SINGULAR_MASS, UNSTABLE
from dynident.simulate.skeleton import Rubbing, actuator_rows, add_skeleton, joint_inertias, rubbing_of, sticking

Array = NDArray[np.float64]

__all__ = [
    "FINE",
    "LOST_CLOSURE",
    "SINGULAR_MASS",
    "UNSTABLE",
    "Assembly",
    "Columns",
    "Inputs",
    "Law",
    "build",
    "inputs_of",
    "loop_gain",
    "no_inputs",
]

METHODS = {"exact": at.EXACT, "iterated": at.ITERATED, "delayed": at.DELAYED}
INTEGRATORS = {"rk4": at.RK4, "midpoint": at.MIDPOINT, "euler": at.EULER}


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


def inputs_of(mechanism: Mechanism, push: Array | None, wrenches: Mapping[str, Array], every: int = 1) -> Inputs:
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
    turned = (
        np.repeat(np.stack([N @ still.q[0] + n0, N @ still.v[0]], axis=1), [d.states for d in drives], axis=0) * ratio[:, None]
    )
    arena = Arena()
    add_skeleton(arena, mechanism, own, motors)
    rubbing.add(arena, own.shape[0])
    windings = _add_drives(arena, drives, N, _voltage(controller))
    y = np.concatenate([still.q[0], rates, turned[:, 0], turned[:, 1], np.zeros(windings)])
    arena.number(at.METHOD, METHODS[loop] if apart else at.ONE)
    arena.number(at.SIZE, y.size)
    arena.number(at.LOSSY, int(any(drive.rigid and drive.transmission.efficiency < 1.0 for drive in drives)))
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
    columns = Columns.of(start.size, own.shape[0], len(drives), len(rubbing.forms))
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
    rubbing.settle(arena, sticking(arena, at.STATE, forms, loads, step, rubbing.jumps), step)
    table, lossy = arena.view(at.DRIVE), np.array([drive.transmission.efficiency < 1.0 for drive in drives])
    table[:, at.STICK] = rubbing.stick[len(rubbing.forms) :]
    if lossy.any():  # the loss of a gear acts on what moves with rho, not on a rotor in front of a shaft
        jumps = np.concatenate([rubbing.jumps[: len(rubbing.forms)], np.maximum(rubbing.jumps[len(rubbing.forms) :], lossy)])
        slow = sticking(arena, at.STATE, forms, np.zeros_like(loads), step, jumps)
        table[:, at.GEAR_STICK] = slow[len(rubbing.forms) :]


def _add_drives(arena: Arena, drives: Sequence[Drive], N: Array, voltage: bool) -> int:
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
                    f"drive '{drive.actuator}' is fed with a voltage but its motor has no resistance or inductance; give them"
                )
        used = np.flatnonzero(N[a])
        feed[a] = kind, drive.states, len(shafts), windings, used[0] if used.size == 1 else -1
        numbers[a, at.SINGLE] = N[a, used[0]] if used.size else 0.0
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
        numbers[a, at.KEPT] = 1.0
        limited = motor.resistance > 0.0 and motor.voltage_limit < np.inf
        if (
            kind == at.IDEAL
            and drive.rigid
            and drive.friction is None
            and gear.efficiency == 1.0
            and used.size == 1
            and not limited
        ):
            numbers[a, at.DIRECT] = N[a, used[0]] * gear.ratio * motor.torque_constant
        if drive.rigid:  # the last inertia turns with the output, as behind an elastic shaft
            numbers[a, at.BEFORE] = drive.input_inertia
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
