"""Names from a stranger's file in what is generated: never code, never a broken file, never a raw control character."""

from __future__ import annotations

import ast
import os
import shutil
import zipfile
from pathlib import Path

import pytest
from defusedxml import ElementTree as ET

import dynident as di
from dynident.errors import DynidentError
from dynident.export.robot import remark
from dynident.files import write_atomic, xml_text
from dynident.mechanism import write_svg
from dynident_lab.fmu import write_fmu

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


def test_the_c_of_an_fmu_holds_no_name_as_code(tmp_path: Path) -> None:
    robot = di.Mechanism.from_dh([(0.3, 0.0, 0.0, 0.0)], name=HOSTILE)
    with zipfile.ZipFile(write_fmu(robot, tmp_path / "made.fmu")) as parts:
        source = next(name for name in parts.namelist() if name.endswith(".c"))
        text, description = parts.read(source).decode("ascii"), parts.read("modelDescription.xml").decode()
    (line,) = (line for line in text.splitlines() if line.startswith("/* robot"))
    assert line.endswith("*/")
    assert line.count("*/") == 1
    assert ET.fromstring(description).get("modelName") == HOSTILE
    assert not set("\u202e\x9b") & set(description)


def test_hostile_joints_and_keywords_of_c_are_variables_of_an_fmu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    urdf = "<robot name='double'><link name='base'/>"
    for i, joint in enumerate(("static", HOSTILE, 'a"><x/>', "a b", "a_b")):
        before = f"l{i - 1}" if i else "base"
        mass = "<mass value='1'/><inertia ixx='1' iyy='1' izz='1' ixy='0' ixz='0' iyz='0'/>"
        urdf += f"<link name='l{i}'><inertial>{mass}</inertial></link>"
        urdf += f"<joint name='{xml_text(joint)}' type='continuous'><parent link='{before}'/><child link='l{i}'/></joint>"
    (tmp_path / "robot.urdf").write_text(f"{urdf}</robot>", encoding="utf-8")
    robot = di.Mechanism.from_urdf(tmp_path / "robot.urdf")
    with zipfile.ZipFile(write_fmu(robot, tmp_path / "made.fmu")) as parts:
        text, description = parts.read("sources/double_.c").decode("ascii"), parts.read("modelDescription.xml").decode()
    assert "import os" not in text
    assert "<x/>" not in description
    names = [x.get("name") for x in ET.fromstring(description).iter("Float64")]
    assert len(set(names)) == len(names)
    assert all(str(name).isidentifier() for name in names)


def test_names_in_xml_are_read_back_and_show_nothing_raw(tmp_path: Path) -> None:
    made = f'<a b="{xml_text(HOSTILE)}"/>'
    assert not set("\n\u202e\x9b\u2028") & set(made)
    assert ET.fromstring(made).get("b") == HOSTILE
    drawn = write_svg(di.Mechanism.from_dh([(0.3, 0.0, 0.0, 0.0)], name=HOSTILE), tmp_path / "made.svg").read_text("utf-8")
    assert ET.fromstring(drawn).tag.endswith("svg")
    assert not set("\u202e\x9b\u2028") & set(drawn)


def test_a_file_never_replaces_a_pipe_or_device(tmp_path: Path) -> None:

    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DynidentError, match="a device or pipe, which a file would replace"):
        write_atomic(tmp_path / "pipe", "x")
    assert (tmp_path / "pipe").is_fifo()
