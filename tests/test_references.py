"""Citations: every key is explained in docs/references.md, and nothing is cited that only insiders can find."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
REFERENCES = ROOT / "docs" / "references.md"
PUBLIC = [
    *(ROOT / "packages").glob("*/src/**/*.py"),
    *(ROOT / "docs").rglob("*.md"),
    *(ROOT / "docs").glob("*.py"),
    ROOT / "README.md",
]
FOLDERS = [ROOT / "tests", *(ROOT / "packages").glob("*/tests")]
TESTS = [path for folder in FOLDERS for path in folder.rglob("*.py") if path != Path(__file__).resolve()]

#: A bracket that begins with a key, ``[Name2000, eq. 1; Other2001]``; it may break across lines.
CITATION = re.compile(r"\[[A-Z][A-Za-z]+[0-9]{4}[a-z]?\b[^\[\]]*\]")
KEY = re.compile(r"\b[A-Z][A-Za-z]+(?:18|19|20)[0-9]{2}[a-z]?\b")
#: Names of working notes; ``digest()`` is a hash.
PRIVATE = re.compile(
    r"\bdocuments? [0-4]\b|\bdigests?\b(?!\()|\bERR-|\bpeers\.md|\btraps? [0-9]|\bpaper ?[AB]\b", re.IGNORECASE
)


def defined() -> list[str]:
    """Return the keys that the first two tables of the references explain, in their order."""
    tables = REFERENCES.read_text(encoding="utf-8").partition("## Misprints")[0]
    return re.findall(r"^\| ([A-Z][A-Za-z]+[0-9]{4}[a-z]?) \|", tables, re.M)


def cited(paths: list[Path]) -> dict[str, str]:
    """Return every key cited, with a file that cites it."""
    found = {}
    for path in paths:
        for citation in CITATION.findall(path.read_text(encoding="utf-8")):
            found.update(dict.fromkeys(KEY.findall(citation), str(path.relative_to(ROOT))))
    return found


def test_every_key_that_is_cited_is_in_the_references() -> None:
    found = cited(PUBLIC + TESTS)
    assert len(found) > 20
    assert {key: path for key, path in found.items() if key not in defined()} == {}


def test_every_reference_has_one_entry_and_is_cited() -> None:
    keys = defined()
    assert len(keys) == len(set(keys))
    assert set(keys) - set(cited([path for path in PUBLIC if path != REFERENCES])) == set()


def test_every_misprint_belongs_to_a_source() -> None:
    table = REFERENCES.read_text(encoding="utf-8").partition("## Misprints")[2]
    rows = [line for line in table.splitlines() if line.startswith("| ") and not line.startswith("| Key |")]
    assert rows
    assert all(row.count(" | ") == 4 for row in rows)
    assert {row.split(" | ")[0].removeprefix("| ") for row in rows} <= set(defined())


def test_nothing_private_is_cited() -> None:
    left = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in PUBLIC + TESTS
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if PRIVATE.search(line)
    ]
    assert left == []
