"""MJCF reader: MuJoCo's bodies, joints, constraints and actuators become a `Mechanism`.

The link frames are MuJoCo's body frames and q is MuJoCo's qpos (rotation vectors in place of quaternions). A joint that is
not at its body's origin, or one of several on a body, moves a massless frame; the body is fixed to the last frame.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dynident.arrays import Array
from dynident.errors import DescriptionError
from dynident.friction.terms import TERMS
from dynident.graph.operations import horner
from dynident.mechanism.elements import (
    COORDINATES,
    STANDARD_GRAVITY,
    Actuator,
    Body,
    Coupling,
    Joint,
    Limits,
    Loop,
    Placement,
    quaternion_matrix,
    rotation_exp,
    unit_vector,
)
from dynident.mechanism.mechanism import Mechanism
from dynident.mechanism.parameters import from_com, transform
from dynident.mechanism.sidecar import without_passive_terms
from dynident.mechanism.tree import joint_transform
from dynident.mechanism.xml import (
    MAX_DEPTH,
    Folders,
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

ORIENTATIONS = ("quat", "axisangle", "xyaxes", "zaxis", "euler")
TENDONS = ("fixed", "spatial")
ACTUATORS = (
    "general",
    "motor",
    "position",
    "velocity",
    "intvelocity",
    "damper",
    "cylinder",
    "muscle",
    "adhesion",
    "dcmotor",
    "plugin",
)
UNSUPPORTED = ("replicate", "composite", "flexcomp", "attach")
"""Elements that MuJoCo expands into bodies; a model saved by MuJoCo contains them expanded."""


@dataclass
class MjcfFile:
    """An MJCF file after includes, with its compiler settings and default classes."""

    root: Element  # The <mujoco> element, included files in place
    compiler: dict[str, str] = field(default_factory=dict)  # Attributes of all <compiler> elements
    classes: dict[str, dict[str, dict[str, str]]] = field(default_factory=lambda: {"": {}})

    def sections(self, tag: str) -> Iterator[Element]:
        """Yield the children of every top-level <tag>, which may be repeated."""
        for section in self.root.findall(tag):
            yield from section

    def attributes(self, element: Element, childclass: str = "") -> Mapping[str, str]:
        """Return an element's attributes, completed by those of its default class."""
        name = element.get("class", childclass)
        if name not in self.classes:
            raise DescriptionError(
                f"<{element.tag} name='{element.get('name', '')}'>: default class '{name}' does not exist; "
                "declare it in <default>"
            )
        tag = "actuator" if element.tag in ACTUATORS else "tendon" if element.tag in TENDONS else element.tag
        merged = dict(self.classes[name].get(tag, {}))
        if any(key in element.attrib for key in ORIENTATIONS):
            merged = {key: value for key, value in merged.items() if key not in ORIENTATIONS}
        return {**merged, **element.attrib}

    @property
    def angle(self) -> float:
        """Factor from the file's angles to radians."""
        unit = self.compiler.get("angle", "degree")
        if unit not in ("degree", "radian"):
            raise DescriptionError(f"<compiler>: angle is '{unit}'; give degree or radian")
        return 1.0 if unit == "radian" else float(np.pi / 180.0)

    def flag(self, key: str, default: bool) -> bool:
        """Return a true/false compiler setting."""
        text = self.compiler.get(key)
        if text is None:
            return default
        if text not in ("true", "false"):
            raise DescriptionError(f"<compiler>: {key} is '{text}'; give true or false")
        return text == "true"

    def placement(self, attributes: Mapping[str, str], where: str) -> Placement:
        """Return the pose given by pos and any of quat, axisangle, xyaxes, zaxis, euler."""
        return Placement(self.rotation(attributes, where), numbers(attributes, "pos", 3, np.zeros(3), where))

    def rotation(self, attributes: Mapping[str, str], where: str) -> Array:
        """Return the orientation given by quat, axisangle, xyaxes, zaxis or euler."""
        given = [key for key in ORIENTATIONS if key in attributes]
        if not given:
            return np.eye(3)
        if len(given) > 1:
            raise DescriptionError(f"{where} has both {given[0]} and {given[1]}; keep one orientation")
        kind = given[0]
        count = {"quat": 4, "axisangle": 4, "xyaxes": 6}.get(kind, 3)
        x = numbers(attributes, kind, count, None, where)
        if kind == "quat":
            return quaternion_matrix(x, f"{where}: quat")
        if kind == "axisangle":
            return rotation_exp(unit_vector(x[:3], f"{where}: axisangle") * x[3] * self.angle)
        if kind == "xyaxes":
            first = unit_vector(x[:3], f"{where}: xyaxes")
            second = unit_vector(x[3:] - first * (first @ x[3:]), f"{where}: xyaxes")
            return np.column_stack([first, second, np.cross(first, second)])
        if kind == "zaxis":
            return shortest_turn(unit_vector(x, f"{where}: zaxis"))
        return self._euler(x * self.angle, where)

    def _euler(self, angles: Array, where: str) -> Array:
        sequence = self.compiler.get("eulerseq", "xyz")
        if len(sequence) != 3 or any(letter not in "xyzXYZ" for letter in sequence):
            raise DescriptionError(f"<compiler>: eulerseq is '{sequence}' ({where}); give three of x, y, z, X, Y, Z")
        R = np.eye(3)
        for letter, angle in zip(sequence, angles, strict=True):
            turn = rotation_exp(np.eye(3)["xyz".index(letter.lower())] * angle)
            R = R @ turn if letter.islower() else turn @ R  # lower case turns with the body, upper case about fixed axes
        return R


def shortest_turn(direction: Array) -> Array:
    """Return the smallest rotation of z to `direction`."""
    axis = np.array([-direction[1], direction[0], 0.0])  # z x direction
    sine = float(np.linalg.norm(axis))
    if sine < 1e-12:
        return np.eye(3) if direction[2] > 0.0 else np.diag([1.0, -1.0, -1.0])
    return rotation_exp(axis / sine * np.arctan2(sine, direction[2]))


# ---- loading --------------------------------------------------------------------------------------------------------


def load_mjcf(path: str | os.PathLike[str], root: Element | None = None, folders: Folders | None = None) -> MjcfFile:
    """Read an MJCF file with its includes, compiler settings and default classes."""
    if root is None:
        root = parse_xml(read_bytes(path, "MJCF"), "mujoco")
    _include(root, Path(path).parent, folders or Folders(path), {Path(path).resolve()}, 0)
    file = MjcfFile(root)
    for compiler in root.findall("compiler"):
        file.compiler.update(compiler.attrib)
    if file.compiler.get("coordinate", "local") != "local":
        raise DescriptionError("<compiler>: coordinate is 'global', which MuJoCo removed; convert the file to local frames")
    for default in root.findall("default"):
        _read_defaults(file.classes, default, "", top=True)
    return file


def _include(element: Element, folder: Path, folders: Folders, seen: set[Path], depth: int) -> None:
    """Replace <include> by the children of the included file, as MuJoCo does; each file may occur once."""
    if depth > MAX_DEPTH:
        raise DescriptionError(f"included elements are nested more than {MAX_DEPTH} deep; flatten the description")
    children: list[Element] = []
    for child in element:
        if child.tag != "include":
            _include(child, folder, folders, seen, depth + 1)
            children.append(child)
            continue
        name = text_attribute(child, "file", "<include>")
        target = folders.allowed(folder / name, f"<include>: file {name!r}")
        if target in seen:
            raise DescriptionError(f"<include>: file '{name}' is included twice or includes itself; include it once")
        seen.add(target)
        try:
            data = read_bytes(target, "included MJCF")
            root = parse_xml(data, "mujocoinclude" if b"<mujocoinclude" in data else "mujoco")
        except DescriptionError as error:
            raise DescriptionError(f"<include>: file '{name}': {error}") from error
        _include(root, folder, folders, seen, depth + 1)
        children.extend(root)
    element[:] = children


def _read_defaults(classes: dict[str, dict[str, dict[str, str]]], default: Element, parent: str, top: bool = False) -> None:
    name = default.get("class", "main" if top else "")
    if not name:
        raise DescriptionError("a nested <default> has no attribute 'class'; name the class")
    own = {tag: dict(attributes) for tag, attributes in classes[parent].items()}
    for element in default:
        if element.tag == "default":
            continue
        # Actuators of all kinds share one default.
        tag = "actuator" if element.tag in ACTUATORS else "tendon" if element.tag in TENDONS else element.tag
        own.setdefault(tag, {}).update(element.attrib)
    if name in classes and not top:
        raise DescriptionError(f"<default>: class '{name}' is declared twice; give every class its own name")
    if top:
        classes[""] = own
    classes[name] = own
    for element in default:
        if element.tag == "default":
            _read_defaults(classes, element, name)


def polynomial_head(attributes: Mapping[str, str], key: str, where: str) -> float | None:
    """Return a joint coefficient that MuJoCo also accepts as a polynomial, if only the linear part is given."""
    if key not in attributes:
        return None
    values = parse_numbers(attributes[key], None, f"{where}: {key}")
    if values.size == 0 or np.any(values[1:]):
        raise DescriptionError(f"{where}: {key} is '{attributes[key]}'; give one number, a polynomial is not supported")
    return float(values[0])


KINDS = {"hinge": "revolute", "slide": "prismatic", "ball": "spherical", "free": "free"}
WORLD = "world"

CUSTOM = {
    "offset": "off",
    "damping": "fv",
    "frictionloss": "fc",
    "armature": "ia",
    "stiffness": "k",
    "damping_positive": "fvp",
    "damping_negative": "fvn",
    "frictionloss_positive": "fcp",
    "frictionloss_negative": "fcn",
}
"""Joint terms that <custom><numeric name="dynident_KEY_JOINT"> may hold: one number, or one per coordinate.

Other terms have their symbol as key. They override the joint's attributes; MuJoCo itself ignores them.
"""


def custom_keys() -> dict[str, str]:
    """Return the joint term of every key of a <numeric>."""
    return CUSTOM | {symbol: symbol for symbol in TERMS if symbol not in CUSTOM.values()}


@dataclass
class MjcfTree:
    """Bodies and joints read so far."""

    file: MjcfFile  # The file
    bodies: list[Body] = field(default_factory=lambda: [Body(WORLD)])  # Elements of the mechanism
    joints: list[Joint] = field(default_factory=list)  # Elements of the mechanism
    body_of: dict[Element, str] = field(default_factory=dict)  # Name of every <body> element
    joint_of: dict[Element, tuple[str, dict[str, str]]] = field(default_factory=dict)
    rest: dict[str, Placement] = field(default_factory=lambda: {WORLD: Placement()})
    sites: dict[str, tuple[str, Placement]] = field(default_factory=dict)  # Body that carries a site, and the pose of the site
    reference: dict[str, float] = field(default_factory=dict)  # `ref` of every hinge and slide
    moving: set[str] = field(default_factory=set)  # Bodies that can move
    mocap: set[str] = field(default_factory=set)  # Bodies that a program moves
    unread: list[str] = field(default_factory=list)  # Bodies with an inertia from an unsupported shape


def read_mjcf(path: str | os.PathLike[str], search: Sequence[str | os.PathLike[str]] = ()) -> Mechanism:
    """Read a MuJoCo XML file; link frames, in which all parameters are expressed, are MuJoCo's body frames.

    Joint attributes become terms, tau = armature a + damping v + frictionloss sign(v) + stiffness (q - springref):
    `ia`, `fv`, `fc`, `k` and `off` = -stiffness springref.
    """
    with naming_file(path):
        tree = read_tree(path, folders=Folders(path, search))
        file, source = tree.file, Path(path).name
        _warn_of_ignored(tree, source)
        _set_total_mass(tree)
        loops, couplings, held = read_constraints(tree, source)
        mechanism = Mechanism(
            file.root.get("model") or Path(path).stem,
            tuple(tree.bodies),
            tuple(tree.joints),
            couplings=tuple(couplings),
            gravity=_gravity(file),
            source=source,
        )
        _check_inertias(mechanism, tree)
        mechanism = mechanism.lock(held) if held else mechanism
        actuators = read_actuators(tree, mechanism, source)
        # Without any actuator, `Mechanism` drives every joint, or none if there are loops.
        # MuJoCo assembles loops at qpos0, where every joint is at its `ref`.
        home = {name: ref for name, ref in tree.reference.items() if ref and name in mechanism.tree.coordinates}
        home |= {name: x for name, x in _home_key(tree).items() if name in mechanism.tree.coordinates}
        looped = replace(mechanism, loops=tuple(loops), actuators=tuple(actuators), home=home if loops else {})
        return without_passive_terms(looped)


def _home_key(tree: MjcfTree) -> dict[str, float]:
    """Return the positions of single-axis joints in the key frame named home, if there is one."""
    for element in tree.file.sections("keyframe"):
        if element.tag != "key" or element.get("name") != "home" or "qpos" not in element.attrib:
            continue
        sizes = {"spherical": 4, "free": 7}
        moving = [joint for joint in tree.joints if joint.kind != "fixed"]
        counts = [sizes.get(joint.kind, 1) for joint in moving]
        qpos = parse_numbers(element.get("qpos", ""), sum(counts), "<key name='home'>: qpos")
        starts = np.cumsum([0, *counts[:-1]])
        return {
            joint.name: float(qpos[start])
            for joint, start, count in zip(moving, starts, counts, strict=True)
            if count == 1 and qpos[start]
        }
    return {}


def read_tree(path: str | os.PathLike[str], root: Element | None = None, folders: Folders | None = None) -> MjcfTree:
    """Read bodies and joints of an MJCF file."""
    tree = MjcfTree(load_mjcf(path, root, folders))
    for world in tree.file.root.findall("worldbody"):
        _read_children(tree, world, WORLD, world.get("childclass", ""), False)
    if len(tree.bodies) == 1:
        raise DescriptionError("<worldbody> has no <body>; describe at least one, or give the file that includes this one")
    _read_custom(tree)
    return tree


def _warn_of_ignored(tree: MjcfTree, source: str) -> None:
    """Warn of MuJoCo settings that change forces or inertias and are ignored."""
    file = tree.file
    for key in ("balanceinertia", "boundmass", "boundinertia"):
        if file.compiler.get(key, "0") not in ("0", "false"):
            warn_description(f"{source}: <compiler {key}> is ignored; inertias are used as given")
    options = [o for o in file.root.findall("option") if any(np.any(_given(o, key)) for key in ("density", "viscosity"))]
    if options:
        warn_description(f"{source}: <option density, viscosity>: the forces of the fluid around the robot are ignored")
    lifted = [name for element, name in tree.body_of.items() if np.any(_given(element, "gravcomp"))]
    if lifted:
        warn_description(f"{source}: gravcomp of {quoted(lifted)} is ignored; torques carry the whole weight")
    tendons = [e for e in file.sections("tendon") if e.tag in TENDONS]
    forces = ("stiffness", "damping", "frictionloss", "armature")
    pulling = [e.get("name", "") for e in tendons if any(np.any(_given(file.attributes(e), key)) for key in forces)]
    if pulling:
        warn_description(f"{source}: forces of tendons {quoted(pulling)} ({', '.join(forces)}) are ignored")


def _given(element: Element | Mapping[str, str], key: str) -> Array:
    return parse_numbers(element.get(key, "0"), None, key)


# ---- bodies ---------------------------------------------------------------------------------------------------------


def _flatten(tree: MjcfTree, element: Element, childclass: str, frame: Placement) -> Iterator[tuple[Element, str, Placement]]:
    """Yield (child, default class, frame around it) with <frame> elements resolved."""
    for child in element:
        if child.tag in UNSUPPORTED:
            raise DescriptionError(
                f"<{child.tag}> is not supported; let MuJoCo write the model out (mj_saveLastXML) and read that file"
            )
        if child.tag == "frame":
            inner = frame @ tree.file.placement(child.attrib, "<frame>")
            yield from _flatten(tree, child, child.get("childclass", childclass), inner)
        else:
            yield child, childclass, frame


def _read_children(tree: MjcfTree, element: Element, name: str, childclass: str, moving: bool) -> None:
    for child, own_class, frame in _flatten(tree, element, childclass, Placement()):
        if child.tag == "body":
            _read_body(tree, child, name, child.get("childclass", own_class), frame, moving)
        elif child.tag == "site" and child.get("name"):
            attributes = tree.file.attributes(child, own_class)
            where = f"site '{child.get('name')}'"
            tree.sites[child.get("name", "")] = (name, frame @ tree.file.placement(attributes, where))


def _read_body(tree: MjcfTree, element: Element, parent: str, childclass: str, frame: Placement, moving: bool) -> None:
    taken = {body.name for body in tree.bodies}
    name = element.get("name") or unique_name(f"body{len(tree.body_of) + 1}", taken.__contains__)
    if name in taken:
        raise DescriptionError(f"body name '{name}' is used twice; give every body its own name")
    tree.body_of[element] = name
    if element.get("mocap") == "true":
        tree.mocap.add(name)
    placement = frame @ tree.file.placement(element.attrib, f"body '{name}'")
    tree.rest[name] = tree.rest[parent] @ placement
    inside = list(_flatten(tree, element, childclass, Placement()))
    joints = [(child, own, inner) for child, own, inner in inside if child.tag in ("joint", "freejoint")]
    moving = moving or bool(joints)
    if moving:
        tree.moving.add(name)
    phi = _body_inertia(tree, name, element.find("inertial"), inside, moving)
    # A jointed body always has parameters; a body fixed to another one has them only if they are nonzero.
    tree.bodies.append(Body(name, phi if np.any(phi) or joints else None))
    _read_joints(tree, joints, parent, name, placement)
    _read_children(tree, element, name, childclass, moving)


def _read_joints(
    tree: MjcfTree, elements: list[tuple[Element, str, Placement]], parent: str, body: str, placement: Placement
) -> None:
    """Append the chain of joints from `parent` to `body`, which rests at `placement` in its parent."""
    carrier = parent
    for i, (element, childclass, frame) in enumerate(elements):
        attributes = dict(element.attrib) if element.tag == "freejoint" else dict(tree.file.attributes(element, childclass))
        taken = {joint.name for joint in tree.joints}
        name = element.get("name") or unique_name(f"{body}_joint", taken.__contains__)
        where = f"joint '{name}'"
        if name in taken:
            raise DescriptionError(f"joint name '{name}' is used twice; give every joint its own name")
        kind = "free" if element.tag == "freejoint" else attributes.get("type", "hinge")
        if kind not in KINDS:
            raise DescriptionError(f"{where}: type is '{kind}'; known types are {', '.join(KINDS)}")
        tree.joint_of[element] = (name, attributes)
        if kind == "free":
            if parent != WORLD or len(elements) > 1:
                raise DescriptionError(f"{where} is free; that needs a body directly in <worldbody> with no other joint")
            # qpos of a free joint is the pose in the world; the body's pose is only the initial value.
            tree.joints.append(Joint(name, "free", parent, body, terms=_terms(tree, attributes, kind, where)))
            return
        anchor = frame @ Placement(np.eye(3), numbers(attributes, "pos", 3, np.zeros(3), where))
        axis = frame.rotation @ numbers(attributes, "axis", 3, (0.0, 0.0, 1.0), where)
        offset = Placement(np.eye(3), anchor.translation)
        unit = tree.file.angle if kind == "hinge" else 1.0
        reference = number(attributes, "ref", 0.0, where) * unit if kind in ("hinge", "slide") else 0.0
        tree.reference[name] = reference
        last = i == len(elements) - 1
        here = {b.name for b in tree.bodies}
        child = body if last and not np.any(anchor.translation) else unique_name(f"{body}/{name}", here.__contains__)
        joint = Joint(name, KINDS[kind], carrier, child, placement @ offset, axis)
        if reference:
            joint = replace(joint, placement=joint.placement @ joint_transform(joint, -reference))
        limits = _limits(tree.file, attributes, kind, where)
        tree.joints.append(replace(joint, limits=limits, terms=_terms(tree, attributes, kind, where)))
        if child != body:
            tree.bodies.append(Body(child))
        carrier, placement = child, offset.inverse()
    if carrier != body:
        taken = {joint.name for joint in tree.joints}
        label = unique_name(f"{body}_fixed", taken.__contains__)
        tree.joints.append(Joint(label, "fixed", carrier, body, placement))


def _limits(file: MjcfFile, attributes: dict[str, str], kind: str, where: str) -> Limits:
    if kind == "ball":
        return Limits()
    found = {}
    for key, flag in (("range", "limited"), ("actuatorfrcrange", "actuatorfrclimited")):
        low, high = numbers(attributes, key, 2, (0.0, 0.0), where)
        state = attributes.get(flag, "auto")
        on = state == "true" or (state == "auto" and key in attributes and file.flag("autolimits", True))
        found[key] = (low, high) if on and low < high else (-np.inf, np.inf)
    unit = file.angle if kind == "hinge" else 1.0
    low, high = found["range"]
    return Limits(low * unit, high * unit, effort=float(np.max(np.abs(found["actuatorfrcrange"]))))


def _terms(tree: MjcfTree, attributes: dict[str, str], kind: str, where: str) -> dict[str, float]:
    terms: dict[str, float] = {}
    for key, symbol in (("armature", "ia"), ("damping", "fv"), ("frictionloss", "fc"), ("stiffness", "k")):
        value = polynomial_head(attributes, key, where)
        if value is not None and (kind != "free" or value):
            terms[symbol] = value
    if kind == "free" and "ia" in terms:
        raise DescriptionError(f"{where}: armature of a free joint is not supported; add the mass to its body")
    unit = tree.file.angle if kind == "hinge" else 1.0
    spring = number(attributes, "springref", 0.0, where) * unit if kind in ("hinge", "slide") else 0.0
    if spring and terms.get("k"):
        terms["off"] = -terms["k"] * spring
    return terms


def _read_custom(tree: MjcfTree) -> None:
    """Add the joint terms without an MJCF attribute, see `CUSTOM`."""
    data = {e.get("name", ""): e for e in tree.file.sections("custom") if e.tag == "numeric"}
    for i, joint in enumerate(tree.joints):
        terms = dict(joint.terms)
        suffixes = COORDINATES[joint.kind]
        for key, symbol in custom_keys().items():
            element = data.get(f"dynident_{key}_{joint.name}")
            if element is None:
                continue
            values = parse_numbers(element.get("data", ""), None, f"<numeric name='{element.get('name')}'>: data")
            if values.size not in (1, len(suffixes)):
                raise DescriptionError(
                    f"<numeric name='{element.get('name')}'>: data has {values.size} numbers; "
                    f"give 1 or {len(suffixes)}, one per coordinate of the joint"
                )
            if values.size == 1:
                terms[symbol] = float(values[0])
            else:
                terms |= {f"{symbol}.{suffix}": float(x) for suffix, x in zip(suffixes, values, strict=True)}
        tree.joints[i] = replace(joint, terms=terms)


# ---- inertia --------------------------------------------------------------------------------------------------------


def _body_inertia(
    tree: MjcfTree,
    name: str,
    inertial: Element | None,
    inside: list[tuple[Element, str, Placement]],
    moving: bool,
) -> Array:
    """Return the body's inertial parameters, from <inertial> or from its geoms, as MuJoCo's compiler chooses."""
    choice = tree.file.compiler.get("inertiafromgeom", "auto")
    if choice not in ("auto", "true", "false"):
        raise DescriptionError(f"<compiler>: inertiafromgeom is '{choice}'; give auto, true or false")
    if inertial is not None and choice != "true":
        return _inertial(tree.file, inertial, f"body '{name}' <inertial>")
    phi = np.zeros(10)
    if choice == "false":
        return phi
    for child, childclass, frame in inside:
        if child.tag != "geom":
            continue
        where = f"geom '{child.get('name', '')}' of body '{name}'"
        try:
            phi = phi + geom_inertia(tree.file, tree.file.attributes(child, childclass), frame, where)
        except UnreadableShapeError as error:
            if moving:
                tree.unread.append(f"{error}")
            return np.zeros(10)
    return phi


def _inertial(file: MjcfFile, element: Element, where: str) -> Array:
    mass = number(element, "mass", None, where)
    if mass < 0.0:
        raise DescriptionError(f"{where}: mass is {mass} kg; give a positive number")
    pose = file.placement(element.attrib, where)
    if "fullinertia" in element.attrib:
        xx, yy, zz, xy, xz, yz = numbers(element, "fullinertia", 6, None, where)
        inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    else:
        inertia = np.diag(numbers(element, "diaginertia", 3, None, where))
    return transform(from_com(mass, np.zeros(3), inertia), pose.rotation, pose.translation)


def _set_total_mass(tree: MjcfTree) -> None:
    total = float(parse_numbers(tree.file.compiler.get("settotalmass", "-1"), 1, "<compiler>: settotalmass")[0])
    now = sum(float(body.inertia[0]) for body in tree.bodies if body.inertia is not None)
    if total > 0.0 and now > 0.0:
        tree.bodies = [b if b.inertia is None else Body(b.name, b.inertia * (total / now)) for b in tree.bodies]


def _check_inertias(mechanism: Mechanism, tree: MjcfTree) -> None:
    source = mechanism.source
    if tree.unread:
        warn_description(
            f"{source}: {'; '.join(tree.unread)}; its inertia is unknown and the prior zero: add an <inertial>, or use "
            "Mechanism.from_mujoco(mujoco.MjModel.from_xml_path(...))"
        )
    groups = zip(mechanism.tree.bodies, mechanism.tree.inertias.reshape(-1, 10), strict=True)
    empty = [body for body, phi in groups if not np.any(phi)]
    if empty and not tree.unread:
        warn_description(f"{source}: moving bodies {quoted(empty)} have no inertia; their prior is zero")
    warn_of_impossible(mechanism.bodies, source)


def _gravity(file: MjcfFile) -> Array:
    gravity = np.array(STANDARD_GRAVITY)
    for option in file.root.findall("option"):
        gravity = numbers(option, "gravity", 3, gravity, "<option>")
        if any(flag.get("gravity") == "disable" for flag in option.findall("flag")):
            return np.zeros(3)
    return gravity


WATER = 1000.0
"""MuJoCo's default density [kg/m^3]."""

_SIZES = {"sphere": 1, "capsule": 2, "cylinder": 2, "ellipsoid": 3, "box": 3}
_WITHOUT_MASS = ("plane", "hfield")


class UnreadableShapeError(DescriptionError):
    """The mass of a geom comes from a mesh or a shell, which this reader does not integrate."""


def geom_inertia(file: MjcfFile, attributes: Mapping[str, str], frame: Placement, where: str) -> Array:
    """Return the ten inertial parameters of a geom in its body's frame."""
    kind = attributes.get("type", "sphere")
    low, high = parse_numbers(file.compiler.get("inertiagrouprange", "0 5"), 2, "<compiler>: inertiagrouprange")
    mass = number(attributes, "mass", np.nan, where)
    density = number(attributes, "density", WATER, where)
    if mass < 0.0 or density < 0.0:
        raise DescriptionError(f"{where}: mass or density is negative; give a positive number")
    counted = low <= number(attributes, "group", 0.0, where) <= high
    if kind in _WITHOUT_MASS or not counted or mass == 0.0 or (np.isnan(mass) and density == 0.0):
        return np.zeros(10)
    if kind in ("mesh", "sdf") or "mesh" in attributes:
        raise UnreadableShapeError(f"{where} is a mesh")
    if kind not in _SIZES:
        raise DescriptionError(f"{where}: type is '{kind}'; known types are {', '.join((*_SIZES, *_WITHOUT_MASS, 'mesh'))}")
    if attributes.get("shellinertia", "false") == "true":
        raise UnreadableShapeError(f"{where} has shellinertia")
    pose, size = _pose_and_size(file, attributes, kind, where)
    if np.any(size <= 0.0):
        raise DescriptionError(f"{where}: size is {size.tolist()}; give positive lengths")
    volume, per_mass = _uniform_solid(kind, size)
    value = mass if not np.isnan(mass) else density * volume
    pose = frame @ pose
    return transform(from_com(value, np.zeros(3), value * np.diag(per_mass)), pose.rotation, pose.translation)


def _pose_and_size(file: MjcfFile, attributes: Mapping[str, str], kind: str, where: str) -> tuple[Placement, Array]:
    count = _SIZES[kind]
    size = parse_numbers(attributes.get("size", ""), None, f"{where}: size")
    if "fromto" not in attributes or kind == "sphere":
        if size.size < count:
            raise DescriptionError(f"{where}: size is '{attributes.get('size', '')}'; a {kind} needs {count} numbers")
        return file.placement(attributes, where), size[:count]
    ends = numbers(attributes, "fromto", 6, None, where)
    along = ends[:3] - ends[3:]
    length = float(np.linalg.norm(along))
    if size.size < 1 or length < 1e-12:
        raise DescriptionError(f"{where}: fromto is '{attributes['fromto']}'; give two different points and a size")
    # The thickness is one number; the last size is half the distance between the two points.
    full = np.array([size[0]] * (count - 1) + [0.5 * length])
    return Placement(shortest_turn(along / length), 0.5 * (ends[:3] + ends[3:])), full


def _uniform_solid(kind: str, size: Array) -> tuple[float, Array]:
    """Return volume [m^3] and principal moments per unit mass [m^2] of a primitive (half sizes, axis z)."""
    if kind == "box":
        x, y, z = size**2
        return float(8.0 * np.prod(size)), np.array([y + z, x + z, x + y]) / 3.0
    if kind in ("ellipsoid", "sphere"):
        radii = size if kind == "ellipsoid" else np.repeat(size, 3)
        x, y, z = radii**2
        return float(4.0 / 3.0 * np.pi * np.prod(radii)), np.array([y + z, x + z, x + y]) / 5.0
    r, height = float(size[0]), 2.0 * float(size[1])
    across, along = (3.0 * r * r + height * height) / 12.0, 0.5 * r * r
    tube = np.pi * r * r * height
    if kind == "cylinder":
        return tube, np.array([across, across, along])
    caps = 4.0 / 3.0 * np.pi * r**3
    # The two hemispheres at the ends: their own moment, and the parallel-axis term at distance h/2.
    ends = 0.4 * r * r
    moments = tube * np.array([across, across, along]) + caps * np.array(
        [ends + height * (3.0 * r + 2.0 * height) / 8.0] * 2 + [ends]
    )
    return tube + caps, moments / (tube + caps)


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
        # Omitted values are taken at qpos0.
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
    """Return joint1 = ref1 + sum_k c_k (joint2 - ref2)^k as a coupling."""
    return Coupling(first, {second: 1.0}, ref1, function=lambda x: horner(tuple(c.tolist()), x[:, 0] - ref2))


def read_actuators(tree: MjcfTree, mechanism: Mechanism, source: str) -> list[Actuator]:
    """Read <actuator>: q_motor = gear (sum_j c_j q_j), where c comes from a joint or a fixed tendon."""
    tendons = {e.get("name", ""): e for e in tree.file.sections("tendon") if e.tag == "fixed"}
    single = {j.name for j in mechanism.joints if j.coordinates == (j.name,)} & set(mechanism.tree.coordinates)
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
            problem = f"drives the same coordinate as '{driven[key]}'" if coupling else "moves nothing"
            warn_description(f"{source}: {where} {problem}; it is ignored")
            continue
        driven[key] = name
        actuators.append(Actuator(name, coupling, gear, offset))
    return actuators


def _actuated(attributes: Mapping[str, str], joint: str | None, tendons: Mapping[str, Element], where: str) -> dict[str, float]:
    """Return the derivative of an actuator's length in each joint, empty if it acts on something else."""
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
