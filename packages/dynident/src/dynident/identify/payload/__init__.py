"""Payloads and drive gains."""
