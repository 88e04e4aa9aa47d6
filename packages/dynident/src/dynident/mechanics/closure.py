"""Robots with loops: positions on the constraint manifold, the projector G, the bias b and the actuator Jacobian A.

Phi(q_t) = 0,    v_t = G(q) nu,    a_t = G nu_dot + b(q, nu),    rho_dot = A nu,    A^T tau = G^T (tree torques).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array, pivoted
from dynident.errors import DynidentError
from dynident.mechanics.functions import ClosedMotion, Motion, MotionLike, as_motion, cached, tree_rates
from dynident.mechanism.mechanism import Mechanism

OPEN = 1e-8  # largest residual of a closed loop
SINGULAR = 1e-7  # pivot ratio of the closure below which the independent coordinates no longer determine the others


def close_positions(
    mechanism: Mechanism, q: ArrayLike, start: Array | None = None, given: Sequence[str] | None = None, first: int = 0
) -> Array:
    """Return the tree coordinates (N, n_tree) that close the loops of a `mechanism`, following the branch of `start`.

    Successive rows of `q` (N, n), its independent coordinates or the coordinates `given`, must be close. `start` (n_tree,) is a
    closed configuration (the robot's home), and `first` is the number of the first sample for messages.
    """
    from dynident.mechanics.branch import Branch  # noqa: PLC0415 - only robots with loops need it

    if not mechanism.loops:
        raise DynidentError(f"robot '{mechanism.name}' has no loops; its coordinates are independent already")
    closure = mechanism.closure
    names = mechanism.coordinate_names if given is None else tuple(given)
    x = np.ascontiguousarray(q, dtype=np.float64)
    if x.ndim != 2 or x.shape[1] != closure.dof:
        raise DynidentError(f"positions have shape {x.shape}; give one column for each of {', '.join(names)}")
    branch = cached(mechanism, ("branch", names), lambda: Branch(mechanism, names), frames=False)
    origin = closure.home if start is None else start
    out, bad = branch.close(x, origin)
    if bad >= 0:
        where = ", ".join(f"{name} = {value:.6g}" for name, value in zip(names, x[bad], strict=True))
        raise DynidentError(
            f"robot '{mechanism.name}' cannot follow the motion at sample {first + bad} ({where}): out of reach or through "
            "a singularity; use a smaller motion or another region"
        )
    rows = sorted({0, x.shape[0] // 2, x.shape[0] - 1}) if x.shape[0] else []
    gaps = branch.gaps(out[rows])
    if rows and np.max(gaps) > OPEN:
        worst = int(np.argmax(gaps))
        raise DynidentError(
            f"robot '{mechanism.name}': the loops do not close by {gaps[worst]:.3g} at sample {first + rows[worst]}; they "
            "contradict each other"
        )
    return out


def closure_starts(mechanism: Mechanism, q: ArrayLike, samples: Sequence[int]) -> list[Array]:
    """Return the closed configurations at some ascending samples of a motion (N, n), without closing all samples.

    Stretches between them can then be solved independently.
    """
    from dynident.mechanics.branch import stations  # noqa: PLC0415 - only robots with loops need it

    x = np.asarray(q, dtype=np.float64)[: max(samples, default=-1) + 1]
    chosen = stations(x)
    chosen[list(samples)] = True
    way = np.flatnonzero(chosen)
    try:
        closed = close_positions(mechanism, x[way])[np.searchsorted(way, samples)]
    except DynidentError:  # repeat sample by sample, to name the failing sample in the message
        closed = close_positions(mechanism, x)[list(samples)]
    return list(closed)


def close_motion(mechanism: Mechanism, motion: MotionLike) -> ClosedMotion:
    """Return tree motion and projector of a `mechanism` with loops for a `motion` (q, v, a) of its independent coordinates."""
    motion = as_motion(motion)
    return close_rates(mechanism, close_positions(mechanism, motion.q), motion.v, motion.a)


def close_rates(mechanism: Mechanism, positions: Array, v: ArrayLike, a: ArrayLike) -> ClosedMotion:
    """Return tree motion and projector at closed positions (N, n_tree), from independent rates v and a (N, n)."""
    if not (mechanism.loops or mechanism.couplings):
        raise DynidentError(f"robot '{mechanism.name}' has no loops; its coordinates are independent already")
    nu, nu_dot = (np.ascontiguousarray(y, dtype=np.float64) for y in (v, a))
    found = tree_rates(mechanism, {"q": np.ascontiguousarray(positions), "v": nu, "a": nu_dot})
    if len(positions) and not np.min(found.pivot) >= SINGULAR:
        bad = int(np.argmin(found.pivot))
        raise DynidentError(
            f"robot '{mechanism.name}' is singular at sample {bad}: {', '.join(mechanism.coordinate_names)} do not "
            "determine the other joints there; avoid it or choose other independent coordinates"
        )
    return found._replace(q=positions)


def projector(mechanism: Mechanism, positions: Array) -> Array:
    """Return G (N, n_tree, n) with v_t = G nu at closed positions."""
    zero = np.zeros((len(positions), mechanism.closure.dof))
    return close_rates(mechanism, positions, zero, zero).G


def coordinates_from_actuators(mechanism: Mechanism, rho: ArrayLike) -> Array:
    """Return the coordinates (N, n) of a `mechanism` from motor positions `rho` (N, k), by least squares if k > n.

        minimise ||N q_t + n0 - rho||^2   subject to   Phi(q_t) = 0,        by continuation from home

    With loops each actuator turns with one tree coordinate.
    """
    motors = np.atleast_2d(np.asarray(rho, dtype=np.float64))
    N, n0 = mechanism.actuator_matrix
    if motors.shape[1] != N.shape[0]:
        raise DynidentError(
            f"motor positions have {motors.shape[1]} columns but robot '{mechanism.name}' has {N.shape[0]} motors"
        )
    if not mechanism.loops:
        return np.asarray((motors - n0) @ np.linalg.pinv(N).T)
    driven = [next(iter(actuator.coupling)) for actuator in mechanism.actuators]
    if any(len(actuator.coupling) > 1 for actuator in mechanism.actuators):
        raise DynidentError(f"robot '{mechanism.name}' has motors that turn with several joints; give joint positions instead")
    joints = (motors - n0) / np.array(
        [actuator.ratio * actuator.coupling[c] for actuator, c in zip(mechanism.actuators, driven, strict=True)]
    )
    chosen = cached(mechanism, "best motors", lambda: _best_motors(mechanism, driven), frames=False)
    tree = close_positions(mechanism, joints[:, chosen], given=[driven[i] for i in chosen])
    x = tree[:, mechanism.closure.independent]
    if len(driven) == mechanism.closure.dof:
        return x
    for _ in range(4):  # Gauss-Newton from the solution of the chosen motors, with equal weights for all motors
        error = motors - n0 - tree @ N.T
        step = _left_inverse(N @ projector(mechanism, tree)) @ error[:, :, None]
        x = x + step[:, :, 0]
        if np.max(np.abs(step)) < 1e-10:
            break
        tree = close_positions(mechanism, x, tree[0])
    return x


def motion_from_actuators(mechanism: Mechanism, motion: MotionLike) -> Motion:
    """Return the motion of the coordinates of a `mechanism` with loops from the `motion` (q, v, a) of its k actuators.

    rho_dot = A nu, rho_ddot = A nu_dot + N b, solved by least squares when there are more motors.
    """
    motion, N = as_motion(motion), mechanism.actuator_matrix[0]
    q = coordinates_from_actuators(mechanism, motion.q)
    tree = close_positions(mechanism, q)
    inverse = _left_inverse(N @ projector(mechanism, tree))
    v = np.einsum("tnk,tk->tn", inverse, motion.v)
    bias = close_rates(mechanism, tree, v, np.zeros_like(q)).a @ N.T
    return Motion(motion.t, q, v, np.einsum("tnk,tk->tn", inverse, motion.a - bias))


def _left_inverse(A: Array) -> Array:
    """Return (A^T A)^-1 A^T of matrices (N, k, n), five times faster than the SVD; at a singularity by SVD."""
    transposed = np.swapaxes(A, 1, 2)
    try:
        return np.asarray(np.linalg.solve(transposed @ A, transposed), dtype=np.float64)
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.pinv(A), dtype=np.float64)


def _best_motors(mechanism: Mechanism, driven: list[str]) -> list[int]:
    """Return one motor per degree of freedom, chosen to determine the home pose best."""
    A = projector(mechanism, mechanism.closure.home[None])[0][[mechanism.tree.coordinates.index(c) for c in driven]]
    if np.linalg.matrix_rank(A) < mechanism.closure.dof:
        raise DynidentError(
            f"robot '{mechanism.name}': its {len(driven)} motors do not hold the home pose (parallel singularity)"
        )
    return sorted(pivoted(A.T)[1][: mechanism.closure.dof].tolist())


ANGLE, SHARE = 0.6, 0.4  # range about home: angles [rad], and lengths as a share of the robot's size
LARGEST = 5.0  # largest ratio of joint speeds to their values at home; beyond, a singularity is near


def random_closed_motion(mechanism: Mechanism, samples: int, seed: int = 0) -> Motion:
    """Return random states whose loops are closed, on the branch of home and away from singularities.

    Every second state is home itself (with other velocities), so that the states can be followed in order.
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
                pass  # out of reach: reduce the distance from home
            step = 0.6 * step
    if np.all(q == home):
        raise DynidentError(f"robot '{mechanism.name}' cannot move away from its home position; give another home")
    # Lengths change as far as possible while angles change by ANGLE, so that both contribute.
    scale = np.minimum(reach / ANGLE, 1.0)
    v, a = (generator.uniform(-size, size, q.shape) * scale for size in (3.0, 10.0))
    return Motion(np.arange(float(samples)), q, v, a)


def _reach(mechanism: Mechanism, coordinate: int) -> float:
    """Return the range of a coordinate about home: within its limits, angles up to ANGLE, lengths a share of the size."""
    name = mechanism.tree.coordinates[coordinate]
    joint = next(j for j in mechanism.joints if name in j.coordinates)
    sliding = joint.kind == "prismatic" or name.removeprefix(joint.name) in (".x", ".y", ".z")
    size = float(np.mean(np.linalg.norm(mechanism.tree.arrays.translation, axis=1))) or 1.0
    span = joint.limits.upper - joint.limits.lower
    natural = SHARE * size if sliding else ANGLE
    return min(natural, 0.5 * span) if np.isfinite(span) and span > 0.0 else natural
