"""`write_plan_page`: an HTML page of a plan before its execution: robot, joints within limits, expected precision."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from dynident import __version__
from dynident.excitation.experiment import Experiment
from dynident.excitation.limits import Capsule, Floor
from dynident.excitation.limits_file import capsules_of
from dynident.excitation.plan import Plan
from dynident.files import write_atomic
from dynident.mechanism.mechanism import Mechanism
from dynident.pages import Html, escape, join, number, page, percent, printable, section, several, table, tag
from dynident.report import embed
from dynident.report.sections import plot

FRAMES = 400  # poses of the animation
CURVE = 1500  # samples of a curve


def write_plan_page(path: str | os.PathLike[str], experiment: Experiment) -> Path:
    """Write a page of a plan: the moving robot, joints within their limits, expected deviations of all parameters.

    The page is one self-contained file, like the report.

    Parameters
    ----------
    path : path-like
        File to write, as in "plan.html".
    experiment : Experiment
        Result of `dynident.excite`.
    """
    robot, plan = experiment.design.mechanism, next(iter(experiment.plans.values()))
    assert robot is not None, "an experiment has a robot"
    limits = experiment.design.problem.limits
    floor = next((limit.height for limit in limits.others if isinstance(limit, Floor)), None)
    drawing, motion = _animation(robot, plan, floor or 0.0)
    series, titles, units = _curves(experiment, plan)
    data = {"logs": [{"joints": titles, "units": units, "series": series, "motion": motion}], "scene": drawing}
    picture = plot("robot", f"{robot.name} moving along the plan", 0)
    grid = "the floor" if floor is not None else "the height of the base, no floor is kept"
    hint = f"Drag to rotate; ctrl and wheel to zoom. Shaded: capsules around the links. Grid: {grid}."
    curves = [plot("limits", title, 0, j) for j, title in enumerate(titles)]
    parts = [
        *(
            [("robot", "Robot", section("robot", "The robot along the plan", tag("p", hint, class_="note"), picture))]
            if drawing
            else []
        ),
        ("joints", "Joints", section("joints", "Joints within their limits", tag("p", LIMITS, class_="note"), *curves)),
        ("parameters", "Parameters", section("parameters", "Expected precision of the parameters", *_parameters(experiment))),
        ("limits", "Limits", section("limits", "Limits and assumptions", *_limits(experiment))),
    ]
    footer = escape(f"Written by dynident {__version__}. This page is self-contained: it loads nothing.")
    title = f"{robot.name} - plan {plan.identity}"
    return write_atomic(path, page(title, _headline(experiment, plan, robot), parts, footer, embed.script(), data))


LIMITS = "Shaded: the range that the plan may use, after speed scale and margins."


def _headline(experiment: Experiment, plan: Plan, robot: Mechanism) -> Html:
    margins = experiment.design.margins()
    tightest = min(margins, key=lambda name: margins[name])
    cards = [
        ("One cycle", f"{plan.curve.duration:.1f} s", several(len(plan.stages), "stage")),
        ("Recommended", several(experiment.repetitions, "repetition"), "of the excitation (--repetitions)"),
        ("Tightest limit", percent(margins[tightest], 1), f"left of {tightest}"),
        ("Rate", f"{plan.rate:g} Hz", "at which it is sent and recorded"),
    ]
    boxes = (tag("div", tag("dt", name), tag("dd", value, tag("small", remark))) for name, value, remark in cards)
    return join(
        [
            tag("h1", robot.name),
            tag("p", f"Plan {plan.identity}, before the robot moves", class_="lead"),
            tag("div", tag("p", experiment.sentence()), class_="banner ok", role="status"),
            tag("dl", *boxes, class_="cards"),
        ]
    )


def _animation(robot: Mechanism, plan: Plan, floor: float) -> tuple[dict[str, Any] | None, dict[str, Any]]:
    """Return the drawing of the robot, and its motion along one cycle."""
    drawing = embed.scene(robot, robot.parameters, floor)
    t = np.linspace(0.0, plan.curve.duration, FRAMES)
    order = [plan.coordinates.index(name) for name in robot.coordinate_names]
    q = plan.curve(t)[0][:, order]
    capsules: tuple[Capsule, ...] = capsules_of(robot)
    ends = [(capsule.link, np.asarray(end, dtype=float)) for capsule in capsules for end in (capsule.start, capsule.end)]
    if drawing is None:
        return None, {}
    first = len(drawing["points"])
    drawing["points"] += [printable(link) for link, _ in ends]
    drawing["capsules"] = [[first + 2 * i, first + 2 * i + 1, float(c.radius)] for i, c in enumerate(capsules)]
    points = embed.scene_points(robot, robot.parameters, q, ends)
    return drawing, {"t": embed.packed(t), "points": embed.packed(points), "load": None}


def _curves(experiment: Experiment, plan: Plan) -> tuple[list[dict[str, Any]], list[str], list[str]]:
    """Return positions and speeds over time with their limits."""
    limits = experiment.design.problem.limits
    t = np.linspace(0.0, plan.curve.duration, CURVE)
    q, v, _ = plan.curve(t)
    series: list[dict[str, Any]] = []
    titles: list[str] = []
    units: list[str] = []
    for i, name in enumerate(plan.coordinates):
        low, high, fast = (float(x[limits.coordinates.index(name)]) for x in (limits.lower, limits.upper, limits.velocity))
        for y, bounds, what, unit in ((q, (low, high), "position", "rad or m"), (v, (-fast, fast), "speed", "rad/s or m/s")):
            known = np.isfinite(bounds).all()
            title = f"{printable(name)}, {what}"
            entry = {"t": embed.packed(t), "y": embed.packed(y[:, i]), "title": title}
            series.append(entry | {"low": bounds[0] if known else None, "high": bounds[1] if known else None})
            titles.append(title)
            units.append(unit)
    return series, titles, units


def _parameters(experiment: Experiment) -> list[object]:
    """Return the expected standard deviation of every base parameter."""
    design, runs = experiment.design, experiment.repetitions
    base, known = design.exact.base, design.exact.mechanism.parameters
    values, units = base.values(known.values), known.units
    rows = [
        (
            name,
            number(float(value), 4),
            number(float(std), 3),
            percent(float(relative)),
            percent(float(relative) / runs**0.5),
            units[int(c)],
        )
        for name, value, std, relative, c in zip(
            design.exact.names, values, design.deviations(), experiment.relative_deviations(), base.columns, strict=True
        )
    ]
    heads = ("Base parameter", "Description", "Std, one run", "Relative", f"After {several(runs, 'run')}", "Unit")
    return [table(heads, rows, numeric=(1, 2, 3, 4))]


def _limits(experiment: Experiment) -> list[object]:
    """Return the source of the limits, the assumptions, and the margin to each limit."""
    rows = [(name, percent(value, 1)) for name, value in sorted(experiment.design.margins().items(), key=lambda item: item[1])]
    notes = [tag("p", f"Limits: {experiment.source}."), *(tag("p", text) for text in experiment.notes)]
    return [*notes, table(("Limit", "Left"), rows, numeric=(1,))]
