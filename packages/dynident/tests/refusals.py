"""How wrong input must be answered: a DynidentError of one line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

import pytest

from dynident.errors import DynidentError


def refused(call: Callable[[], object], *words: str) -> None:
    """Assert that the call raises a DynidentError of one line that contains the words."""
    with pytest.raises(DynidentError) as caught:
        call()
    sentence = str(caught.value)
    assert len(sentence) > 20
    assert "\n" not in sentence
    assert "Traceback" not in sentence
    for word in words:
        assert word in sentence, sentence


def all_refused(cases: Iterable[tuple[Callable[[], object], str]], kind: type[Exception] = DynidentError) -> None:
    """Assert that every call raises `kind` with one line that matches its pattern; all mismatches are reported together."""
    wrong = []
    for i, (call, pattern) in enumerate(cases):
        try:
            found = f"returned {call()!r}"
        except kind as error:
            found = str(error)
            if re.search(pattern, found) and "\n" not in found:
                continue
        except Exception as error:
            found = f"{type(error).__name__}: {error}"
        wrong.append(f"case {i}: expected {pattern!r}, {found}")
    assert not wrong, "\n".join(wrong)
