"""How a robot is asked to move: families with exact derivatives, plateaus, paths, letters, and joining them smoothly."""

from dynident.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
