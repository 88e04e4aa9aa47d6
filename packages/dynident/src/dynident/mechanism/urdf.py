"""URDF reader: links, joints, mimics and transmissions become a `Mechanism`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dynident.arrays import Array
from dynident.errors import DescriptionError
from dynident.friction.terms import TERMS
from dynident.mechanism.elements import COORDINATES, Actuator, Body, Coupling, Joint, Limits, Placement
from dynident.mechanism.mechanism import Mechanism
from dynident.mechanism.parameters import from_com, transform
from dynident.mechanism.sidecar import apply_sidecar
from dynident.mechanism.xacro.expand import expand
from dynident.mechanism.xml import (
    naming_file,
    number,
    numbers,
    parse_numbers,
    parse_xml,
    quoted,
    read_bytes,
    text_attribute,
    unique_name,
    warn_description,
    warn_of_impossible,
)

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element


KINDS = {
    "revolute": "revolute",
    "continuous": "continuous",
    "prismatic": "prismatic",
    "fixed": "fixed",
    "planar": "planar",
    "floating": "free",
}
"""URDF joint types and their kinds here."""

FAR = 1e6  # replaces an infinite limit where URDF requires a number [rad, m, rad/s, m/s, N m, N]
DYNAMICS = {
    "damping": "fv",
    "friction": "fc",
    "armature": "ia",
    "offset": "off",
    "stiffness": "k",
    "damping_positive": "fvp",
    "damping_negative": "fvn",
    "friction_positive": "fcp",
    "friction_negative": "fcn",
}
"""Attributes of <dynamics> and joint terms; only the first two are part of URDF, other programs ignore the rest.

Other terms are attributes of the same name. A `planar` joint may have one value per coordinate: ``damping_x``, ``friction_rz``
and so on.
"""


def dynamics_attributes() -> dict[str, str]:
    """Return the joint term of every attribute of <dynamics>."""
    return DYNAMICS | {symbol: symbol for symbol in TERMS if symbol not in DYNAMICS.values()}


def read_urdf(
    path: str | os.PathLike[str],
    sidecar: str | os.PathLike[str] | None = None,
    floating: bool = False,
    search: Sequence[str | os.PathLike[str]] = (),
    arguments: Mapping[str, object] | None = None,
) -> Mechanism:
    """Read a URDF file; link frames, in which all parameters are expressed, are the file's.

    A link's prior is its <inertial> expressed in the link frame: with pose (R, c) of the inertial frame,
    I_link = R I R^T - m [c]x [c]x.
    """
    with naming_file(path):
        robot = load_urdf(path, search, arguments)
        bodies = _read_links(robot)
        joints, couplings = _read_joints(robot, {body.name for body in bodies})
        moving = {joint.child for joint in joints if joint.kind != "fixed"}
        bodies = [Body(b.name, np.zeros(10)) if b.inertia is None and b.name in moving else b for b in bodies]
        # Checked before the drives are read, so that an invalid tree is reported as such.
        name = robot.get("name") or Path(path).stem
        mechanism = Mechanism(name, tuple(bodies), tuple(joints), couplings=tuple(couplings), source=Path(path).name)
        mechanism = mechanism.with_free_base() if floating else mechanism
        drives = _drives(robot, mechanism)
        driven = {name: drives.get(name, direct) for direct in mechanism.actuators for name in direct.coupling}
        mechanism = replace(mechanism, actuators=tuple(driven.values()))
    mechanism = mechanism if sidecar is None else apply_sidecar(mechanism, sidecar, tuple(drives.values()))
    with naming_file(path):
        _check_inertias(mechanism)  # a sidecar may declare links massless
    return mechanism


def load_urdf(
    path: str | os.PathLike[str],
    search: Sequence[str | os.PathLike[str]] = (),
    arguments: Mapping[str, object] | None = None,
) -> Element:
    """Return the root element of a URDF or xacro file; arguments as in `read_urdf`."""
    if Path(path).suffix.lower() != ".xacro":
        return parse_xml(read_bytes(path, "URDF"), "robot")
    if arguments is not None and not isinstance(arguments, Mapping):
        raise DescriptionError(f"arguments is {arguments!r}; give a mapping of names to values")
    return expand(path, search, arguments)


# ---- links ----------------------------------------------------------------------------------------------------------


def _origin(element: Element | None, where: str) -> Placement:
    origin = None if element is None else element.find("origin")
    return Placement.from_rpy(
        numbers(origin, "xyz", 3, np.zeros(3), f"{where} <origin>"),
        numbers(origin, "rpy", 3, np.zeros(3), f"{where} <origin>"),
    )


def _read_inertia(inertial: Element, where: str) -> Array:
    """Return the ten parameters of an <inertial> element, in the link frame."""
    mass_element, tensor = inertial.find("mass"), inertial.find("inertia")
    if mass_element is None or tensor is None:
        lost = "mass" if mass_element is None else "inertia"
        raise DescriptionError(f"{where} <inertial> has no <{lost}>; add it or remove <inertial>")
    mass = number(mass_element, "value", None, f"{where} <mass>")
    if mass < 0.0:
        raise DescriptionError(f"{where}: mass is {mass} kg; give a positive number")
    xx, xy, xz, yy, yz, zz = (
        number(tensor, key, None, f"{where} <inertia>") for key in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
    )
    frame = _origin(inertial, f"{where} <inertial>")
    phi = from_com(mass, np.zeros(3), np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]))
    return transform(phi, frame.rotation, frame.translation)


def _read_links(robot: Element) -> list[Body]:
    bodies: list[Body] = []
    for link in robot.findall("link"):
        name = text_attribute(link, "name", f"<link> number {len(bodies) + 1}")
        inertial = link.find("inertial")
        bodies.append(Body(name, None if inertial is None else _read_inertia(inertial, f"link '{name}'")))
    if not bodies:
        raise DescriptionError("the robot has no <link>; describe at least a base and one link")
    return bodies


def _check_inertias(mechanism: Mechanism) -> None:
    """Warn of links with missing or inconsistent inertia."""
    moving = {joint.child for joint in mechanism.joints if joint.kind != "fixed"}
    groups = zip(mechanism.tree.bodies, mechanism.tree.inertias.reshape(-1, 10), strict=True)
    empty = [body for body, phi in groups if not np.any(phi)]  # links fixed to a moving link may carry the mass
    if empty:
        warn_description(
            f"{mechanism.source}: moving links {quoted(empty)} have no <inertial>, or mass 0 and inertia 0; their prior is zero"
        )
    for body in mechanism.bodies:
        if body.name in moving and body.inertia is not None and body.inertia[0] == 0.0 and np.any(body.inertia):
            raise DescriptionError(f"link '{body.name}' has mass 0 but an inertia that is not; give its mass")
    warn_of_impossible(mechanism.bodies, mechanism.source)


# ---- joints ---------------------------------------------------------------------------------------------------------


def _read_joints(robot: Element, links: set[str]) -> tuple[list[Joint], list[Coupling]]:
    joints: list[Joint] = []
    couplings: list[Coupling] = []
    elements = robot.findall("joint")
    names = {element.get("name") for element in elements}
    for element in elements:
        name = text_attribute(element, "name", f"<joint> number {len(joints) + 1}")
        where = f"joint '{name}'"
        kind = text_attribute(element, "type", where)
        if kind not in KINDS:
            raise DescriptionError(f"{where}: type is '{kind}'; known types are {', '.join(KINDS)}")
        ends = {}
        for role in ("parent", "child"):
            end = element.find(role)
            if end is None:
                raise DescriptionError(f'{where} has no <{role}>; add <{role} link="..."/>')
            ends[role] = text_attribute(end, "link", f"{where} <{role}>")
            if ends[role] not in links:
                raise DescriptionError(f"{where}: {role} link '{ends[role]}' does not exist; add it or correct the name")
        axis = numbers(element.find("axis"), "xyz", 3, (1.0, 0.0, 0.0), f"{where} <axis>")
        if kind == "fixed":
            axis = np.array([0.0, 0.0, 1.0])  # meaningless, often zero
        joints.append(
            Joint(
                name,
                KINDS[kind],
                ends["parent"],
                ends["child"],
                _origin(element, where),
                axis,
                limits=_read_limits(element.find("limit"), kind, where),
                terms=_read_terms(element.find("dynamics"), KINDS[kind], where),
            )
        )
        mimic = element.find("mimic")
        if mimic is not None and kind != "fixed":
            followed = text_attribute(mimic, "joint", f"{where} <mimic>")
            if followed not in names:
                raise DescriptionError(f"{where} mimics joint '{followed}', which does not exist; correct the name")
            ratio = number(mimic, "multiplier", 1.0, f"{where} <mimic>")
            couplings.append(Coupling(name, {followed: ratio}, number(mimic, "offset", 0.0, f"{where} <mimic>")))
    return joints, couplings


POSITIVE = ("velocity", "effort", "acceleration", "deceleration", "jerk")


def _read_limits(limit: Element | None, kind: str, where: str) -> Limits:
    if limit is None or kind == "fixed":
        return Limits()
    # Acceleration, deceleration and jerk are part of URDF 1.2; the lower of deceleration and acceleration limits both.
    values = {"lower": -np.inf, "upper": np.inf, **dict.fromkeys(POSITIVE, np.inf)}
    for key, default in tuple(values.items()):
        values[key] = number(limit, key, default, f"{where} <limit>", finite=False)
        if abs(values[key]) >= FAR:
            values[key] = default
        if key in POSITIVE and values[key] < 0.0:
            raise DescriptionError(f"{where} <limit>: {key} is {values[key]}; give a positive number")
    if kind not in ("revolute", "prismatic"):  # the others are unbounded, regardless of the file
        values |= {"lower": -np.inf, "upper": np.inf}
    values["acceleration"] = min(values["acceleration"], values.pop("deceleration"))
    return Limits(**values)


def _read_terms(dynamics: Element | None, kind: str, where: str) -> Mapping[str, float]:
    terms: dict[str, float] = {}
    if dynamics is None or kind == "fixed":
        return terms
    for attribute, symbol in dynamics_attributes().items():
        for suffix in ("", *COORDINATES[kind]):
            key = f"{attribute}_{suffix}" if suffix else attribute
            if key in dynamics.attrib:
                terms[f"{symbol}.{suffix}" if suffix else symbol] = number(dynamics, key, 0.0, f"{where} <dynamics>")
    return terms


# ---- drives ---------------------------------------------------------------------------------------------------------


def _drives(robot: Element, mechanism: Mechanism) -> dict[str, Actuator]:
    """Return the actuator of every joint with its own <transmission>."""
    single = {name for actuator in mechanism.actuators for name in actuator.coupling}
    taken = set(single)
    drives: dict[str, Actuator] = {}
    for transmission in robot.findall("transmission"):
        label = transmission.get("name") or "without name"
        joints = [joint.get("name", "") for joint in transmission.findall("joint")]
        if len(joints) != 1:
            problem = f"names {len(joints)} joints; declare such a drive as an [[actuator]] in a sidecar"
        elif joints[0] not in single:
            problem = f"drives '{joints[0]}', which is not an independent joint with one axis"
        elif joints[0] in drives:
            problem = f"drives '{joints[0]}', which already has a transmission"
        else:
            motor = transmission.find("actuator")
            name = (motor.get("name") if motor is not None else None) or joints[0]
            name = unique_name(name, (taken - {joints[0]}).__contains__)
            taken.add(name)
            # Old files have the reduction next to the actuator, new ones inside.
            texts = [element.text or "" for element in transmission.iter("mechanicalReduction")]
            what = f"transmission '{label}': mechanicalReduction"
            drives[joints[0]] = Actuator(name, {joints[0]: 1.0}, float(parse_numbers(texts[0], 1, what)[0]) if texts else 1.0)
            continue
        warn_description(f"{mechanism.source}: transmission '{label}' {problem}; it is ignored")
    return drives
