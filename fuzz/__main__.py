"""``python -m fuzz [scale]``: everything with fixed seeds, over all processors; exit code 1 when something broke."""

from __future__ import annotations

import os
import sys
import time
from functools import partial

from fuzz.calls import fuzz_calls
from fuzz.disk import fuzz_disk
from fuzz.inputs import fuzz_formats
from fuzz.kills import fuzz_kills
from fuzz.watch import in_children, table

COUNTS = {fuzz_formats: 20_000, fuzz_calls: 20_000, fuzz_kills: 200, fuzz_disk: 50}
SEED = 1


def main(scale: float) -> int:
    """Run all fuzzers at a share of their counts; print the table."""
    workers, tallies = len(os.sched_getaffinity(0)), []
    for fuzzer, count in COUNTS.items():
        begin = time.monotonic()
        tallies += in_children(partial(fuzzer, max(int(count * scale), 1), SEED), workers)
        sys.stderr.write(f"{fuzzer.__name__}: {time.monotonic() - begin:.0f} s\n")
    sys.stdout.write(table(tallies) + "\n")
    return 1 if any(tally.bad for tally in tallies) else 0


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]) if len(sys.argv) > 1 else 1.0))
