"""Edits of a robot's numbers by the user: weighed masses, gears and gains in the sidecar, limits in limits.toml.

Comments and order of the files are kept; unchanged entries are not rewritten.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import tomlkit

from dynident.errors import DynidentError
from dynident.files import read_text, write_atomic
from dynident.mechanism import Mechanism
from dynident_lab.workbench.project import Project

LIMITS = ("lower", "upper", "velocity", "acceleration", "torque")


def _document(path: Path) -> Any:
    return tomlkit.parse(read_text(path, "the file", "valid TOML")) if path.exists() else tomlkit.document()


def _sidecar(p: Project) -> Path:
    """Return the sidecar of the robot; a new one has the name of the description."""
    if not p.settings.sidecar:
        p.settings.sidecar = Path(p.settings.robot).with_suffix(".toml").as_posix()
    return p.folder / p.settings.sidecar


def set_mass(p: Project, body: str, mass: float | None) -> None:
    """Write the weighed mass of a body [kg]; None removes it."""
    if mass is not None and not mass > 0.0:
        raise DynidentError(f"mass of '{body}' is {mass:g} kg; give a weighed mass above zero")
    path = _sidecar(p)
    document = _document(path)
    known = document.setdefault("known", tomlkit.table())
    masses = known.setdefault("masses", tomlkit.inline_table())
    if mass is None:
        masses.pop(body, None)
    else:
        masses[body] = mass
    if not masses:
        del known["masses"]
    if not known:
        del document["known"]
    write_atomic(path, tomlkit.dumps(document))
    p.save(field=True)


def set_motor(p: Project, robot: Mechanism, name: str, key: str, value: float | None) -> None:
    """Write gear ratio or torque constant of a motor; the sidecar then names all motors."""
    if value is not None and value == 0.0:
        raise DynidentError(f"{key} of motor '{name}' is 0; give a number other than zero")
    path = _sidecar(p)
    document = _document(path)
    if "actuator" not in document:
        tables = tomlkit.aot()
        for actuator in robot.actuators:
            table = tomlkit.table()
            table["name"] = actuator.name
            coupling = tomlkit.inline_table()
            for joint, share in actuator.coupling.items():
                coupling[joint] = float(share)
            table["coupling"] = coupling
            for each, default in (("ratio", 1.0), ("offset", 0.0), ("gain", None)):
                if getattr(actuator, each) not in (default, None):
                    table[each] = float(getattr(actuator, each))
            tables.append(table)
        document["actuator"] = tables
    entry = next((table for table in document["actuator"] if table.get("name") == name), None)
    if entry is None:
        raise DynidentError(f"the sidecar names no motor '{name}'; add it there first")
    if value is None:
        entry.pop(key, None)
    else:
        entry[key] = value
    write_atomic(path, tomlkit.dumps(document))
    p.save(field=True)


def set_home(p: Project, robot: Mechanism, tree: Any) -> None:
    """Write the present configuration of a robot with loops as its home."""
    path = _sidecar(p)
    document = _document(path)
    line = tomlkit.inline_table()
    for name, value in zip(robot.tree.coordinates, tree, strict=True):
        line[name] = float(f"{value:.9g}")
    document["home"] = line
    write_atomic(path, tomlkit.dumps(document))
    p.save(field=True)


def set_limit(p: Project, joint: str, key: str, value: float | None) -> None:
    """Write a limit of a joint into limits.toml; None restores that of the description."""
    if not p.settings.limits:
        p.settings.limits = "limits.toml"
    path = p.folder / p.settings.limits
    document = _document(path)
    joints = document.setdefault("joints", tomlkit.table(is_super_table=True))
    entry = joints.setdefault(joint, tomlkit.table())
    if value is None:
        entry.pop(key, None)
    else:
        entry[key] = value
    if not entry:
        del joints[joint]
    if not joints:
        del document["joints"]
    if document:
        write_atomic(path, tomlkit.dumps(document))
    else:
        path.unlink(missing_ok=True)
        p.settings.limits = ""
    p.save(field=True)


def known_numbers(p: Project) -> tuple[dict[str, float], dict[str, dict[str, float]], dict[str, float]]:
    """Return weighed masses by body, limits by joint and gains by motor from the files."""
    side = _document(p.folder / p.settings.sidecar).unwrap() if p.settings.sidecar else {}
    limits = _document(p.folder / p.settings.limits).unwrap() if p.settings.limits else {}
    masses = side.get("known", {}).get("masses", {})
    weighed = {body: float(x[0] if isinstance(x, list) else x) for body, x in masses.items()}
    gains = {str(x.get("name")): float(x["gain"]) for x in side.get("actuator", []) if "gain" in x}
    return weighed, limits.get("joints", {}), gains
