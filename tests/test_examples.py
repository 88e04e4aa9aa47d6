"""Every example runs, is short, and is shown in the gallery."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = sorted(file.stem for file in (ROOT / "examples").glob("*.py") if file.stem != "two_links")


@pytest.fixture
def beside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Import from examples/ as a script there does, and forget it afterwards."""
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    for name in (*EXAMPLES, "two_links"):
        monkeypatch.delitem(sys.modules, name, raising=False)


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.usefixtures("beside")
def test_the_example_runs_and_draws(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib", reason="pictures are an extra: pip install 'dynident[report]'")
    figure = importlib.import_module(name).main()
    assert all(axes.has_data() for axes in figure.axes if axes.get_label() != "<colorbar>")
    capsys.readouterr()


def test_there_are_enough_examples_and_they_are_short() -> None:
    assert len(EXAMPLES) >= 8
    lines = {name: len((ROOT / "examples" / f"{name}.py").read_text(encoding="utf-8").splitlines()) for name in EXAMPLES}
    assert {name: n for name, n in lines.items() if not 20 <= n <= 60} == {}


def test_the_gallery_shows_every_example() -> None:
    page = (ROOT / "docs" / "tutorials" / "gallery.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"^(\w+)\.main\(\)$", page, re.M)) == EXAMPLES
    assert sorted(re.findall(r"literalinclude\} \.\./\.\./examples/(\w+)\.py", page)) == EXAMPLES
