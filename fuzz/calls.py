"""Which functions of dynident every test calls, for `fuzz.mutants`: a plug-in of pytest (``-p fuzz.calls``), and its runs.

``DYNIDENT_CALLS`` names the file, which gets one line of JSON per test that passed.
"""

from __future__ import annotations

import hashlib
import json
import os
import resource
import sys
import time
from collections.abc import Generator, Iterable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
TESTS, KEPT = ROOT / "packages/dynident/tests", ROOT / "fuzz/out/calls"
SECONDS = 60  # of processor time for one test file; slow tests at its end are left out
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


def kept(file: Path) -> Path:
    """Return where the calls of a test file are kept; a file that changed is run again."""
    return KEPT / f"{file.stem}-{hashlib.sha256(file.read_bytes()).hexdigest()[:12]}.jsonl"


def record(file: Path) -> None:
    """Run a test file in a forked process, which has imported what tests need, and keep the calls of its tests."""
    part = kept(file).with_suffix(f".{os.getpid()}")
    KEPT.mkdir(parents=True, exist_ok=True)
    part.write_text("")
    begin, child = time.monotonic(), os.fork()
    if child == 0:
        os.environ["DYNIDENT_CALLS"] = str(part)
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        for number in (1, 2):
            os.dup2(os.open(os.devnull, os.O_WRONLY), number)
        os._exit(pytest.main(["-q", "-p", "no:cacheprovider", "-p", "fuzz.calls", str(file)]))
    os.waitpid(child, 0)
    part.replace(kept(file))
    sys.stderr.write(f"recorded {file.name}, {time.monotonic() - begin:.0f} s\n")


def recorded(files: Iterable[Path]) -> dict[str, dict[str, Any]]:
    """Return the calls of every test of these files that was recorded."""
    lines = [line for file in files if kept(file).exists() for line in kept(file).read_text(encoding="utf-8").splitlines()]
    return {test["test"]: test for test in map(json.loads, lines)}
