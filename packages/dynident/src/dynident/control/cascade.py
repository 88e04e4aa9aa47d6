"""A cascade that keeps its margins in all directions of coupled joints.

Loops on coupled joints whose gains are in proportion to inertias D of the actuators see, at a pose, the directions x of

    A^T D A x = lambda M x

each as an axis of its own with 1 / lambda of the inertia that the gains were made for. The fastest direction must not be too
fast for the sampling, the slowest not too slow for the position loop around it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from dynident.control.gains import pi_gains
from dynident.control.laws import Cascade
from dynident.control.period import AxisLoops, period_map, rigid_plant
from dynident.drive.encoder import Encoder
from dynident.errors import SimulationError
from dynident.mechanics.actuation import actuator_jacobian
from dynident.mechanics.dynamics import mass_matrix
from dynident.mechanism.mechanism import Mechanism

GAIN_MARGIN, PHASE_MARGIN = 2.0, 30.0  # factor, degrees: the usual least ones
RESERVE = 1.2  # factor on the margins of the slowest direction without sampling, for what sampling costs
SEPARATION = 5.0  # velocity loop over position loop
SLOWEST = 1e-3  # share of a wanted bandwidth below which no loop is looked for


def spread(mechanism: Mechanism, q: ArrayLike, inertias: ArrayLike) -> tuple[float, float]:
    """Return the smallest and largest rate lambda over all directions and poses."""
    x = np.atleast_2d(np.asarray(q, dtype=np.float64))
    M, A = mass_matrix(mechanism, x), actuator_jacobian(mechanism, x)
    try:
        half = np.linalg.inv(np.linalg.cholesky(M))
    except np.linalg.LinAlgError:
        raise SimulationError(
            f"robot '{mechanism.name}': its mass matrix is not positive definite along the motion, so no gains follow from it; "
            "give every moving link or its drive an inertia"
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
    if not keeps_margins(still, slow, exact, RESERVE):  # next to no sampling: a question of the slow direction alone
        level = 1.0 / (slow * _largest(lambda x: keeps_margins(still, 1.0 / x, exact, RESERVE), 1.0, 1.0 / slow))
    reached = bandwidth
    if not _all(loops(bandwidth, level), rates, exact):
        reached = _largest(lambda f: _all(loops(f, level), rates, exact), SLOWEST * bandwidth, bandwidth)
    if not _all(loops(reached, level), rates, exact):
        raise SimulationError(
            f"a cascade of {bandwidth:g} Hz at a cycle of {cycle:g} s has no gains that are stable in all directions, which "
            f"differ in speed by {fast / slow:.3g}; use computed torque or a shorter cycle"
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
    """Tell whether the sampled loops of one direction keep the margins of this module.

    A gain margin is stability at that gain, a phase margin p stability at the gain exp(-i p).
    """
    axis, plant = AxisLoops(loops, Encoder(velocity="exact" if exact else "difference")), rigid_plant(1.0 / rate)
    gains = (1.0, reserve * GAIN_MARGIN, complex(np.exp(-1j * np.radians(reserve * PHASE_MARGIN))))
    periods = (period_map(axis, plant, "velocity"), period_map(axis, plant, "position"))
    return all(period.stable(gain) for period in periods for gain in gains)


def _all(loops: Cascade, rates: tuple[float, float], exact: bool) -> bool:
    return all(keeps_margins(loops, rate, exact) for rate in rates)


def _largest(holds: Callable[[float], bool], low: float, high: float) -> float:
    """Return by bisection the largest number at which something holds that does so at `low`."""
    for _ in range(12):
        middle = float(np.sqrt(low * high))
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
