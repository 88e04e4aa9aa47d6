"""Laws made from laws: two directions, load, position and temperature; the inner law can be any static law."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dynident.errors import DescriptionError
from dynident.friction.law import FrictionLaw
from dynident.friction.state import State
from dynident.friction.static import Coulomb, Viscous

Array = NDArray[np.float64]


def _coulomb_and_viscous() -> FrictionLaw:
    return Coulomb() + Viscous()


@dataclass(frozen=True)
class Asymmetric(FrictionLaw):
    """Two sets of parameters, one per direction: ``f = [v > 0] Phi(eta_p) rho_p + [v < 0] Phi(eta_n) rho_n``.

    Names end in ``p`` (forward) and ``n`` (backward). With Coulomb and viscous friction, the default, the columns are the
    terms ``fcp, fcn, fvp, fvn`` of `TERMS`; document 3 allows the same for its polynomial (section 4.1.1).

    Parameters
    ----------
    law : FrictionLaw
        The law of each direction.
    """

    law: FrictionLaw = field(default_factory=_coulomb_and_viscous)

    @property
    def name(self) -> str:
        """Prefix of its parameters."""
        return "asymmetric"

    @property
    def linear(self) -> tuple[str, ...]:
        """Linear parameters of the law, forward and backward in turn."""
        return tuple(name + way for name in self.law.linear for way in "pn")

    @property
    def shape(self) -> tuple[str, ...]:
        """Shape parameters of the law, forward and backward in turn."""
        return tuple(name + way for name in self.law.shape for way in "pn")

    def _range(self, speed: float) -> Array:
        return np.repeat(self.law._range(speed), 2, axis=0)

    def _check(self, eta: Array) -> None:
        self.law._check(eta[0::2])
        self.law._check(eta[1::2])

    @staticmethod
    def _weave(state: State, forward: Array, backward: Array) -> Array:
        """Columns of the two directions in turn, each zero in the other direction."""
        v = state.v[..., None]
        woven = np.stack([np.where(v > 0.0, forward, 0.0), np.where(v < 0.0, backward, 0.0)], axis=-1)
        return woven.reshape(*state.v.shape, -1)

    def _columns(self, state: State, eta: Array) -> Array:
        return self._weave(state, self.law._columns(state, eta[0::2]), self.law._columns(state, eta[1::2]))

    def _dv(self, state: State, eta: Array) -> Array:
        return self._weave(state, self.law._dv(state, eta[0::2]), self.law._dv(state, eta[1::2]))

    def _dq(self, state: State, eta: Array) -> Array:
        return self._weave(state, self.law._dq(state, eta[0::2]), self.law._dq(state, eta[1::2]))

    def _dtau(self, state: State, eta: Array) -> Array:
        return self._weave(state, self.law._dtau(state, eta[0::2]), self.law._dtau(state, eta[1::2]))

    def _dT(self, state: State, eta: Array) -> Array:
        return self._weave(state, self.law._dT(state, eta[0::2]), self.law._dT(state, eta[1::2]))

    def _dshape(self, state: State, eta: Array) -> Array:
        result = np.zeros((*state.v.shape, len(self.linear), len(self.shape)))
        v = state.v[..., None, None]
        result[..., 0::2, 0::2] = np.where(v > 0.0, self.law._dshape(state, eta[0::2]), 0.0)
        result[..., 1::2, 1::2] = np.where(v < 0.0, self.law._dshape(state, eta[1::2]), 0.0)
        return result


class _Modulated(FrictionLaw):
    """Every column of an inner law times every one of m factors that depend on q or tau alone."""

    law: FrictionLaw

    @abstractmethod
    def _marks(self) -> tuple[str, ...]:
        """What is put behind a name for each factor."""

    @abstractmethod
    def _factors(self, state: State) -> Array:
        """Factors, shape (..., m)."""

    @property
    def linear(self) -> tuple[str, ...]:
        """Linear parameters of the inner law, one per factor."""
        return tuple(f"{name}_{mark}" for name in self.law.linear for mark in self._marks())

    @property
    def shape(self) -> tuple[str, ...]:
        """Shape parameters of the inner law."""
        return self.law.shape

    def _range(self, speed: float) -> Array:
        return self.law._range(speed)

    def _check(self, eta: Array) -> None:
        self.law._check(eta)

    def _times(self, columns: Array, factors: Array) -> Array:
        return (columns[..., :, None] * factors[..., None, :]).reshape(*columns.shape[:-1], -1)

    def _columns(self, state: State, eta: Array) -> Array:
        return self._times(self.law._columns(state, eta), self._factors(state))

    def _dv(self, state: State, eta: Array) -> Array:
        return self._times(self.law._dv(state, eta), self._factors(state))

    def _dq(self, state: State, eta: Array) -> Array:
        return self._times(self.law._dq(state, eta), self._factors(state))

    def _dtau(self, state: State, eta: Array) -> Array:
        return self._times(self.law._dtau(state, eta), self._factors(state))

    def _dT(self, state: State, eta: Array) -> Array:
        return self._times(self.law._dT(state, eta), self._factors(state))

    def _dshape(self, state: State, eta: Array) -> Array:
        bent = self.law._dshape(state, eta)
        product = bent[..., :, None, :] * self._factors(state)[..., None, :, None]
        return product.reshape(*state.v.shape, len(self.linear), len(self.shape))


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

    def __post_init__(self) -> None:
        if not self.powers or len(set(self.powers)) < len(self.powers) or min(self.powers) < 1.0:
            raise DescriptionError(f"powers = {self.powers} of the load must be distinct and 1 or more; use (1, 2)")

    @property
    def name(self) -> str:
        """Prefix of its parameters."""
        return "load"

    def _marks(self) -> tuple[str, ...]:
        return tuple(f"tau{power:g}" for power in self.powers)

    def _factors(self, state: State) -> Array:
        return np.asarray(np.abs(state.channel("tau", self.name))[..., None] ** np.array(self.powers))

    def _dtau(self, state: State, eta: Array) -> Array:
        tau = state.channel("tau", self.name)[..., None]
        powers = np.array(self.powers)
        slope = powers * np.abs(tau) ** (powers - 1.0) * np.sign(tau)
        return super()._dtau(state, eta) + self._times(self.law._columns(state, eta), slope)


@dataclass(frozen=True)
class _Unit(FrictionLaw):
    """The column of ones without a name of its own: a ripple that acts as a torque, not as friction."""

    @property
    def name(self) -> str:
        return "unit"

    @property
    def linear(self) -> tuple[str, ...]:
        return ("torque",)

    def _columns(self, state: State, eta: Array) -> Array:
        return np.ones((*state.v.shape, 1))

    def _dv(self, state: State, eta: Array) -> Array:
        return np.zeros((*state.v.shape, 1))


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

    def __post_init__(self) -> None:
        if not self.harmonics or len(set(self.harmonics)) < len(self.harmonics) or min(self.harmonics) <= 0.0:
            raise DescriptionError(f"harmonics = {self.harmonics} of the ripple must be distinct and above zero; use (1, 2)")

    @property
    def name(self) -> str:
        """Prefix of its parameters."""
        return "ripple"

    def _marks(self) -> tuple[str, ...]:
        return tuple(f"{wave}{h:.12g}" for h in self.harmonics for wave in "cs")

    def _waves(self, state: State) -> tuple[Array, Array, Array]:
        h = np.array(self.harmonics)
        angle = state.channel("q", self.name)[..., None] * h
        return h, np.cos(angle), np.sin(angle)

    def _factors(self, state: State) -> Array:
        _, cos, sin = self._waves(state)
        return np.stack([cos, sin], axis=-1).reshape(*state.v.shape, -1)

    def _dq(self, state: State, eta: Array) -> Array:
        h, cos, sin = self._waves(state)
        slope = np.stack([-h * sin, h * cos], axis=-1).reshape(*state.v.shape, -1)
        return super()._dq(state, eta) + self._times(self.law._columns(state, eta), slope)


@dataclass(frozen=True)
class TemperatureDependent(FrictionLaw):
    """Any law scaled by a measured temperature: ``f = [1 + alpha (T - T0)] Phi rho`` (document 3 eqs. 100 and 156).

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

    def __post_init__(self) -> None:
        if not np.isfinite(self.reference):
            raise DescriptionError(f"reference = {self.reference} must be a temperature in degree Celsius")

    @property
    def name(self) -> str:
        """Prefix of its parameters."""
        return "warm"

    @property
    def linear(self) -> tuple[str, ...]:
        """Linear parameters of the law at the reference temperature."""
        return self.law.linear

    @property
    def shape(self) -> tuple[str, ...]:
        """Shape parameters of the law and ``alpha`` [1/K]."""
        return (*self.law.shape, "alpha")

    def _range(self, speed: float) -> Array:
        return np.concatenate([self.law._range(speed), [[-0.1, 0.1]]])

    def _check(self, eta: Array) -> None:
        self.law._check(eta[:-1])

    def _rise(self, state: State) -> Array:
        return state.channel("T", self.name)[..., None] - self.reference

    def _scale(self, state: State, eta: Array) -> Array:
        return np.asarray(1.0 + eta[-1] * self._rise(state))

    def _columns(self, state: State, eta: Array) -> Array:
        return self._scale(state, eta) * self.law._columns(state, eta[:-1])

    def _dv(self, state: State, eta: Array) -> Array:
        return self._scale(state, eta) * self.law._dv(state, eta[:-1])

    def _dq(self, state: State, eta: Array) -> Array:
        return self._scale(state, eta) * self.law._dq(state, eta[:-1])

    def _dtau(self, state: State, eta: Array) -> Array:
        return self._scale(state, eta) * self.law._dtau(state, eta[:-1])

    def _dT(self, state: State, eta: Array) -> Array:
        warmer = eta[-1] * self.law._columns(state, eta[:-1])
        return np.asarray(warmer + self._scale(state, eta) * self.law._dT(state, eta[:-1]))

    def _dshape(self, state: State, eta: Array) -> Array:
        inner = self._scale(state, eta)[..., None] * self.law._dshape(state, eta[:-1])
        alpha = self._rise(state) * self.law._columns(state, eta[:-1])
        return np.concatenate([inner, alpha[..., None]], axis=-1)
