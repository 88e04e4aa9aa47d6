"""`Identification`: fit, scores and verdict of a robot, as `dynident.identify` returns them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dynident.identify.fit import Fit
from dynident.identify.score import Score
from dynident.mechanism.mechanism import Mechanism
from dynident.report.report import write_report
from dynident.results import Result
from dynident.tables import Tabular
from dynident.validate.verdict import Verdict

File = str | os.PathLike[str]


@dataclass(frozen=True, eq=False)
class Identification(Tabular, Result):
    """All that identifying a robot gives.

    Parameters
    ----------
    fit : Fit
        The identified model.
    scores : tuple of Score
        On the held-out logs, then on the training logs.
    verdict : Verdict
        Whether it can be trusted.
    """

    fit: Fit
    scores: tuple[Score, ...]
    verdict: Verdict

    def __repr__(self) -> str:
        errors = [f"'{score.name}' {100 * score.metrics.relative:.2f} %" for score in self.scores if not score.training]
        held_out = f"held out: {', '.join(errors)}" if errors else "NOT VALIDATED"
        return f"Identification({self.fit.mechanism.name}: {held_out}; fit, scores, verdict; report(path) writes the page)"

    @property
    def robot(self) -> Mechanism:
        """The robot with its identified parameters."""
        return self.fit.identified

    def summary(self) -> str:
        """Return fit, held-out scores and verdict as text.

        Returns
        -------
        str
            Text.
        """
        held_out = (score.summary() for score in self.scores if not score.training)
        return "\n\n".join([self.fit.summary(), *held_out, self.verdict.summary()])

    def plot(self) -> Any:
        """Draw measured and predicted efforts of the first log, a held-out one if there is any.

        Returns
        -------
        matplotlib.figure.Figure
            The figure.
        """
        return self.scores[0].plot()

    def report(self, path: File = "report.html") -> Path:
        """Write the HTML report.

        Parameters
        ----------
        path : path-like
            File to write.

        Returns
        -------
        pathlib.Path
            The file.
        """
        return write_report(path, self.fit, self.scores, self.verdict)

    def _columns(self) -> Any:
        return self.fit._columns()

    def _head(self) -> str:
        return repr(self)
