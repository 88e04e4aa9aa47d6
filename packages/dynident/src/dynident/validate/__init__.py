"""Is it true: hold-out, cross-validation over time, the verdict; properties that every robot has."""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
