"""Accuracy of the parameters of a fit, as rows and as text; figures of fits and scores (matplotlib's object API)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dynident.figures import (
    BLUE,
    BUCKETS,
    INK,
    MUTED,
    ORANGE,
    SKY,
    WIDTH,
    extremes,
    finish,
    label,
    new_figure,
    plain_axes,
    pretty_unit,
)
from dynident.identify.regression.factor import shares

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from dynident.identify.fit import Fit
    from dynident.identify.score import Score

MOSTLY = 0.5  # part of the squared residual
SHOWN = ("negative_terms", "impossible_bodies", "description", "loop_gains", "numbered")  # notes of the summary

GOOD, POOR = 0.10, 0.50  # largest relative standard deviation of a well-known and of a roughly known parameter


@dataclass(frozen=True)
class Undetermined:
    """A standard parameter that the data do not determine."""

    name: str  # Standard parameter
    value: float  # Exported value
    description: float  # Described value
    unit: str  # Its unit


@dataclass(frozen=True)
class Observability:
    """Accuracy of one base parameter."""

    name: str  #: Base parameter
    expression: str  #: Sum of standard parameters
    unit: str  #: Its unit
    value: float  #: Estimate
    std: float  #: Its standard deviation
    relative: float  #: Their ratio; infinite when it is not visible in the data
    #: "good" (standard deviation up to 10 % of the value), "poor" (up to 50 %), "insignificant" (not clearly different from
    #: zero), "not excited" (the data do not show it, or only its sum with others) or "dropped" (not essential)
    verdict: str


def _share(relative: float) -> str:
    """Return a relative deviation in per cent with two decimals, or a bound."""
    if not np.isfinite(relative):
        return "-"
    if relative >= 10.0:
        return ">999%"
    return "<0.01%" if 0.0 < relative < 5e-5 else f"{100 * relative:.2f}%"


def summary_of(fit: Fit) -> str:
    """Return the text of `Fit.summary`."""
    table = fit.observability()
    width = max(len("base parameter"), *(len(row.name) for row in table))
    verdicts = [row.verdict for row in table]
    blind = not np.isfinite(fit.training_relative)
    errors = "no efforts" if blind else f"training error {100 * fit.training_relative:.2f} %"
    lines = [
        f"{fit.mechanism.name}: {fit.base.rank} base parameters from {fit.rows} equations, "
        f"condition {fit.condition:.3g}, {errors}",
        f"{'base parameter':<{width}}  {'value':>12}  {'std':>10}  {'rel.':>8}  {'description':>12}  verdict",
    ]
    for row, before in zip(table, fit.described, strict=True):
        numbers = f"{row.value:>12.5g}  {row.std:>10.3g}  {_share(row.relative):>8}  {before:>12.5g}"
        lines.append(f"{row.name:<{width}}  {numbers}  {row.verdict}")
    counts = ", ".join(f"{verdicts.count(v)} {v}" for v in dict.fromkeys(verdicts))
    impossible = [c.name for c in fit.consistency() if not c.ok]
    lines.append(f"verdicts: {counts}")
    if blind:
        lines.append(
            "no efforts: masses, inertias and friction scale with the gains of drives and controller, whose errors are not "
            "included"
        )
    elif fit.free is not None:
        lines.append(
            f"training error: description {100 * fit.posterior.description_relative:.2f} %, this model "
            f"{100 * fit.training_relative:.2f} %, least squares alone {100 * fit.posterior.free_relative:.2f} %"
        )
    open_ones = fit.undetermined()
    if open_ones:
        shown = ", ".join(f"{row.name} {row.value:.4g} (description {row.description:.4g})" for row in open_ones[:8])
        lines.append(
            f"{len(open_ones)} of {len(fit.standard)} standard parameters are not determined by these data and are taken "
            f"from the description: {shown}{' ...' if len(open_ones) > 8 else ''}"
        )
    rests = [name for name in fit.groups if shares(fit.sources, name)[0] < 1.0 - MOSTLY]
    if rests and not fit.options.get("standstill"):
        lines.append(
            f"most of the residual of {', '.join(rests)} is near standstill, where friction is undetermined; exclude it "
            "with standstill=0.1 (--standstill 0.1)"
        )
    lines += dict.fromkeys(note.sentence for note in fit.notes if note.kind in SHOWN)
    if impossible:
        lines.append(
            f"standard parameters of {', '.join(impossible)} are physically impossible: valid for predicting torques, not "
            "for simulation"
        )
    return "\n".join(lines)


VERDICT_COLOURS = {"good": BLUE, "poor": "#E69F00", "insignificant": ORANGE, "not excited": MUTED, "dropped": MUTED}

HIDDEN = ("not excited", "dropped")  # verdicts of parameters without an estimate

MOST_PER_COLUMN = 8  # joints below each other before a second column is opened


# ------------------------------------------------------------------------------------------------- measured and predicted
def plot_score(score: Score) -> Figure:
    """Draw measured and predicted efforts with the two-sigma band, and the residuals below, one block per joint."""
    columns = 1 if len(score.joints) <= MOST_PER_COLUMN else 2
    rows = -(-len(score.joints) // columns)
    height = rows * (2.35 if columns == 1 else 2.0) + 1.0
    figure = new_figure(WIDTH, height)
    sides = {"left": 0.075, "right": 0.985, "top": 1.0 - 0.45 / height, "bottom": 0.55 / height}
    outer = figure.add_gridspec(rows, columns, hspace=0.16, wspace=0.16, **sides)
    first: Axes | None = None
    for j in range(len(score.joints)):
        inner = outer[j % rows, j // rows].subgridspec(2, 1, height_ratios=(2.3, 1.0), hspace=0.08)
        upper = figure.add_subplot(inner[0], sharex=first)
        first = first or upper
        lower = figure.add_subplot(inner[1], sharex=first)
        _draw_joint(upper, lower, score, j)
        last = j % rows == rows - 1 or j == len(score.joints) - 1
        upper.tick_params(labelbottom=False)
        lower.tick_params(labelbottom=last)
        lower.set_xlabel("time [s]" if last else "", fontsize=9, color=INK)
    handles, names = (
        [*one, *other] for one, other in zip(*(axes.get_legend_handles_labels() for axes in figure.axes[:2]), strict=True)
    )
    style: dict[str, Any] = {"loc": "upper center", "ncols": 4, "frameon": False, "fontsize": 9}
    figure.legend(handles, names, bbox_to_anchor=(0.53, 1.0), **style)
    return figure


def _draw_joint(upper: Axes, lower: Axes, score: Score, j: int) -> None:
    t, measured, predicted, std = score.t, score.measured[:, j], score.predicted[:, j], score.std[:, j]
    width = 0.9 if t.size <= BUCKETS else 0.6
    band_t, low = extremes(t, predicted - 2.0 * std, pick=np.fmin)
    _, high = extremes(t, predicted + 2.0 * std, pick=np.fmax)
    upper.fill_between(band_t, low, high, color=SKY, linewidth=0.0, label="two-sigma band")
    upper.plot(*extremes(t, measured), color=INK, linewidth=width, label="measured")
    upper.plot(*extremes(t, predicted), color=BLUE, linewidth=width, dashes=(5, 1.5), label="predicted")
    _, reach = extremes(t, 2.0 * std, pick=np.fmax)
    lower.fill_between(band_t, -reach, reach, color=SKY, linewidth=0.0)
    lower.axhline(0.0, color=MUTED, linewidth=0.6)
    lower.plot(*extremes(t, measured - predicted), color=ORANGE, linewidth=width, label="residual")
    relative = score.metrics.relative_per_joint[j]
    error = f" \N{MIDDLE DOT} relative error {100 * relative:.1f} %" if np.isfinite(relative) else ""
    upper.set_title(label(score.joints[j], 60) + error, loc="left", fontsize=9.5, color=INK, pad=3)
    for axes, what in ((upper, "effort"), (lower, "residual")):
        axes.set_ylabel(f"{what}\n[N m or N]", fontsize=8.5, color=INK)
        plain_axes(axes)
        axes.margins(x=0.0)
    lower.locator_params(axis="y", nbins=3)


# ------------------------------------------------------------------------------------------------------------- parameters
def plot_parameters(fit: Fit) -> Figure:
    """Draw the base parameters with two-sigma error bars, each over the larger of its identified and described value."""
    described, units = fit.described, map(pretty_unit, fit.base.units)
    names = [label(f"{name} [{unit}]") for name, unit in zip(fit.base.names, units, strict=True)]
    scale = np.maximum(np.maximum(np.abs(fit.values), np.abs(described)), 1e-300)
    values, reach = fit.values / scale, 2.0 * np.where(fit.solved, fit.std, 0.0) / scale
    verdicts, rows = np.array([row.verdict for row in fit.observability()]), np.arange(len(names))
    height = 0.21 * max(len(names), 2) + 1.3
    figure = new_figure(WIDTH, height)
    axes = figure.add_axes((0.25, 0.55 / height, 0.73, 1.0 - 1.3 / height))
    for verdict, colour in VERDICT_COLOURS.items():
        at = verdicts == verdict
        if np.any(at):
            style: dict[str, Any] = {"mfc": "white" if verdict in HIDDEN else colour, "elinewidth": 1.6, "capsize": 2.5}
            axes.errorbar(
                values[at], rows[at], xerr=reach[at], fmt="o", color=colour, markersize=5, zorder=3, label=verdict, **style
            )
    shown = described != 0.0
    diamonds: dict[str, Any] = {"mfc": "none", "mec": MUTED, "label": "robot description"}
    axes.plot((described / scale)[shown], rows[shown], "D", markersize=5.5, zorder=2, **diamonds)
    finish(axes, "over the larger of identified and described value, with two-sigma error bar", "", "")
    axes.axvline(0.0, color=MUTED, linewidth=0.7, zorder=1)
    axes.set_xlim(-2.0, 2.0)
    axes.set_ylim(max(len(names), 2) - 0.5, -0.5)
    axes.set_yticks(rows, names)
    figure.legend(loc="upper center", ncols=6, frameon=False, fontsize=8.5)
    return figure
