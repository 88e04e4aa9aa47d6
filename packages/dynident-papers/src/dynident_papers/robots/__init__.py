"""Robots from the literature: models as printed (misprints corrected) and as mechanisms, loaded on first use."""

from dynident.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)

ROBOTS = ("cft", "dualv", "er3a_c60", "five_bar", "mast", "prr2", "prs3", "replalink", "rrr")
"""Names of the robots; each is a module of this package."""
