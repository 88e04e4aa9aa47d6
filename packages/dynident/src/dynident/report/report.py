"""`write_report`: a fit, its scores and its verdict as one self-contained HTML page."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from dynident import __version__
from dynident.errors import DynidentError
from dynident.files import write_atomic
from dynident.identify.fit import Fit
from dynident.identify.score import Score
from dynident.mechanism.describe import effort_units
from dynident.mechanism.parameters import Parameters
from dynident.pages import escape, page
from dynident.report import embed, model, origin, scene, sections, statistics
from dynident.validate.verdict import Verdict, judge


def write_report(
    path: str | os.PathLike[str],
    fit: Fit,
    scores: Sequence[Score] = (),
    verdict: Verdict | None = None,
    training_score: Score | None = None,
    truth: Mapping[str, float] | Parameters | None = None,
) -> Path:
    """Write one HTML page with everything one needs to trust, or not to trust, an identified model.

    The page is one file that loads nothing: style, data and a small script are inside, and its content-security policy lets
    no other script run. Curves can be zoomed and switched off, the robot moves along the log, tables sort. Figures for papers
    are drawn by ``fit.plot()`` and ``score.plot()``.

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
    held_out = [score for score in scores if not score.training]
    trained = [score for score in (*scores, training_score) if score is not None and score.training]
    verdict = verdict or judge(fit, scores)
    shown = [*held_out, *trained]
    drawing = scene.scene(fit)
    units = effort_units(fit.mechanism)
    embedded = [*shown, *(score.motors for score in shown if score.motors is not None)]
    most = embed.samples_per_signal(embedded)
    logs = [embed.log_data(score, [units.get(name, "N m or N") for name in score.joints], most) for score in embedded]
    drawn = []
    for i, score in enumerate(shown):
        logs[i]["motion"] = scene.motion(fit, score) if drawing is not None else None
        drawn += [i] if logs[i]["motion"] is not None else []
    weak = statistics.weak_directions(fit)
    data = {
        "logs": logs,
        "scene": drawing,
        "parameters": model.parameter_data(fit, truth),
        "truth": None if truth is None else model.truth_data(fit, truth),
        "singular": None if weak is None else embed.clean(weak[0]),
        "covariance": model.covariance_data(fit),
    }
    parts = [
        ("verdict", "Verdict", sections.checks(verdict)),
        *([("robot", "Robot", sections.robot(fit, shown, drawn))] if drawn else []),
        ("predictions", "Predictions", sections.predictions(fit, shown)),
        ("residuals", "Residuals", sections.residuals(fit, shown)),
        ("parameters", "Parameters", model.parameters(fit)),
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
    footer = escape(f"Written by dynident {__version__}. This page is self-contained: it loads nothing.")
    return write_atomic(path, page(title, sections.headline(fit, verdict), parts, footer, embed.script(), data))
