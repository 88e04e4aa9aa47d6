"""An arm whose tool swings along one axis: the joint positions as a function of where the tool is.

    q(s) = argmin (q - q0)^T M(q0) (q - q0)   with the tool at s along the axis, and its other rows where they were

Rows are held as far as the arm has freedoms for them: 3 of a 3-axis arm, x, y, z and one rotation of a SCARA, 6 of most. What
freedoms are left stays as near to the centre as it can. As q depends on s alone, the motion is periodic, and q(s) is a
polynomial in s to rounding, which is differentiated exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynident.errors import SimulationError
from dynident.mechanics import Motion, forward_kinematics, jacobian, mass_matrix
from dynident.mechanics.inverse_kinematics_damped import pose_error
from dynident.mechanism import Mechanism

Array = NDArray[np.float64]

NODES = 25  # Chebyshev points over the swing
NEWTON = 50  # steps of the solution at most
CLOSE = 1e-12  # change of a joint [rad, m] that counts as none
ALONE = 1e-4  # part of a row that the rows before it do not contain, below which the arm has no freedom for it
PROBE = 20  # random poses that tell how many rows an arm can have


@dataclass(frozen=True, eq=False)
class Swing:
    """Joint positions over the place of the tool."""

    amplitude: float  # largest distance from the centre [m]
    coefficients: Array  # (NODES, n) Chebyshev coefficients of q over s / amplitude
    held: tuple[int, ...]  # rows of the tool's pose (x, y, z, rx, ry, rz) that are commanded, the one that moves first

    @classmethod
    def along(cls, mechanism: Mechanism, frame: str, axis: int, amplitude: float, centre: Array) -> Swing:
        """Return the swing of a link along x, y or z."""
        held = _rows(mechanism, frame, axis, centre)
        pick = list(held)
        inertia = mass_matrix(mechanism, centre[None])[0]
        size = np.diag(np.maximum(np.abs(np.diag(inertia)), 1e-12 * np.abs(np.diag(inertia)).max()))
        if np.linalg.eigvalsh(inertia)[0] <= 0.0:  # a description without masses still moves
            inertia = size if size.any() else np.eye(centre.size)
        rotation, position = (y[0] for y in forward_kinematics(mechanism, centre, frame))
        nodes = np.cos(np.pi * (np.arange(NODES) + 0.5) / NODES)
        q = np.tile(centre, (NODES, 1))
        wanted = np.tile(position, (NODES, 1))
        wanted[:, axis] += amplitude * nodes
        turned = np.tile(rotation, (NODES, 1, 1))
        for _ in range(NEWTON):
            R, p = forward_kinematics(mechanism, q, frame)
            J = jacobian(mechanism, q, frame, "world")[:, pick]
            # The least weighted distance from the centre on the linearised constraint, not from the last iterate.
            e = pose_error(turned, wanted, R, p)[:, pick] + np.einsum("pij,pj->pi", J, q - centre)
            W = np.linalg.solve(inertia, np.swapaxes(J, 1, 2))
            new = centre + np.einsum("pij,pj->pi", W, np.linalg.solve(J @ W, e[:, :, None])[:, :, 0])
            change = float(np.abs(new - q).max())
            q = new
            if not np.isfinite(change):
                break
            if change < CLOSE:
                return cls(amplitude, np.polynomial.chebyshev.chebfit(nodes, q, NODES - 1), held)
        raise SimulationError(
            f"amplitude = {amplitude:g} m along {'xyz'[axis]} is out of reach of robot '{mechanism.name}' about this centre; "
            "give a smaller amplitude, or another centre"
        )

    def motion(self, t: Array, wave: Array) -> Motion:
        """Return the wanted motion."""
        cheb = np.polynomial.chebyshev
        s, rate, turn = wave / self.amplitude
        first, second = cheb.chebder(self.coefficients), cheb.chebder(self.coefficients, 2)
        q, slope, bend = (np.asarray(cheb.chebval(s, c)).T for c in (self.coefficients, first, second))
        return Motion(t, q, slope * rate[:, None], bend * rate[:, None] ** 2 + slope * turn[:, None])


def _rows(mechanism: Mechanism, frame: str, axis: int, centre: Array) -> tuple[int, ...]:
    """Return the rows that can be commanded together, the moved one first, or say that the pose is singular."""
    order = (axis, *(i for i in range(6) if i != axis))
    poses = np.vstack([centre, np.random.default_rng(0).uniform(-np.pi, np.pi, (PROBE, centre.size))])
    J = jacobian(mechanism, poses, frame, "world")[:, order]
    most = max(_independent(one) for one in J[1:])
    found: list[int] = []
    for i, row in zip(order, J[0], strict=True):
        part, norm = row, float(np.linalg.norm(row))
        if found:
            Q = np.linalg.qr(np.array([J[0][order.index(k)] for k in found]).T)[0]
            part = row - Q @ (Q.T @ row)
        if norm > 0.0 and np.linalg.norm(part) > ALONE * norm:
            found.append(i)
    if axis not in found or len(found) < most:
        raise SimulationError(
            f"centre is singular: the tool of robot '{mechanism.name}' can be moved and held in {len(found)} of {most} rows of "
            "its pose there; give a centre= that is not"
        )
    return tuple(found)


def _independent(J: Array) -> int:
    return int(np.linalg.matrix_rank(J, tol=ALONE * np.linalg.norm(J)))
