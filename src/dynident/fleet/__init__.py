"""Fleets: the same verbs over many robots and logs, on Dask (`identify`), and what only a fleet can tell (`questions`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynident.arguments import guard

if TYPE_CHECKING:
    from dynident.fleet.catalog import FleetFile, LogEntry, read_fleet
    from dynident.fleet.engine import connect
    from dynident.fleet.population import questions
    from dynident.fleet.report import write_fleet_report
    from dynident.fleet.results import Deviation, FleetResult, FleetType, LogRecord, RobotEstimate, RobotPeriod
    from dynident.fleet.run import identify

# Imported on first use: a client needs no report, a report no client.
_LATER = {
    "catalog": "FleetFile LogEntry read_fleet",
    "engine": "connect",
    "population": "questions",
    "report": "write_fleet_report",
    "results": "Deviation FleetResult FleetType LogRecord RobotEstimate RobotPeriod",
    "run": "identify",
}

__all__ = [
    "Deviation",
    "FleetFile",
    "FleetResult",
    "FleetType",
    "LogEntry",
    "LogRecord",
    "RobotEstimate",
    "RobotPeriod",
    "connect",
    "identify",
    "questions",
    "read_fleet",
    "write_fleet_report",
]

guard(globals(), later=_LATER)
