"""Excitation: criteria with exact gradients, limits, the optimiser and the plan of an experiment."""

from dynident.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
