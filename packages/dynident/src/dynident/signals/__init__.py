"""signals: what was measured (`Log`), and how it becomes motion and effort ready for least squares (`prepare`)."""

from dynident.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
