"""Regression data: rows of a robot, triangular factors, stretches of time, matching of logs and robots."""
