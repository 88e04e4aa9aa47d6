"""Efforts predicted by a fit, with their standard deviations.

    std^2 = q^2 (h + s^2 + f max(e^2 - s^2, 0)) + r^2

h = w cov w^T is the leverage, s^2 the variance of left-out stretches that the parameters do not explain, e^2 this variance
if the error grows with the terms of the model (`model_errors`), f the share of s^2 that does so (`growing`), r^2 the friction
near standstill. With q, two deviations contain 95 % of the stretches left out of the fit (`calibration`, split conformal
prediction), as of another motion in the same regime. Beyond the regime leverage and model error widen the band, without a
guarantee. The stretches of one run do not show changes between runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import erf
from typing import TYPE_CHECKING

import numpy as np

from dynident.arrays import Array
from dynident.errors import DynidentError
from dynident.figures import BLUE, SKY, finish, label, new_figure
from dynident.friction.law import State
from dynident.identify.posterior.posterior import ENOUGH_ROWS, MapEstimate, scores, squares
from dynident.identify.regression.factor import FEWEST_BLOCKS, SLOW, nearness, shares
from dynident.identify.regression.rows import law_signals
from dynident.mechanics.closure import closure_starts
from dynident.mechanics.dynamics import joint_loads
from dynident.mechanics.functions import Motion
from dynident.results import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dynident.identify.fit import Fit


ROWS = 1024  # samples at a time
WITHIN_TWO = 0.9545  # of a normal distribution within two deviations
BISECTIONS = 20
TINY = np.finfo(float).tiny


@dataclass(frozen=True, eq=False)
class Prediction(Result):
    """Predicted efforts with their uncertainty."""

    t: Array  #: (N,), time [s]
    effort: Array  #: (N, n), predicted joint torques and forces [N m, N]
    #: (N, n), standard deviation of a new measurement about it: parameter uncertainty and measurement noise together; NaN for a
    #: joint whose efforts were not used in the fit
    std: Array

    def plot(self, names: Sequence[str] | None = None) -> Figure:
        """Draw the efforts over time with two standard deviations, one panel per joint."""
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


def predicted(fit: Fit, motion: Motion, betas: Array, temperature: Array | None) -> tuple[Array, Array, Array]:
    """Return efforts, standard deviations and the parameters' share of them; see `Fit.evaluate`."""
    shape = (len(motion), fit.mechanism.dof)
    effort, std, share = np.empty((len(betas), *shape)), np.empty(shape), np.empty(shape)
    moving, resting = _variances(fit)
    errors = model_errors(fit, moving)
    factor = np.ones(shape[1]) if fit.posterior.calibration is None else _of_groups(fit, fit.posterior.calibration)
    growth = np.ones(shape[1]) if fit.posterior.growing is None else _of_groups(fit, fit.posterior.growing)
    L = _root(fit.covariance)
    load = joint_loads(fit.mechanism, motion, fit.standard) if "load" in law_signals(fit.mechanism) else None
    signals = fit.equations.signals(temperature, load, motion) or {}
    firsts = range(0, len(motion), ROWS)
    starts = closure_starts(fit.mechanism, motion.q, firsts) if fit.mechanism.loops else [None] * len(firsts)
    limits = _friction_limits(fit, motion, temperature, load)
    for first, start in zip(firsts, starts, strict=True):
        piece = slice(first, first + ROWS)
        own = {name: values[piece] for name, values in signals.items()}
        W, known = fit.equations.equations(motion[piece], None, fit.base.columns, start, first, own or None)
        effort[:, piece] = (betas @ W).transpose(1, 2, 0) - known.T
        spread = L @ W
        share[piece] = np.sqrt(np.einsum("nkt,nkt->tn", spread, spread))
        beyond = np.einsum("nbt,nb->tn", W**2, errors)
        residual = factor**2 * (share[piece] ** 2 + moving + growth * np.maximum(beyond - moving, 0.0))
        std[piece] = np.sqrt(residual + _resting(fit, motion.v[piece], limits, resting))
    return effort, std, share


def calibration(fit: Fit, found: MapEstimate, misfit: Array) -> Array:
    """Return for each joint the factor q such that two scaled deviations contain 95 % of the left-out rows.

        sum_b n_b erf(sqrt(2) q s_b / e_b) = 0.9545 sum_b n_b

    e_b is the root mean square error of a stretch that was left out of the fit, with the `misfit` of physical consistency, s_b
    the deviation stated by the fit without it. Rows of a stretch are taken as normal; stretches may differ. The factor of a
    joint is at least that of all joints together and never below 1, since the stretches of one are few: bands only widen.
    """
    moving, _ = _variances(fit)
    errors, names = model_errors(fit, moving), fit.equations.names
    K = fit.base.regrouping
    before = np.einsum("bi,ij,bj->b", K, found.covariance(), K)
    scale = np.sqrt(np.diag(fit.covariance) / np.where(before > 0.0, before, np.inf))
    stretches: list[Array | None] = []
    growth = np.ones(len(misfit)) if fit.posterior.growing is None else fit.posterior.growing
    for group, sigma, more, share in zip(fit.data.groups, fit.sigma, misfit, growth, strict=True):
        counts = np.array(group.counts)
        used, own, j = np.flatnonzero(counts), group.columns, names.index(group.name)
        if counts.size < FEWEST_BLOCKS or group.count < ENOUGH_ROWS:
            stretches.append(None)
            continue
        rows = counts[used]
        square = squares(group, found.left_out[: counts.size])[used] / rows + more
        G = group.products[used, :-1, :-1] / rows[:, None, None]
        spread = found.left_out_covariance[used][:, own][:, :, own] * np.outer(scale[own], scale[own])
        beyond = np.einsum("bii,i->b", G, errors[j, own])
        stated = np.einsum("bij,bij->b", G, spread) + sigma**2 + share * np.maximum(beyond - moving[j], 0.0)
        stretches.append(np.array([rows, np.sqrt(square / np.maximum(stated, TINY))]))
    known = [each for each in stretches if each is not None]
    least = max(_held(np.hstack(known)), 1.0) if known else 1.0
    return np.array([1.0 if each is None else max(_held(each), least) for each in stretches])


def growing(fit: Fit) -> Array:
    """Return for each joint the share f of the residual variance that grows with the terms of the model, (groups,).

        f = (a - s^2 n) / (m - s^2 n),     0 <= f <= 1

    a = sum_b g_b^T G^-1 g_b of the stretches' scores g_b is s^2 n for noise, and m for parameters that differ from stretch
    to stretch as in `model_errors` (a random effect, estimated by moments). Without enough stretches f is 1, the bound.
    """
    moving, _ = _variances(fit)
    errors, names = model_errors(fit, moving), fit.equations.names
    result = np.ones(len(fit.data.groups))
    for k, group in enumerate(fit.data.groups):
        if len(group.counts) >= FEWEST_BLOCKS and group.count >= ENOUGH_ROWS:
            j, own = names.index(group.name), group.columns
            found, white, grown = scores(group.products, fit.values[own], errors[j, own])
            noise = moving[j] * white
            if grown > noise:
                result[k] = np.clip((found - noise) / (grown - noise), 0.0, 1.0)
    return result


def _held(stretches: Array) -> float:
    """Return q for stretches (2, K): numbers of rows, and ratios of errors to stated deviations."""
    counts, errors = stretches
    low, high = 0.0, float(errors.max())
    for _ in range(BISECTIONS):
        q = 0.5 * (low + high)
        held = [erf(2.0**0.5 * q / error) if error > 0.0 else 1.0 for error in errors.tolist()]
        low, high = (low, q) if np.average(held, weights=counts) >= WITHIN_TWO else (q, high)
    return high


def _variances(fit: Fit) -> tuple[Array, Array]:
    """Return the variances of residuals in motion and their increase at rest, (n,) each."""
    told = [shares(fit.sources if fit.posterior.speeds else (), name) for name in fit.equations.names]
    square = _of_groups(fit, fit.sigma) ** 2
    moving, resting = (np.array(x) * square for x in zip(*told, strict=True))
    return moving, resting


def _of_groups(fit: Fit, values: Array) -> Array:
    known = dict(zip(fit.groups, values, strict=True))
    return np.array([known.get(name, np.nan) for name in fit.equations.names])


def model_errors(fit: Fit, variance: Array) -> Array:
    """Return the variance (n, b) of each base parameter that represents the model error of a joint, zero without a prior.

        eta_k^2 = sigma^2 / (a_k sum_l a_l) <= 1,      a_k: root mean square of w_k beta_k in training

    By the Cauchy-Schwarz inequality, sum_k (eta_k w_k beta_k)^2 bounds the error if all terms are wrong by the same share.
    """
    result = np.zeros((len(fit.equations.names), fit.base.rank))
    if fit.posterior.training_columns is not None:
        known = dict(zip(fit.groups, fit.posterior.training_columns, strict=True))
        for own, name, square in zip(result, fit.equations.names, variance, strict=True):
            if name in known:
                a = known[name] * np.abs(fit.values)
                own[:] = fit.values**2 * square / np.maximum(a * np.sum(a), max(square, TINY))
    return result


def _friction_limits(fit: Fit, motion: Motion, temperature: Array | None, load: Array | None) -> Array:
    """Return the holding friction of each joint of a tree at rest, (n,), from its terms or its law.

    For a law it is half of its jump at standstill, or half of the step of a smooth law there, at the mean state of the motion.
    """
    names = fit.mechanism.coordinate_names
    level = dict(zip(fit.standard.names, fit.standard.values, strict=True))
    limits = np.array([max(abs(level.get(f"{symbol}_{name}", 0.0)) for symbol in ("fc", "fcp", "fcn")) for name in names])
    if fit.mechanism.loops or not fit.posterior.speeds:
        return limits
    for name, friction in fit.friction.items():
        if name not in names:  # of a joint that follows others
            continue
        j, slow = names.index(name), SLOW * fit.posterior.speeds.get(name, 0.0)
        q, tau, T = (None if x is None else np.full(2, np.mean(x[:, j])) for x in (motion.q, load, temperature))
        state = State(np.array([slow, -slow]), q, tau, T)
        (forward, backward), (low, high) = friction(state), friction.breakaway(state)[0]
        limits[j] = 0.5 * max(high - low if high > low else forward - backward, 0.0)
    return limits


def _speeds(fit: Fit) -> Array:
    """Return the RMS speeds of the joints in training, (n,); 0 where they are not known."""
    return np.array([fit.posterior.speeds.get(name, 0.0) for name in fit.mechanism.coordinate_names])


def _resting(fit: Fit, v: Array, limits: Array, known: Array) -> Array:
    """Return the variance of friction near standstill, where it is undetermined within its limits: at least fc^2 / 3."""
    if fit.mechanism.loops or not fit.posterior.speeds:
        return np.zeros(v.shape)
    return nearness(v, _speeds(fit)) * np.maximum(limits**2 / 3.0, np.nan_to_num(known))


def _root(covariance: Array) -> Array:
    """Return L with L^T L = covariance, also when it is singular."""
    std = np.sqrt(np.diag(covariance))
    scale = np.where(std > 0.0, std, 1.0)  # units and excitation differ by many decades; correlations do not
    values, vectors = np.linalg.eigh(covariance / np.outer(scale, scale))
    keep = values > 0.0
    return np.asarray(np.sqrt(values[keep])[:, None] * vectors[:, keep].T * std)
