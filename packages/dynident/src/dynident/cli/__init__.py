"""The commands, thin: each is one verb of the pipeline. Results go to standard output, progress and notes to standard error."""

from __future__ import annotations

import functools
import re
import sys
import warnings
from collections.abc import Sequence
from typing import Any

import typer

from dynident.cli import cache, compare, convert, core, demo, excite, export, models, products, simulate  # noqa: F401
from dynident.cli.consoles import note, notes
from dynident.cli.shared import PANELS, USAGE, UsageError, app, command_name
from dynident.cli.words import OPTIONS, in_options, options_of
from dynident.errors import DynidentError, DynidentWarning
from dynident.files import shortened, visible
from dynident.plugins import COMMANDS, entries, load, not_installed, require

__all__ = ["app", "load_commands", "notes", "run"]

OWN = frozenset(map(command_name, app.registered_commands))
# Order in the help; others follow.
ORDER = ("demo", "describe", "identify", "validate", "report", "compare", "excite", "simulate", "export", "derive")


def load_commands() -> None:
    """Register the commands of all installed packages; each that cannot be imported costs a warning."""
    for name in entries(COMMANDS):
        if name not in OWN:
            load(COMMANDS, name)


@functools.cache
def _command_of(registered: int) -> Any:
    """Return the command with its subcommands, made once for those that are registered."""

    def place(info: Any) -> tuple[int, int]:
        name, panel = command_name(info), info.rich_help_panel
        first = ORDER.index(name) if name in ORDER else len(ORDER)
        return PANELS.index(panel) if panel in PANELS else len(PANELS), first

    app.registered_commands.sort(key=place)
    return typer.main.get_command(app)


def _command() -> Any:
    return _command_of(len(app.registered_commands) + len(app.registered_groups))


def _load_for(given: Sequence[str]) -> str | None:
    """Import the plug-in of the command that is called, or all for the list of commands; return why there is none."""
    name = next((word for word in given if not word.startswith("-")), None)
    if name is None and "--version" not in given:
        load_commands()
    elif name is not None and name not in OWN:
        if name not in entries(COMMANDS):
            return not_installed(COMMANDS, name)
        require(COMMANDS, name)
    return None


def run(args: Sequence[str] | None = None) -> int:
    """Run the command line."""
    told: set[str] = set()

    def show(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
        """Tell a warning of ours once, in one line; others are for developers."""
        text = " ".join(str(message).split())
        if issubclass(category, DynidentWarning) and text not in told:
            told.add(text)
            note(text)

    given = list(sys.argv[1:] if args is None else args)
    token = OPTIONS.set(frozenset())
    with warnings.catch_warnings():
        warnings.simplefilter("always", DynidentWarning)
        warnings.showwarning = show
        try:
            if missing := _load_for(given):
                typer.echo(f"dynident: command {visible(missing)}", err=True)
                return USAGE
            OPTIONS.set(options_of(_command(), given))
            return int(_command()(args, standalone_mode=False, prog_name="dynident") or 0)
        except DynidentError as error:
            said = re.sub(r"\S{400,}", lambda word: shortened(word[0]), in_options(str(error)))
            if said == str(error):
                raise
            raise DynidentError(said) from error
        except OSError as error:
            if error.filename is None:
                raise
            where = shortened(str(error.filename))
            raise DynidentError(f"'{where}' cannot be read or written: {error.strerror}; give another path") from error
        except UsageError as error:
            command = error.ctx.command_path if error.ctx else "dynident"
            problem = " ".join(error.format_message().split()).rstrip(".")
            typer.echo(f"dynident: {visible(problem)}; see '{command} --help'", err=True)
            return USAGE
        except typer.Abort:
            raise KeyboardInterrupt from None
        finally:
            OPTIONS.reset(token)
