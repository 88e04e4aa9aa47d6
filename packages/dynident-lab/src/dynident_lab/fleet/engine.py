"""The engine: a given Dask client, one connected to a scheduler, or one with local processes, one per core."""

from __future__ import annotations

import ctypes
import logging
import os
import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np

from dynident import __version__
from dynident.checks import shown
from dynident.errors import DynidentError, missing_extra
from dynident.parallel import cores

LEAST = 150e6  # bytes of a worker with Dask, NumPy and dynident; Dask kills a worker above its limit
TIMEOUT = 10.0  # seconds to reach a scheduler
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # malloc.h of glibc
UNDISTURBED = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"  # Ctrl-C also reaches workers; the client ends them
FAILURES = 20  # worker deaths before a task is abandoned


@contextmanager
def connect(scheduler: str | None = None, workers: int | None = None, memory: str | float = "auto") -> Iterator[Any]:
    """Yield a Dask client of local processes or of a cluster.

    Parameters
    ----------
    scheduler : str, optional
        Address of a Dask scheduler, such as tcp://host:8786; local processes when omitted.
    workers : int, optional
        Local processes; one per core when omitted.
    memory : str or float
        Limit of each local process, such as "2GB"; an equal share when "auto".

    Yields
    ------
    dask.distributed.Client
        The client; processes started here are closed with the block.
    """
    try:
        import dask  # noqa: PLC0415
        from dask.distributed import Client, LocalCluster  # noqa: PLC0415
        from dask.utils import parse_bytes  # noqa: PLC0415
    except ImportError as error:
        raise missing_extra("distributed", "fleet", "computing on several processes or machines") from error
    if memory != "auto":
        try:
            size = parse_bytes(memory)
        except (ValueError, TypeError, OverflowError, AttributeError) as error:
            raise DynidentError(f"memory is {shown(memory)}; give a size such as 2GB, or auto") from error
        if 0 < size < LEAST:
            raise DynidentError(
                f"memory is {shown(memory)}, but a worker needs {LEAST / 1e6:.0f} MB before it reads any data; give more"
            )
    if workers is not None and (isinstance(workers, bool) or not isinstance(workers, int) or not 1 <= workers <= 1024):
        raise DynidentError(f"workers is {workers!r}; give a whole number, 1 to 1024")
    if scheduler is not None:
        try:
            client: Any = Client(scheduler, timeout=TIMEOUT)  # type: ignore[no-untyped-call]
        except (OSError, ValueError, TypeError) as error:
            raise DynidentError(
                f"cannot reach the scheduler '{scheduler}' ({type(error).__name__}); check the network and the "
                "address that dask scheduler printed"
            ) from error
        with client:
            yield client
        return
    settings = {
        "distributed.scheduler.allowed-failures": FAILURES,
        "distributed.worker.daemon": False,
        # A dead worker is restarted; on a busy machine that may take longer than the default of 15 s.
        "distributed.deploy.lost-worker-timeout": "10 minutes",
        # Dask profiles its processes 50 to 100 times a second; tasks take a tenth of a second or more, so profile as often.
        "distributed.worker.profile.interval": "100ms",
        "distributed.admin.tick.interval": "200ms",
        "distributed.admin.system-monitor.interval": "2s",
    }
    with (
        dask.config.set(settings),
        LocalCluster(  # type: ignore[no-untyped-call]
            n_workers=workers or cores(),
            threads_per_worker=1,
            processes=True,
            memory_limit=memory,
            dashboard_address=":0",
            preload=[*dask.config.get("distributed.worker.preload"), UNDISTURBED],
            silence_logs=logging.CRITICAL,  # a failed task is reported once, with the message of its log
        ) as cluster,
        Client(cluster) as client,  # type: ignore[no-untyped-call]
    ):
        yield client


def keep_freed_memory() -> None:
    """Set malloc options of a Dask worker so that freed arrays stay in the process: returning them to the system is slow."""
    if os.environ.get("MALLOC_TRIM_THRESHOLD_") != "65536":  # not the value of Dask, or set by the user
        return
    with suppress(OSError, AttributeError):  # another C library than glibc
        mallopt = ctypes.CDLL(None).mallopt
        for option, size in ((M_MMAP_THRESHOLD, 32 << 20), (M_TRIM_THRESHOLD, 64 << 20)):
            mallopt(option, size)


def worker_memory() -> float | None:
    """Return the memory limit [bytes] of the Dask worker in this process; None outside a worker."""
    if "distributed" not in sys.modules:
        return None
    from distributed import get_worker  # noqa: PLC0415

    with suppress(ValueError, AttributeError):  # not a worker
        return get_worker().memory_manager.memory_limit
    return None


def versions() -> dict[str, str]:
    """Return the versions that must agree between the client and its workers."""
    return {
        "dynident": __version__,
        "Python": ".".join(platform.python_version_tuple()[:2]),
        "NumPy": np.__version__.partition(".")[0],
    }


def check_workers(client: Any) -> None:
    """Refuse workers with other versions, or without dynident; executors of this machine need no check."""
    if not hasattr(client, "scheduler_info"):
        return
    try:
        found = client.run(versions)
    except Exception as error:  # unpickling fails on a worker without dynident
        raise DynidentError(
            f"a worker cannot run dynident ({' '.join(str(error).split())[:160]}); install dynident {__version__} on every "
            "worker"
        ) from error
    if not found:
        raise DynidentError("the scheduler has no workers; start some with dask worker ADDRESS")
    for address, theirs in sorted(found.items()):
        refuse_other(theirs, f"worker {address}")


def refuse_other(theirs: dict[str, str], who: str) -> None:
    """Raise an error about a worker with versions other than ours."""
    ours = versions()
    for name, version in ours.items():
        if theirs.get(name) != version:
            raise DynidentError(
                f"{who} has {name} {theirs.get(name, 'of unknown version')}, but this process has {name} {version}; install "
                "the same versions on every worker"
            )


def engine_failure(error: BaseException) -> str:
    """Return the message about a task that the engine abandoned."""
    if type(error).__name__ == "KilledWorker":
        died = getattr(error, "allowed_failures", 0) + 1
        return f"its task was cancelled after {died} workers died; raise the memory limit or check the nodes"
    text = " ".join(str(error).split())[:160]
    return f"its task failed in the scheduler ({type(error).__name__}: {text})"
