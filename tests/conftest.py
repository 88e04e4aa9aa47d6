from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder of real logs: $DYNIDENT_DATA, or ../shared/data beside the repository."""
    named = os.environ.get("DYNIDENT_DATA")
    folder = Path(named) if named else Path(__file__).resolve().parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"real logs are not here ({folder}); set DYNIDENT_DATA to their folder")
    return folder
