"""How a robot moves: kinematics, dynamics and regressors, batched over samples, for trees and robots with loops."""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
