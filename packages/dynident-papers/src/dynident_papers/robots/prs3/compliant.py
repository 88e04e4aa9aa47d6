"""The 3-PRS with flexures compliant in all six directions, for comparison with its rigid kinematics.

    E(x) = 1/2 sum over flexures of d^T K d,    d: displacement and rotation between both sides,    dE/dx = 0

The platform is rigid, the six flexures are springs with the stiffnesses of [Ruiz2016, section 5] or, in directions without
a printed one, of `dynident_papers.flexures.FlexureHinge`; the legs are beams of the printed section, in series with their
spherical flexures. x are the poses of platform and legs, 24 numbers, found from the sliders by Gauss-Newton; the first step
from home is the linear static analysis of finite elements.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident_papers.flexures.hinges import FlexureHinge
from dynident_papers.robots.prs3.closed_forms import _leg_frames
from dynident_papers.robots.prs3.data import (
    ALPHA_0,
    BENDING_STIFFNESS,
    HEIGHT,
    LEG,
    OFFSET,
    POISSON,
    RADIUS,
    REVOLUTE_FLEXURE,
    REVOLUTE_STIFFNESS,
    SECTION,
    SPHERICAL_FLEXURE,
    TORSION_STIFFNESS,
    TRIPOD,
    YOUNG,
)
from dynident_papers.robots.shared import samples_of

REVOLUTE_HINGE = FlexureHinge(REVOLUTE_FLEXURE["t"], REVOLUTE_FLEXURE["R"], SECTION, SECTION, young=YOUNG, poisson=POISSON)
"""Revolute flexure as a beam: 105 N m/rad where finite elements of [Ruiz2016] have 98.37."""
SPHERICAL_HINGE = FlexureHinge(
    SPHERICAL_FLEXURE["t"], SPHERICAL_FLEXURE["R"], SECTION, None, SPHERICAL_FLEXURE["l"], YOUNG, POISSON
)
"""Spherical flexure as a beam: 34.9 and 26.3 N m/rad where finite elements of [Ruiz2016] have 32.67 and 24.46."""

# Along m (pin), n, l (leg); then about them. Printed stiffnesses first, beam theory for the others.
_REVOLUTE = np.array(
    [
        *(REVOLUTE_HINGE.lateral_shear, REVOLUTE_HINGE.shear, REVOLUTE_HINGE.axial),
        *(REVOLUTE_STIFFNESS, REVOLUTE_HINGE.lateral, REVOLUTE_HINGE.torsion),
    ]
)
_SPHERICAL = np.array(
    [
        *(SPHERICAL_HINGE.shear, SPHERICAL_HINGE.shear, SPHERICAL_HINGE.axial),
        *(BENDING_STIFFNESS, BENDING_STIFFNESS, TORSION_STIFFNESS),
    ]
)


def _beam(near: float, far: float, wide: float, deep: float) -> Array:
    """Return the compliance (6, 6) of a beam along the third axis, at the distance `near` from one end, clamped at the other.

    Its section is `wide` along the first axis and `deep` along the second.
    """
    shear, thin, thick = YOUNG / (2.0 * (1.0 + POISSON)), min(wide, deep), max(wide, deep)
    torsion = thick * thin**3 * (1.0 / 3.0 - 0.21 * thin / thick * (1.0 - (thin / thick) ** 4 / 12.0))
    C = np.diag([0.0, 0.0, (far - near) / (YOUNG * wide * deep), 0.0, 0.0, (far - near) / (shear * torsion)])
    for shift, turn, second, sign in ((0, 4, deep * wide**3 / 12.0, 1.0), (1, 3, wide * deep**3 / 12.0, -1.0)):
        C[turn, turn], C[shift, turn], C[shift, shift] = ((far**k - near**k) / (k * YOUNG * second) for k in (1, 2, 3))
        C[shift, shift] += (far - near) / (5.0 / 6.0 * shear * wide * deep)
        C[shift, turn] = C[turn, shift] = sign * C[shift, turn]
    return C


_LEG = _beam(0.5 * SPHERICAL_HINGE.length, LEG - 0.5 * REVOLUTE_HINGE.length, SECTION, SECTION)
_TOP = np.linalg.inv(np.diag(1.0 / _SPHERICAL) + _LEG)
_HOME = _leg_frames(np.full((1, 3), ALPHA_0))[0]  # [m n l] of the legs
_STEP = 1e-6


class CompliantPose(NamedTuple):
    """Poses of the compliant stage."""

    x: Array  # Platform: x, y, rise z from home [m]; psi, theta, phi [rad]
    forces: Array  # Slider forces, positive inward [N]
    moments: Array  # Largest bending moments of the revolute and the spherical flexure of each leg [N m]


def compliant_pose(s: ArrayLike, linear: bool = False, base: tuple[float, float, float] | None = None) -> CompliantPose:
    """Return the equilibrium pose of the platform with flexures compliant in all directions.

    `base` is an upright bar under every revolute flexure: its thickness along the slider, its width and its height [m]; rigid
    when omitted. The paper prints no bases.
    """
    (sliders,) = samples_of(3, s=s)
    foot = np.diag(1.0 / _REVOLUTE)
    if base is not None:
        wide, deep, height = base
        e, up = TRIPOD.outward[0], np.array([0.0, 0.0, 1.0])
        turn = np.kron(np.eye(2), _HOME[0].T @ np.stack([e, np.cross(up, e), up], axis=1))
        foot += turn @ _beam(0.0, height, wide, deep) @ turn.T
    # E = |W d|^2 / 2 of one leg: revolute flexure on its base, then spherical flexure with the leg.
    weights = np.stack([np.linalg.cholesky(K).T for K in (np.linalg.inv(foot), _TOP)])
    rows = [_solve(one, linear, weights) for one in sliders]
    return CompliantPose(*(np.array(column) for column in zip(*rows, strict=True)))


def _turn(w: Array) -> Array:
    """Return the rotation of a vector."""
    from scipy.spatial.transform import Rotation  # noqa: PLC0415 - scipy is loaded on first use

    return np.asarray(Rotation.from_rotvec(w).as_matrix())


def _angle(R: Array) -> Array:
    from scipy.spatial.transform import Rotation  # noqa: PLC0415 - scipy is loaded on first use

    return np.asarray(Rotation.from_matrix(R).as_rotvec())


def _strain(x: Array, s: Array) -> Array:
    """Return displacements and rotations of all flexures, (leg, flexure, 6), in the axes m, n, l of their leg."""
    platform, legs = x[:6], x[6:].reshape(3, 6)
    out = np.empty((3, 2, 6))
    R = _turn(platform[3:])
    centre = np.array([0.0, 0.0, HEIGHT]) + platform[:3]
    for i, (e, home) in enumerate(zip(TRIPOD.outward, _HOME, strict=True)):
        foot, top = OFFSET * e, np.array([0.0, 0.0, HEIGHT]) + RADIUS * e
        T = _turn(legs[i, 3:])
        axes = T @ home
        out[i, 0, :3] = home.T @ (legs[i, :3] + s[i] * e)  # the slider moves inward, against e
        out[i, 0, 3:] = home.T @ legs[i, 3:]
        out[i, 1, :3] = axes.T @ (centre + RADIUS * (R @ e) - (foot + legs[i, :3] + T @ (top - foot)))
        out[i, 1, 3:] = _angle(axes.T @ R @ home)
    return out


def _solve(s: Array, linear: bool, weights: Array) -> tuple[Array, Array, Array]:
    def left(x: Array, sliders: Array) -> Array:
        return np.asarray(np.einsum("fij,lfj->lfi", weights, _strain(x, sliders)).ravel(), dtype=np.float64)

    def slope(x: Array, sliders: Array) -> Array:
        return np.column_stack([(left(x + d, sliders) - left(x - d, sliders)) / (2.0 * _STEP) for d in _STEP * np.eye(24)])

    def along(x: Array, sliders: Array) -> Array:
        return np.column_stack([(left(x, sliders + d) - left(x, sliders - d)) / (2.0 * _STEP) for d in _STEP * np.eye(3)])

    x: Array = np.zeros(24)
    if linear:
        J, D = slope(x, np.zeros(3)), along(x, np.zeros(3))
        x = np.asarray(-np.linalg.lstsq(J, D @ s, rcond=None)[0], dtype=np.float64)
        r = J @ x + D @ s
    else:
        for _ in range(30):
            J, r = slope(x, s), left(x, s)
            step = np.linalg.lstsq(J, -r, rcond=None)[0]
            x = x + step
            if np.abs(step).max() < 1e-12:
                break
        r, D = left(x, s), along(x, s)
    moment = np.abs(np.einsum("fji,lfj->lfi", weights, r.reshape(3, 2, 6))[:, :, 3])
    R = _turn(x[3:6])  # Ry(theta) Rx(psi) Rz(phi)
    psi, theta, phi = np.arcsin(-R[1, 2]), np.arctan2(R[0, 2], R[2, 2]), np.arctan2(R[1, 0], R[1, 1])
    return np.array([*x[:3], psi, theta, phi]), r @ D, moment
