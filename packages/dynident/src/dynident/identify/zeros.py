"""Whether the zero of a joint's positions is off: q + d would explain the efforts much better than q.

A wrong zero bends the robot elsewhere. Joints between others then contradict each other whatever the description says; the last
joint and those of planar arms pass it on to the first moments of their bodies, and only described masses can tell.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from dynident.mechanics.motion import Motion

Array = NDArray[np.float64]

TRIED = tuple(np.radians((-135.0, -90.0, -45.0, 45.0, 90.0, 135.0, 180.0)))  # first ...
STEPS = tuple(np.radians((22.5, 11.0, 5.5, 2.7, 1.4, 0.7)))  # ... and then about the best of them
LEAST = np.radians(10.0)  # less is a matter of calibration
RIGHT, NEAR = np.radians(90.0), np.radians(5.0)  # a multiple of a right angle so near is what is meant


def shifted(motion: Motion, joint: int, angle: float) -> Motion:
    """Return the motion with an angle added to the positions of a joint."""
    q = motion.q.copy()
    q[:, joint] += angle
    return Motion(motion.t, q, motion.v, motion.a)


def best_zero(misfit: Callable[[int, float], float], joints: Sequence[int], start: float) -> tuple[float, int, float]:
    """Return the least misfit(joint, angle), with joint and angle in (-pi, pi]; angle 0 where none is below `start`."""
    best = (start, 0, 0.0)
    for joint in joints:
        own = min((start, joint, 0.0), *((misfit(joint, angle), joint, angle) for angle in TRIED))
        best = min(best, own, _closer(misfit, own, STEPS[0]))
    for step in STEPS[1:] if best[2] else ():
        best = _closer(misfit, best, step)
    value, joint, angle = best
    right = RIGHT * round(angle / RIGHT)
    if abs(angle - right) < NEAR:
        value, angle = misfit(joint, right) if right else start, right
    angle = float(np.pi - (np.pi - angle) % (2.0 * np.pi))
    return value, joint, angle if abs(angle) >= LEAST else 0.0


def _closer(misfit: Callable[[int, float], float], best: tuple[float, int, float], step: float) -> tuple[float, int, float]:
    _, joint, angle = best
    return min(best, *((misfit(joint, angle + d), joint, angle + d) for d in (-step, step)))


def wrong_zero(name: str, angle: float) -> str:
    """Return the sentence about a zero that is off by an angle [rad]."""
    degrees = round(float(np.degrees(angle)))
    twist = " (a twist alpha of the wrong sign before it looks alike)" if abs(degrees) == 180 else ""
    return (
        f"the zero of {name} looks {abs(degrees)} degrees off{twist}; add {degrees} degrees to its positions, or turn the "
        "joint's origin in the description about its axis by as much"
    )
