"""What the observer computes from one sample: momentum, its rate by the model, friction laws, and limits of friction at rest.

    L = T - V,    p = dL/dv = M(q) v,    dp/dt = u + tau + tau_ext,    u = dL/dq - f = C^T v - g - f

f is what joints and motors resist with: friction, springs, offsets. No acceleration is needed, and p and u are linear in the
standard parameters, so that the same function serves the model and every direction in which it is uncertain.

With loops the same is written on the robot's coordinates nu, the positions q_t of the tree being closed beforehand:

    T(q_t, nu) = T_tree(q_t, G nu),    p = dT/dnu = G^T M_t G nu,    u = G^T d(T - V)/dq_t - G^T f,    tau = A^T tau_motor
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dynident.errors import DescriptionError
from dynident.friction.law import Friction, Point
from dynident.friction.terms import TERMS
from dynident.graph.elementary import absolute, maximum, where
from dynident.graph.expression import Function, Graph, Node, reachable, reverse, total
from dynident.identify.regression.rows import Rows, actuation, unprojected
from dynident.mechanics.actuation import least_squares
from dynident.mechanics.branch import motor_step
from dynident.mechanics.equations import Equations
from dynident.mechanics.newton_euler import energies
from dynident.mechanism.mechanism import Mechanism
from dynident.mechanism.tree import FREE, SPHERICAL


@dataclass(frozen=True, eq=False)
class Terms:
    """The functions of one robot for one sample."""

    momentum: Function  # ``momentum(q, v, phi)`` gives p and u
    friction: Function
    warm: Mapping[str, int]  # Channels of the joints whose law needs a temperature
    closing: Function | None = None
    drive: Function | None = None


def terms_of(rows: Rows, laws: Mapping[str, Friction], rest: float) -> Terms:
    """Return the functions of a robot, jumps of friction taken as zero below a speed; laws act beside the joint terms."""
    mechanism = rows.mechanism
    check_monitored(mechanism, laws)
    loops: tuple[Function, ...] = ()
    if mechanism.loops:
        loops = (motor_step(Equations(mechanism, Graph()), *mechanism.actuator_matrix, "closing"), _drive(rows))
    return Terms(_momentum(mechanism, rest), *_friction(rows, laws, rest), *loops)


def check_monitored(mechanism: Mechanism, laws: Mapping[str, Friction]) -> None:
    """Refuse robots whose momentum cannot be written as one expression of what is measured."""
    name = mechanism.name
    if mechanism.loops and any(len(actuator.coupling) > 1 for actuator in mechanism.actuators):
        raise DescriptionError(
            f"robot '{name}' has loops and motors that turn with several joints; the monitor cannot watch it"
        )
    if mechanism.has_opaque_couplings:
        raise DescriptionError(
            f"robot '{name}' has a coupling that is known by its numbers only; the monitor is for trees whose couplings are "
            "expressions"
        )
    if np.isin(mechanism.tree.arrays.kind, (SPHERICAL, FREE)).any():
        raise DescriptionError(f"robot '{name}' has a spherical or free joint; the monitor is for joints that turn or slide")
    known = mechanism.tree.coordinates if mechanism.loops else mechanism.coordinate_names
    unknown = [joint for joint in laws if joint not in known]
    if unknown:
        joints = ", ".join(known)
        raise DescriptionError(f"friction of '{unknown[0]}': robot '{name}' has no such joint; its joints are {joints}")


def _momentum(mechanism: Mechanism, rest: float) -> Function:
    x = Equations(mechanism, Graph())
    x.rest, x.a = rest, [x.graph.zero] * mechanism.dof
    kinetic, _ = x.energies()
    _, potential = energies(x.state, x.bodies(x.phi))
    p = reverse([kinetic], [1.0], x.v)
    u = reverse([kinetic - potential], [1.0], x.x)
    u = x.project(u) if mechanism.loops else u  # along the closure q_t moves with the coordinates by G
    u = [a - f for a, f in zip(u, x.project(x.tree_terms(x.phi, rotors=False)), strict=True)]
    inputs = {"q": len(x.x), "v": mechanism.dof}
    return Function("momentum", inputs, {"p": p, "u": u}, {"phi": len(mechanism.parameters)})


def _friction(rows: Rows, laws: Mapping[str, Friction], rest: float) -> tuple[Function, dict[str, int]]:
    """Return torques of laws and limits of friction at rest, and the joints whose law needs a temperature."""
    mechanism = rows.mechanism
    n = mechanism.dof
    x = Equations(mechanism, Graph())
    graph, zero = x.graph, x.graph.zero
    channels = len(rows.efforts)
    tau, T = graph.symbols("tau", channels), graph.symbols("T", channels)
    f, limit = [zero] * n, [zero] * n
    warm: dict[str, int] = {}
    for joint, friction in laws.items():
        v, q, row, c = _rubbing(x, rows, joint)
        stands = absolute(v) < rest
        at = Point(v, q, *((zero, zero) if c is None else (tau[c], T[c])))
        torque = where(stands, zero, friction.expression(graph, at))
        levels = [friction.expression(graph, at._replace(v=zero), way=way) for way in (-1.0, 1.0)]
        held = where(stands, _largest(levels), zero)
        f = [a + g * torque for a, g in zip(f, row, strict=True)]
        limit = [a + absolute(g) * held for a, g in zip(limit, row, strict=True)]
        if c is not None and any(node.name == T[c].name for node in reachable([torque])):
            warm[joint] = c
    ends: dict[int, list[Node]] = {}  # both levels of every tree coordinate that dry friction can hold
    for column, symbol, d, _ in x.joint_columns:
        if TERMS[symbol].jumps:
            own = [x.phi[column] * TERMS[symbol].directed(x.tree_q[d], zero, zero, way) for way in (-1.0, 1.0)]
            ends[d] = [a + b for a, b in zip(ends.get(d, [zero, zero]), own, strict=True)]
    for d, levels in ends.items():
        held = where(absolute(x.tree_v[d]) < rest, _largest(levels), zero)
        row = [graph.const(float(j == d)) for j in range(n)] if x.G is None else x.G[d]
        limit = [own + absolute(g) * held for own, g in zip(limit, row, strict=True)]
    motors: dict[int, tuple[list[Node], list[Node]]] = {}
    for column, symbol, row, _ in x.motor_columns:
        if TERMS[symbol].jumps:
            q, v = (total([a * c for a, c in zip(y, row, strict=True)]) for y in (x.tree_q, x.tree_v))
            own = [x.phi[column] * TERMS[symbol].directed(q, zero, zero, way) for way in (-1.0, 1.0)]
            known = motors.get(v.index, (row, [zero, zero]))[1]
            motors[v.index] = row, [where(absolute(v) < rest, a + b, zero) for a, b in zip(known, own, strict=True)]
    for row, levels in motors.values():
        limit = [own + absolute(g) * _largest(levels) for own, g in zip(limit, x.project(row), strict=True)]
    inputs = {"q": len(x.x), "v": n, "tau": channels, "T": channels}
    return Function("friction", inputs, {"f": f, "limit": limit}, {"phi": len(mechanism.parameters)}), warm


def _rubbing(x: Equations, rows: Rows, joint: str) -> tuple[Node, Node, list[Node], int | None]:
    """Return velocity and position of a joint, how it moves with the coordinates, and its channel, if it has one."""
    robot = x.mechanism
    if not robot.loops:
        i = robot.coordinate_names.index(joint)
        return x.v[i], x.x[i], [x.graph.const(float(j == i)) for j in range(robot.dof)], i
    assert x.G is not None
    d = robot.tree.coordinates.index(joint)
    motor = next((c for c, actuator in enumerate(robot.actuators) if joint in actuator.coupling), None)
    return x.tree_v[d], x.tree_q[d], x.G[d], motor


def _drive(rows: Rows) -> Function:
    """Return nu of A nu = w (least squares), A^T tau, and the squares of S^-1 of the fit's equations."""
    n = rows.mechanism.dof
    x = Equations(rows.mechanism, Graph())
    A = actuation(x)
    w, tau = x.graph.symbols("w", len(A)), x.graph.symbols("tau", len(A))
    push = [total([row[i] * x for row, x in zip(A, tau, strict=True)]) for i in range(n)]
    weights = [entry * entry for row in unprojected(x, rows) for entry in row]
    outputs = {"v": least_squares(A, w)[0], "push": push, "weights": weights}
    return Function("drive", {"q": len(x.x), "w": len(A), "tau": len(A)}, outputs)


def _largest(levels: list[Node]) -> Node:
    """Return the larger distance from zero of both levels."""
    larger: Node = maximum(absolute(levels[0]), absolute(levels[1]))
    return larger
