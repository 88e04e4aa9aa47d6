"""The spanning tree as flat arrays: what the kernels run on.

Fixed joints disappear: bodies rigidly attached to each other form one group. The group is named after its first body with
mass, counted from the joint that moves it (the joint's own child unless that is a massless frame), and the parameters of
the group are expressed in that body's link frame. Joints with several axes become chains of simple nodes without mass
between.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array
from dynident.mechanism.elements import Joint, Placement
from dynident.mechanism.inertia import transform, transform_matrix

if TYPE_CHECKING:
    from dynident.mechanism.mechanism import Mechanism


REVOLUTE, PRISMATIC, SPHERICAL, FREE, FIXED = 0, 1, 2, 3, 4
NODE_DOF = (1, 1, 3, 6, 0)


class TreeArrays(NamedTuple):
    """Flat tree, one entry per node in an order where parents come first."""

    parent: NDArray[np.int64]  # Parent node, -1 for the base
    kind: NDArray[np.int64]
    dof: NDArray[np.int64]  # First coordinate of the node
    column: NDArray[np.int64]  # First of the ten inertial columns of the node's body, -1 without mass
    rotation: Array  # Joint frame in the parent node's frame
    translation: Array  # Joint frame in the parent node's frame
    axis: Array  # Axis in the joint frame
    support: NDArray[np.int64]  # Coordinates that move the node, in order from the base
    support_count: NDArray[np.int64]  # How many of them
    gravity: Array  # Gravity in the base frame [m/s^2]


@dataclass(frozen=True, eq=False)
class Tree:
    """A mechanism's spanning tree, ready for computation."""

    arrays: TreeArrays  # Flat arrays for the kernels
    bodies: tuple[str, ...]  # Names of the rigid groups that have parameters, in column order
    inertias: Array  # Their prior inertial parameters, each in the link frame of the body that names the group
    to_node: Array | None
    coordinates: tuple[str, ...]  # Names of the tree coordinates, in order
    frames: Mapping[str, tuple[int, Placement]]


def primitives(joint: Joint) -> list[tuple[int, Array]]:
    """Return the chain of simple nodes, (kind, axis) each, that makes the joint."""
    if joint.kind in ("revolute", "continuous"):
        return [(REVOLUTE, joint.axis)]
    if joint.kind == "prismatic":
        return [(PRISMATIC, joint.axis)]
    if joint.kind == "universal":
        return [(REVOLUTE, joint.axis), (REVOLUTE, joint.axis2)]
    if joint.kind == "fixed":
        return [(FIXED, joint.axis)]
    if joint.kind == "planar":
        first, second = joint.plane
        return [(PRISMATIC, first), (PRISMATIC, second), (REVOLUTE, joint.axis)]
    return [({"spherical": SPHERICAL, "free": FREE}[joint.kind], joint.axis)]


def build_tree(mechanism: Mechanism) -> Tree:
    """Flatten the spanning tree of `mechanism`."""
    children: dict[str, list[Joint]] = {}
    for joint in mechanism.joints:
        children.setdefault(joint.parent, []).append(joint)
    inertia_of = {body.name: body.inertia for body in mechanism.bodies}
    separate = {body.name for body in mechanism.bodies if body.separate}

    parent: list[int] = []
    kind: list[int] = []
    dof: list[int] = []
    column: list[int] = []
    rotation: list[Array] = []
    translation: list[Array] = []
    axis: list[Array] = []
    coordinates: list[str] = []
    bodies: list[str] = []
    inertias: list[Array] = []
    frames: dict[str, tuple[int, Placement]] = {mechanism.root: (-1, Placement())}
    poses: list[Placement] = []  # frame of the body that names the group, in its node's frame
    group_of: list[int] = []  # node -> index into inertias, -1 without mass

    def add_inertia(node: int, body: str, pose: Placement) -> None:
        phi = inertia_of[body]
        if node < 0 or phi is None:
            return
        if group_of[node] < 0:
            group_of[node] = len(bodies)
            column[node] = 10 * len(bodies)
            bodies.append(body)
            poses.append(pose)
            inertias.append(np.zeros(10))
        seen_from_group = poses[group_of[node]].inverse() @ pose
        inertias[group_of[node]] += transform(phi, seen_from_group.rotation, seen_from_group.translation)

    def outward(body: str) -> list[Joint]:
        """Return the joints that leave a body, last to be visited first: fixed ones, then in the order of the file."""
        return sorted(children.get(body, []), key=lambda joint: joint.kind != "fixed")[::-1]

    waiting = outward(mechanism.root)
    while waiting:
        joint = waiting.pop()
        node, pose = frames[joint.parent]
        placement = pose @ joint.placement
        if joint.kind == "fixed" and joint.child not in separate:
            frames[joint.child] = (node, placement)
        else:
            for i, (code, direction) in enumerate(primitives(joint)):
                parent.append(node)
                kind.append(code)
                dof.append(len(coordinates) + i)
                column.append(-1)
                group_of.append(-1)
                rotation.append(placement.rotation if i == 0 else np.eye(3))
                translation.append(placement.translation if i == 0 else np.zeros(3))
                axis.append(direction)
                node = len(parent) - 1
            coordinates.extend(joint.coordinates)
            frames[joint.child] = (node, Placement())
        node, pose = frames[joint.child]
        add_inertia(node, joint.child, pose)
        waiting.extend(outward(joint.child))

    k = len(parent)
    arrays = TreeArrays(
        np.array(parent, dtype=np.int64),
        np.array(kind, dtype=np.int64),
        np.array(dof, dtype=np.int64),
        np.array(column, dtype=np.int64),
        np.array(rotation).reshape(k, 3, 3),
        np.array(translation).reshape(k, 3),
        np.array(axis).reshape(k, 3),
        *_support(parent, kind, dof, len(coordinates)),
        np.array(mechanism.gravity, dtype=np.float64),
    )
    flat = np.concatenate(inertias) if inertias else np.zeros(0)
    return Tree(arrays, tuple(bodies), flat, _to_node(poses), tuple(coordinates), frames)


def _support(parent: list[int], kind: list[int], dof: list[int], n: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return support and support_count of `TreeArrays`."""
    k = len(parent)
    support = np.zeros((k, n), dtype=np.int64)
    count = np.zeros(k, dtype=np.int64)
    for i in range(k):
        inherited = support[parent[i], : count[parent[i]]].tolist() if parent[i] >= 0 else []
        own = range(dof[i], dof[i] + NODE_DOF[kind[i]])
        count[i] = len(inherited) + len(own)
        support[i, : count[i]] = [*inherited, *own]
    return support, count


def _to_node(poses: list[Placement]) -> Array | None:
    """Return the block-diagonal map from link frames to node frames, or None when they coincide."""
    if all(np.array_equal(p.rotation, np.eye(3)) and not p.translation.any() for p in poses):
        return None
    result = np.zeros((10 * len(poses), 10 * len(poses)))
    for i, pose in enumerate(poses):
        result[10 * i : 10 * i + 10, 10 * i : 10 * i + 10] = transform_matrix(pose.rotation, pose.translation)
    return result
