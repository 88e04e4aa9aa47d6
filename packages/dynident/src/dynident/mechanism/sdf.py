"""SDF (Gazebo) to a mechanism, loops included.

x_model = X_link x_link, X_link = X_relative_to pose;  joint frame = X_child pose;  first joint of a link: tree, others: loops

A second joint with the same child closes a loop: it becomes a cut joint between its two links, posed as in the file. Link
frames, in which all parameters are expressed, are the file's; a joint away from the origin of its child gets a massless frame.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dynident.arrays import Array
from dynident.errors import DescriptionError
from dynident.mechanism.elements import Actuator, Body, Coupling, Joint, Limits, Loop, Placement, quaternion_matrix
from dynident.mechanism.mechanism import Mechanism
from dynident.mechanism.parameters import from_com, transform
from dynident.mechanism.sidecar import apply_sidecar
from dynident.mechanism.xml import (
    naming_file,
    parse_numbers,
    parse_xml,
    quoted,
    read_bytes,
    text_attribute,
    unique_name,
    warn_of_impossible,
)

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element


KINDS = {"revolute": "revolute", "continuous": "continuous", "prismatic": "prismatic", "fixed": "fixed"}
KINDS |= {"universal": "universal", "ball": "spherical"}
CUTS = {"revolute": "revolute", "continuous": "revolute", "prismatic": "prismatic", "fixed": "weld"}
CUTS |= {"universal": "universal", "ball": "spherical"}
WORLD, MODEL = "world", "__model__"
ENDLESS = 1e15  # limits beyond this mean none: SDF writes 1e16


def read_sdf(path: str | os.PathLike[str], sidecar: str | os.PathLike[str] | None = None) -> Mechanism:
    """Read an SDF file with one model."""
    with naming_file(path):
        root = parse_xml(read_bytes(path, "SDF"), "sdf")
        mechanism = _Model(root, Path(path).name).mechanism()
    return mechanism if sidecar is None else apply_sidecar(mechanism, sidecar)


@dataclass
class _Axis:
    """An <axis> element."""

    direction: Array
    limits: Limits
    terms: dict[str, float]
    mimic: Element | None


class _Model:
    """The model of a file."""

    def __init__(self, root: Element, source: str) -> None:
        self.source = source
        self.version = tuple(int(x) for x in root.get("version", "1.9").split(".") if x.isdigit()) or (1, 9)
        worlds = root.findall("world")
        models = [m for place in (root, *worlds) for m in place.findall("model")]
        if len(models) != 1:
            what = "no <model>" if not models else f"{len(models)} models ({quoted(m.get('name', '') for m in models)})"
            raise DescriptionError(f"the file has {what}; give a file with one robot")
        (self.model,) = models
        for tag in ("model", "include"):
            if self.model.find(tag) is not None:
                raise DescriptionError(f"the model holds a <{tag}>, which is not read; flatten it (gz sdf -p prints it whole)")
        gravity = next((w.find("gravity") for w in worlds if w.find("gravity") is not None), None)
        self.gravity = parse_numbers((gravity.text if gravity is not None else "") or "0 0 -9.8", 3, "<gravity>")
        self.links = self._named("link")
        self.joints = self._named("joint")
        self.frames = self._named("frame")
        if not self.links:
            raise DescriptionError("the model has no <link>; describe at least a base and one link")
        self._known: dict[str, Placement] = {MODEL: Placement(), WORLD: self._pose(self.model, "model").inverse()}

    def _named(self, tag: str) -> dict[str, Element]:
        found: dict[str, Element] = {}
        for element in self.model.findall(tag):
            name = text_attribute(element, "name", f"<{tag}> number {len(found) + 1}")
            if name in found:
                raise DescriptionError(f"{tag} name '{name}' is used twice; give every {tag} its own name")
            found[name] = element
        return found

    # ---- frames -----------------------------------------------------------------------------------------------------
    @staticmethod
    def _pose(element: Element, where: str) -> Placement:
        pose = element.find("pose")
        if pose is None or not (pose.text or "").strip():
            return Placement()
        text = pose.text or ""
        if pose.get("rotation_format") == "quat_xyzw":
            x = parse_numbers(text, 7, f"{where} <pose>")
            return Placement(quaternion_matrix(x[[6, 3, 4, 5]], f"{where} <pose>"), x[:3])
        x = parse_numbers(text, 6, f"{where} <pose>")
        scale = np.pi / 180.0 if pose.get("degrees") in ("true", "1") else 1.0
        return Placement.from_rpy(x[:3], scale * x[3:])

    def place(self, name: str, depth: int = 0) -> Placement:
        """Return the pose of a frame in the model's frame."""
        if name in self._known:
            return self._known[name]
        if depth > len(self.links) + len(self.joints) + len(self.frames):
            raise DescriptionError(f"the pose of '{name}' refers to itself; correct its relative_to")
        if name in self.links:
            element, default = self.links[name], MODEL
        elif name in self.joints:
            element, default = self.joints[name], self._end(name, "child")
        elif name in self.frames:
            element = self.frames[name]
            default = element.get("attached_to") or MODEL
        else:
            raise DescriptionError(f"there is no link, joint or frame '{name}'; correct the name")
        pose = element.find("pose")
        base = (pose.get("relative_to") if pose is not None else None) or default
        self._known[name] = self.place(base, depth + 1) @ self._pose(element, f"'{name}'")
        return self._known[name]

    def _end(self, joint: str, role: str) -> str:
        element = self.joints[joint].find(role)
        name = (element.text or "").strip() if element is not None else ""
        seen: set[str] = set()
        while name in self.frames and name not in seen:  # a joint may name a frame for the link that carries it
            seen.add(name)
            name = self.frames[name].get("attached_to") or ""
        if name not in self.links and not (name == WORLD and role == "parent"):
            raise DescriptionError(f"joint '{joint}': {role} link '{name}' does not exist; add it or correct the name")
        return name

    # ---- bodies and joints ------------------------------------------------------------------------------------------
    def _inertia(self, name: str) -> Array | None:
        inertial = self.links[name].find("inertial")
        if inertial is None:
            return None
        where = f"link '{name}'"
        mass = _number(inertial, "mass", 1.0, where)
        if mass < 0.0:
            raise DescriptionError(f"{where}: mass is {mass} kg; give a positive number")
        tensor = inertial.find("inertia")
        default = {"ixx": 1.0, "iyy": 1.0, "izz": 1.0}
        xx, xy, xz, yy, yz, zz = (
            default.get(key, 0.0) if tensor is None else _number(tensor, key, default.get(key, 0.0), where)
            for key in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
        )
        frame = self._pose(inertial, f"{where} <inertial>")
        phi = from_com(mass, np.zeros(3), np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]))
        return transform(phi, frame.rotation, frame.translation)

    def _axis(self, joint: str, tag: str) -> _Axis:
        element, where = self.joints[joint].find(tag), f"joint '{joint}' <{tag}>"
        if element is None:
            return _Axis(np.array([0.0, 0.0, 1.0]), Limits(), {}, None)
        xyz = element.find("xyz")
        direction = parse_numbers((xyz.text if xyz is not None else None) or "0 0 1", 3, f"{where} <xyz>")
        wanted = xyz.get("expressed_in") if xyz is not None else None
        old = (element.findtext("use_parent_model_frame") or "").strip() in ("1", "true") or self.version < (1, 5)
        if wanted or old:
            other = self.place(wanted) if wanted else Placement()
            direction = self.place(joint).rotation.T @ other.rotation @ direction
        limit, dynamics = element.find("limit"), element.find("dynamics")
        low, high = (_number(limit, key, sign * 1e16, where) for key, sign in (("lower", -1), ("upper", 1)))
        effort, velocity = (_number(limit, key, -1.0, where) for key in ("effort", "velocity"))
        limits = Limits(
            low if abs(low) < ENDLESS else -np.inf,
            high if abs(high) < ENDLESS else np.inf,
            velocity if 0.0 <= velocity < ENDLESS else np.inf,
            effort if 0.0 <= effort < ENDLESS else np.inf,
        )
        terms = {}
        for key, symbol in (("damping", "fv"), ("friction", "fc"), ("spring_stiffness", "k")):
            value = _number(dynamics, key, 0.0, where)
            if value:
                terms[symbol] = value
        if "k" in terms:
            rest = _number(dynamics, "spring_reference", 0.0, where)
            terms |= {"off": -terms["k"] * rest} if rest else {}
        return _Axis(direction, limits, terms, element.find("mimic"))

    def mechanism(self) -> Mechanism:
        """Return the robot."""
        bodies: dict[str, Body] = {}
        moved = {self._end(name, "child") for name in self.joints}
        for name in self.links:
            phi = self._inertia(name)
            bodies[name] = Body(name, np.zeros(10) if phi is None and name in moved else phi)
        warn_of_impossible(bodies.values(), self.source)
        parts = _Parts()
        first = next((name for name in self.links if name not in moved), next(iter(self.links)))
        tied = [name for name in self.joints if self._end(name, "parent") == WORLD]
        parts.reached.add(WORLD if tied else first)
        waiting = list(self.joints)
        while waiting:
            ready = [name for name in waiting if self._end(name, "parent") in parts.reached]
            if not ready:
                raise DescriptionError(
                    f"joints {quoted(waiting)} are not connected to '{WORLD if tied else first}'; add a joint"
                )
            waiting.remove(ready[0])
            self._join(ready[0], parts)
        lost = [name for name in self.links if name not in parts.reached]
        if lost:
            raise DescriptionError(f"links {quoted(lost)} are not connected; add a joint of type fixed")
        every = (*((Body(WORLD),) if tied else ()), *bodies.values(), *parts.frames)
        gravity = self.gravity if tied else self.place(first).rotation.T @ self.place(WORLD).rotation @ self.gravity
        return Mechanism(
            self.model.get("name") or Path(self.source).stem,
            every,
            tuple(parts.joints),
            tuple(parts.loops),
            tuple(parts.couplings),
            tuple(self._actuators(parts)) if parts.loops else (),
            gravity=gravity,
            source=self.source,
        )

    def _actuators(self, parts: _Parts) -> list[Actuator]:
        """Return the drives of a robot with loops: joints named by plug-ins, or with an effort limit."""
        known = {joint.name: joint for joint in parts.joints if len(joint.coordinates) == 1}
        named = [(e.text or "").strip() for e in self.model.iter("joint_name")]
        driven = [name for name in dict.fromkeys(named) if name in known]
        driven = driven or [name for name, joint in known.items() if 0.0 < joint.limits.effort < np.inf]
        return [Actuator(name, {name: 1.0}) for name in driven]

    def _join(self, name: str, parts: _Parts) -> None:
        element, where = self.joints[name], f"joint '{name}'"
        kind = text_attribute(element, "type", where)
        if kind not in KINDS:
            raise DescriptionError(f"{where}: type is '{kind}'; known types are {', '.join(KINDS)}")
        parent, child = self._end(name, "parent"), self._end(name, "child")
        axis, second = self._axis(name, "axis"), self._axis(name, "axis2")
        here = self.place(name)
        before, after = (self.place(link).inverse() @ here for link in (parent, child))
        if child in parts.reached:
            parts.loops.append(Loop(name, CUTS[kind], parent, child, before, after, axis.direction, second.direction))
            return
        parts.reached.add(child)
        own = {f"{symbol}.r1": x for symbol, x in axis.terms.items()} if kind == "universal" else axis.terms
        own |= {f"{symbol}.r2": x for symbol, x in second.terms.items()} if kind == "universal" else {}
        plain = np.allclose(after.rotation, np.eye(3), atol=1e-12) and not np.any(after.translation)
        taken = {*self.links, *(body.name for body in parts.frames)}
        end = child if plain else unique_name(f"{child}/{name}", taken.__contains__)
        limits = axis.limits if kind in ("revolute", "prismatic") else Limits(effort=axis.limits.effort)
        joint = Joint(name, KINDS[kind], parent, end, before, axis.direction, second.direction, limits, own)
        parts.joints.append(joint if kind != "fixed" else Joint(name, "fixed", parent, end, before))
        if not plain:
            parts.frames.append(Body(end))
            label = unique_name(f"{child}_fixed", {*self.joints}.__contains__)
            parts.joints.append(Joint(label, "fixed", end, child, after.inverse()))
        if axis.mimic is not None:
            followed = text_attribute(axis.mimic, "joint", f"{where} <mimic>")
            ratio, offset, start = (
                _number(axis.mimic, k, d, where) for k, d in (("multiplier", 1), ("offset", 0), ("reference", 0))
            )
            parts.couplings.append(Coupling(name, {followed: ratio}, offset - ratio * start))


@dataclass
class _Parts:
    """Elements of the robot collected so far."""

    joints: list[Joint] = field(default_factory=list)
    frames: list[Body] = field(default_factory=list)
    loops: list[Loop] = field(default_factory=list)
    couplings: list[Coupling] = field(default_factory=list)
    reached: set[str] = field(default_factory=set)


def _number(element: Element | None, tag: str, default: float, where: str) -> float:
    """Return the number in a child element, or the default if it is absent."""
    text = None if element is None else element.findtext(tag)
    if text is None or not text.strip():
        return float(default)
    return float(parse_numbers(text, 1, f"{where} <{tag}>", finite=False)[0])
