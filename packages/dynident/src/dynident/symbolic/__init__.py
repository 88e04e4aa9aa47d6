"""Closed forms: derivation on shared expressions, base parameters, programs in C, NumPy and LaTeX."""

from dynident.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
