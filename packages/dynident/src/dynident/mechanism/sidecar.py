"""The sidecar: a TOML file beside a URDF with what URDF cannot say; ``docs/describe.md`` lists its keys."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dynident.arrays import Array
from dynident.errors import DescriptionError
from dynident.files import read_toml, write_atomic
from dynident.friction.law import Friction
from dynident.friction.terms import check_terms
from dynident.friction.text import law_of, law_text
from dynident.mechanism.elements import Actuator, Coupling, Loop, Placement, frozen
from dynident.mechanism.force import Force
from dynident.mechanism.mechanism import Mechanism
from dynident.mechanism.xml import LARGEST, naming_file

_TOP = (
    "gravity",
    "terms",
    "joint_terms",
    "independent",
    "home",
    "loop",
    "coupling",
    "actuator",
    "friction",
    "force",
    "known",
)
_LOOP = ("name", "kind", "body_a", "body_b", "xyz_a", "rpy_a", "xyz_b", "rpy_b", "axis", "axis2")
_COUPLING = ("joint", "of", "offset")
_ACTUATOR = ("name", "coupling", "ratio", "offset", "gain")


def apply_sidecar(mechanism: Mechanism, path: str | os.PathLike[str], drives: tuple[Actuator, ...] = ()) -> Mechanism:
    """Return the mechanism with what the sidecar adds.

    Loops and couplings are added to those of the mechanism; actuators, terms and gravity replace them.

    Parameters
    ----------
    mechanism : Mechanism
        Robot read from its description.
    path : path-like
        TOML file, laid out as at the top of this module.
    drives : tuple of Actuator
        Actuators the description itself declares: all that is known when loops appear and the sidecar names none.
    """
    tables = read_toml(path, "the sidecar", DescriptionError)
    with naming_file(path):
        _known(tables, _TOP, "the sidecar")
        loops = [_loop(table, i) for i, table in enumerate(_tables(tables, "loop"), 1)]
        couplings = [_coupling(table, i) for i, table in enumerate(_tables(tables, "coupling"), 1)]
        actuators = [_actuator(table, i) for i, table in enumerate(_tables(tables, "actuator"), 1)]
        every_coupling = (*mechanism.couplings, *couplings)
        if not actuators:
            # A joint that follows now has no drive of its own, and in a loop no drive can be guessed.
            following = {coupling.joint for coupling in couplings}
            known = drives if loops else mechanism.actuators
            actuators = [a for a in known if not following.intersection(a.coupling)]
        changed = replace(
            mechanism,
            loops=(*mechanism.loops, *loops),
            couplings=every_coupling,
            actuators=tuple(actuators),
            gravity=_vector(tables, "gravity", mechanism.gravity, "the sidecar"),
            independent=_names(tables, "independent", mechanism.independent),
            home={**mechanism.home, **(_ratios(tables, "home", "the sidecar") if "home" in tables else {})},
        )
        if "terms" in tables:
            changed = changed.with_terms(check_terms(_names(tables, "terms", ())))
        own = tables.get("joint_terms", {})
        if not isinstance(own, dict):
            raise DescriptionError(f"joint_terms is {own!r}; write it as a [joint_terms] table")
        changed = changed.with_terms({name: check_terms(_names(own, name, ())) for name in own})
        laws = {
            str(table.get("joint")): friction_of(table, f"[[friction]] number {i}")
            for i, table in enumerate(_tables(tables, "friction"), 1)
        }
        forces = [force_of(table, f"[[force]] number {i}") for i, table in enumerate(_tables(tables, "force"), 1)]
        return changed.with_friction(laws).with_forces(*forces)


def write_sidecar(mechanism: Mechanism, path: str | os.PathLike[str], structure: bool = True) -> Path:
    """Write loops, couplings, actuators, terms, friction laws, force elements and gravity of a mechanism as a sidecar.

    Parameters
    ----------
    mechanism : Mechanism
        Robot.
    path : path-like
        TOML file to write.
    structure : bool
        False to leave out loops, couplings and actuators, which another file has already.
    """
    lines = [f"gravity = {_toml(mechanism.gravity)}", f"terms = {_toml(mechanism.terms)}"]
    if not structure:
        return write_atomic(path, "\n".join([*lines, *_own_lines(mechanism)]) + "\n")
    if mechanism.independent:
        lines.append(f"independent = {_toml(mechanism.independent)}")
    if mechanism.home:
        lines.append(f"home = {_toml(dict(mechanism.home))}")
    lines += _own_lines(mechanism)
    for loop in mechanism.loops:
        lines += ["", "[[loop]]"]
        fields: dict[str, Any] = {key: getattr(loop, key) for key in ("name", "kind", "body_a", "body_b")}
        for side, placement in (("a", loop.placement_a), ("b", loop.placement_b)):
            fields |= {f"xyz_{side}": placement.translation, f"rpy_{side}": rpy_of(placement.rotation)}
        lines += [f"{key} = {_toml(value)}" for key, value in (fields | {"axis": loop.axis, "axis2": loop.axis2}).items()]
    for coupling in mechanism.couplings:
        lines += ["", "[[coupling]]"]
        lines += [f"{key} = {_toml(getattr(coupling, key))}" for key in _COUPLING]
    for actuator in mechanism.actuators:
        lines += ["", "[[actuator]]"]
        values = ((key, getattr(actuator, key)) for key in _ACTUATOR)
        lines += [f"{key} = {_toml(value)}" for key, value in values if value is not None]
    return write_atomic(path, "\n".join(lines) + "\n")


def _own_lines(mechanism: Mechanism) -> list[str]:
    """Return the tables of joint terms, friction laws and force elements."""
    parts, lines = own_parts(mechanism), list[str]()
    if parts["joint_terms"]:
        lines += ["", "[joint_terms]", *(f"{_toml(name)} = {_toml(terms)}" for name, terms in parts["joint_terms"].items())]
    for label, key in (("friction", "friction"), ("force", "forces")):
        for table in parts[key]:
            lines += ["", f"[[{label}]]", *(f"{field} = {_toml(value)}" for field, value in table.items())]
    return lines


def rpy_of(rotation: Array) -> Array:
    """Return roll, pitch, yaw with R = Rz(yaw) Ry(pitch) Rx(roll)."""
    R = rotation
    pitch = np.arctan2(-R[2, 0], np.hypot(R[0, 0], R[1, 0]))
    if np.hypot(R[0, 0], R[1, 0]) < 1e-9:
        return np.array([0.0, pitch, np.arctan2(-R[0, 1], R[1, 1])])
    return np.array([np.arctan2(R[2, 1], R[2, 2]), pitch, np.arctan2(R[1, 0], R[0, 0])])


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        # JSON-like escapes are TOML's basic strings.
        return json.dumps(value)
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_toml(key)} = {_toml(item)}" for key, item in value.items()) + " }"
    if isinstance(value, np.ndarray | tuple | list):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    return repr(float(value))


def _known(table: Mapping[str, Any], known: Sequence[str], where: str) -> None:
    for key in table:
        if key not in known:
            raise DescriptionError(f"{where}: unknown key '{key}'; known keys are {', '.join(known)}")


def _tables(tables: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    value = tables.get(key, [])
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise DescriptionError(f"'{key}' is {value!r}; write it as [[{key}]] tables")
    return value


def _text(table: Mapping[str, Any], key: str, where: str) -> str:
    value = table.get(key)
    if not isinstance(value, str) or not value:
        raise DescriptionError(f"{where}: {key} is {value!r}; give a name in quotes")
    return value


def _number(table: Mapping[str, Any], key: str, default: float, where: str) -> float:
    value = table.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < LARGEST:
        raise DescriptionError(f"{where}: {key} is {value!r}; give a finite number")
    return float(value)


def _vector(table: Mapping[str, Any], key: str, default: Any, where: str) -> Array:
    value = frozen(table.get(key, default), (3,), f"{where}: {key}")
    if np.max(np.abs(value)) > LARGEST:
        raise DescriptionError(f"{where}: {key} is {value.tolist()}; give numbers below {LARGEST:g}")
    return value


def _ratios(table: Mapping[str, Any], key: str, where: str) -> dict[str, float]:
    value = table.get(key)
    if not isinstance(value, dict) or not value:
        raise DescriptionError(f"{where}: {key} is {value!r}; give ratios such as {{ joint1 = 1.0 }}")
    flat: dict[str, float] = {}
    for name, ratio in value.items():
        # An unquoted dotted key (base.x = 1.0) reads as a nested table.
        items = {f"{name}.{suffix}": r for suffix, r in ratio.items()} if isinstance(ratio, dict) else {name: ratio}
        flat |= {label: _number(items, label, 0.0, f"{where}: {key}") for label in items}
    return flat


def _names(table: Mapping[str, Any], key: str, default: tuple[str, ...]) -> tuple[str, ...]:
    names = table.get(key, default)
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise DescriptionError(f'{key} is {names!r}; give a list of names such as ["a", "b"]')
    return tuple(names)


def _loop(table: Mapping[str, Any], i: int) -> Loop:
    where = f"[[loop]] number {i}"
    _known(table, _LOOP, where)
    zero = np.zeros(3)
    placements = [
        Placement.from_rpy(_vector(table, f"xyz_{side}", zero, where), _vector(table, f"rpy_{side}", zero, where))
        for side in "ab"
    ]
    name, kind, a, b = (_text(table, key, where) for key in ("name", "kind", "body_a", "body_b"))
    axes = (_vector(table, "axis", (0.0, 0.0, 1.0), where), _vector(table, "axis2", (0.0, 1.0, 0.0), where))
    return Loop(name, kind, a, b, placements[0], placements[1], *axes)


def _coupling(table: Mapping[str, Any], i: int) -> Coupling:
    where = f"[[coupling]] number {i}"
    _known(table, _COUPLING, where)
    return Coupling(_text(table, "joint", where), _ratios(table, "of", where), _number(table, "offset", 0.0, where))


def _actuator(table: Mapping[str, Any], i: int) -> Actuator:
    where = f"[[actuator]] number {i}"
    _known(table, _ACTUATOR, where)
    gain = _number(table, "gain", 0.0, where) if "gain" in table else None
    return Actuator(
        _text(table, "name", where),
        _ratios(table, "coupling", where),
        _number(table, "ratio", 1.0, where),
        _number(table, "offset", 0.0, where),
        gain,
    )


def own_parts(mechanism: Mechanism) -> dict[str, Any]:
    """Return terms, friction laws and force elements of a robot as plain data."""
    return {
        "terms": list(mechanism.terms),
        "joint_terms": {name: list(terms) for name, terms in mechanism.joint_terms.items()},
        "friction": [
            {"joint": name, "law": law_text(friction.law), "values": friction.parameters}
            | ({"known": list(friction.known)} if friction.known else {})
            for name, friction in mechanism.friction.items()
        ],
        "forces": [force_table(force) for force in mechanism.forces if isinstance(force, Force)],
    }


def with_own_parts(mechanism: Mechanism, data: Mapping[str, Any]) -> Mechanism:
    """Return a robot with the terms, friction laws and force elements of plain data."""
    terms, own = tuple(data["terms"]), {name: tuple(found) for name, found in data.get("joint_terms", {}).items()}
    changed = mechanism
    if mechanism.terms != terms or dict(mechanism.joint_terms) != own:
        changed = mechanism.with_terms(terms).with_terms(own)
    return with_laws_and_forces(changed, data.get("friction", []), data.get("forces", []))


def with_laws_and_forces(mechanism: Mechanism, friction: Any, forces: Any) -> Mechanism:
    """Return a robot whose laws and force elements are those of plain data."""
    for name, tables in (("friction", friction), ("forces", forces)):
        if not isinstance(tables, list) or not all(isinstance(table, Mapping) for table in tables):
            raise DescriptionError(f"{name} is {str(tables)[:60]}, not a list of tables; the file was cut or edited")
    laws = {str(table.get("joint")): friction_of(table, "friction") for table in friction}
    found = [force_of(table, "force") for table in forces]
    kept = [force for force in mechanism.forces if not isinstance(force, Force)]
    if not (laws or found or mechanism.friction or len(kept) < len(mechanism.forces)):
        return mechanism
    return mechanism.altered(friction={}, forces=(*kept, *found)).with_friction(laws)


def force_table(force: Force) -> dict[str, Any]:
    """Return a force element as plain data."""
    table: dict[str, Any] = {"name": force.name}
    if force.energy:
        table["energy"] = force.energy
    else:
        table["on"] = dict(force.texts)
    table |= {"value": force.value, "known": force.known}
    table |= {"unit": force.unit} if force.unit else {}
    return table | ({"held": dict(force.held)} if force.held else {})


def force_of(table: Mapping[str, Any], where: str) -> Force:
    """Return the force element of a table of a sidecar or a stored fit."""
    fields = ("name", "joint", "expression", "on", "energy", "value", "known", "unit", "held")
    _known(table, fields, where)
    for key in ("name", "joint", "expression", "energy", "unit"):
        if key in table and not isinstance(table[key], str):
            raise DescriptionError(f"{where}: {key} is {table[key]!r}; give a text in quotes")
    known = table.get("known", False)
    value = table.get("value")
    if not isinstance(known, bool):
        raise DescriptionError(f"{where}: known is {known!r}; give true or false")
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise DescriptionError(f"{where}: value is {value!r}; give a number")
    held = table.get("held", {})
    if not isinstance(held, dict) or not all(isinstance(x, int | float) and not isinstance(x, bool) for x in held.values()):
        raise DescriptionError(
            f"{where}: held is {str(held)[:60]}; give the position of each joint, such as {{ joint1 = 0.3 }}"
        )
    on = table.get("on", table.get("joint", {}))
    if isinstance(on, dict) and not all(isinstance(text, str) for text in on.values()):
        raise DescriptionError(f'{where}: on is {on!r}; give expressions in quotes, such as {{ joint1 = "q - 0.3" }}')
    if not isinstance(on, dict | str):
        raise DescriptionError(f"{where}: on is {on!r}; give a joint with its expression")
    return Force(
        table.get("name", ""),
        on,
        table.get("expression", ""),
        table.get("energy", ""),
        value,
        known,
        table.get("unit", ""),
        held,
    )


def friction_of(table: Mapping[str, Any], where: str) -> Any:
    """Return the friction law of a table, with its numbers where they are given."""
    _known(table, ("joint", "law", "values", "known"), where)
    for key in ("joint", "law"):
        if not isinstance(table.get(key), str):
            raise DescriptionError(f"{where}: {key} is {table.get(key)!r}; give a text in quotes")
    law, values = law_of(table["law"]), table.get("values")
    if values is None:
        return law
    if not isinstance(values, dict) or not all(isinstance(x, int | float) for x in values.values()):
        raise DescriptionError(f"{where}: values is {values!r}; give a number for each of {', '.join(law.parameters)}")
    known = table.get("known", [])
    if not isinstance(known, list) or not all(isinstance(name, str) for name in known):
        raise DescriptionError(f"{where}: known is {known!r}; give a list of shape parameters")
    return Friction(law, np.concatenate(law.split({name: float(x) for name, x in values.items()})), tuple(known))
