"""Gains of computed torque and of a PI loop, by pole placement.

PD on acceleration      s^2 + kd s + kp                          kp = w^2, kd = 2 zeta w
PI on J s + c           s^2 + (c + Kt kP)/J s + Kt kI/J          kP = (2 zeta w J - c) / Kt, kI = w^2 J / Kt
PI on L s + R           the same with L, R and Kt = 1
"""

from __future__ import annotations

import numpy as np

from dynident.checks import number
from dynident.errors import DynidentError


def gains_for(bandwidth: float, damping: float = 0.7) -> tuple[float, float]:
    """Return the gains kp = w^2 [1/s^2] and kd = 2 zeta w [1/s] of computed torque.

    `bandwidth` is the natural frequency w / (2 pi) of the error [Hz], `damping` its ratio zeta.

    Examples
    --------
    >>> from dynident.control import gains_for
    >>> kp, kd = gains_for(70.0, 0.7)
    >>> f"{kp:.4g}", f"{kd:.5g}"
    ('1.934e+05', '615.75')
    """
    w = 2.0 * np.pi * above("bandwidth", bandwidth)
    return w**2, 2.0 * above("damping", damping) * w


def pi_gains(inertia: float, viscous: float, constant: float, bandwidth: float, damping: float = 0.7) -> tuple[float, float]:
    """Return the gains kP = (2 zeta w J - c) / Kt and kI = w^2 J / Kt that place both poles of Kt / (J s + c) under a PI.

    `inertia` J [kg m^2], `viscous` c [N m s/rad] and torque `constant` Kt [N m/A] are those of a velocity loop; for a current
    loop they are L [H], R [ohm] and 1. `bandwidth` is the frequency w / (2 pi) of the poles [Hz], `damping` their ratio.

    Examples
    --------
    >>> from dynident.control import pi_gains
    >>> [round(gain, 3) for gain in pi_gains(13e-4, 1.7e-3, 1.43, 112.2274 / 6.2831853, 0.69193)]
    [0.14, 11.45]
    """
    J, Kt = above("inertia", inertia), above("constant", constant)
    c = not_below("viscous", viscous)
    w, zeta = 2.0 * np.pi * above("bandwidth", bandwidth), above("damping", damping)
    proportional = 2.0 * zeta * w * J - c
    if proportional < 0.0:
        raise DynidentError(
            f"bandwidth = {bandwidth:g} Hz with damping {zeta:g} needs a negative proportional gain, as the plant alone is "
            f"faster; give more than {c / (4.0 * np.pi * zeta * J):.4g} Hz"
        )
    return proportional / Kt, w**2 * J / Kt


def above(name: str, value: float) -> float:
    """Return a number above zero."""
    return number(f"tuning: {name}", value, above=0.0)


def not_below(name: str, value: float) -> float:
    """Return a number that is not negative."""
    return number(f"tuning: {name}", value, least=0.0)
