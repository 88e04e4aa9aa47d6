"""The server of the workbench: one project, its pages, and the frame that all stages share."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import socket
import webbrowser
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.responses import FileResponse, PlainTextResponse
from nicegui import Client, ui

from dynident import pages
from dynident.cli.options import RobotOptions
from dynident.errors import DynidentError
from dynident.mechanism import Mechanism
from dynident.pages import printable
from dynident_lab.workbench import (
    stage_check,
    stage_excite,
    stage_identify,
    stage_record,
    stage_robot,
    stage_validate,
)
from dynident_lab.workbench.gates import NAMES, STATUS, lock_reason
from dynident_lab.workbench.layout import banner, button, heading
from dynident_lab.workbench.live import LiveTail
from dynident_lab.workbench.project import HIDDEN, STAGES, Project
from dynident_lab.workbench.security import FILE_PATH, Guard
from dynident_lab.workbench.uploads import LARGEST

WATCH = 0.4  # interval of checks for changes of the project [s]
STAGE_PAGES: dict[str, Callable[[Page], None]] = {}
SHOWN = (".html", ".stl", ".glb", ".gltf")  # files shown by a page; others are downloads
MARKS = {"ok": "\N{CHECK MARK}", "bad": "!", "failed": "!", "stale": "\N{ANTICLOCKWISE OPEN CIRCLE ARROW}", "running": "..."}
OVERHEAD = 1_000_000  # bytes of the form data of an upload in addition to its file


class Bench:
    """Shared state of all pages of one server.

    Parameters
    ----------
    project : Project
        Project of this server.
    """

    def __init__(self, project: Project) -> None:
        self.project = project
        self.writer: str | None = None  # id of the client with write access
        self._robot: tuple[Any, Mechanism] | None = None
        self._tail: tuple[str, LiveTail] | None = None

    def robot(self) -> Mechanism:
        """Return the robot of the project, read again after changes of its files."""
        s, p = self.project.settings, self.project
        key = p.checksum(p.robot_words(), p.robot_files())
        if self._robot is None or self._robot[0] != key:
            file = p.folder / s.robot
            options = RobotOptions(sidecar=p.folder / s.sidecar if s.sidecar else None)
            self._robot = (key, options.robot(file if file.exists() else Path(s.robot)))
        return self._robot[1]

    def tail(self, output: str) -> LiveTail:
        """Return the newest samples of a campaign, shared by all pages."""
        if self._tail is None or self._tail[0] != output:
            robot = None
            with contextlib.suppress(DynidentError):
                robot = self.robot()
            self._tail = (output, LiveTail(self.project.folder / output, robot))
        return self._tail[1]

    def recording(self) -> Any:
        """Return the job that moves a robot; None without one."""
        job = self.project.jobs.latest("record")
        return job if job is not None and job.running else None


class Page:
    """One page in a browser.

    Parameters
    ----------
    bench : Bench
        Shared state of the server.
    client : Client
        Connection to the browser.
    """

    def __init__(self, bench: Bench, client: Client) -> None:
        self.bench, self.client = bench, client
        self.project = bench.project
        self.stage = str(self.project.choice("page", "stage", "robot"))
        self.dark = ui.dark_mode(None)
        self.main: ui.element
        self.content: ui.element
        self.charts: ui.element
        self._wanted: tuple[Any, Callable[[], None]] | None = None
        self._charted: Any = None  # key of the shown charts
        self.viewer: ui.element
        self.stop: ui.button
        self.steps: dict[str, Step] = {}
        self.folds: dict[str, bool] = {}
        self.bindings: list[Callable[[], None]] = []
        self._seen: Any = None
        self._changes: Any = None
        self.drawn = 0  # number of times the stage was drawn
        self.ticks: list[Callable[[], None]] = []  # called while a stage is shown

    @property
    def writes(self) -> bool:
        """Whether this page has write access."""
        return self.bench.writer == self.client.id

    def build(self) -> None:
        """Draw the frame."""
        self._claim()
        with ui.element("header").classes("wb-header"):
            heading("dynident workbench", 1)
            ui.label(printable(str(self.project.folder))).classes("wb-folder")
            self.viewer = ui.element("div").classes("wb-row").style("width:auto")
            with self.viewer:
                ui.label("read-only: another window is in use")
                button("Use this window", self.take_over, main=True)
            self.stop = ui.button("STOP", on_click=lambda: stage_record.stop(self.bench)).classes("wb-stop")
            self.stop.props('unelevated no-caps color=red-10 aria-label="Stop the robot"')
            ui.button(icon="dark_mode", on_click=self._theme, color=None).props('flat round dense aria-label="Dark or light"')
        with ui.element("nav").classes("wb-nav").props('aria-label="Stages"'):
            self.steps = {name: Step(self, i, name) for i, name in enumerate(STAGES, 1)}
        with ui.element("main").classes("wb-main") as self.main:
            self.content = ui.element("div")
            self.charts = ui.element("div").style("margin-top:1.1rem")
        with ui.element("div").style("position:absolute; left:-20px; width:10px; height:10px").props("aria-hidden=true"):
            ui.echart({"series": []}).style("width:10px; height:10px")  # loads the library before the first chart
        self.draw()
        ui.timer(WATCH, self.watch)

    def _claim(self) -> None:
        """Take write access if no other window has it."""
        if self.bench.writer is None or self.bench.writer not in Client.instances:
            self.bench.writer = self.client.id

    def watch(self) -> None:
        """Redraw after changes of choices, jobs, files, or write access."""
        self._claim()
        if self.writes:
            stage_robot.refresh(self.project)
            stage_record.collect(self.project)
        if self._stamp() != self._seen:
            self.draw()
        elif (self.project.changes, self.project.stamp()) != self._changes:
            self.refresh()
        for tick in self.ticks:
            tick()

    def _stamp(self) -> Any:
        opened = lock_reason(self.project, self.stage)
        return self.project.stamp(self.stage), self.writes, self.bench.recording() is None, opened

    def draw(self) -> None:
        """Redraw the stage."""
        self._seen = self._stamp()
        self.drawn += 1
        self.main.props(f"data-drawn={self.drawn}")
        self._wanted = None
        self.ticks.clear()
        self.bindings.clear()
        self.content.clear()
        with self.content:
            heading(NAMES[self.stage])
            reason = lock_reason(self.project, self.stage)
            if reason:
                banner(f"Locked. {reason}", "mid")
            if not reason or STATUS[self.stage](self.project).state != "empty":
                STAGE_PAGES[self.stage](self)
        if self._wanted is None or self._wanted[0] != self._charted:
            self.charts.clear()
            self._charted = None
        if self._wanted is not None and self._charted is None:
            self._charted = self._wanted[0]
            with self.charts:
                self._wanted[1]()
        self.refresh()

    def below(self, key: Any, draw: Callable[[], None]) -> None:
        """Draw charts below the stage; they are slow to build and kept while `key` is unchanged."""
        self._wanted = (self.stage, key, self.writes), draw

    def refresh(self) -> None:
        """Show the states of all stages, and elements that depend on single fields."""
        self._changes = (self.project.changes, self.project.stamp())
        self.viewer.set_visibility(not self.writes)
        self.stop.set_visibility(self.bench.recording() is not None)
        for step in self.steps.values():
            step.show()
        for again in self.bindings:
            again()

    def _theme(self) -> None:
        """Change between light and dark."""
        self.dark.value = not self.dark.value
        ui.query("html").props(f"data-theme={'dark' if self.dark.value else 'light'}")

    def show(self, stage: str) -> None:
        """Go to a stage."""
        self.stage = stage
        if self.writes:
            self.project.settings.choices.setdefault("page", {})["stage"] = stage
        self.draw()

    def take_over(self) -> None:
        """Take write access."""
        self.bench.writer = self.client.id
        self.draw()

    def attempt(self, action: Callable[[], Any]) -> None:
        """Run an action of the writer; errors in its inputs are shown in one sentence."""
        if not self.writes:
            self.say("this window is read-only; press 'Use this window' first")
            return
        try:
            action()
        except DynidentError as error:
            self.say(str(error))
            return
        except OSError as error:
            self.say(f"'{error.filename}' cannot be used ({error.strerror})")
            return
        self.watch()

    def say(self, sentence: str) -> None:
        """Show a sentence until it is dismissed."""
        with self.client:
            ui.notify(printable(sentence), type="warning", timeout=0, close_button="OK", position="top", multi_line=True)


class Step:
    """One of the six buttons of the navigation."""

    def __init__(self, page: Page, i: int, name: str) -> None:
        self.page, self.number, self.name = page, i, name
        self.button = ui.element("button").classes("wb-step").props("type=button").on("click", lambda: page.show(name))
        with self.button:
            self.sign = ui.label(str(i)).props("aria-hidden=true")
            with ui.element("span"):
                with ui.element("b"):
                    ui.label(NAMES[name])
                with ui.element("small"):
                    self.text = ui.label("")

    def show(self) -> None:
        """Show the state of the stage."""
        status = STATUS[self.name](self.page.project)
        marks = {
            "ok": "\N{CHECK MARK}",
            "bad": "!",
            "failed": "!",
            "stale": "\N{ANTICLOCKWISE OPEN CIRCLE ARROW}",
            "running": "...",
        }
        self.sign.text = marks.get(status.state, str(self.number))
        self.sign.classes(replace=f"wb-number {status.state}")
        locked = status.state == "empty" and lock_reason(self.page.project, self.name)
        self.text.text = printable("locked" if locked else status.text)
        if self.name == self.page.stage:
            self.button.props("aria-current=step")
        else:
            self.button.props(remove="aria-current")


STAGE_PAGES |= {
    "robot": stage_robot.build,
    "excite": stage_excite.build,
    "record": stage_record.build,
    "check": stage_check.build,
    "identify": stage_identify.build,
    "validate": stage_validate.build,
}


def make_server(project: Project, token: str, port: int) -> tuple[FastAPI, Bench]:
    """Return the application of a project behind its guard."""
    bench = Bench(project)
    style = pages.style() + (resources.files("dynident_lab.workbench") / "workbench.css").read_text(encoding="utf-8")
    server = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)

    @server.get(FILE_PATH + "{path:path}")
    def file(path: str, request: Request) -> Response:
        return _file(project, path, download="download" in request.query_params)

    @server.get("/workbench.css")
    def css() -> Response:
        return Response(style, media_type="text/css", headers={"cache-control": "no-cache"})

    @ui.page("/", title=f"{printable(project.folder.name)} - dynident workbench")
    def index(client: Client) -> None:
        ui.add_head_html('<link rel="stylesheet" href="/workbench.css">')
        ui.colors(primary="#0067a3", warning="#7a5300", positive="#00694c", negative="#a63d00")
        Page(bench, client).build()

    ui.run_with(
        server,
        title="dynident workbench",
        dark=None,
        language="en-US",
        tailwind=False,
        show_welcome_message=False,
        reconnect_timeout=10.0,
    )
    server.add_middleware(Guard, token=token, name=f"dynident_{port}", largest=LARGEST + OVERHEAD)
    return server, bench


def _file(project: Project, name: str, download: bool) -> Response:
    """Return a file of the project for a page or as a download; hidden files are not found."""
    try:
        path = project.path(name)
    except (DynidentError, ValueError, OSError):
        return PlainTextResponse("not a file of this project", 404)
    if not path.is_file() or HIDDEN in path.relative_to(project.folder).parts:
        return PlainTextResponse("not a file of this project", 404)
    shown = path.suffix.lower() in SHOWN and not download
    kind = "text/html; charset=utf-8" if path.suffix == ".html" and shown else "application/octet-stream"
    headers = {"cache-control": "no-cache"}
    return FileResponse(path, media_type=kind, headers=headers, filename=None if shown else path.name)


def serve(folder: Path, port: int, browser: bool, tell: Callable[[str], None]) -> None:
    """Serve a project until interrupted.

    Parameters
    ----------
    folder : path
        Folder of the project.
    port : int
        Port; 0 for any that is free.
    browser : bool
        Whether to open the page in the browser.
    tell : callable
        Receives the address.
    """
    folder.mkdir(parents=True, exist_ok=True)
    project = Project(folder)
    try:
        listener = socket.create_server(("127.0.0.1", port))
    except OSError as error:
        project.close()
        raise DynidentError(f"--port is {port}, which cannot be used ({error.strerror}); give another one, or 0") from error
    number = int(listener.getsockname()[1])
    token = secrets.token_urlsafe(24)
    server, bench = make_server(project, token, number)
    address = f"http://127.0.0.1:{number}/?token={token}"
    tell(address)
    if browser:
        webbrowser.open(address)
    config = uvicorn.Config(server, log_level="error", lifespan="on", ws="websockets-sansio", timeout_graceful_shutdown=2)
    try:
        with contextlib.suppress(KeyboardInterrupt):
            asyncio.run(uvicorn.Server(config).serve(sockets=[listener]))
    finally:
        stage_record.end(bench)
        listener.close()
        project.close()
