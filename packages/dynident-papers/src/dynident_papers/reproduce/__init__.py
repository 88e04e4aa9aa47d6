"""Published tables and figures, computed again through the public interface; each is one short script of this package."""

from dynident.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
