"""Output of commands: results on standard output, notes on standard error."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from dynident.cli.words import in_options
from dynident.errors import MissingExtraError
from dynident.files import to_json, visible

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class _Plain(Console):
    """A console that escapes control sequences of the terminal."""

    def print(self, *objects: Any, **options: Any) -> None:
        super().print(*(visible(x) if isinstance(x, str) else x for x in objects), **options)


class _Notes(_Plain):
    """A console that falls silent when standard error is closed or full: losing it costs no result."""

    def print(self, *objects: Any, **options: Any) -> None:
        try:
            super().print(*objects, **options)
        except OSError:
            self.quiet = True

    def on_broken_pipe(self) -> None:
        self.quiet = True


# Names in a robot are data: no markup or emoji codes are interpreted in them.
notes = _Notes(stderr=True, highlight=False, soft_wrap=True, markup=False, emoji=False)
out = _Plain(highlight=False, soft_wrap=True, markup=False, emoji=False)


def note(text: str) -> None:
    """Print a note on standard error."""
    notes.print(f"note: {in_options(text)}", style="yellow")


def print_next(*words: object) -> None:
    """Print the next command, ready to type; placeholders are in capitals."""
    out.print(f"next:  {shlex.join(['dynident', *map(str, words)])}")


def print_json(data: Any) -> None:
    """Print JSON on standard output."""
    sys.stdout.write(visible(data if isinstance(data, str) else to_json(data)) + "\n")


def save_figures(draw: Callable[[], Mapping[str, Figure]], folder: Path) -> None:
    """Write figures as PNG; a missing matplotlib costs a note only, since the numbers are worth keeping."""
    try:
        figures = draw()
    except MissingExtraError as error:
        note(f"no figures were written: {error}")
        return
    for name, figure in figures.items():
        figure.savefig(folder / f"{name}.png", dpi=120)
