"""`Parameters`: a vector of numbers that knows the name, unit and owner of each of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.errors import DescriptionError
from dynident.results import Tabular


@dataclass(frozen=True, eq=False)
class Parameters(Tabular):
    """A named vector of standard parameters.

    Body parameters are `m, mx, my, mz, Ixx ... Izz` in the LINK FRAME, first moment m c, inertia about the link origin.
    Names are ``symbol_owner``, as in ``Izz_link1`` or ``fv_joint1``.
    """

    names: tuple[str, ...]  #: Unique names, in column order of the regressor
    values: Array  #: (p,), numbers in SI units
    units: tuple[str, ...] = ()  #: Unit of each number
    owners: tuple[str, ...] = ()  #: Body, joint or actuator each number belongs to
    provenance: str = ""  #: Where the numbers come from
    _index: Mapping[str, int] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        values = _numbers(self.values)
        names = tuple(self.names)
        if values.shape != (len(names),):
            raise DescriptionError(
                f"parameters: {len(names)} names but values of shape {values.shape}; give one number per name"
            )
        index = {name: i for i, name in enumerate(names)}
        if len(index) != len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise DescriptionError(f"parameter '{twice}' is named twice; names must be unique")
        for label in ("units", "owners"):
            given = tuple(getattr(self, label)) or ("",) * len(names)
            if len(given) != len(names):
                raise DescriptionError(f"parameters: {len(names)} names but {len(given)} {label}; give one per name")
            object.__setattr__(self, label, given)
        values.flags.writeable = False
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "_index", index)

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __contains__(self, name: object) -> bool:
        return name in self._index

    def __getitem__(self, name: str) -> float:
        return float(self.values[self.index(name)])

    def index(self, name: str) -> int:
        """Return the position of a parameter in the vector."""
        try:
            return self._index[name]
        except (KeyError, TypeError):  # a list is no name, and cannot even be looked up
            symbol = str(name).split("_", maxsplit=1)[0]
            near = [other for other in self.names if other.split("_")[0] == symbol][:4] or list(self.names[:4])
            raise DescriptionError(f"unknown parameter '{name}'; names look like {', '.join(near)}") from None

    def replace(self, values: ArrayLike | Mapping[str, float], provenance: str | None = None) -> Parameters:
        """Return a copy with other numbers."""
        if isinstance(values, Mapping):
            new = self.values.copy()
            for name, value in values.items():
                new[self.index(name)] = _numbers(value)
        else:
            new = _numbers(values)
        return replace(self, values=new, provenance=self.provenance if provenance is None else provenance)

    def __repr__(self) -> str:
        return f"Parameters({len(self)} of {len(set(self.owners))} bodies and joints; {self.provenance or 'no provenance'})"

    def _columns(self) -> dict[str, Any]:
        """One row per number."""
        return {"parameter": self.names, "value": self.values, "unit": self.units, "owner": self.owners}

    def to_dict(self) -> dict[str, float]:
        """Return the numbers by name."""
        return {name: float(value) for name, value in zip(self.names, self.values, strict=True)}

    def to_json(self) -> str:
        """Return names, numbers, units, owners and provenance as JSON text (exact floats)."""
        fields = {"names": self.names, "values": self.values.tolist(), "units": self.units, "owners": self.owners}
        return json.dumps({**fields, "provenance": self.provenance}, indent=1)


def _numbers(values: ArrayLike) -> Array:
    try:
        return np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DescriptionError(f"parameters: values are not numbers ({error}); give one number per name") from error
