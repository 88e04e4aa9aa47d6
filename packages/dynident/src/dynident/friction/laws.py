"""Static laws: friction as a function of the velocity.

    coulomb     fc sgn(v)                                        stribeck         sgn(v) [fc + (fs - fc) exp(-|v/vs|^delta)]
    viscous     fv v                                             tanh             fc tanh(beta v)
    offset      off                                              smooth_stribeck  [fc + fcs sech(alpha v)] tanh(beta v)
    polynomial  a0 sgn(v) + a1 v + a2 v^2 sgn(v) + a3 v^3 + ...  sigmoid          Bv v + sum_i Bfi tanh(wi v)

sgn(0) = 0 everywhere. Units are those of a rotating or of a sliding joint: N m or N, rad/s or m/s.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.errors import DescriptionError
from dynident.friction.forms import Point
from dynident.friction.law import FrictionLaw
from dynident.graph.elementary import absolute, exp, maximum, power, sign, tanh

Array = NDArray[np.float64]

#: Transitions are searched from the largest speed of the data down to this part of it ([Roldan2017]: 1/beta is 2.4e-4 of it).
FINEST = 1e-4
#: Smallest |v/vs| of a Stribeck curve: its power and the logarithm of its base stay finite at rest.
SMALLEST = 1e-300


def transition(speed: float) -> tuple[float, float]:
    """Return the slopes beta of tanh(beta v) that turn within the speeds of the data."""
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
    """Odd polynomial ``f = a0 sgn(v) + a1 v + a2 v^2 sgn(v) + a3 v^3`` [Pagani2022, eqs. 35 and 88].

    Parameters
    ----------
    degree : int
        Highest power, 0 to 9.
    """

    degree: int = 3

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

    Parameters
    ----------
    exponent : float or None
        delta: 1 is the exponential curve, 2 the Gaussian one; None makes it a shape parameter.
    """

    exponent: float | None = 2.0

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

    ``beta`` [s/rad or s/m] is the inverse of the speed at which the friction has turned.
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

    ``fcs`` is what breakaway adds to the Coulomb friction ``fc``.
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

    Parameters
    ----------
    terms : int
        Number of sigmoids, 1 to 9.
    """

    terms: int = 2

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
