"""Mittag-Leffler function of one real argument, the exponential of fractional calculus.

    E_nu(z) = sum_k z^k / Gamma(nu k + 1)            E_1(z) = exp(z),   E_1/2(-x) = exp(x^2) erfc(x)

For z < 0 the power series is useless beyond |z| = 5 (its terms cancel). There the function is evaluated as the inverse
Laplace transform ``E_nu(z) = 1/(2 pi i) int e^s s^(nu-1) / (s^nu - z) ds``: for 0 < nu <= 1 all singularities lie on the
negative real axis, so the trapezoidal rule on a parabola around it (Weideman and Trefethen, Math. Comp. 76, 2007)
converges geometrically, uniformly in z, with 16 conjugate pairs of nodes to 1e-14. Derivatives come from the same nodes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.arrays import Array
from dynident.errors import DescriptionError

Complex = NDArray[np.complexfloating]

#: Nodes in the upper half plane: the error of the rule is e^(-2 pi NODES / 3) = 3e-15, round-off is e^(pi NODES / 12) eps.
NODES = 16
#: Above this value of z^(1/nu) the function overflows.
LARGEST = 700.0


def _contour() -> tuple[Complex, Complex]:
    """Nodes s and weights w of ``f(1) = sum Re(w F(s))`` for a transform F."""
    step, vertex = 3.0 / NODES, np.pi * NODES / 12.0
    u = (np.arange(NODES) + 0.5) * step
    nodes: Complex = vertex * (1j * u + 1.0) ** 2
    return nodes, np.exp(nodes) * (step / np.pi) * vertex * 2.0 * (1j * u + 1.0)


def _arguments(z: ArrayLike, nu: float) -> Array:
    if not (np.isfinite(nu) and 0.0 < nu <= 1.0):
        raise DescriptionError(f"nu = {nu} must be above 0 and at most 1; other orders have poles that are not treated here")
    array = np.asarray(z, dtype=np.float64)
    if np.isnan(array).any():
        raise DescriptionError("z of the Mittag-Leffler function holds a value that is not a number; remove it")
    return array


def mittag_leffler(z: ArrayLike, nu: float) -> Array:
    """Mittag-Leffler function ``E_nu,1(z)`` of real arguments."""
    array = _arguments(z, nu)
    if nu == 1.0:
        return np.asarray(np.exp(array))
    result = np.ones(array.shape)
    below, above = array < 0.0, array > 0.0
    if below.any():
        nodes, weights = _contour()
        result[below] = np.real((weights * nodes ** (nu - 1.0)) / (nodes**nu - array[below][:, None])).sum(axis=-1)
    if above.any():
        result[above] = _series(array[above], nu)
    return result


def _series(z: Array, nu: float) -> Array:
    """Power series; all terms are positive, so there is no cancellation."""
    from scipy.special import gammaln  # noqa: PLC0415 - scipy is loaded with the first use

    if np.log(z.max()) / nu > np.log(LARGEST):
        raise DescriptionError(
            f"z = {z.max()} is too large for E_nu with nu = {nu}: the value would overflow; keep z^(1/nu) below 700"
        )
    peak = float(z.max() ** (1.0 / nu))
    count = int((peak + 8.0 * np.sqrt(peak) + 40.0) / nu) + 2
    total, logarithm = np.zeros_like(z), np.log(z)
    for first in range(0, count, 512):
        k = np.arange(first, min(first + 512, count))
        total += np.exp(k * logarithm[:, None] - gammaln(nu * k + 1.0)).sum(axis=-1)
    return total


def mittag_leffler_derivatives(z: ArrayLike, nu: float) -> tuple[Array, Array]:
    """Exact derivatives of ``E_nu,1(z)`` for z <= 0."""
    array = _arguments(z, nu)
    if (array > 0.0).any():
        raise DescriptionError(f"z = {array.max()} must be zero or below for the derivatives of the Mittag-Leffler function")
    nodes, weights = _contour()
    common = weights * nodes ** (nu - 1.0) / (nodes**nu - array[..., None]) ** 2
    return np.real(common).sum(axis=-1), np.real(-array[..., None] * np.log(nodes) * common).sum(axis=-1)
