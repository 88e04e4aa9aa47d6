"""What a command says: results on standard output, notes and the progress of long work on standard error."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeElapsedColumn

from dynident.cli.words import in_options
from dynident.errors import MissingExtraError
from dynident.files import to_json, visible

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class _Plain(Console):
    """A console that writes what a terminal would obey as text."""

    def print(self, *objects: Any, **options: Any) -> None:
        super().print(*(visible(x) if isinstance(x, str) else x for x in objects), **options)


class _Notes(_Plain):
    """A console whose loss costs no result: when nobody reads standard error any more, or it is full, it falls silent."""

    def print(self, *objects: Any, **options: Any) -> None:
        try:
            super().print(*objects, **options)
        except OSError:
            self.quiet = True

    def on_broken_pipe(self) -> None:
        self.quiet = True


# Names in a robot are data: no markup and no emoji codes are read in them.
notes = _Notes(stderr=True, highlight=False, soft_wrap=True, markup=False, emoji=False)
out = _Plain(highlight=False, soft_wrap=True, markup=False, emoji=False)


def note(text: str) -> None:
    """Tell something on standard error."""
    notes.print(f"note: {in_options(text)}", style="yellow")


def print_json(data: Any) -> None:
    """Print JSON on standard output."""
    sys.stdout.write(visible(data if isinstance(data, str) else to_json(data)) + "\n")


def save_figures(draw: Callable[[], Mapping[str, Figure]], folder: Path) -> None:
    """Write figures as PNG; without matplotlib say so, since the numbers are worth keeping."""
    try:
        figures = draw()
    except MissingExtraError as error:
        note(f"no figures were written: {error}")
        return
    for name, figure in figures.items():
        figure.savefig(folder / f"{name}.png", dpi=120)


class Step(Protocol):
    """What announces the next step of long work, or tells how far the present one is (advance=0)."""

    def __call__(self, text: str, advance: int = 1) -> None:
        """Show a text."""


@contextmanager
def progress(steps: int, quiet: bool = False) -> Iterator[Step]:
    """Yield a function that announces the next of `steps`; a bar on a terminal, nothing elsewhere."""
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
    with shown(columns, quiet) as bar:
        task = bar.add_task("starting", total=steps, completed=-1)

        def step(text: str, advance: int = 1) -> None:
            bar.update(task, description=visible(text), advance=advance)

        yield step


@contextmanager
def shown(columns: Sequence[ProgressColumn], quiet: bool) -> Iterator[Progress]:
    """Yield a bar on a terminal, above which compilations of more than a second are told; elsewhere nothing is shown."""
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
        """Show one."""
        if record.levelno >= logging.INFO:
            note(record.getMessage())
