from .campaign import AbortedError as AbortedError
from .campaign import Campaign as Campaign
from .controller import Identity as Identity
from .controller import RemoteController as RemoteController
from .controller import Samples as Samples
from .controller import Status as Status
from .controller import UnreachableError as UnreachableError
from .controller import open_controller as open_controller
from .emulator import Emulator as Emulator
from .exports import export_text as export_text
from .exports import mcap_writer as mcap_writer
from .follower import Listener as Listener
from .follower import Progress as Progress
from .follower import Watch as Watch
from .live import Callback as Callback
from .live import LiveFit as LiveFit
from .live import LiveMonitor as LiveMonitor
from .live import ThermalObserver as ThermalObserver
from .lynx_client import LynxClient as LynxClient
from .lynx_server import LynxServer as LynxServer
from .plant import Plant as Plant
from .plant import prepare_timing as prepare_timing
from .recorder import DiskFullError as DiskFullError
from .recorder import Recorder as Recorder
from .schedule import Settings as Settings
from .schedule import clock_text as clock_text
from .schedule import describe as describe
from .schedule import seconds as seconds
from .simple_client import SimpleClient as SimpleClient
from .simple_messages import Framer as Framer
from .simple_messages import Message as Message
from .simple_messages import critical_velocity as critical_velocity
from .simple_messages import decode as decode
from .simple_messages import encode as encode
from .simple_server import SimpleServer as SimpleServer
from .virtual import Fault as Fault
from .virtual import simulate_campaign as simulate_campaign

__all__ = [
    "AbortedError",
    "Callback",
    "Campaign",
    "DiskFullError",
    "Emulator",
    "Fault",
    "Framer",
    "Identity",
    "Listener",
    "LiveFit",
    "LiveMonitor",
    "LynxClient",
    "LynxServer",
    "Message",
    "Plant",
    "Progress",
    "Recorder",
    "RemoteController",
    "Samples",
    "Settings",
    "SimpleClient",
    "SimpleServer",
    "Status",
    "ThermalObserver",
    "UnreachableError",
    "Watch",
    "clock_text",
    "critical_velocity",
    "decode",
    "describe",
    "encode",
    "export_text",
    "mcap_writer",
    "open_controller",
    "prepare_timing",
    "seconds",
    "simulate_campaign",
]
