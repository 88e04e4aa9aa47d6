"""The repository: one version of three packages, dependencies that point one way, hooks and continuous integration."""

from __future__ import annotations

import importlib
import importlib.util
import logging
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

import dynident
import matrix

ROOT = Path(__file__).resolve().parents[1]
PROJECTS = {
    name: tomllib.loads((ROOT / "packages" / name / "pyproject.toml").read_text(encoding="utf-8"))
    for name in ("dynident", "dynident-lab", "dynident-papers")
}
MOVED = {
    "robots": "dynident_papers.robots",
    "reproduce": "dynident_papers.reproduce",
    "testbench": "dynident_lab.testbench",
    "link": "dynident_lab.link",
    "fleet": "dynident_lab.fleet",
}


def test_the_three_packages_have_one_version() -> None:
    assert {project["project"]["version"] for project in PROJECTS.values()} == {dynident.__version__}
    assert f"\nversion: {dynident.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


def test_the_packages_require_each_other_exactly() -> None:
    pinned = set()
    for project in PROJECTS.values():
        table = project["project"]
        extras = table.get("optional-dependencies", {}).values()
        required = [*table["dependencies"], *(name for extra in extras for name in extra)]
        pinned |= {name for name in required if name.startswith("dynident") and "[" not in name}
    assert pinned == {f"{name}=={dynident.__version__}" for name in PROJECTS}


def test_imports_respect_the_contracts() -> None:
    cli = pytest.importorskip("importlinter.cli", reason="import-linter is not installed")
    status = cli.lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True)
    for logger in logging.root.manager.loggerDict.values():
        if isinstance(logger, logging.Logger):
            logger.disabled = False  # import-linter disables every logger that it does not know
    assert status == cli.EXIT_STATUS_SUCCESS, "import-linter found an import against the layers; its report is printed above"


def test_every_module_of_the_core_has_a_layer() -> None:
    """The contract would not cover a subpackage or module that it does not name."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
    (layers,) = (contract["layers"] for contract in contracts if "dynident.mechanics" in contract["layers"])
    source = Path(dynident.__file__).parent
    modules = {path.parent.name for path in source.glob("*/__init__.py")} | {path.stem for path in source.glob("[a-z]*.py")}
    assert {name.strip() for layer in layers for name in layer.split("|")} == {
        f"dynident.{name}" for name in modules - set(MOVED)
    }


def test_only_the_graph_uses_the_compiler() -> None:
    users = re.compile(r"^\s*(from|import) (llvmlite|numba)\b", re.M)
    sources = [path for path in (ROOT / "packages").glob("*/src/**/*.py") if users.search(path.read_text(encoding="utf-8"))]
    assert [path.name for path in sources] == ["machine.py"]


@pytest.mark.parametrize("name", MOVED)
def test_an_old_import_path_names_the_new_package(name: str) -> None:
    with pytest.raises(ImportError, match=rf"{MOVED[name]}.*pip install 'dynident\[(lab|papers)\]'"):
        importlib.import_module(f"dynident.{name}")
    assert importlib.util.find_spec(MOVED[name])


def test_the_changelog_has_dated_releases_and_an_unreleased_section() -> None:
    sections = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.M)
    assert sections[0] == "[Unreleased]"
    assert all(re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d{2}-\d{2}", section) for section in sections[1:])


def _yaml(path: str) -> Any:
    yaml = pytest.importorskip("yaml", reason="YAML is an extra: pip install 'dynident[yaml]'")
    return yaml.safe_load((ROOT / path).read_text(encoding="utf-8"))


def test_hooks_are_local_tools_of_the_environment() -> None:
    (repository,) = _yaml(".pre-commit-config.yaml")["repos"]
    assert repository["repo"] == "local"
    assert {hook["entry"].split()[0].rpartition("/")[2] for hook in repository["hooks"]} == {"ruff", "mypy", "lint-imports"}
    assert all(hook["language"] == "system" for hook in repository["hooks"])
    patterns = [hook["files"] for hook in repository["hooks"] if "files" in hook]
    assert all(re.search(pattern, "packages/dynident/src/dynident/errors.py") for pattern in patterns)


def test_the_continuous_integration_runs_make_targets_on_the_supported_versions() -> None:
    jobs = _yaml(".github/workflows/ci.yml")["jobs"]
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    ours = [job for job in jobs.values() if not job.get("continue-on-error")]  # the Makefile needs a POSIX environment
    commands = [step["run"].split() for job in ours for step in job["steps"] if "run" in step]
    assert all(command[0] == "make" and command[1] in targets for command in commands)
    assert {command[1] for command in commands} == {"chromium", "test", "docs", "wheel"}
    classifiers = PROJECTS["dynident"]["project"]["classifiers"]
    supported = [x.rpartition(" ")[2] for x in classifiers if x.startswith("Programming Language :: Python :: 3.")]
    assert jobs["test"]["strategy"]["matrix"]["python"] == supported


def test_every_group_of_the_matrix_has_tests() -> None:
    for row in matrix.rows():
        assert all(matrix.files_of(group) for group in row.groups), row.name
        for name in row.sensitive:
            path, _, test = matrix.path_of(name).partition("::")
            assert not test or f"def {test}(" in Path(path).read_text(encoding="utf-8"), name
