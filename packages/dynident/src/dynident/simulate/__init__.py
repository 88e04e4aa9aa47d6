"""The whole machine in time: drives, control loops and mechanism together, and the log that it would have written."""

from dynident.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
