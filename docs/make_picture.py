"""Write pictures/before_after.png, the picture of the README: the demo arm and its torques before and after identification."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from mpl_toolkits.mplot3d.art3d import Poly3DCollection
from PIL import Image

import dynident as di
from dynident.arrays import Array
from dynident.figures import BLUE, INK, MUTED, ORANGE
from dynident.mechanism.describe import link_poses

FILE = Path(__file__).resolve().parent / "pictures" / "before_after.png"
POSE = (0.4, -0.5, 0.9, 0.3, 0.6, 0.0)
JOINTS = ("joint2", "joint3", "joint5")


def tube(start: Array, end: Array, radius: float) -> Array:
    """Return a closed cylinder between two points as a surface, (3, m, n)."""
    along = end - start
    length = float(np.linalg.norm(along))
    if length < 1e-9:
        along, length = np.array([0.0, 0.0, 1e-3]), 1e-3
    across = np.linalg.svd(along[None] / length)[2][1:]
    angle = np.linspace(0.0, 2.0 * np.pi, 25)
    ring = np.cos(angle)[:, None] * across[0] + np.sin(angle)[:, None] * across[1]
    sizes, places = (
        np.array([0.0, 1.0, 1.0, 0.0]) * radius,
        np.array([0.0, 0.0, 1.0, 1.0]),
    )
    return np.stack(
        [start + s * along + r * ring for s, r in zip(places, sizes, strict=True)],
        axis=1,
    ).transpose(2, 1, 0)


def picture() -> Figure:
    """Draw the robot on the left, and measured and predicted torques of the held-out log on the right."""
    arm = di.examples.arm6()
    score = di.identify(arm.robot, arm.run, validate=arm.other).scores[0]
    assert score.described is not None
    figure = Figure(figsize=(10.5, 4.2), facecolor="white")

    axes = figure.add_axes((0.0, 0.0, 0.35, 1.0), projection="3d")
    poses = link_poses(arm.robot, POSE)
    angle = np.linspace(0.0, 2.0 * np.pi, 60)
    for radius, colour in (
        (0.22, "#e6ebf0"),
        (0.1, "#bcc7d1"),
    ):  # the floor, and the foot of the robot
        disc = [
            list(
                zip(
                    radius * np.cos(angle),
                    radius * np.sin(angle),
                    0.0 * angle,
                    strict=True,
                )
            )
        ]
        axes.add_collection3d(
            Poly3DCollection(disc, facecolor=colour, edgecolor="none")
        )
    for k, joint in enumerate(arm.robot.joints):
        start, end = poses[joint.parent].translation, poses[joint.child].translation
        width = 0.052 - 0.005 * k
        axes.plot_surface(
            *tube(start, end, width),
            color="#5b9bc8",
            linewidth=0,
            antialiased=False,
            shade=True,
        )
        axis = poses[joint.child].rotation @ joint.axis * 1.25 * width
        axes.plot_surface(
            *tube(end - axis, end + axis, 1.25 * width),
            color=INK,
            linewidth=0,
            antialiased=False,
            shade=True,
        )
    points = np.array([pose.translation for pose in poses.values()])
    middle, size = (
        (points.max(axis=0) + points.min(axis=0)) / 2.0,
        float(np.ptp(points, axis=0).max()),
    )
    for k, name in enumerate("xyz"):
        getattr(axes, f"set_{name}lim")(middle[k] - 0.5 * size, middle[k] + 0.5 * size)
    axes.set_axis_off()
    axes.computed_zorder = False  # drawn in order: floor, then links from the base on
    axes.view_init(elev=16, azim=-68)
    axes.set_box_aspect((1, 1, 1), zoom=1.3)

    t = score.t - score.t[0]
    for row, name in enumerate(JOINTS):
        j = score.joints.index(name)
        panel = figure.add_axes((0.39, 0.68 - 0.265 * row, 0.59, 0.22))
        panel.plot(
            t, score.described[:, j], color=ORANGE, linewidth=1.2, label="description"
        )
        panel.plot(
            t,
            score.measured[:, j],
            color=MUTED,
            linewidth=3.0,
            alpha=0.6,
            label="measured",
        )
        panel.plot(
            t, score.predicted[:, j], color=BLUE, linewidth=1.2, label="identified"
        )
        panel.set_xlim(0.0, float(t[-1]))
        panel.set_ylabel(f"{name} [N m]", fontsize=8, color=INK)
        panel.tick_params(labelsize=7)
        panel.spines[["top", "right"]].set_visible(False)
        if row == 0:
            panel.legend(
                loc="upper right",
                ncols=3,
                fontsize=8,
                frameon=False,
                bbox_to_anchor=(1.0, 1.36),
            )
            error = f"held-out error {100 * score.description:.1f} % before, {100 * score.metrics.relative:.2f} % after"
            panel.set_title(error, loc="left", fontsize=9, color=INK)
        if row == len(JOINTS) - 1:
            panel.set_xlabel("time [s]", fontsize=8, color=INK)
        else:
            panel.set_xticklabels([])
    return figure


if __name__ == "__main__":
    memory = io.BytesIO()
    picture().savefig(memory, dpi=110)
    Image.open(memory).convert("RGB").quantize(128, dither=Image.Dither.NONE).save(
        FILE, optimize=True
    )
