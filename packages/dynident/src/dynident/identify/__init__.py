"""What can be known: evidence, base parameters, estimators, fits and their scores."""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
