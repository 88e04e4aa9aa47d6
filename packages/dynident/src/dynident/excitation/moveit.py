"""Limits from the joint_limits.yaml of a MoveIt configuration.

joint_limits:
  elbow_joint:
    has_velocity_limits: true
    max_velocity: 3.15                # likewise acceleration, jerk, effort; min_position, max_position
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dynident.checks import number, shown
from dynident.errors import DynidentError, missing_extra

#: Flag, entry and the field of ours.
ENTRIES = (
    ("has_position_limits", "min_position", "lower"),
    ("has_position_limits", "max_position", "upper"),
    ("has_velocity_limits", "max_velocity", "velocity"),
    ("has_acceleration_limits", "max_acceleration", "acceleration"),
    ("has_jerk_limits", "max_jerk", "jerk"),
    ("has_effort_limits", "max_effort", "torque"),
)
#: Characters of the file.
LARGEST = 300_000
SCALES = {"velocity": "default_velocity_scaling_factor", "acceleration": "default_acceleration_scaling_factor"}


def moveit_limits(content: str, where: str) -> dict[str, Any]:
    """Return the settings of `limits_of` from the text of a joint_limits.yaml; scaling factors reduce them."""
    try:
        import yaml  # noqa: PLC0415 - optional
    except ImportError as error:
        raise missing_extra("yaml", "yaml", "reading joint_limits.yaml") from error
    if len(content) > LARGEST or "<<" in content:  # PyYAML takes a second for 50 kB, and merged tables grow without bound
        raise DynidentError(f"limits '{where}' have more than {LARGEST} characters, or merge tables (<<); write them out")
    try:
        data = yaml.safe_load(content)
    except (yaml.YAMLError, RecursionError, ValueError, TypeError, LookupError, AttributeError) as error:
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DynidentError(f"cannot read limits from '{where}': {first}") from error
    table = data.get("joint_limits") if isinstance(data, Mapping) else None
    if not isinstance(table, Mapping) or not all(isinstance(entry, Mapping) for entry in table.values()):
        raise DynidentError(f"limits '{where}' have no table 'joint_limits' with an entry per joint, as MoveIt writes them")
    joints: dict[str, dict[str, float]] = {}
    for name, entry in table.items():
        found: dict[str, float] = {}
        for flag, key, field in ENTRIES:
            if key not in entry or entry.get(flag) is False:
                continue
            value = number(f"limits: {shown(name)}.{key}", entry[key])
            scale = number(f"limits: {SCALES.get(field, field)}", data.get(SCALES.get(field, ""), 1.0))
            if field in ("velocity", "acceleration", "jerk", "torque") and not 0.0 < value * scale < np.inf:
                raise DynidentError(f"limits: {shown(name)}.{key} is {value:g}; it must be above zero")
            found[field] = value * scale
        joints[str(name)] = found
    return {"joints": joints}
