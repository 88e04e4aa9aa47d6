"""Stage."""

from __future__ import annotations

from typing import Any


def build(page: Any) -> None:
    """Draw the stage."""


def stop(bench: Any) -> None:
    """Stop."""


def end(bench: Any) -> None:
    """End."""
