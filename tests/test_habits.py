"""Habits of the repository: one version, hooks without downloads, a continuous integration that runs what everybody runs."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

import dynident
import matrix

ROOT = Path(__file__).resolve().parents[1]


def test_the_version_is_written_once() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert "version" not in project["project"]
    assert project["project"]["dynamic"] == ["version"]
    assert project["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "dynident.__version__"}
    text = (ROOT / "src" / "dynident" / "__init__.py").read_text(encoding="utf-8")
    assert re.findall(r'^__version__ = "(.+)"$', text, re.M) == [dynident.__version__]


def test_the_changelog_has_dated_releases_and_a_place_for_what_comes() -> None:
    sections = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.M)
    assert sections[0] == "[Unreleased]"
    assert all(re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d{2}-\d{2}", section) for section in sections[1:])


def test_hooks_are_local_and_tools_of_the_environment() -> None:
    yaml = pytest.importorskip("yaml", reason="YAML is an extra: pip install 'dynident[yaml]'")
    repositories = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"]
    assert [repository["repo"] for repository in repositories] == ["local"]
    hooks = repositories[0]["hooks"]
    assert {hook["entry"].split()[0].rpartition("/")[2] for hook in hooks} == {"ruff", "mypy", "lint-imports"}
    assert all(hook["language"] == "system" for hook in hooks)


def test_the_continuous_integration_runs_make_targets_on_the_promised_versions() -> None:
    yaml = pytest.importorskip("yaml", reason="YAML is an extra: pip install 'dynident[yaml]'")
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))["jobs"]
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    commands = [step["run"].split() for job in jobs.values() for step in job["steps"] if "run" in step]
    assert all(command[0] == "make" and command[1] in targets for command in commands)
    assert {command[1] for command in commands} == {"test", "docs", "wheel"}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    promised = [x.rpartition(" ")[2] for x in project["classifiers"] if x.startswith("Programming Language :: Python :: 3.")]
    assert jobs["test"]["strategy"]["matrix"]["python"] == promised


def test_every_room_of_the_matrix_has_tests_and_every_row_says_how_it_was_red() -> None:
    for row in matrix.rows():
        assert all(any(matrix.HERE.glob(f"test_{room}*.py")) for room in row.rooms), row.name
        assert all((matrix.HERE / name.partition("::")[0]).exists() for name in row.sensitive), row.name
