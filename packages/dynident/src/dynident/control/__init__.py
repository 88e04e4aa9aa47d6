"""How the robot is made to follow: cascades, PID, computed torque, feed-forward, distribution over actuators, tuning."""

from dynident.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
