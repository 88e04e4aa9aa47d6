"""Limits of a robot: from its description, completed by a limits.toml.

margin = 0.02                      # share of every limit that stays unused
bandwidth = 5.0                    # of the drives [Hz]
singularity = 0.05                 # loops: smallest pivot and singular value ratios
[default]                          # every joint that has no entry of its own
acceleration = 10.0
[joints.joint1]                    # lower, upper, velocity, acceleration, jerk, torque, power
lower = -1.5
[passive.elbow]                    # loops: lower, upper of joints that have no motor
[tool]                             # frame, x, y, z = [lower, upper], height = lowest z
[[polygon]]                        # joints = ["a", "b"], vertices = [[...], ...]
[[capsule]]                        # link, from, to, radius; obstacles: link = the base's name
[collision]                        # clearance, ignore = [["link1", "link3"]]
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynident.errors import DynidentError
from dynident.excitation.limits import Box, Limit, Polygon
from dynident.excitation.obstacles import Capsule, Collision
from dynident.excitation.robot_limits import Effort, Loops, ToolBox
from dynident.mechanism import Mechanism

Array = NDArray[np.float64]

MARGIN = 0.01
JOINT_FIELDS = ("lower", "upper", "velocity", "acceleration", "jerk", "torque", "power")
TOP = ("margin", "bandwidth", "singularity", "default", "joints", "passive", "tool", "polygon", "capsule", "collision")


@dataclass(frozen=True, eq=False)
class MotionLimits:
    """All limits of the motions of a robot.

    Parameters
    ----------
    coordinates : tuple of str
        Names of the n coordinates.
    lower, upper : ndarray, (n,)
        Positions [rad or m].
    velocity, acceleration, jerk : ndarray, (n,)
        Largest rates, infinite where there is none.
    others : tuple of Limit
        Efforts, tool, polygons, loops, collisions.
    margin : float
        Share of every limit that stays unused.
    bandwidth : float
        Highest frequency that the drives follow [Hz].
    """

    coordinates: tuple[str, ...]
    lower: Array
    upper: Array
    velocity: Array
    acceleration: Array
    jerk: Array
    others: tuple[Limit, ...] = ()
    margin: float = MARGIN
    bandwidth: float = np.inf

    def __post_init__(self) -> None:
        n = len(self.coordinates)
        for label in ("lower", "upper", "velocity", "acceleration", "jerk"):
            array = np.array(np.broadcast_to(np.asarray(getattr(self, label), dtype=np.float64), (n,)))
            if np.isnan(array).any():
                raise DynidentError(f"{label} limits hold NaN; give numbers, or leave them out")
            if label in ("velocity", "acceleration", "jerk") and not np.all(array > 0.0):
                raise DynidentError(
                    f"{label} limit of '{self.coordinates[int(np.argmin(array))]}' is {array.min()}; it must be above zero"
                )
            object.__setattr__(self, label, array)
        if not 0.0 <= self.margin < 1.0:
            raise DynidentError(f"margin is {self.margin}; give a share of the limits from 0 to below 1")
        if not self.bandwidth > 0.0:
            raise DynidentError(f"bandwidth is {self.bandwidth}; give a frequency above zero in Hz")
        for name, low, high, speed in zip(self.coordinates, self.lower, self.upper, self.velocity, strict=True):
            if not (np.isfinite(low) and np.isfinite(high)):
                raise DynidentError(
                    f"joint '{name}' has no position limits ({low:g} ... {high:g}); give lower and upper in limits.toml, "
                    f"[joints.{name}], also for a joint that can turn for ever"
                )
            if not np.isfinite(speed) and not np.isfinite(self.acceleration[self.coordinates.index(name)]):
                raise DynidentError(
                    f"joint '{name}' has neither a velocity nor an acceleration limit; give one in limits.toml, [joints.{name}]"
                )
        self.boxes  # noqa: B018 - refuses empty ranges now

    @property
    def boxes(self) -> tuple[Box, ...]:
        """Limits of positions and rates."""
        rates = [(k, getattr(self, name)) for k, name in enumerate(("velocity", "acceleration", "jerk"), start=1)]
        found = [Box(0, self.lower, self.upper, self.coordinates)]
        return (*found, *(Box(k, -x, x, self.coordinates) for k, x in rates if np.isfinite(x).any()))

    @property
    def all(self) -> tuple[Limit, ...]:
        """Every limit."""
        return (*self.boxes, *self.others)


def _numbers(table: Mapping[str, Any], where: str, known: Sequence[str]) -> dict[str, float]:
    if not isinstance(table, Mapping):
        raise DynidentError(f"limits: {where} is {table!r}; it must be a table")
    out = {}
    for key, value in table.items():
        if key not in known:
            raise DynidentError(f"limits: unknown field '{key}' in {where}; known ones are {', '.join(known)}")
        if isinstance(value, bool) or not isinstance(value, int | float) or np.isnan(value):
            raise DynidentError(f"limits: {where}.{key} is {value!r}; give a number")
        out[key] = float(value)
    return out


def limits_of(mechanism: Mechanism, settings: Mapping[str, Any] | None = None) -> MotionLimits:
    """Return the limits of a robot: those of its description, overruled by settings.

    Parameters
    ----------
    mechanism : Mechanism
        Robot.
    settings : mapping, optional
        What a limits.toml holds, see the module.

    Returns
    -------
    MotionLimits
        All limits.
    """
    given = dict(settings or {})
    unknown = [key for key in given if key not in TOP]
    if unknown:
        raise DynidentError(f"limits: unknown entry '{unknown[0]}'; known ones are {', '.join(TOP)}")
    names = mechanism.coordinate_names
    motors = tuple(a.name for a in mechanism.actuators) if mechanism.loops else names
    common = _numbers(given.get("default", {}), "default", JOINT_FIELDS)
    own = given.get("joints", {})
    if not isinstance(own, Mapping):
        raise DynidentError(f"limits: joints is {own!r}; it must be a table of tables")
    for joint in own:
        if joint not in (*names, *motors):
            raise DynidentError(f"limits: unknown joint '{joint}'; coordinates are {', '.join(names)}")
    tables = {name: {**common, **_numbers(own.get(name, {}), f"joints.{name}", JOINT_FIELDS)} for name in {*names, *motors}}
    described = {c: joint.limits for joint in mechanism.joints for c in joint.coordinates}
    get = {"lower": -np.inf, "upper": np.inf}
    columns: dict[str, list[float]] = {key: [] for key in JOINT_FIELDS[:5]}
    for name in names:
        known = described.get(name)
        for key, values in columns.items():
            values.append(tables[name].get(key, getattr(known, key, np.inf) if known is not None else get.get(key, np.inf)))
    others: list[Limit] = []
    efforts = [described[m].effort if m in described else np.inf for m in motors]
    torque = np.array([tables[m].get("torque", x) for m, x in zip(motors, efforts, strict=True)])
    power = np.array([tables[m].get("power", np.inf) for m in motors])
    if np.isfinite([*torque, *power]).any():
        others.append(Effort(mechanism, torque, power))
    others += _shapes(mechanism, given)
    scalars = _numbers({k: given[k] for k in ("margin", "bandwidth") if k in given}, "limits", ("margin", "bandwidth"))
    lower, upper, velocity, acceleration, jerk = (np.array(columns[key]) for key in JOINT_FIELDS[:5])
    margin, bandwidth = scalars.get("margin", MARGIN), scalars.get("bandwidth", np.inf)
    return MotionLimits(names, lower, upper, velocity, acceleration, jerk, tuple(others), margin, bandwidth)


def _shapes(mechanism: Mechanism, given: Mapping[str, Any]) -> list[Limit]:
    """Return tool box, polygons, loop margins and collisions."""
    found: list[Limit] = []
    names = mechanism.coordinate_names
    try:
        if "tool" in given:
            tool = dict(given["tool"])
            low, high = np.full(3, -np.inf), np.full(3, np.inf)
            for i, axis in enumerate("xyz"):
                if axis in tool:
                    low[i], high[i] = tool[axis]
            low[2] = max(low[2], float(tool.get("height", -np.inf)))
            found.append(ToolBox(mechanism, str(tool["frame"]), low, high))
            mechanism.frame(str(tool["frame"]))
        for entry in given.get("polygon", []):
            first, second = (names.index(str(joint)) for joint in entry["joints"])
            label = f"polygon of {entry['joints'][0]} and {entry['joints'][1]}"
            found.append(Polygon((first, second), np.array(entry["vertices"], dtype=np.float64), label))
        least = float(given.get("singularity", 0.0))
        if mechanism.loops:
            passive = given.get("passive", {})
            tree = mechanism.tree.coordinates
            low, high = np.full(len(tree), -np.inf), np.full(len(tree), np.inf)
            for joint in mechanism.joints:
                for c in joint.coordinates:
                    if c in tree and c not in names:
                        low[tree.index(c)], high[tree.index(c)] = joint.limits.lower, joint.limits.upper
            for name, table in passive.items():
                numbers = _numbers(table, f"passive.{name}", ("lower", "upper"))
                low[tree.index(name)], high[tree.index(name)] = numbers.get("lower", -np.inf), numbers.get("upper", np.inf)
            if least > 0.0 or np.isfinite(low).any() or np.isfinite(high).any():
                found.append(Loops(mechanism, low, high, least))
        elif "passive" in given or "singularity" in given:
            raise DynidentError(
                f"limits: passive joints and singularity are for robots with loops; '{mechanism.name}' has none"
            )
        if "capsule" in given:
            capsules = [
                Capsule(str(c["link"]), np.array(c["from"]), np.array(c["to"]), float(c["radius"])) for c in given["capsule"]
            ]
            settings = dict(given.get("collision", {}))
            pairs = [(str(a), str(b)) for a, b in settings.get("ignore", [])]
            found.append(Collision(mechanism, capsules, float(settings.get("clearance", 0.0)), pairs))
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, DynidentError):
            raise
        raise DynidentError(f"limits: tool, polygon, passive, capsule or collision is incomplete or wrong ({error})") from error
    return found


def read_limits(path: str | os.PathLike[str], mechanism: Mechanism) -> MotionLimits:
    """Read a limits.toml.

    Parameters
    ----------
    path : path-like
        File.
    mechanism : Mechanism
        Robot it is for.

    Returns
    -------
    MotionLimits
        Limits of the description, overruled and completed by the file.
    """
    try:
        settings = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise DynidentError(f"cannot read limits from '{path}': {error}") from error
    return limits_of(mechanism, settings)
