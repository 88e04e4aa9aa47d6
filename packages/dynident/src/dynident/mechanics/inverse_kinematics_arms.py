"""Arms whose inverse kinematics has a closed form: planar and SCARA, elbow arms (3R with offsets), elbow arms with a wrist.

Every family implements `Arm`: all branches, and the distance from singularities.
Square roots are computed from factored differences, as in Heron's formula, so that poses stay exact when the arm is stretched
or the wrist is straight.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array
from dynident.errors import DynidentError
from dynident.mechanics.dynamics import end_frame
from dynident.mechanics.functions import tree_only
from dynident.mechanism.mechanism import Mechanism
from dynident.mechanism.tree import node_poses

TILT = 1e-9  # largest deviation of a target from the plane of a planar arm [rad, or parts of the arm's length]


@dataclass(frozen=True, eq=False)
class Arm(ABC):
    """Interface of a family of arms."""

    chain: Chain
    mismatch: float  # deviation from the exact structure [rad, or parts of the arm's length]

    @property
    @abstractmethod
    def kind(self) -> str:
        """Name of the family."""

    @property
    @abstractmethod
    def postures(self) -> tuple[str, ...]:
        """Name of each branch."""

    @property
    def needs_rotation(self) -> bool:
        """Whether a target includes an orientation."""
        return True

    @abstractmethod
    def solve(self, rotation: Array | None, position: Array) -> Array:
        """Return all branches (N, branches, n), NaN where a branch does not exist."""

    @abstractmethod
    def singularities(self, q: Array) -> dict[str, Array]:
        """Return the distance from each kind of singularity: 0 at the singularity, 1 at most."""


def two_links(first: complex, second: complex, target: Array, sign: float, scale: float) -> tuple[Array, Array]:
    """Return the angles of shoulder and elbow that bring two links to targets in their plane; NaN out of reach.

    All are complex numbers; a positive sign leaves the elbow on the right of the line to the target.
    """
    a, b, reach = abs(first), abs(second), np.abs(target)
    long, short = a + b, abs(a - b)
    product = (long - reach) * (long + reach) * (reach - short) * (reach + short)
    off = np.maximum(reach - long, short - reach) > TOUCH * scale
    sine = np.where(off, np.nan, np.sqrt(np.maximum(product, 0.0)) / (2.0 * a * b))
    cosine = (reach**2 - a**2 - b**2) / (2.0 * a * b)
    bend = np.arctan2(sign * sine, cosine) - np.angle(second / first)
    return np.angle(target * np.conj(first + np.exp(1j * bend) * second)), bend


def plane_of_links(chain: Chain) -> tuple[Array, Array]:
    """Return the axes of the plane perpendicular to axis 2: forward along k1 x k2, and k2 x forward."""
    k1, k2 = chain.axes[:2]
    forward = np.cross(k1, k2)
    forward = forward / np.linalg.norm(forward)
    return forward, np.cross(k2, forward)


def whole(branches: Array) -> Array:
    """Return branches (N, branches, n), angles in [-pi, pi); a branch with a NaN angle is entirely NaN."""
    branches[~np.isfinite(branches).all(axis=2)] = np.nan
    return wrapped(branches)


def waist_angles(chain: Chain, v: Array, offset: float) -> tuple[Array, Array]:
    """Return middle and swing of both waist angles q1, middle +- swing, for points v from axis 1; NaN out of reach.

    Parallel axes after the waist cannot change the offset along k2, so k2 . Rot(k1, -q1) v = offset fixes it.
    """
    k1, k2 = chain.axes[:2]
    across, along = k2 - (k2 @ k1) * k1, v @ k1
    radius = np.linalg.norm(v - along[:, None] * k1, axis=1) * np.linalg.norm(across)
    level = offset - (k2 @ k1) * along
    root = np.sqrt(np.maximum((radius - level) * (radius + level), 0.0))
    swing = np.where(np.abs(level) - radius > TOUCH * chain.length, np.nan, np.arctan2(root, level))
    return np.arctan2(np.cross(across, v) @ k1, v @ across), swing


@dataclass(frozen=True, eq=False)
class PlanarArm(Arm):
    """One to three parallel revolute joints and at most one slide along them (SCARA): motions in a plane."""

    @property
    def kind(self) -> str:
        turns = int(self.chain.revolute.sum())
        return f"planar {turns}R" if self.chain.revolute.all() else f"SCARA ({turns}R and a slide)"

    @property
    def postures(self) -> tuple[str, ...]:
        """Elbow left or right of the line from shoulder to wrist, seen against the direction of the axes."""
        return ("left", "right") if self.chain.revolute.sum() > 1 else ("only",)

    @property
    def needs_rotation(self) -> bool:
        """True with three revolute joints."""
        return bool(self.chain.revolute.sum() == 3)

    def _plane(self) -> tuple[Array, Array, Array]:
        """Return the normal and two axes of the plane, right-handed."""
        k = self.chain.axes[self.chain.revolute][0]
        x = np.cross(k, np.eye(3)[int(np.argmin(np.abs(k)))])
        x /= np.linalg.norm(x)
        return k, x, np.cross(k, x)

    def _target(self, rotation: Array | None, position: Array) -> tuple[Array, Array, Array, Array, Array]:
        """Return complex link vectors, complex wrist target, total turn, height above q = 0, tilt."""
        chain, (k, x, y) = self.chain, self._plane()
        points, turn, tilt = chain.points[chain.revolute], np.zeros(len(position)), np.zeros(len(position))
        corners, wrist = [*points, chain.position], position
        if rotation is not None:
            change = rotation @ chain.rotation.T
            tilt = np.arctan2(np.linalg.norm(np.cross(k, change @ k), axis=-1), change @ k @ k)
            turn = angle_between(k, np.broadcast_to(x, position.shape), change @ x)
            wrist, corners = position + change @ (points[2] - chain.position), [*points]
        plane = np.array([c @ x + 1j * (c @ y) for c in corners])
        sense = np.sign(chain.axes[chain.revolute] @ k)  # axes may point down as well as up
        height = position @ k - chain.position @ k
        return np.diff(plane), wrist @ x + 1j * (wrist @ y) - plane[0], np.vstack([turn, tilt]), height, sense

    def solve(self, rotation: Array | None, position: Array) -> Array:
        chain = self.chain
        links, wrist, (turn, tilt), height, sense = self._target(rotation, position)
        slides = not chain.revolute.all()
        out = np.full((len(position), len(self.postures), len(chain.joints)), np.nan)
        angles = np.empty((len(position), len(self.postures), int(chain.revolute.sum())))
        if angles.shape[2] == 1:
            off = np.abs(np.abs(wrist) - abs(links[0])) > TOUCH * chain.length
            angles[:, 0, 0] = np.where(off, np.nan, np.angle(wrist / links[0]))
        else:
            for b, sign in enumerate((-1.0, 1.0)):
                angles[:, b, 0], angles[:, b, 1] = two_links(links[0], links[1], wrist, sign, chain.length)
            if rotation is not None:
                angles[:, :, 2] = turn[:, None] - angles[:, :, 0] - angles[:, :, 1]
        out[:, :, chain.revolute] = wrapped(angles * sense)
        if slides:
            along = chain.axes[~chain.revolute][0] @ self._plane()[0]
            out[:, :, ~chain.revolute] = (np.sign(along) * height)[:, None, None]
        else:
            tilt = np.maximum(tilt, np.abs(height) / chain.length)
        out[(tilt > TILT) | ~np.isfinite(out).all(axis=2).any(axis=1)] = np.nan
        return out

    def singularities(self, q: Array) -> dict[str, Array]:
        """Return the distance from the stretched or folded arm: |sin| of the elbow angle."""
        links = self._target(np.eye(3)[None] if self.needs_rotation else None, np.zeros((1, 3)))[0]
        if links.size < 2:
            return {}
        sense = np.sign(self.chain.axes[self.chain.revolute] @ self._plane()[0])
        return {"elbow": np.abs(np.sin(sense[1] * q[:, self.chain.revolute][:, 1] + np.angle(links[1] / links[0])))}


@dataclass(frozen=True, eq=False)
class ElbowArm(Arm):
    """Three revolute joints (the first of the chain), the second and third parallel, the first not: places a point."""

    point: Array  # (3,), the point to place, at q = 0 in the base frame [m]

    kind = "elbow arm (3R, axes 2 and 3 parallel)"
    # Front or back: the side of axis 1 on which the point is, relative to q = 0; elbow above or below.
    postures = ("front up", "front down", "back up", "back down")
    needs_rotation = False

    def _senses(self) -> tuple[float, float]:
        """Return the forward sense of k1 x k2, and +1 if the second axis of the plane is up."""
        k1, (forward, second) = self.chain.axes[0], plane_of_links(self.chain)
        reach = forward @ (self.point - self.chain.points[0])
        side = -1.0 if reach < -1e-9 * self.chain.length else 1.0
        # Up is opposite to the gravity component along axis 1; without gravity it is along axis 1.
        up = -k1 if k1 @ self.chain.gravity > 0.0 else k1
        return side, float(np.sign(second @ up))

    def _links(self) -> tuple[complex, complex, float]:
        """Return the two links as complex numbers in the plane, and the offset along axis 2."""
        forward, second = plane_of_links(self.chain)
        corners = [*self.chain.points[1:3], self.point]
        flat = [complex(c @ forward, c @ second) for c in corners]
        offset = float(self.chain.axes[1] @ (self.point - self.chain.points[0]))
        return flat[1] - flat[0], flat[2] - flat[1], offset

    def solve(self, rotation: Array | None, position: Array) -> Array:
        (k1, k2, k3), (o1, o2, _) = self.chain.axes[:3], self.chain.points[:3]
        (forward, second), (side, up) = plane_of_links(self.chain), self._senses()
        first_link, second_link, offset = self._links()
        v = position - o1
        middle, swing = waist_angles(self.chain, v, offset)
        out = np.empty((len(position), 4, 3))
        for b, (front, elbow) in enumerate(((1.0, 1.0), (1.0, -1.0), (-1.0, 1.0), (-1.0, -1.0))):
            # Turning v back by more than to the middle brings it to the side of k1 x k2.
            waist = middle - front * side * swing
            u = turned(k1, -waist, v) + o1 - o2
            w, sign = u @ forward + 1j * (u @ second), -elbow * front * side * up
            shoulder, bend = two_links(first_link, second_link, w, sign, self.chain.length)
            out[:, b] = np.stack([waist, shoulder, bend * np.sign(k2 @ k3)], axis=1)
        return whole(out)

    def singularities(self, q: Array) -> dict[str, Array]:
        """Return |sin| of the elbow angle and the point's relative distance from axis 1; det J is their product."""
        first_link, second_link, _ = self._links()
        sign = np.sign(self.chain.axes[1] @ self.chain.axes[2])
        bend = sign * q[:, 2]
        forward = plane_of_links(self.chain)[0] @ (self.chain.points[1] - self.chain.points[0])
        reach = forward + (np.exp(1j * q[:, 1]) * (first_link + np.exp(1j * bend) * second_link)).real
        longest = abs(forward) + abs(first_link) + abs(second_link)
        elbow = np.abs(np.sin(bend + np.angle(second_link / first_link)))
        return {"shoulder": np.abs(reach) / longest, "elbow": elbow}


def wrist_angles(axes: Array, x: Array, turn: Array) -> list[tuple[Array, Array, Array]]:
    """Return both solutions (q4, q5, q6) whose rotations about three axes give `turn`, which takes the last axis to x."""
    k4, k5, k6 = axes
    middle = angle_between(k5, k6, k4)
    side = np.eye(3)[int(np.argmin(np.abs(k6)))]
    phi = np.arctan2(np.linalg.norm(np.cross(k4, x), axis=-1), x @ k4)
    alpha, beta = (float(np.arccos(np.clip(c, -1.0, 1.0))) for c in (k4 @ k5, k5 @ k6))
    edges = [phi + alpha - beta, phi - alpha + beta, alpha + beta + phi, alpha + beta - phi]
    off = (np.minimum(edges[0], edges[1]) < -TOUCH) | (edges[3] < -TOUCH) | (edges[2] > 2 * np.pi + TOUCH)
    root = np.sqrt(np.maximum(4.0 * np.prod([np.sin(0.5 * e) for e in edges], axis=0), 0.0))
    swing = np.where(off, np.nan, np.arctan2(root, np.cos(phi) - np.cos(alpha) * np.cos(beta)))
    found = []
    for sign in (1.0, -1.0):
        q5 = middle + sign * swing
        q4 = angle_between(k4, turned(k5, q5, np.broadcast_to(k6, x.shape)), x)
        # The remaining rotation after q4 and q5 is about the last axis, also when the wrist is straight.
        y = turned(k5, -q5, turned(k4, -q4, turn @ side))
        found.append((q4, q5, angle_between(k6, np.broadcast_to(side, y.shape), y)))
    return found


@dataclass(frozen=True, eq=False)
class WristArm(Arm):
    """An elbow arm whose last three axes meet in one point [Pieper1968]: arm and wrist are solved one after the other."""

    centre: Array  # (3,), of the wrist at q = 0 in the base frame [m]

    kind = "elbow arm with spherical wrist (6R)"
    # Flip: joint 5 on the negative side of the angle at which axes 4 and 6 are collinear.
    postures = tuple(f"{arm} {wrist}" for arm in ElbowArm.postures for wrist in ("noflip", "flip"))

    @property
    def arm(self) -> ElbowArm:
        """The first three joints, which place the wrist centre."""
        return ElbowArm(self.chain, self.mismatch, self.centre)

    def _centre(self, rotation: Array, position: Array) -> Array:
        return np.asarray(position + rotation @ (self.chain.rotation.T @ (self.centre - self.chain.position)))

    def _wrist(self, change: Array, q: Array) -> tuple[Array, Array]:
        """Return the direction of axis 6 that the wrist must reach, in arm axes, and the turn of the wrist."""
        before = np.eye(3)
        for k, angle in zip(self.chain.axes[:3], np.nan_to_num(q).T, strict=True):
            before = before @ rotations(k, angle)
        turn = np.swapaxes(before, -1, -2) @ change
        return turn @ self.chain.axes[5], turn

    def solve(self, rotation: Array | None, position: Array) -> Array:
        assert rotation is not None
        out = np.empty((len(position), 8, 6))
        for b, q in enumerate(np.moveaxis(self.arm.solve(None, self._centre(rotation, position)), 1, 0)):
            x, turn = self._wrist(rotation @ self.chain.rotation.T, q)
            for c, wrist in enumerate(wrist_angles(self.chain.axes[3:], x, turn)):
                out[:, 2 * b + c] = np.column_stack([q, *wrist])
        return whole(out)

    def singularities(self, q: Array) -> dict[str, Array]:
        """Return the values of the elbow arm and |sin| of the angle of joint 5 from collinear axes 4 and 6."""
        k4, k5, k6 = self.chain.axes[3:]
        wrist = np.abs(np.sin(q[:, 4] - angle_between(k5, k6, k4)))
        return {**self.arm.singularities(q), "wrist": wrist}


PARALLEL = 1e-4  # rad: descriptions round right angles (1.5708); polishing removes the remaining error
EXACT = 1e-11  # rad, or parts of the arm's length: below this the structure needs no polishing
TOUCH = 4e-13  # largest excess over the reach, in parts of the arm's length, that counts as stretched


@dataclass(frozen=True, eq=False)
class Chain:
    """Joint axes of a serial arm at q = 0 in the base frame: T(q) = exp(S_1 q_1) ... exp(S_n q_n) T(0) [Brockett1984]."""

    joints: tuple[str, ...]  # coordinate names, base first
    revolute: NDArray[np.bool_]  # (n,), True for revolute, False for prismatic joints
    axes: Array  # (n, 3), unit vectors k_i
    points: Array  # (n, 3), a point o_i on each axis [m]
    rotation: Array  # (3, 3), of the end frame at q = 0
    position: Array  # (3,), origin of the end frame at q = 0 [m]
    gravity: Array  # (3,) [m/s^2]; defines the vertical

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
    """Return theta with Rot(k, theta) x = y in the plane perpendicular to k: the angle between both projections."""
    across = x - (x @ axis)[..., None] * axis
    return np.asarray(np.arctan2(np.sum(np.cross(across, y) * axis, axis=-1), np.sum(across * y, axis=-1)))


def wrapped(angle: Array) -> Array:
    """Return the angle in [-pi, pi)."""
    turns = np.floor((angle + np.pi) / (2.0 * np.pi))
    return np.where(turns == 0.0, angle, angle - 2.0 * np.pi * turns)


@dataclass(frozen=True, eq=False)
class ParallelArm(Arm):
    """Six revolute joints: a waist, three parallel axes, and two intersecting ones."""

    meeting: Array  # (3,), where axes 5 and 6 meet, at q = 0 in the base frame [m]

    kind = "arm with three parallel axes (6R, such as UR)"
    # Two solutions each for waist, wrist and elbow.
    postures = tuple(" ".join(ways) for ways in product(("left", "right"), ("noflip", "flip"), ("up", "down")))

    @property
    def _senses(self) -> Array:
        """+1 where axis 2, 3 or 4 points along axis 2, else -1."""
        return np.asarray(np.sign(self.chain.axes[1:4] @ self.chain.axes[1]))

    def _links(self) -> tuple[complex, complex]:
        """Return the two links as complex numbers in their plane."""
        forward, second = plane_of_links(self.chain)
        flat = [complex(o @ forward, o @ second) for o in self.chain.points[1:4]]
        return flat[1] - flat[0], flat[2] - flat[1]

    def _ways(self, rotation: Array, position: Array) -> list[tuple[Array, Array, Array, Array, Array]]:
        """Return q1, q2 + q3 + q4, q5, q6 and the place of axis 4 in the plane (complex), of four solutions."""
        chain, k = self.chain, self.chain.axes[1]
        change = rotation @ chain.rotation.T
        wanted = position + (change @ (self.meeting - chain.position))
        forward, second = plane_of_links(chain)
        middle, swing = waist_angles(chain, wanted - chain.points[0], float(k @ (self.meeting - chain.points[0])))
        found = []
        for q1 in (middle - swing, middle + swing):
            back = rotations(chain.axes[0], -np.nan_to_num(q1))
            turn = back @ change
            axes = np.array([k, chain.axes[4], chain.axes[5]])
            for total, q5, q6 in wrist_angles(axes, turn @ chain.axes[5], turn):
                o4 = np.broadcast_to(chain.points[3], position.shape)
                o4 = turned(chain.axes[4], -q5, o4 - self.meeting)
                o4 = turned(chain.axes[5], -q6, o4)  # from the meeting point, which is invariant
                place = np.einsum("nij,nj->ni", change, o4 + self.meeting - chain.position) + position
                u = turned(chain.axes[0], -q1, place - chain.points[0]) + chain.points[0] - chain.points[1]
                found.append((q1, total, q5, q6, u @ forward + 1j * (u @ second)))
        return found

    def solve(self, rotation: Array | None, position: Array) -> Array:
        assert rotation is not None
        out = np.empty((len(position), 8, 6))
        for b, (q1, total, q5, q6, w) in enumerate(self._ways(rotation, position)):
            for c, sign in enumerate((-1.0, 1.0)):
                shoulder, bend = two_links(*self._links(), w, sign, self.chain.length)
                arm = np.stack([shoulder, bend, total - shoulder - bend], axis=1) * self._senses
                out[:, 2 * b + c] = np.column_stack([q1, arm, q5, q6])
        return whole(out)

    def singularities(self, q: Array) -> dict[str, Array]:
        """Return |sin| of the elbow and wrist angles, and the meeting point's distance from the waist as a share."""
        chain, (first, last) = self.chain, self._links()
        elbow = np.abs(np.sin(q[:, 2] * self._senses[1] + np.angle(last / first)))
        wrist = np.abs(np.sin(q[:, 4] - angle_between(chain.axes[4], chain.axes[5], chain.axes[1])))
        point = np.broadcast_to(self.meeting, (len(q), 3))
        for i in (3, 2, 1):
            point = turned(chain.axes[i], q[:, i], point - chain.points[i]) + chain.points[i]
        reach = np.abs((point - chain.points[0]) @ plane_of_links(chain)[0])
        return {"shoulder": np.minimum(reach / chain.length, 1.0), "elbow": elbow, "wrist": wrist}
