from __future__ import annotations

import gc
import os
import random
import shutil
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

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
