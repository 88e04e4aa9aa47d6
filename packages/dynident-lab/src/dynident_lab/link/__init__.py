"""From a plan to a log on a controller: protocols, the virtual robot behind them, campaigns, a crash-safe recorder."""

from dynident.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
