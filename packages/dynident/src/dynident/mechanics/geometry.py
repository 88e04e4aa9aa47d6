"""Where the joints sit in a robot's tree, as expressions: numbers here, symbols for lengths in `dynident.symbolic`."""

from __future__ import annotations

from dataclasses import dataclass, field

from dynident.graph.expression import Graph
from dynident.mechanics.vectors import Matrix, Vector, matrix, plus, product, snapped, times, vector
from dynident.mechanism.mechanism import Mechanism

Pose = tuple[Matrix, Vector]

SNAP = 1e-12  # direction cosines closer than this to 0, 1, 1/2, ... are taken as exact: the decimals a file was printed with


@dataclass
class Geometry:
    """Placement of every tree node and of every body with parameters, as expressions."""

    placements: list[Pose]  # per tree node: orientation and origin of its joint frame in the parent node's frame
    axes: list[Vector]  # per tree node: axis in the joint frame
    frames: dict[str, tuple[int, Pose]]  # per link: the node that carries it and its pose there
    gravity: Vector  # in the base frame
    symbols: dict[str, float] = field(default_factory=dict)  # of lengths (and gravity) with the robot's own numbers, in order


def compose(a: Pose, b: Pose) -> Pose:
    """Return the pose of C in A from B in A and C in B."""
    return product(a[0], b[0]), plus(times(a[0], b[1]), a[1])


def numeric_geometry(graph: Graph, mechanism: Mechanism) -> Geometry:
    """Return the geometry of a robot with its own numbers."""
    arrays = mechanism.tree.arrays
    turns = [matrix(graph, rotation) for rotation in snapped(arrays.rotation, SNAP)]
    shifts = [vector(graph, translation) for translation in arrays.translation]
    axes = [vector(graph, axis) for axis in snapped(arrays.axis, SNAP)]
    frames = {}
    for body in mechanism.bodies:
        node, placement = mechanism.tree.frames[body.name]
        pose = matrix(graph, snapped(placement.rotation, SNAP)), vector(graph, placement.translation)
        frames[body.name] = (node, pose)
    return Geometry(list(zip(turns, shifts, strict=True)), axes, frames, vector(graph, arrays.gravity))
