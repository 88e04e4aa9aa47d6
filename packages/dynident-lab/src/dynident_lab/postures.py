"""One branch of the closed-form inverse kinematics along a path, with continuous angles within the limits."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.arrays import Array
from dynident.errors import DynidentError
from dynident.mechanics.inverse_kinematics_arms import Arm
from dynident.mechanics.inverse_kinematics_closed import arm_structure, inverse_kinematics, reach
from dynident.mechanics.inverse_kinematics_damped import middle_of
from dynident.mechanism.mechanism import Mechanism


def choose_posture(
    mechanism: Mechanism,
    rotation: ArrayLike | None,
    position: ArrayLike,
    posture: str = "",
    frame: str | None = None,
) -> Array:
    """Return one solution (N, n) per target: the branch `posture`, with angles within the limits of the `mechanism`.

    `rotation`, `position` and `frame` as in `inverse_kinematics`. `posture` has words of
    ``arm_structure(mechanism).postures``, such as "front up noflip"; missing words are taken from the first branch. Targets
    form a path: angles are continued over whole turns.
    """
    arm = arm_structure(mechanism, frame)
    branch = arm.postures.index(_branch(arm, posture))
    q = inverse_kinematics(mechanism, rotation, position, frame)[:, branch]
    lost = np.flatnonzero(~np.isfinite(q).all(axis=1))
    if lost.size:
        i, p = int(lost[0]), np.atleast_2d(np.asarray(position, dtype=np.float64))
        R = rotation if rotation is None or np.ndim(rotation) == 2 else np.asarray(rotation)[i]
        found = reach(mechanism, R, p[i], frame)
        distance, tilt = float(found.distance[0]), float(found.tilt[0])
        how = f"{distance:.4g} m out of reach" + (f" and tilted by {tilt:.4g} rad" if tilt > 0.0 else "")
        if distance == 0.0 and tilt == 0.0:
            how = f"not within reach in posture '{arm.postures[branch]}'"
        raise DynidentError(
            f"target {i} of {len(q)} (position {p[i].tolist()}) is {how}; {lost.size - 1} more targets fail: move them into "
            "reach"
        )
    q[:, arm.chain.revolute] = np.unwrap(q[:, arm.chain.revolute], axis=0)
    return _into_limits(mechanism, q, arm.chain.revolute)


def _into_limits(mechanism: Mechanism, q: Array, revolute: NDArray[np.bool_]) -> Array:
    """Shift the angles of a path by whole turns into the limits; the error names a joint that cannot."""
    lower, upper = mechanism.position_limits
    middle = middle_of(lower, upper)
    centre = 0.5 * (q.max(axis=0) + q.min(axis=0))
    outside = np.any((q < lower) | (q > upper), axis=0) & revolute
    q = q + np.where(outside, 2.0 * np.pi * np.round((middle - centre) / (2.0 * np.pi)), 0.0)
    slack = 1e-12
    bad = np.argwhere((q < lower - slack) | (q > upper + slack))
    if bad.size:
        i, j = (int(x) for x in bad[0])
        raise DynidentError(
            f"target {i} of {len(q)} needs joint '{mechanism.coordinate_names[j]}' at {q[i, j]:.4g}, outside its limits "
            f"{lower[j]:.4g} to {upper[j]:.4g}; choose another posture or move the target"
        )
    return q


def _branch(arm: Arm, posture: str) -> str:
    """Return the full name of the branch that the words name."""
    words = posture.replace(",", " ").lower().split()
    fitting = [name for name in arm.postures if set(words) <= set(name.split())]
    if not fitting:
        raise DynidentError(f"posture is {posture!r}; this {arm.kind} knows {', '.join(repr(name) for name in arm.postures)}")
    return fitting[0]
