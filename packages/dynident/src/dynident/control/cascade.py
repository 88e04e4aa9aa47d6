"""Gains by pole placement, and a cascade that keeps its margins in all directions of coupled joints.

    PD on acceleration      s^2 + kd s + kp                          kp = w^2, kd = 2 zeta w
    PI on J s + c           s^2 + (c + Kt kP)/J s + Kt kI/J          kP = (2 zeta w J - c) / Kt, kI = w^2 J / Kt
    PI on L s + R           the same with L, R and Kt = 1

Loops on coupled joints with gains in proportion to inertias D of the actuators decouple, at a pose, into directions x of

    A^T D A x = lambda M x

each a separate axis with 1 / lambda of the inertia assumed by the gains. The fastest direction must not be too fast for the
sampling, the slowest not too slow for the outer position loop.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from dynident.checks import number
from dynident.control.laws import Cascade
from dynident.control.tick import AxisLoops, period_map, rigid_plant
from dynident.drive.drive import Encoder
from dynident.errors import DynidentError, SimulationError
from dynident.mechanics.actuation import actuator_jacobian
from dynident.mechanics.dynamics import mass_matrix
from dynident.mechanism.mechanism import Mechanism


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

    For a velocity loop, `inertia` is J [kg m^2], `viscous` c [N m s/rad] and `constant` Kt [N m/A]; for a current loop they
    are L [H], R [ohm] and 1. `bandwidth` is the frequency w / (2 pi) of the poles [Hz], `damping` their ratio.

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
            f"bandwidth = {bandwidth:g} Hz with damping {zeta:g} needs a negative proportional gain because the plant is "
            f"faster; give more than {c / (4.0 * np.pi * zeta * J):.4g} Hz"
        )
    return proportional / Kt, w**2 * J / Kt


def above(name: str, value: float) -> float:
    """Return a number above zero."""
    return number(f"tuning: {name}", value, above=0.0)


def not_below(name: str, value: float) -> float:
    """Return a number that is not negative."""
    return number(f"tuning: {name}", value, least=0.0)


GAIN_MARGIN, PHASE_MARGIN = 2.0, 30.0  # factor, degrees: usual minimum margins
RESERVE = 1.2  # factor on the margins of the slowest direction without sampling, to allow for sampling
SEPARATION = 5.0  # velocity loop over position loop
SLOWEST = 1e-3  # least share of the wanted bandwidth in the search


def spread(mechanism: Mechanism, q: ArrayLike, inertias: ArrayLike) -> tuple[float, float]:
    """Return the smallest and largest rate lambda over all directions and poses."""
    x = np.atleast_2d(np.asarray(q, dtype=np.float64))
    M, A = mass_matrix(mechanism, x), actuator_jacobian(mechanism, x)
    try:
        half = np.linalg.inv(np.linalg.cholesky(M))
    except np.linalg.LinAlgError:
        raise SimulationError(
            f"robot '{mechanism.name}' has no positive definite mass matrix along the motion, so gains cannot be computed; "
            "give every moving link an inertia"
        ) from None
    W = np.sqrt(np.asarray(inertias, dtype=np.float64))[:, None] * (A @ np.swapaxes(half, -1, -2))
    rates = np.linalg.eigvalsh(np.swapaxes(W, -1, -2) @ W)
    return float(rates.min()), float(rates.max())


def cascade_for(
    rates: tuple[float, float], bandwidth: float, damping: float, cycle: float, *, exact: bool = True
) -> tuple[Cascade, float]:
    """Return a cascade for unit inertia whose loops keep their margins in the slowest and in the fastest direction."""
    slow, fast = rates
    loops = partial(_loops, damping=damping, cycle=cycle)
    still, level = loops(SLOWEST * bandwidth, 1.0), 1.0
    if not keeps_margins(still, slow, exact, RESERVE):  # nearly continuous: only the slow direction matters
        level = 1.0 / (slow * _largest(lambda x: keeps_margins(still, 1.0 / x, exact, RESERVE), 1.0, 1.0 / slow))
    reached = bandwidth
    if not _all(loops(bandwidth, level), rates, exact):
        reached = _largest(lambda f: _all(loops(f, level), rates, exact), SLOWEST * bandwidth, bandwidth)
    if not _all(loops(reached, level), rates, exact):
        raise SimulationError(
            f"no gains of a {bandwidth:g} Hz cascade with a cycle of {cycle:g} s are stable in all directions (speed ratio "
            f"{fast / slow:.3g}); use computed torque or a shorter cycle"
        )
    return loops(reached, level), reached


def _loops(bandwidth: float, level: float, *, damping: float, cycle: float) -> Cascade:
    proportional, integral = pi_gains(level, 0.0, 1.0, SEPARATION * bandwidth, damping)
    return Cascade(
        2.0 * np.pi * bandwidth,
        proportional,
        integral,
        position_cycle=cycle,
        velocity_cycle=cycle / 4.0,
        velocity_feedforward=1.0,
    )


def keeps_margins(loops: Cascade, rate: float, exact: bool = True, reserve: float = 1.0) -> bool:
    """Return whether the sampled loops of one direction keep the margins of this module.

    A gain margin is stability at that gain, a phase margin p stability at the gain exp(-i p).
    """
    axis, plant = AxisLoops(loops, Encoder(velocity="exact" if exact else "difference")), rigid_plant(1.0 / rate)
    gains = (1.0, reserve * GAIN_MARGIN, complex(np.exp(-1j * np.radians(reserve * PHASE_MARGIN))))
    periods = (period_map(axis, plant, "velocity"), period_map(axis, plant, "position"))
    return all(period.stable(gain) for period in periods for gain in gains)


def _all(loops: Cascade, rates: tuple[float, float], exact: bool) -> bool:
    return all(keeps_margins(loops, rate, exact) for rate in rates)


def _largest(holds: Callable[[float], bool], low: float, high: float) -> float:
    """Return by bisection the largest number at which a condition holds that is true at `low`."""
    for _ in range(12):
        middle = float(np.sqrt(low * high))
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
