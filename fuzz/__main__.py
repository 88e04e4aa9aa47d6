"""``python -m fuzz``: all fuzzers or some, with a fixed seed or another, on all processors; exit code 1 if something broke."""

from __future__ import annotations

import argparse
import os
import sys
import time
from functools import partial

from fuzz.disk import fuzz_disk
from fuzz.inputs import fuzz_formats
from fuzz.kills import fuzz_kills
from fuzz.options import fuzz_options
from fuzz.watch import Tally, in_children, table

# The options are a finite catalogue; a smaller count draws some of them.
FUZZERS = {
    "inputs": (fuzz_formats, 20_000),
    "options": (fuzz_options, 10_000),
    "kills": (fuzz_kills, 200),
    "disk": (fuzz_disk, 50),
}
SEED = 1


def main(arguments: list[str]) -> int:
    """Run the fuzzers at a share of their counts; print the table."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("scale", nargs="?", type=float, default=1.0, help="share of the counts")
    parser.add_argument("--only", nargs="+", choices=list(FUZZERS), default=list(FUZZERS), help="these fuzzers")
    parser.add_argument("--seed", type=int, default=SEED, help="other inputs")
    parser.add_argument("--part", default="1/1", help="2/10: the second tenth only, for a machine that others use too")
    given = parser.parse_args(arguments)
    (part, parts), workers = map(int, given.part.split("/")), len(os.sched_getaffinity(0))
    tallies: list[Tally] = []
    for name in given.only:
        fuzzer, count = FUZZERS[name]
        begin = time.monotonic()
        work = partial(fuzzer, max(int(count * given.scale), 1), given.seed)
        first, every = (part - 1) * workers, parts * workers
        tallies += in_children(lambda k, _, work=work, first=first, every=every: work(first + k, every), workers)
        sys.stderr.write(f"{name}: {time.monotonic() - begin:.0f} s\n")
    sys.stdout.write(table(tallies) + "\n")
    return 1 if any(tally.bad for tally in tallies) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
