"""Choosing a model by data that it has not seen: cross-validation over blocks of time, and information criteria.

A richer law always fits its own data better, so the training error chooses nothing. Blocks of time, not random samples,
are held out: neighbouring samples share their errors. The fastest stretches are held out together as well, and so are the
slowest, since a model is used beyond the speeds it was fitted to: a model that is worse there than the simplest one is out.
Of the others the simplest is taken whose squared error exceeds that of the best by no more than one standard error of their
difference over the blocks; a gain below one per cent of the error does not count, however sure.

For the same reason AIC and BIC count effective samples, ``N_eff = N / (1 + 2 sum_k rho_k)`` with rho the autocorrelation of
the residuals.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.errors import DynidentError, IdentificationError
from dynident.results import Result
from dynident.signals.dependence import effective_samples

Array = NDArray[np.float64]

BEYOND = 0.2  # share of the record that is held out for its high, and for its low speed
MOVING = 0.5  # share of its rows that must move for a stretch to be fast or slow
WORTH = 0.02  # relative gain in squared error that is worth a parameter: one per cent of the error
Candidate = Callable[[NDArray[np.bool_]], tuple[Array, int]]
"""Fits the rows that are True and returns the errors of ALL rows and the number of parameters."""


@dataclass(frozen=True)
class Contender:
    """One model in the comparison."""

    name: str  # Name of the model
    held_out: float  # Root mean square error of the held-out blocks
    scatter: float  # Standard error of the mean of the squared block errors, as an error of `held_out`
    training: float  # Root mean square error on all data after a fit to all of them; for information only
    parameters: int  # Number of parameters
    effective: float  # Effective number of independent samples by this model's own residuals
    aic: float
    bic: float
    failed: str = ""  # Why the model could not be fitted; empty otherwise
    extrapolated: float = float("nan")
    slower: float = float("nan")


@dataclass(frozen=True)
class Choice(Result):
    """The comparison, best held-out error first."""

    contenders: tuple[Contender, ...]  # All models
    best: str
    blocks: int  # Number of blocks

    def __getitem__(self, name: str) -> Contender:
        """Return one contender by its name."""
        return next(c for c in self.contenders if c.name == name)

    def summary(self) -> str:
        """Return the comparison as a text table. One line per model."""
        width = max(len(c.name) for c in self.contenders)
        heads = ("held out", "faster", "slower", "training")
        lines = [f"{'model':<{width}}  {'  '.join(f'{head:>9}' for head in heads)}  {'k':>3}  {'AIC':>9}  {'BIC':>9}"]
        for c in self.contenders:
            errors = (c.held_out, c.extrapolated, c.slower, c.training)
            shown = "  ".join(f"{e:>9.4g}" if np.isfinite(e) else f"{'-':>9}" for e in errors)
            numbers = f"{shown}  {c.parameters:>3}  {c.aic:>9.1f}  {c.bic:>9.1f}"
            lines.append(f"{c.name:<{width}}  {c.failed or numbers}{'  <- chosen' if c.name == self.best else ''}")
        return "\n".join(lines)


def choose(candidates: Mapping[str, Candidate], count: int, blocks: int = 5, speed: ArrayLike | None = None) -> Choice:
    """Compare models by held-out error over blocks of time, and over the fastest and the slowest stretches.

    Parameters
    ----------
    candidates : mapping of str to callable
        ``fit(rows)`` with rows (N,) of bool fits those rows and returns the errors of all N rows and the number of
        parameters. NaN marks rows without an error.
    count : int
        Number N of rows, in the order of time.
    blocks : int
        Number of blocks; each is held out once.
    speed : array_like (N,), optional
        Speed at the rows, zero at rest and NaN where it does not count: the stretches with the highest ones are held out
        together, and those with the lowest, so that extrapolation is tested too.

    Returns
    -------
    Choice
        All models, and the one to take.
    """
    if not candidates:
        raise IdentificationError("no model is given to choose from; give at least one")
    if blocks < 2 or count < 4 * blocks:
        raise IdentificationError(
            f"{count} rows cannot be cut into {blocks} blocks of at least four; give more data or fewer blocks"
        )
    edges = np.linspace(0, count, blocks + 1).astype(int)
    beyond = [] if speed is None else _extremes(np.asarray(speed, dtype=np.float64), blocks)
    tried = {name: _tried(fit, edges, beyond) for name, fit in candidates.items()}
    found = {name: _contender(name, trial, blocks) for name, trial in tried.items()}
    usable = [c for c in found.values() if not c.failed]
    if not usable:
        raise IdentificationError(
            "no model could be fitted to every set of blocks: " + "; ".join(c.failed for c in found.values())
        )
    lowest = min(usable, key=lambda c: c.held_out)
    found = {name: c if c.failed else _criteria(c, lowest.effective) for name, c in found.items()}
    usable = [c for c in found.values() if not c.failed]
    simplest = min(usable, key=lambda c: (c.parameters, c.held_out))
    standing = [c for c in usable if _extrapolates(tried[c.name], tried[simplest.name])]
    near = _not_worse({c.name: tried[c.name].squares for c in standing})
    fewest = min(c.parameters for c in standing if c.name in near)
    best = loses_least([c for c in standing if c.name in near and c.parameters == fewest])
    return Choice(tuple(sorted(found.values(), key=lambda c: (bool(c.failed), c.held_out))), best.name, blocks)


def loses_least(contenders: Sequence[Contender]) -> Contender:
    """Return the model whose errors of blocks, of fast and of slow stretches together are least above the best ones."""
    keys = [key for key in ("held_out", "extrapolated", "slower") if all(np.isfinite(getattr(c, key)) for c in contenders)]
    size = {key: min(getattr(c, key) for c in contenders) for key in keys}
    return min(contenders, key=lambda c: sum(getattr(c, key) / (size[key] or 1.0) for key in keys))


@dataclass(frozen=True, eq=False)
class _Trial:
    """Squared errors of one model: of blocks, of fast and of slow stretches that were held out; all errors of a fit to all."""

    squares: Array
    beyond: tuple[Array, ...]
    errors: Array
    parameters: int
    failed: str = ""


def _extremes(speed: Array, blocks: int) -> list[list[tuple[int, int]]]:
    """Return the fastest and the slowest fifth of short stretches that move, as first and last row."""
    edges = np.linspace(0, speed.size, 4 * blocks + 1).astype(int)
    moving = [(a, b) for a, b in pairwise(edges.tolist()) if np.mean(speed[a:b] > 0.0) > MOVING]
    pieces = sorted(moving, key=lambda ends: float(np.nanmean(speed[ends[0] : ends[1]] ** 2)))
    count = max(2, round(BEYOND * len(pieces)))
    return [sorted(pieces[-count:]), sorted(pieces[:count])] if len(pieces) >= 2 * count else []


def _tried(fit: Candidate, edges: NDArray[np.int_], beyond: Sequence[Sequence[tuple[int, int]]]) -> _Trial:
    rows = np.arange(int(edges[-1]))

    def held_out(pieces: Sequence[tuple[int, int]]) -> Array:
        errors, _ = fit(~np.logical_or.reduce([(rows >= a) & (rows < b) for a, b in pieces]))
        return np.array([_mean_square(errors[a:b]) for a, b in pieces])

    nothing = np.zeros(0)
    try:
        squares = np.concatenate([held_out([ends]) for ends in pairwise(edges.tolist())])
        extremes = tuple(held_out(pieces) for pieces in beyond)
        errors, parameters = fit(np.ones(rows.size, dtype=bool))
    except DynidentError as error:
        return _Trial(nothing, (), nothing, 0, str(error))
    return _Trial(squares, extremes, errors[np.isfinite(errors)], parameters)


def _mean_square(errors: Array) -> float:
    kept = errors[np.isfinite(errors)]
    return float(np.mean(kept**2)) if kept.size else float("nan")


def _extrapolates(trial: _Trial, simplest: _Trial) -> bool:
    """Return whether a model is not worse than the simplest one on the fastest stretches, nor on the slowest ones.

    Here a standard error counts for the simplest: few stretches hide much, and what goes astray does so beyond them.
    """
    pairs = zip(trial.beyond, simplest.beyond, strict=True)
    return all(not np.nanmean(own) > (1.0 + WORTH) * np.nanmean(other) for own, other in pairs)


def _not_worse(squares: Mapping[str, Array]) -> set[str]:
    """Return the models whose mean squared error is within one standard error (of the difference), or WORTH, of the lowest."""
    best = squares[min(squares, key=lambda name: float(np.nanmean(squares[name])))]
    found = set()
    for name, values in squares.items():
        more = (values - best)[np.isfinite(values - best)]
        spread = float(np.std(more, ddof=1) / np.sqrt(more.size)) if more.size > 1 else 0.0
        if not more.size or float(np.mean(more)) <= max(spread, WORTH * float(np.nanmean(best))):
            found.add(name)
    return found


def _contender(name: str, trial: _Trial, blocks: int) -> Contender:
    nan = float("nan")
    if trial.failed:
        return Contender(name, nan, nan, nan, 0, nan, nan, nan, trial.failed)
    mean, held = float(np.mean(trial.errors**2)), float(np.nanmean(trial.squares))
    spread = float(np.nanstd(trial.squares, ddof=1) / np.sqrt(blocks))
    scatter = float(np.sqrt(held + spread) - np.sqrt(held))
    beyond = [float(np.sqrt(np.nanmean(squares))) for squares in trial.beyond]
    effective = effective_samples(trial.errors)
    return Contender(
        name, float(np.sqrt(held)), scatter, float(np.sqrt(mean)), trial.parameters, effective, nan, nan, "", *beyond
    )


def _criteria(c: Contender, n: float) -> Contender:
    likelihood, k = 2.0 * n * float(np.log(max(c.training, 1e-150))), c.parameters + 1
    return replace(c, aic=likelihood + 2.0 * k, bic=likelihood + k * float(np.log(n)))
