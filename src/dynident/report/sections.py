"""The sections of the report about the model: verdict, predictions, parameters, observability, conditioning, bodies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from dynident.identify import Fit, Score
from dynident.identify.plots import effort_units, plot_parameters, plot_score, pretty_unit, true_base_values
from dynident.mechanism import Parameters
from dynident.report.figures import (
    data_address,
    independent_share,
    plot_residuals,
    plot_singular_values,
    plot_truth,
    weak_directions,
)
from dynident.report.html import Html, badge, details, figure, join, number, percent, section, table, tag
from dynident.validate import Verdict

Array = NDArray[np.float64]

JOINTS_PER_FIGURE = 4  # so that a figure fits on a printed page
ROWS_PER_FIGURE = 40
CLOSE_UP = 250  # samples around the worst one, where the band becomes visible
VERDICT_KIND = {"good": "ok", "poor": "mid", "insignificant": "bad", "not excited": "bad", "dropped": ""}
MEANING = {
    "good": "standard deviation up to 10 % of the value",
    "poor": "up to 50 %",
    "insignificant": "not clearly different from zero",
    "not excited": "the data do not show it",
    "dropped": "left out as not essential",
}


def several(count: int, noun: str) -> str:
    """Return a number with its noun, as in "1 log" or "3 logs".

    Parameters
    ----------
    count : int
        How many.
    noun : str
        Noun with a regular plural.

    Returns
    -------
    str
        Text.
    """
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def held_out_errors(verdict: Verdict) -> list[float]:
    """Return the relative error of every held-out log of the verdict.

    Parameters
    ----------
    verdict : Verdict
        The verdict.

    Returns
    -------
    list of float
        ||e|| / ||tau|| per log.
    """
    values = [entry["relative"] for entry in verdict.scores if not entry["training"]]
    return [float(v) for v in values if v is not None]


def headline(fit: Fit, verdict: Verdict) -> Html:
    """Return the title, the verdict in one sentence and the key numbers.

    Parameters
    ----------
    fit : Fit
        Identified model.
    verdict : Verdict
        Its checks.

    Returns
    -------
    Html
        Top of the page.
    """
    errors = held_out_errors(verdict)
    worst = max(errors, default=float("nan"))
    failed = [check.name.replace("_", " ") for check in verdict.checks if not check.ok]
    logs = several(len(errors), "held-out log")
    predicts = f"On {logs} the model predicts the efforts with a relative error of {percent(worst)}"
    predicts += " (the worst log)" if len(errors) > 1 else ""
    missed = f"{several(len(failed), 'check')} failed: {', '.join(failed)}" if failed else "all other checks passed"
    if not verdict.validated:
        kind, title = "bad", "NOT VALIDATED"
        sentence = (
            f"No held-out log was scored: the training error of {percent(fit.training_relative)} only shows that the model "
            f"repeats the data it was fitted to. Score it on another log before using it; {missed}."
        )
    elif verdict.ok:
        kind, title = "ok", "Validated"
        sentence = f"{predicts}; all {len(verdict.checks)} checks passed."
    else:
        kind, title = "mid", "Checks failed"
        sentence = f"{predicts}; {missed} (of {len(verdict.checks)})."
    estimated = int(np.count_nonzero(fit.solved))
    good = sum(row.verdict == "good" for row in fit.observability())
    cards = [
        ("Held-out relative error", percent(worst), logs if errors else "not validated"),
        ("Training relative error", percent(fit.training_relative), "not a validation"),
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
            tag(
                "p",
                f"Dynamic identification report, {several(fit.mechanism.dof, 'axis').replace('axiss', 'axes')}",
                class_="lead",
            ),
            tag("div", tag("strong", title), tag("p", sentence), class_=f"banner {kind}", role="status"),
            tag("dl", *boxes, class_="cards"),
        ]
    )


def checks(verdict: Verdict) -> Html:
    """Return the table of checks.

    Parameters
    ----------
    verdict : Verdict
        The verdict.

    Returns
    -------
    Html
        Section.
    """
    rows = [
        (
            check.name.replace("_", " "),
            badge("passed", "ok") if check.ok else badge("failed", "bad"),
            number(check.value, 3),
            number(check.limit, 3),
            check.sentence,
        )
        for check in verdict.checks
    ]
    return section(
        "verdict", "Verdict", table(("Check", "Result", "Value", "Limit", "Finding"), rows, numeric=(2, 3), wide=(4,))
    )


def _title(score: Score) -> str:
    return f"{score.name}: " + ("TRAINING DATA, not a validation" if score.training else "held out")


def _chunks(joints: Sequence[str], size: int = JOINTS_PER_FIGURE) -> list[Sequence[str]]:
    return [joints[i : i + size] for i in range(0, len(joints), size)]


def predictions(fit: Fit, scores: Sequence[Score]) -> Html:
    """Return, for every scored log, measured against predicted efforts and the metrics per joint.

    Parameters
    ----------
    fit : Fit
        Identified model.
    scores : sequence of Score
        Held-out scores first, the training score last.

    Returns
    -------
    Html
        Section.
    """
    units = effort_units(fit.mechanism)
    parts: list[object] = []
    if all(score.training for score in scores):
        text = "NOT VALIDATED: no held-out log was scored, so nothing here shows how the model predicts new motions."
        parts.append(tag("div", tag("p", text), class_="banner bad"))
    for score in scores:
        parts.append(tag("h3", _title(score)))
        parts.append(
            tag(
                "p",
                f"Relative error {percent(score.metrics.relative)} over {score.metrics.samples} samples of "
                f"{several(len(score.joints), 'joint')}; {percent(score.coverage, 1)} of the measurements lie within the two-sigma "
                "band (95 % expected when model and noise are right).",
            )
        )
        parts.append(_metrics(score, units))
        parts.extend(
            figure(
                data_address(plot_score(score, joints, units)),
                f"Measured and predicted effort over time with residuals, log {score.name}, joints {', '.join(joints)}",
            )
            for joints in _chunks(score.joints)
        )
        if score.t.size > 2 * CLOSE_UP:
            centre = int(np.argmin(np.abs(score.t - score.metrics.worst_time)))
            first = min(max(centre - CLOSE_UP // 2, 0), score.t.size - CLOSE_UP)
            window = (float(score.t[first]), float(score.t[first + CLOSE_UP - 1]))
            parts.append(
                figure(
                    data_address(plot_score(score, [score.metrics.worst_joint], units, window)),
                    f"Close-up of joint {score.metrics.worst_joint} around the worst sample",
                    f"Close-up around the worst sample, t = {score.metrics.worst_time:.3f} s.",
                )
            )
    return section("predictions", "Measured and predicted efforts", *parts)


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
    """Return what the residuals look like.

    Parameters
    ----------
    fit : Fit
        Identified model.
    scores : sequence of Score
        Scores whose residuals are looked at.

    Returns
    -------
    Html
        Section.
    """
    units = effort_units(fit.mechanism)
    parts: list[object] = []
    for score in scores:
        e = score.measured - score.predicted
        share = [independent_share(e[:, j]) for j in range(e.shape[1])]
        rows = [
            (
                name,
                units.get(name, ""),
                number(float(e[:, j].mean()), 3),
                number(float(e[:, j].std()), 3),
                percent(share[j], 0),
                f"{max(1.0, 1.0 / np.sqrt(share[j])):.1f}",
            )
            for j, name in enumerate(score.joints)
        ]
        heads = ("Joint", "Unit", "Mean", "Standard deviation", "Independent samples", "Std too small by up to")
        caption = (
            "White residuals are all noise; slow ones are things the model lacks. Standard deviations assume independent samples: "
            "where only a share is independent, they are too small by up to the last column's factor."
        )
        parts += [tag("h3", _title(score)), table(heads, rows, caption, numeric=range(2, 6))]
        for joints in _chunks(score.joints):
            alternative = f"Distribution, autocorrelation and residual against prediction of joints {', '.join(joints)}"
            parts.append(figure(data_address(plot_residuals(score, joints, units)), alternative))
    return section("residuals", "Residuals", *parts or [tag("p", "No log was scored, so there are no residuals to look at.")])


def parameters(fit: Fit, truth: Mapping[str, float] | Parameters | None) -> Html:
    """Return the base parameters as table and figure.

    Parameters
    ----------
    fit : Fit
        Identified model.
    truth : mapping or Parameters, optional
        True standard parameters, drawn as crosses.

    Returns
    -------
    Html
        Section.
    """
    table_ = fit.observability()
    prior = fit.base.values(fit.mechanism.parameters.values)
    rows = [
        (
            row.name,
            number(row.value, 5),
            number(row.std, 3),
            percent(row.relative, 1),
            pretty_unit(row.unit),
            badge(row.verdict, VERDICT_KIND[row.verdict]),
            number(float(prior[i])),
            tag("span", row.expression.split(" = ", 1)[1], class_="mono"),
        )
        for i, row in enumerate(table_)
    ]
    heads = ("Base parameter", "Value", "Std", "Relative", "Unit", "Verdict", "Description", "Expression")
    verdicts = [row.verdict for row in table_]
    counts = join((badge(f"{verdicts.count(v)} {v}", k) for v, k in VERDICT_KIND.items() if v in verdicts), " ")
    meaning = "; ".join(f"{v}: {MEANING[v]}" for v in VERDICT_KIND if v in verdicts)
    order = [
        name
        for unit in dict.fromkeys(fit.base.units)
        for name, u in zip(fit.base.names, fit.base.units, strict=True)
        if u == unit
    ]
    pictures = [
        figure(
            data_address(plot_parameters(fit, truth, names)),
            f"Base parameters {names[0]} to {names[-1]} with two-sigma error bars",
        )
        for names in _chunks(order, ROWS_PER_FIGURE)
    ]
    return section(
        "parameters",
        "Base parameters",
        tag("p", counts),
        tag(
            "p",
            f"{meaning[:1].upper()}{meaning[1:]}. Description: the same combination of the values the robot's file gives.",
            class_="note",
        ),
        *pictures,
        details(f"Table of all {len(rows)} base parameters", table(heads, rows, numeric=(1, 2, 3, 6), wide=(7,)), opened=True),
    )


def against_truth(fit: Fit, truth: Mapping[str, float] | Parameters) -> Html:
    """Return true against identified base parameters.

    Parameters
    ----------
    fit : Fit
        Identified model.
    truth : mapping or Parameters
        True standard parameters.

    Returns
    -------
    Html
        Section.
    """
    true = true_base_values(fit, truth)
    usable = fit.solved & np.isfinite(true) & (fit.std > 0.0)
    error = fit.values - true
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.where(usable, error / fit.std, np.nan)
    rows = [
        (
            name,
            number(true[i], 5),
            number(fit.values[i], 5),
            number(error[i], 3),
            number(fit.std[i], 3),
            number(z[i], 3),
            pretty_unit(unit),
        )
        for i, (name, unit) in enumerate(zip(fit.base.names, fit.base.units, strict=True))
    ]
    inside = float(np.mean(np.abs(z[usable]) <= 2.0)) if np.any(usable) else float("nan")
    e, C = error[usable], fit.covariance[np.ix_(usable, usable)]
    chi2 = float(e @ np.linalg.lstsq(C, e, rcond=None)[0]) / max(e.size, 1)
    sentence = (
        f"The truth is known (a simulated robot). {percent(inside, 0)} of the base parameters lie within two standard deviations "
        f"of it (about 95 % expected), and the mean squared error in units of the covariance is {number(chi2, 3)} (1 expected)."
    )
    heads = ("Base parameter", "True", "Identified", "Error", "Std", "Error / std", "Unit")
    picture = figure(
        data_address(plot_truth(fit, true)), "Error of every base parameter in standard deviations, with two-sigma band"
    )
    return section(
        "truth",
        "Against the truth",
        tag("p", sentence),
        picture,
        details(
            f"Table of true and identified values of {fit.base.rank} base parameters", table(heads, rows, numeric=range(1, 6))
        ),
    )


def observability(fit: Fit) -> Html:
    """Return which standard parameters torques can show: alone, only combined with others, or never.

    Parameters
    ----------
    fit : Fit
        Identified model.

    Returns
    -------
    Html
        Section.
    """
    p = fit.mechanism.parameters
    state = standard_states(fit)
    words = {"alone": "●", "combined": "◐", "never": "·"}
    meaning = {"alone": "identifiable alone", "combined": "only in combination", "never": "no effect on the efforts"}
    symbols = [name.removesuffix(f"_{owner}") for name, owner in zip(p.names, p.owners, strict=True)]
    # A joint with several coordinates has one row per coordinate: the symbol ends before the first underscore.
    keys = [name.split("_", 1) for name in p.names]
    bodies = 10 * len(fit.mechanism.tree.bodies)
    maps = []
    for title, span in (("Body", slice(0, bodies)), ("Joint or motor", slice(bodies, None))):
        heads = list(dict.fromkeys(key[0] for key in keys[span]))
        lines: dict[str, dict[str, str]] = {}
        for (symbol, owner), name in zip(keys[span], p.names[span], strict=True):
            lines.setdefault(owner, {})[symbol] = state[name]
        if not lines:
            continue
        head = tag("tr", *(tag("th", text, scope="col") for text in (title, *heads)))
        body = []
        for owner, cells in lines.items():
            marks = [
                tag("td", words[cells[s]], class_=cells[s], title=f"{s}_{owner}: {meaning[cells[s]]}")
                if s in cells
                else tag("td")
                for s in heads
            ]
            body.append(tag("tr", tag("th", owner, scope="row"), *marks))
        maps.append(tag("div", tag("table", tag("thead", head), tag("tbody", *body), class_="map"), class_="scroll"))
    counts = {kind: sum(s == kind for s in state.values()) for kind in words}
    legend = tag("p", *(tag("span", f"{words[k]} {counts[k]} {meaning[k]}") for k in words), class_="legend")
    sentence = (
        f"The robot has {len(p)} standard parameters, of which efforts can show {fit.base.rank} combinations, the base parameters. "
        "More data cannot change this; it follows from the kinematics."
    )
    hidden = [row.name for row in fit.observability() if row.verdict == "not excited"]
    extra = tag("p", f"Not excited by these data: {', '.join(hidden)}.") if hidden else ""
    del symbols
    return section("observability", "Observability", tag("p", sentence), extra, legend, *maps)


def standard_states(fit: Fit) -> dict[str, str]:
    """Return how each standard parameter can be seen.

    Parameters
    ----------
    fit : Fit
        Identified model.

    Returns
    -------
    dict
        Name to "alone" (a base parameter by itself), "combined" or "never".
    """
    K = fit.base.regrouping != 0.0
    single = K.sum(axis=1) == 1
    states = {}
    for j, name in enumerate(fit.mechanism.parameters.names):
        rows = np.flatnonzero(K[:, j])
        if name in fit.base.unidentifiable or not rows.size:
            states[name] = "never"
        else:
            states[name] = "alone" if rows.size == 1 and single[rows[0]] else "combined"
    return states


def conditioning(fit: Fit) -> Html:
    """Return how well posed the regression is.

    Parameters
    ----------
    fit : Fit
        Identified model.

    Returns
    -------
    Html
        Section.
    """
    gap = fit.base.rank_gap
    clear = "clear-cut" if gap > 1e3 else "NOT clear-cut: check for joint axes that are almost parallel"
    parts: list[object] = [
        tag(
            "p",
            f"Condition number of the scaled, weighted regression: {number(fit.condition, 4)}. The rank of {fit.base.rank} is {clear} "
            f"(the smallest kept singular value is {number(gap, 2)} times the largest rejected one).",
        )
    ]
    decomposition = weak_directions(fit)
    if decomposition is None:
        parts.append(tag("p", "Singular values cannot be rebuilt from the covariance of this estimator.", class_="note"))
    else:
        values, vectors, solved = decomposition
        weakest = vectors[:, -1]
        largest = np.argsort(-np.abs(weakest))[:4]
        names = ", ".join(f"{fit.base.names[solved[i]]} ({percent(float(weakest[i] ** 2), 0)})" for i in largest)
        parts.append(tag("p", f"What the data show least is a combination of {names}."))
        parts.append(
            figure(
                data_address(plot_singular_values(values)),
                f"Singular values from {number(values[0], 3)} to {number(values[-1], 3)}",
                "Singular values of the scaled, weighted regression; an even fall means even excitation.",
                "narrow",
            )
        )
    return section("conditioning", "Conditioning", *parts)


def bodies(fit: Fit) -> Html:
    """Return whether the recovered standard parameters of every body are physically possible.

    Parameters
    ----------
    fit : Fit
        Identified model.

    Returns
    -------
    Html
        Section.
    """
    found = fit.consistency()
    rows = [
        (c.name, badge("possible", "ok") if c.ok else badge("impossible", "bad"), number(c.mass), c.sentence) for c in found
    ]
    wrong = sum(not c.ok for c in found)
    text = (
        "All bodies are physically possible."
        if not wrong
        else f"{wrong} of {len(found)} bodies have impossible standard parameters. Efforts alone do not fix them, so this is a choice "
        "among equals: base parameters and predictions hold, but do not simulate with these bodies."
    )
    return section(
        "bodies",
        "Physical consistency",
        tag("p", text),
        tag("p", f"Standard parameters: {fit.standard.provenance or 'no provenance'}.", class_="note"),
        table(("Body", "Result", "Mass [kg]", "Finding"), rows, numeric=(2,), wide=(3,)),
    )
