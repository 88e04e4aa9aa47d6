from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings

# Properties draw the same examples on every machine; DYNIDENT_EXPLORE=1 draws new ones.
settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None)
settings.load_profile("explore" if os.environ.get("DYNIDENT_EXPLORE") else "same")


def pytest_configure(config: pytest.Config) -> None:
    """Let processes that tests start find bytecode, also where the environment forbids to write it beside the sources."""
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


RANDOM_ROBOTS = ("test_mechanics_identities", "test_mechanics_pinocchio", "test_mechanics_mujoco", "test_mechanics_structure")


@pytest.fixture(autouse=True)
def quick_code(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hundreds of random robots, each used once: their code need not be fast. Other tests run what users run."""
    if request.module.__name__.rpartition(".")[2] in (*RANDOM_ROBOTS, "test_symbolic_derive"):
        monkeypatch.setattr("dynident.graph.machine.QUICK", True)
