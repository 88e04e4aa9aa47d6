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
TINY = np.finfo(float).tiny


def predicted(
    fit: Fit, motion: Motion, betas: Array, temperature: Array | None, load: Array | None
) -> tuple[Array, Array, Array]:
    """Return efforts, deviations and the parameters' share of them; see `Fit.evaluate`."""
    shape = (len(motion), fit.mechanism.dof)
    effort, std, share = np.empty((len(betas), *shape)), np.empty(shape), np.empty(shape)
    told = [shares(fit.sources if fit.speeds else (), name) for name in fit.equations.names]
    moving, resting = (np.array(x) * _of_groups(fit, fit.sigma) ** 2 for x in zip(*told, strict=True))
    errors = _model_errors(fit, moving)
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
        beyond = np.einsum("nbt,nb->tn", W**2, errors)
        residual = np.maximum(moving, beyond) + _resting(fit, motion.v[piece], resting)
        std[piece] = np.sqrt(share[piece] ** 2 + residual)
    return effort, std, share


def _of_groups(fit: Fit, values: Array) -> Array:
    known = dict(zip(fit.groups, values, strict=True))
    return np.array([known.get(name, np.nan) for name in fit.equations.names])


def _model_errors(fit: Fit, variance: Array) -> Array:
    """Return the variance (n, b) of each base parameter that stands for the model error of a joint, zero without a belief.

    If all terms w_k beta_k of a joint, of root mean square a_k in training, are wrong by the same share however correlated,
    the error is at most eta sum_k |w_k beta_k| with eta = sigma / sum_k a_k, and by Cauchy and Schwarz its square at most

        sum_k (eta_k w_k beta_k)^2,     eta_k^2 = sigma^2 / (a_k sum_l a_l),

    which is sigma^2 in the mean over the training data. No term is wrong by more than itself: eta_k <= 1.
    """
    result = np.zeros((len(fit.equations.names), fit.base.rank))
    if fit.training_columns is not None:
        known = dict(zip(fit.groups, fit.training_columns, strict=True))
        for own, name, square in zip(result, fit.equations.names, variance, strict=True):
            if name in known:
                a = known[name] * np.abs(fit.values)
                own[:] = fit.values**2 * square / np.maximum(a * np.sum(a), max(square, TINY))
    return result


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
