"""URDF writer: puts identified numbers into a copy of the original file and preserves every other byte.

It also writes elements for single programs: Drake's rotor inertias, Gazebo's springs and its world.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree.ElementTree import indent, tostring

import numpy as np

from dynident.arrays import Array
from dynident.errors import DescriptionError, DescriptionWarning
from dynident.files import write_atomic
from dynident.mechanism.elements import COORDINATES, Joint
from dynident.mechanism.mechanism import Mechanism
from dynident.mechanism.parameters import Parameters, to_com, transform
from dynident.mechanism.urdf import KINDS, dynamics_attributes, load_urdf, read_urdf
from dynident.mechanism.xml import XmlPatch, exact, naming_file, read_bytes

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element


def write_urdf(
    source: str | os.PathLike[str],
    mechanism: Mechanism,
    parameters: Parameters,
    path: str | os.PathLike[str],
    search: Sequence[str | os.PathLike[str]] = (),
    arguments: Mapping[str, object] | None = None,
) -> Path:
    """Write a copy of a URDF file with identified parameters; reading it back gives the same inverse dynamics.

    Only <inertial> of moving links and <dynamics> of joints change, and only where the numbers differ; comments, order
    and blanks stay. A moving link gets its rigid group's inertia minus that of the links fixed to it, which keep
    their own. The inertial frame becomes parallel to the link frame, at the centre of mass.

    Parameters
    ----------
    source : path-like
        The URDF or xacro file the mechanism was read from; a .xacro is written expanded.
    mechanism : Mechanism
        The robot.
    parameters : Parameters
        Standard parameters with the names of ``mechanism.parameters``; every body needs a positive mass.
    path : path-like
        File to write, which may be `source` itself if it is a URDF.
    search, arguments : see `read_urdf`
        For xacro: as in reading the file.
    """
    with naming_file(source):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DescriptionWarning)  # already issued when the mechanism was read
            old = read_urdf(source, search=search, arguments=arguments)
        if Path(source).suffix.lower() == ".xacro":
            if Path(path).suffix.lower() == ".xacro":
                raise DescriptionError(f"'{path}' is a .xacro, but only its expansion can be written; name a .urdf")
            expansion = load_urdf(source, search, arguments)
            indent(expansion)
            patch = XmlPatch(tostring(expansion, encoding="utf-8", xml_declaration=True) + b"\n", "robot")
        else:
            patch = XmlPatch(read_bytes(source, "URDF"), "robot")
        links = {link.get("name", "").strip(): link for link in patch.root.findall("link")}
        for body, phi in bodies_to_write(mechanism, parameters, old).items():
            _patch_inertial(patch, links[body], body, phi)
        new = {joint.name: joint for joint in mechanism.with_parameters(parameters).joints}
        for element in patch.root.findall("joint"):
            joint = new.get(element.get("name", "").strip())
            if joint is not None and joint.kind != "fixed" and joint.kind == KINDS[element.get("type", "").strip()]:
                _patch_dynamics(patch, element, joint)
        content = patch.result()
    return write_atomic(path, content)


def bodies_to_write(mechanism: Mechanism, parameters: Parameters, old: Mechanism, every: bool = False) -> dict[str, Array]:
    """Return the inertial parameters that differ from the file's, by body."""
    new = mechanism.with_parameters(parameters)
    known = {body.name: body.inertia for body in old.bodies}
    owner_of_node = {new.frame(body)[0]: body for body in new.tree.bodies}
    values: dict[str, Array] = {}
    lost: dict[str, Array] = {}
    for body in new.bodies:
        if body.inertia is None:
            continue
        if body.name in known:
            values[body.name] = np.array(body.inertia)
            continue
        # A body that is not in the file, such as a payload, is carried by the link it is fixed to.
        node, pose = new.frame(body.name)
        owner = owner_of_node.get(node, body.name)
        if owner == body.name or owner not in known:
            raise DescriptionError(f"body '{body.name}' is not in the file and no link of the file carries it; add it")
        seen = new.frame(owner)[1].inverse() @ pose
        lost[owner] = lost.get(owner, np.zeros(10)) + transform(body.inertia, seen.rotation, seen.translation)
    # A mass is a difference of sums of masses: below their rounding error it is zero, whatever its sign.
    heaviest = max((abs(float(phi[0])) for phi in values.values()), default=0.0)
    least = len(values) * np.finfo(float).eps * heaviest
    changed = {}
    for name, phi in values.items():
        before = known[name]
        total = phi + lost.get(name, 0.0)
        same = np.array_equal(total, np.zeros(10) if before is None else before)
        if same and not (every and total[0] > least and new.frame(name)[0] >= 0):
            continue
        if not total[0] > least:
            raise DescriptionError(
                f"body '{name}' has mass {total[0]:.6g} kg without the links fixed to it, so it has no centre of mass to "
                "write; use physically consistent parameters"
            )
        changed[name] = total
    return changed


def _patch_inertial(patch: XmlPatch, link: Element, name: str, phi: Array) -> None:
    mass, com, inertia = to_com(phi)
    keys = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
    tensor = {key: exact(value) for key, value in zip(keys, inertia[np.triu_indices(3)], strict=True)}
    inertial = link.find("inertial")
    if inertial is None:
        head = f'<inertial><origin xyz="{exact(*com)}" rpy="0 0 0"/><mass value="{exact(mass)}"/>'
        written = " ".join(f'{key}="{value}"' for key, value in tensor.items())
        patch.insert(link, f"{head}<inertia {written}/></inertial>")
        return
    origin, mass_element, tensor_element = (inertial.find(tag) for tag in ("origin", "mass", "inertia"))
    if mass_element is None or tensor_element is None:  # read_urdf refuses such a file
        raise DescriptionError(f"link '{name}' <inertial> has no <mass> or no <inertia>; add it")
    if origin is None:
        patch.insert(inertial, f'<origin xyz="{exact(*com)}" rpy="0 0 0"/>')
    else:
        patch.set(origin, "xyz", exact(*com))
        if any(float(word) for word in origin.get("rpy", "0 0 0").split()):
            patch.set(origin, "rpy", "0 0 0")
    patch.set(mass_element, "value", exact(mass))
    for key, value in tensor.items():
        patch.set(tensor_element, key, value)


def _patch_dynamics(patch: XmlPatch, element: Element, joint: Joint) -> None:
    """Write the joint's terms into <dynamics>; attributes of removed terms become zero."""
    dynamics = element.find("dynamics")
    given: dict[str, str] = {} if dynamics is None else dict(dynamics.attrib)
    changed: dict[str, float] = {}
    for attribute, symbol in dynamics_attributes().items():
        for suffix in ("", *filter(None, COORDINATES[joint.kind])):
            key, term = (f"{attribute}_{suffix}", f"{symbol}.{suffix}") if suffix else (attribute, symbol)
            # An omitted value is zero, or the joint's common value; a value in the file is kept if it is the same number.
            before = float(given.get(key, given.get(attribute, "0") if term in joint.terms else "0"))
            value = joint.terms.get(term, 0.0)
            if value != before:
                changed[key] = value
    if not changed:
        return
    if not {"damping", "friction"}.intersection((*given, *changed)):
        changed["damping"] = 0.0  # other programs refuse <dynamics> without either
    if dynamics is None:
        written = " ".join(f'{key}="{exact(value)}"' for key, value in changed.items())
        patch.insert(element, f"<dynamics {written}/>", last=True)
        return
    for key, value in changed.items():
        patch.set(dynamics, key, exact(value))


DRAKE = "http://drake.mit.edu"


def drake_rotors(data: bytes, rotors: Mapping[str, float]) -> bytes:
    """Return URDF text with an actuator and its rotor inertia per joint, at the joint side (gear ratio 1)."""
    patch = XmlPatch(data, "robot")
    patch.set(patch.root, "xmlns:drake", DRAKE)
    known: dict[str, Element] = {}
    for transmission in patch.root.findall("transmission"):
        actuator, joint = transmission.find("actuator"), transmission.find("joint")
        if actuator is not None and joint is not None:
            known.setdefault(joint.get("name", "").strip(), actuator)
    for name, value in rotors.items():
        numbers = {"rotor_inertia": value, "gear_ratio": 1.0}
        if name in known:
            for tag, number in numbers.items():
                element = known[name].find(f"{{{DRAKE}}}{tag}")
                if element is None:
                    patch.insert(known[name], f'<drake:{tag} value="{exact(number)}"/>')
                else:
                    patch.set(element, "value", exact(number))
            continue
        inner = "".join(f'<drake:{tag} value="{exact(number)}"/>' for tag, number in numbers.items())
        label = escape(name)
        patch.insert(
            patch.root,
            f'<transmission name="{label}_drive"><type>transmission_interface/SimpleTransmission</type>'
            f'<joint name="{label}"><hardwareInterface>hardware_interface/EffortJointInterface</hardwareInterface></joint>'
            f'<actuator name="{label}_motor">{inner}</actuator></transmission>',
            last=True,
        )
    return patch.result()


def gazebo_springs(data: bytes, springs: Mapping[str, tuple[float, float]]) -> bytes:
    """Return URDF text with Gazebo's spring elements, tau = stiffness (q - reference)."""
    patch = XmlPatch(data, "robot")
    for name, (stiffness, reference) in springs.items():
        patch.insert(
            patch.root,
            f'<gazebo reference="{escape(name)}"><implicitSpringDamper>1</implicitSpringDamper>'
            f"<springStiffness>{exact(stiffness)}</springStiffness>"
            f"<springReference>{exact(reference)}</springReference></gazebo>",
            last=True,
        )
    return patch.result()


def gazebo_base(data: bytes) -> bytes:
    """Return URDF text with the first link fixed to Gazebo's world, with mass.

    Gazebo removes a massless link together with all joints behind it, and lets a base fall unless it is fixed to a link
    named ``world``. Links fixed to the world do not move, so their mass does not matter.
    """
    patch = XmlPatch(data, "robot")
    children = {(child.get("link") or "").strip() for child in patch.root.findall("joint/child")}
    for link in patch.root.findall("link"):
        name = (link.get("name") or "").strip()
        if name in children or name == "world":
            continue
        if link.find("inertial") is None:
            inertia = '<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/>'
            patch.insert(link, f'<inertial><mass value="1"/>{inertia}</inertial>')
        fixed = f'<joint name="fixed_to_world" type="fixed"><parent link="world"/><child link="{escape(name)}"/></joint>'
        patch.insert(patch.root, f'<link name="world"/>{fixed}', last=True)
    return patch.result()
