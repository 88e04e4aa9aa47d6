"""Thermal tests and results of thermal fits."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array
from dynident.checks import signal, time_axis
from dynident.errors import IdentificationError
from dynident.results import Result
from dynident_lab.thermal.models import Weakening

if TYPE_CHECKING:
    from matplotlib.figure import Figure


#: Largest reversal of ratios in standard deviations of their scatter that is consistent with a constant power.
TURN = 6.0


@dataclass(frozen=True, eq=False)
class ThermalTest(Result):
    """Friction of one test over time.

    Parameters
    ----------
    t : array_like, (N,)
        Times [s], increasing.
    ratio : array_like, (N,)
        Measured friction over that of the cold joint at the same speed.
    power : array_like (N,) or float
        Cold friction power from each time on [W], mean over the cycle; 0 cools.
    rested : bool
        True if the joint was at the ambient temperature at the first time; False makes the first state unknown and fitted
        (a cooling test).
    name : str
        Name for messages.
    zone : array_like (N,) or float, optional
        Measured temperature T3 nearby [degree Celsius], required by the advanced model.
    ambient : array_like (N,) or float, optional
        Temperature of the surroundings [degree Celsius], for the advanced model.
    measured : array_like of bool (N,), optional
        Times at which the ratio was measured; the others only mark changes of power. All when omitted.
    """

    t: Array
    ratio: Array
    power: Array
    rested: bool = True
    name: str = "test"
    zone: Array | None = None
    ambient: Array | None = None
    measured: NDArray[np.bool_] | None = None

    def __post_init__(self) -> None:
        times = time_axis(self.t)
        object.__setattr__(self, "t", times - times[0])
        object.__setattr__(self, "ratio", np.array(signal("ratio", self.ratio, times.size)))
        object.__setattr__(self, "power", np.array(signal("power", self.power, times.size)))
        for label in ("zone", "ambient"):
            if getattr(self, label) is not None:
                object.__setattr__(self, label, np.array(signal(label, getattr(self, label), times.size)))
        known = np.ones(times.size, dtype=bool) if self.measured is None else np.array(self.measured, dtype=bool)
        if known.shape != times.shape or not known.any():
            raise IdentificationError(
                f"{self.name}: measured has shape {known.shape}; give {times.size} values, some of them true"
            )
        object.__setattr__(self, "measured", known)
        if (self.ratio <= 0.0).any():
            raise IdentificationError(f"{self.name}: ratio has values of zero or below; give |friction| / |cold friction|")
        if (self.power < 0.0).any():
            raise IdentificationError(f"{self.name}: power has negative values; give f v of the cold friction law")

    def plot(self) -> Figure:
        """Draw the measured ratios and the heating power.

        Returns
        -------
        matplotlib.figure.Figure
            The figure.
        """
        from dynident.figures import BLUE, ORANGE, finish, label, new_figure  # noqa: PLC0415 - matplotlib is an extra

        figure = new_figure(7.2, 4.6)
        top, low = figure.add_subplot(2, 1, 1), figure.add_subplot(2, 1, 2)
        top.plot(self.t[self.seen] / 60.0, self.ratio[self.seen], "o", color=BLUE, markersize=3)
        low.step(self.t / 60.0, self.power, where="post", color=ORANGE, linewidth=1.0)
        finish(top, "", "friction over cold friction", label(self.name))
        finish(low, "time [min]", "cold friction power [W]", "")
        figure.tight_layout()
        return figure

    @property
    def seen(self) -> NDArray[np.bool_]:
        """Times at which the ratio was measured."""
        assert self.measured is not None, "filled when the test is made"
        return self.measured

    def turning(self) -> str | None:
        """Describe a reversal of the ratio at constant power; None without one."""
        if (
            self.t.size < 8
            or self.zone is not None
            or not np.all(self.seen)
            or np.ptp(self.power) > 1e-9 * max(1.0, float(self.power.max()))
        ):
            return None
        steps = np.diff(self.ratio)
        scatter = 1.4826 * float(np.median(np.abs(np.diff(steps)))) / np.sqrt(6.0)
        up = float(np.max(self.ratio - np.minimum.accumulate(self.ratio)))
        down = float(np.max(np.maximum.accumulate(self.ratio) - self.ratio))
        if min(up, down) <= max(TURN * scatter, 0.02 * float(np.ptp(self.ratio))):
            return None
        return (
            f"{self.name}: the friction ratio reverses by {100 * min(up, down):.1f} % at constant power (pause, draught or "
            "another axis); give the real power or shorten the test"
        )


@dataclass(frozen=True, eq=False)
class ThermalFit(Result):
    """A fitted thermal model."""

    model: Weakening  # The model; absolute only if `anchored`
    anchored: bool  # Whether alpha, conductances, capacities and temperatures are absolute
    identifiable: dict[str, float]  # Combinations that torque determines
    relative_std: dict[str, float]  # Their relative standard deviations; above 0.5 undetermined
    predicted: tuple[Array, ...]  # Fitted ratios of each test
    mean_error: float  # Mean |error| over the measured ratio [Pagani2022, Tables 6 and 7]
    max_error: float  # Largest |error| over the measured ratio
    rss: float  # Sum of squared errors of the ratio
    parameters: int  # Number of fitted parameters, unknown first states included
    notes: tuple[str, ...]  # Remarks on the result
    tests: tuple[ThermalTest, ...] = field(repr=False)  # Fitted tests
    constants: dict[str, tuple[float, float]] = field(default_factory=dict)

    def errors(self, cold: float = 1.0, test: int = 0) -> dict[str, tuple[float, float]]:
        """Return the errors of one test in the form of [Pagani2022, Tables 6 and 7]."""
        data = self.tests[test]
        r, e = data.ratio[data.seen], np.abs(self.predicted[test] - data.ratio)[data.seen]
        last = slice(-max(1, e.size // 10), None)
        worst = int(np.argmax(e))
        return {
            "abs mean": (float(cold * e.mean()), float(np.mean(e / r))),
            "abs max": (float(cold * e[worst]), float(e[worst] / r[worst])),
            "steady state": (float(cold * e[last].mean()), float(np.mean(e[last] / r[last]))),
        }

    def summary(self) -> str:
        """Return the fit as text."""
        head = f"{type(self.model).__name__}: mean error {100 * self.mean_error:.2f} %, largest {100 * self.max_error:.2f} %"
        rows = [f"  {n:<12} {v:>12.5g}  ({100 * self.relative_std[n]:.2g} %)" for n, v in self.identifiable.items()]
        taus = [f"  {n:<12} {v / 60:>12.5g}  ({100 * d:.2g} %) min" for n, (v, d) in self.constants.items()]
        return "\n".join([head, *rows, *taus, *self.notes])

    def plot(self) -> Figure:
        """Draw measured and fitted friction ratios over time."""
        from dynident_lab.testbench.plots import plot_thermal  # noqa: PLC0415 - matplotlib is an extra

        return plot_thermal(self)
