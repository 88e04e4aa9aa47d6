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
from dynident_lab.cli import campaigns, fleet, link, testbench  # noqa: F401
from dynident_lab.cli import schedule as thermal  # noqa: F401
from dynident_papers.cli import reproduce, workspace  # noqa: F401

_ORDER = [name for names in PANELS.values() for name in names]
app.registered_commands.sort(key=lambda c: _ORDER.index(known) if (known := command_name(c)) in _ORDER else len(_ORDER))

__all__ = ["app", "notes", "run"]


@functools.cache
def _command() -> Any:
    """Return the command with its subcommands, which take as long to make as many a call does."""
    return typer.main.get_command(app)


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
    token = OPTIONS.set(options_of(_command(), given))
    with warnings.catch_warnings():
        warnings.simplefilter("always", DynidentWarning)
        warnings.showwarning = show
        try:
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
