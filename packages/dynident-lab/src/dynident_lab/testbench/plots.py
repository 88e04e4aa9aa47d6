"""Figures of friction experiments, drawn with matplotlib's object API."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dynident.arrays import Array
from dynident.figures import BLUE, GREEN, INK, MUTED, ORANGE, finish, label, new_figure, one_axes
from dynident_lab.figures import per_second

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from dynident_lab.testbench.curves import FrictionCurves
    from dynident_lab.testbench.heating import JointHeating
    from dynident_lab.testbench.history import FrictionHistory
    from dynident_lab.testbench.plateaus import Plateaus
    from dynident_lab.testbench.thermal_data import ThermalFit
    from dynident_lab.testbench.warmup import Warmup


#: Cold to hot; the ends differ also in lightness, so that the order is visible in grey.
COLD_HOT = ("#08519C", "#4292C6", "#8C96A8", "#F4A261", "#E4572E", "#99160B")
MOST_CURVES = 8


def ordered_colours(count: int) -> list[Any]:
    """Return colours from cold to hot."""
    from matplotlib.colors import LinearSegmentedColormap  # noqa: PLC0415 - matplotlib is an extra

    scale = LinearSegmentedColormap.from_list("cold_hot", COLD_HOT)
    return [scale(x) for x in (np.linspace(0.0, 1.0, count) if count > 1 else [0.0])]


def plot_plateaus(plateaus: Plateaus) -> Figure:
    """Draw the mean torque of every plateau against its speed."""
    title = f"{label(plateaus.joint)}: mean torque of {len(plateaus)} plateaus, gravity not removed"
    figure, axes = one_axes(7.2, 3.6, f"speed [{per_second(plateaus.unit)}]", f"torque [{plateaus.unit}]", title)
    for saturated, colour, name in ((False, BLUE, "plateau"), (True, ORANGE, "saturated")):
        items = [p for p in plateaus.items if p.saturated is saturated]
        if items:
            v, f, s = np.array([(p.speed, p.torque, p.torque_std) for p in items]).T
            axes.errorbar(v, f, 2.0 * s, fmt="o", color=colour, markersize=4, linewidth=0.9, label=name)
    axes.axvline(0.0, color=MUTED, linewidth=0.6)
    axes.legend(frameon=False, fontsize=8)
    return figure


def draw_curves(axes: Axes, found: FrictionCurves, most: int = MOST_CURVES) -> None:
    """Draw friction against speed into axes, coldest or earliest curve in blue, hottest or latest in red."""
    chosen = np.unique(np.linspace(0, len(found.curves) - 1, min(most, len(found.curves))).round().astype(int))
    for k, colour in zip(chosen, ordered_colours(len(chosen)), strict=True):
        curve = found.curves[int(k)]
        axes.errorbar(
            curve.speed, curve.torque, 2.0 * curve.std, fmt="o", color=colour, markersize=3.5, linewidth=0.9, label=curve.label
        )
        law = curve.fit()
        for way in (-1.0, 1.0):
            speeds = curve.speed[np.sign(curve.speed) == way]
            if speeds.size > 1:
                grid = np.linspace(speeds.min(), speeds.max(), 60)
                axes.plot(grid, law(grid), color=colour, linewidth=1.1)
    axes.axhline(0.0, color=MUTED, linewidth=0.6)
    axes.axvline(0.0, color=MUTED, linewidth=0.6)
    axes.legend(frameon=False, fontsize=7.5, loc="upper left")


def plot_curves(found: FrictionCurves) -> Figure:
    """Draw friction against speed, one curve per temperature."""
    title = f"{label(found.joint)}: friction against speed (bars: two standard deviations; lines: fitted polynomials)"
    figure, axes = one_axes(7.2, 4.2, f"speed [{per_second(found.unit)}]", f"friction [{found.unit}]", title)
    draw_curves(axes, found)
    return figure


def draw_warmup(axes: Axes, fits: Sequence[Warmup]) -> None:
    """Draw values over time and one or more fitted drifts."""
    first = fits[0]
    axes.plot(first.t / 60.0, first.y, "o", color=INK, markersize=3.2, label="measured")
    grid = np.linspace(float(first.t.min()), float(first.t.max()), 400)
    for fit, colour, style in zip(fits, (BLUE, ORANGE, GREEN), ("-", "--", ":"), strict=False):
        taus = " and ".join(f"{tau / 60:.3g}" for tau in fit.time_constants)
        name = f"order {fit.order}: {taus} min, mean error {100 * fit.errors[0]:.2g} %" if fit.order else "constant"
        axes.plot(grid / 60.0, fit(grid), style, color=colour, linewidth=1.3, label=name)
    axes.legend(frameon=False, fontsize=8)


def plot_warmup(fits: Sequence[Warmup], name: str = "value", unit: str = "", title: str = "Warm-up") -> Figure:
    """Draw values over time and fitted drifts."""
    figure, axes = one_axes(
        7.2, 3.6, "time since the cold start [min]", f"{label(name)} [{unit}]" if unit else label(name), title
    )
    draw_warmup(axes, fits)
    return figure


def plot_history(history: FrictionHistory) -> Figure:
    """Draw the friction of one joint over time."""
    title = f"{label(history.joint)} of {label(history.robot)}, {label(history.name)}"
    figure, axes = one_axes(7.2, 3.6, "time since the cold start [min]", f"friction [{history.unit}]", title)
    axes.errorbar(
        history.t / 60.0, history.friction, 2.0 * np.asarray(history.std), fmt="o-", color=BLUE, markersize=3.5, linewidth=0.9
    )
    return figure


def plot_thermal(fit: ThermalFit) -> Figure:
    """Draw measured and fitted friction ratios of every test."""
    title = f"{type(fit.model).__name__}: mean error {100 * fit.mean_error:.2f} %"
    figure, axes = one_axes(7.2, 3.6, "time [min]", "friction over cold friction", title)
    for test, ratio, colour in zip(fit.tests, fit.predicted, ordered_colours(len(fit.tests)), strict=True):
        axes.plot(test.t / 60.0, test.ratio, "o", color=colour, markersize=3.0, label=label(test.name))
        axes.plot(test.t / 60.0, ratio, color=INK, linewidth=1.1)
    axes.legend(frameon=False, fontsize=8)
    return figure


def plot_heating(found: JointHeating) -> Figure:
    """Draw normalised friction over time with thermal models, and the heating power."""
    figure = new_figure(7.6, 4.8)
    above, below = figure.add_axes((0.1, 0.43, 0.87, 0.5)), figure.add_axes((0.1, 0.11, 0.87, 0.22))
    above.errorbar(found.t / 60.0, found.ratio, 2.0 * found.std, fmt="o", color=INK, markersize=3.2, label="all speeds")
    for fit, colour in zip(found.fits, (BLUE, ORANGE, GREEN), strict=False):
        name = f"{type(fit.model).__name__}: mean error {100 * fit.mean_error:.2g} %"
        above.plot(fit.tests[0].t / 60.0, fit.predicted[0], color=colour, linewidth=0.9, label=name)
    above.legend(frameon=False, fontsize=8)
    below.step(found.power_t / 60.0, found.power, where="post", color=MUTED, linewidth=0.8)
    finish(above, "", "friction over cold friction", f"{label(found.joint)}: warm-up of the campaign")
    finish(below, "time since the cold start [min]", "power [W]", "")
    return figure


def plot_values(names: Sequence[str], values: Array, std: Array, title: str) -> Figure:
    """Draw parameters relative to their own size, with two standard deviations."""
    size = np.where(values == 0.0, 1.0, np.abs(values))
    figure, axes = one_axes(7.2, 0.8 + 0.3 * len(names), "value and two standard deviations over |value|", "", title)
    axes.errorbar(
        values / size, np.arange(len(names)), xerr=2.0 * np.minimum(std / size, 1e3), fmt="o", color=BLUE, markersize=4
    )
    axes.set_yticks(np.arange(len(names)), [f"{label(n)} = {x:.4g}" for n, x in zip(names, values, strict=True)])
    axes.invert_yaxis()
    figure.subplots_adjust(left=0.3)
    return figure


def plot_sweeps(found: FrictionCurves) -> Figure:
    """Draw the torque of the first and of the last sweep, with gravity and friction as modelled."""
    from dynident_lab.testbench.groups import group_plateaus  # noqa: PLC0415 - avoids a circular import

    groups, labels, _ = group_plateaus(found.plateaus, found.top, "time", None)
    figure = new_figure(9.6, 3.6)
    ends = [0] if len(groups) == 1 else [0, len(groups) - 1]
    share = None
    for panel, g in enumerate(ends):
        axes = figure.add_axes((0.075 + 0.47 * panel, 0.15, 0.43 if len(ends) == 2 else 0.9, 0.74), sharey=share)
        share = axes
        items = [found.plateaus[int(i)] for i in groups[g]]
        middle = float(np.mean([p.t for p in items]))
        law = min(found.curves, key=lambda c: abs(c.t - middle)).fit()
        begin = min(p.t - 0.5 * p.duration for p in items)
        for k, p in enumerate(items):
            t = p.t - begin + np.linspace(-0.5, 0.5, p.samples) * p.duration
            model = found.gravity.torque(p.q) + law(np.full(p.samples, p.speed))
            names = ("measured", "gravity and friction", "gravity") if k == 0 else (None, None, None)
            axes.plot(t, p.tau, color="#BFC7CD", linewidth=0.7, label=names[0], rasterized=p.samples > 500)
            axes.plot(t, model, color=BLUE, linewidth=1.4, label=names[1])
            axes.plot(t, found.gravity.torque(p.q), color=GREEN, linewidth=1.0, label=names[2])
        y = f"torque [{found.unit}]" if panel == 0 else ""
        finish(axes, "time in the sweep [s]", y, f"{label(found.joint)}, {labels[g]}")
    axes.legend(frameon=False, fontsize=8)
    return figure
