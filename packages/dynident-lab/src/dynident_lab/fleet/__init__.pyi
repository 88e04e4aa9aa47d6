from .catalog import FleetFile as FleetFile
from .catalog import LogEntry as LogEntry
from .catalog import read_fleet as read_fleet
from .engine import connect as connect
from .population import questions as questions
from .report import write_fleet_report as write_fleet_report
from .results import Deviation as Deviation
from .results import FleetResult as FleetResult
from .results import FleetType as FleetType
from .results import LogRecord as LogRecord
from .results import RobotEstimate as RobotEstimate
from .results import RobotPeriod as RobotPeriod
from .run import identify as identify

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
