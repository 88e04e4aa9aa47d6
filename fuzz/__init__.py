"""Fuzzers: mutated files, wrong calls, kills and disk faults, counted and with fixed seeds (``make fuzz``)."""
