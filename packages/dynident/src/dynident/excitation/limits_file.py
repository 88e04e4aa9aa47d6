"""Limits of a robot: from its description, completed by a limits.toml or MoveIt's joint_limits.yaml, or assumed.

``docs/reference/formats.md`` lists the keys of limits.toml. The keys of MoveIt are
``joint_limits: {elbow_joint: {has_velocity_limits: true, max_velocity: 3.15}}``, likewise acceleration, jerk, effort,
min_position, max_position.

A link without a shape counts as the solid cylinder with the same mass m and principal moments I1 <= I2 <= I3 about the centre
of mass, covered by a capsule along the axis of I1::

    I1 = m r^2 / 2,      I2 = m (r^2 / 4 + h^2 / 3)      ->  radius r, half length h
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array
from dynident.checks import choice, number, numbers, shown
from dynident.errors import DynidentError, require
from dynident.excitation.limits import POSTURES, Box, Capsule, Collision, Effort, Floor, Limit, Loops, Polygon, State, ToolBox
from dynident.excitation.objective import LARGEST, per_coordinate, text
from dynident.files import read_toml, read_yaml
from dynident.mechanism.describe import effort_units
from dynident.mechanism.elements import Limits
from dynident.mechanism.mechanism import Mechanism
from dynident.mechanism.parameters import principal

#: Assumed limits of joints: turning [rad, rad/s], sliding [m, m/s]. 0.25 m/s is the usual reduced speed near people.
TURNING, SLIDING = {"reach": np.pi, "velocity": 1.0}, {"reach": 0.1, "velocity": 0.25}
OFTEN = 0.3  # share of random postures above which a contact is due to the shapes, not to the motion
AWAY = 0.2  # of home's distance from singularities, which an assumed limit keeps
STUCK = 0.95  # of the effort limit: least friction of a joint that cannot move
THINNEST, THICKEST = 0.01, 0.25  # radius of a capsule [m]


@dataclass(frozen=True)
class Assumed:
    """Limits for a robot with an incomplete description."""

    mechanism: Mechanism  #: The robot; a free base is locked
    settings: Mapping[str, Any]  #: Settings for `limits_of`: the given ones, completed
    notes: tuple[str, ...]  #: Assumptions, in sentences


def assume_limits(mechanism: Mechanism, settings: Mapping[str, Any] | None = None) -> Assumed:
    """Complete the limits of a robot by cautious ones, with a note for each.

    Parameters
    ----------
    mechanism : Mechanism
        Robot.
    settings : mapping, optional
        Content of a limits.toml; given settings are kept.

    Returns
    -------
    Assumed
        Robot, settings and notes.
    """
    require(mechanism, Mechanism, "mechanism")
    notes: list[str] = []
    free = {joint.name: np.zeros(len(joint.coordinates)) for joint in mechanism.joints if joint.kind == "free"}
    if free:
        mechanism = mechanism.lock(free)
        notes.append(f"the free base ({', '.join(free)}) is held still: the motion is for the robot on a stand")
    stuck = {} if mechanism.loops else _stuck(mechanism)
    if stuck:
        mechanism = mechanism.lock(stuck)
        names = ", ".join(stuck)
        notes.append(f"{names} held still: the friction in the description takes all of the effort that it allows")
    given = dict(settings or {})
    common, tables = _joint_numbers(given)
    missing: dict[str, list[str]] = {}
    home: dict[str, float] = {}
    if mechanism.loops:
        home = dict(zip(mechanism.tree.coordinates, mechanism.closure.home.tolist(), strict=True))
        if "singularity" not in given:
            given["singularity"] = [AWAY * x for x in Loops.at_home(mechanism)]
            notes.append(
                f"at least {100 * AWAY:.0f} % of home's distance from singularities is kept; singularity in a limits file says "
                "otherwise"
            )
    units = effort_units(mechanism)
    for joint in mechanism.joints:
        for name in joint.coordinates:
            if name not in mechanism.coordinate_names:
                continue
            usual = SLIDING if units[name] == "N" else TURNING
            own = {**common, **tables.get(name, {})}
            added: dict[str, float] = {}
            low, high = own.get("lower", joint.limits.lower), own.get("upper", joint.limits.upper)
            unit = "m" if usual is SLIDING else "rad"
            if not low < high and not {"lower", "upper"} & set(own):
                low, high = -np.inf, np.inf  # 0 ... 0 in a description means that the limits are missing
            if not (np.isfinite(low) and np.isfinite(high)):
                at = home.get(name, 0.0)
                centre = low + usual["reach"] if np.isfinite(low) else high - usual["reach"] if np.isfinite(high) else at
                added |= {"lower": centre - usual["reach"], "upper": centre + usual["reach"]}
                missing.setdefault(f"positions within {usual['reach']:.3g} {unit}", []).append(name)
            velocity = own.get("velocity", joint.limits.velocity)
            if (velocity == 0.0 and "velocity" not in own) or (np.isinf(velocity) and "acceleration" not in own):
                added["velocity"] = usual["velocity"]
                missing.setdefault(f"speeds up to {usual['velocity']:g} {unit}/s", []).append(name)
            if joint.limits.effort == 0.0 and "torque" not in own:
                added["torque"] = np.inf
                missing.setdefault("no limit of the effort (the description says 0)", []).append(name)
            if added:
                tables[name] = {**tables.get(name, {}), **added}
    notes += [f"{what} assumed for {', '.join(names)}; a limits file says otherwise" for what, names in missing.items()]
    return Assumed(mechanism, {**given, **({"joints": tables} if tables else {})}, tuple(notes))


def _stuck(mechanism: Mechanism) -> dict[str, float]:
    """Return joints whose friction in the description prevents motion, and the positions at which to lock them."""
    found = {}
    for joint in mechanism.joints:
        if len(joint.coordinates) == 1 and joint.terms.get("fc", 0.0) >= STUCK * joint.limits.effort > 0.0:
            low, high = joint.limits.lower, joint.limits.upper
            found[joint.name] = 0.5 * (low + high) if np.isfinite(high - low) else 0.0
    return found


def capsules_of(mechanism: Mechanism) -> tuple[Capsule, ...]:
    """Return one capsule per body that has a mass, of the cylinder with the same inertia.

    Parameters
    ----------
    mechanism : Mechanism
        Robot with inertias.

    Returns
    -------
    tuple of Capsule
        Empty if the description has no inertias.
    """
    require(mechanism, Mechanism, "mechanism")
    found = []
    for name, phi in zip(mechanism.tree.bodies, mechanism.tree.inertias.reshape(-1, 10), strict=True):
        if not phi[0] > 0.0:
            continue
        mass, centre, moments, axes = principal(phi)
        order = np.argsort(moments)
        least, middle = (max(float(moments[k]), 0.0) for k in order[:2])
        radius = float(np.clip(np.sqrt(2.0 * least / mass), THINNEST, THICKEST))
        half = np.sqrt(max(3.0 * (middle / mass - radius**2 / 4.0), 0.0))
        # Identified inertias may fit no shape: a link ends approximately at its joints.
        half = min(half, max([radius, *(float(np.linalg.norm(joint - centre)) for joint in _joints(mechanism, name))]))
        along = axes[:, order[0]] * max(half - radius, 0.0)
        found.append(Capsule(name, centre - along, centre + along, radius))
    return tuple(found)


def collision_of(mechanism: Mechanism, lower: Array, upper: Array, clearance: float = 0.0) -> Collision | None:
    """Return the possible collisions of a robot's capsules that depend on its motion.

    Pairs of bodies that share a joint, and pairs that touch at zero or at many positions, are left out.

    Parameters
    ----------
    mechanism : Mechanism
        Robot.
    lower, upper : ndarray, (n,)
        Range of positions.
    clearance : float
        Smallest distance [m].

    Returns
    -------
    Collision or None
        None where no two bodies can meet, and for robots with loops.
    """
    capsules = capsules_of(mechanism)
    if mechanism.loops or mechanism.dof == 0 or len(capsules) < 3 or not np.isfinite([*lower, *upper]).all():
        return None
    nodes = {name: mechanism.tree.frames[name][0] for name in {c.link for c in capsules}}
    parent = mechanism.tree.arrays.parent
    near = [(a, b) for a in nodes for b in nodes if a != b and nodes[b] == _carrier(parent, set(nodes.values()), nodes[a])]
    try:
        first = Collision(mechanism, capsules, clearance, near)
    except DynidentError:  # no pair is left
        return None
    q = np.random.default_rng(0).uniform(lower, upper, (POSTURES, mechanism.dof))
    q[0] = np.clip(0.0, lower, upper)
    touch = first.excess(State(q, q, q, q)) > 0.0
    shapes = touch[0] | (touch.mean(axis=0) > OFTEN)
    if shapes.all():
        return None
    more = [(capsules[i].link, capsules[j].link) for (i, j), alike in zip(first.pairs, shapes, strict=True) if alike]
    return Collision(mechanism, capsules, clearance, [*near, *more])


def _joints(mechanism: Mechanism, link: str) -> list[Array]:
    """Return the places of the joints of a rigid group of bodies, in the frame of one of its links."""
    node, here = mechanism.tree.frames[link]
    same = {name: here.inverse() @ pose for name, (other, pose) in mechanism.tree.frames.items() if other == node}
    moving = [joint for joint in mechanism.joints if joint.kind != "fixed"]
    ends = [(same[joint.parent] @ joint.placement).translation for joint in moving if joint.parent in same]
    return [*ends, *(same[joint.child].translation for joint in moving if joint.child in same)]


def _carrier(parent: NDArray[np.int64], known: Collection[int], node: int) -> int:
    """Return the nearest body with mass below a node, towards the base; -1 when there is none."""
    at = int(parent[node])
    while at >= 0 and at not in known:
        at = int(parent[at])
    return at


#: Flag, entry and the field of ours.
ENTRIES = (
    ("has_position_limits", "min_position", "lower"),
    ("has_position_limits", "max_position", "upper"),
    ("has_velocity_limits", "max_velocity", "velocity"),
    ("has_acceleration_limits", "max_acceleration", "acceleration"),
    ("has_jerk_limits", "max_jerk", "jerk"),
    ("has_effort_limits", "max_effort", "torque"),
)
SCALES = {"velocity": "default_velocity_scaling_factor", "acceleration": "default_acceleration_scaling_factor"}


def moveit_limits(where: str | os.PathLike[str]) -> dict[str, Any]:
    """Return settings for `limits_of` from a joint_limits.yaml; scaling factors reduce them."""
    data = read_yaml(where, "limits")
    table = data.get("joint_limits") if isinstance(data, Mapping) else None
    if not isinstance(table, Mapping) or not all(isinstance(entry, Mapping) for entry in table.values()):
        raise DynidentError(f"limits '{where}' have no table 'joint_limits' with an entry per joint, as MoveIt writes them")
    joints: dict[str, dict[str, float]] = {}
    for name, entry in table.items():
        found: dict[str, float] = {}
        for flag, key, field in ENTRIES:
            if key not in entry or entry.get(flag) is False:
                continue
            value = number(f"limits: {shown(name)}.{key}", entry[key])
            scale = number(f"limits: {SCALES.get(field, field)}", data.get(SCALES.get(field, ""), 1.0))
            if field in ("velocity", "acceleration", "jerk", "torque") and not 0.0 < value * scale < np.inf:
                raise DynidentError(f"limits: {shown(name)}.{key} is {value:g}; it must be above zero")
            found[field] = value * scale
        joints[str(name)] = found
    return {"joints": joints}


MARGIN = 0.01
JOINT_FIELDS = ("lower", "upper", "velocity", "acceleration", "jerk", "torque", "power")
TOP = ("margin", "bandwidth", "singularity", "default", "joints", "passive", "tool", "polygon", "floor", "capsule", "collision")


@dataclass(frozen=True, eq=False)
class MotionLimits:
    """All limits of the motions of a robot."""

    coordinates: tuple[str, ...]  #: Names of the n coordinates
    lower: Array  #: (n,), lowest positions [rad or m]
    upper: Array  #: (n,), highest positions [rad or m]
    velocity: Array  #: (n,), largest velocities, infinite where there is no limit
    acceleration: Array  #: (n,), largest accelerations
    jerk: Array  #: (n,), largest jerks
    others: tuple[Limit, ...] = ()  #: Efforts, tool, polygons, loops, collisions
    margin: float = MARGIN  #: Share of every limit that stays unused
    bandwidth: float = np.inf  #: Highest frequency that the drives follow [Hz]

    def __post_init__(self) -> None:
        names = self.coordinates
        if isinstance(names, str) or not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
            raise DynidentError(f"coordinates are {shown(names)}; give the names of the robot's coordinates")
        object.__setattr__(self, "coordinates", tuple(names))
        for label in ("lower", "upper", "velocity", "acceleration", "jerk"):
            array = per_coordinate(getattr(self, label), len(names), f"{label} limits")
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

    @cached_property
    def boxes(self) -> tuple[Box, ...]:
        """Limits of positions and rates."""
        rates = [(k, getattr(self, name)) for k, name in enumerate(("velocity", "acceleration", "jerk"), start=1)]
        found = [Box(0, self.lower, self.upper, self.coordinates)]
        return (*found, *(Box(k, -x, x, self.coordinates) for k, x in rates if np.isfinite(x).any()))

    @cached_property
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


def _joint_numbers(given: Mapping[str, Any]) -> tuple[dict[str, float], dict[str, dict[str, float]]]:
    """Return the fields of all joints, and those of single ones."""
    own = given.get("joints", {})
    if not isinstance(own, Mapping):
        raise DynidentError(f"limits: joints is {shown(own)}; it must be a table of tables")
    tables = {name: _numbers(table, f"joints.{name}", JOINT_FIELDS) for name, table in own.items()}
    return _numbers(given.get("default", {}), "default", JOINT_FIELDS), tables


def limits_of(mechanism: Mechanism, settings: Mapping[str, Any] | None = None) -> MotionLimits:
    """Return the limits of a robot from its description, overridden by settings.

    Parameters
    ----------
    mechanism : Mechanism
        Robot.
    settings : mapping, optional
        Content of a limits.toml, see the module.
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
    common, own = _joint_numbers(given)
    for joint in own:
        if joint not in (*names, *motors):
            raise DynidentError(f"limits: unknown joint '{joint}'; coordinates are {', '.join(names)}")
    tables = {name: {**common, **own.get(name, {})} for name in {*names, *motors}}
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
    if "tool" in given:
        found.append(_tool(mechanism, _table(given, "tool")))
    for entry in _tables(given, "polygon"):
        joints = _list(entry, "joints", "polygon", 2)
        first, second = (names.index(choice("limits: joint of a polygon", joint, names)) for joint in joints)
        label = f"polygon of {names[first]} and {names[second]}"
        found.append(
            Polygon((first, second), numbers(_list(entry, "vertices", "polygon"), f"limits: vertices of {label}"), label)
        )
    if mechanism.loops:
        found += _loops(mechanism, given)
    elif "passive" in given or "singularity" in given:
        raise DynidentError(f"limits: passive joints and singularity are for robots with loops; '{mechanism.name}' has none")
    return found + _bodies(mechanism, given, lower, upper)


def _bodies(mechanism: Mechanism, given: Mapping[str, Any], lower: Array, upper: Array) -> list[Limit]:
    """Return the limits of bodies in space: clearance between bodies and above the floor."""
    found: list[Limit] = []
    settings = _table(given, "collision")
    clearance = number("limits: collision.clearance", settings.get("clearance", 0.0))
    capsules: list[Capsule] | None = None
    if given.get("capsule") == "auto":
        meeting = collision_of(mechanism, lower, upper, clearance)
        found += [] if meeting is None else [meeting]
    elif "capsule" in given:
        capsules = [
            Capsule(
                text(_entry(c, "link", "capsule"), "limits: link of a capsule"),
                numbers(_list(c, "from", "capsule", 3), "limits: from of a capsule"),
                numbers(_list(c, "to", "capsule", 3), "limits: to of a capsule"),
                number("limits: radius of a capsule", _entry(c, "radius", "capsule")),
            )
            for c in _tables(given, "capsule")
        ]
        pairs = [
            (text(pair[0], IGNORED), text(pair[1], IGNORED))
            if isinstance(pair, list | tuple) and len(pair) == 2
            else _no_pair(pair)
            for pair in (_list(settings, "ignore", "collision") if "ignore" in settings else [])
        ]
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


IGNORED = "limits: link of collision.ignore"


def _no_pair(value: Any) -> NoReturn:
    raise DynidentError(f"limits: collision.ignore has {shown(value)}; give pairs of links")


def _table(given: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Return a table, or an empty one if it is missing."""
    table = given.get(key, {})
    if not isinstance(table, Mapping):
        raise DynidentError(f"limits: {key} is {shown(table)}; it must be a table, [{key}]")
    return table


def _entry(table: Mapping[str, Any], key: str, where: str) -> Any:
    """Return a required entry of a table."""
    if key not in table:
        raise DynidentError(f"limits: {where} has no '{key}'; give one")
    return table[key]


def _list(table: Mapping[str, Any], key: str, where: str, count: int | None = None) -> Any:
    """Return a required list of given length of a table."""
    found = _entry(table, key, where)
    if not isinstance(found, list | tuple | np.ndarray) or (count is not None and len(found) != count):
        raise DynidentError(f"limits: {key} of {where} is {shown(found)}; give a list{'' if count is None else f' of {count}'}")
    return found


def _tool(mechanism: Mechanism, tool: Mapping[str, Any]) -> Limit:
    """Return the box of a link."""
    low, high = np.full(3, -np.inf), np.full(3, np.inf)
    for i, axis in enumerate("xyz"):
        if axis in tool:
            low[i], high[i] = (number(f"limits: tool.{axis}", x, infinite=True) for x in _list(tool, axis, "tool", 2))
    low[2] = max(low[2], number("limits: tool.height", tool.get("height", -np.inf), infinite=True))
    frame = text(_entry(tool, "frame", "tool"), "limits: tool.frame")
    mechanism.frame(frame)
    return ToolBox(mechanism, frame, low, high)


def _loops(mechanism: Mechanism, given: Mapping[str, Any]) -> list[Limit]:
    """Return the limits of passive joints and the least distance from singularities."""
    names, tree = mechanism.coordinate_names, mechanism.tree.coordinates
    low, high = np.full(len(tree), -np.inf), np.full(len(tree), np.inf)
    for joint in mechanism.joints:
        for c in joint.coordinates:
            if c in tree and c not in names:
                low[tree.index(c)], high[tree.index(c)] = joint.limits.lower, joint.limits.upper
    for name, table in _table(given, "passive").items():
        choice("limits: passive joint", name, tree)
        bounds = _numbers(table, f"passive.{name}", ("lower", "upper"))
        low[tree.index(name)], high[tree.index(name)] = bounds.get("lower", -np.inf), bounds.get("upper", np.inf)
    least = given.get("singularity", 0.0)
    closure, actuation = least if isinstance(least, list) and len(least) == 2 else (least, least)
    pair = (number("limits: singularity", closure, least=0.0), number("limits: singularity", actuation, least=0.0))
    limited = "singularity" in given or np.isfinite([*low, *high]).any()
    return [Loops(mechanism, low, high, pair)] if limited else []


def read_limits(path: str | os.PathLike[str], mechanism: Mechanism) -> MotionLimits:
    """Return the limits of `mechanism`, completed by the file `path`: a limits.toml, or MoveIt's joint_limits.yaml."""
    return limits_of(mechanism, limits_settings(path))


def limits_settings(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the content of a limits.toml, or a joint_limits.yaml of MoveIt, as settings for `limits_of`."""
    if Path(path).suffix.lower() in (".yaml", ".yml"):
        return moveit_limits(path)
    return read_toml(path, "limits")
