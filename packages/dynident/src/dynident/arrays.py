"""Types of arrays, and SciPy's LAPACK without `scipy.linalg`, whose other modules take a tenth of a second to import."""

from __future__ import annotations

import sys
from functools import cache
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]
_NAME = "scipy.linalg._flapack"


@cache
def lapack() -> Any:
    """Return the module of LAPACK's functions, the same as that of ``scipy.linalg.lapack``."""
    import scipy  # noqa: PLC0415 - costs import time

    spec = None if _NAME in sys.modules else PathFinder.find_spec(_NAME, [str(Path(scipy.__path__[0]) / "linalg")])
    if spec is None or spec.loader is None:
        return scipy.linalg.lapack
    module = sys.modules[_NAME] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def pivoted(A: Array) -> tuple[Array, NDArray[np.int64]]:
    """Return R of the QR decomposition with pivots, and the columns of A in the order of their pivots."""
    decomposed, order, *_ = lapack().dgeqp3(A)
    return np.triu(decomposed[: A.shape[1]]), order.astype(np.int64) - 1
