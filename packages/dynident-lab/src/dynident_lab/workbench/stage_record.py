"""Stage Record: a campaign on a controller or on a virtual robot, with live curves and STOP; or uploaded logs.

`dynident record` moves the robot in a separate process, which watches limits, following error and efforts without any
page. That process stops the robot on request (STOP writes the same file as ``record --tell abort``), and when this
server dies: see `worker`.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from nicegui import ui

from dynident.errors import DynidentError
from dynident_lab.workbench import logs
from dynident_lab.workbench.charts import options
from dynident_lab.workbench.gates import OUT, excite_status, inspect_words, record_status, used_logs
from dynident_lab.workbench.jobs import Job
from dynident_lab.workbench.layout import (
    JobBox,
    banner,
    bound,
    button,
    card,
    choice,
    command,
    controls,
    entry,
    fold,
    number,
    text,
)
from dynident_lab.workbench.live import LiveTail
from dynident_lab.workbench.project import Project

if TYPE_CHECKING:
    from dynident_lab.workbench.app import Bench, Page

SLOW = 0.1  # share of the speed in the first run
PERIOD = 0.04  # update interval of the live curves [s]
PATIENCE = 5.0  # time for a recording to stop before it is interrupted [s]
CURVES = {
    "position": "position [rad, m]",
    "effort": "effort",
    "residual": "effort - model",
    "temperature": "temperature [degC]",
}
VIRTUAL = "virtual"


def build(page: Page) -> None:
    """Draw the stage."""
    p = page.project
    with ui.element("div").classes("wb-columns"):
        with card("Record on a robot"):
            _campaign(page)
        with card("Or upload a log"):
            with controls(page):
                logs.upload(page)
            logs.uses(page)
            logs.how_read(page)
            _understood(page)
    job = p.jobs.latest("record")
    if job is not None and (job.running or job.output in p.numbered("campaigns", "campaign.json")):
        page.below((job.output, job.state), lambda: _live(page, job))


# ---------------------------------------------------------------------- controller
def controller_words(p: Project) -> list[str]:
    """Return the command that serves the virtual robot."""
    pace = p.choice("record", "pace", 5)
    words = ["controller", *p.robot_words(), "--motion-port", "0", "--state-port", "0", "--speed", f"{pace:g}"]
    words += ["--limits", p.settings.limits] if p.settings.limits else []
    return [*words, "--json"]


def address(p: Project) -> str:
    """Return the address of the controller; empty while the virtual robot is not ready."""
    if p.choice("record", "robot", VIRTUAL) != VIRTUAL:
        return str(p.choice("record", "address", ""))
    job = p.jobs.latest("controller")
    data = job.result() if job is not None and job.running and job.process is not None else None
    return str(data["address"]) if data else ""


def record_words(p: Project, output: str, speed: float) -> list[str]:
    """Return the command that records the plan."""
    words = ["record", p.settings.plan, "--controller", address(p) or "ADDRESS", "-o", output]
    words += ["--speed", f"{speed:g}"] if speed != 1.0 else []
    repetitions = int(p.choice("record", "repetitions", 1))
    words += ["--repetitions", str(repetitions)] if repetitions > 1 else []
    if p.choice("record", "watched", False):
        words += ["--model", *p.robot_words()]
    words += ["--yes"] if p.choice("record", "robot", VIRTUAL) != VIRTUAL else []
    return [*words, "--json"]


def start_virtual(p: Project) -> None:
    """Start the virtual robot, replacing a running one."""
    for job in p.jobs.running():
        if job.stage == "record":
            raise DynidentError("a recording is running; stop it first")
        if job.stage == "controller":
            job.cancel()
    p.jobs.start("controller", [controller_words(p)], attached=True)


def record(p: Project, speed: float, confirmed: bool) -> None:
    """Start a recording."""
    if any(job.stage == "record" for job in p.jobs.running()):
        raise DynidentError("a recording is running; stop it first")
    if not excite_status(p).opens:
        raise DynidentError(f"the plan cannot be used: {excite_status(p).text}")
    if p.choice("record", "robot", VIRTUAL) != VIRTUAL and not confirmed:
        raise DynidentError("confirm first that you see the robot and that nobody is in its reach")
    if not address(p):
        raise DynidentError("no controller is connected; start the virtual robot, or give an address")
    output = p.new_folder("campaigns")
    facts = {"plan": p.settings.plan, "speed": speed}
    checksum = p.checksum(record_words(p, OUT, speed), [p.settings.plan])
    p.jobs.start("record", [record_words(p, output, speed)], output=output, checksum=checksum, attached=True, facts=facts)


def stop(bench: Bench) -> None:
    """Stop the robot: request an abort of the recording, and interrupt it if it does not react."""
    job = bench.recording()
    if job is None:
        return
    folder = bench.project.folder / job.output
    if (folder / "campaign.json").exists():
        (folder / "abort").touch()
        threading.Timer(PATIENCE, job.cancel).start()  # even if the page is closed
    else:
        job.cancel()


def end(bench: Bench) -> None:
    """End the jobs of this server: recordings, which stop their robot, and virtual robots."""
    jobs = [job for job in bench.project.jobs.running() if job.facts["attached"]]
    for job in jobs:
        job.cancel()
    for job in jobs:
        if job.process is not None:
            job.process.wait(20.0)


def collect(p: Project) -> None:
    """Use complete recordings at full speed as logs."""
    known = {log.path for log in p.settings.logs}
    for job in p.jobs.jobs:
        if job.stage == "record" and job.output not in known and job.facts["speed"] == 1.0 and job.state == "ok":
            for log in p.settings.logs:  # the plan's own stages divide a campaign
                log.use = "unused"
            logs.add(p, [job.output])


def tried_slowly(p: Project) -> bool:
    """Return whether the plan in use has been run at a tenth of its speed."""
    return any(
        job.stage == "record" and job.facts["plan"] == p.settings.plan and job.facts["speed"] == SLOW and job.state == "ok"
        for job in p.jobs.jobs
    )


# ---------------------------------------------------------------------- the page
def _campaign(page: Page) -> None:
    """Show controller, dry run, and the two runs."""
    p = page.project
    plan = excite_status(p)
    if not p.settings.plan:
        text("No plan yet: create one in the stage Excite, or upload a log.")
        return
    if not plan.opens:
        banner(f"{plan.text}; refresh or accept it in the stage Excite", "mid")
    kind = p.choice("record", "robot", VIRTUAL)

    def choose(name: str, value: Any) -> None:
        if value != p.choice("record", name, None):
            page.attempt(lambda: p.choose("record", name, value, field=name not in ("robot", "address")))

    with controls(page):
        kinds = {VIRTUAL: "virtual robot on this computer", "real": "controller at an address"}
        choice("Robot", kinds, kind, lambda value: choose("robot", value))
        if kind == VIRTUAL:
            with ui.element("div").classes("wb-row"):
                paces = {1: "real time", 5: "5 times as fast", 20: "20 times as fast"}
                choice(
                    "Pace of the virtual robot", paces, p.choice("record", "pace", 5), lambda value: choose("pace", value)
                ).style("flex:1 1 10rem")
                running = any(job.stage == "controller" and job.process for job in p.jobs.running())
                button(
                    "Start it again" if running else "Start the virtual robot",
                    lambda: page.attempt(lambda: start_virtual(p)),
                    main=not running,
                )
            bound(page, lambda: command(controller_words(p)))
            if running:
                text(f"It serves at {address(p)}." if address(p) else "It is starting.")
                if not address(p):
                    page.ticks.append(lambda: page.draw() if address(p) else None)
        else:
            entry(
                "Address",
                p.choice("record", "address", ""),
                lambda value: choose("address", value),
                "simple_message://host:port, lynx://host:port or rtde://host",
            )
        with ui.element("div").classes("wb-row"):
            number(
                "Repetitions",
                p.choice("record", "repetitions", 1),
                lambda value: choose("repetitions", int(value or 1)),
                min=1,
                max=100,
            ).style("flex:0 1 8rem")
            ui.checkbox(
                "Stop when efforts deviate from the model",
                value=bool(p.choice("record", "watched", False)),
                on_change=lambda event: choose("watched", bool(event.value)),
            )
    _runs(page, kind)


def _runs(page: Page, kind: str) -> None:
    """Show dry run, first run and recording."""
    p = page.project
    dry = ["record", p.settings.plan, "--dry-run", "--json"]
    slow = tried_slowly(p)
    with controls(page):
        command(dry)
        button("Dry run", lambda: page.attempt(lambda: p.jobs.start("dry", [dry])))
    job = p.jobs.latest("dry")
    JobBox(page, job, "looking at the plan")
    if job is not None and job.state == "ok" and job.result():
        text(str(job.result()["text"]), "wb-mono")
    with controls(page):
        seen = ui.checkbox("I see the robot, and nobody is in its reach", value=False)
        seen.set_visibility(kind != VIRTUAL)
        bound(page, lambda: command(record_words(p, "campaigns/N", SLOW if not slow else 1.0)))
        with ui.element("div").classes("wb-row"):
            button("First run at 10 %", lambda: page.attempt(lambda: record(p, SLOW, seen.value)), main=not slow)
            full = button("Record", lambda: page.attempt(lambda: record(p, 1.0, seen.value)), main=slow)
            skip = ui.checkbox("without a first run", value=slow)
            skip.set_visibility(not slow)
            full.bind_enabled_from(skip, "value")
    JobBox(page, p.jobs.latest("record"), "recording")
    text("The recording process supervises the robot even if this page is closed, and stops it when the workbench ends.")


def _understood(page: Page) -> None:
    """Show the interpretation of the columns of uploaded logs."""
    p = page.project
    used = [log.path for log in used_logs(p) if log.path not in p.numbered("campaigns", "campaign.json")]
    if not used:
        return
    words = [list(inspect_words(p, name)) for name in used]
    for each in words:  # the stage Check uses the robot
        at = each.index("--robot")
        del each[at : at + 2 + (2 if p.settings.sidecar else 0)]
    checksum = p.checksum([word for each in words for word in each], used)
    job = p.jobs.latest("read")
    if (job is None or job.facts["checksum"] != checksum) and p.settings.effort and page.writes:
        job = p.jobs.start("read", words, checksum=checksum, accepted=[3])
    if not p.settings.effort:
        banner("State the kind of the effort columns; the file does not contain it.", "mid")
        return
    JobBox(page, job, "reading the log")
    if job is None or job.state != "ok":
        return
    for i, each in enumerate(job.facts["commands"]):
        found = job.result(i)
        if found:
            with fold(page, f"How {each[1]} was read", len(used) == 1):
                logs.columns(found)


def _live(page: Page, job: Job) -> None:
    """Show the newest samples of a recording."""
    with card("Live"):
        _live_charts(page, job)


def _live_charts(page: Page, job: Job) -> None:
    p = page.project
    with ui.element("div").classes("wb-row"):
        text(f"{job.output}: {record_status(p).text if job.running else job.state}", "")
        said = text("", "")
    if not job.running:
        JobBox(page, job)
        return
    tail = page.bench.tail(job.output)
    charts: dict[str, ui.echart] = {}
    with ui.element("div").classes("wb-columns"):
        for name, unit in CURVES.items():
            made = options([f"{name} {i}" for i in range(1, 1)], unit, zoom=False)
            charts[name] = ui.echart(made).classes("wb-chart").props(f'role=img aria-label="Live {name}"')
    drawn: list[str] = []

    def show() -> None:
        if not tail.update() and drawn:
            return
        times, curves = tail.curves()
        if not times:
            return
        if drawn != tail.channels:
            drawn[:] = tail.channels
            for name, unit in CURVES.items():
                charts[name].options.clear()
                charts[name].options.update(_live_options(tail, unit))
                charts[name].update()
        said.text = f"{tail.kind}, {tail.count} samples"
        for name, values in curves.items():
            series = [{"data": each} for each in values]
            charts[name].run_chart_method("setOption", {"xAxis": {"data": times}, "series": series})

    ui.timer(PERIOD, show)


def _live_options(tail: LiveTail, unit: str) -> dict[str, Any]:
    """Return a chart of the last seconds: the curves share one time axis, which is sent once."""
    made = options(tail.channels, unit, zoom=False)
    made["xAxis"] |= {"type": "category", "data": [], "name": "", "axisLabel": {"show": False}}
    return made
