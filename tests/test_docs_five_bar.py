"""The five-bar of docs/tutorials/parallel_robot.md: its commands reach controller code that a compiler accepts."""

import re
import shlex
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import dynident as di
from dynident.cli import run

PAGE = Path(__file__).parents[1] / "docs" / "tutorials" / "parallel_robot.md"
STRICT = ("-std=c99", "-O1", "-Wall", "-Wextra", "-pedantic", "-Werror")


def compilers() -> list[tuple[str, ...]]:
    """Return the C compilers that are here: gcc, and clang of the PyPI package ziglang."""
    found = [("gcc",)] if shutil.which("gcc") else []
    return [*found, (sys.executable, "-m", "ziglang", "cc")] if find_spec("ziglang") else found


def test_five_bar_of_the_documentation_reaches_controller_code(tmp_path, monkeypatch, capsys) -> None:
    text = PAGE.read_text(encoding="utf-8").partition("## A delta")[0]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("ZIG_GLOBAL_CACHE_DIR", str(tmp_path / "zig"))
    for kind in ("xml", "toml"):
        (block,) = re.findall(rf"```{kind}\n(.*?)```", text, re.S)
        Path("fivebar.urdf" if kind == "xml" else "fivebar.toml").write_text(block, encoding="utf-8")
    (commands,) = re.findall(r"```sh\n(.*?)```", text, re.S)
    said = ""
    for line in commands.strip().splitlines():
        words = shlex.split(line.replace("--time-budget 20", "--iterations 10 --starts 2"))[1:]
        assert run(words) == 0, line
        said += capsys.readouterr().out
    assert "2 degrees of freedom" in said and "held out: stage" in said
    fit = di.Fit.load("out/fit.json")
    assert fit.mechanism.loops and fit.training_relative < 0.02
    found = compilers()
    if not found:
        pytest.skip("no C compiler is here")
    for compiler in found:
        command = [*compiler, *STRICT, "fivebar.c", "fivebar_test.c", "-lm", "-o", "self_test"]
        subprocess.run(command, cwd="controller", check=True, capture_output=True, text=True)
        subprocess.run(["./self_test"], cwd="controller", check=True, capture_output=True, text=True)
