"""The house plan is enforced: a room imports only from the rooms below it, and only through their doors."""

from __future__ import annotations

import ast
import logging
import re
import tomllib
from collections.abc import Iterator
from functools import cache
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
    for logger in logging.root.manager.loggerDict.values():
        if isinstance(logger, logging.Logger):
            logger.disabled = False  # import-linter switches off every logger that it does not know
    assert status == cli.EXIT_STATUS_SUCCESS, "import-linter found a room that imports from above; its report is printed above"


def test_every_room_has_a_place_in_the_layers(contract: dict[str, Any]) -> None:
    """A new room or module that the contract does not name would escape it."""
    rooms = {f"dynident.{folder.name}" for folder in SOURCE.iterdir() if (folder / "__init__.py").is_file()}
    modules = {f"dynident.{file.stem}" for file in SOURCE.glob("*.py") if not file.stem.startswith("_")}
    assert rooms | modules == set(_layer_of(contract))


def test_the_order_is_the_one_of_the_house_plan(contract: dict[str, Any]) -> None:
    height = _layer_of(contract)
    upward = ["errors", "files", "graph", "friction", "mechanism", "mechanics", "signals", "identify", "validate"]
    upward += ["excitation", "testbench", "report", "cli"]
    heights = [height[f"dynident.{room}"] for room in upward]
    assert heights == sorted(set(heights))


def test_only_the_graph_talks_to_the_compiler() -> None:
    users = re.compile(r"^\s*(from|import) (llvmlite|numba)\b", re.M)
    imports = [file.relative_to(SOURCE) for file in SOURCE.rglob("*.py") if users.search(file.read_text(encoding="utf-8"))]
    assert imports == [Path("graph/machine.py")]


# ---- doors -------------------------------------------------------------------------------------------------------------
def _modules() -> dict[str, Path]:
    """Every module by its dotted name; a package is its ``__init__``."""
    found = {}
    for file in sorted(SOURCE.rglob("*.py")):
        parts = file.relative_to(SOURCE.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


MODULES = _modules()


@cache
def _exported(module: str) -> frozenset[str]:
    """Names that a door exports; one of them may be called like the file that it comes from, as `regressor` is."""
    tree = ast.parse(MODULES[module].read_text(encoding="utf-8")) if module in MODULES else ast.Module([], [])
    lists = [x.value for x in tree.body if isinstance(x, ast.Assign) and ast.unparse(x.targets[0]) == "__all__"]
    return frozenset(name for names in lists for name in ast.literal_eval(names))


def _imported(module: str, text: str) -> Iterator[tuple[int, str]]:
    """Line and dotted name of everything of ours that a module imports, in functions and for type checkers too."""
    package = module if MODULES[module].name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package.rsplit(".", node.level - 1)[0] if node.level else ""
            origin = ".".join(part for part in (base, node.module) if part)
            for alias in node.names:
                inner = f"{origin}.{alias.name}"
                yield node.lineno, inner if inner in MODULES and alias.name not in _exported(origin) else origin


def _past_the_door(module: str, text: str) -> list[str]:
    """Imports of a module that reach into another room: dynident.room is the door, dynident.room.anything is behind it."""
    own = module.split(".")[1:2]
    return [
        f"{module}, line {line}: {name}"
        for line, name in _imported(module, text)
        if name in MODULES and name.count(".") > 1 and name.split(".")[1:2] != own
    ]


def test_rooms_are_entered_through_their_doors() -> None:
    assert [found for name, file in MODULES.items() for found in _past_the_door(name, file.read_text(encoding="utf-8"))] == []


@pytest.mark.parametrize(
    "text",
    [
        "from dynident.identify.fit import Fit",
        "from dynident.identify import fit",
        "import dynident.identify.fit",
        "from ..identify.fit import Fit",
        "def late():\n    from dynident.identify.friction import fit_log",
    ],
)
def test_an_import_past_the_door_is_seen(text: str) -> None:
    assert len(_past_the_door("dynident.validate.verdict", text)) == 1
    assert _past_the_door("dynident.identify.score", text.replace("..identify.", ".")) == []
    assert _past_the_door("dynident.validate.verdict", "from dynident.identify import Fit") == []
