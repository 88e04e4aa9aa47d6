"""Payload identification: runs without and with the load in one fit.

    [W_a   0 ] [beta  ]   [tau_a]         a: without load
    [W_b  W_l] [beta_l] = [tau_b]         b: with load

The load is a body of its own on the link that carries it. Loaded runs alone cannot tell the two apart; both together can.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynident.errors import IdentificationError
from dynident.identify.base import base_parameters
from dynident.identify.fit import Fit
from dynident.identify.matching import match
from dynident.identify.regression import Regression
from dynident.mechanism import Mechanism
from dynident.signals import Log

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Payload:
    """An identified load.

    Parameters
    ----------
    names : tuple of str
        Base parameters of the load, as in ``m_payload``.
    values, std : ndarray, (k,)
        Their estimates and standard deviations, in the frame of the link that carries the load.
    mass, mass_std : float
        Mass and its standard deviation [kg]; NaN when the motion does not show it.
    com, com_std : ndarray, (3,)
        Centre of mass in the frame of the link [m]; NaN where the motion does not show it.
    """

    names: tuple[str, ...]
    values: Array
    std: Array
    mass: float
    mass_std: float
    com: Array
    com_std: Array

    def summary(self) -> str:
        """Return the load as text.

        Returns
        -------
        str
            Mass, centre of mass and every base parameter with its standard deviation.
        """
        head = f"payload {self.mass:.4g} kg (+- {self.mass_std:.2g}), centre of mass {np.round(self.com, 4).tolist()} m"
        lines = [f"  {n:<14} {v:>12.5g} +- {s:.2g}" for n, v, s in zip(self.names, self.values, self.std, strict=True)]
        return "\n".join([head, *lines])


def payload_regression(
    mechanism: Mechanism,
    unloaded: Sequence[Log],
    loaded: Sequence[Log],
    body: str | None = None,
    name: str = "payload",
    **options: Any,
) -> Regression:
    """Return the evidence of runs without and with a load, the load having parameters of its own.

    Parameters
    ----------
    mechanism : Mechanism
        Robot without the load.
    unloaded, loaded : sequence of Log
        Runs without and with the load; at least one of each.
    body : str, optional
        Link that carries the load; the last moving link when there is only one end.
    name : str
        Name of the load.
    **options
        Passed to `Regression.from_log`.

    Returns
    -------
    Regression
        Evidence for `WLS().fit`.
    """
    if not unloaded or not loaded:
        raise IdentificationError("a payload needs runs without it and runs with it; give at least one log of each")
    robot = match(mechanism, unloaded[0]).mechanism.with_payload(1.0, body=body, name=name, separate=True)
    base = base_parameters(robot, removable=(name,))
    parts = [Regression.from_log(robot, log, base, absent=(name,), **options) for log in unloaded]
    parts += [Regression.from_log(robot, log, base, **options) for log in loaded]
    return reduce(add, parts)


def payload_of(fit: Fit, name: str = "payload") -> Payload:
    """Return the load that a fit of runs without and with it has found.

    Parameters
    ----------
    fit : Fit
        Fit of `payload_regression`.
    name : str
        Name of the load.

    Returns
    -------
    Payload
        Mass, centre of mass and base parameters with standard deviations.
    """
    index = [i for i, leader in enumerate(fit.base.leaders) if leader.endswith(f"_{name}")]
    if not index:
        raise IdentificationError(f"the fit has no parameters of a body '{name}'; fit the evidence of payload_regression")
    where = {fit.base.leaders[i].removesuffix(f"_{name}"): i for i in index}
    mass = mass_std = float("nan")
    com, com_std = np.full(3, np.nan), np.full(3, np.nan)
    if "m" in where:
        m = where["m"]
        mass, mass_std = float(fit.values[m]), float(fit.std[m])
        for axis, symbol in enumerate(("mx", "my", "mz")):
            if symbol in where:
                h = where[symbol]
                com[axis] = fit.values[h] / mass
                pair = fit.covariance[np.ix_([h, m], [h, m])]
                gradient = np.array([1.0, -com[axis]]) / mass
                com_std[axis] = np.sqrt(gradient @ pair @ gradient)
    names = tuple(fit.base.names[i] for i in index)
    return Payload(names, fit.values[index], fit.std[index], mass, mass_std, com, com_std)
