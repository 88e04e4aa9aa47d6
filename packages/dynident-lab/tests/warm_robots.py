"""The six-axis arm of small_robots with springs that carry 95 % of its weight, whose joints warm up.

Friction holds it at rest. The thermal numbers are invented for the tests.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from small_robots import CUBIC, arm6, arm6_machine

from dynident.mechanism import Mechanism
from dynident.simulate import VirtualRobot
from dynident_lab.thermal import SecondOrder

WEIGHT = 0.5  # m/s^2
JOINTS = tuple(joint.name for joint in arm6().joints)
SPEEDS = np.array([joint.limits.velocity for joint in arm6().joints])  # rad/s
POWERS = np.einsum("jk,jk->j", CUBIC, (0.6 * SPEEDS)[:, None] ** np.arange(4)) * 0.6 * SPEEDS
"""Cold friction power of the joints at 60 % of their speed [W]."""


def thermal_models() -> dict[str, SecondOrder]:
    """Return a model per joint: friction at full duty falls by some percent within about half an hour."""
    size = {"K1": 0.6, "K2": 0.7, "C1": 110.0, "C2": 1400.0}  # of the friction power
    return {
        joint: SecondOrder(alpha=-0.014, beta=1.0, **{k: float(x * power) for k, x in size.items()})
        for joint, power in zip(JOINTS, POWERS, strict=True)
    }


def balanced_arm6() -> Mechanism:
    """Return the arm with what is left of its weight."""
    return arm6(WEIGHT)


def balanced_machine(**options: Any) -> VirtualRobot:
    """Return the arm on its drives, always cold."""
    return arm6_machine(gravity=WEIGHT, **options)


def warm_arm6(**options: Any) -> VirtualRobot:
    """Return the arm on its drives with thermal models."""
    return arm6_machine(gravity=WEIGHT, thermal=thermal_models(), **options)
