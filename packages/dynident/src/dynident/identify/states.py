"""Random states of a robot: of one with loops on the constraint manifold, never beside it.

Base parameters of a parallel robot are those of its closed configurations; free samples of the opened tree would show more.
"""

from __future__ import annotations

import numpy as np

from dynident.errors import DynidentError, IdentificationError
from dynident.mechanics.closure import close_positions, close_rates
from dynident.mechanics.motion import Motion
from dynident.mechanism.mechanism import Mechanism

ANGLE, SHARE = 0.6, 0.4  # how far from home to look: angles [rad], and lengths as a share of the robot's size
LARGE = 64  # coordinates above which a tree moves more calmly, and its columns are compared with their neighbours' only
SLOWEST = 4.0  # decades of speed below the largest at which friction laws are looked at
LARGEST = 5.0  # how much faster than at home joints may have to move; beyond, a singularity is near


def random_motion(mechanism: Mechanism, samples: int, seed: int = 0) -> Motion:
    """Return unrelated random states that reveal every parameter: a whole turn, speeds and accelerations of order 1 to 10."""
    if mechanism.loops:
        moved = random_closed_motion(mechanism, 2 * samples, seed)
        if not mechanism.friction:
            return moved
        slow = 10.0 ** np.random.default_rng(seed + 1).uniform(-SLOWEST, 0.0, (2 * samples, 1))
        slow[::4], slow[1::4] = 1.0, 1.0
        return Motion(moved.t, moved.q, moved.v * slow, moved.a)
    generator = np.random.default_rng(seed)
    n = mechanism.dof
    calm = n**-0.5 if n > LARGE else 1.0  # else the far end of a long chain would outweigh all that is near its base
    q, v, a = (generator.uniform(-size, size, (samples, n)) for size in (np.pi, 3.0 * calm, 10.0 * calm))
    if mechanism.friction:  # the shape of a friction curve shows at any speed, down to very small ones
        v[::2] *= 10.0 ** generator.uniform(-SLOWEST, 0.0, v[::2].shape)
    return Motion(np.arange(float(samples)), q, v, a)


def random_closed_motion(mechanism: Mechanism, samples: int, seed: int = 0) -> Motion:
    """Return random states whose loops are closed, on the branch of home and away from singularities.

    Every second state is home itself (with other velocities), so that going through them in order is always possible.
    """
    generator = np.random.default_rng(seed)
    closure = mechanism.closure
    home = closure.home[closure.independent]
    reach = np.array([_reach(mechanism, int(i)) for i in closure.independent])
    zero = np.zeros((1, home.size))
    fastest = LARGEST * np.max(np.abs(close_rates(mechanism, closure.home[None], zero, zero).G))
    q = np.tile(home, (samples, 1))
    for s in range(0, samples, 2):
        step = generator.uniform(-reach, reach)
        for _ in range(8):
            try:
                tree = close_positions(mechanism, (home + step)[None])
                if np.max(np.abs(close_rates(mechanism, tree, zero, zero).G)) < fastest:
                    q[s] = home + step
                    break
            except DynidentError:
                pass  # out of reach: look closer to home
            step = 0.6 * step
    if np.all(q == home):
        raise IdentificationError(f"robot '{mechanism.name}' cannot move away from its home position; give another home")
    # Lengths move as far as they can while angles turn by ANGLE, so that neither swamps the other.
    scale = np.minimum(reach / ANGLE, 1.0)
    v, a = (generator.uniform(-size, size, q.shape) * scale for size in (3.0, 10.0))
    return Motion(np.arange(float(samples)), q, v, a)


def _reach(mechanism: Mechanism, coordinate: int) -> float:
    """Return how far to move a coordinate from home: within its limits, angles up to ANGLE, lengths a share of the size."""
    name = mechanism.tree.coordinates[coordinate]
    joint = next(j for j in mechanism.joints if name in j.coordinates)
    sliding = joint.kind == "prismatic" or name.removeprefix(joint.name) in (".x", ".y", ".z")
    size = float(np.mean(np.linalg.norm(mechanism.tree.arrays.translation, axis=1))) or 1.0
    span = joint.limits.upper - joint.limits.lower
    natural = SHARE * size if sliding else ANGLE
    return min(natural, 0.5 * span) if np.isfinite(span) and span > 0.0 else natural
