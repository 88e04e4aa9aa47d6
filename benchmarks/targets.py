"""One line per target: figure, goal, and whether it is reached."""

from __future__ import annotations

import sys

missed: list[str] = []


def target(name: str, figure: str, goal: str, reached: bool) -> None:
    """Print a target with its figure and its goal."""
    print(f"{'reached' if reached else 'MISSED':<8} {name}: {figure} (goal: {goal})", flush=True)
    if not reached:
        missed.append(name)


def end() -> None:
    """End the program, with 1 when a target was missed."""
    sys.exit(1 if missed else 0)
