"""Checks of the numbers of a controller: one sentence each, naming the field, the value and the remedy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynident.checks import gain, number
from dynident.errors import DynidentError, DynidentWarning, require
from dynident.mechanism.mechanism import Mechanism

WHOLE = 1e-6  # how far the ratio of two cycle times may be from a whole number


class ControlWarning(DynidentWarning):
    """The loops can be made as asked, but they will be close to their limits (small margins, slow cycles)."""


def check_preload(owner: str, preload: ArrayLike, mechanism: Mechanism) -> None:
    """Refuse a preload on a robot that has no more motors than freedoms: no torques press it against itself."""
    k, n = len(mechanism.actuators), mechanism.dof
    if np.any(np.asarray(preload, dtype=np.float64)) and k <= n:
        raise DynidentError(
            f"{owner}: preload needs more motors than freedoms, but robot '{mechanism.name}' has {k} for {n}; leave it out"
        )


def whole_ratio(owner: str, slow: tuple[str, float], fast: tuple[str, float]) -> int:
    """Return how many cycles of the inner loop fit into one of the outer loop, a whole number of at least one."""
    ratio = slow[1] / fast[1]
    if ratio < 1.0 - WHOLE:
        raise DynidentError(
            f"{owner}: {fast[0]} = {fast[1]} s is longer than {slow[0]} = {slow[1]} s; the inner loop must not be slower"
        )
    if not math.isfinite(ratio) or abs(ratio - round(ratio)) > WHOLE * ratio:
        raise DynidentError(
            f"{owner}: {slow[0]} = {slow[1]} s is {ratio:.6g} times {fast[0]} = {fast[1]} s; make it a whole multiple"
        )
    return round(ratio)


def check_gains(owner: str, law: Any) -> None:
    """Check what all laws that command torques have: gains, filter, cycle, preload and delay."""
    for field in ("kp", "kd", "ki", "derivative_filter"):
        object.__setattr__(law, field, gain(owner, field, getattr(law, field)))
    object.__setattr__(law, "cycle", number(f"{owner}: cycle", law.cycle, above=0.0, unit="s"))
    object.__setattr__(law, "preload", gain(owner, "preload", law.preload, signed=True))
    object.__setattr__(law, "delay", number(f"{owner}: delay", law.delay, least=0.0, unit="s"))


def optional_model(owner: str, field: str, value: object) -> None:
    """Refuse a model that is neither None nor a Mechanism."""
    if value is not None:
        require(value, Mechanism, f"{owner}: {field}")
