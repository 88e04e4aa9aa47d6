"""Kinematics, dynamics and regressors, batched over samples, for trees and robots with loops."""

from dynident.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
