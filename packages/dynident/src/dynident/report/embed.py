"""The data of a report's pictures: thinned signals, the moving robot as points, and bars in SVG.

Signals are thinned without losing a peak and packed as base64 of float32. The robot along a log is drawn by the origins of
links and centres of mass, joined by lines.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynident.arrays import Array
from dynident.identify.fit import Fit
from dynident.identify.score import Score
from dynident.mechanics.closure import close_positions
from dynident.mechanics.dynamics import link_poses
from dynident.mechanism.mechanism import Mechanism
from dynident.mechanism.parameters import Parameters
from dynident.pages import Html, escape, percent, printable, tag
from dynident.signals.dependence import autocorrelation
from dynident.signals.filters import kept_samples

BUDGET = 700_000  # numbers of all signals of a page, about 4 MB
FEWEST = 800  # samples of a signal that are always kept
BINS = 33
LAGS = 60
SCRIPTS = ("core.js", "plots.js", "robot.js", "page.js")


@cache
def script() -> str:
    """Return the script of the page."""
    folder = resources.files("dynident.report") / "assets"
    parts = [(folder / name).read_text(encoding="utf-8") for name in SCRIPTS]
    return '"use strict";\n' + "\n".join(parts)


def packed(values: ArrayLike, kind: str = "<f4") -> str:
    """Return numbers as base64 of little-endian float32 (or another kind)."""
    return base64.b64encode(np.ascontiguousarray(values, dtype=kind).tobytes()).decode("ascii")


def clean(values: ArrayLike) -> list[float]:
    """Return numbers with six digits for JSON; non-finite numbers become zero."""
    return [float(f"{x:.6g}") if np.isfinite(x) else 0.0 for x in np.asarray(values, dtype=float).ravel()]


def log_data(
    score: Score,
    units: Sequence[str],
    most: int,
    other: Array | None = None,
    labels: tuple[str, str] = ("predicted", "description"),
) -> dict[str, Any]:
    """Return a scored log for the page: efforts and residuals per joint; `other` is a second prediction."""
    before = score.described if other is None else other
    series, residual = [], []
    raw = None if score.raw_t is None else score.raw
    seen = np.arange(0) if raw is None else kept_samples(list(raw.T), most)
    step = float(np.median(np.diff(score.t))) if score.t.size > 1 else 1.0
    for j in range(len(score.joints)):
        y, hat, std = score.measured[:, j], score.predicted[:, j], np.nan_to_num(score.std[:, j])
        e = y - hat
        keep = kept_samples((y, e), most)
        beside = None if before is None else before[:, j]
        series.append(
            {
                "raw": None if raw is None else packed(raw[seen, j]),
                "t": packed(score.t[keep]),
                "measured": packed(y[keep]),
                "predicted": packed(hat[keep]),
                "std": packed(std[keep]),
                "other": None if beside is None else packed(beside[keep]),
                "before": None if beside is None else percent(share(y, beside), 1),
                "after": percent(share(y, hat), 1),
            }
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            z = e / std
        counts, edges = np.histogram(np.clip(z[np.isfinite(z)], -4.0, 4.0), bins=BINS, range=(-4.0, 4.0))
        residual.append(
            {
                "counts": clean(counts / max(counts.sum(), 1) / (edges[1] - edges[0])),
                "lags": clean(autocorrelation(e, LAGS)),
                "step": step,
                "white": 2.0 / float(np.sqrt(e.size)),
            }
        )
    return {
        "name": printable(score.name),
        "joints": [printable(name) for name in score.joints],
        "units": list(units),
        "labels": {"predicted": printable(labels[0]), "other": printable(labels[1])},
        "raw_t": None if raw is None or score.raw_t is None else packed(score.raw_t[seen]),
        "series": series,
        "residual": residual,
        "motion": None,
    }


def share(measured: Array, predicted: Array) -> float:
    """Return the relative error ||e|| / ||tau|| of one joint."""
    size = float(np.linalg.norm(measured))
    return float(np.linalg.norm(measured - predicted)) / size if size > 0.0 else float("nan")


def samples_per_signal(scores: Sequence[Score]) -> int:
    """Return the number of samples per signal that the page can hold."""
    signals = 6 * sum(len(score.joints) for score in scores)
    return max(BUDGET // max(signals, 1), FEWEST)


FRAMES = 600


def scene(robot: Mechanism, standard: Parameters, floor: float = 0.0) -> dict[str, Any] | None:
    """Return the drawing of a robot: points (links, then centres of mass), lines, joints; None without a geometry."""
    if robot.own_regressor or not robot.joints:
        return None
    names = [body.name for body in robot.bodies]
    index = {name: i for i, name in enumerate(names)}
    moving = [joint for joint in robot.joints if joint.kind != "fixed"]
    masses: list[dict[str, Any]] = []
    for i, (body, _) in enumerate(_centres(robot, standard)):
        masses.append({"point": len(names) + i, "name": printable(body), "mass": standard[f"m_{body}"]})
    depth = {robot.root: 0}
    for joint in robot.joints:
        depth[joint.child] = depth.get(joint.parent, 0) + 1
    return {
        "points": [printable(name) for name in names] + [str(mass["name"]) for mass in masses],
        "lines": [[index[j.parent], index[j.child], int(j.kind == "fixed")] for j in robot.joints],
        "loops": [[index[loop.body_a], index[loop.body_b]] for loop in robot.loops],
        "joints": [{"point": index[j.child], "name": printable(name)} for j in moving for name in j.coordinates[:1]],
        "masses": masses,
        "heaviest": max((float(mass["mass"]) for mass in masses), default=1.0),
        "tool": index[max(depth, key=depth.__getitem__)],
        "capsules": [],
        "floor": floor,
    }


def motion(fit: Fit, score: Score) -> dict[str, Any] | None:
    """Return the positions of the points of `scene` along a log, and the sizes of the residuals."""
    if score.position is None or not len(score.position):
        return None
    frames = np.unique(np.linspace(0, len(score.position) - 1, min(FRAMES, len(score.position))).astype(int))
    points = scene_points(fit.mechanism, fit.standard, score.position[frames])
    with np.errstate(divide="ignore", invalid="ignore"):
        load = (score.measured - score.predicted)[frames] / score.std[frames]
    return {
        "t": packed(score.t[frames]),
        "points": packed(points),
        "load": packed(np.nan_to_num(load, posinf=0.0, neginf=0.0)),
    }


def scene_points(robot: Mechanism, standard: Parameters, q: Array, others: Sequence[tuple[str, Array]] = ()) -> Array:
    """Return the positions of links, centres of mass and `others` (body, place in its frame) at q, (N, points, 3)."""
    poses = link_poses(robot, close_positions(robot, q) if robot.loops else q, few=True)
    points = [poses[body.name][1] for body in robot.bodies]
    points += [poses[body][1] + poses[body][0] @ place for body, place in (*_centres(robot, standard), *others)]
    return np.stack(points, axis=1)


def _centres(robot: Mechanism, standard: Parameters) -> list[tuple[str, Array]]:
    """Return the bodies with mass and their centres of mass in the link frame."""
    found = []
    for body in robot.tree.bodies:
        mass = standard[f"m_{body}"]
        if mass > 0.0:
            found.append((body, np.array([standard[f"m{k}_{body}"] for k in "xyz"]) / mass))
    return found


ROW, BAR, LEFT, LENGTH, RIGHT = 34, 13, 170, 560, 90
LONGEST = 1.5  # largest share drawn


def paired_bars(rows: Sequence[tuple[str, float, float]], names: tuple[str, str], caption: str) -> Html:
    """Return two bars of shares per row: before (orange) and after (blue)."""
    finite = [x for _, *pair in rows for x in pair if np.isfinite(x)]
    if not finite:
        return Html()
    top = min(max(finite), LONGEST)  # errors of a description may be thousands of per cent
    height = ROW * len(rows)
    parts = []
    for i, (name, *pair) in enumerate(rows):
        y = ROW * i + 2
        short = name if len(name) <= 22 else name[:21] + "\N{HORIZONTAL ELLIPSIS}"
        parts.append(Html(f'<text x="{LEFT - 8}" y="{y + 17}" text-anchor="end">{escape(short)}</text>'))
        for k, (value, kind) in enumerate(zip(pair, ("bar before", "bar"), strict=True)):
            if not np.isfinite(value):
                continue
            width = max(LENGTH * min(value / top, 1.0) if top > 0.0 else 0.0, 1.0)
            beyond = " \N{RIGHTWARDS ARROW}" if value > top else ""
            above = y + BAR * k
            bar = f'<rect class="{kind}" x="{LEFT}" y="{above}" width="{width:.1f}" height="{BAR - 1}" rx="1.5"/>'
            text = f'<text class="light" x="{LEFT + width + 6:.1f}" y="{above + 10}">{percent(value, 1)}{beyond}</text>'
            parts += [Html(bar), Html(text)]
    size = f'viewBox="0 0 {LEFT + LENGTH + RIGHT} {height}" width="{LEFT + LENGTH + RIGHT}" height="{height}"'
    svg = Html(f'<svg {size} role="img" aria-label="{escape(caption)}">{"".join(parts)}</svg>')
    return tag("figure", svg, tag("figcaption", f"{caption} Above {names[0]}, below {names[1]}."))
