"""The sections of the report about the data: quality, preparation, provenance."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping, Sequence
from importlib import metadata
from typing import Any

from dynident import __version__
from dynident.identify.fit import Fit
from dynident.identify.score import Score
from dynident.pages import Html, badge, bullets, date, number, section, table, tag

SEVERITY_KIND = {"info": "", "warning": "mid", "error": "bad"}
PACKAGES = ("numpy", "scipy", "llvmlite", "matplotlib")


def quality(scores: Sequence[Score]) -> Html:
    """Return what was found wrong with the scored logs."""
    parts: list[object] = []
    for score in scores:
        title = f"{score.name} ({'training' if score.training else 'held out'})"
        parts.append(tag("h3", title))
        if not score.quality.findings:
            parts.append(tag("p", "Nothing suspicious was found."))
            continue
        rows = [
            (f.channel, badge(f.severity, SEVERITY_KIND.get(f.severity, "")), f.kind.replace("_", " "), f.sentence)
            for f in score.quality.findings
        ]
        parts.append(table(("Channel", "Severity", "Kind", "Finding"), rows, wide=(3,)))
    if not any(score.training for score in scores):
        parts.append(
            tag(
                "p",
                "Findings on the training logs are not part of a fit; a training score in the report adds them.",
                class_="note",
            )
        )
    return section("quality", "Data quality", *parts)


def preparation(fit: Fit, scores: Sequence[Score]) -> Html:
    """Return every decision of the preparation, in words."""
    nothing = "No notes: the evidence came from a motion, not from a log."
    parts: list[object] = [tag("h3", "Training data"), bullets(fit.notes) if fit.notes else tag("p", nothing)]
    for score in scores:
        if score.notes and not score.training:
            parts += [tag("h3", f"{score.name} (held out)"), bullets(score.notes)]
    return section("preparation", "How the data were prepared", *parts)


def provenance(fit: Fit, scores: Sequence[Score]) -> Html:
    """Return where everything comes from."""
    entries = [("training", source) for source in fit.sources]
    entries += [("held out", score.source) for score in scores if not score.training]
    rows = [
        (
            str(source.get("name", "")),
            use,
            f"{number(source.get('start'), 4)} to {number(source.get('end'), 4)}",
            str(source.get("samples", "")),
            number(source.get("rate"), 4),
            number(source.get("cutoff"), 3),
            number(source.get("bandwidth"), 3),
            str(source.get("effort_kind", "")),
            tag("span", checksums(source.get("sha256", "")), class_="mono"),
        )
        for use, source in entries
    ]
    heads = ("Log", "Use", "Time [s]", "Samples", "Rate [Hz]", "Cut-off [Hz]", "Band [Hz]", "Effort", "SHA-256")
    logs = (
        table(heads, rows, numeric=(3, 4, 5, 6), short=(1, 2, 7)) if rows else tag("p", "The evidence did not come from logs.")
    )
    facts = [
        ("Robot description", fit.mechanism.source or "made in memory"),
        ("Joint terms", ", ".join(fit.mechanism.terms) or "none"),
        ("Estimator", fit.estimator),
        ("Options of the preparation", _options(fit.options)),
        ("Standard parameters", fit.standard.provenance or "no provenance"),
        ("dynident", __version__),
        *((package, version(package)) for package in PACKAGES),
        ("Python", platform.python_version()),
        *((("Date", date()),) if date() else ()),
    ]
    return section("provenance", "Provenance", logs, table(("What", "Which"), facts))


def checksums(sha256: object) -> str:
    """Return a checksum record as readable text."""
    text = str(sha256)
    try:
        known = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if isinstance(known, list):
        return ", ".join(map(str, known))
    if isinstance(known, dict):
        return ", ".join(f"{key}: {value}" for key, value in known.items())
    return text


def version(package: str) -> str:
    """Return the installed version of a package, without importing it."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def _options(options: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} = {value!r}" for key, value in options.items()) or "defaults"
