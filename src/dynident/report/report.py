"""`write_report`: a fit, its scores and its verdict as one self-contained HTML page."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from dynident import __version__
from dynident.errors import DynidentError
from dynident.figures import new_figure
from dynident.files import write_atomic
from dynident.identify import Fit, Score
from dynident.mechanism import Parameters
from dynident.pages import escape, page
from dynident.report import model, origin, sections
from dynident.validate import Verdict, judge


def write_report(
    path: str | os.PathLike[str],
    fit: Fit,
    scores: Sequence[Score] = (),
    verdict: Verdict | None = None,
    training_score: Score | None = None,
    truth: Mapping[str, float] | Parameters | None = None,
) -> Path:
    """Write one HTML page with everything one needs to trust, or not to trust, an identified model.

    The page loads nothing and runs nothing: style and figures are inside.

    Parameters
    ----------
    path : path-like
        File to write, as in "report.html".
    fit : Fit
        Identified model.
    scores : sequence of Score
        Scores on held-out logs; without any, the page says NOT VALIDATED.
    verdict : Verdict, optional
        Checks; ``judge(fit, scores)`` when omitted.
    training_score : Score, optional
        Score on the training data, shown as such.
    truth : mapping or Parameters, optional
        True standard parameters of a simulated robot, to compare with.

    Returns
    -------
    pathlib.Path
        The file.

    Examples
    --------
    >>> write_report("report.html", fit, [fit.score(other_log)])  # doctest: +SKIP
    """
    if training_score is not None and not training_score.training:
        raise DynidentError(
            f"training_score is of log '{training_score.name}', which was not used for the fit; give it among scores"
        )
    new_figure(1.0, 1.0)  # says at once, not after minutes of work, when matplotlib is missing
    held_out = [score for score in scores if not score.training]
    trained = [score for score in (*scores, training_score) if score is not None and score.training]
    verdict = verdict or judge(fit, scores)
    shown = [*held_out, *trained]
    parts = [
        ("verdict", "Verdict", sections.checks(verdict)),
        ("predictions", "Predictions", sections.predictions(fit, shown)),
        ("residuals", "Residuals", sections.residuals(fit, shown)),
        ("parameters", "Parameters", model.parameters(fit, truth)),
        *([("truth", "Truth", model.against_truth(fit, truth))] if truth is not None else []),
        ("observability", "Observability", model.observability(fit)),
        *([("laws", "Laws and forces", model.laws_and_forces(fit))] if fit.mechanism.own_columns else []),
        ("conditioning", "Conditioning", model.conditioning(fit)),
        ("bodies", "Consistency", model.bodies(fit)),
        ("quality", "Data quality", origin.quality(shown)),
        ("preparation", "Preparation", origin.preparation(fit, shown)),
        ("provenance", "Provenance", origin.provenance(fit, shown)),
    ]
    title = f"{fit.mechanism.name} - dynamic identification report"
    footer = escape(f"Written by dynident {__version__}. This page is self-contained: it loads and runs nothing.")
    return write_atomic(path, page(title, sections.headline(fit, verdict), parts, footer))
