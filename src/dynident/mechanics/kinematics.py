"""Where the bodies are and how they move: poses, velocities, accelerations and Jacobians, batched over samples."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.errors import DynidentError
from dynident.mechanics.batch import at_rest, entering, run
from dynident.mechanics.equations import Equations
from dynident.mechanics.functions import Outputs, function_of
from dynident.mechanics.motion import Motion
from dynident.mechanics.vectors import times
from dynident.mechanism import Mechanism

Array = NDArray[np.float64]


def body_motions(mechanism: Mechanism, motion: Motion) -> tuple[Array, Array, Array, Array]:
    """Return pose, velocity and acceleration of every tree node.

    Parameters
    ----------
    mechanism : Mechanism
        Robot whose tree has k nodes.
    motion : Motion
        N samples.

    Returns
    -------
    orientation : ndarray, (N, k, 3, 3)
        R of each node in the base frame.
    position : ndarray, (N, k, 3)
        Origin of each node in the base frame [m].
    velocity : ndarray, (N, k, 6)
        (v, omega) of the node's origin, in the node frame.
    acceleration : ndarray, (N, k, 6)
        (a, alpha), classical acceleration of the node's origin without gravity, in the node frame.
    """

    def make(x: Equations) -> Outputs:
        tree = x.free_motion
        poses = [tree.world(i) for i in range(tree.nodes)]
        rates = [(*tree.velocities[i][1], *tree.velocities[i][0]) for i in range(tree.nodes)]
        accelerations = [(*tree.motions[i][2], *tree.motions[i][1]) for i in range(tree.nodes)]
        return {
            "R": [entry for R, _ in poses for row in R for entry in row],
            "p": [entry for _, p in poses for entry in p],
            "velocity": [entry for twist in rates for entry in twist],
            "acceleration": [entry for twist in accelerations for entry in twist],
        }

    k = int(mechanism.tree.arrays.parent.size)
    arrays = entering(mechanism, motion)
    shapes = {"R": (k, 3, 3), "p": (k, 3), "velocity": (k, 6), "acceleration": (k, 6)}
    out = run(function_of(mechanism, "body_motions", make), arrays, None, shapes)
    return out["R"], out["p"], out["velocity"], out["acceleration"]


def forward_kinematics(mechanism: Mechanism, q: ArrayLike, frame: str) -> tuple[Array, Array]:
    """Return the pose of a link: x_base = R x_link + p.

    Parameters
    ----------
    mechanism : Mechanism
        Robot.
    q : array_like, (N, n) or (n,)
        Positions.
    frame : str
        Link name.

    Returns
    -------
    rotation : ndarray, (N, 3, 3)
        R.
    position : ndarray, (N, 3)
        p [m].
    """
    motion = at_rest(mechanism, q)
    link = _link(mechanism, frame)

    def make(x: Equations) -> Outputs:
        R, p = x.pose(link)
        return {"R": [entry for row in R for entry in row], "p": list(p)}

    function = function_of(mechanism, "forward_kinematics", make, link)
    out = run(function, entering(mechanism, motion), None, {"R": (3, 3), "p": (3,)})
    return out["R"], out["p"]


def _link(mechanism: Mechanism, frame: str) -> str:
    """Return the name of a link after checking that the robot has it."""
    mechanism.frame(frame)
    return frame


def frame_motion(mechanism: Mechanism, motion: Motion, frame: str) -> tuple[Array, Array]:
    """Return velocity and acceleration of a link frame, expressed in that frame.

    Parameters
    ----------
    mechanism : Mechanism
        Robot.
    motion : Motion
        N samples.
    frame : str
        Link name.

    Returns
    -------
    velocity : ndarray, (N, 6)
        (v, omega) of the frame's origin [m/s, rad/s].
    acceleration : ndarray, (N, 6)
        (a, alpha), classical acceleration of its origin without gravity [m/s^2, rad/s^2].
    """
    arrays = entering(mechanism, motion)
    link = _link(mechanism, frame)

    def make(x: Equations) -> Outputs:
        v, w, a, al = x.link_motion(link)
        return {"velocity": [*v, *w], "acceleration": [*a, *al]}

    function = function_of(mechanism, "frame_motion", make, link)
    out = run(function, arrays, None, {"velocity": (6,), "acceleration": (6,)})
    return out["velocity"], out["acceleration"]


def jacobian(mechanism: Mechanism, q: ArrayLike, frame: str, reference: str = "local") -> Array:
    """Return the Jacobian of a link: (v, omega) = J v, at the link's origin.

    Parameters
    ----------
    mechanism : Mechanism
        Robot with n coordinates.
    q : array_like, (N, n) or (n,)
        Positions.
    frame : str
        Link name.
    reference : {"local", "world"}
        Axes in which v and omega are expressed: the link's or the base's; the point is the link's origin in both.

    Returns
    -------
    ndarray, (N, 6, n)
        Jacobian, linear rows first.
    """
    if reference not in ("local", "world"):
        raise DynidentError(f"reference is '{reference}'; use 'local' (axes of the link) or 'world' (axes of the base)")
    motion = at_rest(mechanism, q)
    link = _link(mechanism, frame)

    def make(x: Equations) -> Outputs:
        J = x.jacobian(link)
        if reference == "world":
            R = x.pose(link)[0]
            columns = [[row[j] for row in J] for j in range(mechanism.dof)]
            turned = [[*times(R, (c[0], c[1], c[2])), *times(R, (c[3], c[4], c[5]))] for c in columns]
            J = [[column[i] for column in turned] for i in range(6)]
        return {"J": [entry for row in J for entry in row]}

    function = function_of(mechanism, f"jacobian_{reference}", make, link)
    return run(function, entering(mechanism, motion), None, {"J": (6, mechanism.dof)})["J"]
