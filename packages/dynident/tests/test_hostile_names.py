"""Names from a stranger's file in what is generated: never code, never a broken file, never a raw control character."""

from __future__ import annotations

import ast
import os
from pathlib import Path

import pytest
from defusedxml import ElementTree as ET

from dynident.errors import DynidentError
from dynident.export.robot import remark
from dynident.files import write_atomic, xml_text

HOSTILE = 'a*/ int x; /*\nimport os\u202e\x9b--->"<&\u2028b'


@pytest.mark.parametrize(("ending", "text"), [(".py", "x = 1"), (".urdf", "<robot/>"), (".c", "int x;")])
def test_a_remark_stays_a_comment(tmp_path: Path, ending: str, text: str) -> None:
    file = tmp_path / f"made{ending}"
    file.write_text(text, encoding="utf-8")
    remark(file, [f"from {HOSTILE}"])
    made = file.read_text(encoding="utf-8")
    assert len(made.splitlines()) == 2
    assert not set("\u202e\x9b\u2028") & set(made)
    if ending == ".py":
        assert len(ast.parse(made).body) == 1
    elif ending == ".urdf":
        assert ET.fromstring(made).tag == "robot"
    else:
        assert made.count("*/") == 1


def test_names_in_xml_are_read_back_and_show_nothing_raw(tmp_path: Path) -> None:
    made = f'<a b="{xml_text(HOSTILE)}"/>'
    assert not set("\n\u202e\x9b\u2028") & set(made)
    assert ET.fromstring(made).get("b") == HOSTILE


def test_a_file_never_replaces_a_pipe_or_device(tmp_path: Path) -> None:

    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DynidentError, match="a device or pipe, which a file would replace"):
        write_atomic(tmp_path / "pipe", "x")
    assert (tmp_path / "pipe").is_fifo()
