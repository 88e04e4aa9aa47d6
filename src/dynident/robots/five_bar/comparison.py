"""The tests of sec. 4.1 run on the virtual five-bar, with what the thesis says of its own model and of its experiment."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dynident.control import actuator_motion
from dynident.robots.five_bar.machine import circle, machine, x_move
from dynident.robots.five_bar.model import GEAR, POSITION_GAINS
from dynident.simulate import path_deviation, radial_deviation, time_lag

CENTRE, RADIUS = (0.0, 0.9), 0.2
PUBLISHED = {0.628: ((0.25, 0.5), (0.1, 0.3), None), 1.256: ((0.3, 0.7), (0.25, 0.6), 40e-3)}
"""Per speed [m/s]: motor error [rev] and lag of the velocity [s], of the thesis' model and experiment; radial deviation [m]."""


class Compared(NamedTuple):
    """One number of a test.

    Parameters
    ----------
    test, quantity, unit : str
        What was run and measured.
    found : float
        Of the virtual robot.
    model, experiment : float or None
        As the thesis prints them, where it does.
    """

    test: str
    quantity: str
    unit: str
    found: float
    model: float | None
    experiment: float | None


def compare(position_cycle: float = 5e-3) -> tuple[Compared, ...]:
    """Run the X move and both circles.

    Parameters
    ----------
    position_cycle : float
        Cycle of the position loop [s]: 5 ms of the thesis' model, 20 ms in its text on the hardware.

    Returns
    -------
    tuple of Compared
        Deviation from the line; largest and RMS error of the motors while they move, lag and radial deviation on the circles.
    """
    slow, fast = POSITION_GAINS
    move = x_move()
    run = machine(slow, position_cycle).simulate(move)
    away = 1e3 * float(path_deviation(run.truth.motion.q, move.q[::50]).max())
    found = [Compared("X move, k_v = 3.54 1/s", "deviation from the line", "mm", away, 22.0, 22.0)]
    for speed, (error, lag, radial) in PUBLISHED.items():
        test = f"circle at {speed:g} m/s, k_v = 19.2 1/s"
        run = machine(fast, position_cycle).simulate(circle(speed))
        wanted = actuator_motion(run.robot.mechanism, run.reference)
        turns = GEAR * (wanted.q - run.truth.rho) / (2.0 * np.pi)
        moving = np.any(np.abs(wanted.v) > 0.0, axis=1)
        late = np.mean([time_lag(run.truth.t, wanted.v[:, i], run.truth.rho_v[:, i]) for i in (0, 1)])
        out = 1e3 * float(np.abs(radial_deviation(run.truth.motion.q, CENTRE, RADIUS)).max())
        rms = float(np.sqrt(np.mean(turns[moving] ** 2)))
        found += [
            Compared(test, "motor error, largest", "rev", float(np.abs(turns).max()), *error),
            Compared(test, "motor error, RMS", "rev", rms, *error),
            Compared(test, "lag of the velocity", "s", float(late), *lag),
            Compared(test, "radial deviation", "mm", out, None, None if radial is None else 1e3 * radial),
        ]
    return tuple(found)
