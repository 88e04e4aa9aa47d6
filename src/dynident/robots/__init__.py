"""Robots of the literature: their models as printed (misprints corrected), and as mechanisms. Each is loaded on first use."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dynident.robots import cft, dualv, er3a_c60, five_bar, mast, prr2, prs3, replalink, rrr

__all__ = ["cft", "dualv", "er3a_c60", "five_bar", "mast", "prr2", "prs3", "replalink", "rrr"]


def __getattr__(name: str) -> ModuleType:
    if name in __all__:
        return import_module(f"dynident.robots.{name}")
    raise AttributeError(f"module 'dynident.robots' has no attribute '{name}'")
