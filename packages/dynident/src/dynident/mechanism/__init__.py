"""Robots: bodies, joints, loops, couplings, actuators and parameters, with readers and writers."""

from dynident.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
