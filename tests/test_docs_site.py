"""The documentation site: tasks name what exists, notebooks are the executed scripts, and no machine is in them."""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path

import pytest

import dynident as di

DOCS = Path(__file__).resolve().parents[1] / "docs"
NOTEBOOKS = sorted(file.stem for file in (DOCS / "notebooks").glob("*.py"))


def test_every_call_of_the_task_page_exists() -> None:
    homes = {
        "Log": di.Log,
        "Mechanism": di.Mechanism,
        "Fit": di.Fit,
        "Result": importlib.import_module("dynident.results").Result,
    }
    names = re.findall(r"`([\w.]+)`", (DOCS / "tasks.md").read_text(encoding="utf-8"))
    assert len(names) > 40
    for name in names:
        first, *rest = name.split(".")
        if first.startswith("dynident"):
            module, _, function = name.rpartition(".")
            found = getattr(importlib.import_module(module), function)
        else:
            found = di if first == "di" else homes[first]
            for part in rest:
                found = getattr(found, part)
        assert callable(found), name


def test_five_notebooks_are_the_scripts_with_outputs(monkeypatch: pytest.MonkeyPatch) -> None:
    for needed in ("nbclient", "nbformat", "PIL"):
        pytest.importorskip(needed, reason="notebooks are made with the extra docs")
    monkeypatch.syspath_prepend(str(DOCS))
    maker = importlib.import_module("make_notebooks")
    assert sorted(maker.ORDER) == NOTEBOOKS
    assert len(NOTEBOOKS) == 5
    for name in NOTEBOOKS:
        book = json.loads((DOCS / "notebooks" / f"{name}.ipynb").read_text(encoding="utf-8"))
        parts = maker.cells((DOCS / "notebooks" / f"{name}.py").read_text(encoding="utf-8"))
        assert [c for _, c in parts] == ["".join(cell["source"]) for cell in book["cells"]], "run docs/make_notebooks.py"
        outputs = [output for cell in book["cells"] if cell["cell_type"] == "code" for output in cell["outputs"]]
        assert any("image/png" in output.get("data", {}) for output in outputs)
        assert not [output for output in outputs if output["output_type"] == "error"]


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebooks_are_small_and_name_no_folder_of_a_machine(name: str) -> None:
    for ending in ("ipynb", "md"):
        file = DOCS / "notebooks" / f"{name}.{ending}"
        text = file.read_text(encoding="utf-8")
        assert not re.search(r"(/home/|/root/|/tmp/|/work/|site-packages|[A-Z]:\\\\)", text)
        assert len(text) < 250_000
