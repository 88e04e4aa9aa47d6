"""Drawing of workspace maps: both indices of singularity, their loci, and the boundaries by limits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dynident.figures import INK, MUTED, ORANGE, finish, label, new_figure
from dynident_papers.workspace.workspace import WorkspaceMap

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot_workspace(found: WorkspaceMap, space: str, limit: float) -> Figure:
    """Draw type 1 and type 2 side by side; black is the border, orange the locus of the singularity, pale is beyond limits."""
    figure = new_figure(10.4, 4.4)
    if space == "coordinates":
        x, y = np.meshgrid(found.first, found.second, indexing="ij")
        names = tuple(f"{label(name)} [{unit}]" for name, unit in zip(found.names, found.units, strict=True))
    else:
        spread = [np.ptp(found.position[found.reached][:, i]) for i in range(3)]
        i, j = sorted(np.argsort(spread)[-2:])
        x, y = found.position[:, :, i], found.position[:, :, j]
        names = f"{'xyz'[i]} [m]", f"{'xyz'[j]} [m]"
    for k, (kind, values) in enumerate((("type 1 (serial)", found.type1), ("type 2 (parallel)", found.type2))):
        axes = figure.add_axes((0.07 + 0.48 * k, 0.13, 0.36, 0.76))
        held = np.ma.masked_invalid(values)
        flat = found.reached if space == "coordinates" else found.reached & np.isfinite(x)
        shown = axes.scatter(
            x[flat],
            y[flat],
            c=held[flat],
            s=_dot(found),
            marker="s",
            cmap="viridis",
            vmin=0.0,
            vmax=float(np.nanmax(values)),
            linewidths=0,
        )
        beyond = flat & ~found.allowed
        axes.scatter(x[beyond], y[beyond], c="white", alpha=0.55, s=_dot(found), marker="s", linewidths=0)
        if space == "coordinates":
            axes.contour(x, y, found.reached.astype(float), levels=[0.5], colors=INK, linewidths=0.9)
            if np.nanmin(values) < limit:
                axes.contour(x, y, held, levels=[limit], colors=ORANGE, linewidths=1.1)
        else:
            low = flat & (values < limit)
            axes.scatter(x[low], y[low], c=ORANGE, s=3.0, linewidths=0)
        finish(axes, names[0], names[1] if k == 0 else "", f"{label(found.robot)}: {kind}")
        axes.set_aspect("equal" if found.units[0] == found.units[1] or space == "frame" else "auto", adjustable="datalim")
        bar = figure.colorbar(shown, cax=figure.add_axes((0.44 + 0.48 * k, 0.13, 0.012, 0.76)))
        bar.ax.tick_params(labelsize=7, colors=MUTED)
    return figure


def _dot(found: WorkspaceMap) -> float:
    """Return the marker area of a cell [points^2] without gaps in a panel of about 270 points."""
    return float((290.0 / max(found.first.size, found.second.size)) ** 2)
