"""Whether friction laws that are not linear take energy out: f(v) v >= 0 at every speed, beyond doubt.

f(v) sign(v) < -3 sigma_f,     sigma_f^2 = g^T cov g,  g = df / d parameters of the law       a law that feeds energy
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dynident.friction.friction import Friction
from dynident.friction.passivity import dissipation
from dynident.friction.state import State

if TYPE_CHECKING:
    from dynident.identify.fit import Fit

SPEED = 3.0  # of the RMS speed in training: up to there a law is looked at
ELSE = 1.0  # rad/s or m/s, where a fit does not say its speeds
ROOM = 20.0  # degree Celsius, at which laws of temperature are looked at


def feeding_laws(fit: Fit, doubt: float) -> list[str]:
    """Return the joints whose identified law feeds energy into the motion by more than `doubt` deviations, in words."""
    found = []
    for joint, friction in fit.friction.items():
        speed = SPEED * fit.speeds.get(joint, 0.0) or ELSE
        held = {"q": 0.0, "tau": 0.0, "T": ROOM}
        at = {name: value for name, value in held.items() if name in friction.law.looks_at}
        check = dissipation(friction, speed, **at)
        if not check.dissipative and check.lowest < -doubt * _deviation(fit, joint, friction, check.at, at):
            found.append(f"the law of {joint} pushes with {-check.lowest:.3g} at {check.at:.3g}")
    return found


def _deviation(fit: Fit, joint: str, friction: Friction, v: float, held: dict[str, float]) -> float:
    """Return the standard deviation of a law's friction at a velocity."""
    state = State(np.array([v]), *(None if name not in held else np.array([held[name]]) for name in ("q", "tau", "T")))
    slope = friction(state, "parameters")[0]
    places = {name: i for i, name in enumerate(fit.base.leaders)}
    own = [places.get(f"{label}_{joint}") for label in friction.law.parameters]
    g = np.zeros(fit.base.rank)
    for value, place in zip(slope, own, strict=True):
        if place is not None:
            g[place] = value
    covariance = np.where(np.isfinite(fit.covariance), fit.covariance, 0.0)
    return float(np.sqrt(max(float(g @ covariance @ g), 0.0)))
