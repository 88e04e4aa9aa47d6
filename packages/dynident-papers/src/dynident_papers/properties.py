"""Numerical checks of general properties of robot dynamics at many poses.

    M = M^T > 0,   x^T (M' - 2 C) x = 0,   C(q, x) y = C(q, y) x,   dE/dt = v^T tau,   J = dp/dq

Derivatives along a motion are central differences, so that the comparison is independent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.arrays import Array
from dynident.checks import numbers
from dynident.errors import DynidentError, require
from dynident.figures import BLUE, ORANGE, label, one_axes
from dynident.friction.terms import term_of
from dynident.mechanics.closure import close_positions
from dynident.mechanics.dynamics import (
    coriolis_matrix,
    forward_dynamics,
    forward_kinematics,
    gravity,
    inverse_dynamics,
    jacobian,
    mass_matrix,
)
from dynident.mechanics.functions import Motion, energy_regressor
from dynident.mechanism.mechanism import Mechanism
from dynident.results import Result
from dynident.validate.verdict import Check

if TYPE_CHECKING:
    from matplotlib.figure import Figure


MOST = 100_000  # poses, whose matrices are in memory together
ROUNDS = 30  # of the alternating maximum of the Coriolis matrix
STEP = 1e-5  # of differences of fourth order
EXACT = 1e-8  # relative: rounding
DIFFERENCES = 1e-5  # relative: error of central differences
SLIDE, TURN = 0.5, np.pi  # half ranges of coordinates without limits [m, rad]
NEAR = 0.1  # half range of robots with loops about home, where the loops can be closed
HALVINGS = 8  # of this range, until the loops close
MOST_FRAMES = 8


@dataclass(frozen=True, eq=False)
class RobotCheck(Result):
    """Properties of a robot's dynamics over poses.

    Parameters
    ----------
    robot : str
        Name.
    coordinates : tuple of str
        Names of the n coordinates.
    checks : tuple of Check
        Results of the checks.
    bounds : mapping of str to float
        Over the poses: ``M_m`` and ``M_M``, smallest eigenvalue and largest norm of M; ``C_M``, largest norm of
        C(q, v) over the norm of v; ``g_b``, largest norm of g. Coordinates in rad and m are mixed in these norms.
    q : ndarray, (N, n)
        The poses.
    smallest : ndarray, (N,)
        Smallest eigenvalue of M at each.
    notes : tuple of str
        Omitted checks and their reasons.
    """

    robot: str
    coordinates: tuple[str, ...]
    checks: tuple[Check, ...]
    bounds: Mapping[str, float]
    q: Array = field(repr=False)
    smallest: Array = field(repr=False)
    notes: tuple[str, ...] = ()
    derived: ClassVar[tuple[str, ...]] = ("ok",)

    @property
    def ok(self) -> bool:
        """True when every check passed."""
        return all(check.ok for check in self.checks)

    def summary(self) -> str:
        """Return the checks as text. One line per check, then the bounds."""
        head = f"{self.robot}: {'all properties hold' if self.ok else 'some properties do NOT hold'} at {len(self.q)} poses"
        lines = [f"  [{'ok' if c.ok else '!!'}] {c.sentence}" for c in self.checks]
        bounds = ", ".join(f"{name} = {value:.6g}" for name, value in self.bounds.items())
        return "\n".join([head, *lines, f"  bounds: {bounds}", *(f"  note: {note}" for note in self.notes)])

    def plot(self) -> Figure:
        """Draw the smallest eigenvalue of M over the poses. Sorted; below zero the model is not physical."""
        figure, axes = one_axes(7.0, 3.4, "share of the poses [%]", "smallest eigenvalue of M", label(self.robot))
        values = np.sort(self.smallest)
        axes.plot(100.0 * (np.arange(values.size) + 0.5) / values.size, values, color=BLUE, linewidth=1.2)
        axes.axhline(0.0, color=ORANGE, linewidth=0.9)
        return figure


def check(
    mechanism: Mechanism,
    q: ArrayLike | None = None,
    *,
    within: Sequence[ArrayLike] | None = None,
    samples: int = 200,
    seed: int = 0,
) -> RobotCheck:
    """Check the properties of a robot's dynamics over its workspace.

    Symmetry and positive definiteness of M, skew-symmetry of M' - 2 C, C(q, x) y = C(q, y) x, the balance of energy and power,
    inverse against forward dynamics, and Jacobians against differences of the kinematics.

    Parameters
    ----------
    mechanism : Mechanism
        Robot with n coordinates and its own parameters.
    q : array_like (N, n), optional
        Poses to check; random ones when omitted.
    within : (lower, upper), optional
        Range of random poses, (n,) each; by default the robot's limits, +-pi and +-0.5 m where it has none, and 0.1 rad and
        0.05 m about the home of a robot with loops, or less where its loops do not close so far away.
    samples : int
        Number of random poses.
    seed : int
        Seed of poses and velocities.

    Returns
    -------
    RobotCheck
        Checks with numbers and sentences, and the bounds of M, C, g and friction.

    Examples
    --------
    >>> from dynident_papers.properties import check
    >>> from dynident_papers.robots import rrr
    >>> print(check(rrr.machine().model).ok)
    True
    """
    require(mechanism, Mechanism, "mechanism")
    if mechanism.own_regressor:
        raise DynidentError(f"robot '{mechanism.name}' is a regressor without bodies; give a robot with masses and lengths")
    if not np.any(mechanism.parameters.values):
        raise DynidentError(f"robot '{mechanism.name}' has no masses: its parameters are zero; give them with with_parameters")
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise DynidentError(f"seed is {seed!r}; give a whole number, 0 or above")
    rng = np.random.default_rng(seed)
    x, notes = _poses(mechanism, within, samples, rng) if q is None else (np.atleast_2d(numbers(q, "q")), [])
    n = mechanism.dof
    if x.ndim != 2 or x.shape[1] != n or not len(x):
        raise DynidentError(f"q has shape {x.shape}; give (samples, {n}) for {', '.join(mechanism.coordinate_names)}")
    robot = replace(mechanism, forces=(), friction={})
    M = mass_matrix(robot, x)
    values, vectors = np.linalg.eigh(0.5 * (M + np.swapaxes(M, 1, 2)))
    checks = [_symmetric(M), _definite(mechanism, x, values[:, 0], vectors)]
    turning = [j.name for j in robot.joints if j.kind in ("spherical", "free")]
    g, C_M = gravity(robot, x), float("nan")
    if turning:
        notes.append(f"joint '{turning[0]}' has quasi-velocities: differences along coordinates are left out")
    else:
        v, w = (rng.normal(size=x.shape) for _ in range(2))
        C = coriolis_matrix(robot, x, v)
        C_M = _largest_coriolis(robot, x)
        checks += [_skew(robot, x, v, C), _exchange(robot, x, v, w, C), _power(robot, x, v, w), *_jacobians(robot, x)]
    checks.append(_round_trip(robot, x, values[:, 0], rng))
    bounds = {
        "M_m": float(values[:, 0].min()),
        "M_M": float(np.abs(values).max()),
        "C_M": C_M,
        "g_b": float(np.linalg.norm(g, axis=1).max()),
        **friction_bound(mechanism),
    }
    return RobotCheck(mechanism.name, mechanism.coordinate_names, tuple(checks), bounds, x, values[:, 0], tuple(notes))


def friction_bound(mechanism: Mechanism) -> dict[str, float]:
    """Return b_v and b_f of ||F(v)|| <= b_v ||v|| + b_f for all v of the joints [Rodriguez2002, eq. 25].

    b_v is the largest slope at high speed, b_f the norm of the largest friction beyond it at speeds from 1e-5 to 1e5. Empty
    without friction, and where it grows faster than the speed.
    """
    speeds = np.geomspace(1e-5, 1e5, 20001)
    v, rest, known = np.concatenate([-speeds[::-1], speeds]), np.zeros(40002), mechanism.parameters
    torque: dict[str, Array] = {}
    for name, owner, value in zip(known.names, known.owners, known.values, strict=True):
        term = term_of(name)
        if term is not None and term.friction and value:
            torque[owner] = torque.get(owner, rest) + value * term.column(rest, v, rest)
    for joint, law in mechanism.friction.items():
        torque[joint] = torque.get(joint, rest) + law(v)
    if not torque:
        return {}
    F = np.array(list(torque.values()))
    slopes = np.maximum((F[:, -1] - F[:, -2]) / (v[-1] - v[-2]), (F[:, 1] - F[:, 0]) / (v[1] - v[0]))
    if np.any(slopes * speeds[-1] > 1.1 * np.abs(F[:, -1]) + 1.0):
        return {}
    beyond = np.max(np.abs(F) - np.maximum(slopes, 0.0)[:, None] * np.abs(v), axis=1)
    return {"b_v": float(max(slopes.max(), 0.0)), "b_f": float(np.linalg.norm(np.maximum(beyond, 0.0)))}


def _largest_coriolis(robot: Mechanism, x: Array) -> float:
    """Return the largest ||C(q, v)|| / ||v|| over poses x (N, n) and all velocities.

    C is linear in v, so a^T C(v) b is a trilinear form of unit vectors; it is maximised over each of them in turn, from
    every axis of v. Each round is a singular value decomposition, which never lowers the value.
    """
    n = x.shape[1]
    parts = np.stack([coriolis_matrix(robot, x, np.broadcast_to(axis, x.shape)) for axis in np.eye(n)], axis=-1)  # (N, n, n, n)
    largest = 0.0
    for start in np.eye(n):
        v, before = np.broadcast_to(start, x.shape), 0.0
        for _ in range(ROUNDS):
            left, values, right = np.linalg.svd(np.einsum("tijk,tk->tij", parts, v))
            v = np.einsum("ti,tijk,tj->tk", left[:, :, 0], parts, right[:, 0, :])
            size = np.linalg.norm(v, axis=1, keepdims=True)
            v = np.where(size > 0.0, v / np.where(size > 0.0, size, 1.0), start)
            now = float(values[:, 0].max())
            if now <= before * (1.0 + 1e-9):
                break
            before = now
        largest = max(largest, now)
    return largest


def _poses(
    mechanism: Mechanism, within: Sequence[ArrayLike] | None, samples: int, rng: np.random.Generator
) -> tuple[Array, list[str]]:
    """Return random poses, and notes; for robots with loops they lie on a smooth path along which the loops are followed."""
    if isinstance(samples, bool) or not 1 <= samples <= MOST:
        raise DynidentError(f"samples is {samples!r}; give 1 to {MOST} poses")
    n = mechanism.dof
    if within is not None:
        lower, upper = (numbers(side, "within") for side in within)
    elif mechanism.loops:
        home = np.asarray(mechanism.closure.home[mechanism.closure.independent])
        size = np.where(_slides(mechanism), NEAR * SLIDE, NEAR)
        lower, upper = home - size, home + size
    else:
        lower, upper = mechanism.position_limits
        half = np.where(_slides(mechanism), SLIDE, TURN)
        lower, upper = np.where(np.isfinite(lower), lower, -half), np.where(np.isfinite(upper), upper, half)
    if lower.shape != (n,) or upper.shape != (n,) or not np.all(lower <= upper):
        raise DynidentError(f"within has shapes {lower.shape} and {upper.shape}; give lower and upper for {n} coordinates")
    if not mechanism.loops:
        return rng.uniform(lower, upper, (samples, n)), []
    phase = np.outer(np.linspace(0.0, 2.0 * np.pi, samples), rng.integers(1, 4, n)) + rng.uniform(0.0, 2.0 * np.pi, n)
    middle, path = 0.5 * (lower + upper), 0.5 * (upper - lower) * np.sin(phase)
    shares = (1.0,) if within is not None else 0.5 ** np.arange(HALVINGS)
    for share in shares:
        try:
            close_positions(mechanism, middle + share * path)
        except DynidentError:
            continue
        told = f"poses within {share:g} of the usual range about home because of the loops; within= sets another range"
        return np.asarray(middle + share * path), [told] if share < 1.0 else []
    return np.asarray(middle + shares[-1] * path), []  # the error of the loop closure states the pose


def _slides(mechanism: Mechanism) -> NDArray[np.bool_]:
    """Return a mask of the coordinates that are lengths."""
    kinds = {name: joint.kind for joint in mechanism.joints for name in joint.coordinates}
    return np.array([kinds[name] == "prismatic" or name.endswith((".x", ".y", ".z")) for name in mechanism.coordinate_names])


def _worst(name: str, error: Array, limit: float, what: str) -> Check:
    """Return a check of relative errors, one per pose."""
    i = int(np.argmax(np.where(np.isfinite(error), error, np.inf)))
    value = float(error[i])
    return Check(name, bool(value <= limit), value, limit, f"{what}: largest relative error {value:.2g} (pose {i})")


def _relative(error: Array, size: Array) -> Array:
    """Return the largest error of each pose over the largest size of all."""
    scale = float(np.abs(size).max())
    return np.asarray(np.abs(error).reshape(len(error), -1).max(axis=1) / (scale if scale > 0.0 else 1.0))


def _symmetric(M: Array) -> Check:
    return _worst("symmetry", _relative(M - np.swapaxes(M, 1, 2), M), EXACT, "M is symmetric")


def _definite(mechanism: Mechanism, q: Array, smallest: Array, vectors: Array) -> Check:
    i = int(np.argmin(smallest))
    share = float(np.mean(smallest <= 0.0))
    joint = mechanism.coordinate_names[int(np.argmax(np.abs(vectors[i, :, 0])))]
    where = ", ".join(f"{x:.4g}" for x in q[i])
    told = f"smallest eigenvalue {smallest[i]:.4g}, mostly of '{joint}', at q = ({where})"
    sentence = f"M is positive definite: {told}"
    if share:
        sentence = (
            f"M is NOT positive definite at {100.0 * share:.3g} % of the poses: {told}; its bodies are physically impossible"
        )
    return Check("definiteness", share == 0.0, float(smallest[i]), 0.0, sentence)


def _slope(value: Callable[[float], Array]) -> Array:
    """Return the derivative at 0 by differences of fourth order, since functions curve strongly near singular poses."""
    near, far = (value(h) - value(-h) for h in (STEP, 2.0 * STEP))
    return np.asarray((8.0 * near - far) / (12.0 * STEP))


def _skew(robot: Mechanism, q: Array, v: Array, C: Array) -> Check:
    slope = _slope(lambda h: mass_matrix(robot, q + h * v))
    both = slope - C - np.swapaxes(C, 1, 2)  # M' - 2 C is skew where its symmetric part is zero
    return _worst("skew-symmetry", _relative(both, slope), DIFFERENCES, "M' - 2 C is skew-symmetric")


def _exchange(robot: Mechanism, q: Array, v: Array, w: Array, C: Array) -> Check:
    one = np.einsum("nij,nj->ni", C, w)
    other = np.einsum("nij,nj->ni", coriolis_matrix(robot, q, w), v)
    return _worst("exchange", _relative(one - other, one), EXACT, "C(q, x) y = C(q, y) x")


def _power(robot: Mechanism, q: Array, v: Array, a: Array) -> Check:
    """Compare the rate of the energy along q + v t + a t^2 / 2 with the power of the torques, friction left out."""
    motion = Motion(np.arange(float(len(q))), q, v, a)
    kinetic, potential = energy_regressor(robot, motion)
    stored = np.any(kinetic, axis=0) | np.any(potential, axis=0)
    phi = np.where(stored, robot.parameters.values, 0.0)

    def energy(h: float) -> Array:
        at = Motion(motion.t, q + h * v + 0.5 * h * h * a, v + h * a, a)
        T, U = energy_regressor(robot, at)
        return np.asarray((T + U) @ phi)

    power = np.einsum("ni,ni->n", v, inverse_dynamics(robot, motion, phi))
    return _worst("power", _relative(_slope(energy) - power, power), DIFFERENCES, "energy changes by the power of the torques")


def _pose(robot: Mechanism, q: Array, end: str) -> Array:
    """Return rotation and position of a body as (N, 3, 4)."""
    R, place = forward_kinematics(robot, q, end)
    return np.concatenate([R, place[:, :, None]], axis=2)


def _jacobians(robot: Mechanism, q: Array) -> list[Check]:
    """Compare the Jacobians of the ends of the tree with differences of their places."""
    carrying = {joint.parent for joint in robot.joints}
    ends = [joint.child for joint in robot.joints if joint.child not in carrying][:MOST_FRAMES]
    errors = np.zeros(len(q))
    for end in ends:
        J = jacobian(robot, q, end, "world")
        R = forward_kinematics(robot, q, end)[0]
        found = np.empty_like(J)
        for i, way in enumerate(np.eye(robot.dof)):
            pose = _slope(lambda h, way=way, end=end: _pose(robot, q + h * way, end))  # type: ignore[misc]
            turn = np.einsum("nij,nkj->nik", pose[:, :, :3], R)
            found[:, :3, i] = pose[:, :, 3]
            found[:, 3:, i] = np.stack([turn[:, 2, 1], turn[:, 0, 2], turn[:, 1, 0]], axis=1)
        errors = np.maximum(errors, _relative(J - found, J))
    return [_worst("Jacobians", errors, DIFFERENCES, f"Jacobians of {', '.join(ends)}")] if ends else []


def _round_trip(robot: Mechanism, q: Array, smallest: Array, rng: np.random.Generator) -> Check:
    """Compare accelerations with the forward dynamics of their inverse dynamics, where M is positive definite."""
    solid = smallest > 0.0
    if not solid.any():
        return Check(
            "forward dynamics", False, float("nan"), EXACT, "forward dynamics is undefined because M is not positive definite"
        )
    x = q if solid.all() or robot.loops else q[solid]
    v, a = rng.normal(size=x.shape), rng.normal(size=x.shape)
    tau = inverse_dynamics(robot, Motion(np.arange(float(len(x))), x, v, a))
    error = forward_dynamics(robot, x, v, tau) - a
    limit = EXACT * max(1.0, float(np.linalg.cond(mass_matrix(robot, x)).max()) * 1e-4)
    return _worst("forward dynamics", _relative(error, a), limit, "forward dynamics inverts inverse dynamics")
