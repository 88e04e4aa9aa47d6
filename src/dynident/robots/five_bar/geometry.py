"""Lengths, modes and singularities of the five-bar."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynident.errors import DynidentError

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Geometry:
    """Lengths and modes of a five-bar.

    Parameters
    ----------
    base : float
        Distance A0 B0 [m]; 0.2 in sec. 4.1. The origin is in its middle, A0 on the left.
    l1, l2, l3, l4 : float
        Bars A0 A, A P, B P, B0 B [m].
    working_mode : tuple of int, (2,)
        Signs of sin(alpha2 - alpha1) and sin(alpha3 - alpha4); (-1, 1) has both elbows outside.
    assembly_mode : int
        Sign of sin(alpha3 - alpha2) used by the direct problem; +1 is P above A B.
    """

    base: float = 0.2
    l1: float = 0.6
    l2: float = 0.7
    l3: float = 0.7
    l4: float = 0.6
    working_mode: tuple[int, int] = (-1, 1)
    assembly_mode: int = 1

    def __post_init__(self) -> None:
        for label in ("base", "l1", "l2", "l3", "l4"):
            value = getattr(self, label)
            least = 0.0 if label == "base" else 1e-9
            if not isinstance(value, int | float | np.floating) or not np.isfinite(value) or value < least:
                raise DynidentError(f"five-bar: {label} is {value!r}; give a positive length in metres")
        if len(self.working_mode) != 2 or any(sign not in (-1, 1) for sign in self.working_mode):
            raise DynidentError(f"five-bar: working_mode is {self.working_mode}; give two signs, as (-1, 1)")
        if self.assembly_mode not in (-1, 1):
            raise DynidentError(f"five-bar: assembly_mode is {self.assembly_mode}; give 1 (P above A B) or -1")

    @property
    def bases(self) -> tuple[Array, Array]:
        """A0 and B0, (2,) [m]."""
        return np.array([-0.5 * self.base, 0.0]), np.array([0.5 * self.base, 0.0])


@dataclass(frozen=True, eq=False)
class Singularities:
    """How far from singular N configurations are: sines of angles between bars, zero at a singularity.

    Parameters
    ----------
    serial : ndarray, (N, 2)
        |sin(alpha2 - alpha1)|, |sin(alpha3 - alpha4)|: a leg stretched or folded (type 1), the working mode may change.
    parallel : ndarray, (N,)
        |sin(alpha3 - alpha2)|: distal bars in line (type 2), the motors do not hold P and the assembly mode may change.
    """

    serial: Array
    parallel: Array

    def flagged(self, threshold: float = 0.05) -> list[tuple[str, int, float]]:
        """Return the kinds of singularity that come near.

        Parameters
        ----------
        threshold : float
            Sine below which a configuration counts as near.

        Returns
        -------
        list of (str, int, float)
            Kind ("serial, leg 1", "serial, leg 2", "parallel"), the sample where it is nearest, and the sine there.
        """
        found = []
        measures = {"serial, leg 1": self.serial[:, 0], "serial, leg 2": self.serial[:, 1], "parallel": self.parallel}
        for kind, sine in measures.items():
            sample = int(np.argmin(sine))
            if sine[sample] < threshold:
                found.append((kind, sample, float(sine[sample])))
        return found


def direction(angle: Array) -> Array:
    """Return e(angle) = (cos, sin)."""
    return np.stack([np.cos(angle), np.sin(angle)], axis=-1)
