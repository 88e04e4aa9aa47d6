"""Figures of virtual robots: tracking, torque split; matplotlib's object API, loaded on first use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dynident.errors import SimulationError
from dynident.figures import BLUE, CURVES, INK, MUTED, ORANGE, WIDTH, extremes, finish, label, new_figure
from dynident.mechanism.describe import effort_units

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from dynident.simulate.record import Run
    from dynident.simulate.split import TorqueSplit

PART_NAMES = {
    "inertia": "inertia of links",
    "velocity": "centrifugal, Coriolis",
    "gravity": "gravity",
    "external": "external",
    "friction": "friction of joints",
    "drive_inertia": "inertia of drives",
    "internal": "internal preload",
    "drive_elastic": "shafts of drives",
    "drive_friction": "friction of drives",
    "drive_loss": "losses of gears",
}


def plot_tracking(run: Run, coordinates: Sequence[str] | None = None) -> Figure:
    """Draw wanted and actual motion, and the error below, one block per coordinate."""
    names = run.robot.mechanism.coordinate_names
    chosen = tuple(names if coordinates is None else coordinates)
    unknown = [name for name in chosen if name not in names]
    if unknown or not chosen:
        raise SimulationError(f"cannot draw coordinates {unknown or chosen}; the robot has {', '.join(names)}")
    sliding = {name for name, unit in effort_units(run.robot.mechanism).items() if unit == "N"}
    t, wanted, actual = run.truth.t, run.reference.q, run.truth.motion.q
    height = 2.3 * len(chosen) + 0.9
    figure = new_figure(WIDTH, height)
    edges = {"left": 0.085, "right": 0.985, "top": 1.0 - 0.5 / height, "bottom": 0.5 / height}
    outer = figure.add_gridspec(len(chosen), 1, **edges, hspace=0.22)
    first: Axes | None = None
    for k, name in enumerate(chosen):
        j = names.index(name)
        inner = outer[k].subgridspec(2, 1, height_ratios=(2.0, 1.1), hspace=0.08)
        upper = figure.add_subplot(inner[0], sharex=first)
        first = first or upper
        lower = figure.add_subplot(inner[1], sharex=first)
        unit, small, factor = ("m", "mm", 1e3) if name in sliding else ("rad", "mrad", 1e3)
        upper.plot(*extremes(t, wanted[:, j]), color=INK, linewidth=1.0, label="wanted")
        upper.plot(*extremes(t, actual[:, j]), color=BLUE, linewidth=1.0, dashes=(5, 1.5), label="actual")
        error = factor * (wanted[:, j] - actual[:, j])
        lower.axhline(0.0, color=MUTED, linewidth=0.6)
        lower.plot(*extremes(t, error), color=ORANGE, linewidth=0.9, label="error")
        largest, rms = np.max(np.abs(error)), np.sqrt(np.mean(error**2))
        title = f"{label(name, 60)} \N{MIDDLE DOT} largest error {largest:.3g} {small}, RMS {rms:.3g} {small}"
        last = k == len(chosen) - 1
        finish(upper, "", f"[{unit}]", title)
        finish(lower, "time [s]" if last else "", f"error\n[{small}]", "")
        upper.tick_params(labelbottom=False)
        lower.tick_params(labelbottom=last)
        upper.margins(x=0.0)
        lower.margins(x=0.0)
        lower.locator_params(axis="y", nbins=3)
    found = [axes.get_legend_handles_labels() for axes in figure.axes[:2]]
    handles, texts = ([*found[0][i], *found[1][i]] for i in (0, 1))
    figure.legend(handles, texts, loc="upper right", ncols=len(texts), frameon=False, fontsize=9, bbox_to_anchor=(0.99, 1.0))
    return figure


def plot_torque_split(split: TorqueSplit, actuators: Sequence[str] | None = None) -> Figure:
    """Draw where the motor torques went, over time and as RMS bars, one row per actuator."""
    chosen = tuple(split.names if actuators is None else actuators)
    unknown = [name for name in chosen if name not in split.names]
    if unknown or not chosen:
        raise SimulationError(f"cannot draw actuators {unknown or chosen}; there are {', '.join(split.names)}")
    used = [name for name, values in split.parts.items() if np.max(np.abs(values), initial=0.0) > 0.0]
    height = 2.1 * len(chosen) + 1.0
    figure = new_figure(WIDTH, height)
    edges = {"left": 0.075, "right": 0.985, "top": 1.0 - 0.55 / height, "bottom": 0.5 / height}
    grid = figure.add_gridspec(len(chosen), 2, width_ratios=(3.0, 1.0), **edges, hspace=0.3, wspace=0.4)
    rms, colours = split.rms(), [CURVES[i % len(CURVES)] for i in range(len(used))]
    for row, name in enumerate(chosen):
        j = split.names.index(name)
        left, right = figure.add_subplot(grid[row, 0]), figure.add_subplot(grid[row, 1])
        left.plot(*extremes(split.t, split.total[:, j]), color=INK, linewidth=1.3, label="motor, behind the gear")
        titles = [PART_NAMES.get(part, part) for part in used]
        for part, title, colour in zip(used, titles, colours, strict=True):
            left.plot(*extremes(split.t, split.parts[part][:, j]), color=colour, linewidth=0.9, label=title)
        right.barh(np.arange(len(used)), [rms[part][j] for part in used], color=colours, height=0.65)
        right.set_yticks(np.arange(len(used)), titles)
        right.invert_yaxis()
        last = row == len(chosen) - 1
        finish(left, "time [s]" if last else "", "[N m or N]", label(name, 60))
        finish(right, "RMS [N m or N]" if last else "", "", "")
        left.margins(x=0.0)
        left.tick_params(labelbottom=last)
    handles, names = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="upper center", ncols=4 if len(names) > 4 else len(names), frameon=False, fontsize=8.5)
    return figure
