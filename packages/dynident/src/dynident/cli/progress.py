"""Progress of long work, on standard error: a bar on a terminal, lines of JSON for programs that request them.

With ``DYNIDENT_PROGRESS=json`` in the environment every step is a line ``{"progress": {"step": 2, "of": 7, "text": "..."}}``.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Protocol

from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeElapsedColumn

from dynident.cli.consoles import note, notes
from dynident.files import visible


class Step(Protocol):
    """Callback that announces the next step of long work, or its progress (advance=0)."""

    def __call__(self, text: str, advance: int = 1) -> None:
        """Show a text."""


@contextmanager
def progress(steps: int, quiet: bool = False) -> Iterator[Step]:
    """Yield a function that announces the next of `steps`; a bar on a terminal, silent elsewhere."""
    if for_programs():
        done = -1

        def line(text: str, advance: int = 1) -> None:
            nonlocal done
            done += advance
            print_progress({"step": done, "of": steps, "text": text})

        yield line
        return
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
    with shown(columns, quiet) as bar:
        task = bar.add_task("starting", total=steps, completed=-1)

        def step(text: str, advance: int = 1) -> None:
            bar.update(task, description=visible(text), advance=advance)

        yield step


def for_programs() -> bool:
    """Return whether a program requested progress as JSON."""
    return os.environ.get("DYNIDENT_PROGRESS") == "json"


def print_progress(state: Mapping[str, object]) -> None:
    """Print a progress state as one line of JSON."""
    notes.print(json.dumps({"progress": state}, allow_nan=False))


@contextmanager
def shown(columns: Sequence[ProgressColumn], quiet: bool) -> Iterator[Progress]:
    """Yield a bar on a terminal, with messages about compilations of more than a second; elsewhere a silent one."""
    hidden = quiet or not notes.is_terminal or notes.is_dumb_terminal
    compiler, teller = logging.getLogger("dynident.graph"), _Teller()
    level = compiler.level
    with Progress(*columns, console=notes, disable=hidden, transient=True) as bar:
        if not hidden:
            compiler.addHandler(teller)
            compiler.setLevel(logging.INFO)
        try:
            yield bar
        finally:
            compiler.removeHandler(teller)
            compiler.setLevel(level)


class _Teller(logging.Handler):
    """Shows log messages as notes."""

    def emit(self, record: logging.LogRecord) -> None:
        """Show one message."""
        if record.levelno >= logging.INFO:
            note(record.getMessage())
