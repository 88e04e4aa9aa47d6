"""Where a run starts: positions and velocities in the robot's coordinates, from joints, motors or the pose of a link."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.checks import numbers
from dynident.errors import DynidentError, SimulationError, require
from dynident.mechanics.actuation import actuator_jacobian
from dynident.mechanics.closure import close_positions, close_rates, coordinates_from_actuators
from dynident.mechanics.functions import at_rest, tree_motion
from dynident.mechanics.inverse_kinematics_closed import inverse_kinematics
from dynident.mechanics.inverse_kinematics_damped import inverse_kinematics_numeric, position_limits
from dynident.mechanics.kinematics import end_frame, jacobian
from dynident.mechanism.mechanism import Mechanism

Start = Mapping[str, Any]

CLOSED = 1e-6  # largest contradiction [rad or m, and per second] between coordinates given twice
KINDS = ("q", "actuators", "pose")


def start_state(mechanism: Mechanism, start: Start | None, first: tuple[Array, Array]) -> tuple[Array, Array]:
    """Return positions and velocities at the start, after checking that the robot can be there."""
    require(mechanism, Mechanism, "mechanism")
    if start is None:
        x, nu = np.array(first[0]), np.array(first[1])
        _reachable(mechanism, x, "the reference's first position")
        return x, nu
    if not isinstance(start, Mapping):
        raise SimulationError(f"start is a {type(start).__name__}; give a mapping such as {{'q': [...]}}, or None")
    named = [kind for kind in KINDS if kind in start]
    unknown = sorted(set(start) - {*KINDS, "velocity", "frame"})
    if len(named) != 1 or unknown:
        raise SimulationError(
            f"start has the keys {', '.join(map(str, start)) or '(none)'}; give one of {', '.join(KINDS)} (and velocity)"
        )
    if "frame" in start and named[0] != "pose":
        raise SimulationError(f"start names the frame {start['frame']!r} without a pose; leave it out")
    ways = {"q": _from_joints, "actuators": _from_actuators, "pose": _from_pose}
    x, nu = ways[named[0]](mechanism, start, first)
    _within_limits(mechanism, x)
    return x, nu


def _vector(values: ArrayLike, shapes: tuple[int, ...], what: str, meaning: str) -> Array:
    """Return a finite vector of one of the allowed lengths."""
    array = np.atleast_1d(numbers(values, f"start: {what}"))
    if array.ndim != 1 or array.size not in shapes:
        wanted = " or ".join(str(n) for n in sorted(set(shapes)))
        raise SimulationError(f"start: {what} has shape {array.shape}; give {wanted} numbers, {meaning}")
    if not np.isfinite(array).all():
        raise SimulationError(f"start: {what} is {array.tolist()}; every number must be finite")
    return array


def _contradiction(given: Array, allowed: Array) -> int | None:
    """Return which number is furthest from what the others allow; None where all agree."""
    gap = np.abs(given - allowed)
    return int(np.argmax(gap)) if gap.max() > CLOSED * (1.0 + np.abs(allowed).max()) else None


def _from_joints(mechanism: Mechanism, start: Start, first: tuple[Array, Array]) -> tuple[Array, Array]:
    names, tree = mechanism.coordinate_names, mechanism.tree.coordinates
    n, m = len(names), len(tree)
    meaning = f"one for each of {', '.join(names)}" + (f", or for each of {', '.join(tree)}" if m > n else "")
    given = start["q"]
    own = [tree.index(name) for name in names]
    if isinstance(given, Mapping):
        strange = [str(name) for name in given if name not in names]
        if strange:
            raise SimulationError(f"start: q names {', '.join(strange)}; coordinates are {', '.join(names)}")
        given = [given.get(name, value) for name, value in zip(names, first[0], strict=True)]
    q = _vector(given, (n, m), "q", meaning)
    x = q if q.size == n else q[own]
    full = _reachable(mechanism, x, "start: q", q if q.size > n else None)
    if q.size > n:
        far = int(np.argmax(np.abs(q - full)))
        if abs(q[far] - full[far]) > CLOSED:
            raise SimulationError(
                f"start: joint '{tree[far]}' is at {q[far]:.6g}, but the loops close with it at {full[far]:.6g}; give "
                f"{', '.join(names)} alone"
            )
    v = _vector(start.get("velocity", np.zeros(n)), (n, m), "velocity", meaning)
    nu = v if v.size == n else v[own]
    if v.size > n:
        allowed = tree_motion(mechanism, at_rest(mechanism, x, nu)).v[0]
        j = _contradiction(v, allowed)
        if j is not None:
            raise SimulationError(
                f"start: velocity of '{tree[j]}' is {v[j]:.6g}, but the loops allow only {allowed[j]:.6g} with the others; "
                f"give the velocities of {', '.join(names)} alone"
            )
    return np.array(x), np.array(nu)


def _reachable(mechanism: Mechanism, x: Array, what: str, near: Array | None = None) -> Array:
    """Return all tree coordinates at x, or say that the loops cannot close there."""
    if not mechanism.loops:
        return np.array(tree_motion(mechanism, at_rest(mechanism, x)).q[0])
    where = ", ".join(f"{name} = {value:.6g}" for name, value in zip(mechanism.coordinate_names, x, strict=True))
    try:
        full = close_positions(mechanism, x[None], near)
        close_rates(mechanism, full, np.zeros((1, x.size)), np.zeros((1, x.size)))
    except DynidentError as error:
        if near is not None:  # far from closed: say by how much the joints are off the home branch
            return _reachable(mechanism, x, what)
        raise SimulationError(
            f"{what} ({where}): the loops of robot '{mechanism.name}' cannot close there, or only through a singularity; "
            "choose a position nearer to home"
        ) from error
    return np.array(full[0])


def _from_actuators(mechanism: Mechanism, start: Start, first: tuple[Array, Array]) -> tuple[Array, Array]:
    del first
    motors = tuple(actuator.name for actuator in mechanism.actuators)
    k, meaning = len(motors), f"one for each of {', '.join(motors)}"
    rho = _vector(start["actuators"], (k,), "actuators", meaning)
    N, n0 = mechanism.actuator_matrix
    try:
        x = coordinates_from_actuators(mechanism, rho[None])[0]
        full = _reachable(mechanism, x, "start: actuators")
        A = actuator_jacobian(mechanism, x)[0]
    except DynidentError as error:
        where = ", ".join(f"{name} = {value:.6g}" for name, value in zip(motors, rho, strict=True))
        raise SimulationError(
            f"start: robot '{mechanism.name}' cannot be assembled with its motors at {where} (the loops do not close); choose "
            "positions nearer to home"
        ) from error
    if np.linalg.matrix_rank(A) < mechanism.dof:
        raise SimulationError(
            f"start: the {k} motors of robot '{mechanism.name}' do not determine its {mechanism.dof} coordinates; give q"
        )
    back = (N @ full if mechanism.loops else N @ x) + n0
    j = _contradiction(back, rho)
    if j is not None:
        raise SimulationError(
            f"start: motor '{motors[j]}' is at {rho[j]:.6g}, but with the other motors it can only be at {back[j]:.6g}; there "
            f"are {k} motors for {mechanism.dof} freedoms, so give q instead"
        )
    speeds = _vector(start.get("velocity", np.zeros(k)), (k,), "velocity", meaning)
    nu = np.linalg.lstsq(A, speeds, rcond=None)[0]
    j = _contradiction(A @ nu, speeds)
    if j is not None:
        raise SimulationError(
            f"start: velocity of motor '{motors[j]}' is {speeds[j]:.6g}, but the loops allow only {(A @ nu)[j]:.6g} with the "
            "others; give the velocity of the robot's coordinates with q instead"
        )
    return np.array(x), nu


def _rotation(value: ArrayLike) -> Array:
    R = numbers(value, "start: rotation")
    if R.shape != (3, 3) or not (np.abs(R.T @ R - np.eye(3)).max() < CLOSED and np.linalg.det(R) > 0.0):
        raise SimulationError("start: the rotation of the pose is no rotation matrix (3, 3); its columns must be unit axes")
    return R


def _pose(value: Any) -> tuple[Array | None, Array]:
    """Return rotation (or None) and position of a pose in any of its forms."""
    if isinstance(value, tuple | list) and len(value) == 2:
        rotation = None if value[0] is None else _rotation(value[0])
        return rotation, _vector(value[1], (3,), "position", "x, y and z in metres")
    array = numbers(value, "start: pose")
    if array.shape == (4, 4):
        return _rotation(array[:3, :3]), _vector(array[:3, 3], (3,), "position", "x, y and z in metres")
    if array.shape != (3,):
        raise SimulationError(
            f"start: pose has shape {array.shape}; give a position (3,), a pair (rotation, position), or a matrix (4, 4)"
        )
    return None, _vector(array, (3,), "pose", "x, y and z in metres")


def _from_pose(mechanism: Mechanism, start: Start, first: tuple[Array, Array]) -> tuple[Array, Array]:
    rotation, position = _pose(start["pose"])
    frame = end_frame(mechanism, start.get("frame"))
    x = _solve_pose(mechanism, rotation, position, frame, first[0])
    _reachable(mechanism, x, "start: pose")
    speed = _vector(start.get("velocity", np.zeros(6)), (3, 6), "velocity", "linear (and angular) in the axes of the base")
    J = jacobian(mechanism, x, frame, "world")[0, : speed.size]
    nu = np.linalg.lstsq(J, speed, rcond=None)[0]
    j = _contradiction(J @ nu, speed)
    if j is not None:
        raise SimulationError(
            f"start: link '{frame}' cannot move with {speed.tolist()} there: robot '{mechanism.name}' leaves "
            f"{abs((J @ nu - speed)[j]):.3g} of it; give a velocity that its freedoms allow"
        )
    return x, np.asarray(nu, dtype=np.float64)


def _solve_pose(mechanism: Mechanism, rotation: Array | None, position: Array, frame: str, near: Array) -> Array:
    """Return the coordinates that bring a link to a pose, of all branches the one nearest to `near`."""
    branches: Array | None = None
    if not mechanism.loops:
        try:
            branches = inverse_kinematics(mechanism, rotation, position, frame)[0]
        except DynidentError:  # no closed form for this arm, or for what was asked of it
            branches = None
    if branches is not None:
        found = branches[np.isfinite(branches).all(axis=1)]
        turning = {joint.name for joint in mechanism.joints if joint.kind in ("revolute", "continuous")}
        turns = np.array([name in turning for name in mechanism.coordinate_names])
        found = found + np.where(turns, 2.0 * np.pi * np.round((near - found) / (2.0 * np.pi)), 0.0)
        lower, upper = position_limits(mechanism)
        inside = found[np.all((found >= lower) & (found <= upper), axis=1)]
        best = inside if len(inside) else found
        if len(best):
            return np.array(best[np.argmin(np.abs(best - near).sum(axis=1))])
    else:
        try:
            restarts = 0 if mechanism.loops else 100
            found = inverse_kinematics_numeric(mechanism, rotation, position, start=near, frame=frame, restarts=restarts)
            return np.array(found[0])
        except DynidentError as error:
            raise SimulationError(
                f"start: link '{frame}' cannot be at {np.round(position, 6).tolist()} (outside the reach of robot "
                f"'{mechanism.name}', or its loops do not close): choose a pose within reach"
            ) from error
    raise SimulationError(
        f"start: link '{frame}' cannot be at {np.round(position, 6).tolist()}: outside the reach of robot '{mechanism.name}'; "
        "choose a pose within reach"
    )


def _within_limits(mechanism: Mechanism, x: Array) -> None:
    lower, upper = position_limits(mechanism)
    outside = np.flatnonzero((x < lower - 1e-9) | (x > upper + 1e-9))
    if outside.size:
        j = int(outside[0])
        raise SimulationError(
            f"start: joint '{mechanism.coordinate_names[j]}' is at {x[j]:.6g}, outside its limits {lower[j]:.6g} to "
            f"{upper[j]:.6g}; start inside"
        )
