"""Fault diagnosis of logs: which fault of data or description would explain the efforts better than none."""
