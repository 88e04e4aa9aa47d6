"""Choosing a model by data that it has not seen: cross-validation over blocks of time, and information criteria.

A richer law always fits its own data better, so the training error chooses nothing. Blocks of time, not random samples,
are held out: neighbouring samples share their errors. For the same reason AIC and BIC count effective samples,
``N_eff = N / (1 + 2 sum_k rho_k)`` with rho the autocorrelation of the residuals.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynident.errors import DynidentError, IdentificationError
from dynident.friction import FrictionLaw, State
from dynident.identify.friction.separable import fit_axis

Array = NDArray[np.float64]
Candidate = Callable[[NDArray[np.bool_]], tuple[Array, int]]
"""Fits the rows that are True and returns the errors of ALL rows and the number of parameters."""


@dataclass(frozen=True)
class Contender:
    """One model in the comparison.

    Parameters
    ----------
    name : str
        Name of the model.
    held_out : float
        Root mean square error of the held-out blocks.
    scatter : float
        Standard error of the mean of the squared block errors, as an error of `held_out`.
    training : float
        Root mean square error on all data after a fit to all of them; for information only.
    parameters : int
        Number of parameters.
    effective : float
        Effective number of independent samples by this model's own residuals.
    aic, bic : float
        Information criteria; lower is better. All models count the effective samples of the one with the lowest held-out
        error, whose residuals are closest to pure noise: criteria of different counts could not be compared.
    failed : str
        Why the model could not be fitted; empty otherwise.
    """

    name: str
    held_out: float
    scatter: float
    training: float
    parameters: int
    effective: float
    aic: float
    bic: float
    failed: str = ""


@dataclass(frozen=True)
class Choice:
    """The comparison, best held-out error first.

    Parameters
    ----------
    contenders : tuple of Contender
        All models.
    best : str
        The simplest model whose held-out error is within one standard error of the lowest.
    blocks : int
        Number of blocks.
    """

    contenders: tuple[Contender, ...]
    best: str
    blocks: int

    def __getitem__(self, name: str) -> Contender:
        """Return one contender by its name."""
        return next(c for c in self.contenders if c.name == name)

    def summary(self) -> str:
        """Return the comparison as a text table.

        Returns
        -------
        str
            One line per model.
        """
        width = max(len(c.name) for c in self.contenders)
        lines = [f"{'model':<{width}}  {'held out':>10}  {'training':>10}  {'k':>3}  {'AIC':>10}  {'BIC':>10}"]
        for c in self.contenders:
            numbers = f"{c.held_out:>10.4g}  {c.training:>10.4g}  {c.parameters:>3}  {c.aic:>10.1f}  {c.bic:>10.1f}"
            lines.append(f"{c.name:<{width}}  {c.failed or numbers}{'  <- chosen' if c.name == self.best else ''}")
        return "\n".join(lines)


def effective_samples(errors: ArrayLike) -> float:
    """Effective number of independent samples of a series of errors.

    Parameters
    ----------
    errors : array_like, (N,)
        Errors in the order of time.

    Returns
    -------
    float
        ``N / (1 + 2 sum rho_k)``, the sum ending at the first pair of lags whose sum is not positive [Geyer1992].
    """
    e = np.asarray(errors, dtype=np.float64)
    e = e - e.mean()
    if e.size < 4 or not e.any():
        return float(e.size)
    size = 1 << (2 * e.size - 1).bit_length()
    spectrum = np.abs(np.fft.rfft(e, size)) ** 2
    rho = np.fft.irfft(spectrum, size)[: e.size]
    rho = rho / rho[0]
    pairs = rho[1 : 1 + 2 * ((e.size - 1) // 2)].reshape(-1, 2).sum(axis=1)
    stop = int(np.argmax(pairs <= 0.0)) if (pairs <= 0.0).any() else pairs.size
    return float(np.clip(e.size / (1.0 + 2.0 * pairs[:stop].sum()), 1.0, e.size))


def choose(candidates: Mapping[str, Candidate], count: int, blocks: int = 5) -> Choice:
    """Compare models by held-out error over blocks of time.

    Parameters
    ----------
    candidates : mapping of str to callable
        ``fit(rows)`` with rows (N,) of bool fits those rows and returns the errors of all N rows and the number of
        parameters. NaN marks rows without an error.
    count : int
        Number N of rows, in the order of time.
    blocks : int
        Number of blocks; each is held out once.

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
    found = [_contender(name, fit, edges) for name, fit in candidates.items()]
    usable = [c for c in found if not c.failed]
    if not usable:
        raise IdentificationError("no model could be fitted to every set of blocks: " + "; ".join(c.failed for c in found))
    lowest = min(usable, key=lambda c: c.held_out)
    found = [c if c.failed else _criteria(c, lowest.effective) for c in found]
    usable = [c for c in found if not c.failed]
    near = [c for c in usable if c.held_out <= lowest.held_out + lowest.scatter]
    best = min(near, key=lambda c: (c.parameters, c.held_out))
    return Choice(tuple(sorted(found, key=lambda c: (bool(c.failed), c.held_out))), best.name, blocks)


def _contender(name: str, fit: Candidate, edges: NDArray[np.int_]) -> Contender:
    count, blocks = int(edges[-1]), edges.size - 1
    rows = np.arange(count)
    squares = []
    try:
        for a, b in pairwise(edges):
            errors, _ = fit((rows < a) | (rows >= b))
            squares.append(float(np.nanmean(errors[a:b] ** 2)))
        errors, parameters = fit(np.ones(count, dtype=bool))
    except DynidentError as error:
        nan = float("nan")
        return Contender(name, nan, nan, nan, 0, nan, nan, nan, str(error))
    errors = errors[np.isfinite(errors)]
    mean, held = float(np.mean(errors**2)), float(np.mean(squares))
    spread = float(np.std(squares, ddof=1) / np.sqrt(blocks))
    scatter = float(np.sqrt(held + spread) - np.sqrt(held))
    nan = float("nan")
    return Contender(name, float(np.sqrt(held)), scatter, float(np.sqrt(mean)), parameters, effective_samples(errors), nan, nan)


def _criteria(c: Contender, n: float) -> Contender:
    likelihood, k = 2.0 * n * float(np.log(max(c.training, 1e-150))), c.parameters + 1
    return replace(c, aic=likelihood + 2.0 * k, bic=likelihood + k * float(np.log(n)))


def choose_law(
    effort: ArrayLike,
    laws: Mapping[str, FrictionLaw],
    state: State | ArrayLike,
    fixed: Mapping[str, ArrayLike] | None = None,
    blocks: int = 5,
) -> Choice:
    """Choose the friction law of one axis.

    Parameters
    ----------
    effort : array_like, (N,)
        Torque or force [N m or N], in the order of time.
    laws : mapping of str to FrictionLaw
        Laws to compare.
    state : State or array_like, (N,)
        Velocity, and what else the laws look at.
    fixed : mapping of str to array_like (N,), optional
        Columns of the other linear parameters, as in `fit_axis`.
    blocks : int
        Number of blocks of time.

    Returns
    -------
    Choice
        All laws, and the one to take.
    """
    tau, given = np.asarray(effort, dtype=np.float64), State.of(state)
    columns = {name: np.asarray(values, dtype=np.float64) for name, values in (fixed or {}).items()}

    def fit(law: FrictionLaw, rows: NDArray[np.bool_]) -> tuple[Array, int]:
        found = fit_axis(tau[rows], law, given.take(rows), {n: values[rows] for n, values in columns.items()})
        return tau - found.predict(given, columns), len(found.linear) + len(found.shape)

    return choose({name: partial(fit, law) for name, law in laws.items()}, tau.size, blocks)
