"""No control at all: torques, currents or voltages given as a table over the reference's times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.checks import numbers
from dynident.errors import DynidentError


@dataclass(frozen=True, eq=False)
class OpenLoop:
    """A table of what every actuator gets; exactly one of the three is given.

    Parameters
    ----------
    torque : array_like (N, k) or (k,), optional
        Torques of the actuator coordinates, behind the gear, at the reference's own times [N m, N]; one row is held.
    current : array_like (N, k) or (k,), optional
        Motor currents [A].
    voltage : array_like (N, k) or (k,), optional
        Motor voltages [V].

    Examples
    --------
    >>> from dynident.control import OpenLoop
    >>> OpenLoop(voltage=[24.0, 0.0]).command
    'voltage'
    """

    torque: ArrayLike | None = None
    current: ArrayLike | None = None
    voltage: ArrayLike | None = None

    def __post_init__(self) -> None:
        given = [name for name in ("torque", "current", "voltage") if getattr(self, name) is not None]
        if len(given) != 1:
            raise DynidentError(f"open loop: {' and '.join(given) or 'nothing'} is given; give one of torque, current, voltage")
        table = np.array(np.atleast_2d(numbers(getattr(self, given[0]), f"open loop: {given[0]}")))
        if table.ndim != 2 or table.size == 0:
            raise DynidentError(f"open loop: {given[0]} has shape {table.shape}; give (samples, actuators)")
        if not np.all(np.isfinite(table)):
            bad = int(np.argwhere(~np.isfinite(table))[0][0])
            raise DynidentError(f"open loop: {given[0]} is not finite at sample {bad}; every entry must be a finite number")
        table.flags.writeable = False
        object.__setattr__(self, given[0], table)

    @property
    def command(self) -> Literal["torque", "current", "voltage"]:
        """Which of the three is given."""
        if self.torque is not None:
            return "torque"
        return "current" if self.current is not None else "voltage"

    @property
    def table(self) -> NDArray[np.float64]:
        """The numbers that were given, (N, k), or (1, k) when held."""
        return np.asarray(getattr(self, self.command))
