"""Options of lab and papers commands that make no sense, with robots of the literature."""

from __future__ import annotations

import pytest

from dynident.cli import run
from dynident.errors import DynidentError


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("schedule", "er3a_c60", "--joint", "joint_4", "--interval", "1e-30", "-o", "x"), "a time of at least 1 s"),
        (("track", "mast", "--seed=-1"), "--seed is -1"),
        (("controller", "mast", "--duration", "1e30"), "--duration is 1e.30; give 0 to"),
        (("controller", "mast", "--watchdog", "nan"), "--watchdog is nan"),
        (("reproduce", "cft-table-6", "--workers", "99999999999999999999"), "1 to 1024"),
    ],
)
def test_options_beyond_sense(words, sentence, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DynidentError, match=sentence):
        run(words)


def test_reproduce_leaves_files_of_others_alone(tmp_path, capsys):
    for name in ("fit.json", "notes.txt", "cft-jk.json"):
        (tmp_path / name).write_text("mine")
    assert run(["reproduce", "thermal-table-4", "-o", str(tmp_path)]) == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["fit.json", "notes.txt", "reproduce.html", "thermal-table-4.json"]
