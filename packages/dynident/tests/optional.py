"""Libraries that some tests compare with: a test that uses one that is not installed is skipped."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest


class Missing:
    """Stands for a library that is not installed; its first use skips the test."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        pytest.skip(f"{self._name} is not installed", allow_module_level=True)


def optional(name: str) -> Any:
    """Return a module, or `Missing` in its place."""
    try:
        return import_module(name)
    except ModuleNotFoundError:
        return Missing(name)
