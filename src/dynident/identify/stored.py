"""What comes back from a file is checked before it is believed: files are cut, edited and mixed up."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynident.errors import IdentificationError
from dynident.identify.base import BaseParameters, base_parameters
from dynident.mechanism import Mechanism
from dynident.results import array_of

LARGEST = 1e100  # squares and products of such numbers stay finite
NUMBERS = ("start", "end", "cutoff", "bandwidth")


def stored_numbers(values: Any, shape: tuple[int, ...], what: str) -> NDArray[np.float64]:
    """Return stored numbers as an array after checking their shape and that none is missing."""
    array: NDArray[np.float64] = array_of(values, what)
    if array.shape != shape or not np.all(np.abs(array) < LARGEST):  # NaN is not smaller either
        raise IdentificationError(
            f"this is not a whole fit: '{what}' needs {' x '.join(map(str, shape))} finite numbers; identify again"
        )
    return array


def stored_flags(values: Any, size: int, what: str) -> NDArray[np.bool_] | None:
    """Return stored yes-or-no values after checking that none is missing; None where none were stored."""
    if values is None:
        return None
    if len(values) != size or not all(isinstance(value, bool) for value in values):
        raise IdentificationError(f"this is not a whole fit: '{what}' needs {size} values, true or false; identify again")
    return np.array(values, dtype=bool)


def stored_source(source: Any) -> dict[str, Any]:
    """Return the stored record of a log after checking that it can be compared with other logs."""
    record = dict(source)
    for key in ("sha256", *NUMBERS):
        value = record.get(key)
        number = isinstance(value, int | float) and not isinstance(value, bool) and np.isfinite(value)
        if not isinstance(value, str) if key == "sha256" else not number:
            raise IdentificationError(f"this is not a whole fit: '{key}' of one of its sources is {value!r}; identify again")
    for key in ("cutoff", "bandwidth"):
        if record[key] <= 0.0:
            raise IdentificationError(
                f"this is not a whole fit: '{key}' of one of its sources is {record[key]}; identify again"
            )
    return record


def stored_options(options: Any) -> dict[str, Any]:
    """Return the stored options of the preparation after checking that all of them exist."""
    from dynident.signals import prepare  # noqa: PLC0415 - only needed here

    known = inspect.signature(prepare).parameters
    unknown = [name for name in dict(options) if name not in known]
    if unknown:
        raise IdentificationError(f"the fit was made with options that are not known here: {', '.join(map(str, unknown))}")
    return dict(options)


def loads_of(mechanism: Mechanism) -> dict[str, str]:
    """Return the bodies with parameters of their own, such as payloads, and the links that carry them."""
    apart = {body.name for body in mechanism.bodies if body.separate}
    return {joint.child: joint.parent for joint in mechanism.joints if joint.child in apart}


def stored_base(mechanism: Mechanism, leaders: list[str], loads: dict[str, str]) -> tuple[Mechanism, BaseParameters]:
    """Return the robot with the loads that a fit knows apart, and the base parameters with the leaders of a fit."""
    known = loads_of(mechanism)
    for name, carrier in loads.items():
        if name not in known:
            mechanism = mechanism.with_payload(1.0, body=str(carrier), name=str(name), separate=True)
    base = base_parameters(mechanism, order=leaders)
    if loads and base.rank < len(leaders):  # runs without and with the load told them apart
        base = base_parameters(mechanism, order=leaders, removable=tuple(loads))
    return mechanism, base
