"""Expressions, their derivatives, printers for people, and one compiler: what must be fast is written once and printed."""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
