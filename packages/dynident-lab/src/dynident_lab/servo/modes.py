"""Modal form of a free chain: frequencies, decays, mass-normalised shapes, sum of residues [Roldan2017, eqs. 3.24-3.25]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.checks import numbers
from dynident.errors import DynidentError
from dynident.results import Result

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]


@dataclass(frozen=True, eq=False)
class Modes(Result):
    """Modes ``theta_i / tau_j = sum_m shapes[m, i] shapes[m, j] / (s^2 + decay_m s + omega_m^2)``, the rigid one first."""

    omega: Array  # Undamped natural frequencies [rad/s], rising; the first is zero
    decay: Array  # ``2 xi omega`` [1/s]
    shapes: Array  # One mode per row, ``shapes J shapes^T = 1`` [1/sqrt(kg m^2)]
    coupling: float = 0.0

    def __post_init__(self) -> None:
        """Check that the arrays belong together."""
        shape = np.shape(self.shapes)
        n = shape[0] if len(shape) == 2 else 0
        if n == 0 or shape != (n, n) or np.shape(self.omega) != (n,) or np.shape(self.decay) != (n,):
            raise DynidentError(
                f"Modes: omega has shape {np.shape(self.omega)}, decay {np.shape(self.decay)} and shapes {shape}; "
                "give (n,), (n,) and (n, n)"
            )

    @property
    def frequency(self) -> Array:
        """Undamped natural frequencies, (n,) [Hz]."""
        return np.asarray(self.omega / (2.0 * np.pi))

    @property
    def damping_ratio(self) -> Array:
        """Ratio xi of each mode, (n,); not a number for the rigid motion, which has none."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.where(self.omega > 0.0, self.decay / (2.0 * self.omega), np.nan))

    def residues(self, output: int = 0, input: int = 0) -> Array:
        """Residues of a receptance."""
        count = self.shapes.shape[1]
        for what, mass in (("output", output), ("input", input)):
            if not -count <= mass < count:
                raise DynidentError(f"modes: {what} is {mass}; the masses are 0 (rotor) to {count - 1} (load)")
        return np.asarray(self.shapes[:, output] * self.shapes[:, input])

    def response(self, frequency: ArrayLike, output: int = 0, input: int = 0) -> Complex:
        """Receptance as the sum of the modes."""
        s = 2j * np.pi * numbers(frequency, "frequency")[..., None]
        return np.asarray(np.sum(self.residues(output, input) / (s * (s + self.decay) + self.omega**2), axis=-1))


def free_modes(inertias: Sequence[float], stiffness: Sequence[float], damping: Array) -> Modes:
    """Return the modes of a chain of masses.

    Singular values of ``sqrt(k) (difference) / sqrt(J)`` are the natural frequencies themselves, not their squares, so small
    ones keep all digits; the rigid motion is known in advance.
    """
    root = np.sqrt(np.asarray(inertias, dtype=np.float64))
    rigid = root / np.linalg.norm(root)
    omega, shapes = np.zeros(1), rigid[None, :]
    if len(stiffness):
        twist = np.sqrt(np.asarray(stiffness))[:, None] * np.diff(np.eye(root.size), axis=0) / root
        _, values, vectors = np.linalg.svd(twist, full_matrices=False)
        omega = np.concatenate([omega, values[::-1]])
        shapes = np.vstack([shapes, vectors[::-1]])
    shapes = shapes / root
    shapes *= np.where(shapes[:, :1] < 0.0, -1.0, 1.0)  # the rotor moves forward in every mode
    modal = shapes @ damping @ shapes.T
    own = np.diag(modal)
    largest = float(own.max())
    own = np.sqrt(np.where(own > 1e-12 * largest, own, largest))  # the rigid motion is damped by viscous friction only
    between = np.abs(modal - np.diag(np.diag(modal)))
    coupling = float(np.max(between / np.outer(own, own))) if largest > 0.0 else 0.0
    return Modes(omega, np.diag(modal).copy(), shapes, coupling)
