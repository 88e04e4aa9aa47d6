"""What stands around the bodies of an MJCF file: includes, compiler settings, default classes, orientations."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dynident.arrays import Array
from dynident.errors import DescriptionError
from dynident.mechanism.elements import Placement, rotation_exp
from dynident.mechanism.xml import MAX_DEPTH, Folders, numbers, parse_numbers, parse_xml, read_bytes, text_attribute

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
"""Elements that MuJoCo expands into bodies; its own saved model has them written out."""


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
        """Return an element's attributes with those of its default class behind them."""
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
            return rotation_exp(_unit(x[:3], f"{where}: axisangle") * x[3] * self.angle)
        if kind == "xyaxes":
            first = _unit(x[:3], f"{where}: xyaxes")
            second = _unit(x[3:] - first * (first @ x[3:]), f"{where}: xyaxes")
            return np.column_stack([first, second, np.cross(first, second)])
        if kind == "zaxis":
            return shortest_turn(_unit(x, f"{where}: zaxis"))
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


def quaternion_matrix(quaternion: Array, what: str) -> Array:
    """Return the rotation of a quaternion (w, x, y, z), which is made a unit one."""
    w, x, y, z = _unit(quaternion, what)
    return np.array(
        [
            [1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)],
            [2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - w * x)],
            [2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)],
        ]
    )


def shortest_turn(direction: Array) -> Array:
    """Return the smallest rotation that takes z to `direction`."""
    axis = np.array([-direction[1], direction[0], 0.0])  # z x direction
    sine = float(np.linalg.norm(axis))
    if sine < 1e-12:
        return np.eye(3) if direction[2] > 0.0 else np.diag([1.0, -1.0, -1.0])
    return rotation_exp(axis / sine * np.arctan2(sine, direction[2]))


def _unit(x: Array, what: str) -> Array:
    length = float(np.linalg.norm(x))
    if not 1e-12 < length < np.inf:
        raise DescriptionError(f"{what} is {x.tolist()}; give a vector that is not zero")
    return x / length


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
    """Put the children of included files in the place of <include>, as MuJoCo does; each file may come once."""
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
        # All kinds of actuator share one default.
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
    """Return a joint coefficient that MuJoCo also accepts as a polynomial, when only its linear part is there."""
    if key not in attributes:
        return None
    values = parse_numbers(attributes[key], None, f"{where}: {key}")
    if values.size == 0 or np.any(values[1:]):
        raise DescriptionError(f"{where}: {key} is '{attributes[key]}'; give one number, a polynomial is not supported")
    return float(values[0])
