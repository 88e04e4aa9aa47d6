"""The sidecar: a TOML file next to a URDF with content that URDF lacks; ``docs/reference/formats.md`` lists its keys."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import tomlkit

from dynident.arrays import Array
from dynident.errors import DescriptionError
from dynident.files import read_text, read_toml, visible, write_atomic
from dynident.friction.law import Friction
from dynident.friction.terms import check_terms
from dynident.friction.text import law_of, law_text
from dynident.mechanism.elements import Actuator, Coupling, Loop, Placement, frozen
from dynident.mechanism.force import Columns, Force
from dynident.mechanism.loop_closures import is_loop_closures, sidecar_of_closures
from dynident.mechanism.mechanism import Mechanism, passive_terms
from dynident.mechanism.xml import LARGEST, naming_file

_TOP = (
    "gravity",
    "terms",
    "joint_terms",
    "massless",
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
_ACTUATOR = ("name", "coupling", "ratio", "offset", "gain", "terms")
#: Values that the table of a loop or an actuator may omit.
DEFAULTS: dict[str, Any] = {
    **{key: [0.0, 0.0, 0.0] for key in ("xyz_a", "rpy_a", "xyz_b", "rpy_b")},
    **{"axis": [0.0, 0.0, 1.0], "axis2": [0.0, 1.0, 0.0], "ratio": 1.0, "offset": 0.0},
}


def apply_sidecar(mechanism: Mechanism, path: str | os.PathLike[str], drives: tuple[Actuator, ...] = ()) -> Mechanism:
    """Return the mechanism with the additions of the sidecar.

    Loops and couplings are added to the mechanism's; actuators, terms and gravity replace the mechanism's.

    Parameters
    ----------
    mechanism : Mechanism
        Robot read from its description.
    path : path-like
        TOML file, or loop_closures.yaml of a CAD exporter.
    drives : tuple of Actuator
        Actuators declared by the description, the only ones known if the sidecar adds loops without naming actuators.
    """
    closures = is_loop_closures(path)
    tables = {} if closures else read_toml(path, "the sidecar", DescriptionError)
    with naming_file(path):
        tables = sidecar_of_closures(mechanism, path) if closures else tables
        check_keys(tables, _TOP, "the sidecar")
        loops = [_loop(table, i) for i, table in enumerate(_tables(tables, "loop"), 1)]
        couplings = [_coupling(table, i) for i, table in enumerate(_tables(tables, "coupling"), 1)]
        actuators = [_actuator(table, i) for i, table in enumerate(_tables(tables, "actuator"), 1)]
        every_coupling = (*mechanism.couplings, *couplings)
        if not actuators:
            # A joint that follows now has no drive, and in a loop no drive can be guessed.
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
        own = tables.get("joint_terms", {})
        if not isinstance(own, dict):
            raise DescriptionError(f"joint_terms is {own!r}; write it as a [joint_terms] table")
        changed = _with_terms(
            changed,
            check_terms(_names(tables, "terms", ())) if "terms" in tables else None,
            {name: check_terms(_names(own, name, ())) for name in own},
        )
        if "terms" not in tables:
            changed = without_passive_terms(changed)
        changed = _without_inertia(changed, _names(tables, "massless", ()))
        laws = {
            str(table.get("joint")): friction_of(table, f"[[friction]] number {i}")
            for i, table in enumerate(_tables(tables, "friction"), 1)
        }
        forces = [force_of(table, f"[[force]] number {i}") for i, table in enumerate(_tables(tables, "force"), 1)]
        return changed.with_friction(laws).with_forces(*forces)


def _with_terms(mechanism: Mechanism, terms: tuple[str, ...] | None, own: Mapping[str, tuple[str, ...]]) -> Mechanism:
    """Return the robot with other terms of all and of single joints; values of the description are kept for remaining terms."""
    described = {joint.name: joint.terms for joint in mechanism.joints}
    changed = mechanism if terms is None else mechanism.with_terms(terms)
    changed = changed.with_terms(own)
    joints = []
    for joint in changed.joints:
        chosen = own.get(joint.name, changed.joint_terms.get(joint.name, terms))
        kept = {k: v for k, v in described[joint.name].items() if chosen is None or k.split(".")[0] in chosen}
        joints.append(replace(joint, terms=kept))
    return changed.altered(joints=tuple(joints))


def without_passive_terms(mechanism: Mechanism) -> Mechanism:
    """Return a robot with loops in which joints without a motor have no rotor inertia, friction or offset.

    Joints with given terms or values keep them. Without named motors nothing changes: any joint may have one.
    """
    own = passive_terms(mechanism)
    return mechanism.altered(joint_terms={**mechanism.joint_terms, **own}) if own else mechanism


def _without_inertia(mechanism: Mechanism, names: Sequence[str]) -> Mechanism:
    """Return the robot without inertial parameters of the named bodies."""
    known = {body.name: body for body in mechanism.bodies}
    for name in names:
        if name not in known:
            raise DescriptionError(f"massless names '{name}'; links of the robot are {', '.join(known)}")
        if known[name].inertia is not None and np.any(known[name].inertia):
            raise DescriptionError(f"massless names '{name}', which has a mass or an inertia in the description")
    return mechanism.altered(
        bodies=tuple(replace(body, inertia=None) if body.name in names else body for body in mechanism.bodies)
    )


def write_sidecar(
    mechanism: Mechanism,
    path: str | os.PathLike[str],
    plain: Mechanism | None = None,
    other: str | os.PathLike[str] | None = None,
) -> Path | None:
    """Write the content that a description lacks as a sidecar; return None if the description is complete.

    Parameters
    ----------
    mechanism : Mechanism
        Robot.
    path : path-like
        TOML file to write.
    plain : Mechanism, optional
        The robot as read from its description alone; everything is written when omitted.
    other : path-like, optional
        Sidecar that provides keys, order and comments; numbers that differ are replaced.
    """
    content = _content(mechanism, plain)
    other = None if other is None or is_loop_closures(other) else other
    document = tomlkit.document() if other is None else tomlkit.parse(read_text(other, "the sidecar", "valid TOML"))
    if not content and not document:
        return None
    if other is None:
        document.add(tomlkit.comment(f"Additions to the description of {visible(mechanism.name)}: {', '.join(content)}"))
    for key in [key for key in document if key not in content and key != "known"]:
        del document[key]
    for key, value in content.items():
        _update(document, key, value)
    return write_atomic(path, tomlkit.dumps(document))


def _update(document: Any, key: str, value: Any) -> None:
    """Set a value of a TOML document if it differs; unchanged entries of tables keep their comments."""
    before = document.get(key)
    if isinstance(before, list) and isinstance(value, list) and value and isinstance(value[0], dict):
        same = len(before) == len(value) and [_label(x) for x in before] == [_label(x) for x in value]
        if same:
            for old, new in zip(before, value, strict=True):
                _update_table(old, new)
            return
    elif isinstance(before, dict) and isinstance(value, dict):
        _update_table(before, value)
        return
    if before is None or _plain(before) != value:
        document[key] = _item(value)


def _update_table(old: Any, new: dict[str, Any]) -> None:
    for name in [name for name in old if name not in new]:
        del old[name]
    for name, value in new.items():
        if name not in old and value == DEFAULTS.get(name):
            continue
        if _plain(old.get(name)) != value:
            old[name] = _item(value)


def _label(table: Mapping[str, Any]) -> Any:
    return table.get("name", table.get("joint"))


def _plain(value: Any) -> Any:
    """Return a TOML value as plain data, numbers as floats."""
    found = value.unwrap() if hasattr(value, "unwrap") else value
    if isinstance(found, list):
        return [_plain(x) for x in found]
    if isinstance(found, dict):
        return {name: _plain(x) for name, x in found.items()}
    return float(found) if isinstance(found, int) and not isinstance(found, bool) else found


def _item(value: Any) -> Any:
    """Return plain data as TOML: lists of tables as [[key]], other tables in one line."""
    if isinstance(value, list) and value and isinstance(value[0], dict):
        tables = tomlkit.aot()
        for entry in value:
            table = tomlkit.table()
            for name, x in entry.items():
                table.add(name, _item(x))
            tables.append(table)
        return tables
    if isinstance(value, dict):
        line = tomlkit.inline_table()
        for name, x in value.items():
            line.append(name, _item(x))
        return line
    return tomlkit.item(value)


def _content(mechanism: Mechanism, plain: Mechanism | None) -> dict[str, Any]:
    """Return the keys of the sidecar that turns the robot `plain` of a description into `mechanism`."""
    known, parts = _whole(plain) if plain is not None else {}, _whole(mechanism)
    for key in ("loop", "coupling"):  # a sidecar adds to those of the description
        there = {_label(table) for table in known.get(key, ())}
        parts[key] = [table for table in parts[key] if _label(table) not in there]
    if plain is not None:  # MJCF has no moving bodies without mass
        heavy = {body.name for body in plain.bodies if body.inertia is not None and np.any(body.inertia)}
        parts["massless"] = [name for name in parts["massless"] if name not in heavy]
        for table in parts["loop"]:  # the base of MJCF is called world
            table |= {key: plain.root for key in ("body_a", "body_b") if table[key] == mechanism.root}
    # Other loops or couplings change the motors that a description implies, so they are named.
    always = {"loop", "coupling", *(["actuator"] if parts["loop"] or parts["coupling"] else [])}
    if plain is None:
        return {key: value for key, value in parts.items() if value or key == "terms"}
    return {
        key: value
        for key, value in parts.items()
        if (value if key in always else value != known[key] and (value or key != "massless"))
    }


def _whole(mechanism: Mechanism) -> dict[str, Any]:
    """Return the complete sidecar content of a robot as plain data."""
    if any(coupling.function is not None for coupling in mechanism.couplings):
        raise DescriptionError(f"robot '{mechanism.name}' has a coupling that is a function, which no file holds")
    if any(isinstance(force, Columns) for force in mechanism.forces):
        raise DescriptionError(f"robot '{mechanism.name}' has columns that are a function, which no file holds")
    parts, inertia = own_parts(mechanism), {body.name: body.inertia for body in mechanism.bodies}
    more = {}  # a joint also has the terms with a value
    for joint in mechanism.joints:
        terms = dict.fromkeys(
            [*mechanism.joint_terms.get(joint.name, mechanism.terms), *(k.split(".")[0] for k in joint.terms)]
        )
        if list(terms) != list(mechanism.joint_terms.get(joint.name, mechanism.terms)):
            more[joint.name] = list(terms)
    return {
        "gravity": mechanism.gravity.tolist(),
        "terms": parts["terms"],
        "independent": list(mechanism.independent),
        "home": dict(mechanism.home),
        "joint_terms": {**parts["joint_terms"], **more},
        "massless": [joint.child for joint in mechanism.joints if joint.kind != "fixed" and inertia[joint.child] is None],
        "loop": [_loop_table(loop) for loop in mechanism.loops],
        "coupling": [{key: _value(getattr(coupling, key)) for key in _COUPLING} for coupling in mechanism.couplings],
        "actuator": _motors(mechanism),
        "friction": parts["friction"],
        "force": parts["forces"],
    }


def _value(value: Any) -> Any:
    return {name: float(x) for name, x in value.items()} if isinstance(value, Mapping) else value


def _motors(mechanism: Mechanism) -> list[dict[str, Any]]:
    """Return the motors of a robot as plain data."""
    tables = [{key: _value(getattr(actuator, key)) for key in _ACTUATOR} for actuator in mechanism.actuators]
    return [{key: x for key, x in table.items() if x is not None and x != {}} for table in tables]


def _loop_table(loop: Loop) -> dict[str, Any]:
    """Return a loop as plain data."""
    fields: dict[str, Any] = {key: getattr(loop, key) for key in ("name", "kind", "body_a", "body_b")}
    for side, placement in (("a", loop.placement_a), ("b", loop.placement_b)):
        fields |= {f"xyz_{side}": placement.translation.tolist(), f"rpy_{side}": rpy_of(placement.rotation).tolist()}
    return fields | {"axis": loop.axis.tolist(), "axis2": loop.axis2.tolist()}


def rpy_of(rotation: Array) -> Array:
    """Return roll, pitch, yaw with R = Rz(yaw) Ry(pitch) Rx(roll)."""
    R = rotation
    pitch = np.arctan2(-R[2, 0], np.hypot(R[0, 0], R[1, 0]))
    if np.hypot(R[0, 0], R[1, 0]) < 1e-9:
        return np.array([0.0, pitch, np.arctan2(-R[0, 1], R[1, 1])])
    return np.array([np.arctan2(R[2, 1], R[2, 2]), pitch, np.arctan2(R[1, 0], R[0, 0])])


def check_keys(table: Mapping[str, Any], known: Sequence[str], where: str) -> None:
    """Refuse unknown keys of a table."""
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
    check_keys(table, _LOOP, where)
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
    check_keys(table, _COUPLING, where)
    return Coupling(_text(table, "joint", where), _ratios(table, "of", where), _number(table, "offset", 0.0, where))


def _actuator(table: Mapping[str, Any], i: int) -> Actuator:
    where = f"[[actuator]] number {i}"
    check_keys(table, _ACTUATOR, where)
    gain = _number(table, "gain", 0.0, where) if "gain" in table else None
    return Actuator(
        _text(table, "name", where),
        _ratios(table, "coupling", where),
        _number(table, "ratio", 1.0, where),
        _number(table, "offset", 0.0, where),
        gain,
        _ratios(table, "terms", where) if "terms" in table else {},
    )


def own_parts(mechanism: Mechanism) -> dict[str, Any]:
    """Return joint terms, friction laws and force elements of a robot as plain data."""
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
    """Return a robot with the friction laws and force elements of plain data."""
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
    check_keys(table, fields, where)
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
    """Return the friction law of a table, with its numbers if given."""
    check_keys(table, ("joint", "law", "values", "known"), where)
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
