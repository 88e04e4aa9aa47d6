"""Two-pole transfer form of the thermal model and its real-time recurrence [Pagani2022, section 5.1]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.checks import positive, step_length, time_axis
from dynident_lab.checks import finite
from dynident_lab.thermal import ThermalModel, Warming


@dataclass(frozen=True)
class Recurrence:
    """Exact zero-order-hold recurrence of the two-pole model at one sampling time.

    x(k) = a1 x(k-1) + a2 x(k-2) + b1 W(k-1) + b2 W(k-2),          x = T - Te
    """

    a1: float  # ``p1 + p2`` with ``p = exp(-dt/tau)``
    a2: float  # ``-p1 p2``
    b1: float  # ``g1 + g2`` with ``g = c tau (1 - p)`` [K/W]
    b2: float  # ``-(g1 p2 + g2 p1)`` [K/W]

    def next(self, x1: float, x2: float, w1: float, w2: float) -> float:
        """Temperature rise at the next sample."""
        return self.a1 * x1 + self.a2 * x2 + self.b1 * w1 + self.b2 * w2


@dataclass(frozen=True, kw_only=True)
class TwoPole(ThermalModel):
    """Transfer form ``T(s) / W(s) = c1 / (s + 1/tau1) + c2 / (s + 1/tau2)`` [Pagani2022, eqs. 154-158], slow pole first.

    Its state are the two parts of the temperature rise, ``dx_i/dt = c_i W [alpha (T - T0) + beta] - x_i / tau_i`` and
    ``T = Te + x1 + x2``. `simulate` feeds the friction power back exactly; `algorithm1` does it with the delay of one
    sample that a controller has.
    """

    alpha: float  # Change of the friction with temperature [1/K], usually negative
    c1: float  # Residue of the slow pole [K/J]
    c2: float  # Residue of the fast pole [K/J]
    tau1: float  # Slow time constant without feedback [s]
    tau2: float  # Fast time constant without feedback [s]
    beta: float = 1.0  # Friction ratio at the reference temperature; 1 in [Pagani2022]
    reference: float = 20.0  # Temperature T0 at which the friction law holds [degree Celsius]

    names: ClassVar[tuple[str, ...]] = ("alpha", "c1", "c2", "tau1", "tau2", "beta")

    def __post_init__(self) -> None:
        finite("TwoPole", alpha=self.alpha, beta=self.beta, reference=self.reference)
        positive("TwoPole", c1=self.c1, c2=self.c2, tau1=self.tau1, tau2=self.tau2)

    def recurrence(self, dt: float) -> Recurrence:
        """Recurrence that a controller runs at a fixed sampling time."""
        (p1, p2), (g1, g2) = self._poles(np.array(step_length(dt)))
        return Recurrence(float(p1 + p2), float(-p1 * p2), float(g1 + g2), float(-(g1 * p2 + g2 * p1)))

    def step_response(self, t: ArrayLike, power: float) -> Array:
        """Rise at a constant friction power, without feedback [Pagani2022, eq. 155]."""
        _, (g1, g2) = self._poles(time_axis(t))
        return np.asarray(power * (g1 + g2))

    def algorithm1(self, t: ArrayLike, power: ArrayLike) -> Warming:
        """Run-time estimation: friction from the last temperature, then temperature from that friction (Algorithm 1)."""
        times, watts, *_ = self._inputs(t, power, None, None, 0.0)
        p, g = (np.stack(pair, axis=-1) for pair in self._poles(np.diff(times)))
        state = np.zeros((times.size, 2))
        for k in range(times.size - 1):
            state[k + 1] = p[k] * state[k] + g[k] * watts[k] * (self.alpha * state[k].sum() + self.beta)
        return self._warming(times, self.reference + state.sum(axis=1), watts, state)

    def _poles(self, dt: Array) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        p = np.exp(-dt / self.tau1), np.exp(-dt / self.tau2)
        return p, (-self.c1 * self.tau1 * np.expm1(-dt / self.tau1), -self.c2 * self.tau2 * np.expm1(-dt / self.tau2))

    @staticmethod
    def equations(p: Any, W: Any, ambient: Any, zone: Any, losses: Any) -> tuple[list[list[Any]], list[Any]]:
        """A and b."""
        heat1, heat2 = W * p.alpha * p.c1, W * p.alpha * p.c2
        drive = W * (p.beta + p.alpha * (ambient - p.reference)) + losses
        return [[heat1 - 1.0 / p.tau1, heat1], [heat2, heat2 - 1.0 / p.tau2]], [p.c1 * drive, p.c2 * drive]

    @staticmethod
    def read(y: Sequence[Any], ambient: Any) -> Any:
        """Temperature of the friction surfaces: both poles above the surroundings."""
        return y[0] + y[1] + ambient

    def _rest(self, ambient: float) -> Array:
        return np.zeros(2)
