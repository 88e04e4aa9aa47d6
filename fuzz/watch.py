"""What is counted: inputs, sentences, successes, internal errors, hangs and memory, in this process or in a child."""

from __future__ import annotations

import io
import json
import os
import resource
import signal
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SECONDS = 5  # of processor time: neighbours do not make a hang
WAITING = 120  # as much longer may pass on the clock, for what waits and computes nothing: a busy machine is no hang
BYTES = 1 << 30
GOOD = ("success", "sentence")
OUTCOMES = (*GOOD, "internal", "hang", "memory", "mixed")


class Hang(BaseException):
    """The time is over; no ``except Exception`` catches it."""


@dataclass
class Tally:
    """Outcomes of one group, and the first input of every distinct failure."""

    group: str
    counts: Counter[str] = field(default_factory=Counter)
    failures: dict[str, str] = field(default_factory=dict)

    def add(self, outcome: str, place: str, example: str) -> None:
        """Count one outcome; keep the first example of a failure at this place."""
        self.counts[outcome] += 1
        if outcome not in ("success", "sentence"):
            self.failures.setdefault(f"{outcome}: {place}", example)

    def merge(self, other: Tally) -> None:
        """Take over what another process has counted."""
        self.counts += other.counts
        self.failures = {**other.failures, **self.failures}

    @property
    def bad(self) -> int:
        """Number of outcomes that must not be."""
        return sum(n for outcome, n in self.counts.items() if outcome not in GOOD)


def table(tallies: list[Tally]) -> str:
    """Return the report: one line per group, then the distinct failures."""
    rows = [f"{'group':<22}{'inputs':>8}" + "".join(f"{name:>10}" for name in OUTCOMES)]
    every = Tally("all")
    for tally in tallies:
        every.merge(tally)
    for tally in (*tallies, every):
        rows.append(f"{tally.group:<22}{sum(tally.counts.values()):>8}" + "".join(f"{tally.counts[o]:>10}" for o in OUTCOMES))
    rows += [f"{tally.group}: {place}\n    {example}" for tally in tallies for place, example in tally.failures.items()]
    return "\n".join(rows)


def place_of(error: BaseException) -> str:
    """Return where in dynident an exception was raised."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f"{os.sep}dynident" in f.filename]
    where = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "outside"
    return f"{type(error).__name__} at {where}: {str(error)[:100]!r}"


@contextmanager
def deadline(seconds: int) -> Iterator[None]:
    """Raise `Hang` in this block when it computes too long, or waits much longer."""

    def ring(*_: object) -> None:
        raise Hang

    before = [(number, signal.signal(number, ring)) for number in (signal.SIGALRM, signal.SIGPROF)]
    signal.alarm(WAITING * seconds)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.setitimer(signal.ITIMER_PROF, 0)
        for number, handler in before:
            signal.signal(number, handler)


def reset_peak() -> int:
    """Forget the largest memory so far, and return the present one [bytes]; 0 where the system cannot."""
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    except OSError:
        return 0
    return peak()


def peak() -> int:
    """Return the largest memory since `reset_peak` [bytes]."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    return int(status.partition("VmHWM:")[2].split()[0]) << 10


def command(args: tuple[str, ...]) -> tuple[str, str]:
    """Run one command of dynident in this process; return the outcome and what it said."""
    from dynident.cli import run  # noqa: PLC0415 - slow

    def call() -> str:
        errors = io.StringIO()
        with redirect_stdout(io.StringIO()), redirect_stderr(errors):
            code = run(args)
        return "success" if code in (0, 3) else "sentence"

    return watched(call)


def watched(call: Callable[[], Any]) -> tuple[str, str]:
    """Call something; return its outcome and the place of a failure. Only `DynidentError` is a sentence."""
    from dynident.errors import DynidentError  # noqa: PLC0415 - slow

    start = reset_peak()
    try:
        with deadline(SECONDS):
            answer = call()
    except DynidentError as error:
        outcome, where = (
            ("sentence", str(error)) if sentence(str(error)) else ("internal", f"no sentence: {str(error)[:200]!r}")
        )
    except Hang as error:
        outcome, where = "hang", place_of(error)
    except MemoryError as error:
        outcome, where = "memory", place_of(error)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        outcome, where = "internal", place_of(error)
    else:
        outcome, where = answer if isinstance(answer, str) and answer in OUTCOMES else "success", ""
    if start and peak() - start > BYTES:
        outcome, where = "memory", f"{(peak() - start) >> 20} MB"
    return outcome, where


def sentence(text: str) -> bool:
    """Say whether a text is something to tell people."""
    return 15 < len(text) < 3000 and "Traceback" not in text and 'File "' not in text


def in_children(work: Callable[[int, int], list[Tally]], workers: int) -> list[Tally]:
    """Run `work(worker, workers)` in forked children, so that a crash is one failure and not the end; merge the tallies."""
    children = []
    for k in range(workers):
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reader)
            code = 1
            try:
                found = json.dumps([vars(tally) for tally in work(k, workers)]).encode()
                with os.fdopen(writer, "wb") as stream:
                    stream.write(found)
                code = 0
            except BaseException:  # the parent counts it
                traceback.print_exc(file=sys.stderr)
            finally:
                os._exit(code)
        os.close(writer)
        children.append((child, reader))
    merged: dict[str, Tally] = {}
    for child, reader in children:
        with os.fdopen(reader, "rb") as stream:
            data = stream.read()
        _, status = os.waitpid(child, 0)
        lost = [{"group": "crashed", "counts": {"internal": 1}, "failures": {f"a process ended with status {status}": ""}}]
        for given in json.loads(data) if data else lost:
            tally = Tally(given["group"], Counter(given["counts"]), given["failures"])
            merged.setdefault(tally.group, Tally(tally.group)).merge(tally)
    return list(merged.values())
