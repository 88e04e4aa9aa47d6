"""Notes that doubt the data of a log or the description: how they begin, which log they are about, all of them in one list."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

HEAD = "suspicion: "
DESCRIBED = "description: "  # how a note begins that doubts the description, not the data
LOG = re.compile(r" \[log '(.*)'\]$")  # how sentences end that are about one log of several
NUMBER = re.compile(r"(?<![\w.])-?\d[\d.]*(?:e[+-]?\d+)?(?!\w)")  # no part of a name


def in_log(sentence: str, log: str) -> str:
    """Return a sentence that says which log it is about."""
    return sentence if LOG.search(sentence) else f"{sentence} [log '{log}']"


def findings(notes: Sequence[str], sources: Sequence[Mapping[str, Any]], head: str = HEAD) -> tuple[str, ...]:
    """Return the notes with a head: the same but for numbers only once, and with their logs unless these are all sources."""
    logs = {str(source.get("name", "")) for source in sources}
    texts: dict[str, str] = {}
    where: dict[str, list[str]] = {}
    for note in notes:
        if note.startswith(head):
            said, log = LOG.sub("", note.removeprefix(head)), LOG.search(note)
            key = NUMBER.sub("#", said)
            texts.setdefault(key, said)
            where.setdefault(key, []).extend([] if log is None else [log[1]])
    return tuple(
        f"{said} (in {', '.join(dict.fromkeys(where[key]))})" if where[key] and set(where[key]) != logs else said
        for key, said in texts.items()
    )
