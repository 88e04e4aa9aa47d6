"""Butterworth's low-pass as a chain of second-order sections, without scipy.signal (0.8 s of import for one recursion).

With w = tan(pi f_c / f_s) and z^-1 the delay, the pole pair k of order n gives, by the bilinear transform,

    H_k = w^2 (1 + z^-1)^2 / [(1 + c_k w + w^2) + 2 (w^2 - 1) z^-1 + (1 - c_k w + w^2) z^-2],
    c_k = 2 sin(pi (2 k + 1) / (2 n)),

and an odd order one section w (1 + z^-1) / [(1 + w) + (w - 1) z^-1] more. A section's recursion A y = B x is a banded
triangular system; LAPACK solves it by substitution, which is that recursion.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

Section = tuple[Array, Array]  # numerator and denominator in powers of z^-1, denominator with a leading 1


def low_pass_sections(order: int, cutoff: float) -> list[Section]:
    """Return the sections of a low-pass whose amplitude is 1/sqrt(2) at a cut-off in cycles per sample."""
    w = np.tan(np.pi * cutoff)
    sections = []
    for k in range(order // 2):
        damping = 2.0 * np.sin(np.pi * (2 * k + 1) / (2 * order)) * w
        a = np.array([1.0 + damping + w * w, 2.0 * (w * w - 1.0), 1.0 - damping + w * w])
        sections.append((w * w / a[0] * np.array([1.0, 2.0, 1.0]), a / a[0]))
    if order % 2:
        sections.append((w / (1.0 + w) * np.ones(2), np.array([1.0, (w - 1.0) / (1.0 + w)])))
    return sections


def forward(sections: list[Section], x: Array) -> Array:
    """Filter columns (N, n) forward, as if they had rested at their first value before."""
    from scipy.linalg.lapack import dtbtrs  # noqa: PLC0415 - scipy.linalg costs import time

    y = np.asfortranarray(x - x[0])  # every section passes constants unchanged
    for b, a in sections:
        right = b[0] * y
        for lag in range(1, b.size):
            right[lag:] += b[lag] * y[:-lag]
        bands = np.repeat(a[:, None], y.shape[0], axis=1)
        y, info = dtbtrs(bands, right, uplo="L", diag="U", overwrite_b=True)
        if info:
            raise ValueError(f"LAPACK's dtbtrs refused its argument {-info}")
    return np.asarray(y + x[0])


def both_ways(sections: list[Section], x: Array) -> Array:
    """Filter columns (N, n) forward and backward: no delay, the squared amplitude."""
    return forward(sections, forward(sections, x)[::-1])[::-1]
