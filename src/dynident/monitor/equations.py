"""What the observer computes from one sample: momentum, its rate by the model, friction laws, and limits of friction at rest.

    L = T - V,    p = dL/dv = M(q) v,    dp/dt = u + tau + tau_ext,    u = dL/dq - f = C^T v - g - f

f is what joints and motors resist with: friction, springs, offsets. No acceleration is needed, and p and u are linear in the
standard parameters, so that the same function serves the model and every direction in which it is uncertain.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dynident.errors import DescriptionError
from dynident.friction import TERMS, Friction, Point
from dynident.graph import Function, Graph, Node, absolute, maximum, reachable, reverse, total, where
from dynident.mechanics import Equations, energies
from dynident.mechanism import FREE, SPHERICAL, Mechanism


@dataclass(frozen=True, eq=False)
class Terms:
    """The functions of one robot for one sample.

    Parameters
    ----------
    momentum : Function
        ``momentum(q, v, phi)`` gives p and u.
    friction : Function
        ``friction(q, v, tau, T, phi)`` gives the torques f of friction laws and the limits of friction at rest.
    warm : tuple of str
        Joints whose law needs a temperature.
    """

    momentum: Function
    friction: Function
    warm: tuple[str, ...]


def terms_of(mechanism: Mechanism, laws: Mapping[str, Friction], rest: float) -> Terms:
    """Return the functions of a robot, jumps of friction taken as zero below a speed; laws act beside the joint terms."""
    check_monitored(mechanism, laws)
    return Terms(_momentum(mechanism, rest), *_friction(mechanism, laws, rest))


def check_monitored(mechanism: Mechanism, laws: Mapping[str, Friction]) -> None:
    """Refuse robots whose momentum cannot be written as one expression of what is measured."""
    name = mechanism.name
    if mechanism.loops:
        raise DescriptionError(
            f"robot '{name}' has loops, which the monitor does not watch: its observer works sample by sample without "
            "iterations, and the positions of a closed loop are found by them; compare Fit.score of old and new logs instead"
        )
    if mechanism.has_opaque_couplings:
        raise DescriptionError(
            f"robot '{name}' has a coupling that is known by its numbers only; the monitor is for trees whose couplings are "
            "expressions"
        )
    if np.isin(mechanism.tree.arrays.kind, (SPHERICAL, FREE)).any():
        raise DescriptionError(f"robot '{name}' has a spherical or free joint; the monitor is for joints that turn or slide")
    unknown = [joint for joint in laws if joint not in mechanism.coordinate_names]
    if unknown:
        joints = ", ".join(mechanism.coordinate_names)
        raise DescriptionError(f"friction of '{unknown[0]}': robot '{name}' has no such joint; its joints are {joints}")


def _momentum(mechanism: Mechanism, rest: float) -> Function:
    x = Equations(mechanism, Graph())
    x.rest, x.a = rest, [x.graph.zero] * mechanism.dof
    kinetic, _ = x.energies()
    _, potential = energies(x.recursion, x.bodies(x.phi))
    p = reverse([kinetic], [1.0], x.v)
    u = reverse([kinetic - potential], [1.0], x.x)
    u = [a - f for a, f in zip(u, x.project(x.tree_terms(x.phi, rotors=False)), strict=True)]
    inputs = {"q": mechanism.dof, "v": mechanism.dof}
    return Function("momentum", inputs, {"p": p, "u": u}, {"phi": len(mechanism.parameters)})


def _friction(mechanism: Mechanism, laws: Mapping[str, Friction], rest: float) -> tuple[Function, tuple[str, ...]]:
    """Return torques of laws and limits of friction at rest, and the joints whose law needs a temperature."""
    n = mechanism.dof
    x = Equations(mechanism, Graph())
    graph, zero = x.graph, x.graph.zero
    tau, T = graph.symbols("tau", n), graph.symbols("T", n)
    f, limit = [zero] * n, [zero] * n
    warm = []
    for joint, friction in laws.items():
        i = mechanism.coordinate_names.index(joint)
        stands = absolute(x.v[i]) < rest
        at = Point(x.v[i], x.x[i], tau[i], T[i])
        f[i] = where(stands, zero, friction.expression(graph, at))
        levels = [friction.expression(graph, at._replace(v=zero), way=way) for way in (-1.0, 1.0)]
        limit[i] = where(stands, _largest(levels), zero)
        if any(node.name == T[i].name for node in reachable([f[i]])):
            warm.append(joint)
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
    inputs = dict.fromkeys(("q", "v", "tau", "T"), n)
    return Function("friction", inputs, {"f": f, "limit": limit}, {"phi": len(mechanism.parameters)}), tuple(warm)


def _largest(levels: list[Node]) -> Node:
    """Return the larger distance from zero of both levels."""
    larger: Node = maximum(absolute(levels[0]), absolute(levels[1]))
    return larger
