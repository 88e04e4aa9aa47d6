"""Hold-out: fit on the first part of a log, judge on the last, with a gap between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dynident.errors import DynidentError
from dynident.identify.estimators.least_squares import OLS, WLS, fit_of
from dynident.identify.estimators.map import MAP
from dynident.identify.fit import Fit
from dynident.identify.regression.regression import Regression
from dynident.identify.score import Score
from dynident.mechanism.mechanism import Mechanism
from dynident.results import Result
from dynident.signals.log import Log

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class HoldOut(Result):
    """A fit and its score on the part of the log it never saw.

    Parameters
    ----------
    fit : Fit
        Model fitted to the first part.
    score : Score
        Its score on the last part.
    """

    fit: Fit
    score: Score

    def summary(self) -> str:
        """Return fit and score as text."""
        return f"{self.fit.summary()}\n{self.score.summary()}"

    def plot(self) -> Figure:
        """Draw measured and predicted efforts of the part that the fit never saw."""
        return self.score.plot()  # type: ignore[no-any-return]


def split(log: Log, fraction: float = 2.0 / 3.0, gap: float = 0.0) -> tuple[Log, Log]:
    """Cut a log in time.

    Parameters
    ----------
    log : Log
        Log.
    fraction : float
        Share of the samples in the first part, between 0 and 1.
    gap : float
        Time left out between the parts [s].

    Returns
    -------
    first, last : Log
        The parts.
    """
    if not 0.0 < fraction < 1.0:
        raise DynidentError(f"fraction is {fraction}; it must be between 0 and 1")
    cut = int(fraction * len(log))
    resume = cut + round(gap * log.rate)
    if cut < 4 or resume > len(log) - 4:
        raise DynidentError(
            f"log '{log.name}' of {len(log)} samples is too short to split at {fraction:g} with a gap of {gap:g} s"
        )
    return log.rows(0, cut), log.rows(resume, len(log))


def hold_out(
    mechanism: Mechanism,
    log: Log,
    fraction: float = 2.0 / 3.0,
    gap: float = 0.0,
    estimator: MAP | OLS | WLS | None = None,
    **options: Any,
) -> HoldOut:
    """Fit on the first part of a log and score on the last.

    Parameters
    ----------
    mechanism : Mechanism
        Robot.
    log : Log
        Log to split.
    fraction : float
        Share of the samples to fit on.
    gap : float
        Time left out between the parts [s].
    estimator : MAP, OLS or WLS, optional
        Estimator; `MAP()` when omitted.
    **options
        Passed to `dynident.signals.prepare`.

    Returns
    -------
    HoldOut
        Fit and score.
    """
    first, last = split(log, fraction, gap)
    fit = fit_of(MAP() if estimator is None else estimator, Regression.from_logs(mechanism, [first], **options))
    return HoldOut(fit, fit.score(last))
