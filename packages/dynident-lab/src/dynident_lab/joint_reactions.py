"""Joint reactions in trees and loops, and the distance of loops from singularities.

    M_t a_t + h_t = tau_t + J_c^T lambda        lambda: one multiplier per closure equation

Cut joints of a planar robot give dependent equations, so their reactions are not unique; those of least norm are returned. The
reactions of the tree follow by Newton and Euler from the last bodies to the base:

    f_i = m (a - g) + alpha x h + w x (w x h) - f_cut + sum f_child
    n_i = I alpha + w x I w + h x (a - g) - n_cut + sum (n_child + (p_child - p_i) x f_child)      about the origin p_i
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.errors import DynidentError
from dynident.graph.algebra import back, cross, plus, scale, times, vector
from dynident.graph.compiled import Compiled
from dynident.graph.expression import Node
from dynident.mechanics import MotionLike, close_positions
from dynident.mechanics.equations import Equations
from dynident.mechanics.functions import (
    Outputs,
    as_motion,
    cached,
    declared,
    entering,
    function_of,
    node_values,
    quantity,
    run,
    values_of,
)
from dynident.mechanics.newton_euler import joint_wrenches
from dynident.mechanism import Mechanism, Parameters
from dynident.mechanism.tree import Twist, compose
from dynident.results import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class Conditioning(Result):
    """Distance of a robot with loops from its singularities; ratios of smallest to largest singular value, 0 is singular."""

    constraint: Array  # Index of the closure equations: near 0 the loops gain a degree of freedom
    serial: Array
    parallel: Array  # Index of the actuator Jacobian with scaled columns: near 0 the motors no longer hold the robot

    def plot(self) -> Figure:
        """Draw the three ratios sample by sample, on a logarithmic axis."""
        from dynident.figures import CURVES, one_axes  # noqa: PLC0415 - matplotlib is an extra

        figure, axes = one_axes(7.2, 3.6, "sample", "smallest over largest singular value", "Distance from singularities")
        for name, color in zip(("constraint", "serial", "parallel"), CURVES, strict=False):
            axes.semilogy(getattr(self, name), color=color, linewidth=1.2, label=name)
        axes.legend(frameon=False, fontsize=8.5)
        return figure

    def singular(self, limit: float = 1e-3) -> dict[str, list[int]]:
        """Return the samples below a limit, by kind of singularity."""
        names = ("constraint", "serial", "parallel")
        return {name: np.flatnonzero(getattr(self, name) < limit).tolist() for name in names}


def constraint_jacobians(mechanism: Mechanism, positions: Array) -> Array:
    """Return J_c = dPhi/dq_t of all closure equations."""
    loops, still = mechanism.closure.arrays, np.zeros((positions.shape[0], mechanism.dof))
    shape, arrays = (loops.kind.size, positions.shape[1]), {"q": positions, "v": still, "a": still}
    return quantity(mechanism, "constraint_jacobians", lambda x: x.loops(loops).jacobian, shape, arrays)


def closure_conditioning(mechanism: Mechanism, q: ArrayLike) -> Conditioning:
    """Measure the distance to constraint, serial and parallel singularities."""
    _with_loops(mechanism)
    closure = mechanism.closure
    positions = close_positions(mechanism, np.atleast_2d(np.asarray(q, dtype=np.float64)))
    J = constraint_jacobians(mechanism, positions)
    rank = closure.dependent.size
    spectrum = np.linalg.svd(J, compute_uv=False)
    block = np.linalg.svd(J[:, :, closure.dependent], compute_uv=False)
    # Motions that the closure allows, independent of the choice of coordinates: the null space of J_c.
    null = np.linalg.svd(J)[2][:, rank:]
    A = np.einsum("kt,snt->skn", mechanism.actuator_matrix[0], null)
    motors = np.linalg.svd(A, compute_uv=False) if A.shape[1] else np.zeros((positions.shape[0], 1))
    return Conditioning(
        spectrum[:, rank - 1] / spectrum[:, 0], block[:, rank - 1] / block[:, 0], motors[:, -1] / np.max(motors[:, 0])
    )


def reactions(
    mechanism: Mechanism, motion: MotionLike, torques: ArrayLike, parameters: Parameters | ArrayLike | None = None
) -> Mapping[str, Array]:
    """Return the wrench of every cut joint on its body a that is consistent with the motion."""
    motion = as_motion(motion)
    _with_loops(mechanism)
    values = node_values(mechanism, values_of(mechanism, parameters))
    arrays = entering(mechanism, motion)
    tau = np.asarray(torques, dtype=np.float64)
    if tau.shape != (len(motion), len(mechanism.actuators)):
        raise DynidentError(f"torques have shape {tau.shape}; give ({len(motion)}, {len(mechanism.actuators)})")
    rows, width = mechanism.closure.arrays.kind.size, arrays["q"].shape[1]

    def make(x: Equations) -> Outputs:
        units = x.loops(mechanism.closure.arrays).wrenches
        return {"load": x.tree_torques(), "unit": [entry for force, moment in units for entry in (*force, *moment)]}

    function = function_of(mechanism, "reactions", make, parameters=True)
    out = run(function, arrays, values, {"load": (width,), "unit": (rows, 6)})
    load = out["load"] - tau @ mechanism.actuator_matrix[0]
    J = constraint_jacobians(mechanism, arrays["q"])
    multipliers = np.einsum("stm,st->sm", np.linalg.pinv(J), load)
    gap = np.max(np.abs(np.einsum("smt,sm->st", J, multipliers) - load), initial=0.0)
    if gap > 1e-6 * max(1.0, float(np.max(np.abs(load), initial=0.0))):
        raise DynidentError(
            f"the motor torques do not match the motion of robot '{mechanism.name}' ({gap:.3g} N m remain); compute them "
            "with actuator_torques and the same parameters"
        )
    wrenches = out["unit"] * multipliers[:, :, None]
    names = np.array(mechanism.closure.names)
    return {loop.name: wrenches[:, names == loop.name].sum(axis=1) for loop in mechanism.loops}


def _with_loops(mechanism: Mechanism) -> None:
    if not mechanism.loops:
        raise DynidentError(f"robot '{mechanism.name}' has no loops; joint_reactions is for parallel robots")


def joint_reactions(
    mechanism: Mechanism, motion: MotionLike, torques: ArrayLike | None = None, parameters: Parameters | ArrayLike | None = None
) -> Mapping[str, Array]:
    """Return the wrench of every moving joint of the tree on its child that is consistent with the motion.

    It is the total wrench through the joint: bearing reaction, motor and friction. About the axis of a passive joint without
    friction it is zero.
    """
    motion = as_motion(motion)
    values = node_values(mechanism, values_of(mechanism, parameters))
    arrays = entering(mechanism, motion)
    if mechanism.loops:
        cut = reactions(mechanism, motion, np.empty((0, 0)) if torques is None else torques, parameters)
        arrays["cut"] = np.hstack([cut[loop.name] for loop in mechanism.loops])
    moving = [joint for joint in mechanism.joints if joint.coordinates]

    def make() -> Compiled:
        x = Equations(mechanism)
        wrenches = joint_wrenches(x.state, x.bodies(x.phi), _cut_wrenches(x))
        found: list[Node] = []
        for joint in moving:
            node, (_, arm) = x.geometry.frames[joint.child]
            R, (n, f) = x.state.world(node)[0], wrenches[node]
            found += [*times(R, f), *times(R, plus(n, cross(f, arm)))]
        cuts = {"cut": 6 * len(mechanism.loops)} if mechanism.loops else {}
        return Compiled(declared(mechanism, "joint_reactions", {"wrench": found}, more=cuts, parameters=True))

    function = cached(mechanism, "joint_reactions", make)
    found = run(function, arrays, values, {"wrench": (len(moving), 6)})["wrench"]
    return {joint.name: found[:, i] for i, joint in enumerate(moving)}


def _cut_wrenches(x: Equations) -> dict[int, Twist]:
    """Return the wrenches of the cut joints, given as symbols ``cut`` on bodies a, on the nodes of the tree."""
    symbols = x.graph.symbols("cut", 6 * len(x.mechanism.loops))
    found: dict[int, Twist] = {}
    for i, loop in enumerate(x.mechanism.loops):
        node_a, own = x.geometry.frames[loop.body_a]
        placement = vector(x.graph, loop.placement_a.translation)
        R, p = compose(x.state.world(node_a), own)
        point = plus(p, times(R, placement))  # the wrench acts on both bodies at the point of body a
        for body, sign in ((loop.body_a, 1.0), (loop.body_b, -1.0)):
            node = x.geometry.frames[body][0]
            if node < 0:
                continue
            R, p = x.state.world(node)
            force, moment = (scale(vector(x.graph, symbols[6 * i + k : 6 * i + k + 3]), sign) for k in (0, 3))
            moment = plus(moment, cross(plus(point, scale(p, -1.0)), force))
            zero = x.state.zero
            before = found.get(node, (zero, zero))
            found[node] = plus(before[0], back(R, moment)), plus(before[1], back(R, force))
    return found
