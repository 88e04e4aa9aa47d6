"""Frequency responses: H(f) as complex numbers, its magnitude |H|, its phase, the frequency at -3 dB, and the Bode diagram."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dynident.errors import DynidentError
from dynident.figures import CURVES, INK, MUTED, WIDTH, finish, label, new_figure, plain_decades
from dynident.results import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]

CORNER = float(-10.0 * np.log10(2.0))  # -3 dB
MARKS = ("o", "s", "^", "D", "v", "P", "X", "*")
MARKED = 50  # more points than that are a line


@dataclass(frozen=True, eq=False)
class Bode(Result):
    """Magnitude and phase over the frequency.

    Parameters
    ----------
    frequency : ndarray, (F,)
        Frequencies [Hz], rising.
    response : ndarray of complex, (F,)
        Response over command.
    name : str
        Of what.
    """

    frequency: Array
    response: Complex
    name: str = field(default="", kw_only=True)

    @property
    def magnitude(self) -> Array:
        """Amplitude of the response over that of the command, (F,)."""
        return np.abs(self.response)

    @property
    def decibel(self) -> Array:
        """Magnitude [dB], (F,)."""
        return np.asarray(20.0 * np.log10(np.maximum(self.magnitude, 1e-300)))

    @property
    def phase(self) -> Array:
        """Phase [degree], continuous over frequency, (F,)."""
        return np.asarray(np.rad2deg(np.unwrap(np.angle(self.response))))

    @property
    def bandwidth(self) -> float:
        """Frequency at which the magnitude first falls through -3 dB [Hz]; NaN if it is not among those given.

        Decibels are interpolated linearly over the logarithm of the frequency.
        """
        low = self.decibel <= CORNER
        if low[0] or not np.any(low):
            return float("nan")
        i = int(np.argmax(low))
        f, d = np.log(self.frequency[i - 1 : i + 1]), self.decibel[i - 1 : i + 1]
        return float(np.exp(f[0] + (f[1] - f[0]) * (CORNER - d[0]) / (d[1] - d[0])))

    def plot(self) -> Figure:
        """Draw magnitude and phase over the frequency, -3 dB marked."""
        return plot_bode([self], corner=True)


def plot_bode(
    curves: Sequence[Bode],
    *,
    labels: Sequence[str] | None = None,
    points: Mapping[float, tuple[float, float]] | None = None,
    corner: bool = False,
    title: str = "",
) -> Figure:
    """Draw Bode diagrams on common axes."""
    if not curves or (labels is not None and len(labels) != len(curves)):
        raise DynidentError(f"{len(curves)} responses and {len(labels or ())} labels; give at least one and as many labels")
    figure = new_figure(WIDTH, 6.2)
    grid = figure.add_gridspec(2, 1, left=0.075, right=0.985, top=0.93, bottom=0.085, hspace=0.12)
    upper = figure.add_subplot(grid[0])
    lower = figure.add_subplot(grid[1], sharex=upper)
    for i, curve in enumerate(curves):
        colour, mark = CURVES[i % len(CURVES)], MARKS[i % len(MARKS)] if curve.frequency.size <= MARKED else ""
        style = {"color": colour, "marker": mark, "markersize": 4, "linewidth": 1.2}
        name = label(labels[i] if labels is not None else curve.name, 60)
        if corner and np.isfinite(curve.bandwidth):
            name += f": {curve.bandwidth:.3g} Hz"
            upper.axvline(curve.bandwidth, color=colour, linewidth=0.7, dashes=(2, 2))
        upper.semilogx(curve.frequency, curve.decibel, label=name or None, **style)
        lower.semilogx(curve.frequency, curve.phase, **style)
    if points:
        f = np.array(list(points))
        magnitude, phase = np.array(list(points.values())).T
        upper.plot(f, 20.0 * np.log10(magnitude), "x", color=INK, markersize=8, mew=1.6, label="published")
        lower.plot(f, phase, "x", color=INK, markersize=8, mew=1.6)
    if corner:
        upper.axhline(CORNER, color=MUTED, linewidth=0.8, label="\N{MINUS SIGN}3 dB")
    finish(upper, "", "magnitude [dB]", title)
    finish(lower, "frequency [Hz]", "phase [\N{DEGREE SIGN}]", "")
    upper.tick_params(labelbottom=False)
    if upper.get_legend_handles_labels()[1]:
        upper.legend(loc="lower left", frameon=False, fontsize=8.5)
    plain_decades(lower.xaxis, np.concatenate([curve.frequency for curve in curves]))
    return figure
