"""Robots of the literature: their models as printed (misprints corrected), and as mechanisms."""

from dynident.robots import cft, rrr

__all__ = ["cft", "rrr"]
