"""What a friction law looks at: velocity, and where a law needs them position, load and temperature."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.errors import LogError

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class State:
    """What a friction law looks at, one value per sample; all arrays have the shape of `v`."""

    v: Array  # Velocity of the joint [rad/s or m/s]
    q: Array | None = None  # Position of the joint [rad or m]
    tau: Array | None = None  # Load: torque or force that the joint transmits [N m or N]
    T: Array | None = None  # Temperature of the rubbing parts [degree Celsius]

    def __post_init__(self) -> None:
        count = np.shape(self.v)
        for channel in fields(self):
            values = getattr(self, channel.name)
            if values is None:
                continue
            array = np.asarray(values, dtype=np.float64)
            if array.shape not in ((), count):
                raise LogError(
                    f"{channel.name} has the shape {array.shape} and v the shape {count}; give one value per velocity"
                )
            if not np.isfinite(array).all():
                raise LogError(f"{channel.name} holds a value that is not finite; remove the sample or repair the signal")
            object.__setattr__(self, channel.name, np.broadcast_to(array, count))

    @classmethod
    def of(cls, state: State | ArrayLike) -> State:
        """Return a state; a plain array is taken as the velocity."""
        return state if isinstance(state, State) else cls(np.asarray(state, dtype=np.float64))

    def channel(self, name: str, law: str) -> Array:
        """Return one of the channels `q`, `tau` and `T`, or say that the law of this name needs it."""
        values: Array | None = getattr(self, name)
        if values is None:
            raise LogError(f"the law '{law}' needs {name}; give State(v, {name}=...) instead of the velocity alone")
        return values

    def take(self, rows: slice | NDArray[np.bool_]) -> State:
        """Return some of the samples, along the first axis."""
        return State(self.v[rows], *(None if c is None else c[rows] for c in (self.q, self.tau, self.T)))
