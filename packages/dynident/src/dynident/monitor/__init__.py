"""Monitoring with an identified model: external torques, thresholds and collision flag, on line, on logs and as C."""

from dynident.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
