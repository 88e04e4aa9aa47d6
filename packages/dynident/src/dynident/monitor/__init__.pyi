from .monitor import Monitor as Monitor
from .monitor import Reading as Reading
from .monitor import alarm_threshold as alarm_threshold
from .monitor import false_alarm_rate as false_alarm_rate
from .record import Event as Event
from .record import MonitorRecord as MonitorRecord
