"""`dynident cache`: where compiled code is, how much there is, and how it goes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from dynident import graph as g
from dynident.cli import run
from dynident.graph.compiled import Compiled


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    def go(*args: str) -> str:
        assert run(["cache", *args]) == 0
        return capsys.readouterr().out

    return go


def compile_something(offset: float) -> None:
    y = np.empty((1, 1))
    function = g.Function("shift", {"x": 1}, {"y": [g.Graph().symbol("x[0]") + offset]})
    Compiled(function)(1, {"x": np.ones((1, 1)), "y": y})


def test_the_folder_is_shown_and_cleared(call: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DYNIDENT_CACHE", str(tmp_path / "objects"))
    empty = {"folder": str(tmp_path / "objects"), "objects": 0, "bytes": 0, "removed": 0}
    assert json.loads(call("--json")) == empty
    compile_something(1.0)
    compile_something(2.0)
    data = json.loads(call("--json"))
    assert data["objects"] == 2
    assert data["bytes"] == sum(path.stat().st_size for path in (tmp_path / "objects").iterdir())
    text = call()
    assert str(tmp_path / "objects") in text.replace("\n", "")
    assert "objects: 2" in text
    assert "removed: 2 objects" in call("--clear")
    assert json.loads(call("--json")) == empty
    assert list((tmp_path / "objects").iterdir()) == []


def test_a_cache_that_is_switched_off(call: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DYNIDENT_CACHE", "")
    assert "is not kept" in call()
    assert json.loads(call("--clear", "--json")) == {"folder": None, "objects": 0, "bytes": 0, "removed": 0}
