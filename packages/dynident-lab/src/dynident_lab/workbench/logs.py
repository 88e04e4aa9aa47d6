"""Logs of a project: selection and upload, interpretation of their columns, and their signals."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nicegui import ui

import dynident as di
from dynident.cli.options import EFFORTS, LogOptions
from dynident_lab.campaigns.log import is_campaign
from dynident_lab.workbench.layout import choice, controls, entry, table, text
from dynident_lab.workbench.project import LOG_ENDINGS, LogUse, Project
from dynident_lab.workbench.uploads import LARGEST, LOGS, save_upload

if TYPE_CHECKING:
    from dynident_lab.workbench.app import Page

USES = {"training": "training", "validation": "validation", "unused": "not used"}


def upload(page: Page) -> None:
    """Show the drop area for logs."""
    p = page.project

    async def uploaded(event: Any) -> None:
        saved: list[Path] = []
        for file in event.files:
            data = await file.read()
            page.attempt(partial(keep, saved, p.folder / "logs", file.name, data, LOGS))
        page.attempt(lambda: add(p, [p.relative(path) for path in saved if path.name.lower().endswith(LOG_ENDINGS)]))

    made = ui.upload(
        label="Drop logs: CSV, npz, MATLAB, Parquet, HDF5, MCAP, or a .zip",
        multiple=True,
        auto_upload=True,
        max_file_size=LARGEST,
        on_multi_upload=uploaded,
        on_rejected=lambda: page.say(
            f"a file is larger than {LARGEST // 1_000_000} MB; copy it into '{p.folder / 'logs'}' instead"
        ),
    )
    made.props('flat hide-upload-btn aria-label="Log files"')


def keep(saved: list[Path], folder: Path, name: str, data: bytes, endings: Sequence[str]) -> None:
    """Save an uploaded file and add the written files to a list."""
    saved += save_upload(folder, name, data, endings)


def add(p: Project, names: list[str]) -> None:
    """Use logs for training."""
    known = {log.path for log in p.settings.logs}
    p.settings.logs += [LogUse(name) for name in names if name not in known]
    p.save()


def how_read(page: Page) -> None:
    """Show the interpretation of the columns of all logs."""
    p = page.project
    s = p.settings

    def change(name: str, value: str | None) -> None:
        if getattr(s, name) != (value or ""):
            setattr(s, name, value or "")
            page.attempt(lambda: p.save(field=name != "effort"))

    with controls(page), ui.element("div").classes("wb-row"):
        options = {"": "not chosen", **{kind: kind.replace("_", " ") for kind in EFFORTS}}
        choice("The effort columns are", options, s.effort, lambda value: change("effort", value)).style("flex:1 1 11rem")
        entry("Drive gains", s.gain, lambda value: change("gain", value), "N m/A; one, or one per channel").style(
            "flex:1 1 9rem"
        )
        entry("Units", s.unit, lambda value: change("unit", value), "as position=deg time=ms").style("flex:1 1 9rem")
        entry("Joint names", s.joints, lambda value: change("joints", value), "comma-separated, if the log has none").style(
            "flex:1 1 9rem"
        )


def uses(page: Page) -> None:
    """Show every log of the folder and its use."""
    p = page.project
    known = {log.path: log for log in p.settings.logs}
    names = list(dict.fromkeys([*(log.path for log in p.settings.logs if (p.folder / log.path).exists()), *p.logs()]))
    if not names:
        text("No log yet: drop one, record one, or copy one into the folder.")
        return

    def change(name: str, use: str) -> None:
        if name in known:
            known[name].use = use
        else:
            p.settings.logs.append(LogUse(name, use))
        page.attempt(p.save)

    with controls(page):
        for i, name in enumerate(names, 1):
            with ui.element("div").classes("wb-row"):
                text(name, "").style("flex:2 1 10rem; overflow-wrap:anywhere")
                use = known[name].use if name in known else "unused"
                choice(f"use of log {i}", USES, use, partial(change, name)).style("flex:1 1 8rem")


def columns(found: dict[str, Any]) -> None:
    """Show the interpretation of each column of a log according to `inspect`."""
    log = found.get("log") or {}
    units, rows = log.get("units") or {}, []
    for role, names in (log.get("columns") or {}).items():
        known = units.get(role) or []
        kind = f"{role} ({log['effort_kind'].replace('_', ' ')})" if role == "effort" else role
        for i, (column, joint) in enumerate(zip(names, log["joints"], strict=False)):
            unit = known[i] if i < len(known) and known[i] else "SI"
            rows.append([column, joint, kind, unit])
    if log.get("time_column"):
        rows.insert(0, [str(log["time_column"]), "", "time", ""])
    if rows:
        table(("column", "joint or motor", "signal", "unit in the file"), rows, "How columns were interpreted")
    for sentence in log.get("conversions") or []:
        text(str(sentence))


def read(p: Project, name: str) -> di.Log:
    """Return a log, read like in the commands."""
    if is_campaign(p.folder / name):
        return di.Log.read(p.folder / name)
    s = p.settings
    options = LogOptions(effort=s.effort or None, joints=s.joints or None, gain=s.gain or None, unit=tuple(s.unit.split()))
    return options.reader()(p.folder / name)
