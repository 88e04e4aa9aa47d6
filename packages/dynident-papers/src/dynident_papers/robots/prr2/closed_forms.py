"""2-PRR mechanism: the closed forms of [Roldan2017, section 6.1 and appendix B.3]."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.checks import choice
from dynident.errors import DynidentError
from dynident.mechanics import Motion
from dynident_papers.robots.prr2.data import (
    ASSEMBLY_MODES,
    BAR,
    BASE_LEADERS,
    FUNDAMENTAL,
    GRAVITY,
    INITIAL_AMPLITUDES,
    PARAMETER_NAMES,
    RAIL,
    SAMPLING,
    SPACING,
    START,
    THEORETICAL,
    THESIS_EQUATIONS,
)
from dynident_papers.robots.shared import fourier, parameter_values, samples_of, system


def thesis_system() -> tuple[Array, Array]:
    """Return C and V of C Phi = V, equations (6.23) to (6.30) of [Roldan2017] as printed."""
    return system(THESIS_EQUATIONS, PARAMETER_NAMES)


def initial_motion(sampling: float = SAMPLING) -> Motion:
    """Return one period of the motion with which the thesis starts its optimisation [Roldan2017, Table 6.1]."""
    C, D = INITIAL_AMPLITUDES
    return fourier(np.arange(0.0, 1.0 / FUNDAMENTAL - 0.5 * sampling, sampling), START, C, D, FUNDAMENTAL)


def bar_angle(rho: ArrayLike, assembly: str = "below") -> Array:
    """Return the angle alpha of the bars with the rail, L cos(alpha) = (a - d - rho_1 - rho_2) / 2."""
    (position,) = samples_of(2, rho=rho)
    cosine = 0.5 * (RAIL - SPACING - position[:, 0] - position[:, 1]) / BAR
    if np.any(np.abs(cosine) > 1.0):
        bad = int(np.argmax(np.abs(cosine) > 1.0))
        raise DynidentError(
            f"sliders at sample {bad} ({position[bad].tolist()} m) are {2.0 * abs(cosine[bad]) * BAR:.4g} m apart, "
            f"further than two bars reach ({2.0 * BAR:.4g} m); move them closer together"
        )
    side = 1.0 if choice("assembly", assembly, ASSEMBLY_MODES) == "below" else -1.0
    return np.asarray(side * np.arccos(cosine))


def forward_kinematics(rho: ArrayLike, assembly: str = "below") -> Array:
    """Return the centre of the platform, x = rho_1 + L cos(alpha) + d/2, y = -L sin(alpha)."""
    (position,) = samples_of(2, rho=rho)
    alpha = bar_angle(position, assembly)
    return np.stack([position[:, 0] + BAR * np.cos(alpha) + 0.5 * SPACING, -BAR * np.sin(alpha)], axis=1)


def inverse_kinematics(x: ArrayLike) -> Array:
    """Return rho_1 = x - d/2 -+ sqrt(L^2 - y^2) and rho_2 = a - x - d/2 -+ sqrt(L^2 - y^2)."""
    (place,) = samples_of(2, x=x)
    with np.errstate(invalid="ignore"):
        reach = np.sqrt((BAR - place[:, 1]) * (BAR + place[:, 1]))
    left, right = place[:, 0] - 0.5 * SPACING, RAIL - place[:, 0] - 0.5 * SPACING
    return np.stack([np.stack([left - s * reach, right - s * reach], axis=1) for s in (1.0, -1.0)], axis=1)


def singularity(rho: ArrayLike) -> tuple[Array, Array]:
    """Return |sin alpha| and |cos alpha|: distances from the singularities, 1 at best and 0 at a singularity."""
    alpha = bar_angle(rho)
    return np.abs(np.sin(alpha)), np.abs(np.cos(alpha))


def body_jacobians(rho: ArrayLike, v: ArrayLike, assembly: str = "below") -> tuple[Array, Array]:
    """Return the Jacobians J_b of the six bodies and their time derivatives [Roldan2017, appendix B.3, reconstructed]."""
    position, velocity = samples_of(2, rho=rho, v=v)
    alpha = bar_angle(position, assembly)
    sine, cosine = np.sin(alpha), np.cos(alpha)
    if np.any(np.abs(sine) < 1e-9):
        raise DynidentError(
            f"the bars lie along the rail at sample {int(np.argmin(np.abs(sine)))}: parallel singularity, where the sliders do "
            "not hold the platform; keep away from it"
        )
    A, B = 0.5 * cosine / sine, 0.5 / (BAR * sine)  # (B.63), (B.64)
    rate = B * velocity.sum(axis=1)
    A_dot, B_dot = -0.5 * rate / sine**2, -0.5 * rate * cosine / (BAR * sine**2)
    J, J_dot = np.zeros((len(alpha), 6, 3, 2)), np.zeros((len(alpha), 6, 3, 2))
    J[:, :, 0] = [[1.0, 0.0], [0.0, -1.0], [0.75, -0.25], [0.75, -0.25], [0.25, -0.75], [0.5, -0.5]]
    share = np.array([0.0, 0.0, 0.5, 0.5, 0.5, 1.0])[:, None]
    turn = np.array([0.0, 0.0, 1.0, 1.0, -1.0, 0.0])[:, None]  # bar 5 turns against bars 3 and 4
    for target, down, angle in ((J, A, B), (J_dot, A_dot, B_dot)):
        target[:, :, 1] = -share * down[:, None, None]
        target[:, :, 2] = turn * angle[:, None, None]
    return J, J_dot


def regressor(rho: ArrayLike, v: ArrayLike, a: ArrayLike, assembly: str = "below", gravity: float = GRAVITY) -> Array:
    """Return K with F = K Phi, by energy equivalence K_b = J_b^T (Omega_b + G_b) [Roldan2017, eqs. 6.6, 6.15].

    Friction is Fc sign(v) + c v (6.14); (5.17) prints sign(v) c v, which would not oppose the motion.
    """
    position, velocity, acceleration = samples_of(2, rho=rho, v=v, a=a)
    J, J_dot = body_jacobians(position, velocity, assembly)
    motion = np.einsum("sbij,sj->sbi", J, acceleration) + np.einsum("sbij,sj->sbi", J_dot, velocity)
    K = np.zeros((len(position), 2, 13))
    force = motion[:, :, :2] + [0.0, gravity]
    K[:, :, :6] = np.einsum("sbij,sbi->sjb", J[:, :, :2], force)
    K[:, :, 6:9] = np.einsum("sbj,sb->sjb", J[:, 2:5, 2], motion[:, 2:5, 2])
    K[:, [0, 1], [9, 10]] = np.sign(velocity)
    K[:, [0, 1], [11, 12]] = velocity
    return K


def inverse_dynamics(
    rho: ArrayLike, v: ArrayLike, a: ArrayLike, parameters: Mapping[str, float] | None = None, assembly: str = "below"
) -> Array:
    """Return the slider forces F = M a + C v + g + Fc sign(v) + c v [Roldan2017, eq. 6.15]."""
    return np.asarray(regressor(rho, v, a, assembly) @ parameter_values(parameters, PARAMETER_NAMES, THEORETICAL))


def dynamics_matrices(
    rho: ArrayLike, v: ArrayLike, parameters: Mapping[str, float] | None = None, assembly: str = "below"
) -> tuple[Array, Array, Array]:
    """Return M = sum J_b^T M_b J_b, C = sum J_b^T M_b dJ_b/dt and g = sum J_b^T g_b of F = M a + C v + g."""
    phi = parameter_values(parameters, PARAMETER_NAMES, THEORETICAL)
    J, J_dot = body_jacobians(rho, v, assembly)
    mass = np.stack([phi[:6], phi[:6], np.array([0.0, 0.0, *phi[6:9], 0.0])], axis=1)
    M, C = (np.einsum("sbij,bi,sbik->sjk", J, mass, right) for right in (J, J_dot))
    return M, C, np.einsum("sbj,b->sj", J[:, :, 1], GRAVITY * phi[:6])


def base_matrix() -> Array:
    """Return K of the exact base parameters beta = K Phi, of rank 8 for any motion.

    With S = I3 + I4 + I5:  m1 - m5/2 + (2/L^2) S,   m2 + m5/2,   m3 + m4 + m5 - (4/L^2) S,   m6 + (2/L^2) S,  Fc1, Fc2, c1, c2.

    A bar's rotational energy follows from three of its points, alpha_dot^2 = (4/L^2) ((v_top^2 + v_end^2)/2 - v_mid^2); its
    top is a slider and its end the platform, hence the factors of L.
    """
    K = np.zeros((8, 13))
    for row, leader in enumerate(BASE_LEADERS):
        K[row, PARAMETER_NAMES.index(leader)] = 1.0
    m4, m5, inertias = 3, 4, slice(6, 9)
    K[0, m5], K[1, m5], K[2, [m4, m5]] = -0.5, 0.5, 1.0
    K[0, inertias] = K[3, inertias] = 2.0 / BAR**2
    K[2, inertias] = -4.0 / BAR**2
    return K
