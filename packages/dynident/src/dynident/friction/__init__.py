"""What resists: static, dynamic and thermal laws of joint friction, and the joint terms that are linear columns."""

from dynident.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
