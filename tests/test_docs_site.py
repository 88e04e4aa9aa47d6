"""The documentation site: pages name calls and commands that exist, and are organised by purpose."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import dynident as di
from dynident.cli import command_names
from test_public_api import STUBS

DOCS = Path(__file__).resolve().parents[1] / "docs"


def test_every_call_of_the_task_page_exists() -> None:
    homes = {
        "Log": di.Log,
        "Mechanism": di.Mechanism,
        "Fit": di.Fit,
        "Result": importlib.import_module("dynident.results").Result,
    }
    names = re.findall(r"`([\w.]+)`", (DOCS / "howto" / "index.md").read_text(encoding="utf-8"))
    assert len(names) > 40
    for name in names:
        first, *rest = name.split(".")
        if first.startswith("dynident"):
            module, _, function = name.rpartition(".")
            found = getattr(importlib.import_module(module), function)
        else:
            found = di if first == "di" else homes[first]
            for part in rest:
                found = getattr(found, part)
        assert callable(found), name


def test_every_command_is_on_one_page_of_the_reference() -> None:
    pages = [page.read_text(encoding="utf-8") for page in sorted((DOCS / "reference" / "commands").glob("*.md"))]
    found = [name for page in pages for name in re.search(r":commands: (.*)", page)[1].split(", ")]  # type: ignore[index]
    assert sorted(found) == sorted(command_names())
    table = (DOCS / "reference" / "commands.md").read_text(encoding="utf-8")
    assert {name for name in found if f"`{name}`" not in table} == set()


def test_every_public_subpackage_is_in_the_reference() -> None:
    page = (DOCS / "reference" / "api.md").read_text(encoding="utf-8")
    internal = {"dynident", "dynident.examples", "dynident.export", "dynident.graph", "dynident.cli"}
    public = {package for package in STUBS if package.partition(".")[0] == "dynident"} - internal
    assert {package for package in public if f"   {package}\n" not in page} == set()


def test_questions_of_newcomers_find_a_page() -> None:
    text = {
        page: page.read_text(encoding="utf-8").lower()
        for folder in ("howto", "tutorials")
        for page in (DOCS / folder).glob("*.md")
    }
    for words in (
        "gravity compensation",
        "rtde",
        "macos",
        "motor currents",
        "payload",
        "ros bags",
        "franka",
        "temperature",
        "conda",
    ):
        assert any(words in page.partition("\n## ")[0] for page in text.values()), words


def test_the_faq_has_twelve_questions_with_links_and_is_linked_from_the_readme() -> None:
    page = (DOCS / "faq.md").read_text(encoding="utf-8")
    questions = re.split(r"^\d+\. ", page, flags=re.M)[1:]
    assert len(questions) == 12
    assert all("](" in question for question in questions)
    assert "](docs/faq.md)" in (DOCS.parent / "README.md").read_text(encoding="utf-8")
