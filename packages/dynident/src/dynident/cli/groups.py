"""Groups of commands and options in the help; rare options are shown by ``--help-all`` only."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

from cyclopts import Group
from cyclopts.help import DefaultFormatter

VALUES = {"STR": "TEXT", "STR...": "TEXT...", "INT": "N", "INT...": "N...", "FLOAT": "NUMBER"}
HELP_ALL: ContextVar[bool] = ContextVar("help_all", default=False)


class Panels(DefaultFormatter):
    """Panels of the help, with plain words for the values of options without a Python type."""

    def __call__(self, console: Any, options: Any, panel: Any) -> None:
        """Print a panel."""
        for entry in panel.entries:
            entry.metavar = VALUES.get(entry.metavar, entry.metavar)
        super().__call__(console, options, panel)


class _Rare(Panels):
    """A panel that ``--help`` omits."""

    def __call__(self, console: Any, options: Any, panel: Any) -> None:
        if HELP_ALL.get():
            super().__call__(console, options, panel)


START, EXPERIMENTS = Group("Start here", sort_key=1), Group("Motions and experiments", sort_key=2)
MODEL, CONTROL = Group("Use the model", sort_key=3), Group("Drives and control", sort_key=4)
FILES, OTHERS = Group("Files", sort_key=5), Group("Others", sort_key=6)

ARGUMENTS, OPTIONS = Group("Arguments", sort_key=10), Group("Options", sort_key=11)
ROBOT, LOGS, OUTPUT = Group("Robot", sort_key=12), Group("Logs", sort_key=13), Group("Output", sort_key=14)


def _rare(name: str, place: int) -> Group:
    return Group(name, sort_key=place, help_formatter=_Rare())


RARE_ROBOT, RARE_LOGS = _rare("Robot: rarely needed", 20), _rare("Logs: rarely needed", 21)
FILTER, KNOWN = _rare("Filter", 22), _rare("Further knowledge", 23)
LOOP, COLUMNS = _rare("Periodic motions and closed loops", 24), _rare("Base parameters", 25)
RARE = _rare("Rarely needed", 26)
