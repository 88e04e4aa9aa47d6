"""RRR robot: its closed forms as expressions, ready for the printers, and what they cost beside a numeric method."""

from __future__ import annotations

from dataclasses import dataclass, fields
from types import MappingProxyType

import numpy as np

from dynident.robots.rrr.drive import FLOPS
from dynident.robots.rrr.dynamics import mechanism
from dynident.robots.rrr.kinematics import EXAMPLE, JOINTS, Geometry, forward_kinematics, postures
from dynident.symbolic import Program, Quantity, derive
from dynident.symbolic.expression import Graph, Node
from dynident.symbolic.write import numeric_operations

NUMERIC_STEPS = 13
"""Damped least-squares steps that `mechanics.inverse_kinematics_numeric` needs for a point of this robot, on average."""


@dataclass(frozen=True)
class _Lengths:
    """The lengths as expressions, with the names of `Geometry`."""

    d1: Node
    a2: Node
    a3: Node
    offset: Node


def inverse_kinematics_program(geometry: Geometry = EXAMPLE, branches: tuple[int, ...] = (0, 1, 2, 3)) -> Program:
    """Return the inverse kinematics (6) as a program for `symbolic.to_c`, `to_numpy` and `to_latex`.

    Parameters
    ----------
    geometry : Geometry
        Lengths, folded into the code as numbers.
    branches : tuple of int
        Which of `POSTURES`.

    Returns
    -------
    Program
        Quantity ``inverse_kinematics``: q (branches, 3) of the tip position x (3,). Out of reach the angles of shoulder and
        elbow are NaN, and that of the waist as well where the tip is nearer to its axis than the offset.
    """
    graph = Graph()
    lengths = _Lengths(*(graph.const(value) for value in (geometry.d1, geometry.a2, geometry.a3, geometry.offset)))
    x = [graph.symbol(f"x[{i}]") for i in range(3)]

    def root(value: Node, *margins: Node) -> Node:
        return value.sqrt()

    every = postures(*x, lengths, root)
    entries = tuple(graph.node(angle) for branch in branches for angle in every[branch])
    form = Quantity("inverse_kinematics", "q", (len(branches), 3), entries, "joint angles of every posture")
    q = np.random.default_rng(0).uniform(-1.5, 1.5, (5, 3))
    return Program(
        "RRR robot",
        graph,
        MappingProxyType({"q": JOINTS, "x": ("x", "y", "z")}),
        MappingProxyType({f"x[{i}]": ("x", i) for i in range(3)}),
        MappingProxyType({"x": forward_kinematics(q, geometry)}),
        MappingProxyType({form.name: form}),
    )
