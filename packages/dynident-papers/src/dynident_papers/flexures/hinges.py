"""Flexure hinges as short beams: stiffness and stress of a notch from its profile; `solid` takes them as elastic solids.

    1 / K_bend = int dx / (E I(x)),  1 / K_twist = int dx / (G J(x)),  1 / K_axial = int dx / (E A(x))
    1 / K_shear = int dx / (k G A(x)) + int x^2 dx / (E I(x)),        x from the middle of the hinge

The profile is a neck of constant thickness t and length l between two fillets of radius R that end in the link [Lobontiu2002].
Stress is nominal, M / W at the neck, without the notch factor.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dynident.arrays import Array
from dynident.checks import number
from dynident.errors import DynidentError

POINTS = 64  # of the quadrature on every piece of the profile


@dataclass(frozen=True)
class FlexureHinge:
    """A notch that bends: flat (one easy axis) or round (two).

    Parameters
    ----------
    thickness : float
        t of the neck [m]; its diameter for a round hinge.
    radius : float
        R of the fillets [m].
    link : float
        Thickness of the link at both ends [m].
    width : float, optional
        w of a flat hinge [m]; None for a round one.
    neck : float
        Length l of the neck [m].
    young, poisson : float
        E [Pa] and Poisson's ratio.
    """

    thickness: float
    radius: float
    link: float
    width: float | None = None
    neck: float = 0.0
    young: float = 72e9
    poisson: float = 0.33

    def __post_init__(self) -> None:
        for field in ("thickness", "radius", "link", "young"):
            number(field, getattr(self, field), above=0.0)
        number("neck", self.neck, least=0.0, unit="m")
        if self.width is not None:
            number("width", self.width, above=0.0, unit="m")
        if not self.thickness < self.link <= self.thickness + 2.0 * self.radius:
            raise DynidentError(
                f"link is {self.link:g} m; a neck of {self.thickness:g} m with fillets of {self.radius:g} m ends in a link of "
                f"more than {self.thickness:g} and at most {self.thickness + 2.0 * self.radius:g} m"
            )

    @property
    def length(self) -> float:
        """Whole length of the notch [m]."""
        return self.neck + 2.0 * self.radius * float(np.sin(self._end))

    @property
    def bending(self) -> float:
        """Stiffness about the easy axis [N m/rad]."""
        return self._over(lambda x, h: 1.0 / (self.young * self._second(h)))

    @property
    def lateral(self) -> float:
        """Stiffness about the perpendicular axis [N m/rad]; equal for a round hinge."""
        return self._over(lambda x, h: 1.0 / (self.young * self._second(h, True)))

    @property
    def torsion(self) -> float:
        """Stiffness about the link [N m/rad]."""
        return self._over(lambda x, h: 1.0 / (self._shear_modulus * self._polar(h)))

    @property
    def axial(self) -> float:
        """Stiffness along the link [N/m]."""
        return self._over(lambda x, h: 1.0 / (self.young * self._area(h)))

    @property
    def shear(self) -> float:
        """Stiffness against a force through the middle, in the easy plane [N/m]."""
        return self._across(False)

    @property
    def lateral_shear(self) -> float:
        """The same across the easy plane [N/m]."""
        return self._across(True)

    def stress(self, moment: float) -> float:
        """Return the nominal bending stress at the neck [Pa] of a moment about the easy axis [N m]."""
        return abs(moment) * 0.5 * self.thickness / float(self._second(np.array([self.thickness]))[0])

    @property
    def _shear_modulus(self) -> float:
        return self.young / (2.0 * (1.0 + self.poisson))

    @property
    def _end(self) -> float:
        """Angle of the fillets at which they meet the link."""
        return float(np.arccos(1.0 - 0.5 * (self.link - self.thickness) / self.radius))

    def _over(self, density: Callable[[Array, Array], Array]) -> float:
        """Return the stiffness of a compliance per length, integrated over neck and both fillets."""
        node, weight = np.polynomial.legendre.leggauss(POINTS)
        angle = 0.5 * self._end * (node + 1.0)
        x = 0.5 * self.neck + self.radius * np.sin(angle)
        h = self.thickness + 2.0 * self.radius * (1.0 - np.cos(angle))
        fillet = float(np.sum(0.5 * self._end * weight * self.radius * np.cos(angle) * density(x, h)))
        inside = 0.25 * self.neck * (node + 1.0)
        neck = float(np.sum(0.25 * self.neck * weight * density(inside, np.full(POINTS, self.thickness))))
        return 1.0 / (2.0 * (fillet + neck))

    def _across(self, lateral: bool) -> float:
        share = 5.0 / 6.0 if self.width is not None else 0.9
        return self._over(
            lambda x, h: 1.0 / (share * self._shear_modulus * self._area(h)) + x**2 / (self.young * self._second(h, lateral))
        )

    def _area(self, h: Array) -> Array:
        return np.asarray(0.25 * np.pi * h**2 if self.width is None else self.width * h)

    def _second(self, h: Array, lateral: bool = False) -> Array:
        if self.width is None:
            return np.asarray(np.pi * h**4 / 64.0)
        return np.asarray(h * self.width**3 / 12.0 if lateral else self.width * h**3 / 12.0)

    def _polar(self, h: Array) -> Array:
        if self.width is None:
            return np.asarray(np.pi * h**4 / 32.0)
        long, short = np.maximum(h, self.width), np.minimum(h, self.width)
        ratio = short / long
        return np.asarray(long * short**3 * (1.0 / 3.0 - 0.21 * ratio * (1.0 - ratio**4 / 12.0)))
