"""Hold-out and cross-validation in time: models are judged on parts of a log not used in the fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from operator import add
from typing import TYPE_CHECKING, Any

import numpy as np

from dynident.arrays import Array
from dynident.errors import DynidentError
from dynident.figures import BLUE, ORANGE, one_axes
from dynident.identify.base import base_parameters
from dynident.identify.estimators.least_squares import OLS, WLS
from dynident.identify.estimators.map import MAP
from dynident.identify.regression.regression import Regression
from dynident.mechanism.mechanism import Mechanism
from dynident.parallel import gathered
from dynident.results import Result
from dynident.signals.log import Log
from dynident.signals.matching import match
from dynident.signals.preparation import prepare

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def split(log: Log, fraction: float = 2.0 / 3.0, gap: float = 0.0) -> tuple[Log, Log]:
    """Return the two parts of a `log`: the first `fraction` of its samples, and the samples after a gap of `gap` seconds."""
    if not 0.0 < fraction < 1.0:
        raise DynidentError(f"fraction is {fraction}; it must be between 0 and 1")
    cut = int(fraction * len(log))
    resume = cut + round(gap * log.rate)
    if cut < 4 or resume > len(log) - 4:
        raise DynidentError(
            f"log '{log.name}' of {len(log)} samples is too short to split at {fraction:g} with a gap of {gap:g} s"
        )
    return log.rows(0, cut), log.rows(resume, len(log))


@dataclass(frozen=True, eq=False)
class CrossValidation(Result):
    """Held-out errors of every block."""

    joints: tuple[str, ...]  #: Joints compared
    relative: Array  #: (folds,), ||e|| / ||tau|| of each block under the model fitted to all others
    rmse: Array  #: (folds, n), RMSE per block and joint [N m or N]
    overall: float  #: ||e|| / ||tau|| over all blocks together

    def summary(self) -> str:
        """Return the errors as text. One line."""
        folds = ", ".join(f"{100 * r:.2f}" for r in self.relative)
        return (
            f"{len(self.relative)}-fold cross-validation over time: {100 * self.overall:.2f} % relative error (folds {folds} %)"
        )

    def plot(self) -> Figure:
        """Draw the held-out error of every block, and the error over all blocks."""
        figure, axes = one_axes(7.2, 3.6, "block of time", "held-out error [%]", "every block under the model of all others")
        at = np.arange(1, self.relative.size + 1)
        axes.bar(at, 100.0 * self.relative, color=BLUE, width=0.6)
        axes.axhline(100.0 * self.overall, color=ORANGE, linewidth=1.2, label="all blocks together")
        axes.set_xticks(at)
        axes.legend(frameon=False, fontsize=8)
        return figure


def cross_validate(
    blocks: Sequence[Regression], estimator: MAP | OLS | WLS | None = None, *, client: Any = None
) -> CrossValidation:
    """Return the errors of each block under the model fitted to the others.

    Parameters
    ----------
    blocks : sequence of Regression
        Regression data with the same base parameters.
    estimator : estimator, optional
        `MAP()` when omitted.
    client : dask client or executor, optional
        Computes the folds; this process when omitted.
    """
    if len(blocks) < 2:
        raise DynidentError(f"cross-validation got {len(blocks)} block; give at least 2")
    chosen = estimator or MAP()
    joints = tuple(group.name for group in blocks[0].groups)
    for i, block in enumerate(blocks):
        if tuple(group.name for group in block.groups) != joints:
            raise DynidentError(f"cross-validation: block {i} has other joints than block 0; use blocks of one log")
    folds = ((chosen, [other for j, other in enumerate(blocks) if j != i]) for i in range(len(blocks)))
    betas = [_fold(*fold) for fold in folds] if client is None else gathered(client, _fold, folds)
    squares = [[group.residual(beta) for group in block.groups] for block, beta in zip(blocks, betas, strict=True)]
    efforts = [[group.effort_square for group in block.groups] for block in blocks]
    counts = [[group.count for group in block.groups] for block in blocks]
    e, tau, n = np.array(squares), np.array(efforts), np.array(counts)
    relative = np.sqrt(e.sum(axis=1) / tau.sum(axis=1))
    return CrossValidation(joints, relative, np.sqrt(e / n), float(np.sqrt(e.sum() / tau.sum())))


def _fold(estimator: MAP | OLS | WLS, others: Sequence[Regression]) -> Array:
    """Return the base parameters of all blocks but one."""
    return np.asarray(estimator.fit(reduce(add, others)).coef_)


def time_blocks(mechanism: Mechanism, log: Log, folds: int = 5, **options: Any) -> list[Regression]:
    """Return regression data of equal stretches of a log, all in its band and with the same base parameters.

    Parameters
    ----------
    mechanism : Mechanism
        The robot.
    log : Log
        Measured signals.
    folds : int
        Number of stretches.
    **options
        Options of `dynident.signals.prepare`.
    """
    if folds < 2 or len(log) < 50 * folds:
        raise DynidentError(f"cannot cut {len(log)} samples into {folds} blocks; use at least 2 blocks of 50 samples")
    matched = match(mechanism, log)
    whole = prepare(matched.log, **options)
    fixed = {**options, "cutoff": whole.cutoff.frequency, "decimation": whole.decimator.factor}
    base = base_parameters(matched.mechanism)
    edges = np.linspace(0, len(log), folds + 1).astype(int)
    return [Regression.from_log(mechanism, log.rows(int(i), int(j)), base, **fixed) for i, j in pairwise(edges)]
