"""The sections of the report about trust and data: verdict, predictions, residuals; quality, preparation, provenance."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping, Sequence
from importlib import metadata
from itertools import count
from typing import Any

import numpy as np

from dynident import __version__
from dynident.identify.fit import Fit
from dynident.identify.score import Score
from dynident.mechanism.describe import effort_units
from dynident.pages import Html, badge, bullets, date, details, join, number, percent, section, several, table, tag
from dynident.report.embed import paired_bars, share
from dynident.signals.dependence import effective_samples
from dynident.validate.verdict import Verdict

SEVERITY_KIND = {"info": "", "warning": "mid", "error": "bad"}
PACKAGES = ("numpy", "scipy", "llvmlite", "matplotlib")


def quality(scores: Sequence[Score]) -> Html:
    """Return the findings of the inspection of the scored logs."""
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
    nothing = "No notes: the regression data came from a motion, not from a log."
    parts: list[object] = [
        tag("h3", "Training data"),
        bullets([note.sentence for note in fit.notes]) if fit.notes else tag("p", nothing),
    ]
    for score in scores:
        if score.notes and not score.training:
            parts += [tag("h3", f"{score.name} (held out)"), bullets(score.notes)]
    return section("preparation", "How the data were prepared", *parts)


def provenance(fit: Fit, scores: Sequence[Score]) -> Html:
    """Return the sources of the results: logs, description, versions."""
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
    logs = table(heads, rows, numeric=(3, 4, 5, 6), short=(1, 2, 7)) if rows else tag("p", "These data did not come from logs.")
    facts = [
        ("Robot description", fit.mechanism.source or "made in memory"),
        ("Joint terms", ", ".join(fit.mechanism.terms) or "none"),
        ("Estimator", fit.estimator),
        ("Options of the preparation", _options(fit.options)),
        ("Standard parameters", fit.standard.provenance or "no provenance"),
        ("dynident", __version__),
        *((package, version(package)) for package in PACKAGES),
        ("Python", platform.python_version()),
        ("Date", date()),
    ]
    return section("provenance", "Provenance", logs, table(("Item", "Value"), facts))


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


MOST_NAMED = 4  # log names in the headline
FEW = 0.1  # errors below it are shown with two decimals
LAYERS = (("raw", "muted"), ("measured", "measured"), ("predicted", "blue"), ("other", "orange"), ("band", "band"))
HINT = "Drag to zoom in on the raw samples, double-click to see all, shift-drag to move; the time axes of a log move together."


def headline(fit: Fit, verdict: Verdict, command: str = "") -> Html:
    """Return the title, the sources, the verdict in one sentence and the key numbers."""
    errors = [float(e["relative"]) for e in verdict.scores if not e["training"] and e["relative"] is not None]
    worst = max(errors, default=float("nan"))
    failed = [check.name.replace("_", " ") for check in verdict.checks if not check.ok]
    logs = several(len(errors), "held-out log")
    predicts = f"On {logs}, the model predicts the efforts with a relative error of {percent(worst)}"
    predicts += " (the worst log)" if len(errors) > 1 else ""
    missed = (
        f"{len(failed)} of {several(len(verdict.checks), 'check')} failed: {', '.join(failed)}"
        if failed
        else "all other checks passed"
    )
    if not verdict.validated and errors:
        kind, title = "bad", "REPEATABILITY ONLY"
        sentence = (
            f"{predicts}, but {'they repeat' if len(errors) > 1 else 'it repeats'} the motion of the training, so model "
            f"errors repeat. Score it on another motion before using it; {missed}."
        )
    elif not verdict.validated:
        kind, title = "bad", "NOT VALIDATED"
        sentence = (
            f"No held-out log was scored: the training error of {percent(fit.training_relative)} does not validate the "
            f"model. Score it on another log before using it; {missed}."
        )
    elif verdict.ok:
        kind, title = "ok", "Validated"
        sentence = f"{predicts}; all {len(verdict.checks)} checks passed."
    else:
        kind, title = "mid", "Checks failed"
        sentence = f"{predicts}; {missed}."
    described = [entry["description_relative"] for entry in verdict.scores if entry["relative"] == worst]
    before = float("nan") if not described or described[0] is None else float(described[0])
    estimated = int(np.count_nonzero(fit.solved))
    good = sum(row.verdict == "good" for row in fit.observability())
    cards = [
        _before_after("Held-out error", before, worst, logs if errors else "not validated"),
        _before_after("Training error", fit.posterior.description_relative, fit.training_relative, "not a validation"),
        ("Base parameters", f"{estimated} of {fit.base.rank}", f"estimated; {good} known to 10 % or better"),
        ("Condition number", number(fit.condition, 3), "of the scaled regression"),
        ("Equations", f"{fit.rows:,}".replace(",", "\N{THIN SPACE}"), f"of {several(len(fit.groups), 'joint')}"),
    ]
    if fit.sources:
        seconds = sum(float(source.get("end", 0.0)) - float(source.get("start", 0.0)) for source in fit.sources)
        cards.append(("Training data", f"{number(seconds, 3)} s", several(len(fit.sources), "log")))
    boxes = (tag("div", tag("dt", name), tag("dd", value, tag("small", remark))) for name, value, remark in cards)
    return join(
        [
            tag("h1", fit.mechanism.name),
            tag("p", *_origin(fit, verdict, command), class_="lead"),
            tag("div", tag("strong", title), tag("p", sentence), class_=f"banner {kind}", role="status"),
            tag("dl", *boxes, class_="cards"),
            tag(
                "noscript", tag("p", "Curves and the moving robot need JavaScript; tables and findings do not.", class_="note")
            ),
        ]
    )


def _before_after(name: str, before: float, after: float, remark: str) -> tuple[str, str, str]:
    """Return the card of an error: for the description and for the identified model."""
    if not (np.isfinite(before) and np.isfinite(after)):
        return name, percent(after), remark
    digits = 2 if max(before, after) < FEW else 1
    return (
        name,
        f"{percent(before, digits)} \N{RIGHTWARDS ARROW} {percent(after)}",
        f"description \N{RIGHTWARDS ARROW} identified; {remark}",
    )


def _origin(fit: Fit, verdict: Verdict, command: str) -> list[object]:
    """Return logs, date, version and command."""
    training = list(dict.fromkeys(str(source["name"]) for source in fit.sources if "name" in source))
    uses = (("fitted", training), ("held out", [str(entry["log"]) for entry in verdict.scores if not entry["training"]]))
    words = [
        f"{use}: {', '.join(names[:MOST_NAMED])}{f' and {len(names) - MOST_NAMED} more' * (len(names) > MOST_NAMED)}"
        for use, names in uses
        if names
    ]
    facts = " \N{MIDDLE DOT} ".join(
        [several(fit.mechanism.dof, "axis").replace("axiss", "axes"), *words, date(), f"dynident {__version__}"]
    )
    return [facts, *([Html("<br>"), tag("code", command)] if command else [])]


def checks(verdict: Verdict) -> Html:
    """Return the table of checks."""
    rows = [
        (
            check.name.replace("_", " "),
            badge("passed", "ok") if check.ok else badge("failed", "bad"),
            *check.shown,
            join([check.sentence, tag("span", check.next_step, class_="next") if check.next_step else ""], " "),
        )
        for check in verdict.checks
    ]
    return section(
        "verdict", "Verdict", table(("Check", "Result", "Value", "Limit", "Finding"), rows, numeric=(2, 3), wide=(4,))
    )


def _title(score: Score) -> str:
    return f"{score.name}: " + ("TRAINING DATA, not a validation" if score.training else "held out")


def predictions(fit: Fit, scores: Sequence[Score]) -> Html:
    """Return measured and predicted efforts of every scored log, and the metrics per joint."""
    units = effort_units(fit.mechanism)
    parts: list[object] = []
    if all(score.training for score in scores):
        text = "NOT VALIDATED: no held-out log was scored, so the error on new motions is unknown."
        parts.append(tag("div", tag("p", text), class_="banner bad"))
    motor_log = count(len(scores))  # the motors of robots with loops follow the logs in the page's data
    for index, score in enumerate(scores):
        sentence = (
            f"Relative error {percent(score.metrics.relative)} over {score.metrics.samples} samples of "
            f"{several(len(score.joints), 'joint')} in the fitted band ({percent(score.all_samples.relative)} over all "
            f"samples, not low-passed). {percent(score.coverage, 1)} of the measurements are within the two-sigma band (95 "
            "% expected)."
        )
        if np.isfinite(score.description):
            sentence += (
                f" Before: the description has {percent(score.description)}; least squares alone, without prior "
                f"and physical consistency, {percent(score.free)}."
            )
        if score.leverage is not None and np.nanmax(score.leverage) > 1.0:
            worst = int(np.nanargmax(score.leverage))
            sentence += (
                f" Parameter uncertainty contributes up to {number(float(score.leverage[worst]), 2)} times as much as on the "
                f"training data ({score.joints[worst]})."
            )
        pictures: Sequence[object] = curves(
            index, score, ("predicted", "description") if score.described is not None else ("predicted", "")
        )
        motors: Sequence[object] = _motors(next(motor_log), score, units) if score.motors is not None else ()
        if score.training and not all(other.training for other in scores):
            pictures, motors = [details("Curves of the training data", *pictures, *motors)], ()
        parts += [tag("h3", _title(score)), tag("p", sentence), before_after(score), _metrics(score, units), *pictures, *motors]
    return section("predictions", "Measured and predicted efforts", *parts)


def _motors(log: int, score: Score, units: Mapping[str, str]) -> list[Html]:
    """Return measured and reconstructed torques of the motors of a robot with loops, and their errors."""
    assert score.motors is not None, "called for robots with loops"
    text = "The equations above are projections of the motor torques. Per motor: minimum-norm torques with the same effect"
    if score.preload:
        text += f"; the preload, {percent(score.preload)} of the measured torque, causes no motion and is omitted"
    drawn = curves(log, score.motors, ("predicted", ""))
    return [tag("h4", "Motors"), tag("p", f"{text}."), _metrics(score.motors, units), *drawn]


def before_after(score: Score) -> Html:
    """Return the error of every joint before and after identification, as bars."""
    if score.described is None:
        return Html()
    pairs = [
        (name, share(score.measured[:, j], score.described[:, j]), share(score.measured[:, j], score.predicted[:, j]))
        for j, name in enumerate(score.joints)
    ]
    return paired_bars(pairs, ("the untouched description", "the identified model"), "Relative error of every joint.")


def curves(log: int, score: Score, labels: tuple[str, str]) -> list[Html]:
    """Return placeholders for the curves of a log, with switches for joints and curves."""
    words = {"measured": "measured", "predicted": labels[0], "other": labels[1], "band": "two standard deviations"}
    words |= {"raw": "raw samples", "measured": "measured, low-passed"} if score.raw is not None else {"raw": ""}
    layers = [
        tag("button", _key(colour), words[name], type="button", class_="chip", aria_pressed="true", data_layer=name)
        for name, colour in LAYERS
        if words[name]
    ]
    joints = [
        tag(
            "button",
            name,
            type="button",
            class_="chip",
            aria_pressed="true",
            data_joint=str(j),
            aria_controls=f"log{log}joint{j}",
        )
        for j, name in enumerate(score.joints)
    ]
    reset = tag("button", "all of the time", type="button", class_="chip", data_reset=str(log))
    blocks = [
        tag(
            "div",
            plot("effort", f"Measured and predicted effort of {name} over time, log {score.name}", log, j),
            plot("residual", f"Residual of {name} over time, log {score.name}", log, j),
            class_="joint",
            id=f"log{log}joint{j}",
        )
        for j, name in enumerate(score.joints)
    ]
    return [
        tag("div", *layers, reset, class_="chips"),
        tag("div", *joints, class_="chips"),
        tag("p", HINT, class_="note hint"),
        *blocks,
    ]


def plot(kind: str, alternative: str, log: int | None = None, joint: int | None = None) -> Html:
    """Return the placeholder of a picture that the page's script draws."""
    where = {"data_log": "" if log is None else str(log), "data_joint": "" if joint is None else str(joint)}
    return tag("div", class_="plot", data_plot=kind, role="img", aria_label=alternative, **where)


def _key(colour: str) -> Html:
    return Html(f'<span class="key" style="--key:var(--{colour})"></span>')


def robot(fit: Fit, scores: Sequence[Score], drawn: Sequence[int]) -> Html:
    """Return placeholders for the robot's animation along each log."""
    text = (
        "Blue dots: joints, larger with the residual, orange beyond two standard deviations. Green circles: centres of "
        "mass. Blue line: path of the last link."
    )
    hint = "Drag to turn; ctrl and wheel to zoom. The time is that of the curves below."
    parts: list[object] = [tag("p", text, " ", tag("span", hint, class_="hint"), class_="note")]
    for index in drawn:
        picture = plot("robot", f"{fit.mechanism.name} moving along log {scores[index].name}", index)
        whole = [tag("h3", _title(scores[index])), picture]
        parts += whole if index == drawn[0] else [details(_title(scores[index]), picture)]
    return section("robot", "The robot along the log", *parts)


def _metrics(score: Score, units: Mapping[str, str]) -> Html:
    m = score.metrics
    e = np.abs(score.measured - score.predicted)
    at = np.argmax(e, axis=0)
    inside = np.mean(e <= 2.0 * score.std, axis=0)
    rows = [
        (
            joint,
            units.get(joint, ""),
            number(float(m.rmse[i])),
            percent(float(m.relative_per_joint[i])),
            percent(float(m.nrms[i])),
            f"{m.r2[i]:.4f}" if np.isfinite(m.r2[i]) else "\N{EN DASH}",
            percent(float(inside[i]), 1),
            number(float(e[at[i], i])),
            f"{score.t[at[i]]:.3f}",
        )
        for i, joint in enumerate(m.joints)
    ]
    heads = ("Joint", "Unit", "RMSE", "Relative", "NRMS", "R²", "Within 2σ", "Worst error", "at [s]")
    foot = ("all joints", "", "", percent(m.relative), "", "", percent(score.coverage, 1), "", "")
    caption = "Relative: ||e||/||τ||. NRMS: RMSE over the range of the effort. Worst error: the largest |e| of the joint."
    return table(heads, rows, caption, numeric=range(2, 9), foot=foot)


def residuals(fit: Fit, scores: Sequence[Score]) -> Html:
    """Return statistics and plots of the residuals."""
    units = effort_units(fit.mechanism)
    parts: list[object] = []
    held_out = any(not score.training for score in scores)
    for index, score in enumerate(scores):
        e = score.measured - score.predicted
        mean, std = e.mean(axis=0), e.std(axis=0)
        mean[np.abs(mean) < 1e-9 * std] = 0.0  # round-off
        independent = [effective_samples(e[:, j]) / len(e) for j in range(e.shape[1])]
        rows = [
            (
                name,
                units.get(name, ""),
                number(mean[j], 3),
                number(std[j], 3),
                percent(independent[j], 0),
                f"{max(1.0, 1.0 / np.sqrt(independent[j])):.1f}",
            )
            for j, name in enumerate(score.joints)
        ]
        heads = ("Joint", "Unit", "Mean", "Standard deviation", "Independent samples", "Factor of underestimated std")
        parts += [tag("h3", _title(score)), table(heads, rows, numeric=range(2, 6))]
        if held_out and score.training:
            continue  # the table is enough
        for j, name in enumerate(score.joints):
            three = (
                plot("distribution", f"Distribution of the residual of {name}", index, j),
                plot("correlation", f"Autocorrelation of the residual of {name}", index, j),
                plot("scatter", f"Residual against prediction of {name}", index, j),
            )
            parts.append(tag("div", *three, class_="three"))
    text = (
        "White residuals are noise, slow residuals are model error. Last column: factor by which correlated residuals "
        "understate standard deviations. Plots: distribution (line: normal), autocorrelation (band: white noise), residual "
        "against prediction."
    )
    parts.insert(0, tag("p", text if scores else "No log was scored, so there are no residuals.", class_="note"))
    return section("residuals", "Residuals", *parts)
