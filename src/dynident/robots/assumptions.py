"""Numbers that no document gives, stated with their reason."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class Assumption(NamedTuple):
    """A number that no document gives.

    Parameters
    ----------
    value : object
        Number, or one per axis or link.
    unit : str
        SI unit.
    why : str
        Why this value.
    """

    value: Any
    unit: str
    why: str


def listed(assumptions: Mapping[str, Assumption]) -> str:
    """Return assumptions as lines to read."""
    return "\n".join(f"{name} = {a.value} {a.unit}: {a.why}" for name, a in assumptions.items())
