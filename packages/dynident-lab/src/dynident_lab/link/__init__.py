"""From a plan to a log on a controller: protocols, the virtual robot behind them, campaigns, a crash-safe recorder."""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
