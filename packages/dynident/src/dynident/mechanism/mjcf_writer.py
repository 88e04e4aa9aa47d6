"""MJCF writer: puts identified numbers into a copy of the original file and preserves every other byte."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dynident.arrays import Array
from dynident.errors import DescriptionError, DescriptionWarning
from dynident.files import write_atomic
from dynident.mechanism.elements import Joint
from dynident.mechanism.mechanism import Mechanism
from dynident.mechanism.mjcf import ORIENTATIONS, custom_keys, read_mjcf, read_tree
from dynident.mechanism.parameters import Parameters, to_com
from dynident.mechanism.urdf_writer import bodies_to_write
from dynident.mechanism.xml import Folders, XmlPatch, exact, naming_file, read_bytes

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element


ATTRIBUTES = ("armature", "damping", "frictionloss", "stiffness")
"""Terms that MuJoCo's joints have as attributes."""


def write_mjcf(
    source: str | os.PathLike[str],
    mechanism: Mechanism,
    parameters: Parameters,
    path: str | os.PathLike[str],
    search: Sequence[str | os.PathLike[str]] = (),
) -> Path:
    """Write a copy of an MJCF file with identified parameters; reading it back gives the same inverse dynamics.

    Only <inertial> of moving bodies and the joints' armature, damping, frictionloss, stiffness (and springref, which
    becomes zero) change, and only where the numbers differ. Terms without an MJCF attribute (a constant offset, friction
    that differs with direction) go to <custom><numeric name="dynident_offset_JOINT">, which `read_mjcf` reads.

    Parameters
    ----------
    source : path-like
        The MJCF file the mechanism was read from; its bodies must be in the file itself, not in an included one.
    mechanism : Mechanism
        The robot.
    parameters : Parameters
        Standard parameters with the names of ``mechanism.parameters``; every body needs a positive mass.
    path : path-like
        File to write, which may be `source` itself.
    search : sequence of path-like
        Further folders with included files.
    """
    with naming_file(source):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DescriptionWarning)  # already issued when the mechanism was read
            old = read_mjcf(source, search)
        patch = XmlPatch(read_bytes(source, "MJCF"), "mujoco")
        tree = read_tree(source, patch.root, Folders(source, search))
        # These two would undo the numbers written, so they are removed and every body is written.
        undone = {"inertiafromgeom": "auto", "settotalmass": "-1"}
        undone = {k: v for k, v in undone.items() if _undoes(k, tree.file.compiler.get(k))}
        changed = bodies_to_write(mechanism, parameters, old, every=bool(undone))
        if changed:
            for compiler in tree.file.root.findall("compiler"):
                for key, value in undone.items():
                    if key in compiler.attrib:
                        patch.set(_own(patch, compiler, "<compiler>"), key, value)
        for element, name in tree.body_of.items():
            if name in changed:
                _patch_inertial(patch, _own(patch, element, f"body '{name}'"), changed[name])
        new = {joint.name: joint for joint in mechanism.with_parameters(parameters).joints}
        numerics: dict[str, str] = {}
        for element, (name, attributes) in tree.joint_of.items():
            joint = new.get(name)
            if joint is not None and joint.kind == old.joint(name).kind and joint.kind != "fixed":
                numerics |= _patch_joint(patch, element, attributes, joint, old.joint(name))
        _patch_custom(patch, numerics)
        _patch_folders(patch, tree.file.compiler, Path(source), Path(path))
        content = patch.result()
    return write_atomic(path, content)


def _patch_folders(patch: XmlPatch, compiler: Mapping[str, str], source: Path, path: Path) -> None:
    """Correct the paths to meshes and textures for a target folder other than the source's."""
    if source.resolve().parent == path.resolve().parent or patch.root.find("asset") is None:
        return
    common = compiler.get("assetdir", "")
    wanted = {key: os.path.join(source.resolve().parent, compiler.get(key, common)) for key in ("meshdir", "texturedir")}  # noqa: PTH118 - an absolute folder stays
    folders = {key: Path(os.path.relpath(folder, path.resolve().parent)).as_posix() for key, folder in wanted.items()}
    own = patch.root.find("compiler")
    if own is None:
        written = " ".join(f'{key}="{escape(folder)}"' for key, folder in folders.items())
        patch.insert(patch.root, f"<compiler {written}/>")
    else:
        for key, folder in folders.items():
            patch.set(own, key, escape(folder))


def _undoes(key: str, value: str | None) -> bool:
    return value == "true" if key == "inertiafromgeom" else value is not None and float(value) > 0.0


def _own(patch: XmlPatch, element: Element, what: str) -> Element:
    if element not in patch:
        raise DescriptionError(f"{what} is in an included file, which is not changed; write the model into one file")
    return element


def _patch_inertial(patch: XmlPatch, body: Element, phi: Array) -> None:
    mass, com, inertia = to_com(phi)
    order = [(0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)]
    values = {"pos": exact(*com), "mass": exact(mass), "fullinertia": exact(*(inertia[i, j] for i, j in order))}
    inertial = body.find("inertial")
    if inertial is None:
        patch.insert(body, "<inertial " + " ".join(f'{key}="{value}"' for key, value in values.items()) + "/>")
        return
    for key in ("diaginertia", *ORIENTATIONS):
        patch.remove(inertial, key)
    for key, value in values.items():
        patch.set(inertial, key, value)


def _patch_joint(patch: XmlPatch, element: Element, attributes: dict[str, str], joint: Joint, old: Joint) -> dict[str, str]:
    """Write the joint's terms; return the required <numeric> elements."""
    numerics: dict[str, str] = {}
    spring = float(attributes.get("springref", "0")) != 0.0 and bool(old.terms.get("k"))
    changed = {}
    for key, symbol in custom_keys().items():
        values = [joint.term(coordinate, symbol) for coordinate in joint.coordinates]
        if values != [old.term(coordinate, symbol) for coordinate in old.coordinates]:
            changed[key] = values
    if spring and ("stiffness" in changed or "offset" in changed):
        # The offset of the spring moves into the constant one.
        patch.set(_own(patch, element, f"joint '{joint.name}'"), "springref", "0")
        changed["offset"] = [joint.term(coordinate, "off") for coordinate in joint.coordinates]
    for key, values in changed.items():
        if key in ATTRIBUTES and element.tag == "joint":
            # MuJoCo has one number for all axes of a joint; if the axes differ it gets the mean, and we read the exact numbers.
            mean = values[0] if len(set(values)) == 1 else float(np.mean(values))
            patch.set(_own(patch, element, f"joint '{joint.name}'"), key, exact(mean))
        if key not in ATTRIBUTES or element.tag != "joint" or len(set(values)) > 1:
            numerics[f"dynident_{key}_{joint.name}"] = exact(*values)
        elif _numeric(patch, f"dynident_{key}_{joint.name}") is not None:
            numerics[f"dynident_{key}_{joint.name}"] = exact(values[0])
    return numerics


def _numeric(patch: XmlPatch, name: str) -> Element | None:
    return next((e for e in patch.root.findall("custom/numeric") if e.get("name") == name), None)


def _patch_custom(patch: XmlPatch, numerics: dict[str, str]) -> None:
    texts = []
    for name, data in numerics.items():
        element = _numeric(patch, name)
        if element is not None:
            patch.set(_own(patch, element, f"<numeric name='{name}'>"), "data", data)
            patch.remove(element, "size")
        else:
            texts.append(f'<numeric name="{escape(name)}" data="{data}"/>')
    if not texts:
        return
    custom = next((element for element in patch.root.findall("custom") if element in patch), None)
    if custom is None:
        patch.insert(patch.root, "<custom>" + "".join(texts) + "</custom>", last=True)
        return
    for text in texts:
        patch.insert(custom, text, last=True)
