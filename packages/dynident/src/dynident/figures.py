"""Common parts of all figures: colours, labels, axes; drawn with matplotlib's object API (no pyplot, no global state)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dynident.arrays import Array
from dynident.errors import missing_extra

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# Okabe and Ito's palette, distinguishable with any colour vision; ink and grid are greys.
BLUE, ORANGE, GREEN, SKY = "#0072B2", "#D55E00", "#009E73", "#A6D3EE"
INK, MUTED, GRID = "#333333", "#767676", "#E3E6E8"
CURVES = (BLUE, ORANGE, GREEN, "#CC79A7", "#E69F00", "#56B4E9", MUTED, "#000000")  # in this order

WIDTH = 11.0  # inches
BUCKETS = 600  # drawn columns per panel: about one per pixel of a laptop
LONGEST_LABEL = 34


def new_figure(width: float, height: float) -> Figure:
    """Return an empty matplotlib figure; without matplotlib the error names the extra."""
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 - matplotlib is an extra
    except ImportError as error:
        raise missing_extra("matplotlib", "report", "drawing figures") from error
    return Figure(figsize=(width, height), facecolor="white")


def label(name: str, longest: int = LONGEST_LABEL) -> str:
    """Return a name as text that matplotlib draws literally: one short line, no mathematics."""
    clean = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in name)
    if len(clean) > longest:
        half = (longest - 1) // 2
        clean = f"{clean[:half]}\N{HORIZONTAL ELLIPSIS}{clean[-half:]}"
    return clean.replace("$", r"\$")


def pretty_unit(unit: str) -> str:
    """Return a unit with raised exponents, as in kg m²."""
    return unit.replace("^2", "\N{SUPERSCRIPT TWO}").replace("^3", "\N{SUPERSCRIPT THREE}")


def extremes(t: Array, y: Array, buckets: int = BUCKETS, pick: Callable[..., Any] | None = None) -> tuple[Array, Array]:
    """Thin a long signal for drawing without losing a peak."""
    if t.size <= 2 * buckets:
        return t, y
    edges = np.linspace(0, t.size, buckets + 1).astype(int)
    starts = edges[:-1]
    if pick is not None:
        return t[starts], np.asarray(pick.reduceat(y, starts))  # type: ignore[attr-defined]
    low = [i + int(np.argmin(y[i:j])) for i, j in zip(starts, edges[1:], strict=True)]
    high = [i + int(np.argmax(y[i:j])) for i, j in zip(starts, edges[1:], strict=True)]
    index = np.sort(np.concatenate([low, high]))
    return t[index], y[index]


def plain_axes(axes: Axes) -> None:
    """Apply the common style to axes."""
    axes.grid(color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(labelsize=8, colors=INK, length=3, width=0.6)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(MUTED)
        axes.spines[side].set_linewidth(0.6)


def one_axes(width: float, height: float, x: str, y: str, title: str) -> tuple[Figure, Axes]:
    """Return a figure with one pair of axes."""
    figure = new_figure(width, height)
    axes = figure.add_axes((0.8 / width, 0.6 / height, 1.0 - 1.0 / width, 1.0 - 1.0 / height))
    finish(axes, x, y, title)
    return figure, axes


def finish(axes: Axes, x: str, y: str, title: str) -> None:
    """Set labels and the common style of axes."""
    plain_axes(axes)
    axes.set_xlabel(x, fontsize=9, color=INK)
    axes.set_ylabel(y, fontsize=9, color=INK)
    axes.set_title(title, loc="left", fontsize=10, color=INK, pad=5)


def over_time(t: Array, panels: Mapping[str, Array], names: Sequence[str] | None = None, title: str = "") -> Figure:
    """Draw quantities (N, n) over time, one panel each, by panel title; one curve per name, numbered without names."""
    height = 1.75 * len(panels) + 1.0
    figure = new_figure(WIDTH, height)
    grid = figure.add_gridspec(len(panels), 1, left=0.08, right=0.98, top=1.0 - 0.6 / height, bottom=0.5 / height, hspace=0.16)
    for k, (what, values) in enumerate(panels.items()):
        axes = figure.add_subplot(grid[k])
        for j, column in enumerate(values.T):
            name = label(names[j]) if names is not None else str(j + 1)
            style = "-" if j < len(CURVES) else "--"
            axes.plot(*extremes(t, column), style, color=CURVES[j % len(CURVES)], linewidth=1.0, label=name)
        last = k == len(panels) - 1
        finish(axes, "time [s]" if last else "", what, label(title, 80) if k == 0 else "")
        axes.tick_params(labelbottom=last)
        axes.margins(x=0.0)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="upper right", ncols=min(len(labels), 8), frameon=False, fontsize=8.5)
    return figure
