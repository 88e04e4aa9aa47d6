"""Control laws as the compiled tick knows them: their shape, their numbers, and the reference as they read it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import gcd, inf
from typing import Any

import numpy as np

from dynident.arrays import Array
from dynident.checks import number, per_actuator
from dynident.control.feedforward import actuator_rows, coupling_rows
from dynident.control.laws import PID, Cascade, ComputedTorque, OpenLoop
from dynident.control.task import TaskCascade, TaskComputedTorque, TaskPID, bound_space
from dynident.control.tick import low_pass_coefficient
from dynident.drive.drive import Drive
from dynident.errors import SimulationError
from dynident.mechanics.dynamics import mass_matrix
from dynident.mechanics.functions import at_rest, tree_motion
from dynident.mechanism.mechanism import Mechanism
from dynident.simulate.drives import lumped_values
from dynident.simulate.friction import Owner, owners_of
from dynident.simulate.layout import Field, Numbers
from dynident.simulate.model import joint_side
from dynident.simulate.reference import task_jacobian
from dynident.simulate.shape import LawShape

Put = Callable[[Field, Any], None]

COMPILED = (Cascade, PID, ComputedTorque, OpenLoop, TaskPID, TaskComputedTorque, TaskCascade)
WHOLE = 1e-6  # how far a cycle time may be from a whole number of steps


def whole_steps(cycle: float, step: float) -> int:
    """Return the whole number of steps in a cycle; 0 where it is none."""
    ratio = cycle / step
    return round(ratio) if 1.0 - WHOLE <= ratio < inf and abs(ratio - round(ratio)) <= WHOLE * ratio else 0


def ticks(cycle: float, step: float, what: str) -> int:
    """Return the whole number of steps in a cycle, or say that it is none."""
    count = whole_steps(cycle, step)
    if not count:
        raise SimulationError(f"{what} = {cycle:g} s is {cycle / step:.6g} times the step {step:g} s; make it a whole multiple")
    return count


def delay_steps(law: object, step: float) -> int:
    """Return the steps that a command needs from its tick to the motor; what has no `delay` acts at once."""
    delay = number("controller: delay", getattr(law, "delay", 0.0), least=0.0, unit="s", kind=SimulationError)
    return ticks(delay, step, "delay") if delay > 0.0 else 0


def loops_of(controller: object) -> Cascade | None:
    """Return the loops of a cascade, in a work space or not."""
    loops = controller.loops if isinstance(controller, TaskCascade) else controller
    return loops if isinstance(loops, Cascade) else None


def fed_with_voltage(controller: object) -> bool:
    """Tell whether a controller feeds the motors with voltages."""
    loops = loops_of(controller)
    if loops is not None:
        return loops.current is not None
    return getattr(controller, "command", "torque") == "voltage"


def believed(controller: Any, mechanism: Mechanism) -> Any:
    """Return a controller whose models have the robot's actuator coordinates, after checking that they fit."""
    if isinstance(controller, TaskCascade):
        return replace(controller, loops=believed(controller.loops, mechanism))
    fields = {Cascade: "torque_feedforward", PID: "feedforward", TaskPID: "feedforward"}
    fields |= {ComputedTorque: "model", TaskComputedTorque: "model"}
    label = fields.get(type(controller))
    model = None if label is None else getattr(controller, label)
    if model is None or label is None:
        return controller
    motors = [actuator.name for actuator in mechanism.actuators]
    theirs = [actuator.name for actuator in model.actuators]
    if model.coordinate_names != mechanism.coordinate_names or theirs != motors:
        raise SimulationError(
            f"controller: its model '{model.name}' has the coordinates {', '.join(model.coordinate_names)} and motors "
            f"{', '.join(theirs)}, the robot {', '.join(mechanism.coordinate_names)} and {', '.join(motors)}; they must agree"
        )
    if len(motors) < mechanism.dof:
        raise SimulationError(
            f"controller: a model needs a motor for every freedom, but robot '{mechanism.name}' has {len(motors)} "
            f"({', '.join(motors)}) for {mechanism.dof}; leave the model out (PID, Cascade) or add actuators"
        )
    return replace(controller, **{label: joint_side(model)})


def shape_of(law: object, mechanism: Mechanism) -> LawShape:
    """Return what the compiled tick of a law depends on."""
    k, n = len(mechanism.actuators), mechanism.dof
    if isinstance(law, Cascade):
        return LawShape("cascade", mechanism, current_loop=law.current is not None)
    if isinstance(law, PID):
        # A robot with as many motors as freedoms has no internal torques: nothing to remove.
        internal = k > n and (law.project or bool(np.any(law.preload)))
        return LawShape("projected" if internal else "pid", mechanism)
    if isinstance(law, ComputedTorque | TaskComputedTorque):
        model = law.model
        owners = tuple(owners_of(model, {}, ()))
        if isinstance(law, TaskComputedTorque):
            return LawShape("task computed", model, owners, space=law.space)
        return LawShape("computed", model, owners, on_reference=law.on == "reference")
    if isinstance(law, OpenLoop):
        return LawShape("open", mechanism, torque=law.command == "torque")
    if isinstance(law, TaskPID):
        return LawShape("task forces", mechanism, space=law.space)
    if isinstance(law, TaskCascade):
        return LawShape("task cascade", mechanism, current_loop=law.loops.current is not None, space=law.space)
    return LawShape("held", mechanism)


def fill(put: Put, p: Numbers[Field], law: Any, shape: LawShape, drives: Sequence[Drive], step: float, x: Array) -> None:
    """Write all numbers of a control law, its sensors and its model; `put(field, values)` does the writing."""
    k, n, model = len(drives), shape.model.dof, shape.model
    gains: dict[Field, Any] = {p.slow_out: 1.0, p.slow_in: 1.0, p.speed_limit: np.inf, p.late: delay_steps(law, step)}
    outer = sense = 1
    loops = loops_of(law)
    rows = k if shape.space is None else bound_space(law.owner, shape.space, model).rows
    if loops is not None:
        name = law.owner if isinstance(law, TaskCascade) else "cascade"
        outer, inner = ticks(loops.position_cycle, step, "position_cycle"), ticks(loops.velocity_cycle, step, "velocity_cycle")
        sense = gcd(outer, inner)
        gains |= {p.inner: inner, p.windup: float(loops.anti_windup), p.late_wish: loops.late_ticks}
        gains[p.kp] = per_actuator(loops.position_gain, rows, f"{name}: position_gain")
        gains[p.share] = per_actuator(loops.velocity_feedforward, rows, f"{name}: velocity_feedforward")
        gains[p.kd] = per_actuator(loops.velocity_gain, k, f"{name}: velocity_gain")
        gains[p.ki] = per_actuator(loops.velocity_integral, k, f"{name}: velocity_integral")
        gains[p.speed_limit] = per_actuator(loops.speed_limit, k, f"{name}: speed_limit")
        if loops.current is not None:
            gains[p.current_every] = ticks(loops.current.cycle, step, "cycle of the current loop")
            gains[p.kpc] = per_actuator(loops.current.gain, k, f"{name}: kpc")
            gains[p.kic] = per_actuator(loops.current.integral, k, f"{name}: kic")
        slow = per_actuator(loops.position_filter, rows, f"{name}: position_filter")
        gains[p.slow_out] = low_pass_coefficient(slow, loops.position_cycle)
        slow = per_actuator(loops.velocity_filter, k, "velocity_filter")
        gains[p.slow_in] = low_pass_coefficient(slow, loops.velocity_cycle)
    elif isinstance(law, PID | ComputedTorque | TaskPID | TaskComputedTorque):
        count = n if isinstance(law, ComputedTorque) else rows
        name = getattr(law, "owner", "PID" if isinstance(law, PID) else "computed torque")
        gain = f"{name}: gain" if shape.space is not None else f"gain of the {name}"
        outer = sense = ticks(law.cycle, step, f"cycle of the {name}")
        gains[p.remove] = float(getattr(law, "project", False))
        gains |= {field: per_actuator(x, count, gain) for field, x in ((p.kp, law.kp), (p.kd, law.kd), (p.ki, law.ki))}
        gains[p.preload] = per_actuator(law.preload, k, f"{name}: preload")
        slow = per_actuator(law.derivative_filter, count, f"{name}: derivative_filter")
        gains[p.slow_out] = low_pass_coefficient(slow, law.cycle)
    elif not isinstance(law, OpenLoop):
        outer = sense = ticks(float(getattr(law, "cycle", step)), step, "cycle of the controller")
    for field, values in {p.inner: 1, **gains, p.outer: outer, p.sense: sense, p.every: sense}.items():
        put(field, values)
    if shape.space is not None:
        _fill_posture(put, p, law, shape, drives, x)
    _fill_sensors(put, p, drives, sense * step)
    put(p.model_phi, lumped_values(model))
    N = coupling_rows(model)
    if not model.loops and all(c.function is None for c in model.couplings):
        G, g0 = model.coupling_map
        put(p.model_inverse, np.linalg.pinv(N @ G).ravel())
        put(p.model_zero, N @ g0)
    put(p.model_law, [x for owner in shape.frictions for x in owner.numbers])
    if shape.frictions:
        put(p.model_slope, 1.0 / sticking(model, x, shape.frictions, outer * step))


def _fill_posture(put: Put, p: Numbers[Field], law: Any, shape: LawShape, drives: Sequence[Drive], x: Array) -> None:
    """Write what a law in a work space does with the freedoms that it leaves."""
    rotors = np.array([drive.reflected_inertia for drive in drives])
    put(p.task_inertia, rotors)
    model, space = shape.model, bound_space(law.owner, shape.space, shape.model)
    if space.rows == model.dof:
        return
    A = actuator_rows(model, x)[0]
    M = mass_matrix(model, x)[0] + (A.T @ (rotors[:, None] * A) if shape.kind != "task computed" else 0.0)
    if np.linalg.eigvalsh(M)[0] <= 0.0:
        raise SimulationError(
            f"robot '{model.name}': the mass matrix that the controller knows is not positive definite, so the freedoms that "
            "the work space leaves have no inertia; give every moving link one"
        )
    if isinstance(law, TaskCascade):
        put(p.posture, [law.posture, 0.0])
        put(p.posture_share, float(np.min(law.loops.velocity_feedforward)))
    elif law.posture is not None:
        put(p.posture, law.posture)
    elif isinstance(law, TaskComputedTorque):
        put(p.posture, [float(np.min(law.kp)), float(np.min(law.kd))])
    else:
        J = task_jacobian(model, shape.space, x)
        kp = float(np.min(np.asarray(law.kp) * np.einsum("ij,ji->i", J, np.linalg.solve(M, J.T))))
        put(p.posture, [kp, 2.0 * np.sqrt(kp)])


def _fill_sensors(put: Put, p: Numbers[Field], drives: Sequence[Drive], cycle: float) -> None:
    encoders, meters = [drive.encoder for drive in drives], [drive.current_sensor for drive in drives]
    put(p.resolution, [e.resolution for e in encoders])
    put(p.on_motor, [float(e.side == "motor") for e in encoders])
    put(p.exact_speed, [float(e.velocity == "exact") for e in encoders])
    put(p.blend, [float(low_pass_coefficient(np.array(e.filter), cycle)) for e in encoders])
    put(p.current_step, [m.resolution for m in meters])
    put(p.current_gain, [1.0 + m.gain_error for m in meters])


def reflected(drives: Sequence[Drive]) -> Array:
    """Return the inertias of drives that move with the actuator coordinates (k,): of an elastic one that of its last mass."""
    return np.array([d.transmission.ratio**2 * (d.inertia if d.rigid else d.transmission.inertias[-1]) for d in drives])


def sticking(
    mechanism: Mechanism, x: Array, owners: Sequence[Owner], step: float, drives: Sequence[Drive] | None = None
) -> Array:
    """Return the speed that a unit force takes away from each owner within one step, of a robot with or without its drives.

        v_s = f h / J,      J = 1 / (c M^-1 c^T) the inertia that form c feels at the pose x

    When several forms that feel each other stick at once, all are made softer by their common gain, so that the slopes together
    stay within what one step can follow. A rotor in front of an elastic shaft moves on its own.
    """
    still = tree_motion(mechanism, at_rest(mechanism, x))
    G = np.eye(still.q.shape[1]) if still.G is None else (still.G if still.G.ndim == 2 else still.G[0])
    M, rows = mass_matrix(mechanism, x)[0], np.array([owner.form for owner in owners]) @ G
    alone = np.zeros(len(owners))
    if drives is not None:
        A = coupling_rows(mechanism) @ G
        M = M + A.T @ (reflected(drives)[:, None] * A)
        for i, owner in enumerate(owners):
            if owner.motor >= 0 and not owner.gear:
                drive = drives[owner.motor]
                rows[i] *= drive.transmission.ratio
                alone[i] = 0.0 if drive.rigid else drive.motor.inertia
    compliance = rows @ np.linalg.pinv(M) @ rows.T
    inverse, free = np.abs(np.diagonal(compliance)).copy(), alone > 0.0
    inverse[free] = 1.0 / alone[free]
    inverse[inverse == 0.0] = 1.0
    scaled = compliance / np.sqrt(np.outer(inverse, inverse))
    scaled[free, :] = scaled[:, free] = 0.0
    common = max(1.0, float(np.abs(np.linalg.eigvalsh(scaled)).max(initial=0.0)))
    return np.asarray(step * inverse * common)
