"""What is assumed where a description says nothing: limits of joints, and bodies as capsules.

A link counts as the solid cylinder that has its mass m and principal moments I1 <= I2 <= I3 about its centre of mass, covered
by a capsule along the axis of I1::

    I1 = m r^2 / 2,      I2 = m (r^2 / 4 + h^2 / 3)      ->  radius r, half length h
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynident.errors import require
from dynident.excitation.limits import State
from dynident.excitation.obstacles import POSTURES, Capsule, Collision
from dynident.mechanism.inertia import principal
from dynident.mechanism.mechanism import Mechanism

Array = NDArray[np.float64]

#: Assumed limits of joints: turning [rad, rad/s], sliding [m, m/s]. 0.25 m/s is the usual reduced speed beside people.
TURNING, SLIDING = {"reach": np.pi, "velocity": 1.0}, {"reach": 0.1, "velocity": 0.25}
OFTEN = 0.3  # share of them from which on a contact is one of the shapes, not of the motion
STUCK = 0.95  # of the effort limit: friction from which on a joint cannot move
THINNEST, THICKEST = 0.01, 0.25  # radius of a capsule [m]


@dataclass(frozen=True)
class Assumed:
    """Limits for a robot whose description leaves some out.

    Parameters
    ----------
    mechanism : Mechanism
        The robot; a free base is held where it stands.
    settings : mapping
        What `limits_of` takes: the settings given, completed.
    notes : tuple of str
        What was assumed, in sentences.
    """

    mechanism: Mechanism
    settings: Mapping[str, Any]
    notes: tuple[str, ...]


def assume_limits(mechanism: Mechanism, settings: Mapping[str, Any] | None = None) -> Assumed:
    """Complete the limits of a robot by cautious ones, and say which.

    Parameters
    ----------
    mechanism : Mechanism
        Robot.
    settings : mapping, optional
        What a limits.toml holds; it is not overruled.

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
    if not isinstance(given.get("joints", {}), Mapping) or not isinstance(given.get("default", {}), Mapping):
        return Assumed(mechanism, given, tuple(notes))  # `limits_of` says what is wrong
    common = given.get("default", {})
    tables = {name: dict(table) for name, table in given.get("joints", {}).items() if isinstance(table, Mapping)}
    missing: dict[str, list[str]] = {}
    for joint in mechanism.joints:
        usual = SLIDING if joint.kind == "prismatic" else TURNING
        for name in joint.coordinates:
            if name not in mechanism.coordinate_names:
                continue
            own = {**common, **tables.get(name, {})}
            added: dict[str, float] = {}
            low, high = own.get("lower", joint.limits.lower), own.get("upper", joint.limits.upper)
            unit = "m" if usual is SLIDING else "rad"
            if not low < high and not {"lower", "upper"} & set(own):
                low, high = -np.inf, np.inf  # 0 ... 0 in a description says that nobody wrote them
            if not (np.isfinite(low) and np.isfinite(high)) and isinstance(low, float) and isinstance(high, float):
                centre = low + usual["reach"] if np.isfinite(low) else high - usual["reach"] if np.isfinite(high) else 0.0
                added |= {"lower": centre - usual["reach"], "upper": centre + usual["reach"]}
                missing.setdefault(f"positions within {usual['reach']:.3g} {unit}", []).append(name)
            velocity = own.get("velocity", joint.limits.velocity)
            if velocity == 0.0 or (np.isinf(velocity) and "acceleration" not in own):
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
    """Return joints that cannot move by their own description, and where they are held."""
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
        Empty where the description knows no inertias.
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
        # Identified inertias may be those of no shape: a link ends about where its joints are.
        half = min(half, max([radius, *(float(np.linalg.norm(joint - centre)) for joint in _joints(mechanism, name))]))
        along = axes[:, order[0]] * max(half - radius, 0.0)
        found.append(Capsule(name, centre - along, centre + along, radius))
    return tuple(found)


def collision_of(mechanism: Mechanism, lower: Array, upper: Array, clearance: float = 0.0) -> Collision | None:
    """Return the collisions of a robot's capsules that its motion decides.

    Pairs of bodies that share a joint, and pairs that touch where the robot stands or at many positions, are left out.

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
    except ValueError:  # no pair is left
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
