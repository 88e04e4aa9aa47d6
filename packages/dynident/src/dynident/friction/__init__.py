"""What resists: static, dynamic and thermal laws of joint friction, and the joint terms that are linear columns."""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
