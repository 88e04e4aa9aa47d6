"""Stage Validate and export: the verdict first, the report, and every export with its read-back error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nicegui import ui

from dynident.errors import DynidentError
from dynident.mechanism.files import is_patched
from dynident_lab.workbench.gates import chosen_run, headline, identify_status, reading, verdict_of
from dynident_lab.workbench.jobs import Job
from dynident_lab.workbench.layout import (
    JobBox,
    banner,
    button,
    card,
    choice,
    command,
    controls,
    frame,
    heading,
    light,
    table,
    text,
)
from dynident_lab.workbench.project import Project

if TYPE_CHECKING:
    from dynident_lab.workbench.app import Page

TARGETS = {
    "urdf": "URDF with sidecar",
    "mujoco": "MuJoCo",
    "pinocchio": "Pinocchio",
    "gazebo": "Gazebo",
    "drake": "Drake",
    "c": "C code for a controller",
    "fmu": "FMU",
}


def build(page: Page) -> None:
    """Draw the stage."""
    p = page.project
    run = chosen_run(p)
    verdict = verdict_of(p, run)
    if verdict is None:
        text("No run yet: identify first.")
        return
    with banner(f"{run}: {headline(verdict)}", "ok" if verdict.get("ok") else "bad"):
        pass
    status = identify_status(p)
    if status.state == "stale":
        banner(f"{status.text}{' (waived)' if status.waived else ''}", "mid")
    with ui.element("div").classes("wb-columns"):
        with card("Checks"):
            for check in sorted(verdict["checks"], key=lambda each: bool(each["ok"])):
                with ui.element("div").style("display:flex; gap:.6rem; align-items:baseline"):
                    light("passed" if check["ok"] else "failed", "ok" if check["ok"] else "bad")
                    with ui.element("div"):
                        ui.label(str(check["sentence"]))
                        if not check["ok"] and check["next_step"]:
                            text(str(check["next_step"]))
        with ui.element("div").classes("wb-stack"):
            with card("Export"):
                _exports(page, run)
            with card("Payload for UR, Franka and KUKA"):
                _payload(page, run)
    with ui.element("div").style("margin-top:1.1rem"), card("Report"):
        with ui.element("div").classes("wb-row"):
            ui.link("Open the report in its own tab", f"/files/{run}/report.html", new_tab=True)
            ui.link("Download the report", f"/files/{run}/report.html?download")
            text("Its button 'PDF' prints it, or saves it as PDF.")
        frame(f"{run}/report.html", "Report of the run")


def export_words(p: Project, run: str, target: str, output: str) -> list[str]:
    """Return the command that exports a run for a program."""
    fit = f"{run}/fit.json"
    file = p.folder / p.settings.robot
    own = [p.settings.robot, fit] if file.is_file() and is_patched(file) else [fit]
    side = ["--sidecar", p.settings.sidecar] if p.settings.sidecar and len(own) == 2 else []
    if target == "c":
        return ["derive", fit, "--c", "--friction", "smooth=0.02", "-o", output, "--json"]
    if target == "urdf":
        return ["export", *own, *side, "-o", f"{output}/identified.urdf", "--json"]
    if target == "fmu":
        return ["export", fit, "--for", "fmu", "-o", f"{output}/robot.fmu", "--json"]
    return ["export", *own, *side, "--for", target, "-o", output, "--json"]


def _exports(page: Page, run: str) -> None:
    """Show buttons for every target and finished exports with their read-back error."""
    p = page.project

    def export(target: str) -> None:
        if any(job.stage == "export" for job in p.jobs.running()):
            raise DynidentError("an export is being written; wait for it, or cancel it")
        output = p.new_folder("exports")
        p.jobs.start("export", [export_words(p, run, target, output)], output=output, facts={"target": target, "run": run})

    with controls(page), ui.element("div").classes("wb-row"):
        for target, label in TARGETS.items():
            button(label, lambda target=target: page.attempt(lambda: export(target)), name=f"Export {label}")
    jobs = [job for job in reversed(p.jobs.jobs) if job.stage == "export"]
    if not jobs:
        text("Each export is read back and compared. The command appears with its result.")
    JobBox(page, jobs[0] if jobs else None, "exporting")
    for job in [job for job in jobs if job.state == "ok"][:8]:
        _exported(p, job)


def _exported(p: Project, job: Job) -> None:
    """Show one export: its error, its files, its command."""
    data = job.result() or {}
    label = TARGETS.get(str(job.facts.get("target")), "export")
    with ui.expansion(f"{label} of {job.facts.get('run')}: {read_back(data)}", value=False).classes("w-full").props("dense"):
        command(job.facts["commands"][0])
        for path in sorted((p.folder / job.output).rglob("*")):
            if path.is_file():
                name = p.relative(path)
                ui.link(name, f"/files/{name}?download")
        for sentence in (*data.get("impossible", []), *data.get("notes", [])):
            text(str(sentence))


def read_back(data: dict[str, Any]) -> str:
    """Return the result of reading an export back."""
    found = next(
        (data[key] for key in ("difference", "error", "largest", "deviation") if isinstance(data.get(key), float)), None
    )
    if found is not None:
        return f"read back, largest difference {found:.1e}"
    return "written"


def _payload(page: Page, run: str) -> None:
    """Identify a load with the arm of this run."""
    p = page.project
    names = [name for name in dict.fromkeys([*(log.path for log in p.settings.logs), *p.logs()]) if (p.folder / name).exists()]
    try:
        links = [body.name for body in page.bench.robot().bodies][1:]
    except DynidentError as error:
        banner(str(error), "mid")
        return
    log, link = p.choice("payload", "log", ""), p.choice("payload", "link", links[-1] if links else "")
    text("Give a log with the load on the arm of this run. Results use the conventions of UR, Franka and KUKA controllers.")
    words = [
        "payload",
        *p.robot_words(),
        "--fit",
        f"{run}/fit.json",
        "--loaded",
        log,
        "--link",
        link,
        *reading(p, log or "."),
        "--json",
    ]
    with controls(page):
        with ui.element("div").classes("wb-row"):
            choice(
                "Log with the load", names, log, lambda value: page.attempt(lambda: p.choose("payload", "log", value))
            ).style("flex:2 1 9rem")
            choice("Link", links, link, lambda value: page.attempt(lambda: p.choose("payload", "link", value))).style(
                "flex:1 1 7rem"
            )
        if log:
            command(words)
            button("Identify the load", lambda: page.attempt(lambda: p.jobs.start("payload", [words])))
    job = p.jobs.latest("payload")
    JobBox(page, job, "identifying the load")
    data = job.result() if job is not None and job.state == "ok" else None
    if not data:
        return
    heading(f"{data['mass']:.4g} kg ± {data['mass_std']:.2g} kg", 3)
    for sentence in data.get("findings", []):
        banner(str(sentence if isinstance(sentence, str) else sentence.get("sentence", "")), "mid")
    rows = []
    for maker, numbers in (data.get("conventions") or {}).items():
        for key, value in numbers.items():
            shown = ", ".join(f"{x:.5g}" for x in value) if isinstance(value, list) else f"{value:.5g}"
            rows.append([str(maker), str(key), shown])
    if rows:
        table(("controller", "quantity", "value"), rows, "Payload in the conventions of controllers")
