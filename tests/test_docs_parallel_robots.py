"""The robots of docs/tutorials/parallel_robot.md: their commands reach a verdict and controller code that compilers accept."""

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
FIVE_BAR, DELTA, DUALV = re.split("## A delta|## More motors", PAGE.read_text(encoding="utf-8"))
STRICT = ("-std=c99", "-O1", "-Wall", "-Wextra", "-pedantic", "-Werror")


def compilers() -> list[tuple[str, ...]]:
    """Return the C compilers that are here: gcc, and clang of the PyPI package ziglang."""
    found = [("gcc",)] if shutil.which("gcc") else []
    return [*found, (sys.executable, "-m", "ziglang", "cc")] if find_spec("ziglang") else found


def blocks(text: str, kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", text, re.S)


@pytest.mark.parametrize(("name", "text", "dof"), [("fivebar", FIVE_BAR, 2), ("delta", DELTA, 3), ("dualv", DUALV, 3)])
def test_commands_of_the_tutorial_reach_a_verdict_and_controller_code(name, text, dof, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ZIG_GLOBAL_CACHE_DIR", str(tmp_path / "zig"))
    for kind, ending in (("xml", "urdf"), ("toml", "toml")):
        for block in blocks(text, kind):
            Path(f"{name}.{ending}").write_text(block, encoding="utf-8")
    for block in blocks(text, "python"):
        exec(block, {})
    said = ""
    for line in "".join(blocks(text, "sh")).splitlines():
        if line.startswith("dynident"):
            assert run(shlex.split(line)[1:]) == 0, line
            said += capsys.readouterr().out
    assert f"{dof} degrees of freedom" in said and "held out: stage" in said
    assert "VALIDATED (11 checks passed)" in said and "verdict: validated and all checks passed" in said
    assert di.Fit.load("out/fit.json").mechanism.loops
    if not (found := compilers()):
        pytest.skip("no C compiler is here")
    for compiler in found:
        command = [*compiler, *STRICT, f"{name}.c", f"{name}_test.c", "-lm", "-o", "self_test"]
        subprocess.run(command, cwd="controller", check=True, capture_output=True, text=True)
        tested = subprocess.run(["./self_test"], cwd="controller", check=True, capture_output=True, text=True)
        assert float(tested.stdout.split()[-1]) < 1e-12
