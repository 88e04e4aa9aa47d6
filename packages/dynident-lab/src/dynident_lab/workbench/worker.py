"""The worker process of one job: runs its commands one after the other and records their exit codes.

``python -m dynident_lab.workbench.worker FOLDER`` reads job.json of the folder. It holds a lock while it works, so that a
server restarted after a kill knows the running jobs. An attached job (a motion of a robot, a virtual robot) ends
with the server: its standard input is a pipe from the server, whose end interrupts the command, which stops the robot.
The command has a similar pipe from the worker (``... worker --attached WORDS``), so that it ends if only the worker is killed.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

PATIENCE = 8.0  # time before an interrupted command is killed [s]
DONE, LOCK, CANCEL = "done.json", "lock", "cancel"


def main(folder: Path) -> int:
    """Run the commands of a job."""
    job: dict[str, Any] = json.loads((folder / "job.json").read_text(encoding="utf-8"))
    handle = lock(folder)
    interrupted = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: interrupted.set())
    if job["attached"]:
        threading.Thread(target=_watch_input, args=(interrupted,), daemon=True).start()
    codes: list[int] = []
    for i, words in enumerate(job["commands"]):
        codes.append(_run(folder, i, words, job, interrupted))
        if codes[-1] not in (0, *job["accepted"]) or interrupted.is_set():
            break
    result = {"codes": codes, "cancelled": interrupted.is_set(), "ended": time.time()}
    part = folder / "done.part"
    part.write_text(json.dumps(result), encoding="utf-8")
    part.replace(folder / DONE)
    if handle is not None:
        os.close(handle)
    return 0


def lock(folder: Path) -> int | None:
    """Return a handle that marks the job as running; None if another process holds it."""
    handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        import fcntl  # noqa: PLC0415 - not on every system

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except ImportError:
        return handle
    except OSError:
        os.close(handle)
        return None
    return handle


def _run(folder: Path, i: int, words: list[str], job: dict[str, Any], interrupted: threading.Event) -> int:
    """Run one command; interrupt it on request, and kill it if it does not react."""
    environment = {**os.environ, "DYNIDENT_PROGRESS": "json", "PYTHONUNBUFFERED": "1"}
    program = ["dynident_lab.workbench.worker", "--attached"] if job["attached"] else ["dynident"]
    with (folder / f"{i}.out").open("wb") as out, (folder / f"{i}.err").open("wb") as err:
        process = subprocess.Popen(
            [sys.executable, "-m", *program, *words],
            cwd=job["folder"],
            stdin=subprocess.PIPE if job["attached"] else subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            env=environment,
            start_new_session=True,
        )
        while process.poll() is None:
            if interrupted.wait(0.05):
                _end(process)
        return process.returncode


def _end(process: subprocess.Popen[bytes]) -> None:
    """Interrupt a command like Ctrl-C, then kill it and its children."""
    for number, patience in ((signal.SIGINT, PATIENCE), (signal.SIGKILL, PATIENCE)):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(patience)
            return


def _watch_input(interrupted: threading.Event) -> None:
    """Wait for the end of standard input, which means that the server has ended."""
    while os.read(0, 1):  # sys.stdin would hold its lock, which Python needs to exit
        pass
    interrupted.set()


def attached() -> None:
    """Run one command until the worker has ended; then interrupt it and its children, and kill those that do not react."""
    gone = threading.Event()

    def end() -> None:
        gone.wait()
        os.killpg(os.getpgrp(), signal.SIGINT)
        time.sleep(PATIENCE)
        os.killpg(os.getpgrp(), signal.SIGKILL)

    for target in (lambda: _watch_input(gone), end):
        threading.Thread(target=target, daemon=True).start()
    from dynident.__main__ import main as command  # noqa: PLC0415 - the worker does not need it

    command()


if __name__ == "__main__":
    if sys.argv[1] == "--attached":
        del sys.argv[1]
        attached()
    sys.exit(main(Path(sys.argv[1])))
