"""Which motion to choose: criteria with exact gradients, limits, optimisers, and the plan of the experiment."""

from dynident.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
