"""Disk faults: the n-th call that writes fails (full, read-only, broken disk); results stay, told in one sentence."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fuzz.kills import OLD, VERBS, _state
from fuzz.samples import good_files
from fuzz.watch import Tally, command

FAULTS = (errno.ENOSPC, errno.EROFS, errno.EIO, errno.EDQUOT, errno.EACCES)
CALLS = ("fsync", "replace", "rename", "mkdir", "link", "open")


@contextmanager
def failing(call: str, at: int, code: int, below: Path) -> Iterator[list[int]]:
    """Let the `at`-th use of a function of os below a folder fail; yield the list of its uses."""
    real, used = getattr(os, call), []

    def faulty(*args: Any, **options: Any) -> Any:
        path = args[0] if args else ""
        reading = call == "open" and not (len(args) > 1 and args[1] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))
        here = isinstance(path, int) or os.fspath(path).startswith((str(below), "out", ".out"))
        if here and not reading:
            used.append(1)
            if len(used) == at:
                raise OSError(code, os.strerror(code), None if isinstance(path, int) else os.fspath(path))
        return real(*args, **options)

    setattr(os, call, faulty)
    try:
        yield used
    finally:
        setattr(os, call, real)


def fuzz_disk(count: int, seed: int = 0, worker: int = 0, workers: int = 1) -> list[Tally]:
    """Try `count` faults over all verbs and calls, every `workers`-th of them here."""
    tallies = {verb: Tally(f"disk {verb}") for verb in VERBS}
    cases = [(verb, call, at) for at in range(1, 9) for call in CALLS for verb in VERBS]
    before = Path.cwd()
    with tempfile.TemporaryDirectory(prefix="dynident-fuzz-") as name:
        bench = Path(name).resolve()
        good_files(bench, every=False)
        os.chdir(bench)
        try:
            sets = {}
            for k in range(worker, min(count, len(cases)), workers):
                verb, call, at = cases[k]
                if verb not in sets:
                    shutil.rmtree("out", ignore_errors=True)
                    assert command(VERBS[verb])[0] == "success", verb
                    sets[verb] = {path.name for path in Path("out").iterdir()}
                code = FAULTS[(k + seed) % len(FAULTS)]
                outcome, where = _fail_once(verb, sets[verb], call, at, code, bench)
                tallies[verb].add(outcome, where, f"{call} number {at} fails with {errno.errorcode[code]}")
        finally:
            os.chdir(before)
    return list(tallies.values())


def _fail_once(verb: str, names: set[str], call: str, at: int, code: int, bench: Path) -> tuple[str, str]:
    out = Path("out")
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    for name in names:
        (out / name).write_text(OLD, encoding="utf-8")
    with failing(call, at, code, bench):
        outcome, where = command(VERBS[verb])
    state = _state(out, names)
    left = [path.name for path in bench.iterdir() if path.name.startswith(".")]
    if state.startswith("mixed") or (outcome == "sentence" and state != "old") or left:
        return "mixed", f"{outcome}, {state}, left: {left}"
    return outcome, where
