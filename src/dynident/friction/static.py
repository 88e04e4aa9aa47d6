"""Static laws: friction as a function of the velocity.

sgn(0) = 0 everywhere. Constant, viscous and Coulomb columns are those of `dynident.friction.TERMS`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.errors import DescriptionError
from dynident.friction.law import FrictionLaw
from dynident.friction.state import State
from dynident.friction.terms import TERMS

Array = NDArray[np.float64]

#: Transitions are searched from the largest speed of the data down to this part of it (document 4: 1/beta is 2.4e-4 of it).
FINEST = 1e-4


def _transition(speed: float) -> tuple[float, float]:
    """Slopes beta of tanh(beta v) that turn within the speeds of the data."""
    return 1.0 / speed, 1.0 / (FINEST * speed)


def _term(symbol: str, v: Array) -> Array:
    return TERMS[symbol].column(v, v, v)[..., None]


@dataclass(frozen=True)
class Coulomb(FrictionLaw):
    """Coulomb friction ``f = fc sgn(v)`` (document 4 eq. 2.20)."""

    @property
    def name(self) -> str:
        """Prefix of its parameters."""
        return "coulomb"

    @property
    def linear(self) -> tuple[str, ...]:
        """``fc`` [N m or N]."""
        return ("fc",)

    def _columns(self, state: State, eta: Array) -> Array:
        return _term("fc", state.v)

    def _dv(self, state: State, eta: Array) -> Array:
        return np.zeros((*state.v.shape, 1))


@dataclass(frozen=True)
class Viscous(FrictionLaw):
    """Viscous friction ``f = fv v`` (document 4 eq. 2.23)."""

    @property
    def name(self) -> str:
        """Prefix of its parameters."""
        return "viscous"

    @property
    def linear(self) -> tuple[str, ...]:
        """``fv`` [N m s/rad or N s/m]."""
        return ("fv",)

    def _columns(self, state: State, eta: Array) -> Array:
        return _term("fv", state.v)

    def _dv(self, state: State, eta: Array) -> Array:
        return np.ones((*state.v.shape, 1))


@dataclass(frozen=True)
class Offset(FrictionLaw):
    """Constant torque ``f = off``: amplifier offset, or the half difference of the two directions' Coulomb friction."""

    @property
    def name(self) -> str:
        """Prefix of its parameters."""
        return "offset"

    @property
    def linear(self) -> tuple[str, ...]:
        """``off`` [N m or N]."""
        return ("off",)

    def _columns(self, state: State, eta: Array) -> Array:
        return _term("off", state.v)

    def _dv(self, state: State, eta: Array) -> Array:
        return np.zeros((*state.v.shape, 1))


@dataclass(frozen=True)
class Polynomial(FrictionLaw):
    """Odd polynomial ``f = a0 sgn(v) + a1 v + a2 v^2 sgn(v) + a3 v^3`` (document 3 eqs. 35 and 88).

    Parameters
    ----------
    degree : int
        Highest power, 0 to 9.
    """

    degree: int = 3

    def __post_init__(self) -> None:
        if not 0 <= self.degree <= 9:
            raise DescriptionError(f"degree = {self.degree} of the friction polynomial must be 0 to 9; document 3 uses 3")

    @property
    def name(self) -> str:
        """Prefix of its parameters."""
        return "polynomial"

    @property
    def linear(self) -> tuple[str, ...]:
        """``a0``, ``a1``, ...: torque over the power of the velocity."""
        return tuple(f"a{power}" for power in range(self.degree + 1))

    def _columns(self, state: State, eta: Array) -> Array:
        powers = np.arange(self.degree + 1)
        return np.asarray(np.sign(state.v)[..., None] * np.abs(state.v)[..., None] ** powers)

    def _dv(self, state: State, eta: Array) -> Array:
        powers = np.arange(self.degree + 1)
        return np.asarray(powers * np.abs(state.v)[..., None] ** np.maximum(powers - 1, 0))


@dataclass(frozen=True)
class Stribeck(FrictionLaw):
    """Stribeck curve ``f = sgn(v) [fc + (fs - fc) exp(-|v/vs|^delta)]`` (document 4 eq. 2.25; its missing sgn is set).

    Parameters
    ----------
    exponent : float or None
        delta: 1 is the exponential curve, 2 the Gaussian one; None makes it a shape parameter.
    """

    exponent: float | None = 2.0

    def __post_init__(self) -> None:
        if self.exponent is not None and not (np.isfinite(self.exponent) and self.exponent > 0.0):
            raise DescriptionError(f"exponent = {self.exponent} of the Stribeck law must be above zero; use 1, 2 or None")

    @property
    def name(self) -> str:
        """Prefix of its parameters."""
        return "stribeck"

    @property
    def linear(self) -> tuple[str, ...]:
        """``fc``, ``fs``: Coulomb friction and breakaway friction [N m or N]."""
        return ("fc", "fs")

    @property
    def shape(self) -> tuple[str, ...]:
        """``vs``: Stribeck speed [rad/s or m/s], and ``delta`` where the exponent is free."""
        return ("vs",) if self.exponent is not None else ("vs", "delta")

    def _range(self, speed: float) -> Array:
        low, high = _transition(speed)
        ranges = [(1.0 / high, 1.0 / low), (0.5, 4.0)]
        return np.array(ranges[: len(self.shape)])

    def _check(self, eta: Array) -> None:
        if (eta <= 0.0).any():
            named = ", ".join(f"{name} = {value}" for name, value in zip(self.shape, eta.tolist(), strict=True))
            raise DescriptionError(f"the Stribeck law needs shape parameters above zero, but {named}; search their logarithm")

    def _bell(self, state: State, eta: Array) -> tuple[Array, Array, float]:
        """The exponent (|v|/vs)^delta, the bell exp(-that) and delta."""
        delta = float(eta[1]) if self.exponent is None else self.exponent
        with np.errstate(over="ignore"):
            # Beyond 745 the bell is zero in double precision, and 0 times infinity must stay 0 in the derivatives.
            power = np.minimum((np.abs(state.v) / eta[0]) ** delta, 745.0)
        return power, np.exp(-power), delta

    def _columns(self, state: State, eta: Array) -> Array:
        _, bell, _ = self._bell(state, eta)
        sign = np.sign(state.v)
        return np.stack([sign * (1.0 - bell), sign * bell], axis=-1)

    def _dv(self, state: State, eta: Array) -> Array:
        power, bell, delta = self._bell(state, eta)
        speed = np.abs(state.v)
        limit = 1.0 / eta[0] if delta == 1.0 else 0.0
        ratio = np.divide(delta * power, speed, out=np.full_like(power, limit), where=speed > 0.0)
        return np.stack([ratio * bell, -ratio * bell], axis=-1)

    def _dshape(self, state: State, eta: Array) -> Array:
        power, bell, delta = self._bell(state, eta)
        slopes = [delta * power * bell / eta[0]]
        if self.exponent is None:
            relative = np.abs(state.v) / eta[0]
            logarithm = np.log(relative, out=np.zeros_like(power), where=relative > 0.0)
            slopes.append(-power * logarithm * bell)
        bent = np.sign(state.v)[..., None] * np.stack(slopes, axis=-1)
        return np.stack([-bent, bent], axis=-2)


@dataclass(frozen=True)
class Tanh(FrictionLaw):
    """Smooth Coulomb friction ``f = fc tanh(beta v)`` (document 4 eqs. 2.26 and 4.10)."""

    @property
    def name(self) -> str:
        """Prefix of its parameters."""
        return "tanh"

    @property
    def linear(self) -> tuple[str, ...]:
        """``fc`` [N m or N]."""
        return ("fc",)

    @property
    def shape(self) -> tuple[str, ...]:
        """``beta`` [s/rad or s/m]: inverse of the speed at which the friction has turned."""
        return ("beta",)

    def _range(self, speed: float) -> Array:
        return np.array([_transition(speed)])

    def _columns(self, state: State, eta: Array) -> Array:
        return np.asarray(np.tanh(eta[0] * state.v)[..., None])

    def _dv(self, state: State, eta: Array) -> Array:
        return np.asarray(eta[0] * (1.0 - np.tanh(eta[0] * state.v) ** 2)[..., None])

    def _dshape(self, state: State, eta: Array) -> Array:
        return np.asarray((state.v * (1.0 - np.tanh(eta[0] * state.v) ** 2))[..., None, None])


@dataclass(frozen=True)
class SmoothStribeck(FrictionLaw):
    """Smooth Stribeck curve ``f = [fc + fcs sech(alpha v)] tanh(beta v)`` (document 4 eq. 2.27 without its viscous part)."""

    @property
    def name(self) -> str:
        """Prefix of its parameters."""
        return "smooth_stribeck"

    @property
    def linear(self) -> tuple[str, ...]:
        """``fc``, ``fcs``: Coulomb friction and what breakaway adds to it [N m or N]."""
        return ("fc", "fcs")

    @property
    def shape(self) -> tuple[str, ...]:
        """``alpha``, ``beta`` [s/rad or s/m]."""
        return ("alpha", "beta")

    def _range(self, speed: float) -> Array:
        return np.array([_transition(speed)] * 2)

    def _parts(self, state: State, eta: Array) -> tuple[Array, Array, Array]:
        """The functions sech(alpha v), tanh(alpha v) and tanh(beta v)."""
        decay = np.exp(-np.abs(eta[0] * state.v))
        return 2.0 * decay / (1.0 + decay * decay), np.tanh(eta[0] * state.v), np.tanh(eta[1] * state.v)

    def _columns(self, state: State, eta: Array) -> Array:
        sech, _, rise = self._parts(state, eta)
        return np.stack([rise, sech * rise], axis=-1)

    def _dv(self, state: State, eta: Array) -> Array:
        sech, bend, rise = self._parts(state, eta)
        slope = eta[1] * (1.0 - rise * rise)
        return np.stack([slope, sech * (slope - eta[0] * bend * rise)], axis=-1)

    def _dshape(self, state: State, eta: Array) -> Array:
        sech, bend, rise = self._parts(state, eta)
        slope = state.v * (1.0 - rise * rise)
        first = np.stack([np.zeros_like(slope), slope], axis=-1)
        second = np.stack([-state.v * sech * bend * rise, sech * slope], axis=-1)
        return np.stack([first, second], axis=-2)


@dataclass(frozen=True)
class Sigmoid(FrictionLaw):
    """Neural-network law ``f = Bv v + sum_i Bfi (1 - 2 / (1 + exp(2 wi v))) = Bv v + sum_i Bfi tanh(wi v)``.

    Two terms in document 0 (eqs. 13 and 18), three in document 2 (eq. 9, there a voltage). ``(Bfi, wi)`` and
    ``(-Bfi, -wi)`` are the same law and the terms can be exchanged, so single values are not identifiable: compare
    curves, or use `canonical`.

    Parameters
    ----------
    terms : int
        Number of sigmoids, 1 to 9.
    """

    terms: int = 2

    def __post_init__(self) -> None:
        if not 1 <= self.terms <= 9:
            raise DescriptionError(
                f"terms = {self.terms} of the sigmoid law must be 1 to 9; document 0 uses 2, document 2 uses 3"
            )

    @property
    def name(self) -> str:
        """Prefix of its parameters."""
        return "sigmoid"

    @property
    def linear(self) -> tuple[str, ...]:
        """``Bv`` [N m s/rad or N s/m] and ``Bf1``, ``Bf2``, ... [N m or N]."""
        return ("Bv", *(f"Bf{i}" for i in range(1, self.terms + 1)))

    @property
    def shape(self) -> tuple[str, ...]:
        """``w1``, ``w2``, ... [s/rad or s/m]."""
        return tuple(f"w{i}" for i in range(1, self.terms + 1))

    def _range(self, speed: float) -> Array:
        return np.array([_transition(speed)] * self.terms)

    def canonical(self, parameters: ArrayLike) -> Array:
        """Parameters of the same law with every w above zero and in rising order.

        Parameters
        ----------
        parameters : array_like, shape (1 + 2 terms,)
            ``Bv, Bf1, ..., w1, ...``.

        Returns
        -------
        ndarray, shape (1 + 2 terms,)
            One of the ``2^n n!`` equivalent sets, always the same one.
        """
        rho, w = self.split(parameters)
        order = np.argsort(np.abs(w), kind="stable")
        return np.concatenate([rho[:1], (rho[1:] * np.where(w < 0.0, -1.0, 1.0))[order], np.abs(w)[order]])

    def _columns(self, state: State, eta: Array) -> Array:
        return np.concatenate([state.v[..., None], np.tanh(state.v[..., None] * eta)], axis=-1)

    def _dv(self, state: State, eta: Array) -> Array:
        slope = eta * (1.0 - np.tanh(state.v[..., None] * eta) ** 2)
        return np.concatenate([np.ones((*state.v.shape, 1)), slope], axis=-1)

    def _dshape(self, state: State, eta: Array) -> Array:
        result = np.zeros((*state.v.shape, self.terms + 1, self.terms))
        i = np.arange(self.terms)
        result[..., i + 1, i] = state.v[..., None] * (1.0 - np.tanh(state.v[..., None] * eta) ** 2)
        return result
