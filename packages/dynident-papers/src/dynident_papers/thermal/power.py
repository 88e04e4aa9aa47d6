"""Heat sources of a joint: friction power over duty cycles, and the losses of its motor."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.checks import not_negative, number, numbers, positive, signal, time_axis
from dynident.errors import DescriptionError, LogError

COPPER = 0.0039  # change of the resistance of copper with temperature [1/K]


def mean_power(t: ArrayLike, torque: ArrayLike, v: ArrayLike) -> float:
    """Mean friction power of a cycle, ``W = 1/t_c int f v dt`` [Pagani2022, eq. 129, trapezoidal rule]."""
    times, power = _powers(t, torque, v)
    return float(np.trapezoid(power, times) / (times[-1] - times[0]))


def rms_power(t: ArrayLike, torque: ArrayLike, v: ArrayLike) -> float:
    """Return ``sqrt(1/t_c int (f v)^2 dt)`` of a cycle [Pagani2022, eq. 155]; the heat is the mean, `mean_power`."""
    times, power = _powers(t, torque, v)
    return float(np.sqrt(np.trapezoid(power**2, times) / (times[-1] - times[0])))


def _powers(t: ArrayLike, torque: ArrayLike, v: ArrayLike) -> tuple[Array, Array]:
    """Return times and power of a cycle."""
    times = time_axis(t)
    if times.size < 2:
        raise LogError("the power of a cycle needs at least two samples; give a whole cycle")
    return times, signal("torque", torque, times.size) * signal("v", v, times.size)


def duty_cycle(t: ArrayLike, power: float, duty: float, period: float) -> Array:
    """Power that is on for the first part of every period [Pagani2022, section 4.3.1].

    The mean over a period is ``duty * power`` where the samples resolve the period; a period far below the thermal time
    constants heats like that mean.
    """
    positive("duty_cycle", period=period)
    if not 0.0 <= duty <= 1.0:
        raise DescriptionError(
            f"duty = {duty} must be between 0 (always still) and 1 (always moving); give a part, not per cent"
        )
    phase = (time_axis(t) / period) % 1.0
    # The last digits of t / period must not turn a sample at the start of a period into its end.
    phase[phase > 1.0 - 1e-9] = 0.0
    return np.where(phase < duty - 1e-9, power, 0.0)


def copper_losses(resistance: float, current: ArrayLike) -> Array:
    """Heat of three windings, ``W = 3 R I^2`` [Pagani2022, eq. 144]."""
    not_negative("copper_losses", resistance=resistance)
    return np.asarray(3.0 * resistance * numbers(current, "current") ** 2)


def winding_resistance(resistance: float, temperature: ArrayLike, reference: float = 20.0) -> Array:
    """Resistance of a copper winding, ``R = R0 (1 + 0.0039 (T - T0))``: +39 % per 100 K [Pagani2022, section 4.5]."""
    not_negative("winding_resistance", resistance=resistance)
    factor = 1.0 + COPPER * (numbers(temperature, "temperature") - number("winding_resistance: reference", reference))
    if np.any(factor <= 0.0):
        raise DescriptionError(
            f"winding_resistance: temperature = {np.min(temperature):g} degree Celsius is too cold for this law, whose "
            "resistance would be zero or less; check its unit"
        )
    return np.asarray(resistance * factor)


def iron_losses(eddy: float, hysteresis: float, flux: ArrayLike, frequency: ArrayLike, exponent: float = 2.0) -> Array:
    """Heat of the iron, ``W = l1 B^2 f^2 + l2 B^n f`` [Pagani2022, eq. 145; its exponent is called alpha there]."""
    not_negative("iron_losses", eddy=eddy, hysteresis=hysteresis)
    b, f = np.abs(numbers(flux, "flux")), np.abs(numbers(frequency, "frequency"))
    return np.asarray(eddy * b**2 * f**2 + hysteresis * b**exponent * f)
