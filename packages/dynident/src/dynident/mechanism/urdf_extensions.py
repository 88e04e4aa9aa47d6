"""Elements of URDF that single programs read: Drake's rotor inertias, Gazebo's springs and its world."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING

from dynident.mechanism.xml_patch import XmlPatch, exact

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

DRAKE = "http://drake.mit.edu"


def drake_rotors(data: bytes, rotors: Mapping[str, float]) -> bytes:
    """Return URDF text whose joints have an actuator with a rotor inertia, seen at the joint (gear ratio 1)."""
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
    """Return URDF text whose first link is fixed to Gazebo's world and has mass.

    Gazebo leaves out a link without mass together with all joints behind it, and lets a base fall that is not fixed to a link
    of the name ``world``. What is fixed to the world moves nothing: its mass does not matter.
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
