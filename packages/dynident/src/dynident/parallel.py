"""Processor cores: their number, threads over samples, BLAS on one thread, and tasks on a Dask client or a pool."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from queue import Empty, SimpleQueue
from typing import Any

from dynident.arrays import lapack
from dynident.checks import whole
from dynident.errors import DynidentError

SMALL = 4096  # samples below which starting threads costs more than it saves
WINDOW = 64  # tasks in progress at once: enough to keep the workers of a cluster busy, few enough for the scheduler's memory
PATIENCE = 150.0  # seconds without a result before checking that there are workers
_LIMIT: ContextVar[int] = ContextVar("cores", default=0)


def cores() -> int:
    """Return the number of processors this process may use, at least 1."""
    if _LIMIT.get():
        return _LIMIT.get()
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)


def threads(workers: int | None = None) -> ThreadPoolExecutor:
    """Return a pool of threads, one per core when omitted."""
    return ThreadPoolExecutor(cores() if workers is None else whole("workers", workers, least=1))


@contextmanager
def one_core() -> Iterator[None]:
    """Use one thread inside the block: sums then have the same order on every machine, and workers do not compete."""
    token = _LIMIT.set(1)
    try:
        with one_blas_thread():
            yield
    finally:
        _LIMIT.reset(token)


def completed(
    client: Any, function: Callable[..., Any], items: Iterable[tuple[Any, ...]], window: int = WINDOW
) -> Generator[tuple[int, Any], None, None]:
    """Yield number and future of ``function(*item)`` for every item on completion, with at most `window` in progress.

    `client` is a Dask client or an executor of `concurrent.futures`. Tasks in progress are cancelled when the caller stops.
    """
    if not callable(getattr(client, "submit", None)):
        raise DynidentError(
            f"client is a {type(client).__name__}; give a dask.distributed.Client or an executor of concurrent.futures"
        )
    ended: SimpleQueue[int] = SimpleQueue()
    under_way: dict[int, Any] = {}
    waiting = enumerate(items)

    def begin() -> bool:
        entry = next(waiting, None)
        if entry is None:
            return False
        number, item = entry
        under_way[number] = client.submit(function, *item)
        under_way[number].add_done_callback(lambda _, number=number: ended.put(number))
        return True

    try:
        while len(under_way) < window and begin():
            pass
        idle = 0
        while under_way:
            try:
                number = ended.get(timeout=PATIENCE)
            except Empty:  # long tasks, or no workers left
                deserted = hasattr(client, "scheduler_info") and not client.scheduler_info()["workers"]
                idle = idle + 1 if deserted else 0
                if idle > 1:
                    raise DynidentError(
                        f"no worker was available for {PATIENCE * idle / 60:.0f} minutes; start workers and run again"
                    ) from None
                continue
            yield number, under_way.pop(number)
            begin()
    finally:
        for future in under_way.values():
            future.cancel()


def gathered(client: Any, function: Callable[..., Any], items: Iterable[tuple[Any, ...]]) -> list[Any]:
    """Return ``function(*item)`` for every item in order, computed by a client; the first failure is raised."""
    found = {number: future.result() for number, future in completed(client, function, items)}
    return [found[number] for number in range(len(found))]


def over_samples(samples: int, work: Callable[[int, int], object], multiple: int = 32) -> None:
    """Call ``work(first, last)`` on stretches that cover all samples, one thread per core.

    `work` must release the interpreter lock (machine code does) and write to its own samples only. Stretches are whole
    multiples of `multiple`, so that results do not depend on the number of cores.
    """
    workers = cores()
    if samples < SMALL or workers == 1:
        work(0, samples)
        return
    step = -(-samples // (workers * multiple)) * multiple
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(lambda first: work(first, min(first + step, samples)), range(0, samples, step)))


@cache
def _blas() -> Any:
    """Return the controller of the BLAS libraries of NumPy and of SciPy, which must be loaded first."""
    from threadpoolctl import ThreadpoolController  # noqa: PLC0415 - costs import time

    lapack()
    return ThreadpoolController()


_limited = threading.local()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep BLAS on one thread in a block: for a few hundred rows more threads are slower."""
    if getattr(_limited, "inside", False):  # setting the limit takes as long as a small factorisation
        yield
        return
    with _blas().limit(limits=1):
        _limited.inside = True
        try:
            yield
        finally:
            _limited.inside = False
