"""The examples of the README and of the documentation run as they stand."""

from __future__ import annotations

import gzip
import os
import re
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import dynident as di

ROOT = Path(__file__).resolve().parents[1]
DEMO = ROOT / "examples" / "demo"
DOCS = ROOT / "docs"
PAGES = [page for page in sorted(DOCS.rglob("*.md")) if not {"_build", "generated"} & set(page.parts)]
FENCE = re.compile(r"^ *```(\S*)[^\n]*\n(.*?)^ *```$", re.M | re.S)
#: Languages a code block may have: Python and the cells of tutorials run here, the others are for people.
RUN = ("python", "{code-cell}")
MARKED = {*RUN, "sh", "c", "toml", "text", "csv", "xml", "{math}", "{eval-rst}", "{toctree}", "{literalinclude}"}


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with robot.urdf, run.csv and other.csv: the demo's, as plain CSV files without dynident's own first line."""
    folder = tmp_path_factory.mktemp("example")
    shutil.copy(DEMO / "robot.urdf", folder)
    for source, name in (("train", "run"), ("validate", "other")):
        first, rest = gzip.decompress((DEMO / f"{source}.csv.gz").read_bytes()).split(b"\n", 1)
        assert first.startswith(b"#")
        (folder / f"{name}.csv").write_bytes(rest)
    return folder


def _blocks(page: Path) -> list[tuple[str, str]]:
    return FENCE.findall(page.read_text(encoding="utf-8"))


def _run(code: str, folder: Path, where: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    monkeypatch.chdir(folder)
    space: dict[str, object] = {"__name__": "example"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # examples may show what happens with imperfect data
        exec(compile(code, where, "exec"), space)
    return space


def test_the_readme_example_runs(example: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    blocks = [code for language, code in _blocks(ROOT / "README.md") if language == "python"]
    assert len(blocks) == 1
    assert len([line for line in blocks[0].splitlines() if line.strip()]) <= 15
    space = _run(blocks[0], example, "README.md", monkeypatch)
    result = space["result"]
    assert isinstance(result, di.report.Identification)
    assert result.scores[0].metrics.relative < 0.05
    assert not result.scores[0].training
    written = di.Mechanism.from_urdf(example / "out" / "identified.urdf")
    assert all(check.ok for check in result.fit.consistency())
    np.testing.assert_allclose(written.parameters.values, result.fit.standard.values, rtol=1e-9, atol=1e-12)
    assert "verdict" in capsys.readouterr().out


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS).with_suffix("")))
def test_every_python_block_of_the_documentation_runs(page: Path, example: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of one page share their names, as a reader would type them one after the other."""
    blocks = _blocks(page)
    unknown = {language for language, _ in blocks} - MARKED
    assert not unknown, f"{page.name}: code blocks are marked {unknown}; mark them as one of {MARKED}"
    cells = [re.sub(r"^:tags:.*\n", "", code) for language, code in blocks if language in RUN]
    code = "\n".join(cell for cell in cells if not cell.startswith("%"))  # lines with % are for notebooks
    if code and page.stem != "gallery":  # tests/test_examples.py runs the programs of the gallery
        pytest.importorskip("sympy", reason="the examples use every extra: pip install 'dynident[all]'")
        _run(code, example, page.name, monkeypatch)


def test_the_one_command_of_the_readme_runs(example: Path) -> None:
    pytest.importorskip("matplotlib", reason="the report is an extra: pip install 'dynident[report]'")
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    command = re.search(r"^dynident (identify .*)$", text, re.M)
    assert command
    done = subprocess.run(
        [sys.executable, "-m", "dynident", *command.group(1).split()],
        cwd=example,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "MPLBACKEND": "Agg", "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
    )
    assert done.returncode == 0, done.stderr
    made = {path.name for path in (example / "out").iterdir()}
    assert {"fit.json", "verdict.json", "report.html", "identified.urdf"} <= made


def _anchors(page: Path) -> set[str]:
    """Return the anchors of the headings of a page, as Sphinx and GitHub make them."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", page.read_text(encoding="utf-8")), re.M)
    return {re.sub(r"[^\w -]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def test_links_of_the_documents_lead_to_files_and_headings() -> None:
    for page in [*ROOT.glob("*.md"), *PAGES]:
        for target, anchor in re.findall(r"\]\(([^)#\s]*)#?([^)\s]*)\)", page.read_text(encoding="utf-8")):
            if "://" not in target:
                file = (page.parent / target) if target else page
                assert file.exists(), f"{page.name} links to {target}, which does not exist"
                assert not anchor or anchor in _anchors(file), f"{page.name} links to {target}#{anchor}, which is not a heading"


def test_make_targets_that_the_documents_name_exist() -> None:
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md"):
        named = set(re.findall(r"^make (\w+)", page.read_text(encoding="utf-8"), re.M))
        assert named <= targets, f"{page.name} names {named - targets}"


def test_constraints_are_exact_and_without_addresses() -> None:
    lines = [line for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    assert len(lines) > 50
    for line in lines:
        assert re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.+!]+", line), line
