from .monitor import Event as Event
from .monitor import Monitor as Monitor
from .monitor import MonitorRecord as MonitorRecord
from .monitor import Reading as Reading
from .monitor import alarm_threshold as alarm_threshold
from .monitor import false_alarm_rate as false_alarm_rate
