"""The house plan is enforced: a room imports only from the rooms below it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

import dynident

ROOT = Path(__file__).resolve().parents[1]
SOURCE = Path(dynident.__file__).parent


@pytest.fixture(scope="module")
def contract() -> dict[str, Any]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    return next(c for c in settings["contracts"] if c["type"] == "layers")


def _layer_of(contract: dict[str, Any]) -> dict[str, int]:
    """Height of every room, 0 at the bottom."""
    layers = list(reversed(contract["layers"]))
    return {name.strip(" ()"): height for height, layer in enumerate(layers) for name in layer.replace(":", "|").split("|")}


def test_imports_respect_the_layers() -> None:
    cli = pytest.importorskip("importlinter.cli", reason="import-linter is not installed: pip install 'dynident[dev]'")
    status = cli.lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True)
    assert status == cli.EXIT_STATUS_SUCCESS, "import-linter found a room that imports from above; its report is printed above"


def test_every_room_has_a_place_in_the_layers(contract: dict[str, Any]) -> None:
    """A new room or module that the contract does not name would escape it."""
    rooms = {f"dynident.{folder.name}" for folder in SOURCE.iterdir() if (folder / "__init__.py").is_file()}
    modules = {f"dynident.{file.stem}" for file in SOURCE.glob("*.py") if not file.stem.startswith("_")}
    assert rooms | modules == set(_layer_of(contract))


def test_the_order_is_the_one_of_the_house_plan(contract: dict[str, Any]) -> None:
    height = _layer_of(contract)
    upward = ["errors", "files", "graph", "friction", "mechanism", "mechanics", "signals", "identify", "validate", "report"]
    upward.append("cli")
    heights = [height[f"dynident.{room}"] for room in upward]
    assert heights == sorted(set(heights))


def test_only_the_graph_talks_to_the_compiler() -> None:
    users = re.compile(r"^\s*(from|import) (llvmlite|numba)\b", re.M)
    imports = [file.relative_to(SOURCE) for file in SOURCE.rglob("*.py") if users.search(file.read_text(encoding="utf-8"))]
    assert imports == [Path("graph/machine.py")]
