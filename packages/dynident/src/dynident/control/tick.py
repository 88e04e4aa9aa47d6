"""One tick of the loops of a controller, written for expressions, numbers and arrays alike.

    low-pass      y + c (u - y),    c = 1 - exp(-2 pi f T): the exact step response, sampled
    encoder       speed = (x - x_last) / T, or exact, low-passed
    position P    kv e + share v_ref, limited and low-passed
    velocity PI   i = kP e + kI int e dt + i_ff, low-passed and limited; the integral waits where it would push into a limit
    current PI    V = kPC e + kIC int e dt, limited; the integral waits as above
    PID           kp e + kd e' + ki int e dt

Integrals are sums with the present error in them (backward rectangle). Simulation compiles these expressions, and `period`
differentiates them for stability margins and linear analysis.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from dynident.graph.elementary import both, clip, equal, opposite, where

Limit = Callable[[Any], Any]


def low_pass_step(before: Any, value: Any, coefficient: Any) -> Any:
    """Return the output of a sampled first-order low-pass; the coefficient is 1 at the first tick."""
    return before + coefficient * (value - before)


def sensed_speed(position: Any, last: Any, true: Any, exact: Any, before: Any, cycle: Any, coefficient: Any) -> Any:
    """Return the speed that a drive estimates from two sensed positions, or the true one where it is `exact`, low-passed."""
    return low_pass_step(before, where(exact, true, (position - last) / cycle), coefficient)


def position_loop(error: Any, slope: Any, before: Any, gains: Any, limit: Any) -> Any:
    """Return the wanted speed; `gains` are kv, the share of the reference's `slope`, and the low-pass coefficient."""
    kv, share, coefficient = gains
    return low_pass_step(before, clip(kv * error + share * slope, limit), coefficient)


class Moved(NamedTuple):
    """Result of one tick of a PI loop: output, new integral, and whether a limit has cut the output."""

    output: Any
    integral: Any
    cut: Any


def velocity_loop(error: Any, feed: Any, integral: Any, before: Any, gains: Any, dt: Any, limit: Limit, windup: Any) -> Moved:
    """Move a velocity loop by one tick; `gains` are kP, kI and the low-pass coefficient."""
    kp, ki, coefficient = gains
    fixed, grown = kp * error + feed, integral + ki * error * dt
    smooth = low_pass_step(before, fixed + grown, coefficient)
    held = limit(smooth)
    cut = opposite(equal(held, smooth))
    waits = both(both(cut, windup), (smooth - held) * error > 0.0)  # conditional integration: not further into the limit
    waited = limit(low_pass_step(before, fixed + integral, coefficient))
    return Moved(where(waits, waited, held), where(waits, integral, grown), cut)


def current_loop(error: Any, integral: Any, gains: Any, dt: Any, limit: Any, windup: Any) -> Moved:
    """Move a current loop by one tick; `gains` are kPC and kIC."""
    kp, ki = gains
    grown = integral + ki * error * dt
    wanted = kp * error + grown
    held = clip(wanted, limit)
    cut = opposite(equal(held, wanted))
    waits = both(both(cut, windup), (wanted - held) * error > 0.0)
    return Moved(where(waits, clip(kp * error + integral, limit), held), where(waits, integral, grown), cut)


def pid_law(error: Any, slope: Any, integral: Any, gains: Any) -> Any:
    """Return kp e + kd e' + ki int e dt."""
    kp, kd, ki = gains
    return kp * error + kd * slope + ki * integral
