"""`write_comparison`: fits of the same robot side by side, as one self-contained HTML page."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from dynident import __version__
from dynident.errors import DynidentError
from dynident.figures import pretty_unit
from dynident.files import write_atomic
from dynident.identify.fit import Fit
from dynident.identify.score import Score
from dynident.mechanism.describe import effort_units
from dynident.pages import Html, badge, details, escape, number, page, percent, section, several, table, tag
from dynident.report import embed
from dynident.report.sections import checksums, curves
from dynident.signals.log import Log

FAR = 3.0  # combined standard deviations above which two values differ


def write_comparison(path: str | os.PathLike[str], fits: Mapping[str, Fit], logs: Sequence[Log] = ()) -> Path:
    """Write one HTML page that compares two fits of the same robot: errors, parameters, bodies.

    Parameters
    ----------
    path : path-like
        File to write, as in "comparison.html".
    fits : mapping of str to Fit
        The two fits by their names on the page: before, then after.
    logs : sequence of Log
        Logs on which both are scored and drawn; logs used by one of the fits are marked.

    Examples
    --------
    >>> write_comparison("comparison.html", {"spring": old, "autumn": new}, [log])  # doctest: +SKIP
    """
    if len(fits) != 2:
        raise DynidentError(f"fits has {len(fits)} entries; give two, as in {{'before': old, 'after': new}}")
    (one, a), (two, b) = fits.items()
    if a.standard.names != b.standard.names:
        lost = sorted(set(a.standard.names) ^ set(b.standard.names))[:4]
        raise DynidentError(
            f"fits '{one}' and '{two}' do not have the same parameters ({', '.join(lost)} ...); compare fits of one robot"
        )
    pairs = [(a.score(log, allow_training=True), b.score(log, allow_training=True)) for log in logs]
    units = effort_units(a.mechanism)
    most = embed.samples_per_signal([second for _, second in pairs])
    drawn = [
        embed.log_data(second, [units.get(name, "N m or N") for name in second.joints], most, _on(first, second), (two, one))
        for first, second in pairs
    ]
    parts = [
        ("fits", "Fits", _fits(fits)),
        *([("logs", "Logs", _logs(pairs, (one, two)))] if pairs else []),
        ("parameters", "Parameters", _parameters(fits)),
        ("bodies", "Bodies", _bodies(fits)),
    ]
    title = f"{a.mechanism.name} - {one} and {two}"
    differing = int(np.count_nonzero(np.abs(_distance(a, b)) > FAR))
    header = tag("h1", a.mechanism.name) + tag("p", f"{one} and {two} compared", class_="lead") + _banner(differing, pairs, two)
    footer = escape(f"Written by dynident {__version__}. This page is self-contained: it loads nothing.")
    return write_atomic(path, page(title, Html(header), parts, footer, embed.script(), {"logs": drawn}))


def _on(first: Score, second: Score) -> np.ndarray | None:
    """Return the first fit's prediction at the second one's samples; each in the band of its own fit."""
    if first.joints != second.joints:
        return None
    columns = [np.interp(second.t, first.t, first.predicted[:, j]) for j in range(len(first.joints))]
    return np.column_stack(columns)


def _distance(a: Fit, b: Fit) -> np.ndarray:
    """Return (b - a) over their combined deviation, per standard parameter; NaN if one of them is not determined."""
    if a.standard_std is None or b.standard_std is None:
        return np.full(len(a.standard), np.nan)
    spread = np.hypot(a.standard_std, b.standard_std)
    with np.errstate(divide="ignore", invalid="ignore"):
        distance = (b.standard.values - a.standard.values) / spread
    return np.asarray(np.where(a.shown & b.shown & (spread > 0.0), distance, np.nan))


def _banner(differing: int, pairs: Sequence[tuple[Score, Score]], two: str) -> Html:
    who = f"{several(differing, 'parameter')} of both fits {'differs' if differing == 1 else 'differ'}"
    text = f"{who if differing else 'No parameter differs between the fits'} by more than {FAR:g} combined standard deviations."
    fair = [(first, second) for first, second in pairs if not (first.training or second.training)]
    if fair:
        better = sum(second.metrics.relative < first.metrics.relative for first, second in fair)
        text += f" '{two}' predicts {better} of {several(len(fair), 'log')} that neither was fitted to better."
    return tag("div", tag("p", text), class_=f"banner {'mid' if differing else 'ok'}", role="status")


def _fits(fits: Mapping[str, Fit]) -> Html:
    """Return one row per property with the two fits side by side, for names of any length."""
    columns = [
        {
            "Training error": percent(fit.training_relative),
            "Error of the description": percent(fit.posterior.description_relative),
            "Condition": number(fit.condition, 3),
            "Base parameters": f"{int(np.count_nonzero(fit.solved))} of {fit.base.rank}",
            "Equations": str(fit.rows),
            "Estimator": fit.estimator,
            "Logs": ", ".join(str(source.get("name", "")) for source in fit.sources),
            "SHA-256": "; ".join(checksums(source.get("sha256", ""))[:12] for source in fit.sources),
        }
        for fit in fits.values()
    ]
    rows = [(what, *(column[what] for column in columns)) for what in columns[0]]
    return section("fits", "The fits", table(("", *fits), rows))


def _logs(pairs: Sequence[tuple[Score, Score]], names: tuple[str, str]) -> Html:
    parts: list[object] = []
    for index, (first, second) in enumerate(pairs):
        used = [name for name, score in zip(names, (first, second), strict=True) if score.training]
        mark = f" (training data of {' and '.join(used)})" if used else " (held out)"
        parts.append(tag("h3", second.name + mark))
        errors_of = [f"{percent(s.metrics.relative)} ({name})" for name, s in zip(names, (first, second), strict=True)]
        parts.append(tag("p", f"Relative error {' and '.join(errors_of)}."))
        errors = dict(zip(first.joints, first.metrics.relative_per_joint, strict=True))
        bars = [
            (joint, float(errors.get(joint, np.nan)), float(after))
            for joint, after in zip(second.joints, second.metrics.relative_per_joint, strict=True)
        ]
        parts.append(embed.paired_bars(bars, names, "Relative error of every joint."))
        parts += curves(index, second, (names[1], names[0] if _on(first, second) is not None else ""))
    return section("logs", "Both on the same logs", *parts)


def _parameters(fits: Mapping[str, Fit]) -> Html:
    (one, a), (two, b) = fits.items()
    z = _distance(a, b)

    def cell(fit: Fit, k: int) -> str:
        std = np.nan if fit.standard_std is None else fit.standard_std[k]
        return f"{number(float(fit.standard.values[k]), 4)} ± {number(float(std), 2)}"

    rows = [
        (
            name,
            cell(a, k),
            cell(b, k),
            number(float(b.standard.values[k] - a.standard.values[k]), 3),
            number(float(z[k]), 3),
            number(float(a.mechanism.parameters.values[k]), 4),
            pretty_unit(a.standard.units[k]),
            badge("by both", "ok") if a.shown[k] and b.shown[k] else badge("not both", "mid"),
        )
        for k, name in enumerate(a.standard.names)
    ]
    heads = ("Parameter", one, two, "Difference", "Deviations", "Description", "Unit", "Determined")
    far = [row for k, row in enumerate(rows) if abs(z[k]) > FAR]
    parts: list[object] = [tag("p", "Deviation: difference divided by the combined standard deviation.", class_="note")]
    if far:
        parts += [tag("h3", "Changed parameters"), table(heads, far, numeric=(1, 2, 3, 4, 5), short=(6,))]
    whole = table(heads, rows, numeric=(1, 2, 3, 4, 5), short=(6,))
    parts.append(details(f"Table of all {len(rows)} parameters", whole, opened=not far))
    return section("parameters", "Parameters", *parts)


def _bodies(fits: Mapping[str, Fit]) -> Html:
    (one, a), (two, b) = fits.items()
    rows = [
        (
            x.name,
            number(x.mass),
            number(y.mass),
            badge("possible", "ok") if x.ok and y.ok else badge("impossible", "bad"),
            y.sentence if x.ok else x.sentence,
        )
        for x, y in zip(a.consistency(), b.consistency(), strict=True)
    ]
    heads = ("Body", f"{one} [kg]", f"{two} [kg]", "Result", "Finding")
    return section("bodies", "Bodies", table(heads, rows, numeric=(1, 2), wide=(4,), short=(0,)))
