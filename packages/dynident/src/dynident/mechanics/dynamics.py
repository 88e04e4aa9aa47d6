"""Kinematics, and the equation of motion M(q) a + C(q, v) v + g(q) + tau_joint(q, v, a) = tau + sum J^T w, solved both ways."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.arrays import Array
from dynident.checks import numbers
from dynident.errors import DynidentError
from dynident.graph.algebra import NodeRows, dot, minimum, reciprocal, solve_symmetric
from dynident.graph.compiled import Compiled
from dynident.graph.expression import Function, Node, substitute
from dynident.mechanics.equations import Equations
from dynident.mechanics.functions import (
    Motion,
    MotionLike,
    Outputs,
    as_motion,
    at_rest,
    cached,
    coordinates,
    declared,
    entering,
    entering_arrays,
    function_of,
    node_values,
    quantity,
    run,
    values_of,
)
from dynident.mechanics.newton_euler import mass_matrix as bodies_matrix
from dynident.mechanism.mechanism import Mechanism
from dynident.mechanism.parameters import Parameters


def forward_kinematics(mechanism: Mechanism, q: ArrayLike, frame: str) -> tuple[Array, Array]:
    """Return R (N, 3, 3) and p (N, 3) [m] of the link `frame` of a `mechanism` at `q` (N, n): x_base = R x_link + p."""
    motion = at_rest(mechanism, q)
    node, placement = mechanism.frame(frame)
    if node < 0:
        count = len(motion)
        return np.tile(placement.rotation, (count, 1, 1)), np.tile(placement.translation, (count, 1))
    R, p = _poses(mechanism, entering(mechanism, motion))
    return R[:, node] @ placement.rotation, p[:, node] + R[:, node] @ placement.translation


def link_poses(mechanism: Mechanism, positions: Array, few: bool = False) -> dict[str, tuple[Array, Array]]:
    """Return R (N, 3, 3) and p (N, 3) [m] of every link at closed positions of the tree (N, n_tree); at q without loops.

    `few`: for some hundred samples, by NumPy.
    """
    still = at_rest(mechanism, np.zeros((len(positions), mechanism.dof)) if mechanism.loops else positions)
    R, p = _poses(mechanism, entering(mechanism, still, positions), few)
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


def _poses(mechanism: Mechanism, arrays: dict[str, Array], few: bool = False) -> tuple[Array, Array]:
    """Return orientation (N, k, 3, 3) and origin (N, k, 3) of every tree node."""
    k = int(mechanism.tree.arrays.parent.size)

    def make(x: Equations) -> Outputs:
        poses = [x.state.world(i) for i in range(k)]
        return {"R": [entry for R, _ in poses for row in R for entry in row], "p": [entry for _, p in poses for entry in p]}

    out = run(function_of(mechanism, "poses", make, few=few), arrays, None, {"R": (k, 3, 3), "p": (k, 3)})
    return out["R"], out["p"]


def frame_motion(mechanism: Mechanism, motion: MotionLike, frame: str) -> tuple[Array, Array]:
    """Return (v, omega) and (a, alpha), each (N, 6), of the link `frame` of a `mechanism`, in its axes, along a `motion`.

    At its origin [m/s, rad/s; m/s^2, rad/s^2]; the classical acceleration excludes gravity.
    """
    mechanism.frame(frame)

    def make(x: Equations) -> Sequence[Sequence[Node]]:
        v, om, a, al = x.link_motion(frame)
        return [(*v, *om), (*a, *al)]

    found = quantity(mechanism, "frame_motion", make, (2, 6), entering(mechanism, as_motion(motion)), key=frame)
    return found[:, 0], found[:, 1]


def jacobian(mechanism: Mechanism, q: ArrayLike, frame: str, reference: str = "local") -> Array:
    """Return J (N, 6, n) of the origin of the link `frame` of a `mechanism` at `q` (N, n): (v, omega) = J v, linear rows first.

    `reference`: axes in which v and omega are expressed, "local" (the link's) or "world" (the base's).
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
    """Return the end effector link: the given one, or the only link without children."""
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


Wrenches = Mapping[str, ArrayLike]

LOAD_STEPS = 6  # fixed-point steps for friction that grows with the load; a share of 0.1 leaves 1e-6 of it
SINGULAR = 1e-13  # pivot or eigenvalue of M, relative to its diagonal, below which only rounding errors remain


def inverse_dynamics(
    mechanism: Mechanism,
    motion: MotionLike,
    parameters: Parameters | ArrayLike | None = None,
    wrenches: Wrenches | None = None,
) -> Array:
    """Return the torques for a motion: tau = M a + C v + g + rotor, friction, offset and spring - J^T w.

    Parameters
    ----------
    mechanism : Mechanism
        Robot with n coordinates.
    motion : Motion or (q, v, a)
        N samples.
    parameters : Parameters or array_like (p,), optional
        Standard parameters; the robot's own when omitted.
    wrenches : mapping of str to array_like (N, 6) or (6,), optional
        External wrench (force, moment) on each named link, at its origin and in its axes [N, N m].

    Returns
    -------
    ndarray, (N, n)
        Joint torques and forces [N m, N].

    Examples
    --------
    >>> import dynident as di
    >>> arm = di.Mechanism.from_dh([(0.3, 0, 0, 0)], convention="standard", gravity=(0, -9.81, 0)).with_payload(2.0)
    >>> di.inverse_dynamics(arm, di.Motion([0.0], [0.0], [0.0], [0.0])).round(4)
    array([[5.886]])
    """
    motion = as_motion(motion)
    values = node_values(mechanism, values_of(mechanism, parameters))
    tau = _torques(mechanism, entering(mechanism, motion), values)
    return tau - _wrench_torques(mechanism, motion, wrenches) if wrenches else tau


def _torques(mechanism: Mechanism, arrays: Mapping[str, Array], values: Array) -> Array:
    """Return the torques of a motion; `values` are parameters in node frames."""
    return quantity(mechanism, "inverse_dynamics", Equations.torques, (mechanism.dof,), arrays, values)


def joint_loads(mechanism: Mechanism, motion: Motion, parameters: Parameters | ArrayLike | None = None) -> Array:
    """Return the torques of the bodies on the coordinates of a tree, (N, n): the load of its gears."""
    values = node_values(mechanism, values_of(mechanism, parameters))
    arrays = entering(mechanism, motion)
    return quantity(mechanism, "joint_loads", lambda x: x.project(x.loads), (mechanism.dof,), arrays, values)


def _wrench_torques(mechanism: Mechanism, motion: Motion, wrenches: Wrenches) -> Array:
    """Return sum J^T w of the external wrenches on links."""
    if not isinstance(wrenches, Mapping):
        raise DynidentError(f"wrenches is a {type(wrenches).__name__}; give a mapping of link name to (force, moment)")
    tau = np.zeros((len(motion), mechanism.dof))
    for frame, wrench in wrenches.items():
        w = numbers(wrench, f"wrench on '{frame}'")
        if w.shape not in ((6,), (len(motion), 6)):
            raise DynidentError(f"wrench on '{frame}' has shape {w.shape}; give (6,) or ({len(motion)}, 6) as (force, moment)")
        if not np.all(np.isfinite(w)):
            raise DynidentError(f"wrench on '{frame}' is not finite; every force and moment must be a finite number")
        J = jacobian(mechanism, motion.q, frame)
        tau += np.einsum("sij,si->sj", J, np.broadcast_to(w, (len(motion), 6)))
    return tau


def mass_matrix(mechanism: Mechanism, q: ArrayLike, parameters: Parameters | ArrayLike | None = None) -> Array:
    """Return M(q) (N, n, n) of a `mechanism` at `q` (N, n), rotor inertias included [kg m^2, kg m, kg].

    It is positive definite for possible bodies. `parameters` (p,) are the robot's own when omitted.
    """
    values = node_values(mechanism, values_of(mechanism, parameters))
    x = coordinates(mechanism, q, "q")
    still = np.zeros(x.shape)
    return _mass_matrix(mechanism, entering_arrays(mechanism, x, still, still), values)


def _mass_matrix(mechanism: Mechanism, arrays: Mapping[str, Array], values: Array) -> Array:
    """Return M at some positions; `values` are parameters in node frames."""
    return quantity(mechanism, "mass_matrix", Equations.mass_matrix, (mechanism.dof, mechanism.dof), arrays, values)


def coriolis_matrix(
    mechanism: Mechanism, q: ArrayLike, v: ArrayLike, parameters: Parameters | ArrayLike | None = None
) -> Array:
    """Return C(q, v) (N, n, n) of the Christoffel symbols of a `mechanism` at `q`, `v` (N, n).

    C v are the velocity torques and Mdot - 2 C is skew-symmetric. `parameters` (p,) are the robot's own when omitted.
    """
    values = values_of(mechanism, parameters).copy()
    # Only inertias, including rotors: behind a coupling function or a loop their ratio depends on q.
    values[mechanism.tree.inertias.size :] *= mechanism.rotor_columns
    motion = at_rest(mechanism, q, coordinates(mechanism, v, "v"))
    shape, phi = (mechanism.dof, mechanism.dof), node_values(mechanism, values)
    return quantity(mechanism, "coriolis_matrix", Equations.coriolis_matrix, shape, entering(mechanism, motion), phi)


def gravity(mechanism: Mechanism, q: ArrayLike, parameters: Parameters | ArrayLike | None = None) -> Array:
    """Return g(q) (N, n) [N m, N], the torques that hold a `mechanism` at `q` (N, n) against gravity, without springs.

    `parameters` (p,) are the robot's own when omitted.
    """
    values = values_of(mechanism, parameters).copy()
    values[mechanism.tree.inertias.size :] = 0.0
    return _torques(mechanism, entering(mechanism, at_rest(mechanism, q)), node_values(mechanism, values))


def unit_gravity(mechanism: Mechanism, q: ArrayLike) -> Array:
    """Return the torques (N, n, 3) that hold the bodies at `q` (N, n) in unit gravity along the axes of the root frame."""
    arrays, values = entering(mechanism, at_rest(mechanism, q)), node_values(mechanism, mechanism.parameters.values)
    make = lambda x: [*zip(*map(x.gravity, np.eye(3)), strict=True)]  # noqa: E731 - read with the line below
    return quantity(mechanism, "unit_gravity", make, (mechanism.dof, 3), arrays, values, few=True)


def forward_dynamics(
    mechanism: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    parameters: Parameters | ArrayLike | None = None,
    wrenches: Wrenches | None = None,
) -> Array:
    """Return the accelerations due to torques, the inverse of `inverse_dynamics`: M a = tau + sum J^T w - bias.

    Indefinite mass matrices, as sometimes published, are allowed; a numerically singular one raises an error.

    Parameters
    ----------
    mechanism : Mechanism
        Robot with n coordinates.
    q, v, tau : array_like, (N, n) or (n,)
        Positions, velocities and joint torques.
    parameters : Parameters or array_like (p,), optional
        Standard parameters; the robot's own when omitted.
    wrenches : mapping of str to array_like (N, 6) or (6,), optional
        External wrench (force, moment) on each named link, at its origin and in its axes.

    Returns
    -------
    ndarray, (N, n)
        Accelerations [rad/s^2, m/s^2].
    """
    values = node_values(mechanism, values_of(mechanism, parameters))
    x, rates, torques = (coordinates(mechanism, y, label) for label, y in (("q", q), ("v", v), ("tau", tau)))
    if not x.shape == rates.shape == torques.shape:
        raise DynidentError(f"q, v and tau have {x.shape[0]}, {rates.shape[0]} and {torques.shape[0]} samples; they must agree")
    if wrenches:
        torques = torques + _wrench_torques(mechanism, at_rest(mechanism, x), wrenches)
    if mechanism.dof == 0:
        return np.zeros(x.shape)
    arrays = entering_arrays(mechanism, x, rates, np.zeros(x.shape))
    function = cached(mechanism, "forward_dynamics", lambda: Compiled(forward_dynamics_function(mechanism)))
    a, ratio = np.empty(x.shape), np.empty((x.shape[0], 1))
    function(x.shape[0], {**arrays, "tau": torques, "phi": values, "acceleration": a, "ratio": ratio})
    least = float(ratio[0, 0]) if len(x) == 1 else ratio.min(initial=np.inf)
    if not least > SINGULAR:  # without row exchanges only definite matrices are safe
        odd = np.flatnonzero(~(ratio[:, 0] > SINGULAR))
        some = {name: array if name == "law" else array[odd] for name, array in arrays.items()}
        M, force = _mass_matrix(mechanism, some, values), torques[odd] - _torques(mechanism, some, values)
        _check_regular(mechanism, M, odd)
        a[odd] = np.linalg.solve(M, force[:, :, None])[:, :, 0]
    return a


def forward_dynamics_function(mechanism: Mechanism) -> Function:
    """Return M^-1 (tau - bias) and the smallest pivot of M relative to its diagonal as a function of q, v and tau."""
    x = Equations(mechanism)
    x.a = [x.graph.zero] * mechanism.dof
    M, tau = x.mass_matrix(), x.graph.symbols("tau", mechanism.dof)
    solved, pivots = accelerations(x, M, tau)
    ratio = pivots[0] * reciprocal(M[0][0])
    for i, pivot in enumerate(pivots[1:], 1):
        ratio = minimum(ratio, pivot * reciprocal(M[i][i]))
    outputs = {"acceleration": [row[0] for row in solved], "ratio": [ratio]}
    return declared(mechanism, "forward_dynamics", outputs, more={"tau": mechanism.dof}, parameters=True)


def accelerations(x: Equations, M: NodeRows, tau: Sequence[Node]) -> tuple[NodeRows, list[Node]]:
    """Return M^-1 (tau - bias) as a column, and the pivots of M; equations `x` have zero accelerations.

    Friction that grows with the load of a joint depends on accelerations. Its share of the load is well below one, so that a
    fixed-point iteration with the load of the previous step converges.
    """
    loaded = [k for k, friction in enumerate(x.mechanism.friction.values()) if "tau" in friction.law.looks_at]
    if not loaded:
        return solve_symmetric(M, [[t - b] for t, b in zip(tau, x.torques(), strict=True)])
    place = [x.mechanism.tree.coordinates.index(name) for name in x.mechanism.friction]
    symbols = x.graph.symbols("own load", len(place))
    still, x.channels = x.loads, {**x.channels, "load": symbols}
    inertia = bodies_matrix(x.state, x.bodies(x.load_phi))
    bias, load = x.torques(), [still[d] for d in place]
    for _ in range(LOAD_STEPS):
        own = substitute(bias, dict(zip(symbols, load, strict=True)))
        solved, pivots = solve_symmetric(M, [[t - b] for t, b in zip(tau, own, strict=True)])
        a = [row[0] for row in solved]
        tree = a if x.G is None else [dot(row, a) for row in x.G]
        load = [still[d] + dot(inertia[d], tree) for d in place]
    return solved, pivots


def _check_regular(mechanism: Mechanism, M: Array, samples: NDArray[np.int64]) -> None:
    """Raise an error for mass matrices that are singular to working precision, independent of units."""
    size = np.sqrt(np.abs(np.diagonal(M, axis1=1, axis2=2)))
    size = np.where(size > 0.0, size, 1.0)
    scaled = M / (size[:, :, None] * size[:, None, :])
    scaled[~np.all(np.isfinite(scaled), axis=(1, 2))] = 0.0
    singular = np.min(np.abs(np.linalg.eigvalsh(scaled)), axis=1) < SINGULAR
    if np.any(singular):
        sample = samples[np.argmax(singular)]
        raise DynidentError(
            f"forward dynamics: the mass matrix of robot '{mechanism.name}' is singular at sample {sample}; "
            "give every moving link a positive inertia"
        )
