"""The spanning tree: flat arrays (`Tree`), and its motion as expressions (`TreeState`).

Fixed joints disappear: bodies rigidly attached to each other form one group. The group is named after its first body with
mass, counted from the joint that moves it (the joint's own child unless that is a massless frame), and the parameters of
the group are expressed in that body's link frame. Joints with several axes become chains of simple nodes, massless in
between.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.arrays import Array
from dynident.graph.algebra import (
    Matrix,
    Vector,
    back,
    cross,
    dot,
    matrix,
    plus,
    product,
    scale,
    snapped,
    times,
    vector,
)
from dynident.graph.expression import Graph, Node
from dynident.mechanism.elements import Joint, Placement, frozen
from dynident.mechanism.parameters import transform, transform_matrix

if TYPE_CHECKING:
    from dynident.mechanism.mechanism import Mechanism

REVOLUTE, PRISMATIC, SPHERICAL, FREE, FIXED = 0, 1, 2, 3, 4
NODE_DOF = (1, 1, 3, 6, 0)


class TreeArrays(NamedTuple):
    """Flat tree, one entry per node; parents precede their children."""

    parent: NDArray[np.int64]  # Parent node, -1 for the base
    kind: NDArray[np.int64]
    dof: NDArray[np.int64]  # First coordinate of the node
    column: NDArray[np.int64]  # First of the ten inertial columns of the node's body, -1 without mass
    rotation: Array  # Joint frame in the parent node's frame
    translation: Array  # Joint frame in the parent node's frame
    axis: Array  # Axis in the joint frame
    support: NDArray[np.int64]  # Coordinates that move the node, in order from the base
    support_count: NDArray[np.int64]  # Number of these coordinates
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
    """Return the chain of simple nodes, (kind, axis) each, that is equivalent to the joint."""
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

    def add_inertia(node: int, body: str, pose: Placement) -> None:
        phi = inertia_of[body]
        if node < 0 or phi is None:
            return
        if column[node] < 0:
            column[node] = 10 * len(bodies)
            bodies.append(body)
            poses.append(pose)
            inertias.append(np.array(phi))
            return
        group = column[node] // 10
        seen_from_group = poses[group].inverse() @ pose
        inertias[group] += transform(phi, seen_from_group.rotation, seen_from_group.translation)

    def outward(body: str) -> list[Joint]:
        """Return the joints from a body in reverse order of visits: fixed ones first, then in the order of the file."""
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
    count = len(poses)
    result = np.zeros((count, 10, count, 10))
    own = np.arange(count)
    result[own, :, own] = transform_matrix(np.array([p.rotation for p in poses]), np.array([p.translation for p in poses]))
    return result.reshape(10 * count, 10 * count)


Pose = tuple[Matrix, Vector]
Twist = tuple[Vector, Vector]
"""(angular, linear); a wrench is (moment, force)."""

SNAP = 1e-12  # direction cosines closer than this to 0, 1, 1/2, ... become exact: files have few decimals


@dataclass
class Geometry:
    """Placement of every tree node and of every body, as expressions: numbers here, symbols in `dynident.symbolic`."""

    placements: list[Pose]  # per tree node: orientation and origin of its joint frame in the parent node's frame
    axes: list[Vector]  # per tree node: axis in the joint frame
    frames: dict[str, tuple[int, Pose]]  # per link: the node that carries it and its pose there
    gravity: Vector  # in the base frame
    symbols: dict[str, float] = field(default_factory=dict)  # of lengths (and gravity) with the robot's own numbers, in order


def compose(a: Pose, b: Pose) -> Pose:
    """Return the pose of C in A from B in A and C in B."""
    return product(a[0], b[0]), plus(times(a[0], b[1]), a[1])


def numeric_geometry(graph: Graph, tree: Tree) -> Geometry:
    """Return the geometry of a robot with its own numbers."""
    arrays = tree.arrays
    turns = [matrix(graph, rotation) for rotation in snapped(arrays.rotation, SNAP)]
    shifts = [vector(graph, translation) for translation in arrays.translation]
    axes = [vector(graph, axis) for axis in snapped(arrays.axis, SNAP)]
    frames = {}
    for body, (node, placement) in tree.frames.items():
        frames[body] = node, (matrix(graph, snapped(placement.rotation, SNAP)), vector(graph, placement.translation))
    return Geometry(list(zip(turns, shifts, strict=True)), axes, frames, vector(graph, arrays.gravity))


def joint_pose(kind: int, placement: Pose, axis: Vector, q: Sequence[Node]) -> Pose:
    """Return the pose of a simple node in its parent's frame, from its joint frame and its coordinates."""
    P, t = placement
    if kind == FIXED:
        return placement
    if kind == PRISMATIC:
        return P, plus(t, scale(times(P, axis), q[0]))
    graph = q[0].graph
    if kind == REVOLUTE:
        c, s = graph.call("cos", q[0]), graph.call("sin", q[0])
        along = [i for i in range(3) if axis[i].is_const(1.0) or axis[i].is_const(-1.0)]
        return product(P, _rotation(axis, c, s, graph.one - c, along)), t
    x: Vector = (q[-3], q[-2], q[-1])
    square = dot(x, x)
    f, g = graph.call("sinc", square), graph.cosc(square)
    shift = plus(t, times(P, (q[0], q[1], q[2]))) if kind == FREE else t
    return product(P, _rotation(x, graph.one - g * square, f, g, ())), shift


def _rotation(x: Vector, c: Node, s: Node, g: Node, along: Sequence[int]) -> Matrix:
    """Return c 1 + s [x]x + g x x^T; a unit axis `along` x, y or z gives entries without 1 - cos."""
    rows: list[list[Node]] = []
    for i in range(3):
        row = []
        for j in range(3):
            if i == j:
                row.append(c.graph.one if i in along else c + g * x[i] * x[i])
            else:
                k = 3 - i - j
                sign = -1.0 if (j - i) % 3 == 1 else 1.0
                row.append(g * x[i] * x[j] + s * x[k] * sign)
        rows.append(row)
    return matrix(c.graph, rows)


def joint_transform(joint: Joint, q: ArrayLike) -> Placement:
    """Return the pose of the child frame in the joint frame at a position of the joint."""
    x = frozen(np.atleast_1d(np.asarray(q, dtype=np.float64)), (len(joint.coordinates),), f"joint '{joint.name}': position")
    graph, first = Graph(), 0
    pose: Pose = matrix(graph, np.eye(3)), vector(graph, np.zeros(3))
    for kind, axis in primitives(joint):
        own = [graph.const(value) for value in x[first : first + NODE_DOF[kind]].tolist()]
        pose = joint_pose(kind, pose, vector(graph, axis), own)
        first += len(own)
    return _placement(pose)


def _placement(pose: Pose) -> Placement:
    """Return a placement from a pose with constant entries."""
    R, r = pose
    return Placement(np.array([[entry.value for entry in row] for row in R]), np.array([entry.value for entry in r]))


def node_poses(tree: Tree, q: Array) -> list[Placement]:
    """Return the pose of every tree node in the base frame at one configuration (n_tree,)."""
    graph = Graph()
    still = [graph.zero] * q.size
    now = [graph.const(value) for value in q.tolist()]
    state = TreeState(graph, tree.arrays, numeric_geometry(graph, tree), now, still, still)
    return [_placement(state.world(i)) for i in range(state.nodes)]


def spin(w: Vector, al: Vector) -> Matrix:
    """Return S = [alpha]x + [omega]x^2."""
    p01, p02, p12 = w[0] * w[1], w[0] * w[2], w[1] * w[2]
    p00, p11, p22 = w[0] * w[0], w[1] * w[1], w[2] * w[2]
    return (
        (-(p11 + p22), p01 - al[2], p02 + al[1]),
        (p01 + al[2], -(p00 + p22), p12 - al[0]),
        (p02 - al[1], p12 + al[0], -(p00 + p11)),
    )


class TreeState:
    """All quantities of one state (q, v, a) of the tree, each computed on first use."""

    def __init__(
        self,
        graph: Graph,
        tree: TreeArrays,
        geometry: Geometry,
        q: Sequence[Node],
        v: Sequence[Node],
        a: Sequence[Node],
        gravity: Vector | None = None,
    ) -> None:
        self.graph, self.geometry, self.q, self.v, self.a = graph, geometry, q, v, a
        self.tree, self.nodes = tree, int(tree.parent.size)
        self.zero = vector(graph, (0.0, 0.0, 0.0))
        self.gravity = self.zero if gravity is None else gravity

    def support(self, i: int) -> list[int]:
        """Return the coordinates that move a node, from the base outward."""
        return [int(d) for d in self.tree.support[i, : self.tree.support_count[i]]]

    @cached_property
    def poses(self) -> list[Pose]:
        """Pose of every node in its parent's frame."""
        found = []
        for kind, d, place, axis in zip(
            self.tree.kind, self.tree.dof, self.geometry.placements, self.geometry.axes, strict=True
        ):
            found.append(joint_pose(int(kind), place, axis, self.q[d : d + NODE_DOF[kind]]))
        return found

    def rates(self, i: int, x: Sequence[Node] | Mapping[int, Node]) -> Twist:
        """Return the angular and linear rate of the joint in the child frame."""
        kind, d = int(self.tree.kind[i]), int(self.tree.dof[i])
        if kind == FIXED:
            return self.zero, self.zero
        if kind == REVOLUTE:
            return scale(self.geometry.axes[i], x[d]), self.zero
        if kind == PRISMATIC:
            return self.zero, scale(self.geometry.axes[i], x[d])
        if kind == SPHERICAL:
            return (x[d], x[d + 1], x[d + 2]), self.zero
        return (x[d + 3], x[d + 4], x[d + 5]), (x[d], x[d + 1], x[d + 2])

    @cached_property
    def motions(self) -> list[tuple[Vector, Vector, Vector]]:
        """Angular velocity, angular acceleration and origin acceleration minus gravity, in each node's frame."""
        found: list[tuple[Vector, Vector, Vector]] = []
        for i in range(self.nodes):
            p, (R, r) = int(self.tree.parent[i]), self.poses[i]
            (wj, vj), (aj, lj) = self.rates(i, self.v), self.rates(i, self.a)
            w, al, ac = self.zero, self.zero, scale(self.gravity, -1.0)
            if p >= 0:
                w, al, ac = found[p]
                ac = plus(ac, times(spin(w, al), r))
                w, al = back(R, w), back(R, al)
            ac = back(R, ac)
            alpha = plus(plus(al, aj), cross(w, wj))
            found.append((plus(w, wj), alpha, plus(plus(ac, lj), cross(plus(scale(w, 2.0), wj), vj))))
        return found

    @cached_property
    def velocities(self) -> list[Twist]:
        """Angular and linear velocity of every node, in its own frame."""
        found: list[Twist] = []
        for i in range(self.nodes):
            p, (R, r) = int(self.tree.parent[i]), self.poses[i]
            w, u = found[p] if p >= 0 else (self.zero, self.zero)
            wj, vj = self.rates(i, self.v)
            found.append((plus(back(R, w), wj), plus(back(R, plus(u, cross(w, r))), vj)))
        return found

    @cached_property
    def columns(self) -> list[dict[int, Twist]]:
        """Jacobian columns (w, l) of every node by coordinate, in its own frame."""
        found: list[dict[int, Twist]] = []
        for i in range(self.nodes):
            p, (R, r) = int(self.tree.parent[i]), self.poses[i]
            passed: dict[int, Twist] = {}
            for e, (w, u) in (found[p] if p >= 0 else {}).items():
                passed[e] = (back(R, w), back(R, plus(u, cross(w, r))))
            found.append(passed | self.own_columns(i))
        return found

    def own_columns(self, i: int) -> dict[int, Twist]:
        """Return the columns of the node's joint by coordinate."""
        d = int(self.tree.dof[i])
        own: dict[int, Twist] = {}
        for k in range(NODE_DOF[int(self.tree.kind[i])]):
            unit = dict.fromkeys(range(d, d + 6), self.graph.zero) | {d + k: self.graph.one}
            own[d + k] = self.rates(i, unit)
        return own

    def world(self, i: int) -> Pose:
        """Return the pose of a node in the base frame."""
        R, p = matrix(self.graph, ((1, 0, 0), (0, 1, 0), (0, 0, 1))), self.zero
        while i >= 0:
            r, t = self.poses[i]
            R, p = product(r, R), plus(times(r, p), t)
            i = int(self.tree.parent[i])
        return R, p
