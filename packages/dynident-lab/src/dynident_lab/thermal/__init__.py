"""Temperature of joints: thermal models driven by friction power, and plans of heating tests."""

from dynident.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
