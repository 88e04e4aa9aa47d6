"""Expected friction of a healthy joint: the temperature is compensated before any comparison."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from dynident.arrays import Array
from dynident.errors import DynidentError
from dynident_lab.testbench.history import FrictionHistory
from dynident_lab.testbench.warmup import Warmup, fit_warmup
from dynident_lab.thermal.models import ThermalModel

ROUNDS = 6  # iterations between the heat of a fault and its size; each reduces the error to a fifth


class Compensation(Protocol):
    """Expected friction of a healthy joint."""

    def fit(self, baseline: Sequence[FrictionHistory]) -> None:
        """Fit the expectation to healthy tests."""

    def expected(self, history: FrictionHistory) -> Array:
        """Return the friction of a healthy joint in a test."""


class NoCompensation:
    """Expect the mean friction at any temperature: a detector without compensation."""

    def fit(self, baseline: Sequence[FrictionHistory]) -> None:
        """Compute the mean."""
        self.mean_ = float(np.mean(np.concatenate([h.friction for h in baseline])))

    def expected(self, history: FrictionHistory) -> Array:
        """Return the mean at every point."""
        return np.full(len(history), self.mean_)


class MeasuredTemperature:
    """Expect friction that is a polynomial of the measured temperature, ``f = f0 (1 + alpha (T - T0) + ...)``."""

    def __init__(self, degree: int = 1) -> None:
        self.degree = degree

    def fit(self, baseline: Sequence[FrictionHistory]) -> None:
        """Fit the polynomial."""
        heat = np.concatenate([self._heat(h) for h in baseline])
        if np.unique(heat).size <= self.degree:
            raise DynidentError(
                f"temperature compensation of degree {self.degree} needs more than {np.unique(heat).size} temperatures"
            )
        self.range_ = (float(heat.min()), float(heat.max()))
        friction = np.concatenate([h.friction for h in baseline])
        self.polynomial_ = np.polynomial.Polynomial.fit(heat, friction, self.degree)

    @staticmethod
    def _heat(history: FrictionHistory) -> Array:
        if history.temperature is None:
            raise DynidentError(f"friction history '{history.name}' has no temperature; use WarmupTime() or a thermal model")
        return history.temperature

    def expected(self, history: FrictionHistory) -> Array:
        """Return the friction at the measured temperatures."""
        return np.asarray(self.polynomial_(self._heat(history)))

    def outside(self, history: FrictionHistory) -> str:
        """Return a sentence if a test is outside the temperature range of the healthy ones."""
        low, high, heat = *self.range_, self._heat(history)
        margin = 0.1 * (high - low)
        if heat.min() >= low - margin and heat.max() <= high + margin:
            return ""
        return (
            f"temperatures {heat.min():.1f} to {heat.max():.1f} degC exceed those of healthy tests ({low:.1f} to "
            f"{high:.1f}); the expectation is extrapolated and the probabilities are optimistic"
        )


class ThermalPrediction:
    """Expect the prediction of a thermal model from the friction power, without a sensor.

    Excess friction of a faulty joint also heats the joint, which lowers the expected friction.

    Parameters
    ----------
    model : ThermalModel
        Thermal model of the healthy joint.
    power : callable, optional
        Times [s] and cold friction power of the healthy joint from each time on [W] in a test; by default those of the history.
    """

    def __init__(self, model: ThermalModel, power: Callable[[FrictionHistory], tuple[Array, Array]] | None = None) -> None:
        self.model, self.power = model, power

    def fit(self, baseline: Sequence[FrictionHistory]) -> None:
        """Fit the friction at the reference temperature."""
        ratio = np.concatenate([self._ratio(h, np.ones(len(h))) for h in baseline])
        self.cold_ = float(ratio @ np.concatenate([h.friction for h in baseline]) / (ratio @ ratio))

    def _ratio(self, history: FrictionHistory, excess: Array) -> Array:
        """Return friction over cold friction at the points of a test; `excess` is its friction over that of a healthy joint."""
        if self.power is not None:
            t, power = self.power(history)
        elif history.power is None:
            raise DynidentError(f"friction history '{history.name}' has no friction power; give power= in W for thermal models")
        else:
            t, power = history.t, history.power
        if t[0] > 0.0:
            t, power = np.append(0.0, t), np.append(power[0], power)
        heated = power * excess[np.maximum(np.searchsorted(history.t, t, side="right") - 1, 0)]
        return np.asarray(np.interp(history.t, t, self.model.simulate(t, heated).ratio))

    def expected(self, history: FrictionHistory) -> Array:
        """Return the friction of a healthy joint at the temperature of this one."""
        ratio = self._ratio(history, np.ones(len(history)))
        for _ in range(ROUNDS):
            ratio = self._ratio(history, np.maximum(history.friction / (self.cold_ * ratio), 0.0))
        return self.cold_ * ratio


class WarmupTime:
    """Expect the friction that healthy tests had at the same time since their cold start."""

    def fit(self, baseline: Sequence[FrictionHistory]) -> None:
        """Fit the common drift."""
        self.drift_: Warmup = fit_warmup(
            np.concatenate([h.t for h in baseline]), np.concatenate([h.friction for h in baseline])
        )

    def expected(self, history: FrictionHistory) -> Array:
        """Return the drift at the times of a test."""
        return self.drift_(history.t)
