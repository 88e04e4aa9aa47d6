"""Two masses on a shaft from the modal numbers of their driving point."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynident.drive.chain import Chain
from dynident.drive.checks import number
from dynident.errors import DynidentError, IdentificationError

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TwoMass:
    """Inertias, stiffness and damping of a two-mass actuator, seen at the motor.

    Parameters
    ----------
    values : ndarray, (4,)
        J1, J2 [kg m^2], k [N m/rad], c [N m s/rad].
    covariance : ndarray, (4, 4)
        Of the values.
    """

    values: Array
    covariance: Array

    names = ("J1", "J2", "k", "c")

    @property
    def standard_deviation(self) -> Array:
        """Of the values, (4,)."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def chain(self) -> Chain:
        """The chain; a damping that noise made negative becomes zero."""
        J1, J2, k, c = self.values.tolist()
        return Chain((J1, J2), (k,), (max(c, 0.0),))


def two_mass(modal: Array, covariance: Array, at: str = "load", ratio: float = 1.0) -> TwoMass:
    """Return the two masses whose driving point has one mode and a rigid motion.

    At the measured mass ``1/J_near = residue + rigid`` and ``1/(J1 + J2) = rigid``; then ``k = omega^2 J1 J2 / (J1 + J2)``
    and ``c = 2 xi omega J1 J2 / (J1 + J2)``.
    """
    if at not in ("load", "motor"):
        raise DynidentError(f"at is {at!r}; give 'load' or 'motor', where force and acceleration were measured")
    scale = number("modal fit: ratio", ratio) ** 2
    if scale == 0.0:
        raise DynidentError("modal fit: ratio is 0; give the motor angle per unit of the measured coordinate")
    _, _, residue, rigid = modal.tolist()
    if rigid <= 0.0 or residue <= 0.0:
        raise IdentificationError(
            f"the fit gives rigid = {rigid:.3g} and residue = {residue:.3g}, which no driving point of two masses has; "
            "check kind, sign and that the lines reach well below the resonance"
        )

    def masses(x: Any) -> Any:
        f, xi, part, whole = x
        near, total = 1.0 / (part + whole) / scale, 1.0 / whole / scale
        far, omega = total - near, 2.0 * np.pi * f
        effective = near * far / total
        first, last = (far, near) if at == "load" else (near, far)
        return np.array([first, last, omega**2 * effective, 2.0 * xi * omega * effective])

    values = masses(modal)
    # Derivatives by a complex step: exact, as the formulas are rational.
    tiny = 1e-30
    slope = np.stack([masses(modal + 1j * tiny * unit).imag / tiny for unit in np.eye(4)], axis=1)
    return TwoMass(values, slope @ covariance @ slope.T)
