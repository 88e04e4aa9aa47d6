"""What turns a joint: motor, transmission, encoder and current sensor, their transfer functions, and fits of their numbers."""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
