"""Reports: self-contained HTML pages for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynident.arguments import guard

if TYPE_CHECKING:
    from dynident.report.report import write_report

# Imported on first use: a report brings figures with it.
_LATER = {
    "write_report": "report",
}

__all__ = [
    "write_report",
]

guard(globals(), later=_LATER)
