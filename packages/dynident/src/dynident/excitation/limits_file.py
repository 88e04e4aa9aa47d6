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
floor = 0.0                        # lowest height of any body [m]
capsule = "auto"                   # bodies as capsules of the same inertia; or several
[[capsule]]                        # link, from, to, radius; obstacles: link = the base's name
[collision]                        # clearance, ignore = [["link1", "link3"]]
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynident.checks import number, numbers, shown
from dynident.errors import DynidentError, require
from dynident.excitation.assumptions import capsules_of, collision_of
from dynident.excitation.checks import LARGEST, text, vector
from dynident.excitation.limits import Box, Effort, Limit, Loops, Polygon, ToolBox
from dynident.excitation.moveit import moveit_limits
from dynident.excitation.obstacles import Capsule, Collision, Floor
from dynident.files import read_text, read_toml
from dynident.mechanism.elements import Limits
from dynident.mechanism.mechanism import Mechanism

Array = NDArray[np.float64]

MARGIN = 0.01
JOINT_FIELDS = ("lower", "upper", "velocity", "acceleration", "jerk", "torque", "power")
TOP = ("margin", "bandwidth", "singularity", "default", "joints", "passive", "tool", "polygon", "floor", "capsule", "collision")


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
        names = self.coordinates
        if isinstance(names, str) or not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
            raise DynidentError(f"coordinates are {shown(names)}; give the names of the robot's coordinates")
        object.__setattr__(self, "coordinates", tuple(names))
        for label in ("lower", "upper", "velocity", "acceleration", "jerk"):
            array = vector(getattr(self, label), len(names), f"{label} limits")
            if label in ("velocity", "acceleration", "jerk") and not np.all(array > 0.0):
                name = names[int(np.argmin(array))]
                raise DynidentError(f"{label} limit of '{name}' is {array.min()}; it must be above zero")
            if label in ("lower", "upper") and np.any(np.isfinite(array) & (np.abs(array) > LARGEST)):
                raise DynidentError(f"{label} limits are beyond {LARGEST:g}; give positions in radians or metres")
            object.__setattr__(self, label, array)
        if not isinstance(self.others, Sequence) or not all(isinstance(limit, Limit) for limit in self.others):
            raise DynidentError(f"others are {shown(self.others)}; give limits of dynident.excitation")
        object.__setattr__(self, "others", tuple(self.others))
        if not 0.0 <= number("margin", self.margin) < 1.0:
            raise DynidentError(f"margin is {self.margin}; give a share from 0 to below 1")
        number("bandwidth", self.bandwidth, above=0.0, infinite=True, unit="Hz")
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
        raise DynidentError(f"limits: {where} is {shown(table)}; it must be a table")
    out = {}
    for key, value in table.items():
        if key not in known:
            raise DynidentError(f"limits: unknown field '{key}' in {where}; known ones are {', '.join(known)}")
        out[key] = number(f"limits: {where}.{key}", value, infinite=True)
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
    require(mechanism, Mechanism, "mechanism")
    if settings is not None and not isinstance(settings, Mapping):
        raise DynidentError(f"limits are {shown(settings)}; give a table, MotionLimits, or nothing")
    given = dict(settings or {})
    unknown = [key for key in given if key not in TOP]
    if unknown:
        raise DynidentError(f"limits: unknown entry '{unknown[0]}'; known ones are {', '.join(TOP)}")
    names = mechanism.coordinate_names
    motors = tuple(a.name for a in mechanism.actuators) if mechanism.loops else names
    common = _numbers(given.get("default", {}), "default", JOINT_FIELDS)
    own = given.get("joints", {})
    if not isinstance(own, Mapping):
        raise DynidentError(f"limits: joints is {shown(own)}; it must be a table of tables")
    for joint in own:
        if joint not in (*names, *motors):
            raise DynidentError(f"limits: unknown joint '{joint}'; coordinates are {', '.join(names)}")
    tables = {name: {**common, **_numbers(own.get(name, {}), f"joints.{name}", JOINT_FIELDS)} for name in {*names, *motors}}
    described = {c: joint.limits for joint in mechanism.joints for c in joint.coordinates}
    lower, upper, velocity, acceleration, jerk = (
        np.array([tables[name].get(key, getattr(described.get(name, Limits()), key, np.inf)) for name in names])
        for key in JOINT_FIELDS[:5]
    )
    others: list[Limit] = []
    torque = np.array([tables[m].get("torque", described.get(m, Limits()).effort) for m in motors])
    power = np.array([tables[m].get("power", np.inf) for m in motors])
    if np.isfinite([*torque, *power]).any():
        others.append(Effort(mechanism, torque, power))
    scalars = _numbers({k: given[k] for k in ("margin", "bandwidth") if k in given}, "limits", ("margin", "bandwidth"))
    others += _shapes(mechanism, given, lower, upper)
    margin, bandwidth = scalars.get("margin", MARGIN), scalars.get("bandwidth", np.inf)
    return MotionLimits(names, lower, upper, velocity, acceleration, jerk, tuple(others), margin, bandwidth)


def _shapes(mechanism: Mechanism, given: Mapping[str, Any], lower: Array, upper: Array) -> list[Limit]:
    """Return tool box, polygons, loop margins, floor and collisions."""
    found: list[Limit] = []
    names = mechanism.coordinate_names
    try:
        if "tool" in given:
            found.append(_tool(mechanism, given["tool"]))
        for entry in _tables(given, "polygon"):
            first, second = (names.index(text(joint, "limits: joint of a polygon")) for joint in entry["joints"])
            label = f"polygon of {names[first]} and {names[second]}"
            found.append(Polygon((first, second), numbers(entry["vertices"], f"limits: vertices of {label}"), label))
        if mechanism.loops:
            found += _loops(mechanism, given)
        elif "passive" in given or "singularity" in given:
            raise DynidentError(
                f"limits: passive joints and singularity are for robots with loops; '{mechanism.name}' has none"
            )
        found += _bodies(mechanism, given, lower, upper)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, DynidentError):
            raise
        raise DynidentError(f"limits: tool, polygon, passive, capsule or collision is incomplete or wrong ({error})") from error
    return found


def _bodies(mechanism: Mechanism, given: Mapping[str, Any], lower: Array, upper: Array) -> list[Limit]:
    """Return the limits of bodies in space: clearance of each other and of the floor."""
    found: list[Limit] = []
    settings = dict(given.get("collision", {}))
    clearance = number("limits: collision.clearance", settings.get("clearance", 0.0))
    capsules: list[Capsule] | None = None
    if given.get("capsule") == "auto":
        meeting = collision_of(mechanism, lower, upper, clearance)
        found += [] if meeting is None else [meeting]
    elif "capsule" in given:
        capsules = [
            Capsule(text(c["link"], "limits: link of a capsule"), c["from"], c["to"], number("limits: radius", c["radius"]))
            for c in _tables(given, "capsule")
        ]
        pairs = [(str(a), str(b)) for a, b in settings.get("ignore", [])]
        found.append(Collision(mechanism, capsules, clearance, pairs))
    if "floor" in given:
        carried = capsules_of(mechanism) if capsules is None else tuple(capsules)
        carried = tuple(c for c in carried if mechanism.tree.frames[c.link][0] >= 0)
        found.append(Floor(mechanism, carried, number("limits: floor", given["floor"])).reachable(lower, upper))
    return found


def _tables(given: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    """Return the tables of an entry that may be given several times."""
    tables = given.get(key, [])
    if not isinstance(tables, list | tuple) or not all(isinstance(table, Mapping) for table in tables):
        raise DynidentError(f"limits: {key} is {shown(tables)}; it must be a list of tables, [[{key}]]")
    return list(tables)


def _tool(mechanism: Mechanism, given: Any) -> Limit:
    """Return the box of a link."""
    tool = dict(given)
    low, high = np.full(3, -np.inf), np.full(3, np.inf)
    for i, axis in enumerate("xyz"):
        if axis in tool:
            low[i], high[i] = (number(f"limits: tool.{axis}", x, infinite=True) for x in tool[axis])
    low[2] = max(low[2], number("limits: tool.height", tool.get("height", -np.inf), infinite=True))
    frame = text(tool["frame"], "limits: tool.frame")
    mechanism.frame(frame)
    return ToolBox(mechanism, frame, low, high)


def _loops(mechanism: Mechanism, given: Mapping[str, Any]) -> list[Limit]:
    """Return the limits of passive joints, and how near a singularity may be."""
    names, tree = mechanism.coordinate_names, mechanism.tree.coordinates
    low, high = np.full(len(tree), -np.inf), np.full(len(tree), np.inf)
    for joint in mechanism.joints:
        for c in joint.coordinates:
            if c in tree and c not in names:
                low[tree.index(c)], high[tree.index(c)] = joint.limits.lower, joint.limits.upper
    for name, table in dict(given.get("passive", {})).items():
        bounds = _numbers(table, f"passive.{name}", ("lower", "upper"))
        low[tree.index(name)], high[tree.index(name)] = bounds.get("lower", -np.inf), bounds.get("upper", np.inf)
    least = number("limits: singularity", given.get("singularity", 0.0))
    return [Loops(mechanism, low, high, least)] if least > 0.0 or np.isfinite([*low, *high]).any() else []


def read_limits(path: str | os.PathLike[str], mechanism: Mechanism) -> MotionLimits:
    """Read a limits.toml.

    Parameters
    ----------
    path : path-like
        limits.toml, or the joint_limits.yaml of a MoveIt configuration.
    mechanism : Mechanism
        Robot it is for.

    Returns
    -------
    MotionLimits
        Limits of the description, overruled and completed by the file.
    """
    return limits_of(mechanism, limits_settings(path))


def limits_settings(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return what a limits.toml, or a joint_limits.yaml of MoveIt, holds, as `limits_of` takes it."""
    if Path(path).suffix.lower() in (".yaml", ".yml"):
        return moveit_limits(read_text(path, "limits"), os.fspath(path))
    return read_toml(path, "limits")
