"""Frequency responses H(f): Bode diagram, margins of an open loop (distance from instability), cut-off of a closed one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array, Complex
from dynident.checks import number, numbers
from dynident.errors import DynidentError
from dynident.figures import CURVES, INK, MUTED, WIDTH, finish, label, new_figure
from dynident.results import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Response = Callable[[Array], Complex]

CORNER = float(-10.0 * np.log10(2.0))  # -3 dB
MARKS = ("o", "s", "^", "D", "v", "P", "X", "*")
MARKED = 50  # above this number of points a line is drawn
MANY = 2.5  # number of decades above which only decades are labelled
POINTS = 4000  # of the logarithmic frequency grid for the search of crossings


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
        Name of the response.
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
        """Frequency at which the magnitude first falls through -3 dB [Hz]; NaN if it is outside the given range.

        Decibels are interpolated linearly over the logarithm of the frequency.
        """
        low = self.decibel <= CORNER
        if low[0] or not np.any(low):
            return float("nan")
        i = int(np.argmax(low))
        f, d = np.log(self.frequency[i - 1 : i + 1]), self.decibel[i - 1 : i + 1]
        return float(np.exp(f[0] + (f[1] - f[0]) * (CORNER - d[0]) / (d[1] - d[0])))

    def plot(self) -> Figure:
        """Draw magnitude and phase over the frequency, with -3 dB marked."""
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
    _plain_decades(lower.xaxis, np.concatenate([curve.frequency for curve in curves]))
    return figure


@dataclass(frozen=True)
class Margins(Result):
    """Stability margins of an open loop L(f); the closed loop is L / (1 + L)."""

    gain: float
    phase: float  # Phase margin [deg], 180 + arg L where |L| = 1; infinite if |L| never is 1
    gain_frequency: float  # Frequency of the phase -180 degrees [Hz]; NaN without one
    phase_frequency: float  # Crossover frequency, |L| = 1 [Hz]; NaN without one

    @property
    def delay(self) -> float:
        """Additional dead time that makes the closed loop unstable [s]."""
        return self.phase / 360.0 / self.phase_frequency


def margins(response: Response, lowest: float, highest: float) -> Margins:
    """Return the smallest gain and phase margins of an open loop L(f) between two frequencies [Hz].

    The highest frequency of a sampled loop is half the sampling frequency.
    """
    f = _grid(lowest, highest)
    L = response(f)
    crossings = [_root(lambda x: np.log(np.abs(response(x))), f[i], f[i + 1]) for i in _changes(np.log(np.abs(L)))]
    # Where L crosses the real axis, it does so left of zero (-180 degrees) or right of it.
    flips = [_root(lambda x: np.imag(response(x)), f[i], f[i + 1]) for i in _changes(L.imag)]
    if abs(L[-1].imag) < 1e-6 * abs(L[-1]):  # half the sampling frequency: L is real there
        flips.append(float(f[-1]))
    real = [(float(response(np.array([x]))[0].real), x) for x in flips]
    gains = [(-1.0 / value, x) for value, x in real if value < 0.0]
    gain = min(gains, key=lambda pair: abs(np.log(pair[0])), default=(float("inf"), float("nan")))
    phases = [(_wrapped(response, x), x) for x in crossings]
    phase = min(phases, key=lambda pair: abs(pair[0]), default=(float("inf"), float("nan")))
    return Margins(gain[0], phase[0], gain[1], phase[1])


def cutoff_frequency(response: Response, lowest: float, highest: float, level: float = 1.0 / np.sqrt(2.0)) -> float:
    """Return the frequency at which the amplitude first falls below a level, by default -3 dB."""
    f = _grid(lowest, highest)
    size = np.abs(response(f))
    if not (np.isfinite(level) and 0.0 < level < 1.0):
        raise DynidentError(f"level is {level}; give an amplitude between 0 and 1")
    below = np.flatnonzero(size < level * size[0])
    if below.size == 0:
        return float("inf")
    i = int(below[0])
    return _root(lambda x: np.abs(response(x)) - level * size[0], f[i - 1], f[i])


def delayed_integrator(gain: float, delay: float, frequency: ArrayLike) -> Complex:
    """Return the closed loop of a position controller with an ideal drive with dead time.

    T = k e^{-s d} / (s + k e^{-s d}),    s = 2 pi i f
    """
    if not (np.isfinite(gain) and gain > 0.0 and np.isfinite(delay) and delay >= 0.0):
        raise DynidentError(f"gain is {gain} and delay {delay} s; give a gain above zero and a delay of zero or more")
    s = 2j * np.pi * np.atleast_1d(numbers(frequency, "frequency"))
    late = gain * np.exp(-s * delay)
    return np.asarray(late / (s + late))


def _grid(lowest: float, highest: float) -> Array:
    low = number("lowest", lowest, above=0.0, unit="Hz")
    return np.geomspace(low, number("highest", highest, above=low, unit="Hz"), POINTS)


def _changes(values: Array) -> list[int]:
    return [int(i) for i in np.flatnonzero(np.diff(np.signbit(values)))]


def _root(function: Callable[[Array], Array], low: float, high: float) -> float:
    """Return the zero between two frequencies by bisection."""
    sign = bool(np.signbit(function(np.array([low]))[0]))
    for _ in range(60):
        middle = 0.5 * (low + high)
        if bool(np.signbit(function(np.array([middle]))[0])) == sign:
            low = middle
        else:
            high = middle
    return float(0.5 * (low + high))


def _wrapped(response: Response, frequency: float) -> float:
    """Return the phase margin [deg] at a crossover, between -180 and 180."""
    return float((np.degrees(np.angle(response(np.array([frequency]))[0])) + 360.0) % 360.0 - 180.0)


def _plain_decades(axis: Any, values: Array) -> None:
    """Label a logarithmic axis with plain numbers: 1, 2, 5 of every decade, or decades only if there are many."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator  # noqa: PLC0415 - matplotlib is an extra

    seen = values[np.isfinite(values) & (values > 0.0)]
    many = seen.size > 0 and np.log10(seen.max() / seen.min()) > MANY
    axis.set_major_locator(LogLocator(subs=(1.0,) if many else (1.0, 2.0, 5.0), numticks=20))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
