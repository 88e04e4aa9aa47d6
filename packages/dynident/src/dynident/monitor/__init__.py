"""The identified model at work: virtual force sensor, residual monitor and collision flag, on line, on logs and as C."""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
