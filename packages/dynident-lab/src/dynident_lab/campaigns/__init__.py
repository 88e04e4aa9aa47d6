"""Recorded campaigns: segments, journals and the logs read from them."""

from dynident.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
