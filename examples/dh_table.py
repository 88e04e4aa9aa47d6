"""A DH table: which inertial parameters torques determine, alone or in combination."""

from __future__ import annotations

import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure

import dynident as di
from dynident.figures import BLUE, GRID, ORANGE, SKY, new_figure

HALF = np.pi / 2
TABLE = [  # a, alpha, d, theta of a six-axis arm, standard convention [m, rad]
    (0.0, HALF, 0.66, 0.0),
    (0.43, 0.0, 0.0, 0.0),
    (0.02, -HALF, 0.15, 0.0),
    (0.0, HALF, 0.43, 0.0),
    (0.0, -HALF, 0.0, 0.0),
    (0.0, 0.0, 0.06, 0.0),
]
SYMBOLS = ("m", "mx", "my", "mz", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz")


def main() -> Figure:
    """Draw ten parameters of six links: identified alone, only in combinations, never."""
    robot = di.Mechanism.from_dh(TABLE, "standard", "six axes").with_terms(())
    base = di.base_parameters(robot)
    print(base.rank, "base parameters of", len(robot.parameters), "standard ones, for example", base.expressions[5])
    company = np.abs(base.regrouping) > 1e-9  # (base, standard)
    alone = [name for name, row in zip(base.names, company, strict=True) if row.sum() == 1]
    kind = np.ones((6, 10))
    for i, name in enumerate(robot.parameters.names):
        kind[divmod(i, 10)] = 0.0 if name in base.unidentifiable else 2.0 if name in alone else 1.0

    figure = new_figure(8.6, 3.6)
    axes = figure.add_axes((0.1, 0.2, 0.86, 0.68))
    axes.pcolormesh(kind, cmap=ListedColormap([GRID, SKY, BLUE]), edgecolor="white", linewidth=2.0, vmin=0, vmax=2)
    axes.set_xticks(np.arange(10) + 0.5, SYMBOLS)
    axes.set_yticks(np.arange(6) + 0.5, [f"link {i}" for i in range(1, 7)])
    axes.tick_params(length=0)
    axes.invert_yaxis()
    axes.set_frame_on(False)
    for x, colour, text in ((0.10, BLUE, "seen alone"), (0.36, SKY, "seen with others"), (0.66, GRID, "never seen")):
        figure.text(x, 0.06, "■", color=colour, fontsize=14, va="center")
        figure.text(x + 0.03, 0.06, text, fontsize=9, va="center")
    axes.set_title(f"{base.rank} base parameters of {len(robot.parameters)}", fontsize=10, color=ORANGE)
    return figure


if __name__ == "__main__":
    main().savefig("dh_table.png", dpi=80)
