"""Validation: hold-out, cross-validation over time, the verdict, and faults of logs."""

from dynident.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
