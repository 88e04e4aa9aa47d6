"""Laws made from laws: two directions, load, position and temperature; the inner law can be any static law.

asymmetric   [v > 0] f(rho_p) + [v < 0] f(rho_n)             ripple   sum_h cos(h q) f(rho_ch) + sin(h q) f(rho_sh)
load         sum_p |tau|^p f(rho_p)                          warm     [1 + alpha (T - T0)] f(rho)
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dynident.errors import DescriptionError
from dynident.friction.forms import Point
from dynident.friction.law import FrictionLaw
from dynident.friction.laws import Coulomb, Viscous
from dynident.graph.elementary import absolute, cos, power, sin, where


def _coulomb_and_viscous() -> FrictionLaw:
    return Coulomb() + Viscous()


@dataclass(frozen=True)
class Asymmetric(FrictionLaw):
    """Two sets of parameters, one per direction: ``f = [v > 0] Phi(eta_p) rho_p + [v < 0] Phi(eta_n) rho_n``.

    Names end in ``p`` (forward) and ``n`` (backward). With Coulomb and viscous friction, the default, the columns are the
    terms ``fcp, fcn, fvp, fvn`` of `TERMS`; [Pagani2022, section 4.1.1] allows the same for its polynomial.

    Parameters
    ----------
    law : FrictionLaw
        The law of each direction.
    """

    law: FrictionLaw = field(default_factory=_coulomb_and_viscous)

    name = "asymmetric"

    @property
    def linear(self) -> tuple[str, ...]:
        """Linear parameters of the law, forward and backward in turn."""
        return tuple(name + way for name in self.law.linear for way in "pn")

    @property
    def shape(self) -> tuple[str, ...]:
        """Shape parameters of the law, forward and backward in turn."""
        return tuple(name + way for name in self.law.shape for way in "pn")

    @property
    def positive(self) -> tuple[str, ...]:
        """Those of the law."""
        return tuple(name + way for name in self.law.positive for way in "pn")

    def ranges(self, speed: float) -> Sequence[tuple[float, float]]:
        return [interval for interval in self.law.ranges(speed) for _ in "pn"]

    def torque(self, x: Point, p: Mapping[str, Any]) -> Any:
        forward, backward = (self.law.torque(x, {name: p[name + way] for name in self.law.parameters}) for way in "pn")
        return where(x.v > 0.0, forward, 0.0) + where(x.v < 0.0, backward, 0.0)


class _Modulated(FrictionLaw):
    """An inner law with one set of linear parameters per factor, and the factors depending on q or tau alone."""

    law: FrictionLaw

    @abstractmethod
    def _factors(self, x: Point) -> dict[str, Any]:
        """Return the factors by what is put behind the name of a parameter."""

    @abstractmethod
    def _marks(self) -> tuple[str, ...]:
        """Return what is put behind a name for each factor."""

    @property
    def linear(self) -> tuple[str, ...]:
        """Linear parameters of the inner law, one per factor."""
        return tuple(f"{name}_{mark}" for name in self.law.linear for mark in self._marks())

    @property
    def shape(self) -> tuple[str, ...]:
        """Shape parameters of the inner law."""
        return self.law.shape

    @property
    def positive(self) -> tuple[str, ...]:
        """Those of the inner law."""
        return self.law.positive

    def ranges(self, speed: float) -> Sequence[tuple[float, float]]:
        return self.law.ranges(speed)

    def torque(self, x: Point, p: Mapping[str, Any]) -> Any:
        shape = {name: p[name] for name in self.shape}
        return sum(
            factor * self.law.torque(x, {**shape, **{name: p[f"{name}_{mark}"] for name in self.law.linear}})
            for mark, factor in self._factors(x).items()
        )


@dataclass(frozen=True)
class LoadDependent(_Modulated):
    """Friction that grows with the load: ``f = sum_p |tau|^p Phi rho_p``, by default ``(c1 |tau| + c2 tau^2) sgn(v)``.

    Parameters
    ----------
    law : FrictionLaw
        Law that the load multiplies; its parameter ``fc`` becomes ``fc_tau1``, ``fc_tau2``.
    powers : tuple of float
        Powers p of the absolute load, 1 or more.
    """

    law: FrictionLaw = field(default_factory=Coulomb)
    powers: tuple[float, ...] = (1.0, 2.0)

    name = "load"

    def __post_init__(self) -> None:
        object.__setattr__(self, "powers", tuple(self.powers))
        if not self.powers or len(set(self.powers)) < len(self.powers) or min(self.powers) < 1.0:
            raise DescriptionError(f"powers = {self.powers} of the load must be distinct and 1 or more; use (1, 2)")

    def _marks(self) -> tuple[str, ...]:
        return tuple(f"tau{n:g}" for n in self.powers)

    def _factors(self, x: Point) -> dict[str, Any]:
        return {mark: power(absolute(x.tau), n) for mark, n in zip(self._marks(), self.powers, strict=True)}


@dataclass(frozen=True)
class _Unit(FrictionLaw):
    """A torque without a name of its own, for a ripple that is not friction."""

    name = "unit"
    linear = ("torque",)

    def torque(self, x: Point, p: Mapping[str, Any]) -> Any:
        return p["torque"]


@dataclass(frozen=True)
class Ripple(_Modulated):
    """Harmonics of the position: ``f = sum_h [c_h cos(h q) + s_h sin(h q)] Phi rho``.

    By default a torque (cogging, eccentric gears): ``torque_c1``, ``torque_s1``, .... With an inner law the harmonics
    modulate that friction: ``Ripple((1,), Coulomb())`` has ``fc_c1``, ``fc_s1``.

    Parameters
    ----------
    harmonics : tuple of float
        Periods per radian or metre times 2 pi; a motor before a gear of ratio r has the harmonics r, 2 r, ....
    law : FrictionLaw
        Law that the harmonics multiply.
    """

    harmonics: tuple[float, ...] = (1.0,)
    law: FrictionLaw = field(default_factory=_Unit)

    name = "ripple"

    def __post_init__(self) -> None:
        object.__setattr__(self, "harmonics", tuple(self.harmonics))
        if not self.harmonics or len(set(self.harmonics)) < len(self.harmonics) or min(self.harmonics) <= 0.0:
            raise DescriptionError(f"harmonics = {self.harmonics} of the ripple must be distinct and above zero; use (1, 2)")

    def _marks(self) -> tuple[str, ...]:
        return tuple(f"{wave}{h:.12g}" for h in self.harmonics for wave in "cs")

    def _factors(self, x: Point) -> dict[str, Any]:
        waves = [wave(h * x.q) for h in self.harmonics for wave in (cos, sin)]
        return dict(zip(self._marks(), waves, strict=True))


@dataclass(frozen=True)
class TemperatureDependent(FrictionLaw):
    """Any law scaled by a measured temperature: ``f = [1 + alpha (T - T0)] Phi rho`` [Pagani2022, eqs. 100 and 156].

    The factor beta of eq. 100 is one here: with free rho it would be the same parameter twice.

    Parameters
    ----------
    law : FrictionLaw
        Law at the reference temperature.
    reference : float
        Temperature T0 [degree Celsius] at which rho holds.
    """

    law: FrictionLaw
    reference: float = 20.0

    name = "warm"

    def __post_init__(self) -> None:
        if not np.isfinite(self.reference):
            raise DescriptionError(f"reference = {self.reference} must be a temperature in degree Celsius")

    @property
    def linear(self) -> tuple[str, ...]:
        """Linear parameters of the law at the reference temperature."""
        return self.law.linear

    @property
    def shape(self) -> tuple[str, ...]:
        """Shape parameters of the law and ``alpha`` [1/K], ``alpha_T`` where the law has an alpha of its own."""
        return (*self.law.shape, self._alpha)

    @property
    def _alpha(self) -> str:
        name = "alpha"
        while name in self.law.parameters:
            name += "_T"
        return name

    @property
    def positive(self) -> tuple[str, ...]:
        """Those of the law."""
        return self.law.positive

    def ranges(self, speed: float) -> Sequence[tuple[float, float]]:
        return (*self.law.ranges(speed), (-0.1, 0.1))

    def torque(self, x: Point, p: Mapping[str, Any]) -> Any:
        return (1.0 + p[self._alpha] * (x.T - self.reference)) * self.law.torque(x, p)
