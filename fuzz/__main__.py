"""``python -m fuzz``: all fuzzers, or some, with a fixed seed or another, over all processors; exit code 1 when something broke."""

from __future__ import annotations

import argparse
import os
import sys
import time
from functools import partial

from fuzz.calls import fuzz_calls
from fuzz.disk import fuzz_disk
from fuzz.inputs import fuzz_formats
from fuzz.kills import fuzz_kills
from fuzz.watch import in_children, table

FUZZERS = {"inputs": (fuzz_formats, 20_000), "calls": (fuzz_calls, 20_000), "kills": (fuzz_kills, 200), "disk": (fuzz_disk, 50)}
SEED = 1


def main(arguments: list[str]) -> int:
    """Run the fuzzers at a share of their counts; print the table."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("scale", nargs="?", type=float, default=1.0, help="share of the counts")
    parser.add_argument("--only", nargs="+", choices=list(FUZZERS), default=list(FUZZERS), help="these fuzzers")
    parser.add_argument("--seed", type=int, default=SEED, help="other inputs")
    given = parser.parse_args(arguments)
    workers, tallies = len(os.sched_getaffinity(0)), []
    for name in given.only:
        fuzzer, count = FUZZERS[name]
        begin = time.monotonic()
        tallies += in_children(partial(fuzzer, max(int(count * given.scale), 1), given.seed), workers)
        sys.stderr.write(f"{name}: {time.monotonic() - begin:.0f} s\n")
    sys.stdout.write(table(tallies) + "\n")
    return 1 if any(tally.bad for tally in tallies) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
