"""Fleets: the same verbs over many robots and logs, on Dask (`identify`), and what only a fleet can tell (`questions`)."""

from dynident.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
