"""The sections of the report about the model itself: parameters, observability, conditioning, bodies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynident.arrays import Array
from dynident.errors import DynidentError
from dynident.figures import pretty_unit
from dynident.friction.text import law_text
from dynident.identify.fit import Fit
from dynident.mechanism.force import Force
from dynident.mechanism.parameters import Parameters
from dynident.pages import Html, badge, details, join, number, percent, printable, section, table, tag
from dynident.report.embed import clean, packed
from dynident.report.sections import plot


def weak_directions(fit: Fit) -> tuple[Array, Array, NDArray[np.int64]] | None:
    """Return singular values (largest first), right vectors (columns) and their base parameters.

    With cov = (W^T W)^-1 for the weighted W and D its column lengths, W D^-1 has the singular values
    sqrt(eig(D^-1 cov^-1 D^-1)).
    """
    solved = np.flatnonzero(fit.solved)
    if not solved.size:
        return None
    try:
        information = np.linalg.inv(fit.covariance[np.ix_(solved, solved)])
    except np.linalg.LinAlgError:
        return None
    length = np.sqrt(np.abs(np.diag(information)))
    if not np.all(np.isfinite(information)) or np.any(length == 0.0):
        return None
    squares, vectors = np.linalg.eigh(information / np.outer(length, length))
    if squares[0] <= 0.0:
        return None
    values = np.sqrt(squares[::-1])
    if not np.isclose(values[0] / values[-1], fit.condition, rtol=0.02):
        return None
    return values, vectors[:, ::-1], solved


VERDICT_KIND = {"good": "ok", "poor": "mid", "insignificant": "bad", "not excited": "bad", "dropped": ""}
SIGNS = {"alone": "●", "combined": "◐", "never": "·", "known": "▪"}
SEEN = {
    "alone": "identifiable alone",
    "combined": "only in combination",
    "never": "no effect on the efforts",
    "known": "known, not identified",
}
MEANING = {
    "good": "standard deviation up to 10 % of the value",
    "poor": "up to 50 %",
    "insignificant": "not clearly different from zero",
    "not excited": "the data do not show it",
    "dropped": "left out as not essential",
}


def _share(relative: float) -> str:
    """Return a relative deviation in per cent, or an inequality outside the range of one decimal."""
    if relative >= 10.0:
        return "> 999 %"
    return "< 0.1 %" if 0.0 < relative < 5e-4 else percent(relative, 1)


def parameters(fit: Fit) -> Html:
    """Return the base parameters as table and figure."""
    table_ = fit.observability()
    prior = fit.described
    rows = [
        (
            row.name,
            number(row.value, 5),
            number(row.std, 3),
            _share(row.relative),
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
    return section(
        "parameters",
        "Base parameters",
        tag("p", counts),
        tag(
            "p",
            f"{meaning[:1].upper()}{meaning[1:]}. Each parameter is divided by the larger of both values: identified (blue, "
            "two standard deviations), description (orange), truth if known (green).",
            class_="note",
        ),
        plot("parameters", "Base parameters with two-sigma error bars, and the description"),
        details(
            f"Table of all {len(rows)} base parameters",
            table(heads, rows, numeric=(1, 2, 3, 6), wide=(7,), short=(0, 4)),
            opened=len(rows) <= 20,
        ),
    )


def true_base_values(fit: Fit, truth: Mapping[str, float] | Parameters) -> Array:
    """Return the true base parameters beta = K phi."""
    known = truth.to_dict() if isinstance(truth, Parameters) else dict(truth)
    names = fit.mechanism.parameters.names
    unknown = [name for name in known if name not in fit.mechanism.parameters]
    if unknown:
        raise DynidentError(
            f"truth names '{unknown[0]}', which robot '{fit.mechanism.name}' does not have; give the standard parameters of "
            f"the fitted robot, as in {', '.join(names[:3])}"
        )
    phi = np.array([float(known.get(name, np.nan)) for name in names])
    K = fit.base.regrouping
    beta = np.where(K != 0.0, K * phi, 0.0).sum(axis=1)
    return np.asarray(beta)


def parameter_data(fit: Fit, truth: Mapping[str, float] | Parameters | None) -> dict[str, Any]:
    """Return the base parameters for the page, relative to the larger of identified and described value."""
    prior = fit.described
    true = None if truth is None else true_base_values(fit, truth)
    scale = np.maximum(np.maximum(np.abs(fit.values), np.abs(prior)), 1e-300)
    std = np.where(fit.solved, fit.std, 0.0)
    lines = [
        [
            printable(f"{row.name} [{pretty_unit(row.unit)}]"),
            printable(row.expression)[:160],
            f"identified {number(row.value, 5)} ± {number(row.std, 3)} ({row.verdict})",
            f"description {number(float(prior[i]))}",
            *([] if true is None else [f"truth {number(float(true[i]), 5)}"]),
        ]
        for i, row in enumerate(fit.observability())
    ]
    return {
        "names": [printable(name) for name in fit.base.names],
        "value": clean(fit.values / scale),
        "low": clean((fit.values - 2.0 * std) / scale),
        "high": clean((fit.values + 2.0 * std) / scale),
        "description": clean(prior / scale),
        "truth": None if true is None else clean(true / scale),
        "lines": lines,
    }


def covariance_data(fit: Fit) -> dict[str, Any] | None:
    """Return the correlations of the estimated base parameters in per cent."""
    solved = np.flatnonzero(fit.solved & (fit.std > 0.0))
    if solved.size < 2:
        return None
    C = fit.covariance[np.ix_(solved, solved)] / np.outer(fit.std[solved], fit.std[solved])
    return {
        "names": [printable(fit.base.names[i]) for i in solved],
        "values": packed(np.rint(100.0 * np.clip(np.nan_to_num(C), -1.0, 1.0)), "i1"),
    }


def truth_data(fit: Fit, truth: Mapping[str, float] | Parameters) -> dict[str, Any]:
    """Return the errors against the truth in standard deviations."""
    true = true_base_values(fit, truth)
    shown = np.flatnonzero(fit.solved & np.isfinite(true) & (fit.std > 0.0))
    z = (fit.values[shown] - true[shown]) / fit.std[shown]
    return {"names": [printable(fit.base.names[i]) for i in shown], "z": clean(np.clip(z, -6.0, 6.0))}


def against_truth(fit: Fit, truth: Mapping[str, float] | Parameters) -> Html:
    """Return a comparison of true and identified base parameters."""
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
        f"Simulated robot with known truth: {percent(inside, 0)} of the base parameters are within two standard deviations "
        f"(95 % expected); normalised squared error {number(chi2, 3)} (1 expected)."
    )
    heads = ("Base parameter", "True", "Identified", "Error", "Std", "Error / std", "Unit")
    picture = plot("truth", "Error of every base parameter in standard deviations, with two-sigma band")
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
    """Return the observability of every standard parameter: alone, only combined with others, or never."""
    p = fit.mechanism.parameters
    state = standard_states(fit)
    known, errors = relative_errors(fit), dict[str, float]()
    first, own = len(p) - len(fit.mechanism.own_columns), fit.mechanism.own_columns
    keys: list[tuple[str, str]] = [(name.partition("_")[0], name.partition("_")[2]) for name in p.names[:first]]
    keys += [(c.name.removesuffix(f"_{c.coordinate}"), c.coordinate or "force elements") for c in own]
    bodies = 10 * len(fit.mechanism.tree.bodies)
    maps = []
    titles = (("Body", slice(0, bodies)), ("Joint or motor", slice(bodies, first)), ("Law or force", slice(first, None)))
    for title, span in titles:
        heads = list(dict.fromkeys(key[0] for key in keys[span]))
        lines: dict[str, dict[str, str]] = {}
        for (symbol, owner), name in zip(keys[span], p.names[span], strict=True):
            lines.setdefault(owner, {})[symbol] = state[name]
            errors[f"{symbol}_{owner}"] = known[name]
        if not lines:
            continue
        head = tag("tr", *(tag("th", text, scope="col") for text in (title, *heads)))
        body = []
        for owner, cells in lines.items():
            marks = [_mark(f"{s}_{owner}", cells[s], errors) if s in cells else tag("td") for s in heads]
            body.append(tag("tr", tag("th", owner, scope="row"), *marks))
        maps.append(tag("div", tag("table", tag("thead", head), tag("tbody", *body), class_="map"), class_="scroll"))
    counts = {kind: sum(s == kind for s in state.values()) for kind in SIGNS}
    shown = [kind for kind in SIGNS if counts[kind] or kind != "known"]
    texts = [f"{SIGNS[k]} {counts[k]} {SEEN[k]}" for k in shown]
    ground = "darker background: determined better by these data (relative standard deviation from 100 % to 0.1 %)"
    legend = tag("p", *(tag("span", text) for text in (*texts, ground)), class_="legend")
    sentence = (
        f"The robot has {len(p)} standard parameters; efforts determine {fit.base.rank} combinations of them, the base "
        "parameters. This follows from the kinematics, not from the data."
    )
    hidden = [row.name for row in fit.observability() if row.verdict == "not excited"]
    extra = tag("p", f"Not excited by these data: {', '.join(hidden)}.") if hidden else ""
    return section("observability", "Observability", tag("p", sentence), extra, legend, *maps)


def relative_errors(fit: Fit) -> dict[str, float]:
    """Return, per standard parameter, the least relative deviation of the base parameters that contain it."""
    held = fit.base.regrouping != 0.0
    relative = np.array(
        [row.relative if row.verdict not in ("not excited", "dropped") else np.inf for row in fit.observability()]
    )
    best = np.where(held, relative[:, None], np.inf).min(axis=0, initial=np.inf)
    return dict(zip(fit.mechanism.parameters.names, best.tolist(), strict=True))


def _mark(name: str, state: str, errors: Mapping[str, float]) -> Html:
    """Return a cell of the map: its sign shows the observability of a parameter, its colour the precision from these data."""
    error = errors[name]
    depth = float(np.clip(-np.log10(max(error, 1e-9)) / 3.0, 0.0, 1.0)) if np.isfinite(error) and state != "never" else 0.0
    known = f", {percent(error, 1)}" if np.isfinite(error) and state != "never" else ""
    return tag("td", SIGNS[state], class_=state, title=f"{name}: {SEEN[state]}{known}", style=f"--seen-share:{depth:.2f}")


def laws_and_forces(fit: Fit) -> Html:
    """Return friction laws and force elements with their identified numbers."""
    std = dict(zip(fit.base.leaders, fit.std, strict=True))

    def cell(name: str) -> str:
        spread = f" \N{PLUS-MINUS SIGN} {number(float(std[name]), 2)}" if name in std else " (known)"
        return number(fit.standard[name], 5) + spread

    rows: list[tuple[str, Html | str, str]] = []
    for joint, friction in fit.friction.items():
        numbers = "; ".join(f"{name} = {cell(f'{name}_{joint}')}" for name in friction.law.parameters)
        rows.append((joint, tag("span", law_text(friction.law), class_="mono"), numbers))
    for force in fit.mechanism.forces:
        if isinstance(force, Force):
            texts = force.texts or {"energy": str(force.energy)}
            what = "; ".join(f"{where}: {text}" for where, text in texts.items())
            rows.append((force.name, tag("span", what, class_="mono"), f"{cell(force.name)} {pretty_unit(force.unit)}".strip()))
        else:
            rows += [(name, "column given by numbers", cell(name)) for name in force.names]
    return section("laws", "Friction laws and force elements", table(("Joint or force", "Law or expression", "Numbers"), rows))


def standard_states(fit: Fit) -> dict[str, str]:
    """Return the observability of each standard parameter."""
    K = fit.base.regrouping != 0.0
    single = K.sum(axis=1) == 1
    states = {}
    for j, name in enumerate(fit.mechanism.parameters.names):
        rows = np.flatnonzero(K[:, j])
        if j in fit.mechanism.known_columns:
            states[name] = "known"
            continue
        if name in fit.base.unidentifiable or not rows.size:
            states[name] = "never"
        else:
            states[name] = "alone" if rows.size == 1 and single[rows[0]] else "combined"
    return states


def conditioning(fit: Fit) -> Html:
    """Return the conditioning of the regression."""
    gap = fit.base.rank_gap
    factor = number(gap, 2) if gap < 1e9 else "more than 10\N{SUPERSCRIPT NINE}"
    clear = "clear-cut" if gap > 1e3 else "NOT clear-cut: check for joint axes that are almost parallel"
    parts: list[object] = [
        tag(
            "p",
            f"Condition number of the scaled, weighted regression: {number(fit.condition, 4)}. The rank of "
            f"{fit.base.rank} is {clear} (the smallest singular value or column kept is {factor} "
            "times the largest one rejected).",
        )
    ]
    decomposition = weak_directions(fit)
    if decomposition is None:
        why = (
            "Singular values cannot be rebuilt from the covariance of this estimator."
            if np.any(fit.solved)
            else "There are no singular values to show: these data determine no parameter by itself."
        )
        parts.append(tag("p", why, class_="note"))
    else:
        values, vectors, solved = decomposition
        weakest = vectors[:, -1]
        largest = np.argsort(-np.abs(weakest))[:4]
        names = ", ".join(
            f"{fit.base.names[solved[i]]} ({percent(float(weakest[i] ** 2), 0)})" for i in largest if weakest[i] ** 2 >= 0.01
        )
        parts.append(tag("p", f"The data determine least a combination of {names}."))
        parts.append(
            tag("p", "Singular values of the scaled, weighted regression; an even fall means even excitation.", class_="note")
        )
        parts.append(plot("singular", f"Singular values from {number(values[0], 3)} to {number(values[-1], 3)}"))
    if covariance_data(fit) is not None:
        text = (
            "Correlations of the estimated base parameters: orange +1, blue \N{MINUS SIGN}1. Strong off-diagonal values "
            "mark parameters that these data hardly distinguish."
        )
        parts += [tag("h3", "Covariance"), tag("p", text, class_="note"), plot("covariance", "Correlations of base parameters")]
    return section("conditioning", "Conditioning", *parts)


def bodies(fit: Fit) -> Html:
    """Return the physical consistency of the recovered standard parameters of every body."""
    found = fit.consistency()
    before = fit.mechanism.parameters.to_dict()
    open_ones = {parameter.name: "only in sums" for parameter in fit.undetermined()}
    open_ones |= dict.fromkeys(fit.base.unidentifiable, "no")
    rows = [
        (
            c.name,
            badge("possible", "ok") if c.ok else badge("impossible", "bad"),
            number(c.mass),
            number(before.get(f"m_{c.name}", float("nan"))),
            open_ones.get(f"m_{c.name}", "yes"),
            c.sentence,
        )
        for c in found
    ]
    wrong = sum(not c.ok for c in found)
    text = (
        "All bodies are physically possible."
        if not wrong
        else f"{wrong} of {len(found)} bodies are physically impossible. Base parameters and predictions are valid, but do "
        "not simulate with these bodies."
    )
    return section(
        "bodies",
        "Physical consistency",
        tag("p", text),
        tag("p", f"Standard parameters: {fit.standard.provenance or 'no provenance'}.", class_="note"),
        table(
            ("Body", "Result", "Mass [kg]", "Described [kg]", "Shown by data", "Finding"),
            rows,
            numeric=(2, 3),
            wide=(5,),
            short=(0,),
        ),
        exported(fit),
    )


def exported(fit: Fit) -> Html:
    """Return the exported and scored standard parameters, which of them the data determine, and the described values."""
    std = np.full(len(fit.standard), np.nan) if fit.standard_std is None else fit.standard_std
    known, shown = fit.mechanism.known_columns, fit.shown
    rows = [
        (
            name,
            number(float(fit.standard.values[k]), 5),
            number(float(std[k]), 3) if np.isfinite(std[k]) and k not in known else "\N{EN DASH}",
            number(float(fit.mechanism.parameters.values[k]), 5),
            pretty_unit(fit.standard.units[k]),
            badge("known", "ok") if k in known else badge("determined", "ok") if shown[k] else badge("not determined", "mid"),
        )
        for k, name in enumerate(fit.standard.names)
    ]
    heads = ("Standard parameter", "Exported", "Std", "Description", "Unit", "By these data")
    count = int(np.count_nonzero(shown))
    note = (
        f"{count} of {len(rows)} standard parameters are determined individually by these data. The others are taken from "
        "the description. The table lists the exported values."
    )
    return join(
        [tag("p", note), details(f"Table of all {len(rows)} exported parameters", table(heads, rows, numeric=(1, 2, 3)))]
    )
