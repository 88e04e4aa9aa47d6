"""What the sources of known robots print about experiments."""

from __future__ import annotations

import dynident as di
from dynident.cli.robots import Published, find_robot
from dynident.excitation.limits_file import limits_of
from dynident.trajectory.curves import Fourier


def published_limits(name: str, mechanism: di.Mechanism) -> Published:
    """Return what the source of a known robot says about experiments; limits of its description where it says nothing."""
    make = find_robot(name).published
    if make is not None:
        return make(mechanism)
    return Published(limits_of(mechanism), "those of the robot's description", Fourier(0.1, 5))
