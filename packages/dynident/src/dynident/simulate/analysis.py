"""Tracking errors of a run, with their figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dynident.errors import SimulationError
from dynident.figures import BLUE, INK, MUTED, ORANGE, WIDTH, extremes, finish, label, new_figure
from dynident.mechanics.dynamics import end_frame
from dynident.mechanics.functions import Motion
from dynident.mechanism.describe import effort_units
from dynident.mechanism.mechanism import Mechanism
from dynident.results import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from dynident.simulate.record import Run


def plot_tracking(run: Run, coordinates: Sequence[str] | None = None) -> Figure:
    """Draw reference and actual motion, and the error below, one block per coordinate."""
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


def tool_of(mechanism: Mechanism, frame: str | None = None) -> str | None:
    """Return the link that is a robot's tool."""
    carriers = {joint.parent for joint in mechanism.joints}
    ends = [body for body in mechanism.bodies if body.name not in carriers]
    if frame is None and (mechanism.loops or len(ends) != 1):
        return None
    return end_frame(mechanism, frame)


@dataclass(frozen=True)
class TrackingError(Result):
    """Tracking errors of a motion."""

    names: tuple[str, ...]  #: Coordinates, or actuators, or axes of the tool
    largest: tuple[float, ...]  #: Largest absolute error of each [rad, m]
    rms: tuple[float, ...]  #: Root mean square error of each
    when: tuple[float, ...]  #: Time of the largest error [s]

    def summary(self) -> str:
        """Return the errors as a table. One line per name."""
        rows = zip(self.names, self.largest, self.rms, self.when, strict=True)
        lines = [f"{name:<16}{top:>12.4g}{rms:>12.4g}{t:>10.4g}" for name, top, rms, t in rows]
        return "\n".join([f"{'':<16}{'largest':>12}{'RMS':>12}{'at [s]':>10}", *lines])

    __str__ = summary


def tracking_error(reference: Motion, motion: Motion, names: Sequence[str] | None = None) -> TrackingError:
    """Return the largest and RMS errors of a `motion` relative to its `reference`, at the same times.

    `names` are those of the columns (x1, x2, ...).
    """
    if reference.q.shape != motion.q.shape or not np.allclose(reference.t, motion.t, rtol=0.0, atol=1e-9):
        raise SimulationError(
            f"reference has {reference.q.shape} samples and motion {motion.q.shape}, or other times; sample both at equal times"
        )
    labels = tuple(f"x{i + 1}" for i in range(motion.dof)) if names is None else tuple(names)
    if len(labels) != motion.dof:
        raise SimulationError(f"{len(labels)} names do not fit {motion.dof} columns; correct them")
    error = np.abs(reference.q - motion.q)
    at = motion.t[np.argmax(error, axis=0)]
    return TrackingError(
        labels, tuple(error.max(axis=0).tolist()), tuple(np.sqrt(np.mean(error**2, axis=0)).tolist()), tuple(at.tolist())
    )
