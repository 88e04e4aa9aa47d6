"""Efforts that a fit predicts, with their deviations; `Fit.predict` says by which rule."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dynident.identify.specimen import nearness, shares
from dynident.mechanics import Motion, closure_starts

if TYPE_CHECKING:
    from dynident.identify.fit import Fit

Array = NDArray[np.float64]

ROWS = 1024  # samples at a time


def predicted(
    fit: Fit, motion: Motion, betas: Array, temperature: Array | None, load: Array | None
) -> tuple[Array, Array, Array]:
    """Return efforts, deviations and the parameters' share of them; see `Fit.evaluate`."""
    shape = (len(motion), fit.mechanism.dof)
    effort, std, share = np.empty((len(betas), *shape)), np.empty(shape), np.empty(shape)
    told = [shares(fit.sources if fit.speeds else (), name) for name in fit.equations.names]
    moving, resting = (np.array(x) * _of_groups(fit, fit.sigma) ** 2 for x in zip(*told, strict=True))
    parts = _of_groups(fit, np.full(len(fit.groups), np.inf) if fit.training_parts is None else fit.training_parts)
    parts = np.where(parts > 0.0, parts, np.inf)
    L = _root(fit.covariance)
    signals = fit.equations.signals(temperature, load, len(motion)) or {}
    firsts = range(0, len(motion), ROWS)
    starts = closure_starts(fit.mechanism, motion.q, firsts) if fit.mechanism.loops else [None] * len(firsts)
    for first, start in zip(firsts, starts, strict=True):
        piece = slice(first, first + ROWS)
        own = {name: values[piece] for name, values in signals.items()}
        W, known = fit.equations.equations(motion[piece], None, fit.base.columns, start, first, own or None)
        effort[:, piece] = np.einsum("nbt,mb->mtn", W, betas, optimize=True) - known.T
        spread = np.einsum("kb,nbt->nkt", L, W, optimize=True)
        share[piece] = np.sqrt(np.einsum("nkt,nkt->tn", spread, spread))
        beyond = np.einsum("nbt,b->tn", W**2, fit.values**2) / parts
        residual = moving * np.maximum(1.0, beyond) + _resting(fit, motion.v[piece], resting)
        std[piece] = np.sqrt(share[piece] ** 2 + residual)
    return effort, std, share


def _of_groups(fit: Fit, values: Array) -> Array:
    known = dict(zip(fit.groups, values, strict=True))
    return np.array([known.get(name, np.nan) for name in fit.equations.names])


def _resting(fit: Fit, v: Array, known: Array) -> Array:
    """Return the variance of friction near standstill, where it may be anything within its limits: at least fc^2 / 3."""
    if fit.mechanism.loops or not fit.speeds:
        return np.zeros(v.shape)
    level = dict(zip(fit.standard.names, fit.standard.values, strict=True))
    limits = np.zeros(v.shape[1])
    for j, name in enumerate(fit.mechanism.coordinate_names):
        limits[j] = max([abs(level.get(f"{symbol}_{name}", 0.0)) for symbol in ("fc", "fcp", "fcn")])
    speeds = np.array([fit.speeds.get(name, 0.0) for name in fit.mechanism.coordinate_names])
    return nearness(v, speeds) * np.maximum(limits**2 / 3.0, np.nan_to_num(known))


def _root(covariance: Array) -> Array:
    """Return L with L^T L = covariance, also when it is singular."""
    std = np.sqrt(np.diag(covariance))
    scale = np.where(std > 0.0, std, 1.0)  # units and excitation differ by many decades; correlations do not
    values, vectors = np.linalg.eigh(covariance / np.outer(scale, scale))
    keep = values > 0.0
    return np.asarray(np.sqrt(values[keep])[:, None] * vectors[:, keep].T * std)
