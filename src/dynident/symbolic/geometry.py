"""Where the joints sit: numbers, or symbols for every length that is not zero.

Directions stay numbers, with right angles exact. Lengths become symbols named after the joint that owns them, `r_elbow_x`, or
after the Denavit-Hartenberg table that the robot came from, `d2` and `a3`; gravity along an axis becomes `g`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dynident.mechanism import Joint, Mechanism
from dynident.mechanism.tree import FIXED
from dynident.symbolic.expression import Graph, Node
from dynident.symbolic.names import identifiers
from dynident.symbolic.vectors import Matrix, Vector, matrix, plus, product, scale, snapped, times, vector

Array = NDArray[np.float64]
Pose = tuple[Matrix, Vector]

NEGLIGIBLE = 1e-12  # [m]


@dataclass
class Geometry:
    """Placement of every tree node and of every body with parameters, as expressions.

    Parameters
    ----------
    placements : list of Pose
        Per tree node: orientation and origin of its joint frame in the parent node's frame.
    axes : list of Vector
        Per tree node: axis in the joint frame.
    frames : dict of str to (int, Pose)
        Per link: the node that carries it and its pose there.
    gravity : Vector
        Gravity in the base frame.
    symbols : dict of str to float
        Symbols of the lengths (and of gravity) with the robot's own numbers, in order.
    """

    placements: list[Pose]
    axes: list[Vector]
    frames: dict[str, tuple[int, Pose]]
    gravity: Vector
    symbols: dict[str, float] = field(default_factory=dict)


def read_geometry(graph: Graph, mechanism: Mechanism, symbolic: bool, snap: float) -> Geometry:
    """Return the geometry of a robot as expressions.

    Parameters
    ----------
    graph : Graph
        Where the expressions live.
    mechanism : Mechanism
        Robot.
    symbolic : bool
        Symbols instead of numbers for the lengths.
    snap : float
        Direction cosines closer than this to 0, 1, 1/2, ... are taken as exact.

    Returns
    -------
    Geometry
        Placements, axes, frames, gravity and symbols.
    """
    arrays, tree = mechanism.tree.arrays, mechanism.tree
    node_of = {tree.coordinates[int(first)]: i for i, first in enumerate(arrays.dof) if arrays.kind[i] != FIXED}
    apart = {body.name for body in mechanism.bodies if body.separate}
    symbols: dict[str, float] = {}
    identity = matrix(graph, np.eye(3))
    still: Pose = (identity, vector(graph, np.zeros(3)))
    frames: dict[str, tuple[int, Pose]] = {mechanism.root: (-1, still)}
    placements: list[Pose] = [still] * arrays.parent.size
    children: dict[str, list[Joint]] = {}
    for joint in mechanism.joints:
        children.setdefault(joint.parent, []).append(joint)
    names = [joint.name for joint in mechanism.joints]
    labels, owners = dict(zip(names, identifiers(names), strict=True)), _owners(mechanism)
    waiting = [mechanism.root]
    while waiting:
        body = waiting.pop()
        node, pose = frames[body]
        for joint in children.get(body, []):
            R = matrix(graph, snapped(joint.placement.rotation, snap))
            t = vector(graph, joint.placement.translation)
            if symbolic:
                t = _translation(graph, mechanism, joint, labels[joint.name], symbols)
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
    order = _natural(symbols)
    gravity = _gravity(graph, mechanism.gravity, order, symbolic)
    return Geometry(placements, axes, frames, gravity, order)


def compose(a: Pose, b: Pose) -> Pose:
    """Return the pose of C in A from B in A and C in B.

    Parameters
    ----------
    a, b : Pose
        Orientation and origin.

    Returns
    -------
    Pose
        Their composition.
    """
    return product(a[0], b[0]), plus(times(a[0], b[1]), a[1])


def _owners(mechanism: Mechanism) -> list[str]:
    """Return the joint that each tree node belongs to; nothing for a node without coordinates."""
    joint_of = {coordinate: joint.name for joint in mechanism.joints for coordinate in joint.coordinates}
    tree = mechanism.tree.arrays
    names = [*mechanism.tree.coordinates, ""]  # such a node may come last
    return [
        joint_of.get(names[int(first)], "") if kind != FIXED else "" for kind, first in zip(tree.kind, tree.dof, strict=True)
    ]


def _translation(graph: Graph, mechanism: Mechanism, joint: Joint, label: str, symbols: dict[str, float]) -> Vector:
    """Return the translation of a joint with a symbol for every length in it, numbers entered into `symbols`."""
    t = joint.placement.translation
    named = _dh_names(mechanism, joint) or [(row, f"r_{label}_{axis}") for row, axis in zip(np.eye(3), "xyz", strict=True)]
    result = vector(graph, np.zeros(3))
    for direction, name in named:
        length = float(t @ direction)
        if abs(length) > NEGLIGIBLE:
            symbols[name] = length
            result = plus(result, scale(vector(graph, snapped(direction, 1e-9)), graph.symbol(name)))
    return result


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


def _gravity(graph: Graph, gravity: Array, symbols: dict[str, float], symbolic: bool) -> Vector:
    """Return gravity, one symbol when it points along an axis."""
    moving = np.flatnonzero(gravity)
    if not symbolic or moving.size != 1:
        return vector(graph, gravity)
    size = float(np.abs(gravity[moving[0]]))
    label = "g" if "g" not in symbols else "g0"
    symbols[label] = size
    entries: list[Node | float] = [0.0, 0.0, 0.0]
    entries[int(moving[0])] = graph.symbol(label) * float(np.sign(gravity[moving[0]]))
    return vector(graph, entries)


def _natural(symbols: dict[str, float]) -> dict[str, float]:
    """Return the symbols sorted so that a2 comes before a10."""

    def key(label: str) -> tuple[int, str]:
        digits = "".join(c for c in label if c.isdigit())
        return (int(digits) if digits and label[0] in "ad" else 0, label)

    return dict(sorted(symbols.items(), key=lambda item: key(item[0])))
