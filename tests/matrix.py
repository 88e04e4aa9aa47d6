# ruff: noqa: T201 - this is a command; its output is its result
"""Run the tests as on other processors and under load: `python tests/matrix.py`, or some rows with `--row NAME`.

A row changes what rounds or schedules differently: OpenBLAS's kernels (chosen by the processor it runs on), the vector units of
compiled code, the order of the tests, threads, and other busy processes. It runs the groups of tests that it can affect;
`--all` runs every test in every row, `--fast` a few that failed once. One line per row; the exit code is 1 when any row has a
failure.
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

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = [ROOT / "tests", *sorted((ROOT / "packages").glob("*/tests"))]
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
NUMBERS = (
    *(
        "bad_input",
        "cli_commands",
        "cli_testbench",
        "control_linear",
        "control_tuning",
        "drive_fits",
        "estimators",
        "excitation",
    ),
    *("fleet", "forces", "friction", "identify", "inverse_kinematics_numeric", "loops", "lowpass", "mechanics_singular"),
    *(
        "monitor",
        "real",
        "reproduce",
        "robots",
        "signals_cutoff",
        "signals_decimate",
        "signals_differentiate",
        "signals_prepare",
    ),
    *("signals_quality", "signals_real", "simulate_identification", "simulate_machine_fit", "simulate_plant", "testbench"),
    *("traps", "validate"),
)
"""What decides by numbers of LAPACK and BLAS: ranks, tests, searches, what is solved for."""
CODE = (
    *("excitation_criteria", "forces", "formulations", "graph", "identify_base", "loops", "lowpass", "mechanics", "monitor"),
    *("simulate",),
)
"""What runs compiled code of every kind: other vector units and other passes of LLVM round differently."""
THREADS = (
    *("estimators", "fleet", "graph", "identify", "link", "mechanics_batches", "simulate_batch", "simulate_stream", "validate"),
)
"""What shares work among threads, or talks between them."""
CLOCKS = (
    *("bad_input", "cli", "excitation_design", "fleet_dask", "graph_cache", "graph_machine", "link"),
    *("mechanism_xacro_hostile", "outputs", "public_api", "signals_hostile", "simulate_stream"),
)
"""What starts processes, waits for them or for a connection, or could stop a search by the clock."""
ROUNDED = (
    "test_signals_prepare.py",
    "test_identify_standard.py",
    "test_bad_input.py::test_a_robot_that_stands_still_is_not_identified",
)
COMPILED = ("test_mechanics_identities.py::test_regressor_times_parameters_is_inverse_dynamics",)  # compiled anew: 20 s
ORDERED = ("test_friction_thermal.py", "test_link_plant.py")
THREADED = ("test_mechanics_batches.py", "test_identify_estimators.py")
TIMED = (
    "test_excitation_design.py::test_a_search_that_is_cut_short_is_inside_the_limits",
    "test_excitation_design.py::test_more_steps_are_never_worse",
    "test_cli_excite.py::test_json_files_and_plan",
)


class Row(NamedTuple):
    """One setting: name, environment variables, groups of tests it affects, tests that once failed, busy processes."""

    name: str
    variables: dict[str, str]
    groups: tuple[str, ...]
    sensitive: tuple[str, ...]
    busy: int = 0

    def files(self) -> list[str]:
        """Return the test files of its groups."""
        return sorted({str(file) for group in self.groups for file in files_of(group)})


def files_of(group: str) -> list[Path]:
    """Return the test files of all packages whose names begin with `test_` and the group."""
    return [file for folder in FOLDERS for file in sorted(folder.glob(f"test_{group}*.py"))]


def path_of(name: str) -> str:
    """Return the path of a test file, or of a test in it, by the file's name."""
    file, *test = name.split("::")
    (path,) = (folder / file for folder in FOLDERS if (folder / file).exists())
    return "::".join([str(path), *test])


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
            yield Row(f"OpenBLAS {kernel}", {"OPENBLAS_CORETYPE": kernel}, NUMBERS, ROUNDED)
        else:
            lacking = ", ".join(sorted(needed - known))
            print(f"{'OpenBLAS ' + kernel:<24} left out: this processor lacks {lacking}", flush=True)
    if platform.machine() in ("x86_64", "AMD64"):
        yield Row("x86-64-v2", OLD, CODE, COMPILED)
    yield Row("another order", {"DYNIDENT_ORDER": "1"}, ("",), ORDERED)
    yield Row("one thread", ONE, THREADS, THREADED)
    yield Row(f"{BUSY} busy processes", {}, CLOCKS, TIMED, BUSY)


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
            command, cwd=ROOT, env={**os.environ, **row.variables}, capture_output=True, text=True, check=False
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
    """Run the rows and print their lines."""
    parser = argparse.ArgumentParser(description="The suite on other processors and under load.")
    parser.add_argument("--row", action="append", default=[], metavar="NAME", help="rows whose name holds this; repeatable")
    much = parser.add_mutually_exclusive_group()
    much.add_argument("--all", action="store_true", help="every test in every row")
    much.add_argument("--fast", action="store_true", help="only the tests that failed once, in under two minutes")
    asked = parser.parse_args()
    chosen = [row for row in rows() if not asked.row or any(part.lower() in row.name.lower() for part in asked.row)]
    if not chosen:
        parser.error(f"no row that this machine can run is called {' or '.join(asked.row)}")
    red = False
    for row in chosen:
        start = time.monotonic()
        some = [path_of(name) for name in row.sensitive] if asked.fast else [] if asked.all else row.files()
        passed, failed = run(row, some if asked.fast else ["-n", "auto", "--dist", "worksteal", *some])
        print(f"{row.name:<24} {passed:>5} passed {len(failed):>4} failed {time.monotonic() - start:>7.0f} s", flush=True)
        for name in failed:
            print(f"    {name}", flush=True)
        red = red or bool(failed) or not passed
    return int(red)


if __name__ == "__main__":
    sys.exit(main())
