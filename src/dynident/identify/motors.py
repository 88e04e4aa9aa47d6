"""From projected equations back to the motors: what each of them should have given.

    y = S A^T tau   (`dynident.identify.rows`),    tau_least = B y,    B = A (A^T A)^-1 S^-1      (N, k, n)

tau_least is the least torque that does the same: a preload, and noise that looks like one, are left out on both sides of a
comparison.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynident.identify.rows import Rows
from dynident.mechanics import Motion, actuator_jacobian

Array = NDArray[np.float64]


def motor_map(rows: Rows, motion: Motion) -> Array:
    """Return B of every sample, (N, k, n), k motors for n equations."""
    A = actuator_jacobian(rows.mechanism, motion.q)
    if rows.projection == "gls":  # A = Q R with a positive diagonal, as in the equations: B = Q
        Q, R = np.linalg.qr(A)
        return np.asarray(Q * np.sign(np.diagonal(R, axis1=1, axis2=2))[:, None, :])
    B = np.swapaxes(np.linalg.pinv(A), 1, 2)
    if rows.projection == "independent":
        return np.asarray(B)
    kept = [rows.efforts.index(name) for name in rows.projection]
    return np.asarray(B @ np.swapaxes(A[:, kept], 1, 2))
