"""Conversion of loop_closures.yaml, which CAD exporters write next to the URDF of a robot with loops, to sidecar tables.

``closures`` are hinges that the tree leaves out: ``link_a``, ``link_b``, and ``point`` and ``axis`` in the frame of base_link
at q = 0. ``independent`` joints are driven, ``dependent`` ones follow [LoopClosures].
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dynident.errors import DescriptionError, DynidentError
from dynident.files import read_yaml
from dynident.mechanism.elements import Placement, frozen
from dynident.mechanism.mechanism import Mechanism

BASE = "base_link"


def is_loop_closures(path: str | os.PathLike[str]) -> bool:
    """Return whether a sidecar is a YAML file rather than TOML."""
    return Path(path).suffix.lower() in (".yaml", ".yml")


def sidecar_of_closures(mechanism: Mechanism, path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return loops and motors of a loop_closures.yaml in the layout of a sidecar."""
    try:
        data = read_yaml(path, "the loop closures")
    except DynidentError as error:
        raise DescriptionError(str(error)) from error
    closures = data.get("closures") if isinstance(data, Mapping) else None
    if not isinstance(closures, list) or not closures or not all(isinstance(entry, Mapping) for entry in closures):
        raise DescriptionError("there is no list 'closures' with link_a, link_b, point and axis, as CAD exporters write it")
    poses = {mechanism.root: Placement()}
    for joint in mechanism.joints:
        poses[joint.child] = poses[joint.parent] @ joint.placement
    base = poses.get(BASE, poses[mechanism.root])
    loops = [_loop(entry, i, base, poses) for i, entry in enumerate(closures, 1)]
    free = [name for joint in mechanism.joints if joint.kind != "fixed" for name in joint.coordinates]
    named = {key: data.get(key, []) for key in ("independent", "dependent")}
    for key, names in named.items():
        if not isinstance(names, list) or (unknown := [name for name in names if name not in free]):
            shown = unknown[0] if isinstance(names, list) else names
            raise DescriptionError(f"{key}: {shown!r} is not a moving joint of the description; they are {', '.join(free)}")
    driven = named["independent"] or [name for name in free if name not in named["dependent"]]
    return {"loop": loops, "actuator": [{"name": name, "coupling": {name: 1.0}} for name in driven]}


def _loop(entry: Mapping[str, Any], i: int, base: Placement, poses: Mapping[str, Placement]) -> dict[str, Any]:
    """Return one hinge as the table of a sidecar; its frames have the axes of the base at q = 0."""
    from dynident.mechanism.sidecar import rpy_of  # noqa: PLC0415 - the sidecar imports this module

    where = f"closure {i}"
    links = [str(entry.get(key)) for key in ("link_a", "link_b")]
    for link in links:
        if link not in poses:
            raise DescriptionError(f"{where}: link '{link}' is not in the description")
    point, axis = (frozen(entry.get(key, ()), (3,), f"{where}: {key}") for key in ("point", "axis"))
    table: dict[str, Any] = {"name": str(entry.get("name", f"{links[0]}_{links[1]}")), "kind": "revolute"}
    for letter, link in zip("ab", links, strict=True):
        place = poses[link].inverse() @ base @ Placement(translation=point)
        table |= {f"body_{letter}": link, f"xyz_{letter}": place.translation.tolist()}
        table[f"rpy_{letter}"] = rpy_of(place.rotation).tolist()
    return table | {"axis": axis.tolist()}
