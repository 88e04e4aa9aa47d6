"""Published data on experiments with known robots."""

from __future__ import annotations

import dynident as di
from dynident.cli.robots import Published, find_robot
from dynident.excitation.limits_file import limits_of
from dynident.trajectory.curves import Fourier


def published_limits(name: str, mechanism: di.Mechanism) -> Published:
    """Return the published experiment data of a known robot; without any, the limits of its description."""
    make = find_robot(name).published
    if make is not None:
        return make(mechanism)
    return Published(limits_of(mechanism), "those of the robot's description", Fourier(0.1, 5))
