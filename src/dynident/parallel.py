"""Processor cores: how many there are, threads over samples, and BLAS kept to one of them."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import lru_cache
from typing import Any

SMALL = 4096  # samples below which starting threads costs more than it saves


def cores() -> int:
    """Return the number of processors this process may use, at least 1."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)


def over_samples(samples: int, work: Callable[[int, int], object], multiple: int = 32) -> None:
    """Call ``work(first, last)`` on stretches that cover all samples, one thread per core.

    `work` must release the interpreter lock (machine code does) and write to its own samples only. Stretches are whole
    multiples of `multiple`, so that results do not depend on how many cores there are.
    """
    workers = cores()
    if samples < SMALL or workers == 1:
        work(0, samples)
        return
    step = -(-samples // (workers * multiple)) * multiple
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(lambda first: work(first, min(first + step, samples)), range(0, samples, step)))


@lru_cache(maxsize=1)
def _blas() -> Any:
    """Return the controller of all BLAS libraries in the process; SciPy has one of its own, so it must be loaded first."""
    import scipy.linalg  # noqa: F401, PLC0415 - costs import time
    from threadpoolctl import ThreadpoolController  # noqa: PLC0415 - costs import time

    return ThreadpoolController()


def one_blas_thread() -> AbstractContextManager[Any]:
    """Return a context in which BLAS keeps to one thread.

    On matrices of a few hundred rows its threads only wait for each other: 5 ms become 100 ms on a busy machine.
    """
    context: AbstractContextManager[Any] = _blas().limit(limits=1)
    return context
