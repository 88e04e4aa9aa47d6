"""The command line: plain functions, registered by import path; results on standard output, notes on standard error."""

from __future__ import annotations

import difflib
import errno
import gc
import re
import shlex
import sys
import warnings
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from cyclopts import (
    App,
    ArgumentCollection,
    CoercionError,
    CycloptsError,
    MissingArgumentError,
    Parameter,
    UnusedCliTokensError,
)

from dynident.cli import commands, groups
from dynident.cli.consoles import note, notes, out
from dynident.cli.words import COMMAND, OPTIONS, in_options
from dynident.errors import DynidentError, DynidentWarning
from dynident.files import shortened, visible
from dynident.plugins import COMMANDS, check_versions, entries, installed, load, not_installed, require

__all__ = ["application", "arguments_of", "command_names", "notes", "option_names", "run"]

USAGE = 2
SMALLEST, LARGEST = 1e-100, 1e100  # plausible size of a number of an option: squares and quotients stay finite
EXIT_CODES = (
    "Exit codes: 0 success; 1 bad input; 2 wrong usage; 3 failed verdict (--strict) or unusable log (inspect); 70 bug in "
    "dynident; 130 interrupted."
)
MORE = "--help-all shows the rarely needed options too."


def _default(value: object) -> str | None:
    """Return the default of an option for the help; None for flags, lists and optional values."""
    return str(value) if isinstance(value, str | int | float | Path) and not isinstance(value, bool) else None


def _versions() -> str:
    check_versions()
    return "\n".join(f"{package} {number}" for package, number in installed().items())


def command_names() -> list[str]:
    """Return the names of all installed commands."""
    return [*commands.OWN, *(name for name in entries(COMMANDS) if name not in commands.OWN)]


def application(name: str | None = None) -> App:
    """Return the application with one command, or, to list them, with all of them, without importing those of this package."""
    app = App(
        name="dynident",
        help="From a robot's description and its logs to a validated dynamic model.",
        help_epilogue=EXIT_CODES if name is None else MORE,
        help_format="plaintext",
        version=_versions,
        group_arguments=groups.ARGUMENTS,
        group_parameters=groups.OPTIONS,
        group_commands=groups.OTHERS,
        default_parameter=Parameter(negative=(), allow_repeating=True, show_default=_default),
        suppress_keyboard_interrupt=False,
        result_action="return_value",
        help_formatter=groups.Panels(),
        print_error=False,
        exit_on_error=False,
    )
    if name in commands.OWN:
        app.command(f"dynident.cli.{name}:{name}", name=name)
    elif name is not None:
        app.command(require(COMMANDS, name), name=name)
    else:
        for place, (own, (group, sentence)) in enumerate(commands.OWN.items()):
            app.command(f"dynident.cli.{own}:{own}", name=own, help=sentence, group=group, sort_key=place)
        for other in (each for each in entries(COMMANDS) if each not in commands.OWN):
            if other in commands.OTHERS:
                group, sentence = commands.OTHERS[other]
                app.command(entries(COMMANDS)[other].value, name=other, help=sentence, group=group, sort_key=100)
            elif (plugin := load(COMMANDS, other)) is not None:
                app.command(plugin, name=other)
        app.register_install_completion_command(add_to_startup=False)
    return app


def arguments_of(words: Sequence[str], app: App | None = None) -> ArgumentCollection:
    """Return arguments and options of the command that `words` call."""
    app = application(words[0]) if app is None else app
    with app.app_stack(words):  # settings of the application hold for its commands
        return app.parse_commands(words)[1][-1].assemble_argument_collection(parse_docstring=False)


def option_names(arguments: ArgumentCollection) -> frozenset[str]:
    """Return the names of the options as typed."""
    return frozenset(name for argument in arguments for name in argument.names if name.startswith("--"))


def _problem(name: str) -> str | None:
    """Return the reason why a command does not exist."""
    if name in commands.OWN or name in entries(COMMANDS):
        return None
    if missing := not_installed(COMMANDS, name):
        return f"command {missing}"
    near = difflib.get_close_matches(name, command_names(), 1)
    hint = f" (did you mean '{near[0]}'?)" if near else ""
    return f"there is no command '{shortened(name)}'{hint}; see 'dynident --help'"


def _joined(words: Sequence[str]) -> list[str]:
    """Return the words with a value that starts like a negative number joined to its option, as in --gain=-1,1."""
    found: list[str] = []
    for word in words:
        if found and re.match(r"-[\d.]", word) and re.fullmatch(r"--[a-z][a-z-]*", found[-1]):
            found[-1] += f"={word}"
        else:
            found.append(word)
    return found


def _check_value(option: str, value: object) -> None:
    """Refuse meaningless values: numbers that are undefined, infinite or absurd, and paths that no system accepts."""
    if isinstance(value, float | int) and value != 0 and not SMALLEST <= abs(value) <= LARGEST:
        text = f"{value:g}" if isinstance(value, float) else f"a number of {len(str(abs(value)))} digits"
        raise DynidentError(f"{option} is {text}; give a number of a plausible size ({SMALLEST:g} to {LARGEST:g}, or 0)")
    if isinstance(value, Path):
        try:
            value.stat()
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:
                told = f"{option} is '{shortened(value)}', longer than a path can be; give another"
                raise DynidentError(told) from None


def _check_values(values: dict[str, Any], names: dict[str, str]) -> None:
    for name, value in values.items():
        if is_dataclass(value):
            _check_values({own.name: getattr(value, own.name) for own in fields(value)}, names)
        for each in value if isinstance(value, list | tuple) else (value,):
            _check_value(names.get(name, name), each)


def _execute(words: list[str]) -> int:
    """Parse the words, check the values and run the command."""
    name = words[0] if words and not words[0].startswith("-") else None
    if name is not None and (problem := _problem(name) or commands.former_option(name, words)):
        sys.stderr.write(f"dynident: {visible(problem)}\n")
        return USAGE
    if words[:1] == ["--version"]:
        out.print(_versions())
        return 0
    app = application(name)
    try:
        command, bound, _ = app.parse_args(words)
        flags = any(word.startswith("-") for word in app.parse_commands(words)[0])  # --help and --version are commands too
        incomplete = not flags and app.parse_commands(words)[1][-1].default_command is None
        if not flags and not incomplete:
            arguments = arguments_of(words, app)
            OPTIONS.set(option_names(arguments))
            _check_values(bound.arguments, {argument.field_info.name: argument.name for argument in arguments})
    except CycloptsError as error:
        argument = error.argument if isinstance(error, CoercionError) and error.token else None
        if argument and (choices := argument.get_choices(force=True)):
            given = shortened(error.token.value)  # type: ignore[attr-defined]
            raise DynidentError(f"{argument.name} is '{given}'; it must be one of {', '.join(choices)}") from None
        problem = visible(_shortened(_usage_error(error)))
        sys.stderr.write(f"dynident: {problem}; see 'dynident {f'{name} ' if name else ''}--help'\n".replace("?; see", "? See"))
        return USAGE
    if not gc.isenabled():  # by `__main__`
        gc.freeze()
        gc.set_threshold(200_000)  # graphs of expressions are many small objects
        gc.enable()
    code = int(command(*bound.args, **bound.kwargs) or 0)
    return USAGE if incomplete else code  # a list of commands was shown


def _usage_error(error: CycloptsError) -> str:
    """Return the problem of a wrong usage in one sentence."""
    if isinstance(error, UnusedCliTokensError) and error.unused_tokens:
        return f"unexpected argument '{error.unused_tokens[0]}'"
    if isinstance(error, MissingArgumentError) and error.argument is not None:
        option = error.keyword or error.argument.name
        given = error.keyword or error.argument.tokens
        return f"{option} needs a value" if given else f"{option} is missing"
    return " ".join(str(error).split()).rstrip(".")


def _shortened(text: str) -> str:
    return re.sub(r"\S{400,}", lambda word: shortened(word[0]), text)


def run(args: Sequence[str] | None = None) -> int:
    """Run the command line."""
    told: set[str] = set()

    def show(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
        """Show a warning of dynident once, in one line; other warnings are for developers."""
        text = " ".join(str(message).split())
        if issubclass(category, DynidentWarning) and text not in told:
            told.add(text)
            note(text)

    given = [word for word in (sys.argv[1:] if args is None else args) if word != "--debug"]
    COMMAND.set(shlex.join(["dynident", *given]))
    options, everything = OPTIONS.set(frozenset()), groups.HELP_ALL.set("--help-all" in given)
    with warnings.catch_warnings():
        warnings.simplefilter("always", DynidentWarning)
        warnings.showwarning = show
        try:
            return _execute(["--help" if word == "--help-all" else word for word in _joined(given)])
        except DynidentError as error:
            said = _shortened(in_options(str(error)))
            if said == str(error):
                raise
            raise DynidentError(said) from error
        except OSError as error:
            if error.filename is None:
                raise
            where = shortened(str(error.filename))
            raise DynidentError(f"'{where}' cannot be read or written: {error.strerror}; give another path") from error
        finally:
            OPTIONS.reset(options)
            groups.HELP_ALL.reset(everything)
