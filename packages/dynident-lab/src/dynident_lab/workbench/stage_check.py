"""Stage Check: the findings of `inspect` in the logs, joint by joint, and the windows of fit and validation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from nicegui import run, ui

import dynident as di
from dynident.errors import DynidentError
from dynident_lab.workbench import logs
from dynident_lab.workbench.charts import LogChart
from dynident_lab.workbench.gates import NOT_OK, check_digest, check_status, inspect_words, used_logs
from dynident_lab.workbench.layout import (
    JobBox,
    banner,
    bound,
    button,
    card,
    choice,
    command,
    controls,
    fold,
    light,
    number,
    text,
)
from dynident_lab.workbench.project import LogUse, Project

if TYPE_CHECKING:
    from dynident_lab.workbench.app import Page

SEVERITY = {"error": ("bad", "error"), "warning": ("mid", "warning"), "info": ("", "note")}
SIGNALS = {
    "position": "position [rad, m]",
    "effort": "effort",
    "velocity": "speed [rad/s, m/s]",
    "temperature": "temperature [degC]",
}


def build(page: Page) -> None:
    """Draw the stage."""
    p = page.project
    status = check_status(p)
    with ui.element("div").classes("wb-columns"):
        with card("Logs"):
            logs.uses(page)
            logs.how_read(page)
            chosen = used_logs(p)
            bound(page, lambda: _commands(p))
            if chosen:
                with controls(page):
                    button("Check", lambda: page.attempt(lambda: check(p)), main=status.state != "ok")
            JobBox(page, p.jobs.latest("check"), "looking for faults")
        with card("Findings"):
            _verdict(page)
    if chosen:
        key = ([repr(log) for log in chosen], p.log_words(), p.choice("check", "shown", ""), p.choice("check", "signal", ""))
        page.below(key, lambda: _windows(page, chosen))


def _commands(p: Project) -> None:
    for log in used_logs(p):
        command(inspect_words(p, log.path))


def check(p: Project) -> None:
    """Start the commands of this stage."""
    chosen = used_logs(p)
    if not chosen:
        raise DynidentError("no log is used; choose one for training")
    p.jobs.start("check", [inspect_words(p, log.path) for log in chosen], checksum=check_digest(p), accepted=[NOT_OK])


def _verdict(page: Page) -> None:
    """Show the findings, and let the user accept the result explicitly."""
    p = page.project
    status, job = check_status(p), p.jobs.latest("check")
    if status.state in ("empty", "running"):
        text("The check covers clock, gaps, units, saturation, dead channels, delay, signs, gains and excitation.")
        return
    if status.state in ("stale", "bad"):
        with banner(status.text if not status.waived else f"waived: {status.text}", "mid" if status.waived else "bad"):
            if page.writes and not status.waived:
                button("Accept it anyway", lambda: page.attempt(lambda: p.waive("check", status.checksum)))
    elif status.state == "ok":
        banner(f"ready to identify: {status.text}", "ok")
    if job is None or job.state != "ok":
        return
    for i, words in enumerate(job.facts["commands"]):
        found = job.result(i)
        if not found:
            continue
        text(f"{words[1]}: {found['duration']:.1f} s", "").style("font-weight:620")
        _per_joint(found)
        with fold(page, f"How columns of {words[1]} were interpreted"):
            logs.columns(found)


def _per_joint(found: dict[str, Any]) -> None:
    """Show the findings of a log by joint."""
    joints = list((found.get("log") or {}).get("joints") or [])
    by_joint: dict[str, list[dict[str, Any]]] = {"": []} | {joint: [] for joint in joints}
    for finding in found["findings"]:
        channel = str(finding["channel"]).partition(":")[2]
        named = [j for j in joints if channel == j] or [j for j in joints if f"'{j}'" in finding["sentence"]]
        by_joint[named[0] if named else ""].append(finding)
    fine = [joint for joint, findings in by_joint.items() if joint and not findings]
    if fine:
        by_joint = {joint: findings for joint, findings in by_joint.items() if findings} | {", ".join(fine): []}
    for joint, findings in by_joint.items():
        if not joint and not findings:
            continue
        with ui.element("div").classes("wb-row").style("align-items:flex-start; flex-wrap:nowrap"):
            text(joint or "whole log", "").style("flex:0 0 7rem; overflow-wrap:anywhere")
            with ui.element("div").style("flex:1"):
                if not findings:
                    light("no fault found", "ok")
                for finding in findings:
                    kind, word = SEVERITY.get(finding["severity"], ("", "note"))
                    with ui.element("div").style("display:flex; gap:.5rem; align-items:baseline"):
                        light(word, kind)
                        ui.label(finding["sentence"])


def _windows(page: Page, chosen: list[LogUse]) -> None:
    """Show a log with its windows, which dragging or the fields change."""
    with card("Windows"):
        _window_fields(page, chosen)


def _window_fields(page: Page, chosen: list[LogUse]) -> None:
    p = page.project
    names = [log.path for log in chosen]
    shown = p.choice("check", "shown", names[0])
    log = next((each for each in chosen if each.path == shown), chosen[0])
    signal = p.choice("check", "signal", "position")
    text(
        "Without windows, the whole log is used; a recorded plan is split by its stages, and the last third of a single log "
        "is held out. Zoom with wheel or slider."
    )
    with controls(page), ui.element("div").classes("wb-row"):
        choice("Log", names, log.path, lambda value: page.attempt(lambda: p.choose("check", "shown", value))).style(
            "flex:2 1 10rem"
        )
        choice(
            "Signal",
            {key: key for key in SIGNALS},
            signal,
            lambda value: page.attempt(lambda: p.choose("check", "signal", value)),
        ).style("flex:1 1 7rem")
        mode = ui.toggle(["zoom", "training", "validation"], value="zoom").props("no-caps unelevated toggle-color=primary")
        mode.props('aria-label="Action of dragging"')

    bounds: list[float] = []

    def select(use: str, window: tuple[float, float] | None) -> None:
        if window is not None and not window[0] < window[1]:
            page.say(f"the {use} window starts at {window[0]:g} s and ends at {window[1]:g} s; give an end after the start")
            return
        if getattr(log, use) != window:
            setattr(log, use, window)
            if use == "validation" and window is not None and log.training is None and log.use == "training" and bounds:
                before, after = (bounds[0], window[0]), (window[1], bounds[1])  # the longer remainder is fitted
                log.training = before if before[1] - before[0] >= after[1] - after[0] else after
            page.attempt(p.save)

    with controls(page), ui.element("div").classes("wb-row"):
        for use in ("training", "validation"):
            window = getattr(log, use)
            for k, end in enumerate(("from", "to")):
                field = number(f"{use} {end} [s]", None if window is None else window[k], lambda value: None)
                field.style("flex:1 1 7rem")
                field.on("change", lambda use=use, k=k, field=field: _typed(log, use, k, field.value, select))
            button("whole", lambda use=use: select(use, None), name=f"no {use} window")
    place = ui.element("div").style("width:100%; min-height:400px")

    async def load() -> None:
        try:
            data = await run.io_bound(logs.read, p, log.path)
        except DynidentError as error:
            with place:
                banner(str(error), "mid")
            return
        if data is None:
            return  # the page is closed
        bounds[:] = [float(data.t[0]), float(data.t[-1])]
        with place:
            chart = _chart(data, signal, log, lambda window: select(str(mode.value), window))
        if chart is not None:
            mode.on_value_change(lambda event: chart.brush(event.value != "zoom"))

    ui.timer(0.05, load, once=True)


def _typed(log: LogUse, use: str, k: int, value: Any, select: Any) -> None:
    """Set one end of a window from a typed value; without a window, the other end is that of the log."""
    if value in (None, ""):
        select(use, None)
        return
    window = list(getattr(log, use) or (0.0, 1e9))
    window[k] = float(value)
    select(use, (window[0], window[1]))


def _chart(data: di.Log, signal: str, log: LogUse, select: Any) -> LogChart | None:
    values = getattr(data, signal)
    if values is None or not np.isfinite(values).any():
        text(f"this log has no {signal}")
        return None
    windows = {use: window for use in ("training", "validation") if (window := getattr(log, use)) is not None}
    shown = {use: (max(w[0], float(data.t[0])), min(w[1], float(data.t[-1]))) for use, w in windows.items()}
    return LogChart(data.t, values, data.joints, SIGNALS[signal], shown, select)
