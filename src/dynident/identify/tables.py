"""Rows that a fit answers with: predictions, how well parameters are known, what data leave open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dynident.errors import DynidentError
from dynident.results import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Prediction(Result):
    """Predicted efforts with their uncertainty.

    Parameters
    ----------
    t : ndarray, (N,)
        Time [s].
    effort : ndarray, (N, n)
        Predicted joint torques and forces [N m, N].
    std : ndarray, (N, n)
        Standard deviation of a new measurement about it: parameter uncertainty and measurement noise together;
        NaN for a joint whose efforts were not used in the fit.
    """

    t: Array
    effort: Array
    std: Array

    def plot(self, names: Sequence[str] | None = None) -> Figure:
        """Draw the efforts over time with two standard deviations, one panel per joint.

        Parameters
        ----------
        names : sequence of str, optional
            Names of the joints; numbers when omitted.

        Returns
        -------
        matplotlib.figure.Figure
            The figure.
        """
        from dynident.figures import BLUE, SKY, finish, label, new_figure  # noqa: PLC0415 - matplotlib is an extra

        count = self.effort.shape[1]
        shown = [str(j + 1) for j in range(count)] if names is None else list(names)
        if len(shown) != count:
            raise DynidentError(f"prediction: {len(shown)} names for {count} joints; give one name for each")
        columns = 1 if count <= 4 else 2
        rows = -(-count // columns)
        figure = new_figure(11.0, 1.7 * rows + 0.6)
        for j, (name, effort, std) in enumerate(zip(shown, self.effort.T, self.std.T, strict=True)):
            axes = figure.add_subplot(rows, columns, j + 1)
            axes.fill_between(self.t, effort - 2.0 * std, effort + 2.0 * std, color=SKY, linewidth=0.0, rasterized=True)
            axes.plot(self.t, effort, color=BLUE, linewidth=0.9, rasterized=self.t.size > 20_000)
            finish(axes, "time [s]" if j >= count - columns else "", "effort [N m, N]", label(name))
            axes.margins(x=0.0)
        figure.tight_layout()
        return figure


@dataclass(frozen=True)
class Undetermined:
    """A standard parameter that the data do not determine.

    Parameters
    ----------
    name, unit : str
        The parameter.
    value, description : float
        What is exported, and what the description says.
    """

    name: str
    value: float
    description: float
    unit: str


@dataclass(frozen=True)
class Observability:
    """How well one base parameter is known.

    Parameters
    ----------
    name, expression, unit : str
        The base parameter.
    value, std, relative : float
        Estimate, its standard deviation, and their ratio (infinite when it is not visible in the data).
    verdict : str
        "good" (standard deviation up to 10 % of the value), "poor" (up to 50 %), "insignificant" (not clearly different
        from zero), "not excited" (the data do not show it, or only its sum with others) or "dropped" (not essential).
    """

    name: str
    expression: str
    unit: str
    value: float
    std: float
    relative: float
    verdict: str
