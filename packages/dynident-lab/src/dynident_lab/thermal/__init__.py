"""Temperature of joints: thermal models that friction heats and that scale the friction, and plans of tests that heat them."""

from dynident.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
