"""Fleets: the same verbs over many robots and logs, on Dask (`identify`), and what only a fleet can tell (`questions`)."""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
