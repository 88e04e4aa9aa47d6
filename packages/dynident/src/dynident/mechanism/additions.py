"""Terms, friction laws and force elements as plain data, for files: what URDF and MJCF cannot say of a joint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dynident.errors import DescriptionError
from dynident.friction.law import Friction
from dynident.friction.text import law_of, law_text
from dynident.mechanism.force import Force
from dynident.mechanism.mechanism import Mechanism


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


def _known(table: Mapping[str, Any], known: tuple[str, ...], where: str) -> None:
    for key in table:
        if key not in known:
            raise DescriptionError(f"{where}: unknown key '{key}'; known keys are {', '.join(known)}")
