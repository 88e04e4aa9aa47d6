"""Friction over time: the input of warm-up fits, repeatability and maintenance."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.errors import IdentificationError
from dynident.results import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class FrictionHistory(Result):
    """Friction of one joint at one speed during one test."""

    t: Array  # Times since the cold start [s], increasing
    friction: Array  # Friction, mean of the two directions [N m or N], not zero
    std: Array | None = None  # Standard deviation of each point; zero if not given
    temperature: Array | None = None  # Measured temperature of the joint [degC]
    power: Array | None = None  # Cold friction power from each time on [W], for thermal models
    joint: str = "joint"  # Name of the joint
    unit: str = "N m"  # Unit of the friction
    speed: float = float("nan")  # Speed without sign [rad/s or m/s]
    robot: str = "robot"  # Name of the robot
    name: str = "test"  # Name of the test

    def __post_init__(self) -> None:
        n = np.size(self.t)
        for field in ("t", "friction", "std", "temperature", "power"):
            given: ArrayLike | None = getattr(self, field)
            if given is None and field in ("temperature", "power"):
                continue
            values = np.zeros(n) if given is None else np.array(given, dtype=np.float64)
            if values.shape != (n,) or n == 0 or not np.isfinite(values).all():
                raise IdentificationError(
                    f"friction history of '{self.name}': {field} has shape {values.shape}; give {max(n, 1)} finite numbers"
                )
            object.__setattr__(self, field, values)
        if np.any(np.diff(self.t) <= 0.0):
            raise IdentificationError(f"friction history of '{self.name}': t must increase; sort the points in time")

    def __len__(self) -> int:
        return int(self.t.size)

    def between(self, start: float, stop: float) -> FrictionHistory:
        """Return the points with start <= t <= stop."""
        keep = (self.t >= start) & (self.t <= stop)
        if not keep.any():
            raise IdentificationError(
                f"friction history of '{self.name}' has no point between {start} and {stop} s; it runs from {self.t[0]:g} to "
                f"{self.t[-1]:g} s"
            )
        fields = ("t", "friction", "std", "temperature", "power")
        parts: dict[str, Any] = {f: None if (x := getattr(self, f)) is None else x[keep] for f in fields}
        return replace(self, **parts)

    def summary(self) -> str:
        """Return the history as one line of text."""
        first, last = self.friction[0], self.friction[-1]
        what = f"{len(self)} points, {self.t[0] / 60:.3g} to {self.t[-1] / 60:.3g} min, {first:.4g} to {last:.4g} {self.unit}"
        return f"joint {self.joint} of {self.robot}, {self.name}: {what}"

    def plot(self) -> Figure:
        """Draw the friction over time."""
        from dynident_lab.testbench.plots import plot_history  # noqa: PLC0415 - matplotlib is an extra

        return plot_history(self)
