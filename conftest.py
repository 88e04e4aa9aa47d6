from __future__ import annotations

import functools
import gc
import os
import random
import shutil
import sys
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from dynident.mechanics import functions
from dynident.simulate import machine

# Properties draw the same examples on every machine; DYNIDENT_EXPLORE=1 draws new ones.
settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None)
settings.load_profile("explore" if os.environ.get("DYNIDENT_EXPLORE") else "same")


def pytest_configure(config: pytest.Config) -> None:
    """Let processes that tests start find bytecode, also where the environment forbids to write it beside the sources."""
    gc.set_threshold(100_000, 20, 100)  # graphs of hundreds of robots are looked through less often: 7 % of the time
    if os.environ.pop("PYTHONDONTWRITEBYTECODE", None) and "PYTHONPYCACHEPREFIX" not in os.environ:
        folder = tempfile.mkdtemp(prefix="dynident-bytecode-")
        os.environ["PYTHONPYCACHEPREFIX"] = folder  # else each of some hundred commands compiles the package anew, for a second
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Take another order of files and their tests with DYNIDENT_ORDER=1, 2, ...: what one leaves must not matter to others."""
    if order := os.environ.get("DYNIDENT_ORDER"):
        draw = random.Random(order)  # the same in every worker
        files = {item.path: draw.random() for item in items}
        places = {item.nodeid: (files[item.path], draw.random()) for item in items}
        items.sort(key=lambda item: places[item.nodeid])


def _skip_without_extras() -> Generator[None, Any, Any]:
    """With DYNIDENT_CORE_ONLY=1, as in a release rehearsal, skip tests that need an optional package."""
    try:
        return (yield)
    except ImportError as error:
        own = isinstance(error, ModuleNotFoundError) and str(error.name).startswith("dynident")
        if own or not os.environ.get("DYNIDENT_CORE_ONLY"):
            raise
        pytest.skip(str(error))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Generator[None, Any, Any]:
    return (yield from _skip_without_extras())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, Any, Any]:
    return (yield from _skip_without_extras())


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder of real logs: $DYNIDENT_DATA, or ../shared/data beside the repository."""
    named = os.environ.get("DYNIDENT_DATA")
    folder = Path(named) if named else Path(__file__).resolve().parents[1] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"real logs are not here ({folder}); set DYNIDENT_DATA to their folder")
    return folder


PROGRAMS = ("benchmarks", "cli", "demo", "examples", "fleet", "link", "real", "report", "reproduc")
AT_WORK = (
    "excitation_design",
    "excitation_plan",
    "excitation_proof",
    "graph",
    "simulate_oracles",
    "estimators_closed_loop",
    "testbench_tracking",
)


SHORT = 500  # lines of code that are optimised in a moment
made: dict[str, bool] = {}  # whether the code in memory is quick


@pytest.fixture(autouse=True, scope="module")
def quick_code(request: pytest.FixtureRequest) -> Iterator[None]:
    """Hundreds of robots, each used for a moment: their code is made without optimisation, six times sooner.

    It may differ in the last bit (test_graph_machine says how little), so nothing of it is left for programs, whose other
    processes compute optimised code. Whole programs, long computations and the compiler's own tests run the code that users
    run; so does everything with DYNIDENT_OPTIMISED=1, a row of the matrix.
    """
    name = request.module.__name__.rpartition(".")[2].removeprefix("test_")
    quick = not name.startswith((*PROGRAMS, *AT_WORK)) and not os.environ.get("DYNIDENT_OPTIMISED")
    with pytest.MonkeyPatch.context() as patch:
        if quick:
            patch.setattr("dynident.graph.machine.HUGE", SHORT)
        if quick != made.get("quick"):
            forget_code()
            made["quick"] = quick
        yield


def forget_code() -> None:
    """Drop all machine code that the package keeps for later calls, and the robots that hold some."""
    functions._made.clear()
    machine._codes.clear()
    for name in [name for name in sys.modules if name.startswith("dynident")]:
        for value in list(vars(sys.modules[name]).values()):
            if isinstance(value, functools._lru_cache_wrapper):
                value.cache_clear()
