"""The whole machine in time: drives, control loops and mechanism together, and the log that it would have written."""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
