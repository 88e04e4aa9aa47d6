"""How wrong input must be answered: a DynidentError of one line."""

from __future__ import annotations

from collections.abc import Callable

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
