"""Robots of the literature: their models as printed (misprints corrected), and as mechanisms. Each is loaded on first use."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dynident.arguments import guard, guarded

if TYPE_CHECKING:
    from dynident.robots import cft, dualv, er3a_c60, five_bar, mast, prr2, prs3, replalink, rrr
    from dynident.robots.proofs import proof_case, ready_machine

ROBOTS = ("cft", "dualv", "er3a_c60", "five_bar", "mast", "prr2", "prs3", "replalink", "rrr")
"""Names of the robots; each is a module of this room."""

__all__ = [
    "ROBOTS",
    "cft",
    "dualv",
    "er3a_c60",
    "five_bar",
    "mast",
    "proof_case",
    "prr2",
    "prs3",
    "ready_machine",
    "replalink",
    "rrr",
]


def __getattr__(name: str) -> Any:
    if name in ROBOTS:
        return import_module(f"dynident.robots.{name}")
    if name in ("proof_case", "ready_machine"):
        return guarded(getattr(import_module("dynident.robots.proofs"), name))
    raise AttributeError(f"module 'dynident.robots' has no attribute '{name}'")


guard(globals())
