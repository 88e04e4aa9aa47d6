"""Which motion to choose: criteria with exact gradients, limits, optimisers, and the plan of the experiment."""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
