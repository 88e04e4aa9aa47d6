"""The whole machine in time: drives, control loops and mechanism together, and the log that it would have written."""

from dynident.simulate.batch import monte_carlo, simulate
from dynident.simulate.inputs import Disturbance
from dynident.simulate.record import Run, Truth
from dynident.simulate.reference import Reference
from dynident.simulate.robot import VirtualRobot
from dynident.simulate.sensors import Sensors
from dynident.simulate.split import TorqueSplit
from dynident.simulate.thermal import Heating

__all__ = [
    "Disturbance",
    "Heating",
    "Reference",
    "Run",
    "Sensors",
    "TorqueSplit",
    "Truth",
    "VirtualRobot",
    "monte_carlo",
    "simulate",
]
