"""The virtual robot: drives, control loops and mechanism in one simulation, with the log of a real robot."""

from dynident.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
