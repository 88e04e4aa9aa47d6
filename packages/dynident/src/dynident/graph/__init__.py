"""Expressions, their derivatives, printers for people, and one compiler: what must be fast is written once and printed."""

from dynident.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
