"""Measurements against the usual implementations; run with ``python -m benchmarks``."""
