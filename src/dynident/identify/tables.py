"""Rows that a fit answers with: predictions, how well parameters are known, what data leave open."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Prediction:
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
