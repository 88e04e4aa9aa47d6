"""Numbers of a motor's data sheet: missing ones computed, redundant ones compared."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from dynident.checks import number
from dynident.errors import DescriptionError

UNITS: Mapping[str, str] = {
    "nominal_voltage": "V",
    "resistance": "ohm",
    "stall_current": "A",
    "stall_torque": "N m",
    "torque_constant": "N m/A",
    "no_load_speed": "rad/s",
}

Values = dict[str, float]
Rule = tuple[str, tuple[str, ...], Callable[[Values], float]]


def _rules(idle: float) -> list[Rule]:
    """Every relation solved for each of its numbers: (number, what it follows from, how); `idle` is the no-load current."""
    V, R, i, tau, k, w = UNITS
    return [
        (V, (R, i), lambda x: x[R] * x[i]),
        (R, (V, i), lambda x: x[V] / x[i]),
        (i, (V, R), lambda x: x[V] / x[R]),
        (tau, (k, i), lambda x: x[k] * x[i]),
        (k, (tau, i), lambda x: x[tau] / x[i]),
        (i, (tau, k), lambda x: x[tau] / x[k]),
        (w, (V, k, i), lambda x: x[V] * (1.0 - idle / x[i]) / x[k]),
        (k, (V, w, i), lambda x: x[V] * (1.0 - idle / x[i]) / x[w]),
        (V, (k, w, i), lambda x: x[k] * x[w] / (1.0 - idle / x[i])),
        # Power of the torque-speed line: tau_stall omega_0 = V (i_stall - i_0), without the torque constant.
        (i, (V, tau, w), lambda x: x[tau] * x[w] / x[V] + idle),
    ] + ([(k, (V, w), lambda x: x[V] / x[w])] if idle == 0.0 else [])


def complete(given: Mapping[str, float | None], idle: float = 0.0, tolerance: float = 0.05) -> Values:
    """Return the given numbers with those that follow from them."""
    allowed = number("data sheet: tolerance", tolerance, above=0.0)
    known = {
        name: number(f"data sheet: {name}", value, above=0.0, unit=UNITS[name])
        for name, value in given.items()
        if value is not None
    }
    rules = _rules(idle)
    printed = dict(known)
    for _ in range(len(UNITS)):
        for name, needs, rule in rules:
            if known.get("stall_current", math.inf) <= idle:
                raise DescriptionError(
                    f"data sheet: the stall current {known['stall_current']:g} A does not exceed "
                    f"no_load_current = {idle:g} A; check both"
                )
            if name not in known and all(need in known for need in needs):
                known[name] = rule(known)
    if "torque_constant" not in known:
        raise DescriptionError(
            f"data sheet: the torque constant does not follow from {', '.join(printed) or 'nothing'}; "
            "give torque_constant, or nominal_voltage with resistance and stall_torque or no_load_speed"
        )
    for name, needs, rule in rules:
        if name in printed and all(need in known for need in needs):
            expected = rule(known)
            if abs(printed[name] - expected) > allowed * abs(expected):
                raise DescriptionError(
                    f"data sheet: {name} = {printed[name]:g} {UNITS[name]} contradicts {expected:.4g} {UNITS[name]} from "
                    + " and ".join(f"{need} = {known[need]:.4g} {UNITS[need]}" for need in needs)
                    + "; check the units or raise the tolerance"
                )
    return known
