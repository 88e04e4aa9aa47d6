"""Is it true: hold-out, cross-validation over time, the verdict; properties that every robot has."""

from dynident.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
