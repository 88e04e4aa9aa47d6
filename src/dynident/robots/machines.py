"""What the ready machines share: joints without the terms that drives carry, and gains from a bandwidth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.control import gains_for
from dynident.friction import TERMS
from dynident.mechanism import Mechanism
from dynident.simulate import actuator_inertia

Array = NDArray[np.float64]


def without_terms(mechanism: Mechanism, joints: Sequence[str], terms: Sequence[str] | None = None) -> Mechanism:
    """Return a robot whose driven joints have no rotor inertia and friction: its drives carry them, and only once."""
    gone = [s for s, term in TERMS.items() if term.rotor or term.friction or not term.passive] if terms is None else terms
    bare = [
        replace(joint, terms={k: v for k, v in joint.terms.items() if k.split(".")[0] not in gone})
        if joint.name in joints
        else joint
        for joint in mechanism.joints
    ]
    return replace(mechanism, joints=tuple(bare), terms=tuple(t for t in mechanism.terms if t not in gone))


def servo_gains(model: Mechanism, q: ArrayLike, bandwidth: float, damping: float) -> tuple[Array, Array]:
    """Return PD gains of every actuator: kp = w^2 J, kd = 2 d w J with the inertia J that it moves at one pose.

    J is that of `dynident.simulate.actuator_inertia`.
    """
    J = actuator_inertia(model, q)
    kp, kd = gains_for(bandwidth, damping)
    return np.asarray(kp * J), np.asarray(kd * J)
