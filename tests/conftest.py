from __future__ import annotations

import gc
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from dynident.graph import products
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


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder of real logs: $DYNIDENT_DATA, or ../shared/data beside the repository."""
    named = os.environ.get("DYNIDENT_DATA")
    folder = Path(named) if named else Path(__file__).resolve().parents[2] / "shared" / "data"
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


made: dict[str, bool] = {}  # whether the code in memory is quick


@pytest.fixture(autouse=True, scope="module")
def quick_code(request: pytest.FixtureRequest) -> Iterator[None]:
    """Hundreds of robots, each used for a moment: their code is made without optimisation, six times sooner.

    It computes the same bits (test_graph_machine). Whole programs, long computations and the compiler's own tests run the
    code that users run; so does everything with DYNIDENT_OPTIMISED=1, a row of the matrix.
    """
    name = request.module.__name__.rpartition(".")[2].removeprefix("test_")
    quick = not name.startswith((*PROGRAMS, *AT_WORK)) and not os.environ.get("DYNIDENT_OPTIMISED")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dynident.graph.machine.QUICK", quick)
        if quick != made.get("quick"):  # code in memory may differ in the last bit; other processes must compute the same
            functions._made.clear()
            machine._codes.clear()
            products._made.cache_clear()
            products._code.cache_clear()
            made["quick"] = quick
        yield
