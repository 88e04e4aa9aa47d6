"""Fractional thermal model: one capacity with memory [Pagani2022, section 4.4].

    C d^nu T / dt^nu = W [alpha (T - T0) + 1] - K (T - Te)          Caputo derivative, 0 < nu <= 1

Its step response is a Mittag-Leffler function, which falls fast at first and slowly later, as if a spectrum of capacities
took part. nu = 1 is `FirstOrder` with beta = 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.checks import positive, signal, time_axis
from dynident.errors import DescriptionError, LogError
from dynident_lab.checks import finite
from dynident_lab.thermal import Warming, Weakening
from dynident_papers.thermal.special_functions import mittag_leffler, mittag_leffler_derivatives


@dataclass(frozen=True, kw_only=True)
class Fractional(Weakening):
    """Fractional first-order thermal model [Pagani2022, eqs. 132-142]; its beta is one."""

    alpha: float  # Change of the friction with temperature [1/K], usually negative
    K: float  # Conductance to the surroundings [W/K]
    C: float  # Fractional heat capacity [J s^(nu-1)/K]
    nu: float  # Order, above 0 and at most 1; [Pagani2022] finds 0.6121 on axis 4. It depends on the length of the test
    reference: float = 20.0  # Temperature T0 at which the friction law holds, and of the surroundings [degree Celsius]

    names: ClassVar[tuple[str, ...]] = ("alpha", "K", "C", "nu")
    constant_power: ClassVar[bool] = True
    beta = 1.0

    def __post_init__(self) -> None:
        finite("Fractional", alpha=self.alpha, reference=self.reference)
        positive("Fractional", K=self.K, C=self.C, nu=self.nu)
        if self.nu > 1.0:
            raise DescriptionError(f"Fractional: nu = {self.nu} must be at most 1, or the temperature would oscillate")

    def characteristic_time(self, power: float = 0.0) -> float:
        """Time at which the argument of the Mittag-Leffler function is -1."""
        return float((self.C / self._loss(power)) ** (1.0 / self.nu))

    def heating(self, t: ArrayLike, power: float) -> Warming:
        """Temperature at a constant power from a joint at the temperature of the surroundings (eqs. 141-142)."""
        return self._closed(t, power, self.reference)

    def cooling(self, t: ArrayLike, start: float) -> Warming:
        """Temperature of a joint at rest, from a uniform temperature without memory of the heating."""
        finite("Fractional", start=start)
        return self._closed(t, 0.0, start)

    def response(self, t: Array, power: Array, start: Array | None = None, **inputs: Array) -> Array:
        """Friction ratio while heating at the first of the powers."""
        return self.heating(t, float(power[0])).ratio

    def slope(self, t: Array, power: Array, start: Array | None = None, **inputs: Array) -> Array:
        """Its derivatives."""
        return self.sensitivity(t, float(power[0]))

    def sensitivity(self, t: ArrayLike, power: float) -> Array:
        """Exact derivatives of the friction ratio while heating at a constant power."""
        times, loss = self._times(t), self._loss(power)
        z = -loss / self.C * times**self.nu
        E = mittag_leffler(z, self.nu)
        dz, dnu = mittag_leffler_derivatives(z, self.nu)
        gain = self.alpha * power / loss
        to_loss = -gain / loss * (1.0 - E) + gain * dz * times**self.nu / self.C
        logarithm = np.log(times, out=np.zeros_like(times), where=times > 0.0)
        return np.stack(
            [
                power / loss * (1.0 - E) - power * to_loss,
                to_loss,
                gain * dz * z / self.C,
                -gain * (dz * z * logarithm + dnu),
            ],
            axis=-1,
        )

    def simulate(
        self, t: ArrayLike, power: ArrayLike, start: ArrayLike | None = None, ambient: ArrayLike | None = None
    ) -> Warming:
        """Temperature for any power, with the memory of the whole past (L1 scheme, implicit).

        Unlike the models of finite order this is not exact: the error falls about linearly with the step, and the cost
        grows with the square of the number of samples.
        """
        if ambient is not None:
            raise DescriptionError("the fractional model supports only its reference temperature; omit ambient")
        times = time_axis(t)
        watts = signal("power", power, times.size)
        rise = 0.0 if start is None else float(np.asarray(start).item()) - self.reference
        finite("Fractional", start=rise)
        gain, drive = (watts[:-1] * self.alpha - self.K) / self.C, watts[:-1] / self.C
        temperature = _caputo(times, gain, drive, rise, self.nu) + self.reference
        return self._warming(times, temperature, watts, temperature[:, None])

    def _times(self, t: ArrayLike) -> Array:
        times = time_axis(t)
        if times[0] < 0.0:
            raise LogError(f"t[0] = {times[0]} s is before the start; count the times from the start of the heating or cooling")
        return times

    def _loss(self, power: float) -> float:
        loss = self.K - power * self.alpha
        if not (math.isfinite(loss) and loss > 0.0):
            raise DescriptionError(
                f"Fractional: K - W alpha = {loss} W/K at power = {power} W has no steady state; lower the power or check alpha"
            )
        return loss

    def _closed(self, t: ArrayLike, power: float, start: float) -> Warming:
        times, loss = self._times(t), self._loss(power)
        E = mittag_leffler(-loss / self.C * times**self.nu, self.nu)
        temperature = self.reference + power / loss * (1.0 - E) + (start - self.reference) * E
        return self._warming(times, temperature, np.full(times.size, power), temperature[:, None])


def _caputo(t: Array, gain: Array, drive: Array, start: float, nu: float) -> Array:
    """Return x (N,) of d^nu x / dt^nu = gain x + drive on any increasing times; gain and drive (N - 1,) hold between them.

    L1 scheme, implicit: x is linear between samples, so that its fractional derivative is a sum over all slopes so far.
    """
    scale = math.gamma(2.0 - nu)
    x, slopes = np.empty(t.size), np.empty(t.size - 1)
    x[0] = start
    for n in range(1, t.size):
        memory = slopes[: n - 1] @ -np.diff((t[n] - t[:n]) ** (1.0 - nu)) / scale
        dt = t[n] - t[n - 1]
        weight = dt**-nu / scale
        x[n] = (weight * x[n - 1] + drive[n - 1] - memory) / (weight - gain[n - 1])
        slopes[n - 1] = (x[n] - x[n - 1]) / dt
    return x
