"""RRR robot: the inverse kinematics as a program, and costs of closed forms and numeric methods [Kostic2002, section V]."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from dynident.graph import Graph
from dynident.graph.expression import Node
from dynident.symbolic import Program, Quantity, derive
from dynident.symbolic.printers import numeric_operations
from dynident_papers.robots.rrr.closed_forms import forward_kinematics, postures
from dynident_papers.robots.rrr.data import EXAMPLE, FLOPS, JOINTS, Geometry, mechanism

NUMERIC_STEPS = 12.0
"""Mean number of steps of `mechanics.inverse_kinematics_numeric` from a distant start; fewer along a path."""

NORMAL_EQUATIONS = 90
"""Operations of one step with 3 joints: J^T J 30, J^T e 15, damping 6, Cholesky factor and two substitutions 39."""


@dataclass(frozen=True)
class _Lengths:
    """The lengths as expressions, with the names of `Geometry`."""

    d1: Node
    a2: Node
    a3: Node
    offset: Node


def inverse_kinematics_program(geometry: Geometry = EXAMPLE, branches: tuple[int, ...] = (0, 1, 2, 3)) -> Program:
    """Return the inverse kinematics [Kostic2002, eq. 6] as a program for `symbolic.to_c`, `to_numpy` and `to_latex`."""
    graph = Graph()
    lengths = _Lengths(*(graph.const(value) for value in (geometry.d1, geometry.a2, geometry.a3, geometry.offset)))
    x, y, z = (graph.symbol(f"x[{i}]") for i in range(3))

    def root(value: Node, *margins: Node) -> Node:
        return value.sqrt()

    every = postures(x, y, z, lengths, root)
    entries = tuple(graph.node(angle) for branch in branches for angle in every[branch])
    form = Quantity("inverse_kinematics", "q", (len(branches), 3), entries, "joint angles of every posture")
    q = np.random.default_rng(0).uniform(-1.5, 1.5, (5, 3))
    return Program(
        "RRR robot",
        graph,
        MappingProxyType({"q": JOINTS, "x": ("x", "y", "z")}),
        MappingProxyType({"x": forward_kinematics(q, geometry)}),
        MappingProxyType({form.name: form}),
    )


@dataclass(frozen=True)
class Cost:
    """Operations per point of one task."""

    task: str  # Computed quantity
    closed: int  # Our generated closed form
    numeric: int  # Our numeric method
    paper_closed: int  # Count of the paper for its closed form (sec. V)
    paper_numeric: int  # Count of the paper for Corke's toolbox (sec. V)


def operation_counts(geometry: Geometry = EXAMPLE, steps: float = NUMERIC_STEPS) -> tuple[Cost, ...]:
    """Count the operations of generated code for inverse kinematics (one posture) and inverse dynamics, per point.

    Numeric inverse kinematics takes `steps` steps, each with forward kinematics, Jacobian and normal equations;
    the first two are counted in their cheapest, generated form, so the numeric count is a lower bound.
    """
    robot = mechanism(geometry)
    forms = derive(robot, ("base_inverse_dynamics", "forward_kinematics", "jacobian"))
    step = forms.operations("forward_kinematics", "jacobian").total + NORMAL_EQUATIONS
    kinematics = inverse_kinematics_program(geometry, (0,)).operations().total
    dynamics = forms.operations("base_inverse_dynamics").total
    counts = {
        "inverse kinematics": (kinematics, round(steps * step)),
        "inverse dynamics": (dynamics, numeric_operations(robot).total),
    }
    return tuple(Cost(task, *ours, *FLOPS[task]) for task, ours in counts.items())
