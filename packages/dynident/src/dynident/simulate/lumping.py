"""Inertia that a body's parent may carry as well, moved there: the same motion with fewer operations.

What looks alike from all sides of the axis u of a hinge rests in the parent as much as in the child: a mass at its origin, a
first moment along u, an inertia J (1 - u u^T). So does the inertia tensor behind a slide. Moved from the tips to the base,

    phi' = L phi     has zeros for m, h.u and one moment of inertia behind every hinge, for six moments behind every slide.

Accelerations are those of phi; the potential energy differs by a constant.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dynident.graph.expression import Node
from dynident.mechanics.functions import cached, node_values
from dynident.mechanism.inertia import transform_matrix
from dynident.mechanism.mechanism import Mechanism
from dynident.mechanism.tree import FIXED, PRISMATIC, REVOLUTE, SPHERICAL

Array = NDArray[np.float64]

MOMENTS = (4, 7, 9)  # Ixx, Iyy, Izz among the ten parameters of a body


def lumped_values(mechanism: Mechanism) -> Array:
    """Return the standard parameters of a robot as compiled code of `lumped_symbols` takes them."""
    phi, count = node_values(mechanism, np.array(mechanism.parameters.values)), mechanism.tree.inertias.size
    phi[:count] = _map(mechanism) @ phi[:count]
    return phi


def lumped_symbols(mechanism: Mechanism, phi: Sequence[Node]) -> list[Node]:
    """Return standard parameters as expressions, inertial ones zero where the robot's structure allows it."""
    used = [bool(np.any(row)) for row in _map(mechanism)]
    return [*(x if own else x.graph.zero for x, own in zip(phi, used, strict=False)), *phi[len(used) :]]


def _map(mechanism: Mechanism) -> Array:
    return cached(mechanism, "lumping", lambda: lumping(mechanism))


def lumping(mechanism: Mechanism) -> Array:
    """Return L (10 b, 10 b) of the bodies' parameters in node frames."""
    tree = mechanism.tree.arrays
    L = np.eye(mechanism.tree.inertias.size)
    for i in reversed(range(tree.parent.size)):
        column, parent = int(tree.column[i]), int(tree.parent[i])
        if column < 0 or (parent >= 0 and tree.column[parent] < 0):  # nothing to move, or nowhere to move it to
            continue
        own = L[column : column + 10]
        alike = _alike(int(tree.kind[i]), tree.axis[i]) @ own
        if parent >= 0:
            above = int(tree.column[parent])
            L[above : above + 10] += transform_matrix(tree.rotation[i], tree.translation[i]) @ alike
        own -= alike
    return L


def _alike(kind: int, axis: Array) -> Array:
    """Return what takes from ten parameters the part that a parent sees alike at all positions of a joint."""
    if kind == FIXED:
        return np.eye(10)
    part = np.zeros((10, 10))
    part[0, 0] = kind in (REVOLUTE, SPHERICAL)
    part[4:, 4:] = (kind == PRISMATIC) * np.eye(6)
    along = np.flatnonzero(np.abs(axis) > 1e-12)
    if kind == REVOLUTE and along.size == 1:  # of slanting axes the mass alone, which leaves zeros too
        part[1 + along[0], 1 + along[0]] = 1.0
        one, other = np.delete(MOMENTS, along[0])
        part[one, other] = part[other, other] = 1.0
    return part
