"""`write_friction_report`: a friction study as one self-contained HTML page, and its own figures."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dynident import __version__
from dynident.figures import (
    BLUE,
    GREEN,
    MUTED,
    ORANGE,
    finish,
    label,
    new_figure,
    one_axes,
    pretty_unit,
)
from dynident.files import write_atomic
from dynident.pages import Html, badge, bullets, date, escape, join, number, page, percent, section, several, table, tag
from dynident_lab.figures import data_address, figure, per_second
from dynident_lab.testbench.maintenance import Maintenance
from dynident_lab.testbench.plots import draw_warmup, plot_sweeps
from dynident_lab.testbench.repeatability_study import Repeatability
from dynident_lab.testbench.study import FrictionStudy, JointStudy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = (BLUE, ORANGE, GREEN, MUTED)


def plot_friction_over_time(entry: JointStudy) -> Figure:
    """Draw friction at one speed over time, with drifts of the first and second order."""
    h = entry.history
    title = f"{label(entry.joint)} of {label(entry.robot)}: friction at {h.speed:.3g} {per_second(h.unit)} over time"
    drawn, axes = one_axes(7.2, 3.4, "time since the cold start [min]", f"friction [{h.unit}]", title)
    if entry.warmups:
        draw_warmup(axes, entry.warmups)
    else:
        axes.errorbar(h.t / 60.0, h.friction, 2.0 * np.asarray(h.std), fmt="o", color=BLUE, markersize=4)
    return drawn


def plot_time_constants(study: FrictionStudy) -> Figure:
    """Draw the thermal time constants of all joints and robots."""
    joints = list(dict.fromkeys(entry.joint for entry in study.joints))
    width = 0.8 / max(len(study.robots), 1)
    drawn, axes = one_axes(7.2, 3.4, "", "time constant [min]", "Time constants of the warm-up (slow: filled, fast: open)")
    for i, robot in enumerate(study.robots):
        for entry in (e for e in study.joints if e.robot == robot and e.warmups):
            best, colour = entry.warmups[0], COLOURS[i % len(COLOURS)]
            x = joints.index(entry.joint) + (i - 0.5 * (len(study.robots) - 1)) * width
            for k, (tau, std) in enumerate(zip(best.time_constants / 60.0, best.time_constants_std / 60.0, strict=True)):
                low = min(2.0 * std, 0.95 * tau)  # the axis is logarithmic: a bar cannot reach zero
                name = label(robot) if k == 0 and entry.joint == joints[0] else None
                face = colour if k == 0 else "white"
                axes.errorbar(
                    x,
                    tau,
                    [[low], [2.0 * std]],
                    fmt="o",
                    color=colour,
                    markerfacecolor=face,
                    markersize=6,
                    capsize=3,
                    label=name,
                )
    axes.set_yscale("log")
    axes.set_xlim(-0.6, len(joints) - 0.4)
    axes.set_xticks(range(len(joints)), [label(name, 14) for name in joints])
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.yaxis.set_minor_formatter(lambda value, _: f"{value:g}" if f"{value:.0e}"[0] in "25" else "")
    axes.tick_params(which="minor", labelsize=8, colors=MUTED)
    if len(study.robots) > 1 and axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False, fontsize=8)
    return drawn


def plot_robots(study: FrictionStudy, joint: str) -> Figure:
    """Compare robots: friction against speed (coldest and hottest curve), and friction over time."""
    drawn = new_figure(9.6, 3.6)
    left, right = drawn.add_axes((0.075, 0.15, 0.4, 0.74)), drawn.add_axes((0.575, 0.15, 0.4, 0.74))
    entries = [entry for entry in study.joints if entry.joint == joint]
    for i, entry in enumerate(entries):
        colour = COLOURS[i % len(COLOURS)]
        ends = (entry.curves.curves[0], entry.curves.curves[-1])
        for curve, style, name in zip(ends, ("-", "--"), (label(entry.robot), None), strict=True):
            left.plot(curve.speed, curve.torque, "o", color=colour, markersize=3.2, label=name)
            for way in (curve.speed < 0.0, curve.speed > 0.0):
                left.plot(curve.speed[way], curve.torque[way], style, color=colour, linewidth=1.0)
        right.plot(entry.history.t / 60.0, entry.history.friction, "o", color=colour, markersize=3.2, label=label(entry.robot))
        if entry.warmups:
            grid = np.linspace(0.0, float(entry.history.t.max()), 300)
            right.plot(grid / 60.0, entry.warmups[0](grid), color=colour, linewidth=1.1)
    unit = entries[0].curves.unit
    finish(left, f"speed [{per_second(unit)}]", f"friction [{unit}]", f"{label(joint)}: first curve solid, last dashed")
    finish(right, "time since the cold start [min]", f"friction [{unit}]", f"at {100 * study.level:.0f} % of the speed")
    left.legend(frameon=False, fontsize=8)
    right.legend(frameon=False, fontsize=8)
    return drawn


def write_friction_report(
    path: str | os.PathLike[str],
    study: FrictionStudy,
    repeatability: Repeatability | None = None,
    checks: Sequence[Maintenance] = (),
) -> Path:
    """Write one HTML page with the friction of a robot: curves, warm-up, time constants, robots, maintenance."""
    new_figure(1.0, 1.0)  # fails at once if matplotlib is missing
    parts = [("curves", "Curves", _curves(study)), ("warmup", "Warm-up", _warmup(study))]
    if len(study.robots) > 1:
        parts.append(("robots", "Robots", _robots(study)))
    if repeatability is not None:
        parts.append(("repeatability", "Repeatability", _repeatability(repeatability)))
    if checks:
        parts.append(("maintenance", "Maintenance", _maintenance(checks)))
    parts.append(("notes", "Notes", _notes(study)))
    when = ", ".join(filter(None, (f"Written by dynident {__version__}", date())))
    footer = escape(f"{when}. This page is self-contained: it loads and runs nothing.")
    return write_atomic(path, page(f"{study.mechanism} - friction report", _headline(study, checks), parts, footer))


def _headline(study: FrictionStudy, checks: Sequence[Maintenance]) -> Html:
    fits = [entry.warmups[0] for entry in study.joints if entry.warmups and entry.warmups[0].order]
    waits = [w.warmup_time(study.tolerance) / 60.0 for w in fits]
    alarms = [c for c in checks if c.alarm]
    cold = max((w.change for w in fits), default=float("nan"))
    if alarms:
        kind, title = "bad", "Friction has changed"
        sentence = "; ".join(f"{c.history.joint}: {percent(c.size, 0)} at {number(c.onset / 60, 3)} min" for c in alarms)
    elif study.failures:
        kind, title = "mid", "Some joints could not be studied"
        sentence = f"{several(len(study.failures), 'joint')} without a result; the reasons are under Notes."
    else:
        kind, title = "ok", "All joints studied"
        sentence = f"{several(len(study.joints), 'result')} from {several(len(study.logs), 'log')}."
    cards = [
        ("Joints", str(len(study.joints)), several(len(study.robots), "robot")),
        ("Plateaus", str(sum(len(e.curves.plateaus) for e in study.joints)), several(len(study.logs), "log")),
        ("Cold above hot", percent(cold, 0), "friction, worst joint"),
        ("Warm-up", f"{number(max(waits, default=float('nan')), 3)} min", f"to within {percent(study.tolerance, 0)}"),
    ]
    boxes = (tag("div", tag("dt", name), tag("dd", value, tag("small", remark))) for name, value, remark in cards)
    return join(
        [
            tag("h1", study.mechanism),
            tag("p", "Friction report", class_="lead"),
            tag("div", tag("strong", title), tag("p", sentence), class_=f"banner {kind}", role="status"),
            tag("dl", *boxes, class_="cards"),
        ]
    )


def _who(study: FrictionStudy, entry: JointStudy) -> str:
    return entry.joint if len(study.robots) == 1 else f"{entry.joint} of {entry.robot}"


def _curves(study: FrictionStudy) -> Html:
    content: list[object] = []
    for entry in study.joints:
        c, who = entry.curves, _who(study, entry)
        caption = f"Mean over plateaus; {'gravity removed' if c.gravity.removed else 'no gravity was found to be removed'}."
        content += [tag("h3", who), figure(data_address(c.plot()), f"Friction against speed of {who}", caption)]
        torques = "Torque on the plateaus of the first and the last sweep, measured and modelled."
        content.append(figure(data_address(plot_sweeps(c)), f"Torque over time of {who}", torques))
        rows = []
        for curve in c.curves:
            f = curve.fit()
            values = zip(f.law.linear, f.values, f.std, strict=True)
            text = ", ".join(f"{n} {number(x, 4)} ± {number(s, 2)}" for n, x, s in values)
            rows.append((curve.label, str(int(curve.count.sum())), number(curve.std.max(), 2), percent(f.relative), text))
        heads = ("Curve", "Plateaus", f"Largest std of a mean [{pretty_unit(c.unit)}]", "Polynomial error", "Polynomial")
        content.append(table(heads, rows, numeric=(1, 2, 3), wide=(4,), short=(0,)))
        if c.gravity.removed:
            qa, qb = c.gravity.std
            text = f"Gravity: Qa {number(c.gravity.Qa)} ± {number(qa, 2)} N m, Qb {number(c.gravity.Qb)} ± {number(qb, 2)} N m."
            content.append(tag("p", text))
    return section("curves", "Friction against speed", *content)


def _warmup(study: FrictionStudy) -> Html:
    rows, pictures = [], []
    for entry in study.joints:
        who = _who(study, entry)
        pictures.append(figure(data_address(plot_friction_over_time(entry)), f"Friction over time of {who}"))
        for k, w in enumerate(entry.warmups):
            taus = ", ".join(
                f"{number(a / 60, 3)} ± {number(b / 60, 2)}"
                for a, b in zip(w.time_constants, w.time_constants_std, strict=True)
            )
            wait = f"{number(w.warmup_time(study.tolerance) / 60, 3)} ± {number(w.warmup_time_std(study.tolerance) / 60, 2)}"
            mean, worst, last = w.errors
            mark = badge("chosen", "ok") if k == 0 else ""
            short = "" if w.complete else badge("too short", "mid")
            state = join([mark, short], " ")
            rows.append(
                (who, str(w.order), taus, percent(w.change, 1), percent(mean), percent(worst), percent(last), wait, state)
            )
    if not rows:
        return section("warmup", "Warm-up", tag("p", "Too few sweeps to follow the friction over time."), *pictures)
    heads = (
        "Joint",
        "Order",
        "Time constants [min]",
        "Cold above hot",
        "Mean error",
        "Max error",
        "End error",
        "Warm-up [min]",
        "",
    )
    note = "Errors are relative to the local friction. The model order follows from the noise of the plateaus."
    pictures.append(figure(data_address(plot_time_constants(study)), "Time constants per joint"))
    return section("warmup", "Warm-up", table(heads, rows, numeric=(1, 3, 4, 5, 6)), tag("p", note, class_="note"), *pictures)


def _robots(study: FrictionStudy) -> Html:
    joints = dict.fromkeys(entry.joint for entry in study.joints)
    shared = [name for name in joints if sum(entry.joint == name for entry in study.joints) > 1]
    pictures = [figure(data_address(plot_robots(study, name)), f"Robots compared, joint {name}") for name in shared]
    return section("robots", "Robots compared", *(pictures or [tag("p", "No joint was studied on two robots.")]))


def _repeatability(found: Repeatability) -> Html:
    rows = []
    for p in found.parameters:
        s, size = p.spread, abs(p.spread.mean) or float("nan")
        drift = percent(p.mix.change, 1) if p.mix is not None and p.mix.order else "none"
        spreads = (percent(s.cycles / size), percent(s.tests / size), percent(s.robots / size))
        rows.append((p.name, number(s.mean), *spreads, number(s.robots_p, 2), drift, number(p.warmup / 60, 3)))
    heads = ("Parameter", "Mean", "Cycles", "Tests", "Robots", "p (robots alike)", "Drift", "Warm-up [min]")
    caption = "Standard deviations between cycles of a test, between tests of a robot and between robots, for settled cycles"
    shown = [figure(data_address(found.plot(p.name)), f"{p.name} over cycles") for p in found.parameters[:6]]
    return section(
        "repeatability", "Repeatability", table(heads, rows, caption, numeric=range(1, 8)), bullets(found.notes), *shown
    )


def _maintenance(checks: Sequence[Maintenance]) -> Html:
    rows = [
        (
            f"{c.history.joint} of {c.history.robot}, {c.history.name}",
            badge("alarm", "bad") if c.alarm else badge("no fault", "ok"),
            f"{percent(c.size, 1)} ± {percent(c.size_std, 1)}" if c.alarm else "\N{EN DASH}",
            number(c.onset / 60, 3) if c.alarm else "\N{EN DASH}",
            number(c.probability, 2),
            percent(c.false_alarm, 1),
            percent(c.detectable, 0),
        )
        for c in checks
    ]
    heads = ("Test", "Answer", "Change", "From [min]", "Probability if healthy", "False alarms per test", "Detectable")
    pictures = [figure(data_address(c.plot()), f"Residual friction of {c.history.name}") for c in checks]
    notes = bullets(dict.fromkeys(note for c in checks for note in c.notes))
    return section("maintenance", "Maintenance", table(heads, rows, numeric=(2, 3, 4, 5, 6)), notes, *pictures)


def _notes(study: FrictionStudy) -> Html:
    lines = [f"{_who(study, entry)}: {note}" for entry in study.joints for note in entry.curves.notes]
    lines += [f"{f.joint} of {f.robot} was not studied: {f.sentence}" for f in study.failures]
    return section("notes", "Notes", bullets(lines) if lines else tag("p", "Nothing was omitted."))
