"""Figures of a closed-loop proof, drawn with matplotlib's object API."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dynident.figures import BLUE, CURVES, GREEN, INK, MUTED, ORANGE, SKY, extremes, label, new_figure, plain_axes
from dynident_lab.testbench.tracking_result import ALONE, CATALOGUE, IDENTIFIED, STIFFNESS, Published, TrackingProof

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = {ALONE: ORANGE, CATALOGUE: GREEN, IDENTIFIED: BLUE, STIFFNESS: INK}
OTHERS = (SKY, CURVES[3], CURVES[4])
DASHES: tuple[tuple[float, Sequence[float]], ...] = ((0.0, (1.0, 0.0)), (0.0, (5.0, 2.0)), (0.0, (1.0, 1.5)))
WIDTH, BLOCK, HEAD, FOOT = 9.0, 1.55, 0.95, 0.55  # inches


def _panels(count: int, title: str, share_y: bool = False, block: float = BLOCK) -> tuple[Figure, list[Axes]]:
    """Return a figure with panels below each other and a title."""
    height = count * block + HEAD + FOOT
    figure = new_figure(WIDTH, height)
    grid = figure.add_gridspec(count, 1, left=0.09, right=0.985, top=1.0 - HEAD / height, bottom=FOOT / height, hspace=0.28)
    panels: list[Axes] = []
    for i in range(count):
        first = panels[0] if panels else None
        panels.append(figure.add_subplot(grid[i], sharex=first, sharey=first if share_y else None))
        plain_axes(panels[-1])
        panels[-1].tick_params(labelbottom=i == count - 1)
    figure.text(0.09, 1.0 - 0.22 / height, title, fontsize=10.5, color=INK, va="center")
    return figure, panels


def _legend(figure: Figure, axes: Axes) -> None:
    """Put the legend under the title: simulated results in its first row, published ones in the second."""
    handles, names = axes.get_legend_handles_labels()
    height = float(figure.get_size_inches()[1])
    for row, published in enumerate((False, True)):
        chosen = [(h, n) for h, n in zip(handles, names, strict=True) if n.startswith("published") is published]
        if chosen:
            figure.legend(
                *zip(*chosen, strict=True),
                loc="center left",
                ncols=len(chosen),
                frameon=False,
                fontsize=8.5,
                bbox_to_anchor=(0.08, 1.0 - (0.46 + 0.2 * row) / height),
            )


def _colour(proof: TrackingProof, controller: str) -> str:
    """Return the colour of a controller, the same in all figures of a proof."""
    others = [name for name in proof.controllers if name not in COLOURS]
    return COLOURS.get(controller) or OTHERS[others.index(controller) % len(OTHERS)]


def errors_over_time(proof: TrackingProof, motion: str) -> Figure:
    """Draw the tracking errors of all controllers, one panel per actuator and one for the tool."""
    places = [place for place in proof.places if place != "encoder"]
    names = [f"{label(name, 18)} [m{unit}]" for name, unit in zip(proof.actuators, proof.units, strict=True)]
    names += ["tool [mm]"] if "tool" in places else []
    figure, panels = _panels(len(names), f"{label(proof.robot)}, {label(motion, 60)}: tracking errors")
    for j, (axes, name) in enumerate(zip(panels, names, strict=True)):
        axes.axhline(0.0, color=MUTED, linewidth=0.6)
        for controller in proof.controllers:
            trial = proof.trial(controller, motion)
            errors = trial.errors("joint" if j < len(proof.actuators) else "tool")
            t, e = extremes(trial.t, 1e3 * errors[:, j if j < len(proof.actuators) else 0])
            dashes = (1.0, 0.0) if controller in COLOURS else (4.0, 2.0)  # curves below stay visible
            axes.plot(t, e, color=_colour(proof, controller), linewidth=1.0, dashes=dashes, label=controller)
        axes.set_ylabel(name, fontsize=8.5, color=INK)
    panels[-1].set_xlabel("time [s]", fontsize=9, color=INK)
    _legend(figure, panels[0])
    return figure


def error_bars(proof: TrackingProof, published: Published | None = None, where: str = "joint") -> Figure:
    """Draw the largest errors of all controllers as bars, one panel per motion, published ones as short lines over them."""
    tool = where == "joint" and "tool" in proof.places
    names = [*(label(name, 18) for name in proof.actuators), *(["tool [mm]"] if tool else [])]
    milli = ", ".join(dict.fromkeys(f"m{unit}" for unit in proof.units))
    seen = " as encoders on the motors see them" if where == "encoder" else ""
    title = f"{label(proof.robot)}: largest tracking errors{seen} [{milli}]"
    figure, panels = _panels(len(proof.motions), title, share_y=True, block=2.2)
    count = len(proof.controllers)
    places, width = np.arange(len(names)), 0.8 / count
    marks = list((published or {}).items())
    for i, (axes, motion) in enumerate(zip(panels, proof.motions, strict=True)):
        for c, controller in enumerate(proof.controllers):
            at = places + (c - 0.5 * (count - 1)) * width
            trial = proof.trial(controller, motion)
            heights = 1e3 * np.abs(np.hstack([trial.errors(where), *([trial.errors("tool")] if tool else [])])).max(axis=0)
            axes.bar(at, heights, 0.92 * width, color=_colour(proof, controller), label=controller)
            for x, y in zip(at, heights, strict=True):
                axes.annotate(f"{y:.2g}", (x, y), (0, 2), textcoords="offset points", ha="center", fontsize=7.5, color=INK)
        for (name, rows), dash in zip(marks, DASHES, strict=False):
            if i < len(rows):
                middle = places[: len(rows[i])]
                axes.hlines(rows[i], middle - 0.44, middle + 0.44, INK, dash, linewidth=0.9, label=f"published: {name}")
        axes.set_xticks(places, names)
        axes.set_title(label(motion, 60), loc="left", fontsize=9, color=INK, pad=3)
        axes.margins(y=0.14)
        axes.grid(visible=False, axis="x")
    _legend(figure, panels[0])
    return figure


def effort_bars(proof: TrackingProof) -> Figure:
    """Draw the shares of model and feedback in the effort, with the identified model [Kostic2002, eq. 16]."""
    figure, panels = _panels(len(proof.motions), f"{label(proof.robot)}: rms effort [{proof.effort_unit}]", True, 2.2)
    places = np.arange(len(proof.actuators))
    for i, (axes, motion) in enumerate(zip(panels, proof.motions, strict=True)):
        model, feedback = proof.trial(IDENTIFIED, motion).shares
        axes.bar(places - 0.2, model, 0.37, color=BLUE, label="model's share, on the reference")
        axes.bar(places + 0.2, feedback, 0.37, color=SKY, label="feedback's share")
        for x, top, ratio in zip(places, np.maximum(model, feedback), proof.effort_ratio[i], strict=True):
            axes.annotate(
                f"ratio {ratio:.3g}", (x, top), (0, 3), textcoords="offset points", ha="center", fontsize=8, color=INK
            )
        axes.set_xticks(places, [label(name, 18) for name in proof.actuators])
        axes.set_title(label(motion, 60), loc="left", fontsize=9, color=INK, pad=3)
        axes.margins(y=0.14)
        axes.grid(visible=False, axis="x")
    _legend(figure, panels[0])
    return figure
