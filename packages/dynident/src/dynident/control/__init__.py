"""Control laws: cascades, PID, computed torque, feed-forward, torque distribution and tuning."""

from dynident.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
