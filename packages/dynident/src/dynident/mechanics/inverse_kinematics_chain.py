"""The joint axes of a serial arm at q = 0, seen from the base, and the angles that turn one vector into another.

Pose of the end frame as a product of exponentials of the joint screws S_i [Brockett1984]:

    T(q) = exp(S_1 q_1) ... exp(S_n q_n) T(0),    S_i: axis k_i through point o_i, or shift along k_i

Everything that closed-form inverse kinematics has to know of a robot is in (k_i, o_i) and T(0).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array
from dynident.errors import DynidentError
from dynident.mechanics.functions import tree_only
from dynident.mechanics.kinematics import end_frame
from dynident.mechanism.mechanism import Mechanism
from dynident.mechanism.tree_state import node_poses

PARALLEL = 1e-4  # rad: descriptions round right angles (1.5708); what is left is removed by polishing
EXACT = 1e-11  # rad, or parts of the arm's length: below this the structure needs no polishing
TOUCH = 4e-13  # parts of the arm's length by which a target may overstep the reach and still count as stretched


@dataclass(frozen=True, eq=False)
class Chain:
    """Joint axes of a serial arm at q = 0 in the base frame."""

    joints: tuple[str, ...]  # coordinate names, base first
    revolute: NDArray[np.bool_]  # (n,), True for joints that turn, False for joints that slide
    axes: Array  # (n, 3), unit vectors k_i
    points: Array  # (n, 3), a point o_i on each axis [m]
    rotation: Array  # (3, 3), of the end frame at q = 0
    position: Array  # (3,), origin of the end frame at q = 0 [m]
    gravity: Array  # (3,) [m/s^2]; tells up from down

    @property
    def length(self) -> float:
        """Size of the arm: sum of the distances between neighbouring joints and the end [m]."""
        corners = np.vstack([self.points, self.position])
        return max(float(np.sum(np.linalg.norm(np.diff(corners, axis=0), axis=1))), 1e-9)


def chain_of(mechanism: Mechanism, frame: str | None = None) -> Chain:
    """Return the joint axes from the base to a link at q = 0."""
    name = end_frame(mechanism, frame)
    tree_only(mechanism, "closed-form inverse kinematics")
    numeric = "use inverse_kinematics_numeric (dynident ik --numeric), which needs no particular structure"
    if mechanism.couplings:
        followers = ", ".join(coupling.joint for coupling in mechanism.couplings)
        raise DynidentError(f"robot '{mechanism.name}' has no closed-form inverse: joints {followers} follow others; {numeric}")
    tree = mechanism.tree.arrays
    node, placement = mechanism.frame(name)
    moving: list[int] = []
    while node >= 0:
        moving.insert(0, node)
        node = int(tree.parent[node])
    coordinates = mechanism.tree.coordinates
    odd = [coordinates[tree.dof[i]] for i in range(tree.parent.size) if tree.kind[i] > 1]
    if odd:
        raise DynidentError(f"robot '{mechanism.name}' has no closed-form inverse: joint {odd[0]} has several axes; {numeric}")
    others = [c for c in coordinates if c not in [coordinates[tree.dof[i]] for i in moving]]
    if others or not moving:
        raise DynidentError(
            f"frame '{name}' does not move with {', '.join(others) or 'any joint'}; lock such joints with mechanism.lock or "
            "name another frame"
        )
    poses = node_poses(mechanism.tree, np.zeros(len(coordinates)))
    axes, points = [poses[i].rotation @ tree.axis[i] for i in moving], [poses[i].translation for i in moving]
    end = poses[moving[-1]] @ placement
    revolute = np.array([tree.kind[i] == 0 for i in moving])
    names = tuple(coordinates[tree.dof[i]] for i in moving)
    return Chain(names, revolute, np.array(axes), np.array(points), end.rotation, end.translation, mechanism.gravity)


def turned(axis: Array, angle: Array, x: Array) -> Array:
    """Return Rot(k, theta) x = k (k.x) + cos(theta) (x - k (k.x)) + sin(theta) k x x."""
    along = (x @ axis)[..., None] * axis
    c, s = np.cos(angle)[..., None], np.sin(angle)[..., None]
    return np.asarray(along + c * (x - along) + s * np.cross(axis, x))


def rotations(axis: Array, angle: Array) -> Array:
    """Return the matrices Rot(k, theta)."""
    columns = [turned(axis, angle, np.broadcast_to(unit, (*np.shape(angle), 3))) for unit in np.eye(3)]
    return np.stack(columns, axis=-1)


def angle_between(axis: Array, x: Array, y: Array) -> Array:
    """Return theta with Rot(k, theta) x = y, as well as x and y allow: the angle of their parts across k."""
    across = x - (x @ axis)[..., None] * axis
    return np.asarray(np.arctan2(np.sum(np.cross(across, y) * axis, axis=-1), np.sum(across * y, axis=-1)))


def wrapped(angle: Array) -> Array:
    """Return the angle in [-pi, pi)."""
    turns = np.floor((angle + np.pi) / (2.0 * np.pi))
    return np.where(turns == 0.0, angle, angle - 2.0 * np.pi * turns)
