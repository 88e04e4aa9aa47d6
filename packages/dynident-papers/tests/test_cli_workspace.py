"""The command workspace."""

from __future__ import annotations

import sys

import numpy as np
import pytest

pytest.importorskip("matplotlib")

import dynident as di
from dynident.__main__ import main
from dynident_papers.robots import five_bar


def run(monkeypatch: pytest.MonkeyPatch, *args: str) -> int:
    monkeypatch.setattr(sys, "argv", ["dynident", *args])
    try:
        main()
    except SystemExit as stop:
        return int(stop.code or 0)
    return 0


def test_the_work_space_of_the_five_bar_ends_where_an_arm_is_stretched(monkeypatch, capsys, tmp_path):
    assert run(monkeypatch, "workspace", "five_bar", "--size", "41", "-o", str(tmp_path / "out")) == 0
    assert "cells over x, y are reached" in capsys.readouterr().out
    assert {file.name for file in (tmp_path / "out").iterdir()} == {
        "workspace.json",
        "workspace.png",
        "workspace_frame.png",
    }
    found = di.load(tmp_path / "out" / "workspace.json")
    g = five_bar.Geometry()
    x, y = np.meshgrid(found.first, found.second, indexing="ij")
    sides = (np.hypot(x - s * 0.5 * g.base, y) for s in (-1.0, 1.0))
    inside = np.logical_and.reduce([(r < g.l1 + g.l2) & (r > abs(g.l1 - g.l2)) for r in sides])
    assert not found.reached[~inside].any()
    assert found.reached[inside].mean() > 0.97  # the map is grown from cell to cell and misses a few at the border


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("five_bar", "--over", "x"), "name two different of"),
        (("five_bar", "--range", "x"), "'x' has no name"),
        (("five_bar", "--range", "x=1:a"), "give name=low:high"),
        (("mast", "--held", "z=high"), "give name=value"),
        (("mast", "--over", "psi,z"), "coordinate 'z' has no limits; give --range z=low:high"),
        (("mast", "--frame", "hand"), "has no link 'hand'"),
    ],
)
def test_what_a_map_needs_is_said_in_one_sentence(monkeypatch, capsys, words, sentence):
    assert run(monkeypatch, "workspace", *words) == 1
    error = capsys.readouterr().err.strip()
    assert sentence in error and "\n" not in error
