"""Trajectories out of the toolkit and back: CSV, ROS JointTrajectory as JSON, and plain data that rebuilds the object."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dynident.arrays import Array
from dynident.checks import numbers
from dynident.errors import DynidentError
from dynident.files import to_json, write_atomic
from dynident.mechanics.motion import Motion
from dynident.trajectory.family import Curve, Family, Trajectory, sample
from dynident.trajectory.joins import Bridge, Joined, Lead, cycle
from dynident.trajectory.moves import Moves, Strokes
from dynident.trajectory.sines import Fourier, Multisine
from dynident.trajectory.splines import BSpline, Interpolated


def _motion(curve: Curve | Motion, rate: float | None, names: Sequence[str]) -> Motion:
    if isinstance(curve, Motion):
        motion = curve
    elif rate is None:
        raise DynidentError("rate is missing; give the samples per second of the controller")
    else:
        motion = sample(curve, rate)
    if len(names) != motion.dof:
        raise DynidentError(
            f"{len(names)} names ({', '.join(names)}) but the motion has {motion.dof} coordinates; give one each"
        )
    return motion


def to_csv(path: str | os.PathLike[str], curve: Curve | Motion, names: Sequence[str], rate: float | None = None) -> Path:
    """Write time, positions, velocities and accelerations of joints `names` to the CSV file `path`, with full precision.

    A `curve` needs a `rate` [Hz].
    """
    motion = _motion(curve, rate, names)
    header = ",".join(["t", *(f"{kind}_{name}" for kind in ("q", "v", "a") for name in names)])
    buffer = io.StringIO()
    np.savetxt(buffer, np.column_stack([motion.t, motion.q, motion.v, motion.a]), "%.17g", ",", header=header, comments="")
    return write_atomic(path, buffer.getvalue())


def to_ros(curve: Curve | Motion, names: Sequence[str], rate: float | None = None, approach: float = 0.0) -> dict[str, Any]:
    """Return a trajectory_msgs/JointTrajectory message as plain data: ``joint_names`` and ``points``.

    Parameters
    ----------
    curve, names
        Motion, and joint names of the controller.
    rate
        Points per second [Hz]; needed for a curve.
    approach
        Time before the first point [s]: a joint_trajectory_controller then moves there from where the robot stands.
    """
    motion = _motion(curve, rate, names)
    if not 0.0 <= approach < np.inf:
        raise DynidentError(f"approach is {approach}; give a time of zero seconds or more")
    points = []
    for t, q, v, a in zip(motion.t - motion.t[0] + approach, motion.q, motion.v, motion.a, strict=True):
        nanoseconds = round(float(t) * 1e9)
        points.append(
            {
                "positions": q.tolist(),
                "velocities": v.tolist(),
                "accelerations": a.tolist(),
                "time_from_start": {"sec": nanoseconds // 10**9, "nanosec": nanoseconds % 10**9},
            }
        )
    return {"joint_names": list(names), "points": points}


def to_ros_json(
    path: str | os.PathLike[str],
    curve: Curve | Motion,
    names: Sequence[str],
    rate: float | None = None,
    approach: float = 0.0,
) -> Path:
    """Write the message of `to_ros` (`curve`, `names`, `rate`, `approach`) to the JSON file `path`."""
    return write_atomic(path, to_json(to_ros(curve, names, rate, approach)))


def to_ros_controller(names: Sequence[str], rate: int = 500) -> str:
    """Return the parameters of ros2_control's joint_trajectory_controller for some joints."""
    name = "joint_trajectory_controller"
    joints = [f"      - {json.dumps(joint)}" for joint in names]  # a JSON text is a YAML text
    lines = ["controller_manager:", "  ros__parameters:", f"    update_rate: {int(rate)}", f"    {name}:"]
    lines += [f"      type: {name}/JointTrajectoryController", f"{name}:", "  ros__parameters:", "    joints:", *joints]
    lines += ["    command_interfaces: [position]", "    state_interfaces: [position, velocity]"]
    lines += ["    interpolation_method: splines", "    allow_nonzero_velocity_at_trajectory_end: false"]
    return "\n".join([*lines, ""])


REPETITIONS = 10_000  # most of a motion in a row
FAMILIES: dict[str, Callable[..., Family]] = {
    "fourier": Fourier,
    "multisine": Multisine,
    "bspline": BSpline,
}


def family_from_spec(data: Mapping[str, Any]) -> Family:
    """Return the family that `Family.spec` described."""
    fields = dict(data)
    kind = fields.pop("kind", None)
    if kind not in FAMILIES:
        raise DynidentError(f"family kind is {kind!r}; it must be one of {', '.join(FAMILIES)}")
    try:
        return FAMILIES[kind](**fields)
    except TypeError as error:
        raise DynidentError(f"family '{kind}' has fields {', '.join(fields)}; {error}") from error


KINDS = ("trajectory", "strokes", "moves", "interpolated", "lead", "joined", "bridge")


def from_spec(data: Mapping[str, Any]) -> Curve:
    """Return the curve that `Curve.spec` described as plain `data`."""
    if not isinstance(data, Mapping):
        raise DynidentError(f"a motion is described by a table, not by {type(data).__name__}")
    kind = data.get("kind")
    try:
        if kind == "trajectory":
            return Trajectory(family_from_spec(data["family"]), np.array(data["coefficients"], dtype=np.float64))
        if kind == "strokes":
            return Strokes(np.array(data["start"], dtype=np.float64), data["moves"], float(data["total"]))
        if kind == "moves":
            return Moves(np.array(data["points"]), np.array(data["durations"]), str(data["profile"]))
        if kind == "interpolated":
            return Interpolated(Motion(*(np.array(data[key], dtype=np.float64) for key in ("t", "q", "v", "a"))))
        if kind == "lead":
            return Lead(from_spec(data["curve"]), int(data["periods"]), bool(data["out"]))
        if kind == "joined":
            return Joined([from_spec(piece) for piece in data["pieces"]])
        if kind == "bridge":
            (q0, v0, a0), (q1, v1, a1) = (tuple(np.array(x, dtype=np.float64) for x in data[end]) for end in ("start", "end"))
            return Bridge((q0, v0, a0), (q1, v1, a1), float(data["duration"]))
    except RecursionError:
        raise DynidentError("motions are nested too deeply; give one of a plan") from None
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, ArithmeticError) as error:
        if isinstance(error, DynidentError):
            raise
        raise DynidentError(f"motion of kind '{kind}' cannot be read: {error}") from error
    raise DynidentError(f"motion kind is {kind!r}; it must be one of {', '.join(KINDS)}")


def bound_from_spec(data: Mapping[str, Any], key: str) -> Array:
    """Return a vector of a plan's plain data; null stands for no limit, because JSON has no infinity."""
    none = -np.inf if key == "lower" else np.inf
    if not isinstance(data[key], list | tuple):
        raise DynidentError(f"{key} of the plan is {data[key]!r:.60}; give a list of numbers")
    return numbers([none if x is None else x for x in data[key]], f"{key} of the plan")


def cycle_from_spec(data: Mapping[str, Any]) -> Joined:
    """Return one cycle of a plan's plain data, as `dynident.excitation.Plan.curve` does, for subpackages below that one."""
    try:
        curves = [(from_spec(stage["motion"]), _repetitions(stage["repetitions"])) for stage in data["stages"]]
        speed, acceleration, home = (bound_from_spec(data, key) for key in ("speed", "acceleration", "home"))
        bounds = {key: bound_from_spec(data, key) for key in ("lower", "upper", "jerk") if data.get(key) is not None}
        return cycle(curves, speed, acceleration, home, **bounds)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, ArithmeticError) as error:
        if isinstance(error, DynidentError):
            raise
        raise DynidentError(f"the plan's stages cannot be read: {error}") from error


def _repetitions(value: Any) -> int:
    """Return how often a motion of a plan is run in a row."""
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= REPETITIONS:
        raise DynidentError(f"repetitions of a stage is {value!r:.60}; give a whole number from 1 to {REPETITIONS}")
    return value
