"""Messages, help and documentation use the terms of docs/glossary.md, and none that it replaces."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dynident.cli import application
from messages import ROOT, SOURCES, Message, messages, prose

GLOSSARY = ROOT / "docs" / "glossary.md"
PAGES = [page for page in sorted((ROOT / "docs").rglob("*.md")) if not {"_build", "generated"} & set(page.parts)]
DOCUMENTS = [
    page for page in (*PAGES, ROOT / "README.md", ROOT / "ARCHITECTURE.md") if page.name not in ("glossary.md", "references.md")
]
#: Uses of a replaced word in another sense, as they are written.
ALLOWED = re.compile(r"room temperature|leave these|stands? beside|--tell\b|report\[|compiled|opens? the")
WORDS = {
    "told": r"told",
    "tell": r"tells?|telling",
    "whoever": r"whoever",
    "so many": r"so many",
    "rub": r"rubs?|rubbing|rubbed",
    "witness": r"witness\w*",
    "belief": r"beliefs?|believed?|believes",
    "evidence": r"evidence",
    "leaves open": r"leaves? (?:\w+ ){0,6}open",
    "room": r"rooms?",
    "door": r"doors?",
    "mend": r"mends?|mended|mending",
    "anew": r"anew",
    "verb": r"verbs?",
    "stand-in": r"stand-ins?",
    "beyond doubt": r"beyond doubt",
    "specimen": r"specimens?",
    "alike": r"alike",
    "by commas": r"(?<!separated )by commas",
    "one's own": r"one's own",
    "of-fronting": r"(?-i:Of) (?:a|an|the) \w+",
}
REPLACED = re.compile(r"\b(?:" + "|".join(WORDS.values()) + r")\b", re.I)


def found(text: str) -> list[str]:
    """Return the replaced words in a text."""
    return [match.group() for match in REPLACED.finditer(ALLOWED.sub("", text))]


def test_messages_use_the_terms_of_the_glossary() -> None:
    every: list[Message] = [message for source in SOURCES for message in messages(source)]
    assert len(every) > 2000
    code = re.compile(r"[{;}] |\bdef \b|\bconst \b")  # generated programs
    assert [str(message) for message in every if not code.search(message.text) and found(message.text)] == []


def test_help_uses_the_terms_of_the_glossary() -> None:
    lines = application().generate_docs(output_format="rst").splitlines()
    assert len(lines) > 500
    assert [line for line in lines if found(line)] == []


@pytest.mark.parametrize("page", DOCUMENTS, ids=lambda page: str(page.relative_to(ROOT)))
def test_documents_use_the_terms_of_the_glossary(page: Path) -> None:
    assert [line for line in prose(page).splitlines() if found(line)] == []


def test_the_glossary_lists_the_replaced_words_and_about_two_hundred_terms() -> None:
    text = GLOSSARY.read_text(encoding="utf-8")
    terms, _, replaced = text.partition("## Words we replaced")
    entries = re.findall(r"^\| (?!term|---)([^|]+) \|", terms, re.M)
    assert len(entries) == len(set(entries)) >= 200
    assert {word for word in WORDS if f"| {word}" not in replaced and word not in ("tell", "of-fronting")} == set()
