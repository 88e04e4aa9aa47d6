from .level import false_alarm_rate as false_alarm_rate
from .level import level_for as level_for
from .monitor import Monitor as Monitor
from .monitor import Reading as Reading
from .record import Event as Event
from .record import MonitorRecord as MonitorRecord

__all__ = [
    "Event",
    "Monitor",
    "MonitorRecord",
    "Reading",
    "false_alarm_rate",
    "level_for",
]
