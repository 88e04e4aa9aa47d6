"""Conventional channel names: `q_elbow`, `Position3`, `- arm_1_joint_velocity`, `torques`, ... are recognised."""

from __future__ import annotations

import re
from collections.abc import Iterable

ROLES = ("position", "velocity", "acceleration", "effort", "temperature")

TIME_NAMES = ("t", "time", "times", "timestamp", "timestamps", "time_s", "t_s", "stamp", "seconds", "t [s]", "time [s]")

#: role -> family -> words. A family is one way to measure the role: two families of effort are not interchangeable.
WORDS: dict[str, dict[str, tuple[str, ...]]] = {
    "position": {"position": ("joint_positions", "positions", "position", "actual_q", "pos", "qm", "q", "theta", "angle")},
    "velocity": {"velocity": ("joint_velocities", "velocities", "velocity", "actual_qd", "vel", "dq", "qd", "dtheta", "v")},
    "acceleration": {"acceleration": ("accelerations", "acceleration", "acc", "ddq", "qdd", "a")},
    "effort": {
        "torque": ("joint_torques", "torques", "torque", "tau", "trq"),
        "force": ("forces", "force"),
        "current": ("actual_current", "currents", "current", "cur", "i"),
        "voltage": ("voltages", "voltage", "u"),
        "effort": ("joint_efforts", "efforts", "effort", "eff"),
    },
    "temperature": {"temperature": ("temperatures", "temperature", "temp")},
}

#: effort kind -> families of columns that can hold it.
FAMILIES_OF_KIND: dict[str, tuple[str, ...]] = {
    "joint_torque": ("torque", "effort"),
    "joint_force": ("force", "effort"),
    "motor_torque": ("torque", "effort"),
    "motor_current": ("current", "effort"),
    "voltage": ("voltage", "effort"),
}


def _patterns() -> list[tuple[str, str, re.Pattern[str]]]:
    """Role, family and expression; the joint is what remains before or after the word."""
    result = []
    for role, families in WORDS.items():
        for family, words in families.items():
            for word in words:
                # A bare letter says too little (i is often a counter): it needs a joint; q alone is the array of all.
                bare = "?" if len(word) > 1 or word == "q" else ""
                tail = rf"(?:[_.\s]+(?P<joint>\S.*)|\[?(?P<number>\d+)\]?){bare}$"
                result.append((role, family, re.compile(rf"^{word}{tail}", re.I)))
                if len(word) > 2:
                    result.append((role, family, re.compile(rf"^(?P<joint>.*\S)[_.\s/]+{word}$", re.I)))
    return result


_PATTERNS = _patterns()


def recognise(column: str) -> tuple[str, str, str] | None:
    """Return (role, family, joint) of a conventional column name; joint is "" for an array of all joints.

    A numbered channel has the joint "1", "2", ...; None means the name says nothing.
    """
    text = re.sub(r"^[^A-Za-z]+", "", column.strip())
    text = re.sub(r"\s*[\[(][A-Za-z/^0-9·%]*[A-Za-z%][A-Za-z/^0-9·%]*[\])]$", "", text)  # a unit in brackets
    for role, family, pattern in _PATTERNS:
        match = pattern.match(text)
        if match:
            groups = match.groupdict()
            return role, family, (groups.get("joint") or groups.get("number") or "").strip()
    return None


def is_time(column: str) -> bool:
    """Whether the name says that the column is the clock."""
    return column.strip().lower() in TIME_NAMES


def discover(columns: Iterable[str]) -> dict[str, dict[str, dict[str, str]]]:
    """Group column names: role -> family -> joint -> column (joint "" is an array of all joints)."""
    found: dict[str, dict[str, dict[str, str]]] = {}
    for column in columns:
        known = None if is_time(column) else recognise(column)
        if known:
            role, family, joint = known
            found.setdefault(role, {}).setdefault(family, {}).setdefault(joint, column)
    return found
