"""Robots from the literature, their closed forms, and reproductions of published results."""
