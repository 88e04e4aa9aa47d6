"""Figures of a design: motions against limits, tool path, singular values and expected deviations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dynident.identify.plots import BLUE, GRID, INK, ORANGE, label, new_figure
from dynident.mechanics import forward_kinematics

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dynident.excitation.design import Design


def motions(design: Design) -> Figure:
    """Return positions, velocities and accelerations of every coordinate against their limits.

    Parameters
    ----------
    design : Design
        The design.

    Returns
    -------
    matplotlib.figure.Figure
        One row per coordinate.
    """
    limits, motion = design.problem.limits, design.motion()
    n = motion.dof
    figure = new_figure(11.0, 1.0 + 1.5 * n)
    axes = figure.subplots(n, 3, sharex=True, squeeze=False)
    rates = (("position", motion.q), ("velocity", motion.v), ("acceleration", motion.a))
    for j in range(n):
        bounds = ((limits.lower[j], limits.upper[j]), *((-x[j], x[j]) for x in (limits.velocity, limits.acceleration)))
        for axis, (what, y), pair in zip(axes[j], rates, bounds, strict=True):
            axis.plot(motion.t, y[:, j], color=BLUE, linewidth=1.2)
            for value in pair:
                if np.isfinite(value):
                    axis.axhline(value, color=ORANGE, linewidth=0.8, linestyle="--")
            axis.grid(color=GRID)
            if j == 0:
                axis.set_title(what, color=INK, fontsize=10)
        axes[j][0].set_ylabel(label(limits.coordinates[j], 16), color=INK, fontsize=9)
    for axis in axes[-1]:
        axis.set_xlabel("time [s]", color=INK, fontsize=9)
    figure.tight_layout()
    return figure


def tool_path(design: Design) -> Figure | None:
    """Return the way of the last link through space; None without a robot.

    Parameters
    ----------
    design : Design
        The design.

    Returns
    -------
    matplotlib.figure.Figure or None
        Three-dimensional path.
    """
    robot = design.mechanism
    if robot is None:
        return None
    parents = {joint.parent for joint in robot.joints}
    tips = [joint.child for joint in robot.joints if joint.child not in parents]
    figure = new_figure(6.0, 6.0)
    axis = figure.add_subplot(projection="3d")
    motion = design.motion()
    place = forward_kinematics(robot, motion.q, tips[-1])[1]
    axis.plot(place[:, 0], place[:, 1], place[:, 2], color=BLUE, linewidth=1.0)
    axis.scatter(*place[0], color=ORANGE)
    axis.set_title(f"path of {label(tips[-1])}", color=INK, fontsize=10)
    for name, put in zip("xyz", (axis.set_xlabel, axis.set_ylabel, axis.set_zlabel), strict=True):
        put(f"{name} [m]", fontsize=9)
    return figure


def singular_values(design: Design) -> Figure:
    """Return the singular values of the regressor with unit columns before and after.

    Parameters
    ----------
    design : Design
        The design.

    Returns
    -------
    matplotlib.figure.Figure
        Two curves, logarithmic.
    """
    figure = new_figure(7.0, 4.0)
    axis = figure.subplots()
    axis.semilogy(design.singular_values(design.start), color=ORANGE, marker=".", label="start")
    axis.semilogy(design.singular_values(), color=BLUE, marker=".", label="designed")
    axis.set_xlabel("index", fontsize=9)
    axis.set_ylabel("singular value (unit columns)", fontsize=9)
    axis.grid(color=GRID)
    axis.legend(frameon=False)
    figure.tight_layout()
    return figure


def deviations(design: Design) -> Figure:
    """Return the expected standard deviation of every base parameter before and after.

    Parameters
    ----------
    design : Design
        The design.

    Returns
    -------
    matplotlib.figure.Figure
        Bars, logarithmic.
    """
    before, after = design.deviations(design.start), design.deviations()
    names = design.exact.names
    figure = new_figure(8.0, 1.0 + 0.22 * len(names))
    axis = figure.subplots()
    place = np.arange(len(names))
    axis.barh(place - 0.2, np.where(np.isfinite(before), before, np.nan), 0.4, color=ORANGE, label="start")
    axis.barh(place + 0.2, np.where(np.isfinite(after), after, np.nan), 0.4, color=BLUE, label="designed")
    axis.set_yticks(place, [label(name, 24) for name in names], fontsize=7)
    axis.set_xscale("log")
    axis.invert_yaxis()
    axis.set_xlabel("expected standard deviation (SI units of the parameter)", fontsize=9)
    axis.grid(color=GRID, axis="x")
    axis.legend(frameon=False)
    figure.tight_layout()
    return figure


def all_figures(design: Design) -> dict[str, Figure]:
    """Return all figures of a design by name.

    Parameters
    ----------
    design : Design
        The design.

    Returns
    -------
    dict of str to matplotlib.figure.Figure
        Figures.
    """
    made = {"motions": motions(design), "singular_values": singular_values(design), "deviations": deviations(design)}
    path = tool_path(design)
    return made if path is None else {**made, "tool_path": path}
