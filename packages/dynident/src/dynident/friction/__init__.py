"""Friction: static, dynamic and temperature-dependent laws, and linear joint terms."""

from dynident.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
