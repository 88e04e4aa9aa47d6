"""The same input, seed and number of steps give the same bytes; a plan's identity is that of its motion."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from dynident.cli import run

sys.path.insert(0, str(Path(__file__).parents[1]))
from fuzz.kills import VERBS
from fuzz.samples import good_files


@pytest.mark.parametrize("verb", VERBS)
def test_a_command_writes_the_same_bytes_again(tmp_path, monkeypatch, verb):
    good_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    found = []
    for name in ("one", "two"):
        args = tuple(arg.replace("out", name, 1) if arg.startswith("out") else arg for arg in VERBS[verb])
        assert run(args) == 0
        # The page of a report has the date of its making.
        found.append({path.name: path.read_bytes() for path in Path(name).iterdir() if path.suffix != ".html"})
    assert len(found[0]) >= 2
    assert set(found[0]) == set(found[1])
    assert [name for name in found[0] if found[0][name] != found[1][name]] == []
    if verb == "excite":
        plan = json.loads(found[0]["plan.json"])
        assert "seconds" not in plan["notes"]
        assert len(plan["identity"]) == 16
