"""How the robot is made to follow: cascades, PID, computed torque, feed-forward, distribution over actuators, tuning."""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
