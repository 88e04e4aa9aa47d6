"""The coupler curve of a four-bar linkage as a path, which a haptic robot can emulate [Roldan2017, section 6.2.7].

O2 + a e(theta) + b e(phi) = O4 + c e(psi),    P = O2 + a e(theta) + (u + i v) e(phi),    e(x) = exp(i x).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array, Complex
from dynident.checks import number, numbers
from dynident.errors import DynidentError


class FourBar:
    """Path of a point on the coupler of a planar four-bar, by the angle of its crank.

    Parameters
    ----------
    crank, coupler, rocker : float
        Lengths a, b, c [m].
    ground : array_like, (2, 2)
        Bearings of crank and rocker, O2 and O4, in the xy plane [m].
    point : array_like, (2,)
        The point on the coupler: u along it from the crank's end, v to its left [m].
    start : float
        Angle of the crank at the start [rad].
    turn : float
        Rotation of the crank [rad]; two turns by default.
    crossed : bool
        The other assembly: rocker on the other side of the coupler.
    """

    def __init__(
        self,
        crank: float,
        coupler: float,
        rocker: float,
        ground: ArrayLike,
        point: ArrayLike,
        start: float = 0.0,
        turn: float = 4.0 * np.pi,
        crossed: bool = False,
    ) -> None:
        self.lengths = tuple(
            number(name, x, above=0.0, unit="m") for name, x in (("crank", crank), ("coupler", coupler), ("rocker", rocker))
        )
        bearings, on = numbers(ground, "ground"), numbers(point, "point")
        if bearings.shape != (2, 2) or on.shape != (2,) or not np.isfinite(bearings).all() or not np.isfinite(on).all():
            raise DynidentError(f"ground has shape {bearings.shape} and point {on.shape}; give (2, 2) and (2,) finite numbers")
        self.bearings = bearings[:, 0] + 1j * bearings[:, 1]
        self.point = complex(on[0], on[1])
        self.start, self.side = number("start", start), -1.0 if crossed else 1.0
        self.length = number("turn", turn, above=0.0, unit="rad")
        reach = np.abs(self._pin(np.linspace(0.0, self.length, 721)) - self.bearings[1])
        _, b, c = self.lengths
        if not np.all((reach > abs(b - c)) & (reach < b + c)):
            raise DynidentError(
                f"a crank of {self.lengths[0]:g} m does not turn by {self.length:.4g} rad between bearings "
                f"{abs(self.bearings[1] - self.bearings[0]):.4g} m apart with coupler {b:g} m and rocker {c:g} m; shorten it"
            )

    def _pin(self, s: Array) -> Complex:
        """Return the end of the crank."""
        return np.asarray(self.bearings[0] + self.lengths[0] * np.exp(1j * (self.start + s)))

    def __call__(self, s: ArrayLike) -> tuple[Array, Array, Array]:
        """Return x, x', x''."""
        a, b, c = self.lengths
        way = np.atleast_1d(np.asarray(s, dtype=np.float64))
        crank = a * np.exp(1j * (self.start + way))
        pin = self.bearings[0] + crank
        to = self.bearings[1] - pin
        apart = np.abs(to)
        inner = np.arccos((b**2 + apart**2 - c**2) / (2.0 * b * apart))
        coupler = np.exp(1j * (np.angle(to) + self.side * inner))
        rocker = (pin + b * coupler - self.bearings[1]) / c

        def solve(right: Complex) -> tuple[Array, Array]:
            """Return x, y with b coupler x - c rocker y = right."""
            across = np.imag(coupler * np.conj(rocker))
            x = np.imag(right * np.conj(rocker)) / (b * across)
            return x, np.imag(right * np.conj(coupler)) / (c * across)

        d_phi, d_psi = solve(-crank)
        dd_phi, _ = solve(-1j * (crank + b * d_phi**2 * coupler - c * d_psi**2 * rocker))
        arm = self.point * coupler
        found = (pin + arm, 1j * (crank + d_phi * arm), -crank + (1j * dd_phi - d_phi**2) * arm)
        x, dx, ddx = (np.column_stack([z.real, z.imag, np.zeros(way.size)]) for z in found)
        return x, dx, ddx
