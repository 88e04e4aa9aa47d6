"""Kinematics of the 2-PRR mechanism in closed form; the equations are in the package's docstring."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.errors import DynidentError
from dynident.robots.prr2.data import ASSEMBLY_MODES, BAR, RAIL, SPACING
from dynident.robots.prr2.inputs import choice, samples_of

Array = NDArray[np.float64]


def bar_angle(rho: ArrayLike, assembly: str = "below") -> Array:
    """Return the angle alpha of the bars with the rail, L cos(alpha) = (a - d - rho_1 - rho_2)/2.

    Parameters
    ----------
    rho : array_like, (N, 2)
        Slider positions [m].
    assembly : {"below", "above"}
        Side of the rail on which the platform hangs.

    Returns
    -------
    ndarray, (N,)
        Angles [rad], sin(alpha) > 0 below and < 0 above.
    """
    (position,) = samples_of(2, rho=rho)
    cosine = 0.5 * (RAIL - SPACING - position[:, 0] - position[:, 1]) / BAR
    if np.any(np.abs(cosine) > 1.0):
        bad = int(np.argmax(np.abs(cosine) > 1.0))
        raise DynidentError(
            f"sliders at sample {bad} ({position[bad].tolist()} m) are {2.0 * abs(cosine[bad]) * BAR:.4g} m apart, "
            f"further than two bars reach ({2.0 * BAR:.4g} m); move them closer together"
        )
    return np.asarray((1.0 - 2.0 * choice(assembly, ASSEMBLY_MODES, "assembly")) * np.arccos(cosine))


def forward_kinematics(rho: ArrayLike, assembly: str = "below") -> Array:
    """Return the centre of the platform.

    Parameters
    ----------
    rho : array_like, (N, 2)
        Slider positions [m].
    assembly : {"below", "above"}
        Assembly mode.

    Returns
    -------
    ndarray, (N, 2)
        x, y [m] from the origin of slider 1.
    """
    (position,) = samples_of(2, rho=rho)
    alpha = bar_angle(position, assembly)
    return np.stack([position[:, 0] + BAR * np.cos(alpha) + 0.5 * SPACING, -BAR * np.sin(alpha)], axis=1)


def inverse_kinematics(x: ArrayLike) -> Array:
    """Return the slider positions for a place of the platform.

    Parameters
    ----------
    x : array_like, (N, 2)
        Centre of the platform [m]; either side of the rail.

    Returns
    -------
    ndarray, (N, 2, 2)
        rho [m], second axis in the order of `WORKING_MODES`; NaN out of reach.
    """
    (place,) = samples_of(2, x=x)
    with np.errstate(invalid="ignore"):
        reach = np.sqrt((BAR - place[:, 1]) * (BAR + place[:, 1]))
    left, right = place[:, 0] - 0.5 * SPACING, RAIL - place[:, 0] - 0.5 * SPACING
    return np.stack([np.stack([left - s * reach, right - s * reach], axis=1) for s in (1.0, -1.0)], axis=1)


def singularity(rho: ArrayLike) -> tuple[Array, Array]:
    """Return how far the mechanism is from its singularities, 1 at best and 0 on one.

    Parameters
    ----------
    rho : array_like, (N, 2)
        Slider positions [m].

    Returns
    -------
    parallel, serial : ndarray, (N,)
        |sin alpha| (bars along the rail: sliders do not hold y) and |cos alpha| (bars upright: sliders do not move y).
    """
    alpha = bar_angle(rho)
    return np.abs(np.sin(alpha)), np.abs(np.cos(alpha))


def body_jacobians(rho: ArrayLike, v: ArrayLike, assembly: str = "below") -> tuple[Array, Array]:
    """Return the Jacobians of the six bodies and their time derivatives (appendix B.3, reconstructed).

    Parameters
    ----------
    rho, v : array_like, (N, 2)
        Slider positions [m] and velocities [m/s].
    assembly : {"below", "above"}
        Assembly mode.

    Returns
    -------
    J, J_dot : ndarray, (N, 6, 3, 2)
        Rows x, y, angle of each body's centre; columns rho_1, rho_2.
    """
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
