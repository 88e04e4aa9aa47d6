"""The report of a fleet: a page with sortable, searchable tables, usable with a thousand robots, and a page per robot."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

import numpy as np

from dynident import __version__
from dynident.arrays import Array
from dynident.files import write_atomic
from dynident.pages import Html, badge, date, escape, join, number, page, percent, section, several, table, tag
from dynident_lab.fleet.results import Deviation, FleetResult, FleetType, RobotEstimate, file_name, told

BINS, WIDTH, HEIGHT = 24, 120, 28  # of a histogram [px]
LARGEST = 300  # limit of rows in the tables of deviations and of logs

# Sorting by a click on a column's head, searching by typing; both work on the rows of the page.
SCRIPT = """
for (const box of document.querySelectorAll('.scroll')) {
  const rows = [...box.querySelectorAll('tbody tr')];
  if (rows.length < 8) continue;
  const field = document.createElement('input');
  field.type = 'search'; field.className = 'filter'; field.placeholder = 'search'; field.setAttribute('aria-label', 'search');
  const count = document.createElement('span');
  count.className = 'note'; count.textContent = ' ' + rows.length;
  field.addEventListener('input', () => {
    const words = field.value.toLowerCase().split(/\\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase(), hit = words.every(word => text.includes(word));
      row.hidden = !hit; shown += hit;
    }
    count.textContent = ' ' + shown + ' of ' + rows.length;
  });
  box.before(field, count);
  if (rows.length > 40) { box.style.maxHeight = '75vh'; box.style.overflow = 'auto'; }
  box.querySelectorAll('thead th').forEach((head, k) => {
    head.tabIndex = 0; head.setAttribute('role', 'button'); head.style.cursor = 'pointer';
    head.style.position = 'sticky'; head.style.top = 0;
    const value = row => {
      const text = row.children[k].textContent.trim().replace(/\\u2212/g, '-'), x = parseFloat(text);
      return Number.isNaN(x) ? text : x;
    };
    let sign = typeof value(rows[0]) === 'number' ? -1 : 1;  // the largest numbers first
    const sort = () => {
      rows.sort((a, b) => { const x = value(a), y = value(b);
        return sign * (typeof x === 'number' && typeof y === 'number' ? x - y : String(x).localeCompare(String(y))); });
      for (const other of head.parentNode.children) other.removeAttribute('aria-sort');
      head.setAttribute('aria-sort', sign > 0 ? 'ascending' : 'descending');
      sign = -sign;
      rows[0].parentNode.append(...rows);
    };
    head.addEventListener('click', sort);
    head.addEventListener('keydown', event => { if (event.key === 'Enter') sort(); });
  });
}
"""


def write_fleet_report(folder: str | os.PathLike[str], result: FleetResult) -> Path:
    """Write the report of a fleet: ``report.html``, and one page per robot below ``robots/``.

    Parameters
    ----------
    folder : path-like
        Output folder.
    result : FleetResult
        Result of `identify`.

    Returns
    -------
    pathlib.Path
        The page.
    """
    target = Path(folder)
    for robot in result.robots:
        write_atomic(target / "robots" / f"{file_name(robot.serial)}.html", _robot_page(robot, result.type(robot.robot)))
    bad = [robot for robot in result.robots if not robot.verdict.ok]
    deviations = [d for own in result.types for d in own.deviations]
    drifts = [d for own in result.types for d in own.drifts]
    head = join(
        [
            tag("h1", "Fleet report"),
            tag("p", ", ".join(filter(None, (date(), f"dynident {__version__}"))), class_="lead"),
            _cards(result, len(bad), len({d.serial for d in deviations}), len({d.serial for d in drifts})),
        ]
    )
    parts = [
        ("deviations", "Deviations", section("deviations", "Deviations from the type", *_deviations(result))),
        ("drift", "Drift", section("drift", "Drift", *_drifts(result))),
        ("robots", "Robots", section("robots", "Robots", _robots(result))),
    ]
    for own in result.types:
        anchor = f"type-{file_name(own.robot)}"
        parts.append(
            (anchor, own.robot, section(anchor, f"Nominal {own.robot}", *_nominal(own, result.robots), *_detectable(own)))
        )
    parts.append(("logs", "Logs", section("logs", "Logs that were not counted", _logs(result))))
    footer = escape(f"Written by dynident {__version__}. This page loads nothing; its script only sorts and searches.")
    return write_atomic(target / "report.html", page("Fleet report", head, parts, footer, SCRIPT))


def _cards(result: FleetResult, bad: int, deviating: int, drifting: int) -> Html:
    counted = sum(record.counted for record in result.logs)
    rows = f"{sum(r.rows for r in result.robots):,}".replace(",", "\N{NO-BREAK SPACE}")
    cards = [
        ("robots", len(result.robots), f"{len(result.failed)} could not be fitted"),
        ("logs counted", counted, f"of {len(result.logs)}, {rows} equations"),
        ("models not ok", bad, "see their verdicts"),
        ("robots that deviate", deviating, "at the rate of false alarms stated below"),
        ("robots that drift", drifting, "over three months or more"),
    ]
    return tag(
        "dl",
        *(tag("div", tag("dt", label), tag("dd", str(value), tag("small", note))) for label, value, note in cards),
        class_="cards",
    )


def _link(serial: str) -> Html:
    return tag("a", serial, href=quote(f"robots/{file_name(serial)}.html"))  # a browser decodes % signs


def _robots(result: FleetResult) -> Html:
    """Return the table of all robots."""
    worst = {own.robot: _largest(own) for own in result.types}
    rows: list[Sequence[object]] = []
    for robot in result.robots:
        largest = worst[robot.robot].get(robot.serial)
        verdict = (
            badge("ok", "ok") if robot.verdict.ok else badge("not ok" if robot.verdict.validated else "not validated", "bad")
        )
        rows.append(
            (
                _link(robot.serial),
                robot.robot,
                str(len(robot.logs)),
                percent(robot.training),
                percent(robot.held_out),
                verdict,
                number(_score(result, robot), 3),
                "" if largest is None else f"{largest.parameter} {percent(largest.relative, 0)}",
            )
        )
    rows += [(serial, "", "0", "", "", badge("not fitted", "bad"), "", why) for serial, why in result.failed.items()]
    heads = ("serial", "type", "logs", "training error", "held-out error", "verdict", "deviation [std]", "in")
    return table(heads, rows, "Click a column header to sort; every robot has a page.", numeric=(2, 3, 4, 6), short=(0,))


def _score(result: FleetResult, robot: RobotEstimate) -> float | None:
    own = next(t for t in result.types if t.robot == robot.robot)
    return own.scores.get(robot.serial)


def _largest(own: FleetType) -> dict[str, Deviation]:
    found: dict[str, Deviation] = {}
    for deviation in (*own.deviations, *own.watched):
        found.setdefault(deviation.serial, deviation)
    return found


def _deviations(result: FleetResult) -> list[Html]:
    content = []
    for own in result.types:
        content += [tag("p", note, class_="note") for note in own.notes]
        if math.isfinite(own.limit):
            text = (
                f"{own.robot}: a parameter deviates if it differs from the nominal robot by more than {own.limit:.2f} "
                f"standard deviations. If none of {several(len(own.scores), 'robot')} deviated, one or more would be "
                f"reported with probability {own.false_alarms:g}, which also bounds the share of false reports."
            )
            content.append(tag("p", text))
    found = sorted((d for own in result.types for d in own.deviations), key=lambda d: -abs(d.z))
    content.append(_changes(found, "change") if found else tag("p", "No robot deviates."))
    return [*content, *_watched(result)]


def _watched(result: FleetResult) -> list[Html]:
    """Return robots below the limit with notable deviations, and the number expected by chance."""
    found = sorted((d for own in result.types for d in own.watched), key=lambda d: -abs(d.z))
    if not found:
        return []
    expected = sum(own.false_alarms * len(own.scores) for own in result.types)
    text = (
        f"Below the limit and therefore not reported; {number(expected, 2)} healthy robots are expected here. Record new "
        "logs of the robots nearest to the limit first."
    )
    return [tag("h3", "To watch"), tag("p", text), _changes(found, "change")]


def _drifts(result: FleetResult) -> list[Html]:
    found = sorted((d for own in result.types for d in own.drifts), key=lambda d: -abs(d.z))
    limits = [own for own in result.types if math.isfinite(own.drift_limit)]
    text = "; ".join(f"{own.robot}: limit {own.drift_limit:.2f} standard deviations" for own in limits)
    note = tag("p", text or "Drift needs at least three periods (months) of a robot.", class_="note")
    if not found:
        return [note, tag("p", "No robot drifts.")] if limits else [note]
    robots = {robot.serial: robot for robot in result.robots}
    names = {own.robot: own.parameters for own in result.types}
    curves = [
        tag("figure", _curve(robots[d.serial], names[d.robot].index(d.parameter)), tag("figcaption", told(d, " per year")))
        for d in found[:12]
    ]
    return [note, _changes(found, "change per year"), *curves]


def _changes(found: Sequence[Deviation], label: str) -> Html:
    rows = [
        (
            _link(d.serial),
            d.robot,
            d.parameter,
            f"{number(d.change)} \N{PLUS-MINUS SIGN} {number(d.std, 2)} {d.unit}",
            percent(d.relative, 1),
            number(abs(d.z), 3),
            d.chance,
            ", ".join(d.alike),
        )
        for d in found[:LARGEST]
    ]
    heads = ("serial", "type", "parameter", label, "of nominal", "std", "by chance", "indistinguishable from")
    note = "by chance: probability that a healthy robot differs this much in any parameter"
    return table(heads, rows, note, numeric=(3, 4, 5, 6), short=(0,))


def _nominal(own: FleetType, robots: Sequence[RobotEstimate]) -> list[Html]:
    """Return nominal parameters with their spread and the distribution of the robots."""
    if own.population is None:
        return [tag("p", "No nominal robot: too few robots.")]
    values = np.array([robot.values for robot in robots if robot.robot == own.robot])
    rows = [
        (
            name,
            number(own.population.mean[k]),
            number(own.population.spread[k], 3),
            percent(own.population.spread[k] / abs(own.population.mean[k]) if own.population.mean[k] else math.nan, 1),
            _histogram(values[:, k]),
        )
        for k, name in enumerate(own.population.names)
    ]
    content = [table(("base parameter", "nominal", "spread (std)", "relative", "robots"), rows, numeric=(1, 2, 3))]
    if own.temperature:
        slopes = [(name, number(slope, 3)) for name, slope in own.temperature.items()]
        content.append(table(("joint term", "change per \N{DEGREE SIGN}C"), slopes, "Effect of temperature", numeric=(1,)))
    return content


def _detectable(own: FleetType) -> list[Html]:
    """Return the smallest detectable change of each parameter."""
    if not np.any(np.isfinite(own.detectable)):
        return []
    rows = [
        (name, f"{number(value, 4)} {unit}", f"{number(change, 3)} {unit}", percent(share, 1))
        for name, value, unit, change, share in zip(
            own.parameters, own.nominal, own.units, own.detectable, own.detectable_relative, strict=True
        )
        if math.isfinite(change)
    ]
    hidden = len(own.parameters) - len(rows)
    text = (
        "Smallest change in one robot with typical logs that is reported in 9 of 10 cases, at a rate of "
        f"{own.false_alarms:g}. More logs or a suitable excitation lower it."
    )
    unseen = f" {several(hidden, 'parameter')} more cannot be determined from these logs." if hidden else ""
    heads = ("parameter", "nominal", "smallest change named", "of nominal")
    return [tag("h3", "Smallest change that would be reported"), tag("p", text + unseen), table(heads, rows, numeric=(1, 2, 3))]


def _logs(result: FleetResult) -> Html:
    bad = result.refused
    if not bad:
        return tag("p", "Every log was counted once.")
    rows = [(record.path, record.serial, record.sentence) for record in bad[:LARGEST]]
    more = f" ({len(bad) - LARGEST} more in fleet.json)" if len(bad) > LARGEST else ""
    return table(("log", "serial", "why"), rows, f"{several(len(bad), 'log')} not counted{more}", wide=(2,))


# ---- drawings ------------------------------------------------------------------------------------------------------------


def _svg(content: str, label: str, width: int = WIDTH, height: int = HEIGHT) -> Html:
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    return Html(f'<svg {size} role="img" aria-label="{escape(label)}">{content}</svg>')


def _histogram(values: Array) -> Html:
    """Return the distribution of values as bars."""
    counts, edges = np.histogram(values, BINS)
    step, top = WIDTH / BINS, max(int(counts.max()), 1)
    bars = "".join(
        f'<rect x="{k * step:.1f}" y="{HEIGHT * (1 - c / top):.1f}" width="{step - 0.6:.1f}" height="{HEIGHT * c / top:.1f}"/>'
        for k, c in enumerate(counts.tolist())
        if c
    )
    return _svg(f'<g fill="#0072b2">{bars}</g>', f"{values.size} robots from {edges[0]:.4g} to {edges[-1]:.4g}")


def _curve(robot: RobotEstimate, parameter: int) -> Html:
    """Return the change of a parameter over the periods, with one standard deviation."""
    width, height = 360, 110
    day = np.array([period.day for period in robot.periods])
    d = np.array([period.change[parameter] for period in robot.periods])
    precision = np.array([period.precision[parameter] for period in robot.periods])
    e = 1.0 / np.sqrt(np.where(precision > 0.0, precision, np.inf))
    low, high = float(np.min(d - e)), float(np.max(d + e))
    x = 10 + (width - 20) * (day - day[0]) / max(float(day[-1] - day[0]), 1.0)
    y, scale = 10 + (height - 20) * (high - d) / max(high - low, 1e-300), (height - 20) / max(high - low, 1e-300)
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))
    bars = "".join(
        f'<line x1="{a:.1f}" x2="{a:.1f}" y1="{b - s:.1f}" y2="{b + s:.1f}"/>' for a, b, s in zip(x, y, e * scale, strict=True)
    )
    names = f"{robot.periods[0].name} to {robot.periods[-1].name}: {d[0]:.3g} to {d[-1]:.3g}"
    line = f'<polyline points="{points}" fill="none" stroke="#0072b2"/><g stroke="#5b6770">{bars}</g>'
    return _svg(line, names, width, height)


def _robot_page(robot: RobotEstimate, own: FleetType) -> Html:
    """Return the page of one robot."""
    fit = quote(f"{file_name(robot.serial)}.fit.json")
    head = join(
        [
            tag("h1", f"Robot {robot.serial}"),
            tag("p", f"type {robot.robot}, {several(len(robot.logs), 'log')}, {robot.rows} equations", class_="lead"),
            tag("p", tag("a", "all robots", href="../report.html"), ", ", tag("a", "its fit", href=fit)),
        ]
    )
    checks = [(badge("ok", "ok") if c.ok else badge("not ok", "bad"), c.name, c.sentence) for c in robot.verdict.checks]
    parts = [("verdict", "Verdict", section("verdict", "Verdict", table(("", "check", "finding"), checks, wide=(2,))))]
    said = [tag("p", told(d, "")) for d in own.deviations if d.serial == robot.serial]
    said += [tag("p", f"below the limit, to be watched: {told(d, '')}") for d in own.watched if d.serial == robot.serial]
    said += [tag("p", told(d, " per year")) for d in own.drifts if d.serial == robot.serial]
    if said:
        parts.append(("deviations", "Deviations", section("deviations", "Deviations and drift", *said)))
    if own.population is not None:
        rows = [
            (
                label,
                number(value),
                number(std, 2),
                number(mean),
                number(spread, 2),
                number((value - mean) / math.hypot(std, spread), 2),
            )
            for label, value, std, mean, spread in zip(
                own.population.names, robot.values, robot.std, own.population.mean, own.population.spread, strict=True
            )
        ]
        heads = ("base parameter", "value", "std", "nominal", "spread", "difference [std]")
        content = table(heads, rows, "Against the nominal robot of its type", numeric=(1, 2, 3, 4, 5))
        parts.append(("parameters", "Parameters", section("parameters", "Parameters", content)))
    logs = table(("log",), [(path,) for path in robot.logs])
    parts.append(("logs", "Logs", section("logs", "Logs", logs)))
    return page(f"Robot {robot.serial}", head, parts, escape(f"Written by dynident {__version__}."), SCRIPT)
