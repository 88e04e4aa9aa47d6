"""A mechanism as a figure: its links in space with their frames, and the graph of its bodies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from dynident.errors import DescriptionError
from dynident.figures import BLUE, GREEN, INK, MUTED, ORANGE, WIDTH, label, new_figure
from dynident.mechanism.elements import Placement
from dynident.mechanism.graph import layout
from dynident.mechanism.tree_state import node_poses

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from dynident.mechanism.mechanism import Mechanism


def plot_mechanism(mechanism: Mechanism, q: ArrayLike | None = None) -> Figure:
    """Draw the pose on the left, the graph on the right."""
    poses = link_poses(mechanism, q)
    figure = new_figure(WIDTH, max(5.0, 0.28 * len(mechanism.bodies) + 0.8))
    _draw_pose(figure, mechanism, poses)
    _draw_graph(figure.add_axes((0.56, 0.02, 0.43, 0.9)), mechanism)
    figure.text(0.02, 0.96, label(repr(mechanism).split(";")[0].split(" coordinates")[0] + " coordinates)", 80), fontsize=10)
    return figure


def link_poses(mechanism: Mechanism, q: ArrayLike | None = None) -> dict[str, Placement]:
    """Return where every link is: its frame in the base frame."""
    tree = mechanism.tree
    values = np.zeros(len(tree.coordinates)) if q is None else np.asarray(q, dtype=float).ravel()
    if values.shape != (len(tree.coordinates),):
        raise DescriptionError(
            f"q has {values.size} numbers but the tree of '{mechanism.name}' has {len(tree.coordinates)} coordinates: "
            f"{', '.join(tree.coordinates)}"
        )
    nodes = node_poses(tree, values)
    return {body: inside if node < 0 else nodes[node] @ inside for body, (node, inside) in tree.frames.items()}


def _draw_pose(figure: Figure, mechanism: Mechanism, poses: dict[str, Placement]) -> None:
    axes = figure.add_axes((0.0, 0.02, 0.54, 0.92), projection="3d")
    points = np.array([pose.translation for pose in poses.values()])
    size = float(np.ptp(points, axis=0).max()) or 1.0
    for joint in mechanism.joints:
        ends = np.array([poses[joint.parent].translation, poses[joint.child].translation])
        fixed = joint.kind == "fixed"
        axes.plot(*ends.T, color=MUTED, linewidth=1.0 if fixed else 3.5, alpha=0.6, solid_capstyle="round")
        if not fixed:
            axes.plot(*ends[1:].T, "o", color=INK, markersize=4)
    for pose in poses.values():
        for k, colour in enumerate((ORANGE, GREEN, BLUE)):
            tip = pose.translation + 0.07 * size * pose.rotation[:, k]
            axes.plot(*np.array([pose.translation, tip]).T, color=colour, linewidth=1.2)
    middle = (points.max(axis=0) + points.min(axis=0)) / 2.0
    for k, name in enumerate("xyz"):
        getattr(axes, f"set_{name}lim")(middle[k] - 0.55 * size, middle[k] + 0.55 * size)
        getattr(axes, f"set_{name}label")(f"{name} [m]", fontsize=8, color=INK)
    axes.tick_params(labelsize=7)
    axes.set_box_aspect((1, 1, 1))  # type: ignore[arg-type]  # matplotlib types axes of a plane only


def _draw_graph(axes: Axes, mechanism: Mechanism) -> None:
    place = layout(mechanism)
    far = 1 + max(column for column, _ in place.values())
    driver = {joint.child: joint for joint in mechanism.joints}
    for body, (column, row) in place.items():
        joint = driver.get(body)
        if joint is not None:
            above = place[joint.parent]
            style = ":" if joint.kind == "fixed" else "-"
            axes.plot([above[0], above[0], column], [-above[1], -row, -row], style, color=MUTED, linewidth=1.2, zorder=0)
        axes.plot(column, -row, "o", color=INK if joint is None else "white", markeredgecolor=INK, markersize=5)
        moved = "" if joint is None else f"   {joint.name} ({joint.kind})"
        axes.text(far, -row, label(body + moved, 58), fontsize=8, va="center", color=INK)
    for loop in mechanism.loops:
        (x1, y1), (x2, y2) = place[loop.body_a], place[loop.body_b]
        axes.plot([x1, x2], [-y1, -y2], "--", color=ORANGE, linewidth=1.0, zorder=0)
    axes.set_xlim(-0.6, max(3.0 * far, far + 8.0))
    axes.set_ylim(-len(place), 1.0)
    axes.set_axis_off()
