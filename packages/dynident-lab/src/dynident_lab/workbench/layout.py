"""Common parts of all stages: commands, jobs with progress and cancel, banners, tables, and fields with memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from nicegui import ui

from dynident.pages import printable
from dynident_lab.workbench.gates import problem
from dynident_lab.workbench.jobs import Job, shown

if TYPE_CHECKING:
    from dynident_lab.workbench.app import Page

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b8860b", "#56b4e9", "#8a5fbf", "#7c8791")
KINDS = {"ok": "ok", "stale": "mid", "running": "mid", "bad": "bad", "failed": "bad", "empty": ""}


def heading(text: str, level: int = 2) -> None:
    """Show a heading."""
    with ui.element(f"h{level}"):
        ui.label(printable(text))


def text(content: str, kind: str = "wb-lead") -> ui.label:
    """Show text; names in it are data, never markup."""
    return ui.label(printable(content)).classes(kind)


def banner(content: str, kind: str = "") -> ui.element:
    """Show a sentence on a coloured background; returns the element, to which buttons can be added."""
    with ui.element("div").classes(f"wb-banner {kind}").props("role=status") as box:
        ui.label(printable(content))
    return box


@contextmanager
def card(title: str = "") -> Iterator[None]:
    """Yield a box with a title."""
    with ui.element("section").classes("wb-card"):
        if title:
            heading(title, 3)
        yield


@contextmanager
def controls(page: Page) -> Iterator[None]:
    """Yield a group of controls, disabled without write access."""
    with ui.element("fieldset").classes("wb-controls") as group:
        if not page.writes:
            group.props("inert")
        yield


def bound(page: Page, draw: Callable[[], None]) -> None:
    """Draw an element that depends on fields, and redraw it when one of them changes."""
    with ui.element("div").classes("wb-bound") as place:
        draw()

    def again() -> None:
        place.clear()
        with place:
            draw()

    page.bindings.append(again)


def fold(page: Page, title: str, opened: bool = False) -> ui.expansion:
    """Show a collapsible part; it keeps its state when the page is redrawn."""
    key = f"{page.stage} {title}"
    made = ui.expansion(printable(title), value=page.folds.get(key, opened)).classes("wb-fold").props("dense")
    made.on_value_change(lambda event: page.folds.update({key: bool(event.value)}))
    return made


def command(words: Sequence[str]) -> None:
    """Show the equivalent command for a shell."""
    line = shown(words)
    with ui.element("div").classes("wb-command"):
        with ui.element("code"):
            ui.label(f"$ {printable(line)}")
        ui.button(icon="content_copy", on_click=lambda: ui.clipboard.write(line), color=None).props(
            'flat dense size=sm aria-label="Copy the command"'
        )


def button(label: str, action: Callable[..., Any], *, main: bool = False, name: str = "") -> ui.button:
    """Show a button."""
    made = ui.button(label, on_click=action, color="primary" if main else None)
    made.props(f"{'unelevated' if main else 'outline'} no-caps")
    if name:
        made.props(f'aria-label="{name}"')
    return made


def number(label: str, value: float | None, change: Callable[[float | None], None], **options: Any) -> ui.number:
    """Show a field for a number, which is passed to `change` when it is complete."""
    field = ui.number(label, value=value, **options).props("outlined dense")

    def changed() -> None:
        change(None if field.value in (None, "") else float(field.value))

    field.on("blur", changed)
    field.on("keydown.enter", changed)
    return field


def entry(label: str, value: str, change: Callable[[str], None], hint: str = "") -> ui.input:
    """Show a field for text, which is passed to `change` when it is complete."""
    field = ui.input(label, value=value).props("outlined dense")
    if hint:
        field.props(f'hint="{hint}"')
    field.on("blur", lambda: change(str(field.value or "").strip()))
    field.on("keydown.enter", lambda: change(str(field.value or "").strip()))
    return field


def choice(label: str, options: dict[Any, str] | list[str], value: Any, change: Callable[[Any], None]) -> ui.select:
    """Show a choice."""
    known = value if value in options else None
    return ui.select(options, label=label, value=known, on_change=lambda event: change(event.value)).props("outlined dense")


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], label: str) -> None:
    """Show a table of text."""
    with ui.element("div").classes("wb-table").props(f'tabindex=0 role=region aria-label="{label}"'), ui.element("table"):
        with ui.element("thead"), ui.element("tr"):
            for title in columns:
                with ui.element("th").props("scope=col"):
                    ui.label(title)
        with ui.element("tbody"):
            for row in rows:
                with ui.element("tr"):
                    for i, cell in enumerate(row):
                        with ui.element("th" if i == 0 else "td").props("scope=row" if i == 0 else ""):
                            ui.label(printable(cell))


def frame(path: str, title: str) -> None:
    """Show a page of the project, such as report.html, in a frame with a separate origin."""
    ui.element("iframe").classes("wb-frame").props(
        f'src="/files/{path}" title="{title}" sandbox="allow-scripts allow-modals allow-downloads"'
    )


def light(label: str, kind: str, tip: str = "") -> None:
    """Show a short word on a coloured background."""
    made = ui.label(printable(label)).classes(f"wb-light {kind}")
    if tip:
        made.tooltip(printable(tip))


class JobBox:
    """Progress, messages and cancel of a job, updated while it runs."""

    def __init__(self, page: Page, job: Job | None, waiting: str = "working") -> None:
        self.page, self.job, self.waiting = page, job, waiting
        self.details: Callable[[dict[str, Any]], None] | None = None
        if job is None:
            return
        if not job.running:
            if job.state in ("failed", "lost", "cancelled"):
                banner(problem(job), "bad" if job.state == "failed" else "mid")
            return
        with ui.element("div").classes("wb-banner mid").props("role=status"):
            self.label = ui.label(waiting)
            self.bar = (
                ui.linear_progress(0.0, show_value=False).props('instant-feedback aria-label="Progress"').style("flex:1 1 8rem")
            )
            if page.writes:
                button("Cancel", job.cancel)
        ui.timer(0.25, self._update)

    def _update(self) -> None:
        if self.job is None or not self.job.running:
            return  # the page is redrawn
        state = self.job.progress()
        self.label.text = printable(str(state.get("text") or self.waiting))
        total = float(state.get("of") or 0.0)
        self.bar.value = min(1.0, float(state.get("step", 0.0)) / total) if total else 0.0
        if self.details is not None and state:
            self.details(state)
