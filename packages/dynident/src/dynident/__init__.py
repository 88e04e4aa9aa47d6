"""dynident: from a robot description and its logs to a validated dynamic model.

Names are loaded on first use, so that ``import dynident`` stays fast; ``__init__.pyi`` lists them.
"""

import dynident.identify  # noqa: F401 - before the function of the same name: importing the subpackage later would replace it
from dynident.lazy import attach
from dynident.workflow import identify as identify

__version__ = "0.3.0"

__getattr__, __dir__, __all__ = attach(__name__, __file__)
