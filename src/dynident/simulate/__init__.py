"""The whole machine in time: drives, control loops and mechanism together, and the log that it would have written."""

from dynident.simulate.sensors import Sensors

__all__ = ["Sensors"]
