"""From a plan to a log on a controller: protocols, the virtual robot behind them, campaigns, a crash-safe recorder."""

from dynident.arguments import guard
from dynident.link.addresses import open_controller
from dynident.link.campaign import AbortedError, Campaign
from dynident.link.controller import Identity, RemoteController, Samples, Status, UnreachableError
from dynident.link.emulator import Emulator
from dynident.link.exports import export_text, mcap_writer
from dynident.link.follower import Listener, Progress, Watch
from dynident.link.live import Callback, LiveFit, LiveMonitor, ThermalObserver
from dynident.link.lynx_client import LynxClient
from dynident.link.lynx_server import LynxServer
from dynident.link.plant import Plant
from dynident.link.real_time import prepare_timing
from dynident.link.recorder import DiskFullError, Recorder
from dynident.link.schedule import Settings, clock_text, describe, seconds
from dynident.link.simple_client import SimpleClient
from dynident.link.simple_messages import Framer, Message, critical_velocity, decode, encode
from dynident.link.simple_server import SimpleServer
from dynident.link.virtual import Fault, simulate_campaign

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

guard(globals())
