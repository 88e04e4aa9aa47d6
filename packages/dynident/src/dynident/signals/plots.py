"""A log as a picture: positions, speeds and efforts of every channel over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dynident.figures import BLUE, GREEN, INK, MUTED, ORANGE, WIDTH, extremes, label, new_figure, plain_axes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dynident.signals.log import Log

UNITS = {"joint_torque": "N m or N", "joint_force": "N", "motor_torque": "N m", "motor_current": "A", "voltage": "V"}


def plot_log(log: Log) -> Figure:
    """Draw three panels per channel."""
    row, head = 1.15, 0.45
    height = head + row * len(log.joints) + 0.45
    figure = new_figure(WIDTH, height)
    speed = np.gradient(log.position, log.t, axis=0) if log.velocity is None else log.velocity
    panels = [("position [rad or m]", log.position, BLUE), ("speed [rad/s or m/s]", np.asarray(speed), GREEN)]
    if log.effort_kind != "none":
        panels.append((f"effort [{UNITS.get(log.effort_kind, '')}]", log.effort, ORANGE))
    for column, (title, values, colour) in enumerate(panels):
        left = 0.075 + 0.315 * column
        figure.text(left, 1.0 - 0.22 / height, title, fontsize=9.5, color=MUTED, va="center")
        for j, joint in enumerate(log.joints):
            bottom = (height - head - row * (j + 1) + 0.18) / height
            axes = figure.add_axes((left, bottom, 0.265, (row - 0.25) / height))
            axes.plot(*extremes(log.t, np.nan_to_num(values[:, j])), color=colour, linewidth=0.9)
            if column == 0 and log.reference is not None:
                axes.plot(*extremes(log.t, log.reference[:, j]), color=INK, linewidth=0.6, linestyle="--")
            plain_axes(axes)
            axes.locator_params(axis="y", nbins=4)
            if j + 1 < len(log.joints):
                axes.set_xticklabels([])
            else:
                axes.set_xlabel("time [s]", fontsize=9, color=INK)
            if column == 0:
                axes.set_ylabel(label(joint, 14), fontsize=9, color=INK)
    return figure
