"""Fair timing on a shared machine: peer and ours alternate, the best of each counts, and only their ratio is judged."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter


def interleaved(
    peer: Callable[[], object], ours: Callable[[], object], repeats: int, clock: Callable[[], float] = perf_counter
) -> tuple[float, float]:
    """Return the best times of two functions that are called in turn, after one unmeasured call of ours.

    Parameters
    ----------
    peer, ours : callable
        Functions to time; results are dropped before the next call.
    repeats : int
        Calls of each.
    clock : callable
        Clock in seconds; `time.process_time` if both use one core, since a busy machine does not stretch it.

    Returns
    -------
    tuple of float
        Seconds of the peer and of ours.
    """
    ours()
    best = [float("inf"), float("inf")]
    for _ in range(repeats):
        for i, function in enumerate((peer, ours)):
            gc.collect()
            start = clock()
            result = function()
            best[i] = min(best[i], clock() - start)
            del result
    return best[0], best[1]


@contextmanager
def one_core() -> Iterator[None]:
    """Keep everything, BLAS included, on one processor inside the block."""
    from threadpoolctl import threadpool_limits

    if not hasattr(os, "sched_setaffinity"):
        raise OSError("this system cannot restrict a process to one processor")
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        with threadpool_limits(1):
            yield
    finally:
        os.sched_setaffinity(0, allowed)


def peak_extra(work: Callable[[], object]) -> float | None:
    """Return the peak increase of the resident memory of this process while `work` ran.

    Parameters
    ----------
    work : callable
        Function to measure.

    Returns
    -------
    float or None
        Megabytes (1e6 bytes); None if the system does not report it (only Linux does).
    """
    import ctypes

    try:
        gc.collect()
        # Memory freed earlier must not be reused.
        ctypes.CDLL(None).malloc_trim(0)
        Path("/proc/self/clear_refs").write_text("5")
        before = _status("VmRSS")
        work()
        return (_status("VmHWM") - before) / 1e6
    except (OSError, AttributeError):
        return None


def _status(field: str) -> float:
    """Return a line of /proc/self/status in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return 1024.0 * float(line.split()[1])
    raise OSError(f"/proc/self/status has no {field}")
