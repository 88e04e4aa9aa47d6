"""Static laws: friction as a function of the velocity, and laws made from laws.

    coulomb     fc sgn(v)                                        stribeck         sgn(v) [fc + (fs - fc) exp(-|v/vs|^delta)]
    viscous     fv v                                             tanh             fc tanh(beta v)
    offset      off                                              smooth_stribeck  [fc + fcs sech(alpha v)] tanh(beta v)
    polynomial  a0 sgn(v) + a1 v + a2 v^2 sgn(v) + a3 v^3 + ...  sigmoid          Bv v + sum_i Bfi tanh(wi v)

    asymmetric  [v > 0] f(rho_p) + [v < 0] f(rho_n)              ripple           sum_h cos(h q) f(rho_ch) + sin(h q) f(rho_sh)
    load        sum_p |tau|^p f(rho_p)                           warm             [1 + alpha (T - T0)] f(rho)

sgn(0) = 0 everywhere. Units are those of a rotating or of a sliding joint: N m or N, rad/s or m/s. The inner law f of the
last four can be any static law.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.errors import DescriptionError
from dynident.friction.law import FrictionLaw, Point
from dynident.graph.algebra import absolute, cos, exp, maximum, power, sign, sin, tanh, where

#: Transitions are searched from the largest speed of the data down to this share of it ([Roldan2017]: 1/beta is 2.4e-4 of it).
FINEST = 1e-4
#: Smallest |v/vs| of a Stribeck curve: its power and the logarithm of its base stay finite at rest.
SMALLEST = 1e-300


def transition(speed: float) -> tuple[float, float]:
    """Return the range of slopes beta with the transition of tanh(beta v) within the speeds of the data."""
    return 1.0 / speed, 1.0 / (FINEST * speed)


def stribeck(v: Any, fc: Any, fs: Any, vs: Any, delta: Any) -> Any:
    """Return the Stribeck curve without its sign, fc + (fs - fc) exp(-|v/vs|^delta)."""
    return fc + (fs - fc) * exp(-power(maximum(absolute(v) / vs, SMALLEST), delta))


@dataclass(frozen=True)
class Coulomb(FrictionLaw):
    """Coulomb friction ``f = fc sgn(v)`` [Roldan2017, eq. 2.20]."""

    name = "coulomb"
    linear = ("fc",)

    def torque(self, x: Point, p: Mapping[str, Any]) -> Any:
        return p["fc"] * sign(x.v)


@dataclass(frozen=True)
class Viscous(FrictionLaw):
    """Viscous friction ``f = fv v`` [Roldan2017, eq. 2.23]."""

    name = "viscous"
    linear = ("fv",)

    def torque(self, x: Point, p: Mapping[str, Any]) -> Any:
        return p["fv"] * x.v


@dataclass(frozen=True)
class Offset(FrictionLaw):
    """Constant torque ``f = off``: amplifier offset, or the half difference of the two directions' Coulomb friction."""

    name = "offset"
    linear = ("off",)

    def torque(self, x: Point, p: Mapping[str, Any]) -> Any:
        return p["off"]


@dataclass(frozen=True)
class Polynomial(FrictionLaw):
    """Odd polynomial ``f = a0 sgn(v) + a1 v + a2 v^2 sgn(v) + a3 v^3`` [Pagani2022, eqs. 35 and 88]."""

    degree: int = 3  #: Highest power, 0 to 9

    name = "polynomial"

    def __post_init__(self) -> None:
        if not 0 <= self.degree <= 9:
            raise DescriptionError(f"degree = {self.degree} of the friction polynomial must be 0 to 9; 3 is usual")

    @property
    def linear(self) -> tuple[str, ...]:
        """``a0``, ``a1``, ...: torque over the power of the velocity."""
        return tuple(f"a{k}" for k in range(self.degree + 1))

    def torque(self, x: Point, p: Mapping[str, Any]) -> Any:
        return sum(p[name] * (x.v**k if k % 2 else sign(x.v) * x.v**k) for k, name in enumerate(self.linear))


@dataclass(frozen=True)
class Stribeck(FrictionLaw):
    """Stribeck curve ``f = sgn(v) [fc + (fs - fc) exp(-|v/vs|^delta)]`` [Roldan2017, eq. 2.25 with the sgn it lacks].

    ``fc`` and ``fs`` are Coulomb and breakaway friction, ``vs`` is the Stribeck speed.
    """

    exponent: float | None = 2.0  #: delta: 1 is the exponential curve, 2 the Gaussian one; None makes it a shape parameter

    name = "stribeck"
    linear = ("fc", "fs")

    def __post_init__(self) -> None:
        if self.exponent is not None and not (np.isfinite(self.exponent) and self.exponent > 0.0):
            raise DescriptionError(f"exponent = {self.exponent} of the Stribeck law must be above zero; use 1, 2 or None")

    @property
    def shape(self) -> tuple[str, ...]:
        """``vs``: Stribeck speed [rad/s or m/s], and ``delta`` where the exponent is free."""
        return ("vs",) if self.exponent is not None else ("vs", "delta")

    @property
    def positive(self) -> tuple[str, ...]:
        """All of them."""
        return self.shape

    def ranges(self, speed: float) -> Sequence[tuple[float, float]]:
        return ((FINEST * speed, speed), (0.5, 4.0))[: len(self.shape)]

    def torque(self, x: Point, p: Mapping[str, Any]) -> Any:
        delta = p["delta"] if self.exponent is None else self.exponent
        return sign(x.v) * stribeck(x.v, p["fc"], p["fs"], p["vs"], delta)


@dataclass(frozen=True)
class Tanh(FrictionLaw):
    """Smooth Coulomb friction ``f = fc tanh(beta v)`` [Roldan2017, eqs. 2.26 and 4.10].

    ``beta`` [s/rad or s/m] is the inverse of the speed of the transition.
    """

    name = "tanh"
    linear = ("fc",)
    shape = ("beta",)

    def ranges(self, speed: float) -> Sequence[tuple[float, float]]:
        return (transition(speed),)

    def torque(self, x: Point, p: Mapping[str, Any]) -> Any:
        return p["fc"] * tanh(p["beta"] * x.v)


@dataclass(frozen=True)
class SmoothStribeck(FrictionLaw):
    """Smooth Stribeck curve ``f = [fc + fcs sech(alpha v)] tanh(beta v)`` [Roldan2017, eq. 2.27 without its viscous part].

    ``fcs`` is the breakaway friction in excess of the Coulomb friction ``fc``.
    """

    name = "smooth_stribeck"
    linear = ("fc", "fcs")
    shape = ("alpha", "beta")

    def ranges(self, speed: float) -> Sequence[tuple[float, float]]:
        return (transition(speed), transition(speed))

    def torque(self, x: Point, p: Mapping[str, Any]) -> Any:
        decay = exp(-absolute(p["alpha"] * x.v))
        sech = 2.0 * decay / (1.0 + decay * decay)
        return (p["fc"] + p["fcs"] * sech) * tanh(p["beta"] * x.v)


@dataclass(frozen=True)
class Sigmoid(FrictionLaw):
    """Neural-network law ``f = Bv v + sum_i Bfi (1 - 2 / (1 + exp(2 wi v))) = Bv v + sum_i Bfi tanh(wi v)``.

    Two terms in [Rodriguez2002, eqs. 13 and 18], three in [Kostic2002, eq. 9] (there a voltage). ``(Bfi, wi)`` and
    ``(-Bfi, -wi)`` are the same law and the terms can be exchanged, so single values are not identifiable: compare
    curves, or use `canonical`.
    """

    terms: int = 2  #: Number of sigmoids, 1 to 9

    name = "sigmoid"

    def __post_init__(self) -> None:
        if not 1 <= self.terms <= 9:
            raise DescriptionError(f"terms = {self.terms} of the sigmoid law must be 1 to 9; 2 or 3 are usual")

    @property
    def linear(self) -> tuple[str, ...]:
        """``Bv`` [N m s/rad or N s/m] and ``Bf1``, ``Bf2``, ... [N m or N]."""
        return ("Bv", *(f"Bf{i}" for i in range(1, self.terms + 1)))

    @property
    def shape(self) -> tuple[str, ...]:
        """``w1``, ``w2``, ... [s/rad or s/m]."""
        return tuple(f"w{i}" for i in range(1, self.terms + 1))

    def ranges(self, speed: float) -> Sequence[tuple[float, float]]:
        return (transition(speed),) * self.terms

    def torque(self, x: Point, p: Mapping[str, Any]) -> Any:
        waves = (p[f"Bf{i}"] * tanh(p[f"w{i}"] * x.v) for i in range(1, self.terms + 1))
        return sum(waves, p["Bv"] * x.v)

    def canonical(self, parameters: ArrayLike) -> Array:
        """Parameters of the same law with every w above zero and in rising order."""
        rho, w = self.split(parameters)
        order = np.argsort(np.abs(w), kind="stable")
        return np.concatenate([rho[:1], (rho[1:] * np.where(w < 0.0, -1.0, 1.0))[order], np.abs(w)[order]])


@dataclass(frozen=True)
class Asymmetric(FrictionLaw):
    """Two sets of parameters, one per direction: ``f = [v > 0] Phi(eta_p) rho_p + [v < 0] Phi(eta_n) rho_n``.

    Names end in ``p`` (forward) and ``n`` (backward). With Coulomb and viscous friction, the default, the columns are the
    terms ``fcp, fcn, fvp, fvn`` of `TERMS`; [Pagani2022, section 4.1.1] allows the same for its polynomial.
    """

    law: FrictionLaw = field(default_factory=lambda: Coulomb() + Viscous())  #: The law of each direction

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
        """Positive parameters of the law."""
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
    def _factors(self, x: Point) -> dict[str, Any]: ...  # the factors by parameter suffix

    @abstractmethod
    def _marks(self) -> tuple[str, ...]: ...  # parameter suffix of each factor

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
        """Positive parameters of the inner law."""
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
    """Friction that grows with the load: ``f = sum_p |tau|^p Phi rho_p``, by default ``(c1 |tau| + c2 tau^2) sgn(v)``."""

    #: Law that the load multiplies; its parameter ``fc`` becomes ``fc_tau1``, ``fc_tau2``
    law: FrictionLaw = field(default_factory=Coulomb)
    powers: tuple[float, ...] = (1.0, 2.0)  #: Powers p of the absolute load, 1 or more

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
    """A torque without a name, for a ripple that is not friction."""

    name = "unit"
    linear = ("torque",)

    def torque(self, x: Point, p: Mapping[str, Any]) -> Any:
        return p["torque"]


@dataclass(frozen=True)
class Ripple(_Modulated):
    """Harmonics of the position: ``f = sum_h [c_h cos(h q) + s_h sin(h q)] Phi rho``.

    By default a torque (cogging, eccentric gears): ``torque_c1``, ``torque_s1``, .... With an inner law the harmonics
    modulate that friction: ``Ripple((1,), Coulomb())`` has ``fc_c1``, ``fc_s1``.
    """

    #: Periods per radian or metre times 2 pi; a motor before a gear of ratio r has the harmonics r, 2 r, ...
    harmonics: tuple[float, ...] = (1.0,)
    law: FrictionLaw = field(default_factory=_Unit)  #: Law that the harmonics multiply

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
    """

    law: FrictionLaw  #: Law at the reference temperature
    reference: float = 20.0  #: Temperature T0 [degree Celsius] at which rho holds

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
        """Shape parameters of the law and ``alpha`` [1/K], named ``alpha_T`` if the law already has an ``alpha``."""
        return (*self.law.shape, self._alpha)

    @property
    def _alpha(self) -> str:
        name = "alpha"
        while name in self.law.parameters:
            name += "_T"
        return name

    @property
    def positive(self) -> tuple[str, ...]:
        """Positive parameters of the law."""
        return self.law.positive

    def ranges(self, speed: float) -> Sequence[tuple[float, float]]:
        return (*self.law.ranges(speed), (-0.1, 0.1))

    def torque(self, x: Point, p: Mapping[str, Any]) -> Any:
        return (1.0 + p[self._alpha] * (x.T - self.reference)) * self.law.torque(x, p)
