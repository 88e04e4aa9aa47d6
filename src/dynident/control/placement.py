"""Gains of a cascade from what its closed position loop shall do: -3 dB bandwidth, and damping of its pole pair.

A rigid axis J s + c with P position and PI velocity loop has three poles, those of

    s^3 + (a + d) s^2 + (b + a kv) s + b kv = (s^2 + 2 zeta w s + w^2)(s + p),    a = Kt kP/J, b = Kt kI/J, d = c/J

and follows its reference by kv (a s + b) over that. Two wishes and three gains: the third condition is b, the square of the
velocity loop's natural frequency, which sets how stiff the axis is against disturbances. The rest is one equation in kv. Loops
with cycles, filters, delays, a winding or shafts start from there and are solved for exactly, with the model of `Axis`.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynident.control.linear import Axis
from dynident.errors import DynidentError

Array = NDArray[np.float64]

WIDEST = 1e4  # position gain over the wanted bandwidth, or its inverse, up to which a rigid axis is looked for
EXACT = 1e-6  # error of bandwidth (relative) and damping at which loops count as found


class Placed(NamedTuple):
    """Gains of a rigid axis and its poles.

    Parameters
    ----------
    position : float
        kv [1/s].
    velocity : float
        a = Kt kP / J [1/s].
    frequency : float
        w of the pole pair [rad/s].
    """

    position: float
    velocity: float
    frequency: float


def place_rigid(bandwidth: float, damping: float, natural: float, decay: float = 0.0) -> Placed:
    """Return the gains of a rigid axis without cycles for a -3 dB bandwidth and the damping of its pole pair."""
    from scipy.optimize import brentq  # noqa: PLC0415 - scipy is imported on first use

    wanted = 2.0 * np.pi * bandwidth

    def excess(x: float) -> float:
        return float(np.log(rigid_bandwidth(_gains(wanted * np.exp(x), damping, natural, decay), natural, decay) / wanted))

    low, high, x = -np.log(WIDEST), np.log(WIDEST), 0.0
    if excess(low) < 0.0 < excess(high):
        x = float(brentq(excess, low, high, xtol=1e-14, rtol=1e-14))
    if abs(excess(x)) > EXACT:  # out of reach, or the amplitude dips below -3 dB at once, before the resonance of the pair
        raise DynidentError(
            f"tuning: bandwidth = {bandwidth:g} Hz with damping {damping:g} cannot be had with a velocity loop of "
            f"{natural / (2.0 * np.pi):.4g} Hz; give another velocity_bandwidth or more damping"
        )
    found = _gains(wanted * float(np.exp(x)), damping, natural, decay)
    if found.velocity <= 0.0:
        raise DynidentError(
            f"tuning: bandwidth = {bandwidth:g} Hz with damping {damping:g} needs a negative velocity gain, as friction alone "
            "damps more; ask for more bandwidth or a faster velocity loop"
        )
    return found


def _gains(kv: float, zeta: float, natural: float, decay: float) -> Placed:
    """Return the velocity gain that gives the pole pair its damping at a position gain, by elimination of a and p."""
    b = natural**2
    roots = np.roots([1.0, -2.0 * zeta * kv, decay * kv - b, 2.0 * zeta * kv * b, -(kv**2) * b])
    w = float(roots.real[np.abs(roots.imag) <= 1e-9 * np.abs(roots)].max())
    return Placed(kv, 2.0 * zeta * w + b * kv / w**2 - decay, w)


def rigid_bandwidth(gains: Placed, natural: float, decay: float) -> float:
    """Return where the closed position loop of a rigid axis first falls to -3 dB."""
    kv, a, b = gains.position, gains.velocity, natural**2
    A, S, P = a + decay, b + a * kv, b * kv
    roots = np.roots([1.0, A**2 - 2.0 * S, S**2 - 2.0 * P * A - 2.0 * (kv * a) ** 2, P**2 - 2.0 * P**2])
    squares = roots.real[(np.abs(roots.imag) <= 1e-9 * np.abs(roots)) & (roots.real > 0.0)]
    return float(np.sqrt(squares.min()))


def place(axis_of: Callable[[float, float], Axis], start: Placed, scale: float, bandwidth: float, damping: float) -> Array:
    """Return the position and velocity gain with which the sampled loops have the wanted bandwidth and damping."""
    from scipy.optimize import root  # noqa: PLC0415 - scipy is imported on first use

    first = np.log([start.position, start.velocity * scale])

    def miss(x: Array) -> Array:
        axis = axis_of(*np.exp(first + np.clip(x, -5.0, 5.0)).tolist())
        reached = min(axis.bandwidth(), 1e3 * bandwidth)
        return np.array([np.log(reached / bandwidth), pair(axis, start.frequency, damping)[1] - damping])

    x = root(miss, np.zeros(2), tol=1e-10).x
    gains = np.exp(first + np.clip(x, -5.0, 5.0))
    if np.abs(miss(x)).max() > EXACT or not axis_of(*gains.tolist()).stable():
        axis = axis_of(*np.exp(first).tolist())
        raise DynidentError(
            f"tuning: with cycles and delays, drive '{axis.drive.actuator}' cannot have a position loop of {bandwidth:g} Hz "
            f"with damping {damping:g} at this velocity_bandwidth; shorten the cycles (outer {axis.loops.position_cycle:g} s, "
            f"inner {axis.loops.velocity_cycle:g} s) or ask for less"
        )
    return np.asarray(gains)


def pair(axis: Axis, frequency: float, damping: float, *, sampled: bool = True) -> tuple[float, float]:
    """Return natural frequency and damping of the pole pair of a closed position loop that is nearest to an expected one."""
    poles = np.asarray(axis.loop("position", sampled=sampled).poles, dtype=np.complex128)
    if sampled:
        poles = np.asarray(np.log(poles[np.abs(poles) > 1e-9]) / axis.loops.position_cycle, dtype=np.complex128)
    real = poles[np.abs(poles.imag) <= 1e-9 * np.abs(poles)].real
    above = poles[poles.imag > 1e-9 * np.abs(poles)]
    pairs = [(float(np.abs(s)), float(-s.real / np.abs(s))) for s in above]
    pairs += [(np.sqrt(s * r), -(s + r) / (2.0 * np.sqrt(s * r))) for s, r in combinations(real.tolist(), 2) if s * r > 0.0]
    if not pairs:
        return frequency, 10.0
    return min(pairs, key=lambda one: abs(np.log(one[0] / frequency)) + abs(one[1] - damping))
