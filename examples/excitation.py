"""Excitation: an optimised motion within all limits, compared with the best of many random ones."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from two_links import JOINTS, arm

from dynident import base_parameters
from dynident.excitation import design
from dynident.figures import BLUE, GRID, INK, MUTED, ORANGE, new_figure, plain_axes
from dynident.trajectory import Fourier

LIMITS = {"margin": 0.02, "default": {"lower": -1.5, "upper": 1.5, "velocity": 3.0, "acceleration": 15.0}}


def main() -> Figure:
    """Draw the motion between its limits, and the expected standard deviations before and after."""
    robot = arm().with_terms(("ia", "fv", "fc"))
    found = design(robot, LIMITS, criterion="d", family=Fourier(0.25, 4), noise=[0.1, 0.1], starts=2, iterations=40, workers=1)
    print(found.values(found.start)["d"], "->", found.values()["d"])
    assert min(found.margins().values()) >= 0.0
    before, after = found.deviations(found.start), found.deviations()

    figure = new_figure(9.6, 3.8)
    left, right = figure.subplots(1, 2, width_ratios=(1.0, 1.15))
    motion = found.motion()
    plain_axes(left)
    for i, (joint, colour) in enumerate(zip(JOINTS, (BLUE, ORANGE), strict=True)):
        left.plot(motion.t, motion.q[:, i], color=colour, label=joint)
    for limit in (-1.5, 1.5):
        left.axhline(limit, color=INK, lw=0.8, ls=":")
    left.set_title("designed motion [rad] and its limits", fontsize=9)
    left.set_xlabel("t [s]", fontsize=8)
    left.set_ylim(-1.7, 2.2)
    left.legend(fontsize=8, frameon=False, ncols=2, loc="upper center")
    plain_axes(right)
    places = np.arange(len(after))
    right.barh(places + 0.2, before, 0.4, color=GRID, edgecolor=MUTED, lw=0.5, label="best start")
    right.barh(places - 0.2, after, 0.4, color=BLUE, label="designed")
    right.set_yticks(places, base_parameters(robot).names, fontsize=7)
    right.set_xscale("log")
    right.set_title("expected standard deviation for 0.1 N m of noise", fontsize=9)
    right.legend(fontsize=8, frameon=False)
    figure.tight_layout()
    return figure


if __name__ == "__main__":
    main().savefig("excitation.png", dpi=80)
