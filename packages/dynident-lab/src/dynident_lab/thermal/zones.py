"""Thermal models made of zones with one temperature each [Pagani2022, sections 4.2, 4.3 and 4.5]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dynident.checks import finite, not_negative, positive
from dynident.errors import DescriptionError
from dynident_lab.thermal.model import ThermalModel

Array = NDArray[np.float64]


def _square(a: Any, b: Any, c: Any, d: Any) -> Any:
    rows = np.stack(np.broadcast_arrays(a, b, c, d), axis=-1)
    return rows.reshape(*rows.shape[:-1], 2, 2)


@dataclass(frozen=True, kw_only=True)
class FirstOrder(ThermalModel):
    """One capacity: ``C dT/dt = W [alpha (T - T0) + beta] - K (T - Te)`` [Pagani2022, eqs. 99-115].

    Heating at a constant cold power has the time constant ``C / (K - W alpha)``, cooling the longer ``C / K``.
    """

    alpha: float  # Change of the friction with temperature [1/K], usually negative
    beta: float  # Friction ratio at the reference temperature, near 1
    K: float  # Conductance to the surroundings [W/K]
    C: float  # Heat capacity [J/K]
    reference: float = 20.0  # Temperature T0 at which the friction law holds [degree Celsius]

    names: ClassVar[tuple[str, ...]] = ("alpha", "beta", "K", "C")
    order: ClassVar[int] = 1

    def __post_init__(self) -> None:
        finite("FirstOrder", alpha=self.alpha, beta=self.beta, reference=self.reference)
        positive("FirstOrder", K=self.K, C=self.C)

    def _matrix(self, p: Any, power: Array) -> Any:
        alpha, _, K, C = p
        return ((power * alpha - K) / C)[..., None, None]

    def _drive(self, p: Any, power: Array, ambient: Array, zone: Array, losses: Array) -> Any:
        alpha, beta, K, C = p
        return ((power * (beta - alpha * self.reference) + losses + K * ambient) / C)[..., None]


@dataclass(frozen=True, kw_only=True)
class SecondOrder(ThermalModel):
    """Two capacities: the rubbing zone 1 heats its surroundings, zone 2, which heat the air [Pagani2022, eqs. 116-127].

        C1 dT1/dt = W [alpha (T1 - T0) + beta] - K1 (T1 - T2)
        C2 dT2/dt = K1 (T1 - T2) - K2 (T2 - Te)

    Parameters
    ----------
    alpha : float
        Change of the friction with temperature [1/K], usually negative.
    beta : float
        Friction ratio at the reference temperature, near 1.
    K1, K2 : float
        Conductance between the zones and from zone 2 to the air [W/K].
    C1, C2 : float
        Heat capacities [J/K].
    reference : float
        Temperature T0 at which the friction law holds [degree Celsius].

    Examples
    --------
    Axis 4 of [Pagani2022, eq. 130] at full duty:

    >>> from dynident.friction.thermal import SecondOrder
    >>> axis4 = SecondOrder(alpha=-0.0141, beta=0.9971, K1=4.41, K2=4.57, C1=737.61, C2=9163.45)
    >>> (axis4.time_constants(97.65) / 60).round(2).tolist()
    [28.55, 2.02]
    """

    alpha: float
    beta: float
    K1: float
    K2: float
    C1: float
    C2: float
    reference: float = 20.0

    names: ClassVar[tuple[str, ...]] = ("alpha", "beta", "K1", "K2", "C1", "C2")

    def __post_init__(self) -> None:
        finite("SecondOrder", alpha=self.alpha, beta=self.beta, reference=self.reference)
        positive("SecondOrder", K1=self.K1, K2=self.K2, C1=self.C1, C2=self.C2)

    def _matrix(self, p: Any, power: Array) -> Any:
        alpha, _, K1, K2, C1, C2 = p
        return _square((power * alpha - K1) / C1, K1 / C1, K1 / C2, -(K1 + K2) / C2)

    def _drive(self, p: Any, power: Array, ambient: Array, zone: Array, losses: Array) -> Any:
        alpha, beta, _, K2, C1, C2 = p
        first = (power * (beta - alpha * self.reference) + losses) / C1
        return np.stack(np.broadcast_arrays(first, K2 * ambient / C2), axis=-1)


@dataclass(frozen=True, kw_only=True)
class AdvancedSecondOrder(ThermalModel):
    """Two capacities, motor losses, and a third zone whose temperature T3 is measured [Pagani2022, eqs. 146-153].

        C1 dT1/dt = W [alpha (T1 - T0) + beta] + We - K12 (T1 - T2) - K13 (T1 - T3)
        C2 dT2/dt = K12 (T1 - T2) - K23 (T2 - T3) - K2e (T2 - Te)

    The printed alpha in eqs. 147, 150 and 153 stands for ``W alpha``. Without a sensor T3 is taken as the ambient
    temperature. ``K13 = K23 = We = 0`` is `SecondOrder`.

    Parameters
    ----------
    alpha : float
        Change of the friction with temperature [1/K], usually negative.
    beta : float
        Friction ratio at the reference temperature, near 1.
    K12, K13, K23, K2e : float
        Conductances between zones 1, 2, 3 and the air e [W/K].
    C1, C2 : float
        Heat capacities [J/K].
    We : float
        Constant electric losses of the powered motor [W].
    reference : float
        Temperature T0 at which the friction law holds [degree Celsius].
    """

    alpha: float
    beta: float
    K12: float
    K13: float
    K23: float
    K2e: float
    C1: float
    C2: float
    We: float = 0.0
    reference: float = 20.0

    names: ClassVar[tuple[str, ...]] = ("alpha", "beta", "K12", "K13", "K23", "K2e", "C1", "C2", "We")

    def __post_init__(self) -> None:
        name = "AdvancedSecondOrder"
        finite(name, alpha=self.alpha, beta=self.beta, reference=self.reference)
        positive(name, K12=self.K12, C1=self.C1, C2=self.C2)
        not_negative(name, K13=self.K13, K23=self.K23, K2e=self.K2e, We=self.We)
        if self.K13 + self.K23 + self.K2e == 0.0:
            raise DescriptionError(
                f"{name}: K13, K23 and K2e are all zero, so the heat cannot leave; give one of them above zero"
            )

    def _matrix(self, p: Any, power: Array) -> Any:
        alpha, _, K12, K13, K23, K2e, C1, C2, _ = p
        return _square((power * alpha - K12 - K13) / C1, K12 / C1, K12 / C2, -(K12 + K2e + K23) / C2)

    def _drive(self, p: Any, power: Array, ambient: Array, zone: Array, losses: Array) -> Any:
        alpha, beta, _, K13, K23, K2e, C1, C2, We = p
        first = (power * (beta - alpha * self.reference) + We + losses + K13 * zone) / C1
        return np.stack(np.broadcast_arrays(first, (K23 * zone + K2e * ambient) / C2), axis=-1)
