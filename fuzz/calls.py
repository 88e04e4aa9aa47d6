"""A plug-in of pytest that writes which functions of dynident every test calls: ``pytest -p fuzz.calls``, for `fuzz.mutants`.

``DYNIDENT_CALLS`` names the file, which gets one line of JSON per test that passed.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Generator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

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
