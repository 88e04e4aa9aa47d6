"""Which functions of dynident every test calls, for `fuzz.mutants`: a plug-in of pytest (``-p fuzz.calls``), and its runs.

``DYNIDENT_CALLS`` names the file, which gets one line of JSON per test that passed.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Generator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
TESTS, KEPT = ROOT / "packages/dynident/tests", ROOT / "fuzz/out/calls"
SECONDS = 40  # of processor time for one test file; slow tests at its end are left out
_calls: dict[str, dict[str, Any]] = {}


def _traced(phase: str, item: pytest.Item) -> Generator[None, Any, Any]:
    codes: set[CodeType] = set()

    def look(frame: FrameType, _: str, __: object) -> None:
        codes.add(frame.f_code)

    begin = time.process_time()
    sys.settrace(look)
    try:
        return (yield)
    finally:
        sys.settrace(None)
        entry = _calls.setdefault(item.nodeid, {"test": item.nodeid, "seconds": 0.0, "setup": [], "call": []})
        entry["seconds"] += time.process_time() - begin
        inside = f"{os.sep}dynident{os.sep}"
        found = {(c.co_filename.rpartition(inside)[2], c.co_qualname) for c in codes if inside in c.co_filename}
        entry[phase] = sorted({f"{file} {name.partition('.<locals>.<')[0]}" for file, name in found})


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, Any, Any]:
    """Note what the fixtures of a test call."""
    return (yield from _traced("setup", item))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Note what a test calls."""
    return (yield from _traced("call", item))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Write the calls of a test that did not fail, at once: a slow file may run out of its time."""
    if report.failed or report.skipped:
        _calls.pop(report.nodeid, None)
    elif report.when == "teardown" and report.nodeid in _calls:
        with Path(os.environ["DYNIDENT_CALLS"]).open("a", encoding="utf-8") as file:
            file.write(json.dumps(_calls.pop(report.nodeid)) + "\n")


def record(only: str = "") -> dict[str, dict[str, Any]]:
    """Return the calls of every test; test files are run again if they changed, and of those only some where `only` says so."""
    calls: dict[str, dict[str, Any]] = {}
    for file in sorted(TESTS.glob("test_*.py")):
        kept = KEPT / f"{file.stem}-{hashlib.sha256(file.read_bytes()).hexdigest()[:12]}.jsonl"
        if not kept.exists() and only in file.name:
            part = kept.with_suffix(".part")
            KEPT.mkdir(parents=True, exist_ok=True)
            part.write_text("")
            test = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "fuzz.calls", str(file)]
            env = {**os.environ, "DYNIDENT_CALLS": str(part), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
            subprocess.run(["prlimit", f"--cpu={SECONDS}", *test], cwd=ROOT, env=env, capture_output=True)
            part.replace(kept)
            sys.stderr.write(f"recorded {file.name}\n")
        for found in [kept] if kept.exists() else KEPT.glob(f"{file.stem}-*.jsonl"):
            calls |= {test["test"]: test for test in map(json.loads, found.read_text(encoding="utf-8").splitlines())}
    return calls
