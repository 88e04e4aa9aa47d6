"""Estimators and reductions of single papers: per-joint fits, parameter subsets, factorised models."""

from dynident.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
