"""How a robot is asked to move: families with exact derivatives, plateaus, paths, letters, and joining them smoothly."""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
