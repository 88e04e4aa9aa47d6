"""Published tables and figures, computed again through the public interface; each is one short script of this room."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynident.arguments import guard

if TYPE_CHECKING:
    from dynident.reproduce.page import write_page
    from dynident.reproduce.registry import Entry, Reproduction, Row, Table, entries, entry_of, names, reproduce, reproduction

# Imported on first use: the page brings figures with it.
_LATER = {
    "page": "write_page",
    "registry": "Entry Reproduction Row Table entries entry_of names reproduce reproduction",
}

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

guard(globals(), later=_LATER)
