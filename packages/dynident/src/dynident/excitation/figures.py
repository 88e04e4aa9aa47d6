"""Figures of a design: motions against limits, tool path, singular values and expected deviations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynident.excitation.equations import RobotEquations
from dynident.excitation.limits import ToolBox
from dynident.figures import BLUE, INK, MUTED, ORANGE, label, new_figure, plain_axes, plain_decades, pretty_unit
from dynident.mechanics.kinematics import forward_kinematics
from dynident.mechanism.describe import effort_units

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dynident.excitation.designs import Design

Array = NDArray[np.float64]

SMALL = 8  # points, of tick labels
FAR = 10.0  # times the largest value of a motion, above which a limit is told in words: drawn, it would flatten the curve
RATES = ("position", "velocity", "acceleration")
SECONDS = ("", "/s", "/s\N{SUPERSCRIPT TWO}")
ENDS = ("tool", "platform")  # names of the link to draw when a robot has several ends


def motions(design: Design) -> Figure:
    """Return positions, velocities and accelerations of every coordinate against their limits."""
    limits, motion = design.problem.limits, design.motion()
    n = motion.dof
    sliding = {} if design.mechanism is None else effort_units(design.mechanism)
    height = 1.3 + 1.5 * n
    figure = new_figure(11.0, height)
    # margins by hand: tight_layout and aligned labels measure every text of every panel, a third of excite on a quadruped
    room = {"left": 0.08, "right": 0.985, "wspace": 0.3, "top": 1.0 - 0.6 / height, "bottom": 0.55 / height, "hspace": 0.2}
    axes = figure.subplots(n, 3, sharex=True, squeeze=False, gridspec_kw=room)
    columns = (motion.q, motion.v, motion.a)
    for j, name in enumerate(limits.coordinates):
        unit = {"N": "m", "N m": "rad"}.get(sliding.get(name, ""), "SI")
        bounds = ((limits.lower[j], limits.upper[j]), *((-x[j], x[j]) for x in (limits.velocity, limits.acceleration)))
        for axis, y, pair, per in zip(axes[j], columns, bounds, SECONDS, strict=True):
            plain_axes(axis)
            axis.plot(motion.t, y[:, j], color=BLUE, linewidth=1.2, label="motion")
            reach = FAR * float(np.max(np.abs(y[:, j])))
            for value in pair:
                if np.isfinite(value) and abs(value) <= reach:
                    axis.axhline(value, color=ORANGE, linewidth=1.0, linestyle="--", label="limit")
            far = ", ".join(f"{value:.4g}" for value in pair if np.isfinite(value) and abs(value) > reach)
            if far:
                axis.text(1.0, 1.0, f"limit {far}", transform=axis.transAxes, ha="right", va="bottom", color=ORANGE, fontsize=7)
            axis.set_ylabel(f"{unit}{per}", color=INK, fontsize=SMALL)
            axis.yaxis.set_label_coords(-0.17, 0.5)
        axes[j][0].set_ylabel(f"{label(name, 16)}\n{unit}", color=INK, fontsize=SMALL)
    for axis, what in zip(axes[0], RATES, strict=True):
        axis.set_title(what, color=INK, fontsize=10)
    for axis in axes[-1]:
        axis.set_xlabel("time [s]", color=INK, fontsize=9)
    entries = {what: line for axis in axes.flat for line, what in zip(*axis.get_legend_handles_labels(), strict=True)}
    figure.legend(entries.values(), entries.keys(), loc="upper right", ncols=2, frameon=False, fontsize=9)
    return figure


def drawn_link(design: Design) -> str | None:
    """Return the link whose path is drawn: the one that limits name, an end called tool or platform, or the last end."""
    robot = design.mechanism
    if robot is None:
        return None
    for limit in design.problem.limits.others:
        if isinstance(limit, ToolBox):
            return limit.frame
    parents = {joint.parent for joint in robot.joints}
    tips = [joint.child for joint in robot.joints if joint.child not in parents]
    return next((tip for name in ENDS for tip in tips if tip == name), tips[-1])


def tool_path(design: Design) -> Figure | None:
    """Return the way of the tool through space; None without a robot."""
    robot, tip = design.mechanism, drawn_link(design)
    if robot is None or tip is None:
        return None
    figure = new_figure(7.0, 6.5)
    axis: Any = figure.add_subplot(projection="3d")
    place = forward_kinematics(robot, design.motion().q, tip)[1]
    before = forward_kinematics(robot, design.start.sample(design.rate).q, tip)[1]
    axis.plot(*before.T, color=MUTED, linewidth=0.8, label="start of the search")
    axis.plot(*place.T, color=BLUE, linewidth=1.3, label="designed")
    axis.scatter(*place[0], color=ORANGE, label="first sample", depthshade=False)
    both = np.concatenate([place, before])
    middle, half = 0.5 * (both.min(axis=0) + both.max(axis=0)), 0.55 * float(np.max(np.ptp(both, axis=0))) or 1.0
    sides = (axis.xaxis, axis.set_xlim, axis.set_xlabel), (axis.yaxis, axis.set_ylim, axis.set_ylabel)
    for name, x, (ticks, limit, put) in zip("xyz", middle, (*sides, (axis.zaxis, axis.set_zlim, axis.set_zlabel)), strict=True):
        limit(x - half, x + half)
        ticks.get_major_locator().set_params(nbins=5)
        put(f"{name} [m]", fontsize=9, labelpad=8)
    axis.tick_params(labelsize=SMALL)
    axis.set_box_aspect((1, 1, 1), zoom=0.95)
    figure.subplots_adjust(0.0, 0.02, 0.95, 0.98)
    figure.suptitle(f"path of {label(tip)}", color=INK, fontsize=10)
    figure.legend(loc="upper left", frameon=False, fontsize=9)
    return figure


def singular_values(design: Design) -> Figure:
    """Return the singular values of the base regressor before and after, columns scaled as the criterion sees them."""
    from matplotlib.ticker import MaxNLocator  # noqa: PLC0415 - matplotlib is an extra

    figure = new_figure(7.5, 4.2)
    axis = figure.subplots()
    plain_axes(axis)
    drawn = []
    for curve, colour, what in ((design.start, ORANGE, "before"), (None, BLUE, "after")):
        values = design.singular_values(curve)
        ratio = values[0] / values[-1] if values[-1] > 0.0 else np.inf
        shown = np.where(values > 1e-12 * values[0], values, np.nan)
        drawn.append(shown)
        axis.semilogy(np.arange(1, values.size + 1), shown, color=colour, marker=".", label=f"{what}: ratio {ratio:.4g}")
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    plain_decades(axis.yaxis, np.concatenate(drawn))
    axis.set_xlabel("number of the singular value", color=INK, fontsize=9)
    scale = design.problem.objective.criterion.scale
    unit = "SI units" if scale is None else "unit columns" if isinstance(scale, str) else "scaled columns"
    axis.set_ylabel(f"singular value ({unit})", color=INK, fontsize=9)
    axis.set_title("singular values of the base regressor, and their ratio first over last", color=INK, fontsize=10)
    axis.legend(frameon=False, fontsize=9)
    figure.tight_layout()
    return figure


def deviations(design: Design) -> Figure:
    """Return the expected standard deviation of every base parameter before and after."""
    before, after = design.deviations(design.start), design.deviations()
    names = design.exact.names
    units = design.exact.base.units if isinstance(design.exact, RobotEquations) else ("SI",) * len(names)
    height = 1.6 + 0.2 * len(names)
    figure = new_figure(8.0, height)
    axis = figure.subplots()
    plain_axes(axis)
    place = np.arange(len(names))
    for y, old, new in zip(place, before, after, strict=True):
        if np.isfinite(old) and np.isfinite(new):
            axis.plot([old, new], [y, y], color=MUTED, linewidth=0.8, zorder=1)
    for values, colour, what in ((before, ORANGE, "before"), (after, BLUE, "after")):
        seen = np.isfinite(values)
        text = what if seen.all() else f"{what} ({np.count_nonzero(~seen)} not visible)"
        axis.scatter(values[seen], place[seen], s=22, color=colour, label=text, zorder=2)
    texts = [f"{label(name, 26)} [{pretty_unit(unit)}]" for name, unit in zip(names, units, strict=True)]
    axis.set_yticks(place, texts, fontsize=SMALL)
    axis.set_xscale("log")
    plain_decades(axis.xaxis, np.concatenate([before, after]))
    axis.set_ylim(len(names) - 0.4, -0.6)
    noise = ", ".join(f"{x:.3g}" for x in np.unique(np.round(design.noise, 12))[:4])
    axis.set_xlabel(f"expected standard deviation after one run, in the unit of the parameter (noise {noise})", fontsize=9)
    figure.tight_layout(rect=(0.0, 0.0, 1.0, 1.0 - 0.3 / height))
    figure.legend(loc="upper right", ncols=2, frameon=False, fontsize=9)
    return figure


def all_figures(design: Design) -> dict[str, Figure]:
    """Return all figures of a design by name."""
    made = {"motions": motions(design), "singular_values": singular_values(design), "deviations": deviations(design)}
    path = tool_path(design)
    return made if path is None else {**made, "tool_path": path}
