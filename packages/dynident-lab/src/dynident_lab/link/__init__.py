"""Recording on controllers: protocols, virtual robots behind them, campaigns and a crash-safe recorder."""

from dynident.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
