"""Inertia of a body from its geoms, as MuJoCo infers it: uniform density inside primitive shapes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dynident.arrays import Array
from dynident.errors import DescriptionError
from dynident.mechanism.elements import Placement
from dynident.mechanism.inertia import from_com, transform
from dynident.mechanism.mjcf_file import MjcfFile, shortest_turn
from dynident.mechanism.xml import number, numbers, parse_numbers

WATER = 1000.0
"""MuJoCo's default density [kg/m^3]."""

_SIZES = {"sphere": 1, "capsule": 2, "cylinder": 2, "ellipsoid": 3, "box": 3}
_WITHOUT_MASS = ("plane", "hfield")


class UnreadableShapeError(DescriptionError):
    """A geom's mass comes from a mesh or a shell, which this reader does not integrate."""


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
    # The thickness is one number; the half length between the two points is the last size.
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
    # The two half spheres at the ends: their own moment, and the parallel axis term of half spheres at distance h/2.
    ends = 0.4 * r * r
    moments = tube * np.array([across, across, along]) + caps * np.array(
        [ends + height * (3.0 * r + 2.0 * height) / 8.0] * 2 + [ends]
    )
    return tube + caps, moments / (tube + caps)
