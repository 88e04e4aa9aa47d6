"""CFT-transposer: outputs of the simulation block of [Rodriguez2002, section 5, figure 9]."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array
from dynident_papers.robots.cft.data import CARTESIAN, LIMITS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SATURATED, OUTSIDE = 1, 2
"""Bits of the status: a voltage was cut, a coordinate is outside the limits of Table 5. The report does not print its own."""


@dataclass(frozen=True, eq=False)
class BlockRun:
    """Outputs of the simulation block."""

    t: Array  # Simulated time [s]
    xc: Array  # Cartesian coordinates xc1 ... xc4
    vc: Array  # Their rates, computed but not output by the report's block
    voltage: Array  # Voltages of the motors of xc1 ... xc4 behind the saturation [V]
    status: NDArray[np.int64]
    limits: Array = field(default_factory=LIMITS.copy)  # From Table 5 for the simulated set-up [m, rad]

    def summary(self) -> str:
        """Return the run as text."""
        lines = [f"CFT block: {self.t.size} samples, {self.t[-1] - self.t[0]:.4g} s"]
        lines += [
            f"  {name}: {low:.5g} to {high:.5g} {'rad' if name == 'xc3' else 'm'}"
            for name, low, high in zip(CARTESIAN, self.xc.min(axis=0), self.xc.max(axis=0), strict=True)
        ]
        shares = [100.0 * float(np.mean(self.status & bit > 0)) for bit in (SATURATED, OUTSIDE)]
        return "\n".join(
            [*lines, f"  status: a voltage cut {shares[0]:.3g} %, outside the limits {shares[1]:.3g} % of the time"]
        )

    def plot(self) -> Figure:
        """Draw the coordinates over time, limits of Table 5 dotted."""
        from dynident.figures import BLUE, MUTED, extremes, finish, new_figure  # noqa: PLC0415 - matplotlib is an extra

        figure = new_figure(11.0, 5.0)
        for i, name in enumerate(CARTESIAN):
            axes = figure.add_subplot(2, 2, i + 1)
            axes.plot(*extremes(self.t, self.xc[:, i]), color=BLUE, linewidth=1.0)
            for limit in self.limits[i]:
                axes.axhline(limit, color=MUTED, linewidth=0.8, linestyle=":")
            finish(axes, "time [s]" if i > 1 else "", f"[{'rad' if i == 2 else 'm'}]", name)
        figure.tight_layout()
        return figure
