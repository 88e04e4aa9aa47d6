"""MJCF equality constraints and actuators: cut joints, couplings and motors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from dynident.arrays import Array
from dynident.errors import DescriptionError
from dynident.mechanism.coupling import Coupling
from dynident.mechanism.elements import Actuator, Joint, Loop, Placement
from dynident.mechanism.mechanism import Mechanism
from dynident.mechanism.mjcf_file import ACTUATORS, quaternion_matrix
from dynident.mechanism.xml import number, numbers, parse_numbers, text_attribute, unique_name, warn_description

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

    from dynident.mechanism.mjcf import MjcfTree


def read_constraints(tree: MjcfTree, source: str) -> tuple[list[Loop], list[Coupling], dict[str, float]]:
    """Read <equality>."""
    loops: list[Loop] = []
    couplings: list[Coupling] = []
    held: dict[str, float] = {}
    unread: set[str] = set()
    for element in tree.file.sections("equality"):
        attributes = tree.file.attributes(element)
        if attributes.get("active", "true") == "false":
            continue
        if element.tag in ("connect", "weld"):
            loop = _loop(tree, element, attributes, {loop.name for loop in loops})
            if {loop.body_a, loop.body_b} & tree.mocap:
                warn_description(f"{source}: <{element.tag} name='{loop.name}'> to a mocap body is ignored; a program moves it")
            else:
                loops.append(loop)
        elif element.tag == "joint":
            _coupling(tree, attributes, couplings, held)
        elif element.tag not in unread:
            unread.add(element.tag)
            warn_description(f"{source}: <equality><{element.tag}> is ignored; only connect, weld and joint are read")
    return loops, couplings, held


def _loop(tree: MjcfTree, element: Element, attributes: Mapping[str, str], taken: set[str]) -> Loop:
    kind = element.tag
    name = attributes.get("name") or unique_name(kind, taken.__contains__)
    where = f"<{kind} name='{name}'>"
    if "site1" in attributes:
        ends = []
        for key in ("site1", "site2"):
            site = text_attribute(attributes, key, where)
            if site not in tree.sites:
                raise DescriptionError(f"{where}: {key} '{site}' does not exist; correct the name")
            ends.append(tree.sites[site])
        (a, pose_a), (b, pose_b) = ends
    else:
        a, b = text_attribute(attributes, "body1", where), attributes.get("body2", "world")
        for key, body in (("body1", a), ("body2", b)):
            if body not in tree.rest:
                raise DescriptionError(f"{where}: {key} '{body}' does not exist; correct the name")
        # What the file leaves out is as it is at qpos0.
        a_to_b = tree.rest[b].inverse() @ tree.rest[a]
        if kind == "connect":
            pose_a = Placement(np.eye(3), numbers(attributes, "anchor", 3, None, where))
            pose_b = a_to_b @ pose_a
        else:
            pose = numbers(attributes, "relpose", 7, (0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0), where)
            pose_b = Placement()
            pose_a = a_to_b.inverse()
            if np.any(pose[3:]):
                pose_a = Placement(quaternion_matrix(pose[3:], f"{where}: relpose"), pose[:3])
    return Loop(name, "point" if kind == "connect" else "weld", a, b, pose_a, pose_b)


def _coupling(tree: MjcfTree, attributes: Mapping[str, str], couplings: list[Coupling], held: dict[str, float]) -> None:
    """Append joint1 - ref1 = c0 + c1 (joint2 - ref2) + c2 (joint2 - ref2)^2 + ... up to the fourth power."""
    first = text_attribute(attributes, "joint1", "<equality><joint>")
    where = f"<equality><joint joint1='{first}'>"
    second = attributes.get("joint2")
    for key, name in (("joint1", first), ("joint2", second)):
        if name is not None and name not in tree.reference:
            raise DescriptionError(f"{where}: {key} '{name}' is not a hinge or slide; correct the name")
    given = parse_numbers(attributes.get("polycoef", "0 1 0 0 0"), None, f"{where}: polycoef")
    c = np.concatenate([given, [0.0, 1.0, 0.0, 0.0, 0.0][given.size :]])
    if second is None:
        held[first] = tree.reference[first] + float(c[0])
        return
    if np.any(c[2:]):
        couplings.append(_polynomial(first, second, c, tree.reference[first], tree.reference[second]))
        return
    offset = tree.reference[first] + float(c[0]) - float(c[1]) * tree.reference[second]
    couplings.append(Coupling(first, {second: float(c[1])}, offset))


def _polynomial(first: str, second: str, c: Array, ref1: float, ref2: float) -> Coupling:
    """Return joint1 = ref1 + sum_k c_k (joint2 - ref2)^k as a coupling with its derivatives."""
    value = np.polynomial.Polynomial(c)
    slope, curve = value.deriv(), value.deriv(2)
    return Coupling(
        first,
        {second: 1.0},
        ref1,
        function=lambda x: np.asarray(value(x[:, 0] - ref2)),
        gradient=lambda x: np.asarray(slope(x - ref2)),
        hessian=lambda x: np.asarray(curve(x - ref2))[:, :, None],
    )


def read_actuators(tree: MjcfTree, mechanism: Mechanism, source: str) -> list[Actuator]:
    """Read <actuator>: q_motor = gear (sum_j c_j q_j), where c comes from a joint or a fixed tendon."""
    tendons = {e.get("name", ""): e for e in tree.file.sections("tendon") if e.tag == "fixed"}
    single = {name for name in mechanism.tree.coordinates if _one_axis(mechanism, name)}
    matrix, constant = mechanism.coupling_map
    row_of = {name: i for i, name in enumerate(mechanism.tree.coordinates)}
    actuators: list[Actuator] = []
    driven: dict[tuple[str, ...], str] = {}
    for element in tree.file.sections("actuator"):
        if element.tag not in ACTUATORS:
            raise DescriptionError(f"<actuator><{element.tag}> is unknown; known ones are {', '.join(ACTUATORS)}")
        attributes = tree.file.attributes(element)
        joint = attributes.get("joint", attributes.get("jointinparent"))
        taken = {actuator.name for actuator in actuators}
        name = attributes.get("name") or unique_name(joint or f"actuator{len(actuators) + 1}", taken.__contains__)
        where = f"actuator '{name}'"
        ratios = _actuated(attributes, joint, tendons, where)
        for other in ratios:
            if other not in {j.name for j in tree.joints}:
                raise DescriptionError(f"{where}: joint '{other}' does not exist; correct the name")
        gears = parse_numbers(attributes.get("gear", "1"), None, f"{where}: gear")
        if not ratios or any(other not in single for other in ratios) or gears.size == 0:
            warn_description(f"{source}: {where} does not act on moving joints with one axis; it is ignored")
            continue
        gear = float(gears[0])
        row = sum((c * matrix[row_of[other]] for other, c in ratios.items()), np.zeros(mechanism.dof))
        coupling = {free: float(c) for free, c in zip(mechanism.coordinate_names, row, strict=True) if c}
        offset = gear * sum(c * float(constant[row_of[other]]) for other, c in ratios.items())
        key = tuple(sorted(coupling))
        if not coupling or (len(key) == 1 and key in driven):
            problem = f"drives what '{driven[key]}' drives" if coupling else "moves nothing"
            warn_description(f"{source}: {where} {problem}; it is ignored")
            continue
        driven[key] = name
        actuators.append(Actuator(name, coupling, gear, offset))
    return actuators


def _one_axis(mechanism: Mechanism, coordinate: str) -> bool:
    joint: Joint | None = next((j for j in mechanism.joints if j.name == coordinate), None)
    return joint is not None and joint.coordinates == (coordinate,)


def _actuated(attributes: Mapping[str, str], joint: str | None, tendons: Mapping[str, Element], where: str) -> dict[str, float]:
    """Return how an actuator's length changes with each joint, empty when it acts on something else."""
    if joint is not None:
        return {joint: 1.0}
    tendon = tendons.get(attributes.get("tendon", ""))
    if tendon is None:
        return {}
    return {
        text_attribute(part, "joint", f"tendon '{tendon.get('name')}' <joint>"): number(
            part, "coef", None, f"{where}: tendon '{tendon.get('name')}' <joint>"
        )
        for part in tendon.findall("joint")
    }
