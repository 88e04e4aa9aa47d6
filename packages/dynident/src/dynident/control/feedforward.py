"""Torques of actuators: their distribution in over-actuated robots, and feed-forward on a reference.

Distribution, A^T tau = f with A (k, n) tall:

    minimum norm    tau = A (A^T A)^-1 f
    weighted        tau = W^-1 A (A^T W^-1 A)^-1 f         least sum_i w_i tau_i^2: strong motors take more
    preload         tau = minimum norm + (1 - A A^+) u     only the internal part of u, so f is unchanged
    projection      tau* = minimum norm of f = A^T tau     [Briot2015, eq. 50]: the internal stress is removed, f is unchanged

Feed-forward on a reference, from a model and friction laws [Roldan2017, figs. 2.21 and 2.27]:

    A^T tau = ID_model(reference) + friction of the coordinates,    tau += friction of the actuators at their speed
    tau_motor = tau / ratio + J_drive theta'' + friction of the rotor,    i = tau_motor / K_t
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.arrays import Array
from dynident.checks import numbers
from dynident.drive.drive import Drive
from dynident.errors import DynidentError, require
from dynident.friction.dynamic import DynamicLaw
from dynident.friction.law import Friction, Point, State
from dynident.friction.text import reference_temperature
from dynident.graph.algebra import along
from dynident.graph.compiled import Compiled
from dynident.graph.expression import Function, Node
from dynident.mechanics.actuation import actuator_jacobian, coupling_rows, internal, least_norm, prices
from dynident.mechanics.equations import Equations
from dynident.mechanics.functions import (
    Motion,
    MotionLike,
    as_motion,
    cached,
    declared,
    entering,
    node_values,
    run,
    tree_motion,
)
from dynident.mechanics.newton_euler import inverse_dynamics
from dynident.mechanism.mechanism import Mechanism

Laws = Mapping[str, Friction | DynamicLaw]


def actuator_rows(mechanism: Mechanism, q: ArrayLike) -> Array:
    """Return A with rho_v = A v on the joint side: the actuator Jacobian without the gear ratios of `Actuator`."""
    ratio = np.array([actuator.ratio for actuator in mechanism.actuators])
    return np.asarray(actuator_jacobian(mechanism, q) / ratio[:, None])


def internal_torques(u: ArrayLike, samples: int, count: int, freedoms: int) -> Array | None:
    """Return a preload after checking it against the actuators; None if omitted."""
    push = numbers(u, "u")
    if push.shape not in ((), (count,), (samples, count)):
        raise DynidentError(f"u has shape {push.shape}; give one torque for each of the {count} actuators")
    if not np.any(push):
        return None
    if count == freedoms:
        raise DynidentError(f"preload u requires more actuators than degrees of freedom ({count} and {freedoms})")
    return np.broadcast_to(push, (samples, count))


def refuse_singular(bad: NDArray[np.bool_]) -> None:
    """Raise an error for samples at which the actuators cannot hold the robot."""
    if bad.any():
        raise DynidentError(
            f"the actuators do not hold the robot at sample {int(np.argmax(bad))} (A loses rank: a parallel singularity); "
            "keep the motion away from it"
        )


def actuator_motion(mechanism: Mechanism, motion: MotionLike) -> Motion:
    """Return the motion of the actuator coordinates rho, behind the gears: rho_v = A v, rho_a = A a + c b."""
    motion = as_motion(motion)
    tree = tree_motion(mechanism, motion)
    rows = coupling_rows(mechanism)
    return Motion(motion.t, tree.q @ rows.T, tree.v @ rows.T, tree.a @ rows.T)


def feedforward_torques(
    model: Mechanism,
    reference: MotionLike,
    *,
    friction: Laws | None = None,
    preload: ArrayLike | None = None,
    weights: ArrayLike | None = None,
) -> Array:
    """Return the torques of the actuators, behind the gears, for a model on a reference.

    Parameters
    ----------
    model : Mechanism
        Model of the controller, with rotor inertia and friction as joint terms (ia, fv, fc).
    reference : Motion or (q, v, a)
        N samples of its coordinates.
    friction : mapping of str to Friction or DynamicLaw, optional
        Laws to compensate, by actuator (at the speed of rho) or by coordinate (at its own speed); a dynamic law counts with
        its steady part.
    preload : array_like (N, k), (k,) or scalar, optional
        Torques whose internal part is added.
    weights : array_like (k,), optional
        Weight of each actuator in an over-actuated robot, see `dynident.mechanics.actuator_torques`.

    Returns
    -------
    ndarray, (N, k)
        Torques [N m, N]: minimum norm (plus preload) for over-actuated robots.

    Examples
    --------
    >>> import dynident as di
    >>> from dynident.control import feedforward_torques
    >>> arm = di.Mechanism.from_dh([(0.3, 0, 0, 0)], convention="standard", gravity=(0, -9.81, 0)).with_payload(2.0)
    >>> feedforward_torques(arm, di.Motion([0.0], [0.0], [0.0], [0.0])).round(4)
    array([[5.886]])
    """
    reference = as_motion(reference)
    samples, k, n = len(reference), len(model.actuators), model.dof
    if k < n:
        raise DynidentError(f"robot '{model.name}' has {k} actuators for {n} degrees of freedom; feed-forward needs as many")
    laws = friction_laws(friction, model)
    push = None if preload is None else internal_torques(preload, samples, k, n)
    arrays = entering(model, reference) | feedforward_numbers(model, laws)
    if push is not None:
        arrays["u"] = np.ascontiguousarray(push)
    if weights is not None:
        arrays["w"] = prices(weights, k)
    key = feedforward_key(laws, weights is not None, push is not None)
    code = cached(model, key, lambda: Compiled(feedforward_function(model, laws, weights is not None, push is not None)))
    out = run(code, arrays, None, {"row": (k,), "ok": (1,)})
    refuse_singular(~(out["ok"][:, 0] > 0.0))
    return out["row"]


def feedforward_function(
    model: Mechanism, laws: Mapping[str, Friction], weighted: bool = False, pushed: bool = False
) -> Function:
    """Return `feedforward_torques` as a function of q, v, a (and u): ``row`` and ``ok``, above zero if torques exist."""
    eq = Equations(model)
    graph, rows, motors = eq.graph, coupling_rows(model), [actuator.name for actuator in model.actuators]
    numbers = iter(graph.symbols("friction", sum(law.values.size for law in laws.values())))
    given = {name: dict(zip(law.law.parameters, numbers, strict=False)) for name, law in laws.items()}

    def rubbed(name: str, v: Node, q: Node, torque: Node, load: Node) -> Node:
        if name not in laws:
            return torque
        law = laws[name].law
        warm = reference_temperature(law)
        return torque + law.expression(graph, Point(v, q, load, 20.0 if warm is None else warm), given[name])

    force = eq.torques()
    loaded = any("tau" in law.law.looks_at for law in laws.values())
    bodies = eq.project(inverse_dynamics(eq.state, eq.bodies(eq.phi))) if loaded else list(force)
    for i, name in enumerate(model.coordinate_names):
        if name not in motors:
            force[i] = rubbed(name, eq.v[i], eq.tree_q[model.tree.coordinates.index(name)], force[i], bodies[i])
    A = [eq.times_G(row) for row in rows]
    (tau, ok), (loads, _) = (least_norm(A, x, graph.symbols("w", len(rows)) if weighted else None) for x in (force, bodies))
    if pushed:
        tau = [x + y for x, y in zip(tau, internal(A, graph.symbols("u", len(rows)))[0], strict=True)]
    parts = zip(motors, rows, tau, loads, strict=True)
    tau = [rubbed(name, along(row, eq.tree_v), along(row, eq.tree_q), x, load) for name, row, x, load in parts]
    shared = {name: values.size for name, values in feedforward_numbers(model, laws).items() if name != "phi"}
    shared |= {"w": len(rows)} if weighted else {}
    more = {"u": len(rows)} if pushed else {}
    return declared(model, "feedforward", {"row": tau, "ok": [ok]}, more=more, parameters=True, shared=shared)


def feedforward_key(laws: Mapping[str, Friction], weighted: bool = False, pushed: bool = False) -> Hashable:
    """Return the properties other than geometry that determine the code of `feedforward_function`."""
    return "feedforward", tuple((name, law.law) for name, law in laws.items()), weighted, pushed


def feedforward_numbers(model: Mechanism, laws: Mapping[str, Friction]) -> dict[str, Array]:
    """Return the parameters of model and friction laws, constant inputs of `feedforward_function`."""
    numbers = {"phi": node_values(model, model.parameters.values)}
    return numbers | ({"friction": np.concatenate([law.values for law in laws.values()])} if laws else {})


def friction_laws(friction: Laws | None, model: Mechanism) -> dict[str, Friction]:
    """Return the static laws of actuators and coordinates after checking; dynamic laws become their steady part."""
    names = (*(actuator.name for actuator in model.actuators), *model.coordinate_names)
    if friction is None:
        return {}
    if not isinstance(friction, Mapping):
        raise DynidentError(f"friction is a {type(friction).__name__}; give a mapping of actuator or coordinate name to a law")
    found: dict[str, Friction] = {}
    for name, law in friction.items():
        if name not in names:
            raise DynidentError(f"friction names '{name}', which does not exist; use one of {', '.join(dict.fromkeys(names))}")
        if not isinstance(law, Friction | DynamicLaw):
            raise DynidentError(f"friction of '{name}' is a {type(law).__name__}; give a law with numbers (law.using(...))")
        found[name] = law.steady
    return found


def motor_torques(drives: Sequence[Drive], rho: MotionLike, torques: ArrayLike) -> Array:
    """Return the motor torques for actuator `torques` behind the gears."""
    if not isinstance(rho, tuple):
        require(rho, Motion, "rho")
    rho = as_motion(rho)
    tau = np.atleast_2d(np.asarray(torques, dtype=np.float64))
    if tau.shape != (len(rho), len(drives)) or rho.dof != len(drives):
        raise DynidentError(
            f"torques have shape {tau.shape} and rho ({len(rho)}, {rho.dof}); give ({len(rho)}, {len(drives)}), one column "
            "for each drive"
        )
    out = np.empty_like(tau)
    for j, drive in enumerate(drives):
        require(drive, Drive, f"drives[{j}]")
        ratio, omega = drive.transmission.ratio, drive.transmission.ratio * rho.v[:, j]
        behind = drive.inertia - drive.input_inertia  # turns with rho, so its torque passes the gear
        out[:, j] = drive.transmission.motor_torque(tau[:, j] + behind * ratio**2 * rho.a[:, j], omega)
        out[:, j] += drive.input_inertia * ratio * rho.a[:, j]
        if drive.friction is not None:
            out[:, j] += drive.friction.steady(State(omega, ratio * rho.q[:, j], out[:, j]))
    return out
