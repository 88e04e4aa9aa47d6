"""Payload identification from the efforts of the joints.

    [W_a   0 ] [beta  ]   [tau_a]         a: without load
    [W_b  W_l] [beta_l] = [tau_b]         b: with load

The load is a separate body on the link that carries it. Loaded runs alone cannot separate link and load; both kinds together
can, and so can loaded runs of an arm identified before: W_l beta_l = tau_b - W_b beta.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array
from dynident.errors import IdentificationError, require
from dynident.identify.base import BaseParameters, base_parameters, columns_of
from dynident.identify.fit import Fit
from dynident.identify.payload.compliance import compliance_bias
from dynident.identify.payload.load import Payload, inverse_of, plausible_limits
from dynident.identify.regression.factor import weighted_rows
from dynident.identify.regression.logs import same_band
from dynident.identify.regression.regression import Regression
from dynident.mechanism.mechanism import Mechanism
from dynident.signals.log import Log
from dynident.signals.matching import match
from dynident.signals.quality import Finding

SEEN = 1e-8  # part of a column of unit length below which the data do not show it


def payload_regression(
    mechanism: Mechanism,
    unloaded: Sequence[Log],
    loaded: Sequence[Log],
    body: str | None = None,
    name: str = "payload",
    order: Sequence[str] | str | None = None,
    **options: Any,
) -> Regression:
    """Return the regression data of runs without and with a load that has separate parameters.

    Parameters
    ----------
    mechanism : Mechanism
        The robot without the load.
    unloaded, loaded : sequence of Log
        Runs without and with the load.
    body : str, optional
        Link that carries the load; the last moving one when omitted.
    name : str
        Name of the load.
    order : sequence of str or str, optional
        Order of the columns, as in `base_parameters`.
    **options
        Options of `Regression.from_log`.
    """
    if not unloaded or not loaded:
        raise IdentificationError("a payload needs runs without it and runs with it; give at least one log of each")
    options.setdefault("keep_rows", True)  # for `payload_of`
    robot = match(mechanism, unloaded[0]).mechanism.with_payload(1.0, body=body, name=name, separate=True)
    base = base_parameters(robot, order, removable=(name,))
    evidence = Regression.from_log(robot, unloaded[0], base, absent=(name,), **options)
    for log in (*unloaded[1:], *loaded):  # the load is a difference of runs, so all are taken in one band
        gone = (name,) if log in unloaded else ()
        own = {**same_band(evidence.sources[:1], log.rate), **options}
        evidence = evidence + Regression.from_log(robot, log, base, absent=gone, **own)
    return evidence


def payload_of(fit: Fit, name: str = "payload", reach: float | None = None, heaviest: float | None = None) -> Payload:
    """Return the load `name` identified by a `fit` of `payload_regression`, with its doubts.

    Its centre of mass is plausible up to `reach` [m] from the link (the size of the robot), its mass up to `heaviest` [kg]
    (twice the described mass of the moving robot). Where rows were kept, as by `payload_regression`, a bias by elastic drives
    is estimated, noted and added to the covariance.
    """
    index = _own(fit.base, name)
    known = np.isin(index, np.flatnonzero(fit.solved | ~fit.active))
    limits = plausible_limits(fit.mechanism, reach, heaviest, name)
    covariance, notes = fit.covariance[np.ix_(index, index)], _sentences(fit.notes)
    if fit.data.stretches:
        shift, text = compliance_bias(fit, name, index)
        covariance, notes = covariance + np.outer(shift, shift), (*notes, text) if text else notes
    return _payload(fit.base, name, index, fit.values[index], covariance, known, limits, notes)


def payload_on_arm(
    fit: Fit,
    loaded: Sequence[Log],
    body: str | None = None,
    name: str = "payload",
    reach: float | None = None,
    heaviest: float | None = None,
    **options: Any,
) -> Payload:
    """Return the load of loaded runs, with the arm known from a fit without load: only the load is estimated.

    Parameters
    ----------
    fit : Fit
        Fit of the robot without the load; its covariance goes into the load's.
    loaded : sequence of Log
        Runs with the load.
    body : str, optional
        Link that carries the load; the last moving link when there is only one end.
    name : str
        Name of the load.
    reach : float, optional
        Largest plausible distance of its centre of mass from the link [m]; the size of the robot when omitted.
    heaviest : float, optional
        Largest plausible mass [kg], such as the rated load; twice the described mass of the moving robot when omitted.
    **options
        Passed to `Regression.from_log`; those of the fit when omitted.

    Returns
    -------
    Payload
        Mass, centre of mass, inertia and base parameters with standard deviations, and doubts.
    """
    require(fit, Fit, "fit")
    if not loaded:
        raise IdentificationError("a payload needs runs with it; give at least one log")
    robot = fit.mechanism.with_payload(1.0, body=body, name=name, separate=True)
    base = base_parameters(robot, order=fit.base.leaders, removable=(name,))
    index = np.array(_own(base, name))
    arm = np.setdiff1d(np.arange(base.rank), index)
    if [base.leaders[i] for i in arm] != list(fit.base.leaders):
        raise IdentificationError(
            f"the load on '{_carrier(robot, name)}' changes the arm's base parameters; fit runs without and with it together"
        )
    parts = []
    for log in loaded:
        own = {**fit.options, **same_band(fit.sources, log.rate), **options}
        parts.append(Regression.from_log(robot, log, base, projection=fit.projection, **own))
    evidence = reduce(add, parts)
    sigma = dict(zip(fit.groups, fit.sigma.tolist(), strict=True))
    groups = [group for group in evidence.groups if group.name in sigma]
    if not groups:
        raise IdentificationError("the logs have no usable effort channel of a joint that was fitted")
    rows = weighted_rows(groups, np.array([np.sqrt(g.independence) / sigma[g.name] for g in groups]), base.rank)
    W, shift = rows[:, index], rows[:, arm]
    target = rows[:, -1] - shift @ fit.values
    inverse, known = inverse_of(W, SEEN)
    values = inverse @ target
    # The residual gives the noise variance; it includes changes of friction by the load.
    free = max(sum(g.count * g.independence for g in groups) - int(known.sum()), 1.0)
    scale = max(float(np.sum((W @ values - target) ** 2)) / free, 1.0)
    moved = inverse @ shift
    covariance = scale * inverse @ inverse.T + moved @ fit.covariance @ moved.T
    notes = (*_sentences(evidence.notes), f"arm known from {fit.estimator}; residual {np.sqrt(scale):.2f} of the fit's")
    limits = plausible_limits(fit.mechanism, reach, heaviest)
    return _payload(base, name, index.tolist(), values, covariance, known, limits, notes)


def _own(base: BaseParameters, name: str) -> list[int]:
    index = [i for i, leader in enumerate(base.leaders) if leader.endswith(f"_{name}")]
    if not index:
        raise IdentificationError(f"the fit has no parameters of a body '{name}'; fit the result of payload_regression")
    return index


def _carrier(robot: Mechanism, name: str) -> str:
    found = next((joint.parent for joint in robot.joints if joint.child == name), None)
    if found is None:
        raise IdentificationError(f"robot '{robot.name}' has no body {name!r:.60}; name the load as the regression data do")
    return found


def _sentences(notes: Sequence[Finding]) -> tuple[str, ...]:
    return tuple(note.sentence for note in notes)


def _payload(
    base: BaseParameters,
    name: str,
    index: list[int],
    values: Array,
    covariance: Array,
    known: NDArray[np.bool_],
    limits: tuple[float, float],
    notes: tuple[str, ...],
) -> Payload:
    """Return a load from its base parameters; base parameters of one term are standard parameters."""
    robot = base.mechanism
    columns = columns_of(robot, (name,))
    phi, cov = np.full(10, np.nan), np.full((10, 10), np.nan)
    alone = [k for k, i in enumerate(index) if known[k] and np.count_nonzero(base.regrouping[i]) == 1]
    places = [columns.index(int(base.columns[index[k]])) for k in alone]
    phi[places] = values[alone]
    cov[np.ix_(places, places)] = covariance[np.ix_(alone, alone)]
    std = np.where(known, np.sqrt(np.clip(np.diag(covariance), 0.0, None)), np.inf)
    reach, heaviest = limits
    return Payload(
        phi,
        cov,
        tuple(base.names[i] for i in index),
        values,
        std,
        _carrier(robot, name),
        reach,
        notes=notes,
        heaviest=heaviest,
    )
