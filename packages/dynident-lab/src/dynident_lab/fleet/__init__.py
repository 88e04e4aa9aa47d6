"""Fleets: the same functions over many robots and logs, on Dask (`identify`), and questions about a fleet (`questions`)."""

from dynident.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
