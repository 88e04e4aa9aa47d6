"""Experiments on one robot or many: plateaus, friction curves, warm-up, thermal fits, repeatability, maintenance, tracking."""

from dynident.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
