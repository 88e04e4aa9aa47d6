"""Import and export of trajectories: CSV, ROS JointTrajectory as JSON, and plain data that rebuilds the object."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dynident.arrays import Array
from dynident.checks import choice
from dynident.errors import DynidentError
from dynident.files import to_json, write_atomic
from dynident.mechanics.functions import Motion
from dynident.results import stored, stored_fields
from dynident.trajectory.curves import BSpline, Curve, Family, Fourier, Interpolated, Multisine, Trajectory, sample
from dynident.trajectory.joins import Bridge, Joined, Lead, Slowed
from dynident.trajectory.profiles import Move, Moves, Strokes


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
        Time before the first point [s], in which a joint_trajectory_controller moves there from the current position.
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


REPETITIONS = 10_000  # limit of consecutive repetitions of a motion
DEPTH = 16  # limit of nested motions
FAMILIES: dict[str, type[Fourier | Multisine | BSpline]] = {
    "fourier": Fourier,
    "multisine": Multisine,
    "bspline": BSpline,
}


def family_from_spec(data: Mapping[str, Any]) -> Family:
    """Return the family stored by `Family.spec`."""
    kind = choice("family kind", data.get("kind"), FAMILIES)
    given = {name: value for name, value in data.items() if name != "kind"}
    stored_fields(FAMILIES[kind], given, "family")  # refuses missing entries and wrong types; numbers stay as written
    return FAMILIES[kind](**given)


SPECS: dict[str, dict[str, Any]] = {
    "trajectory": {"family": Mapping[str, Any], "coefficients": Array},
    "strokes": {"start": Array, "moves": list[Move], "total": float},
    "moves": {"points": Array, "durations": Array, "profile": str},
    "interpolated": {"t": Array, "q": Array, "v": Array, "a": Array},
    "lead": {"curve": Mapping[str, Any], "periods": int, "out": bool},
    "slowed": {"curve": Mapping[str, Any], "speed": float},
    "joined": {"pieces": list[Mapping[str, Any]]},
    "bridge": {"start": tuple[Array, Array, Array], "end": tuple[Array, Array, Array], "duration": float},
}


def from_spec(data: Mapping[str, Any], depth: int = 0) -> Curve:
    """Return the curve stored by `Curve.spec` as plain `data`; `depth` is its nesting depth."""
    if not isinstance(data, Mapping):
        raise DynidentError(f"a motion is described by a table, not by {type(data).__name__}")
    if depth > DEPTH:
        raise DynidentError("motions are nested too deeply; give a motion of a plan")
    kind = choice("motion kind", data.get("kind"), SPECS)
    given = {name: stored(data, name, hint, f"motion of kind '{kind}'") for name, hint in SPECS[kind].items()}
    match kind:
        case "trajectory":
            return Trajectory(family_from_spec(given["family"]), given["coefficients"])
        case "strokes":
            return Strokes(**given)
        case "moves":
            return Moves(**given)
        case "interpolated":
            return Interpolated(Motion(**given))
        case "lead":
            return Lead(from_spec(given["curve"], depth + 1), given["periods"], given["out"])
        case "slowed":
            return Slowed(from_spec(given["curve"], depth + 1), given["speed"])
        case "joined":
            return Joined([from_spec(piece, depth + 1) for piece in given["pieces"]])
        case _:
            states = (*given["start"], *given["end"])
            if any(x.ndim != 1 or x.size != states[0].size or not np.isfinite(x).all() for x in states):
                raise DynidentError("a bridge needs position, velocity and acceleration of all coordinates at both ends")
            return Bridge(**given)


def bound_from_spec(data: Mapping[str, Any], key: str) -> Array:
    """Return a vector of a plan's plain data; null stands for no limit, because JSON has no infinity."""
    none = -np.inf if key == "lower" else np.inf
    values = stored(data, key, list[float | None], "plan")
    return np.array([none if x is None else x for x in values])
