from .page import write_page as write_page
from .registry import Entry as Entry
from .registry import Reproduction as Reproduction
from .registry import Row as Row
from .registry import Table as Table
from .registry import entries as entries
from .registry import entry_of as entry_of
from .registry import names as names
from .registry import reproduce as reproduce
from .registry import reproduction as reproduction

__all__ = [
    "Entry",
    "Reproduction",
    "Row",
    "Table",
    "entries",
    "entry_of",
    "names",
    "reproduce",
    "reproduction",
    "write_page",
]
