"""Reports: self-contained HTML pages for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynident.arguments import guard

if TYPE_CHECKING:
    from dynident.report.comparison import write_comparison
    from dynident.report.identification import Identification, identify_robot
    from dynident.report.report import write_report

# Imported on first use: a report brings the estimators with it.
_LATER = {
    "comparison": "write_comparison",
    "identification": "Identification identify_robot",
    "report": "write_report",
}

__all__ = [
    "Identification",
    "identify_robot",
    "write_comparison",
    "write_report",
]

guard(globals(), later=_LATER)
