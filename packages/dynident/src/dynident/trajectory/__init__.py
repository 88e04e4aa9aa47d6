"""Trajectories: parametric families with exact derivatives, profiles, and smooth joins."""

from dynident.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
