"""Commands of work-space maps and of repeatability over days and robots."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib")

import dynident as di
from dynident.__main__ import main
from dynident_lab.testbench import CycleFits
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
        (("mast", "--over", "psi,z"), "coordinate 'z' has no limits; say where it goes with --range z=low:high"),
        (("mast", "--frame", "hand"), "has no link 'hand'"),
    ],
)
def test_what_a_map_needs_is_said_in_one_sentence(monkeypatch, capsys, words, sentence):
    assert run(monkeypatch, "workspace", *words) == 1
    error = capsys.readouterr().err.strip()
    assert sentence in error and "\n" not in error


def cycles(folder: Path, name: str, mass: float, seed: int) -> Path:
    t = np.arange(12.0) * 300.0
    friction = 10.0 + 4.0 * np.exp(-t / 1500.0)
    values = np.column_stack([np.full(t.size, mass), friction]) + 0.002 * np.random.default_rng(seed).normal(size=(t.size, 2))
    fits = CycleFits(
        "arm", name, "cubic", tuple(range(12)), t, ("my_link_3R", "a0_joint_1"), values, 0.002 + 0 * values, 0 * t, 0 * t
    )
    (folder / name).mkdir(parents=True)
    fits.save(folder / name / "cycles.json")
    return folder / name / "cycles.json"


def test_robots_that_differ_are_told_from_days_that_differ(monkeypatch, capsys, tmp_path):
    files = [str(cycles(tmp_path, f"day_{k}", 1.0 if k < 4 else 1.05, k)) for k in range(8)]
    words = ("repeatability", *files, "--robots", "A,A,A,A,B,B,B,B", "-o", str(tmp_path / "out"))
    assert run(monkeypatch, *words, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    mass = next(entry for entry in found["parameters"] if entry["name"] == "my_link_3R")
    assert mass["spread"]["robots"] == pytest.approx(0.05 / np.sqrt(2.0), rel=0.05)
    assert mass["spread"]["robots_p"] < 1e-6 and mass["spread"]["tests"] < 0.002
    friction = di.load(tmp_path / "out" / "repeatability.json")["a0_joint_1"]
    assert friction.spread.robots_p > 0.01 and friction.mix is not None
    assert friction.mix.change == pytest.approx(0.4, rel=0.03)
    assert (tmp_path / "out" / "repeat_my_link_3R.png").exists()
    assert run(monkeypatch, "repeatability", *files, "--robots", "A,B") == 1
    assert "--robots names 2 robots for 8 campaigns" in capsys.readouterr().err
    assert run(monkeypatch, "repeatability", str(tmp_path / "none.json")) == 1
    assert "there is no file" in capsys.readouterr().err
