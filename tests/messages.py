"""All messages of the packages in one listing: `python tests/messages.py [PATTERN]` prints them by file and line."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
SOURCES = sorted((ROOT / "packages").glob("*/src/**/*.py"))


class Message(NamedTuple):
    """A text and where it is."""

    path: Path
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}: {self.text}"


def messages(path: Path) -> Iterator[Message]:
    """Yield the sentences in a source file: strings of four words or more that are not docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    formatted = [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
    parts = {id(part) for node in formatted for part in ast.walk(node) if part is not node}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            text = "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and not {id(node)} & (docstrings | parts):
            text = node.value
        else:
            continue
        if len(re.findall(r"[A-Za-z]{2,}", text)) >= 4:
            yield Message(path, node.lineno, " ".join(text.split()))


def prose(page: Path) -> str:
    """Return a page of the documentation without code, tables of contents and mathematics."""
    text = re.sub(r"^ *(```|:::).*?^ *\1", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    return re.sub(r"`[^`\n]*`|\$\$.*?\$\$|\$[^$\n]*\$", "", text, flags=re.S)


if __name__ == "__main__":
    for message in (found for source in SOURCES for found in messages(source)):
        if not sys.argv[1:] or re.search(sys.argv[1], message.text):
            sys.stdout.write(f"{message}\n")
