"""Fuzzers: mutated files and packets, hostile options, kills and disk faults, counted and with fixed seeds (``make fuzz``)."""
