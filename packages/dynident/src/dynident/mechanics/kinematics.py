"""Where the bodies are and how they move: poses, velocities, accelerations and Jacobians, batched over samples."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.errors import DynidentError
from dynident.graph.expression import Node
from dynident.mechanics.equations import Equations
from dynident.mechanics.functions import Outputs, at_rest, entering, function_of, quantity, run
from dynident.mechanics.motion import MotionLike, as_motion
from dynident.mechanism.mechanism import Mechanism


def forward_kinematics(mechanism: Mechanism, q: ArrayLike, frame: str) -> tuple[Array, Array]:
    """Return R (N, 3, 3) and p (N, 3) [m] of the link `frame` of a `mechanism` at `q` (N, n): x_base = R x_link + p."""
    motion = at_rest(mechanism, q)
    node, placement = mechanism.frame(frame)
    if node < 0:
        count = len(motion)
        return np.tile(placement.rotation, (count, 1, 1)), np.tile(placement.translation, (count, 1))
    R, p = _poses(mechanism, entering(mechanism, motion))
    return R[:, node] @ placement.rotation, p[:, node] + R[:, node] @ placement.translation


def link_poses(mechanism: Mechanism, positions: Array) -> dict[str, tuple[Array, Array]]:
    """Return R (N, 3, 3) and p (N, 3) [m] of every link at closed positions of the tree (N, n_tree); at q without loops."""
    still = at_rest(mechanism, np.zeros((len(positions), mechanism.dof)) if mechanism.loops else positions)
    R, p = _poses(mechanism, entering(mechanism, still, positions))
    base = np.tile(np.eye(3), (len(positions), 1, 1)), np.zeros((len(positions), 3))
    found = {}
    for name, (node, placement) in mechanism.tree.frames.items():
        turned, moved = base if node < 0 else (R[:, node], p[:, node])
        found[name] = (turned @ placement.rotation, moved + turned @ placement.translation)
    return found


def positions_of_frame(mechanism: Mechanism, positions: Array, frame: str) -> Array:
    """Return the origin (N, 3) of a link at closed positions of the tree."""
    mechanism.frame(frame)
    return link_poses(mechanism, positions)[frame][1]


def _poses(mechanism: Mechanism, arrays: dict[str, Array]) -> tuple[Array, Array]:
    """Return orientation (N, k, 3, 3) and origin (N, k, 3) of every tree node."""
    k = int(mechanism.tree.arrays.parent.size)

    def make(x: Equations) -> Outputs:
        poses = [x.state.world(i) for i in range(k)]
        return {"R": [entry for R, _ in poses for row in R for entry in row], "p": [entry for _, p in poses for entry in p]}

    out = run(function_of(mechanism, "poses", make), arrays, None, {"R": (k, 3, 3), "p": (k, 3)})
    return out["R"], out["p"]


def frame_motion(mechanism: Mechanism, motion: MotionLike, frame: str) -> tuple[Array, Array]:
    """Return (v, omega) and (a, alpha), each (N, 6), of the link `frame` of a `mechanism`, in its axes, along a `motion`.

    They are those of its origin [m/s, rad/s; m/s^2, rad/s^2]; the classical acceleration is without gravity.
    """
    mechanism.frame(frame)

    def make(x: Equations) -> Sequence[Sequence[Node]]:
        v, om, a, al = x.link_motion(frame)
        return [(*v, *om), (*a, *al)]

    found = quantity(mechanism, "frame_motion", make, (2, 6), entering(mechanism, as_motion(motion)), key=frame)
    return found[:, 0], found[:, 1]


def jacobian(mechanism: Mechanism, q: ArrayLike, frame: str, reference: str = "local") -> Array:
    """Return J (N, 6, n) of the origin of the link `frame` of a `mechanism` at `q` (N, n): (v, omega) = J v, linear rows first.

    `reference` says in whose axes v and omega are expressed: "local" (the link's) or "world" (the base's).
    """
    if reference not in ("local", "world"):
        raise DynidentError(f"reference is '{reference}'; use 'local' (axes of the link) or 'world' (axes of the base)")
    motion = at_rest(mechanism, q)
    mechanism.frame(frame)
    shape = (6, mechanism.dof)
    J = quantity(mechanism, "jacobian", lambda x: x.jacobian(frame), shape, entering(mechanism, motion), key=frame)
    if reference == "local":
        return J
    R = forward_kinematics(mechanism, motion.q, frame)[0]
    return np.concatenate([R @ J[:, :3], R @ J[:, 3:]], axis=1)


def end_frame(mechanism: Mechanism, frame: str | None) -> str:
    """Return the link whose pose is meant: the given one, or the only link that carries no other."""
    if frame is not None:
        mechanism.frame(frame)
        return frame
    carriers = {joint.parent for joint in mechanism.joints}
    ends = [body.name for body in mechanism.bodies if body.name not in carriers]
    if len(ends) != 1:
        raise DynidentError(
            f"robot '{mechanism.name}' has {len(ends)} ends ({', '.join(ends[:6])}); name one as frame (--frame)"
        )
    return ends[0]
