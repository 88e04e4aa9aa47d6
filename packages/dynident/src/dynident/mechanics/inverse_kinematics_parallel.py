"""Arms with three parallel axes after the waist (Universal Robots and their like), in closed form.

With g the wanted motion of the tool from q = 0, k the direction of axes 2, 3, 4, and P where axes 5 and 6 meet::

    k . Rot(k1, -q1) (g P - o1) = k . (P - o1)                waist, two ways: axes 2, 3, 4 cannot move P along k
    Rot(k1, -q1) g k6 = Rot(k, q2 + q3 + q4) Rot(k5, q5) k6    wrist, two ways
    e2 e3 o4 = e1^-1 g e6^-1 e5^-1 o4                          two links in a plane, two ways
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from dynident.arrays import Array
from dynident.mechanics.inverse_kinematics_arms import (
    Arm,
    out_of_reach,
    plane_of_links,
    two_links,
    waist_angles,
    whole,
    wrist_angles,
)
from dynident.mechanics.inverse_kinematics_chain import angle_between, rotations, turned


@dataclass(frozen=True, eq=False)
class ParallelArm(Arm):
    """Six revolute joints: a waist, three parallel axes, and two more that meet."""

    meeting: Array  # (3,), where axes 5 and 6 meet, at q = 0 in the base frame [m]

    kind = "arm with three parallel axes (6R, such as UR)"
    # Two ways each of waist, wrist and elbow.
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

    def _waist(self, wanted: Array) -> tuple[Array, Array]:
        """Return both waist angles (2, N) for places of the meeting point, and how far it lies inside the cylinder [m]."""
        k, o1 = self.chain.axes[1], self.chain.points[0]
        middle, swing, inside = waist_angles(self.chain, wanted - o1, float(k @ (self.meeting - o1)))
        return np.array([middle - swing, middle + swing]), inside

    def _ways(self, rotation: Array, position: Array) -> list[tuple[Array, Array, Array, Array, Array]]:
        """Return q1, q2 + q3 + q4, q5, q6 and the place of axis 4 in the plane (complex), of four ways."""
        chain, k = self.chain, self.chain.axes[1]
        change = rotation @ chain.rotation.T
        wanted = position + (change @ (self.meeting - chain.position))
        forward, second = plane_of_links(chain)
        found = []
        for q1 in self._waist(wanted)[0]:
            back = rotations(chain.axes[0], -np.nan_to_num(q1))
            turn = back @ change
            axes = np.array([k, chain.axes[4], chain.axes[5]])
            for total, q5, q6 in wrist_angles(axes, turn @ chain.axes[5], turn):
                o4 = np.broadcast_to(chain.points[3], position.shape)
                o4 = turned(chain.axes[4], -q5, o4 - self.meeting)
                o4 = turned(chain.axes[5], -q6, o4)  # from the meeting point, which both leave in place
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

    def distance(self, rotation: Array | None, position: Array) -> tuple[Array, Array]:
        """Return by how much targets must be moved at most, orientation kept [m]; every orientation can be had."""
        assert rotation is not None
        change = rotation @ self.chain.rotation.T
        inside = self._waist(position + change @ (self.meeting - self.chain.position))[1]
        gaps = [out_of_reach(*self._links(), w) for *_, w in self._ways(rotation, position)]
        least = np.min(np.nan_to_num(gaps, nan=np.inf), axis=0)
        return np.where(inside > 0.0, inside, np.where(np.isfinite(least), least, 0.0)), np.zeros(len(position))

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
