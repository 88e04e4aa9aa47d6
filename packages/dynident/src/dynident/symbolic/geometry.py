"""Where the joints sit: numbers, or symbols for every length that is not zero.

Directions stay numbers, with right angles exact. Lengths become symbols named after the joint that owns them, `r_elbow_x`, or
after the Denavit-Hartenberg table that the robot came from, `d2` and `a3`; gravity along an axis becomes `g`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynident.graph.expression import Graph
from dynident.graph.names import identifiers
from dynident.graph.vectors import matrix, plus, scale, snapped, vector
from dynident.mechanism.elements import Joint
from dynident.mechanism.mechanism import Mechanism
from dynident.mechanism.tree import FIXED
from dynident.mechanism.tree_state import Geometry, Pose, compose

Array = NDArray[np.float64]

NEGLIGIBLE = 1e-12  # [m]


def read_geometry(graph: Graph, mechanism: Mechanism, symbolic: bool, snap: float) -> Geometry:
    """Return the geometry of a robot as expressions, direction cosines closer than `snap` to 0, 1, 1/2, ... taken as exact.

    Lengths are numbers or symbols ``geometry[i]``, whose names and numbers are then in `Geometry.symbols`.
    """
    arrays, tree = mechanism.tree.arrays, mechanism.tree
    node_of = {tree.coordinates[int(first)]: i for i, first in enumerate(arrays.dof) if arrays.kind[i] != FIXED}
    apart = {body.name for body in mechanism.bodies if body.separate}
    names = [joint.name for joint in mechanism.joints]
    labels = dict(zip(names, identifiers(names), strict=True))
    lengths = {joint.name: _lengths(mechanism, joint, labels[joint.name]) for joint in mechanism.joints} if symbolic else {}
    order = _natural({name: size for own in lengths.values() for _, name, size in own})
    gravity, along = mechanism.gravity, np.flatnonzero(mechanism.gravity)
    one_axis = symbolic and along.size == 1  # gravity along an axis is one symbol
    if one_axis:
        order["g" if "g" not in order else "g0"] = float(np.abs(gravity[along[0]]))
    symbol = dict(zip(order, graph.symbols("geometry", len(order)), strict=True))
    down = vector(graph, gravity)
    if one_axis:
        down = scale(vector(graph, np.sign(gravity)), list(symbol.values())[-1])
    identity = matrix(graph, np.eye(3))
    still: Pose = (identity, vector(graph, np.zeros(3)))
    frames: dict[str, tuple[int, Pose]] = {mechanism.root: (-1, still)}
    placements: list[Pose] = [still] * arrays.parent.size
    children: dict[str, list[Joint]] = {}
    for joint in mechanism.joints:
        children.setdefault(joint.parent, []).append(joint)
    owners = _owners(mechanism)
    waiting = [mechanism.root]
    while waiting:
        body = waiting.pop()
        node, pose = frames[body]
        for joint in children.get(body, []):
            R = matrix(graph, snapped(joint.placement.rotation, snap))
            t = vector(graph, np.zeros(3) if symbolic else joint.placement.translation)
            for direction, name, _ in lengths.get(joint.name, ()):
                t = plus(t, scale(vector(graph, snapped(direction, 1e-9)), symbol[name]))
            whole = compose(pose, (R, t))
            if joint.kind == "fixed" and joint.child not in apart:
                frames[joint.child] = (node, whole)
            elif joint.kind == "fixed":  # a node without coordinates
                first = tree.frames[joint.child][0]
                placements[first], frames[joint.child] = whole, (first, still)
            else:
                first = node_of[joint.coordinates[0]]
                placements[first] = whole
                last = max(i for i, name in enumerate(owners) if name == joint.name)
                frames[joint.child] = (last, still)
            waiting.append(joint.child)
    axes = [vector(graph, axis) for axis in snapped(arrays.axis, snap)]
    return Geometry(placements, axes, frames, down, order)


def _owners(mechanism: Mechanism) -> list[str]:
    """Return the joint that each tree node belongs to; nothing for a node without coordinates."""
    joint_of = {coordinate: joint.name for joint in mechanism.joints for coordinate in joint.coordinates}
    tree = mechanism.tree.arrays
    names = [*mechanism.tree.coordinates, ""]  # such a node may come last
    return [
        joint_of.get(names[int(first)], "") if kind != FIXED else "" for kind, first in zip(tree.kind, tree.dof, strict=True)
    ]


def _lengths(mechanism: Mechanism, joint: Joint, label: str) -> list[tuple[Array, str, float]]:
    """Return direction, name and size of every length in the translation of a joint."""
    t = joint.placement.translation
    named = _dh_names(mechanism, joint) or [(row, f"r_{label}_{axis}") for row, axis in zip(np.eye(3), "xyz", strict=True)]
    sizes = [(direction, name, float(t @ direction)) for direction, name in named]
    return [found for found in sizes if abs(found[2]) > NEGLIGIBLE]


def _dh_names(mechanism: Mechanism, joint: Joint) -> list[tuple[Array, str]] | None:
    """Return the directions of `a` and `d` with their names when the robot came from a DH table and they explain the joint."""
    R, t = joint.placement.rotation, joint.placement.translation
    standard = mechanism.source.startswith("standard DH table")
    if not standard and not mechanism.source.startswith("modified DH table"):
        return None
    body = joint.child if joint.child.startswith("link_") else ""
    number = body.removeprefix("link_")
    if not number.isdigit():
        return None
    # standard: T = Rz(theta) Tz(d) Tx(a) Rx(alpha); modified: T = Rx(alpha) Tx(a) Rz(theta) Tz(d)
    along_a, along_d = (R[:, 0], np.eye(3)[2]) if standard else (np.eye(3)[0], R[:, 2])
    if np.max(np.abs(t - (t @ along_a) * along_a - (t @ along_d) * along_d)) > NEGLIGIBLE:
        return None
    return [(along_a, f"a{number}"), (along_d, f"d{number}")]


def _natural(symbols: dict[str, float]) -> dict[str, float]:
    """Return the symbols sorted so that a2 comes before a10."""

    def key(label: str) -> tuple[int, str]:
        digits = "".join(c for c in label if c.isdigit())
        return (int(digits) if digits and label[0] in "ad" else 0, label)

    return dict(sorted(symbols.items(), key=lambda item: key(item[0])))
