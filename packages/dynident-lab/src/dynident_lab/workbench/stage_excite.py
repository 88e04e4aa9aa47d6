"""Stage Excite: speed, floor and duration; the search with expected deviations as traffic lights; the robot along the plan."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from nicegui import ui

from dynident.cli.excite import BEYOND
from dynident.files import read_json
from dynident_lab.workbench.gates import OUT, excite_status, excite_words
from dynident_lab.workbench.layout import (
    JobBox,
    banner,
    bound,
    button,
    card,
    choice,
    command,
    controls,
    frame,
    light,
    number,
    text,
)
from dynident_lab.workbench.project import Project

if TYPE_CHECKING:
    from dynident_lab.workbench.app import Page

GOOD, FAIR = 0.1, 0.5  # limits of the relative standard deviation of a parameter: good, fair


def build(page: Page) -> None:
    """Draw the stage."""
    p = page.project
    status, job = excite_status(p), p.jobs.latest("excite")
    with ui.element("div").classes("wb-columns"):
        with card("Motion"):
            _choices(page)
            bound(page, lambda: command(excite_words(p, _next(p))))
            bound(page, lambda: _stale(page))
            with controls(page):
                button("Search for a motion", lambda: page.attempt(lambda: excite(p)), main=status.state != "ok")
            box = JobBox(page, job, "searching for a motion")
        with card("Expected standard deviations"):
            place = ui.element("div")
            if job is not None and job.running:
                with place:
                    text("They appear with the first motion inside the limits.")
                box.details = lambda state: _searching(place, state)
            else:
                with place:
                    _result(page)
    if p.settings.plan and (p.folder / p.settings.plan / "plan.html").exists():
        with ui.element("div").style("margin-top:1.1rem"), card("The robot along the plan"):
            frame(f"{p.settings.plan}/plan.html", "Plan")


def _next(p: Project) -> str:
    used = [int(path.name) for path in (p.folder / "plans").glob("[0-9]*")] if (p.folder / "plans").exists() else []
    return f"plans/{max(used, default=0) + 1}"


def excite(p: Project) -> None:
    """Start the command of this stage."""
    output = p.new_folder("plans")
    files = [*p.robot_files(), *filter(None, [p.settings.limits])]
    p.jobs.start("excite", [excite_words(p, output)], output=output, checksum=p.checksum(excite_words(p, OUT), files))
    p.settings.plan = output
    p.save()


def _choices(page: Page) -> None:
    p = page.project

    def choose(name: str, default: float | None, value: float | None) -> None:
        value = default if value is None else value
        if value != p.choice("excite", name, default):
            page.attempt(lambda: p.choose("excite", name, value, field=True))

    with controls(page):
        with ui.element("div").classes("wb-row"):
            fields = (
                ("speed", "Share of the speed limits [%]", 50, {"min": 1, "max": 100, "step": 5}),
                ("duration", "Duration of the motion [s]", 10.0, {"min": 1, "max": 120, "step": 1}),
                ("budget", "Time for the search [s]", 20.0, {"min": 1, "max": 3600, "step": 5}),
            )
            for name, label, default, options in fields:
                field = number(
                    label,
                    p.choice("excite", name, default),
                    partial(choose, name, default),
                    **options,
                )
                field.style("flex:1 1 9rem")
            field = number("Floor [m]", p.choice("excite", "floor", None), partial(choose, "floor", None), step=0.05)
            field.style("flex:1 1 9rem").props('hint="the base when empty"')
        plans = p.numbered("plans", "plan.json")
        if plans:

            def use(value: str) -> None:
                p.settings.plan = value or ""
                page.attempt(p.save)

            choice("Plan in use", plans, p.settings.plan, use)


def _stale(page: Page) -> None:
    """Warn that the plan in use belongs to other inputs."""
    p = page.project
    status = excite_status(p)
    if status.state == "stale":
        with banner(f"{status.text}{' (waived)' if status.waived else ''}", "mid"):
            if page.writes and not status.waived:
                button("Use it anyway", lambda: page.attempt(lambda: p.waive("excite", status.checksum)))


def lights(names: list[str], relative: list[float | None]) -> None:
    """Show expected relative deviations of base parameters as traffic lights."""
    kinds = [_kind(value) for value in relative]
    good, fair, bad, unknown = (kinds.count(kind) for kind in ("ok", "mid", "bad", ""))
    more = f", {unknown} without a described value to compare with" if unknown else ""
    text(f"After one run {good} are known to 10 % or better, {fair} to 50 %, {bad} worse{more}.")
    with ui.element("div").classes("wb-lights"):
        for name, value, kind in zip(names, relative, kinds, strict=True):
            light(f"{name} {100 * value:.0f} %" if value is not None and kind else name, kind)


def _kind(relative: float | None) -> str:
    """Return the colour of a relative deviation; empty without a described value."""
    if relative is None or relative >= BEYOND:
        return ""
    return "ok" if relative <= GOOD else "mid" if relative <= FAIR else "bad"


def _searching(place: ui.element, state: dict[str, Any]) -> None:
    """Show the lights of the best motion so far."""
    if state.get("names"):
        place.clear()
        with place:
            lights(list(state["names"]), list(state["relative"]))


def _result(page: Page) -> None:
    """Show the expected precision of the plan in use."""
    p = page.project
    plan = p.settings.plan
    job = p.jobs.of_output(plan) if plan else None
    data = job.result() if job is not None and job.state == "ok" else None
    if data is None and plan and (p.folder / plan / "design.json").exists():
        data = read_json(p.folder / plan / "design.json", "a design")
    if not isinstance(data, dict) or "parameters" not in data:
        text("The search maximises the information on the parameters within all limits.")
        return
    if data.get("sentence"):
        banner(str(data["sentence"]), "ok")
    lights([each["name"] for each in data["parameters"]], [each.get("relative") for each in data["parameters"]])
    for sentence in data.get("assumed", []):
        text(str(sentence))
