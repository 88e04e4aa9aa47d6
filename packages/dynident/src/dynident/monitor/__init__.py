"""The identified model at work: virtual force sensor, residual monitor and collision flag, on line, on logs and as C."""

from dynident.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
