# ruff: noqa: T201 - this is a command; its output is its result
"""The suite on other processors and under load: `python tests/matrix.py` (all tests), `--fast` (those that are sensitive).

A row sets what rounds or schedules differently: OpenBLAS's kernels (chosen by the processor it runs on), the vector units of
compiled code, threads, and busy neighbours. One line per row; the exit code is 1 when any row has a failure.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from defusedxml import ElementTree

HERE = Path(__file__).resolve().parent
NEEDED = {
    "SkylakeX": {"avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl"},
    "Haswell": {"avx2", "fma"},
    "Zen": {"avx2", "fma"},
    "Nehalem": {"sse4_2"},
}
"""OpenBLAS's kernels and the flags of a processor that can run them."""
OLD = {"DYNIDENT_CPU": "x86-64-v2"}
ONE = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
BUSY = 4
LOOP = "import os\nparent = os.getppid()\nwhile os.getppid() == parent: pass"  # ends with this script, however that ends
ROUNDED = (
    "test_signals_prepare.py",
    "test_identify_standard.py",
    "test_bad_input.py::test_a_robot_that_stands_still_is_not_identified",
)
COMPILED = ("test_mechanics_identities.py::test_regressor_times_parameters_is_inverse_dynamics",)  # compiled anew: 20 s
THREADED = ("test_mechanics_batches.py", "test_identify_estimators.py")
TIMED = (
    "test_excitation_design.py::test_a_search_that_is_cut_short_is_inside_the_limits",
    "test_excitation_design.py::test_more_steps_are_never_worse",
    "test_cli_models.py::test_excite_designs_a_motion_and_writes_its_plan",
)


class Row(NamedTuple):
    """One setting: name, environment variables, tests that it is most likely to break, busy processes beside it."""

    name: str
    variables: dict[str, str]
    sensitive: tuple[str, ...]
    busy: int = 0


def flags() -> set[str]:
    """Return the instruction sets of this processor; empty where they cannot be read."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return set()
    line = next((line for line in text.splitlines() if line.startswith("flags")), "")
    return set(line.partition(":")[2].split())


def rows() -> Iterator[Row]:
    """Yield the rows that this machine can run; say which it cannot."""
    known = flags()
    for kernel, needed in NEEDED.items():
        if needed <= known:
            yield Row(f"OpenBLAS {kernel}", {"OPENBLAS_CORETYPE": kernel}, ROUNDED)
        else:
            lacking = ", ".join(sorted(needed - known))
            print(f"{'OpenBLAS ' + kernel:<24} left out: this processor lacks {lacking}", flush=True)
    if platform.machine() in ("x86_64", "AMD64"):
        yield Row("x86-64-v2", OLD, COMPILED)
    yield Row("optimised code", {"DYNIDENT_OPTIMISED": "1"}, COMPILED)
    yield Row("one thread", ONE, THREADED)
    yield Row(f"{BUSY} busy processes", {}, TIMED, BUSY)


@contextmanager
def neighbours(count: int) -> Iterator[None]:
    """Keep so many processes busy meanwhile."""
    running = [subprocess.Popen([sys.executable, "-c", LOOP]) for _ in range(count)]
    try:
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()


def run(row: Row, arguments: list[str]) -> tuple[int, list[str]]:
    """Run pytest in one row; return how many tests passed and what failed."""
    with tempfile.TemporaryDirectory() as folder, neighbours(row.busy):
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", f"--junitxml={report}", *arguments]
        done = subprocess.run(
            command, cwd=HERE.parent, env={**os.environ, **row.variables}, capture_output=True, text=True, check=False
        )
        if not report.exists():
            return 0, [f"pytest ended with {done.returncode} and no report: {(done.stdout + done.stderr).strip()[-500:]}"]
        cases = list(ElementTree.parse(report).iter("testcase"))
    failed = [c for c in cases if c.find("failure") is not None or c.find("error") is not None]
    passed = sum(c.find("skipped") is None for c in cases) - len(failed)
    names = [f"{c.get('classname')}::{c.get('name')}" for c in failed]
    if done.returncode and not names:
        names = [f"pytest ended with {done.returncode}"]
    return passed, names


def main() -> int:
    """Run every row and print its line."""
    parser = argparse.ArgumentParser(description="The suite on other processors and under load.")
    parser.add_argument("--fast", action="store_true", help="only the tests that are sensitive, in under two minutes")
    fast = parser.parse_args().fast
    red = False
    for row in rows():
        start = time.monotonic()
        passed, failed = run(row, [str(HERE / name) for name in row.sensitive] if fast else ["-n", "auto"])
        print(f"{row.name:<24} {passed:>5} passed {len(failed):>4} failed {time.monotonic() - start:>7.0f} s", flush=True)
        for name in failed:
            print(f"    {name}", flush=True)
        red = red or bool(failed) or not passed
    return int(red)


if __name__ == "__main__":
    sys.exit(main())
