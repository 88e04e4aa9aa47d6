"""The main job on the bundled example: identify a 6-axis arm, compare with the truth, validate, report.

Run ``make demo``, ``dynident demo``, or ``python examples/demo/demo.py OUTPUT_FOLDER``.
"""

from __future__ import annotations

import sys

from dynident.cli import run

if __name__ == "__main__":
    sys.exit(run(["demo", *(["-o", sys.argv[1]] if len(sys.argv) > 1 else [])]))
