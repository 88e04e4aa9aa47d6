"""Experiments on one robot or many: plateaus, friction curves, warm-up, thermal fits, repeatability, maintenance, tracking."""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
