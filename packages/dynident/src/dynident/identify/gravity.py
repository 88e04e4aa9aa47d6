"""Whether gravity acts in another direction than the description says, as for a robot that hangs from a ceiling or a wall.

The torques that hold a robot are linear in gravity g. With the described bodies and, for each joint, rotor and friction,

    tau = M a + h(q, v) + J(q) g + ia a + fv v + fc sign(v) + off,

so efforts and a description tell g. Wrong masses make its size wrong, and hardly its direction.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynident.mechanics.dynamics import gravity, inverse_dynamics
from dynident.mechanics.motion import Motion
from dynident.mechanism.mechanism import Mechanism

Array = NDArray[np.float64]

TURNED = np.radians(10.0)  # from the described direction: wrong masses make less
NEAR = np.radians(15.0)  # from an axis of the root frame, which is then what is meant
SURE = 20.0  # deviations of the estimate, over its size
WEAK, STRONG = 0.4, 2.5  # times the described size: beyond, it is not gravity that was found
FRICTION = 2  # of the columns of a joint: fv and, next, fc


def other_gravities(robot: Mechanism, motion: Motion, measured: Array) -> tuple[Array, ...]:
    """Return directions of gravity that suit efforts (S, n) better than the described one, (3,) each; none in most cases.

    The first is the estimate, the second the axis of the root frame next to it. Efforts that are turned round give none:
    friction tells them from a robot that is.
    """
    down = np.asarray(robot.gravity)
    size = float(np.linalg.norm(down))
    if size == 0.0 or not np.any(robot.tree.inertias):
        return ()
    bodies = robot.altered(friction={}, forces=())
    phi = bodies.parameters.values.copy()
    phi[bodies.tree.inertias.size :] = 0.0
    bare = bodies.with_parameters(bodies.parameters.replace(phi))
    unit = np.stack([gravity(bare.with_gravity(axis), motion.q) for axis in np.eye(3)], axis=2)  # (S, n, 3)
    rest = measured - inverse_dynamics(bare, motion) + gravity(bare, motion.q)
    samples, n = rest.shape
    spread = np.std(measured, axis=0)
    weight = np.where(spread > 0.0, 1.0 / np.where(spread > 0.0, spread, 1.0), 0.0)
    A = np.zeros((samples, n, 3 + 4 * n))
    A[:, :, :3] = unit
    for j in range(n):
        v = motion.v[:, j]
        A[:, j, 3 + 4 * j : 7 + 4 * j] = np.column_stack([motion.a[:, j], v, np.sign(v), np.ones(samples)])
    A = (A * weight[:, None]).reshape(samples * n, -1)
    scale = np.linalg.norm(A, axis=0)
    scale = np.where(scale > 0.0, scale, 1.0)
    y = (rest * weight).ravel()
    inverse = np.linalg.pinv(A / scale, rcond=1e-9)
    x = inverse @ y
    deviation = np.sqrt(np.mean((y - A / scale @ x) ** 2) * np.sum(inverse[:3] ** 2, axis=1)) / scale[:3]
    found = x[:3] / scale[:3]
    strength = float(np.linalg.norm(found))
    if not WEAK * size < strength < STRONG * size or SURE * np.max(deviation) > strength:
        return ()
    friction = (x[3:] / scale[3:]).reshape(n, 4)[:, FRICTION - 1 : FRICTION + 1]
    power = np.sum(friction * np.stack([np.mean(motion.v**2, axis=0), np.mean(np.abs(motion.v), axis=0)], axis=1), axis=1)
    if np.sum(power * weight) <= 0.0 or _angle(found, down) < TURNED:
        return ()
    axis = np.eye(3)[np.argmax(np.abs(found))] * np.sign(found[np.argmax(np.abs(found))])
    straight = (size * axis,) if _angle(found, axis) < NEAR else ()
    return (size * found / strength, *straight)


def turned_gravity(robot: Mechanism, other: Array) -> str:
    """Return the sentence about a robot that is mounted in another way than described."""
    down = np.asarray(robot.gravity)
    angle = np.degrees(_angle(other, down))
    where = "from a ceiling" if angle > 150.0 else "on a wall" if 60.0 < angle < 120.0 else "on a slope"
    told, said = (",".join(f"{x:.3g}" for x in np.where(np.abs(g) < 1e-9, 0.0, g)) for g in (other, down))
    return (
        f"gravity acts along {told} in the root frame, {angle:.0f} degrees from the described {said}: is the robot mounted "
        f"{where}? Say so (--gravity={told}, gravity in the sidecar, with_gravity)"
    )


def _angle(one: Array, other: Array) -> float:
    return float(np.arccos(np.clip(one @ other / (np.linalg.norm(one) * np.linalg.norm(other)), -1.0, 1.0)))
