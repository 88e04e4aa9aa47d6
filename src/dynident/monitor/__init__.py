"""The identified model at work: virtual force sensor, residual monitor and collision flag, on line, on logs and as C."""

from dynident.arguments import guard
from dynident.monitor.level import false_alarm_rate, level_for
from dynident.monitor.monitor import Monitor, Reading
from dynident.monitor.record import Event, MonitorRecord

__all__ = ["Event", "Monitor", "MonitorRecord", "Reading", "false_alarm_rate", "level_for"]

guard(globals())
