"""What a simulation warns of, for those who run many and keep the sentences with the numbers."""

from __future__ import annotations

import warnings
from contextvars import ContextVar

from dynident.errors import SimulationWarning

COLLECTED: ContextVar[list[str] | None] = ContextVar("notices", default=None)


def notify(text: str, *, stacklevel: int) -> None:
    """Warn, and leave the sentence with whoever collects.

    Parameters
    ----------
    text : str
        One sentence.
    stacklevel : int
        As of `warnings.warn`, counted from the caller.
    """
    box = COLLECTED.get()
    if box is not None:
        box.append(text)
    warnings.warn(text, SimulationWarning, stacklevel=stacklevel + 1)
