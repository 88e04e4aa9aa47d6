"""Published tables and figures, computed again through the public interface; each is one short script of this room."""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
