"""Servo analysis: transfer functions, margins, tuning, bandwidth, step responses and motor sizing."""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
