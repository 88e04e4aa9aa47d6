"""Figures of the scripts of this package: panels of curves over a common axis."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from dynident.figures import BLUE, GREEN, INK, MUTED, ORANGE, SKY, extremes, finish, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dynident.excitation import Design

COLOURS = (BLUE, ORANGE, GREEN, SKY, INK, MUTED)
STYLES = ("-", "--", "-", "-", ":", ":")


def panels(
    x: ArrayLike,
    curves: Mapping[str, Mapping[str, ArrayLike]],
    label: str,
    columns: int = 2,
    limits: Mapping[str, Any] | None = None,
) -> Figure:
    """Return a figure with one panel per entry of `curves`, title to named curves over x; `limits` are drawn as lines."""
    rows = -(-len(curves) // columns)
    figure = new_figure(11.0, 2.6 * rows + 0.2)
    t = np.asarray(x, dtype=np.float64)
    for i, (title, lines) in enumerate(curves.items()):
        axes = figure.add_subplot(rows, columns, i + 1)
        for k, (name, values) in enumerate(lines.items()):
            y = np.asarray(values, dtype=np.float64)
            axes.plot(*extremes(t, y), linewidth=1.0, color=COLOURS[k % 6], linestyle=STYLES[k % 6], label=name or None)
        for level in (limits or {}).get(title, ()):
            axes.axhline(level, color=MUTED, linewidth=0.8, linestyle=":")
        finish(axes, label if i >= len(curves) - columns else "", "", title)
        if any(lines):
            axes.legend(frameon=False, fontsize=7)
    figure.tight_layout()
    return figure


def of_design(found: Design) -> dict[str, Callable[[], Figure]]:
    """Return the figure of an excitation by its caption."""
    return {"the motion and its limits": found.plot}


def field(x: ArrayLike, y: ArrayLike, values: ArrayLike, labels: Sequence[str], levels: Sequence[float] = (0.0,)) -> Figure:
    """Return a map of values (len(y), len(x)) with contour lines at `levels`; labels of x, y and the values."""
    figure = new_figure(7.0, 4.2)
    axes = figure.add_axes((0.11, 0.13, 0.74, 0.78))
    across, up, shown = np.asarray(x), np.asarray(y), np.asarray(values)
    drawn = axes.pcolormesh(across, up, shown, cmap="viridis", shading="nearest", rasterized=True)
    if shown.min() < max(levels) and shown.max() > min(levels):
        axes.contour(across, up, shown, levels=list(levels), colors="white", linewidths=1.2)
    finish(axes, labels[0], labels[1], "")
    bar = figure.colorbar(drawn, ax=axes)
    bar.set_label(labels[2], fontsize=9, color=INK)
    bar.ax.tick_params(labelsize=8, colors=INK)
    return figure


def paths(curves: Mapping[str, tuple[ArrayLike, ArrayLike]], labels: Sequence[str]) -> Figure:
    """Return a figure of plane paths at equal scales."""
    figure = new_figure(11.0, 3.4)
    axes = figure.add_axes((0.07, 0.15, 0.9, 0.8))
    for k, (name, (x, y)) in enumerate(curves.items()):
        axes.plot(x, y, linewidth=1.0, color=COLOURS[k % 6], linestyle=STYLES[k % 6], label=name)
    finish(axes, labels[0], labels[1], "")
    axes.set_aspect("equal", adjustable="datalim")
    axes.legend(frameon=False, fontsize=8)
    return figure
