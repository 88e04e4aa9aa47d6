from .false_alarms import alarm_threshold as alarm_threshold
from .false_alarms import false_alarm_rate as false_alarm_rate
from .monitor import Monitor as Monitor
from .monitor import Reading as Reading
from .record import Event as Event
from .record import MonitorRecord as MonitorRecord
