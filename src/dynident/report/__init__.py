"""Reports: self-contained HTML pages for people, one JSON file for machines."""

from dynident.report.friction import write_friction_report
from dynident.report.report import write_report, write_verdict

__all__ = ["write_friction_report", "write_report", "write_verdict"]
