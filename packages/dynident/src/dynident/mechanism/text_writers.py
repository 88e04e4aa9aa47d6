"""A mechanism as URDF or MJCF text, for robots from another format: bodies, joints, limits, friction, without meshes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from dynident.arrays import Array
from dynident.errors import DescriptionError
from dynident.files import xml_text
from dynident.mechanism.elements import Joint, Loop, Placement
from dynident.mechanism.mechanism import Mechanism
from dynident.mechanism.mjcf import custom_keys
from dynident.mechanism.mjcf_writer import ATTRIBUTES
from dynident.mechanism.parameters import from_com, to_com, transform
from dynident.mechanism.sidecar import rpy_of
from dynident.mechanism.urdf import FAR, KINDS, dynamics_attributes
from dynident.mechanism.xml import exact

APART = 0.1  # distance of the two points that replace a hinge [m]
MJCF_LOOPS = ("point", "spherical", "weld", "revolute")  # cut joints that MJCF can close
LEAST = (
    1e-14  # mass and inertia of massless moving links for MuJoCo, which refuses less than 1e-15; below every torque that counts
)


def _attributes(numbers: Mapping[str, float]) -> str:
    return " ".join(f'{key}="{exact(x)}"' for key, x in numbers.items())


def _inertia(mechanism: Mechanism, body: str) -> tuple[float, Array, Array] | None:
    """Return mass, centre and central inertia of a body; None without mass."""
    phi = next(b.inertia for b in mechanism.bodies if b.name == body)
    return None if phi is None or not np.any(phi) else _checked(body, phi)


def _checked(body: str, phi: Array) -> tuple[float, Array, Array]:
    """Return mass, centre and central inertia of a body with mass."""
    if not phi[0] > 0.0:
        raise DescriptionError(
            f"body '{body}' has mass {phi[0]:.6g} kg; use physically consistent parameters, or save the robot as .json"
        )
    return to_com(phi)


def urdf_text(mechanism: Mechanism) -> str:
    """Return a robot as URDF."""
    newer = any(np.isfinite([joint.limits.acceleration, joint.limits.jerk]).any() for joint in mechanism.joints)
    version = ' version="1.2"' if newer else ""
    lines = ['<?xml version="1.0"?>', f'<robot name="{xml_text(mechanism.name)}"{version}>']
    held = {joint.child for joint in mechanism.joints if joint.kind == "fixed"}
    for body in mechanism.bodies:
        found = _inertia(mechanism, body.name)
        if found is None and body.inertia is not None and body.name in held:  # unknown inertia, not zero inertia
            found = (0.0, np.zeros(3), np.zeros((3, 3)))
        if found is None:
            lines.append(f'  <link name="{xml_text(body.name)}"/>')
            continue
        mass, com, tensor = found
        keys = zip(("ixx", "ixy", "ixz", "iyy", "iyz", "izz"), tensor[np.triu_indices(3)], strict=True)
        lines += [
            f'  <link name="{xml_text(body.name)}">',
            f'    <inertial><origin xyz="{exact(*com)}" rpy="0 0 0"/><mass value="{exact(mass)}"/>'
            f"<inertia {_attributes(dict(keys))}/></inertial>",
            "  </link>",
        ]
    for joint in mechanism.joints:
        lines += _urdf_joint(mechanism, joint)
    return "\n".join([*lines, "</robot>", ""])


def _urdf_joint(mechanism: Mechanism, joint: Joint) -> list[str]:
    kinds = {ours: theirs for theirs, ours in KINDS.items()}
    if joint.kind not in kinds:
        raise DescriptionError(f"joint '{joint.name}' is {joint.kind}, which URDF does not have; export for mujoco instead")
    limits = joint.limits
    kind = "continuous" if joint.kind == "revolute" and not np.isfinite([limits.lower, limits.upper]).all() else joint.kind
    place = joint.placement
    lines = [
        f'  <joint name="{xml_text(joint.name)}" type="{kinds[kind]}">',
        f'    <origin xyz="{exact(*place.translation)}" rpy="{exact(*rpy_of(place.rotation))}"/>',
        f'    <parent link="{xml_text(joint.parent)}"/>',
        f'    <child link="{xml_text(joint.child)}"/>',
    ]
    if kind != "fixed":
        lines.append(f'    <axis xyz="{exact(*joint.axis)}"/>')
    if kind in ("revolute", "prismatic", "continuous"):
        numbers = {"lower": limits.lower, "upper": limits.upper, "velocity": limits.velocity, "effort": limits.effort}
        if kind == "continuous":
            numbers = {key: numbers[key] for key in ("velocity", "effort")}
        numbers |= {key: x for key in ("acceleration", "jerk") if np.isfinite(x := getattr(limits, key))}  # URDF 1.2
        bounds = {key: float(np.clip(x, -FAR, FAR)) for key, x in numbers.items()}
        lines.append(f"    <limit {_attributes(bounds)}/>")
        names = {symbol: attribute for attribute, symbol in dynamics_attributes().items()}
        terms = {"damping": 0.0} | {names[symbol]: x for symbol, x in joint.terms.items()}
        lines.append(f"    <dynamics {_attributes(terms)}/>")
    for coupling in mechanism.couplings:
        if coupling.joint == joint.name and coupling.function is None and len(coupling.of) == 1:
            ((other, ratio),) = coupling.of.items()
            pair = f'multiplier="{exact(ratio)}" offset="{exact(coupling.offset)}"'
            lines.append(f'    <mimic joint="{xml_text(other)}" {pair}/>')
    return [*lines, "  </joint>"]


# ---- MJCF -----------------------------------------------------------------------------------------------------------


def mjcf_text(mechanism: Mechanism) -> str:
    """Return a robot as MJCF."""
    lines = [
        f'<mujoco model="{xml_text(mechanism.name)}">',
        '  <compiler angle="radian" autolimits="true"/>',
        f'  <option gravity="{exact(*mechanism.gravity)}"/>',
        "  <worldbody>",
        *_mjcf_sites(mechanism, mechanism.root, "    "),
        *_mjcf_children(mechanism, mechanism.root, "    "),
        "  </worldbody>",
    ]
    motors = []
    for actuator in mechanism.actuators:
        if len(actuator.coupling) == 1:
            ((name, ratio),) = actuator.coupling.items()
            gear = exact(actuator.ratio * ratio)
            motors.append(f'    <motor name="{xml_text(actuator.name)}" joint="{xml_text(name)}" gear="{gear}"/>')
    equal = []
    for coupling in mechanism.couplings:
        if coupling.function is None and len(coupling.of) == 1:
            ((other, ratio),) = coupling.of.items()
            pair = f'joint1="{xml_text(coupling.joint)}" joint2="{xml_text(other)}"'
            equal.append(f'    <joint {pair} polycoef="{exact(coupling.offset, ratio, 0, 0, 0)}"/>')
    for loop in mechanism.loops:
        equal += _mjcf_loop(loop)
    numerics = [f'    <numeric name="{xml_text(name)}" data="{data}"/>' for name, data in _mjcf_numerics(mechanism).items()]
    parts = (("equality", equal), ("actuator", motors), ("keyframe", _mjcf_home(mechanism)), ("custom", numerics))
    for tag, inner in parts:
        lines += [f"  <{tag}>", *inner, f"  </{tag}>"] if inner else []
    return "\n".join([*lines, "</mujoco>", ""])


def _mjcf_numerics(mechanism: Mechanism) -> dict[str, str]:
    """Return the joint terms without a MuJoCo attribute, in the layout that `read_mjcf` reads."""
    found = {}
    for joint in mechanism.joints:
        for key, symbol in custom_keys().items():
            values = [joint.term(coordinate, symbol) for coordinate in joint.coordinates]
            native = joint.kind != "free" and key in ATTRIBUTES and len(set(values)) == 1
            if any(values) and not native and not (symbol == "off" and joint.terms.get("k")):  # the springref expresses it
                found[f"dynident_{key}_{joint.name}"] = exact(*values)
    return found


def _mjcf_children(mechanism: Mechanism, parent: str, blank: str) -> list[str]:
    lines = []
    for joint in mechanism.joints:
        if joint.parent == parent:
            place = _mjcf_place(joint.placement)
            lines += [
                f'{blank}<body name="{xml_text(joint.child)}"{place}>',
                *_mjcf_inertial(mechanism, joint, f"{blank}  "),
                *_mjcf_joint(joint, f"{blank}  "),
                *_mjcf_sites(mechanism, joint.child, f"{blank}  "),
                *_mjcf_children(mechanism, joint.child, f"{blank}  "),
                f"{blank}</body>",
            ]
    return lines


def _loop_sites(loop: Loop) -> list[tuple[str, str, str, Placement]]:
    """Return name, kind, body and pose of the sites that a loop connects; a hinge becomes two points on its axis."""
    if loop.kind not in MJCF_LOOPS:
        raise DescriptionError(f"loop '{loop.name}' is cut at a {loop.kind} joint, which MJCF cannot close; cut it elsewhere")
    steps = (0.0, APART) if loop.kind == "revolute" else (0.0,)
    found = []
    for k, step in enumerate(steps):
        shift = Placement(translation=step * loop.axis)
        for side, body, place in (("a", loop.body_a, loop.placement_a), ("b", loop.body_b, loop.placement_b)):
            found.append((f"{loop.name}_{side}{k or ''}", "weld" if loop.kind == "weld" else "connect", body, place @ shift))
    return found


def _mjcf_sites(mechanism: Mechanism, body: str, blank: str) -> list[str]:
    sites = [site for loop in mechanism.loops for site in _loop_sites(loop) if site[2] == body]
    return [f'{blank}<site name="{xml_text(name)}"{_mjcf_place(place)}/>' for name, _, _, place in sites]


def _mjcf_loop(loop: Loop) -> list[str]:
    sites = _loop_sites(loop)
    return [
        f'    <{a[1]} name="{xml_text(loop.name)}{k or ""}" site1="{xml_text(a[0])}" site2="{xml_text(b[0])}"/>'
        for k, (a, b) in enumerate(zip(sites[::2], sites[1::2], strict=True))
    ]


def _mjcf_home(mechanism: Mechanism) -> list[str]:
    """Return the pose with closed loops as a key frame."""
    if not mechanism.loops or any(joint.kind in ("free", "spherical") for joint in mechanism.joints):
        return []
    home = dict(zip(mechanism.tree.coordinates, mechanism.closure.home, strict=True))
    written = [home[name] for joint in _depth_first(mechanism, mechanism.root) for name in joint.coordinates]
    return [f'    <key name="home" qpos="{exact(*written)}"/>']


def _depth_first(mechanism: Mechanism, parent: str) -> Iterator[Joint]:
    """Yield the joints in the order of MJCF, depth first."""
    for joint in mechanism.joints:
        if joint.parent == parent:
            yield joint
            yield from _depth_first(mechanism, joint.child)


def _mjcf_place(place: Placement) -> str:
    axes = exact(*place.rotation[:, 0], *place.rotation[:, 1])
    return f' pos="{exact(*place.translation)}" xyaxes="{axes}"'


def _mjcf_inertial(mechanism: Mechanism, joint: Joint, blank: str) -> list[str]:
    if joint.kind == "fixed":  # merged into the moving body that carries it, because MuJoCo checks every body separately
        return []
    node, here = mechanism.frame(joint.child)
    phi = np.zeros(10)
    for body, own in zip(mechanism.tree.bodies, mechanism.tree.inertias.reshape(-1, 10), strict=True):
        at, pose = mechanism.frame(body)
        if at == node:
            seen = here.inverse() @ pose
            phi += transform(own, seen.rotation, seen.translation)
    if not np.any(phi):
        phi = from_com(LEAST, np.zeros(3), LEAST * np.eye(3))
    mass, com, tensor = _checked(joint.child, phi)
    full = exact(*(tensor[i, j] for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))))
    return [f'{blank}<inertial pos="{exact(*com)}" mass="{exact(mass)}" fullinertia="{full}"/>']


def _mjcf_joint(joint: Joint, blank: str) -> list[str]:
    kinds = {"revolute": "hinge", "continuous": "hinge", "prismatic": "slide", "spherical": "ball"}
    if joint.kind == "fixed":
        return []
    if joint.kind == "free":
        return [f'{blank}<freejoint name="{xml_text(joint.name)}"/>']
    if joint.kind not in kinds:
        raise DescriptionError(f"joint '{joint.name}' is {joint.kind}, which MJCF does not have; describe it by single joints")
    words = [f'name="{xml_text(joint.name)}"', f'type="{kinds[joint.kind]}"']
    if joint.kind != "spherical":
        words.append(f'axis="{exact(*joint.axis)}"')
    if np.isfinite([joint.limits.lower, joint.limits.upper]).all() and joint.limits.lower < joint.limits.upper:
        words.append(f'range="{exact(joint.limits.lower, joint.limits.upper)}"')
    if np.isfinite(joint.limits.effort) and joint.limits.effort > 0.0:
        words.append(f'actuatorfrcrange="{exact(-joint.limits.effort, joint.limits.effort)}"')
    for key, symbol in (("armature", "ia"), ("damping", "fv"), ("frictionloss", "fc"), ("stiffness", "k")):
        if joint.terms.get(symbol):
            words.append(f'{key}="{exact(joint.terms[symbol])}"')
    if joint.terms.get("k") and joint.terms.get("off"):  # k (q - q0)
        words.append(f'springref="{exact(-joint.terms["off"] / joint.terms["k"])}"')
    return [f"{blank}<joint {' '.join(words)}/>"]
