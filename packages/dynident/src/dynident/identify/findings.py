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
    """Return the notes with a head: the same but for numbers only once, and with their logs unless these are all sources.

    What is wired wrongly is wrong in every log. A log with fewer rows than parameters hardly contradicts itself but by chance,
    so a suspicion of it is believed only if logs of half of the time say the same.
    """
    logs = {str(source.get("name", "")) for source in sources}
    spent = {str(source["name"]): float(source["end"] - source["start"]) for source in sources if "start" in source}
    short = {str(source.get("name", "")) for source in sources if source.get("short")}
    texts: dict[str, str] = {}
    where: dict[str, list[str]] = {}
    for note in notes:
        if note.startswith(head):
            said, log = LOG.sub("", note.removeprefix(head)), LOG.search(note)
            key = NUMBER.sub("#", said)
            texts.setdefault(key, said)
            where.setdefault(key, []).extend([] if log is None else [log[1]])

    def believed(named: set[str]) -> bool:
        return head != HEAD or not (named and named <= short) or sum(spent[log] for log in named) >= 0.5 * sum(spent.values())

    return tuple(
        f"{said} (in {', '.join(dict.fromkeys(where[key]))})" if where[key] and set(where[key]) != logs else said
        for key, said in texts.items()
        if believed(set(where[key]))
    )
