"""Measurements against the usual way of doing the same things; run with ``python -m benchmarks``."""
