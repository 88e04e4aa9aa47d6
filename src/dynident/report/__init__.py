"""Reports: one self-contained HTML page for people, one JSON file for machines."""

from dynident.report.report import write_report, write_verdict

__all__ = ["write_report", "write_verdict"]
