"""Drives of a robot from a TOML file, instead of ideal drives.

.. code-block:: toml

    [[drive]]
    actuator = ["joint1", "joint2"]          # a name or several; absent: all without their own table
    motor = { torque_constant = 0.11, inertia = 5e-5, current_limit = 12.0, speed_limit = 400.0 }
    gear = { ratio = 101.0, efficiency = 0.9 }       # or stiffness = [...], inertias = [...], damping = [...], backlash
    encoder = { counts = 8192, side = "motor" }      # or resolution [rad, m]; noise, velocity, filter
    friction = { law = "coulomb + viscous", values = { fc = 0.02, fv = 1e-4 } }    # of the rotor, at the motor

Keys and units are those of `dynident.drive.Motor`, `Transmission` and `Encoder`. Absent entries are ideal.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from dynident.checks import number, whole
from dynident.drive.drive import Drive, Encoder, Motor, Transmission
from dynident.errors import DescriptionError, DynidentError
from dynident.files import read_toml
from dynident.friction.law import Friction
from dynident.friction.text import law_of
from dynident.mechanism.mechanism import Mechanism
from dynident.mechanism.sidecar import check_keys

_KEYS = ("actuator", "motor", "gear", "encoder", "friction")


def read_drives(path: str | os.PathLike[str], mechanism: Mechanism) -> tuple[Drive, ...]:
    """Read the drives of a robot.

    Parameters
    ----------
    path : path-like
        TOML file, laid out as at the top of this module.
    mechanism : Mechanism
        Robot whose actuators the drives move; a gear without a ratio takes the ratio of its actuator.

    Returns
    -------
    tuple of Drive
        One per actuator, in the order of the robot.
    """
    tables = read_toml(path, "the drives", DescriptionError)
    entries = tables.get("drive")
    if set(tables) != {"drive"} or not isinstance(entries, list) or not all(isinstance(x, dict) for x in entries):
        raise DescriptionError(f"drives '{path}': it has the keys {', '.join(tables)}; give tables that begin with [[drive]]")
    known = [actuator.name for actuator in mechanism.actuators]
    # An actuator of a single joint may be named by that joint.
    of_joint = {next(iter(a.coupling)): a.name for a in mechanism.actuators if len(a.coupling) == 1}
    chosen: dict[str, dict[str, Any]] = {}
    rest: dict[str, Any] | None = None
    for i, table in enumerate(entries, 1):
        where = f"drives '{path}': drive {i}"
        check_keys(table, _KEYS, where)
        named = table.get("actuator")
        if named is None and rest is not None:
            raise DescriptionError(f"{where} is the second table without an actuator; give at most one")
        if named is None:
            rest = table
            continue
        for given in [named] if isinstance(named, str) else named if isinstance(named, list) else [repr(named)]:
            name = given if given in known else of_joint.get(str(given), given)
            if name not in known:
                raise DescriptionError(
                    f"{where}: there is no actuator {name!r}; robot '{mechanism.name}' has {', '.join(known)}"
                )
            if name in chosen:
                raise DescriptionError(f"{where}: actuator '{name}' has a drive already; name it once")
            chosen[name] = table
    missing = [name for name in known if name not in chosen]
    if missing and rest is None:
        raise DescriptionError(
            f"drives '{path}' has no entry for {', '.join(missing)}; add them, or give a table without an actuator"
        )
    try:
        return tuple(
            _drive(actuator.name, chosen.get(actuator.name, rest or {}), actuator.ratio) for actuator in mechanism.actuators
        )
    except DynidentError as error:
        raise DescriptionError(f"drives '{path}': {error}") from error


def _drive(name: str, table: Mapping[str, Any], ratio: float) -> Drive:
    where = f"drive '{name}'"
    motor = _part(table, "motor", Motor, where)
    gear = {"ratio": ratio, **_part(table, "gear", Transmission, where)}
    sensor = _part(table, "encoder", Encoder, where, "counts")
    if "torque_constant" not in motor:
        raise DescriptionError(f"{where}: motor has no torque_constant; give it in N m/A, or N m/V of an amplifier's command")
    if "counts" in sensor:
        counts = whole(f"{where}: encoder counts", sensor.pop("counts"), least=1, kind=DescriptionError)
        sensor["resolution"] = 2.0 * math.pi / counts
    friction = (
        None if "friction" not in table else _friction(_table(table["friction"], f"{where}: friction"), f"{where}: friction")
    )
    return Drive(name, Motor(**motor), Transmission(**gear), friction, Encoder(**sensor))


def _friction(table: Mapping[str, Any], where: str) -> Friction:
    check_keys(table, ("law", "values"), where)
    if not isinstance(table.get("law"), str):
        raise DescriptionError(f'{where}: law is {table.get("law")!r}; give a text, such as "coulomb + viscous"')
    law, values = law_of(table["law"]), table.get("values")
    if not isinstance(values, dict):
        raise DescriptionError(f"{where}: values is {values!r}; give a number for each of {', '.join(law.parameters)}")
    return law.using({name: number(f"{where}: {name}", value) for name, value in values.items()})


def _part(table: Mapping[str, Any], key: str, kind: type, where: str, *more: str) -> dict[str, Any]:
    part = _table(table.get(key, {}), f"{where}: {key}")
    check_keys(part, (*(field.name for field in fields(kind)), *more), f"{where}: {key}")
    return dict(part)


def _table(value: object, where: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise DescriptionError(f"{where} is {value!r}; give a table in braces, such as {{ ratio = 100.0 }}")
    return value
