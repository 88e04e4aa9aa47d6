"""signals: what was measured (`Log`), and how it becomes motion and effort ready for least squares (`prepare`)."""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
