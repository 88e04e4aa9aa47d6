"""What the sources of known robots print about experiments."""

from __future__ import annotations

import numpy as np

import dynident as di
from dynident.arrays import Array
from dynident.cli.robots import Published, find_robot
from dynident.errors import DynidentError
from dynident.excitation.limits_file import limits_of
from dynident.trajectory.curves import Fourier


def published_limits(name: str, mechanism: di.Mechanism) -> Published:
    """Return what the source of a known robot says about experiments; limits of its description where it says nothing."""
    make = find_robot(name).published
    if make is not None:
        return make(mechanism)
    return Published(limits_of(mechanism), "those of the robot's description", Fourier(0.1, 5))


def published_range(name: str, mechanism: di.Mechanism) -> tuple[Array, Array] | None:
    """Return the printed range of a known robot's coordinates; None where its source prints none."""
    try:
        limits = published_limits(name, mechanism).limits
    except DynidentError:
        return None
    found = np.asarray(limits.lower), np.asarray(limits.upper)
    return found if all(np.isfinite(side).all() for side in found) else None
