"""Flexure hinges, and the requirements of a mechanism on them."""

from dynident.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
