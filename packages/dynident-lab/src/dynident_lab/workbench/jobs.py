"""Jobs: commands of dynident in worker processes, with progress, cancel, and recovery after the server was killed."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dynident.files import write_atomic
from dynident_lab.workbench.worker import DONE, lock

TAIL = 65_536  # bytes at the end of a file that are searched for the newest progress


@dataclass
class Job:
    """One job in its folder.

    Parameters
    ----------
    folder : path
        Folder of its facts and outputs.
    facts : mapping
        Content of job.json.
    """

    folder: Path
    facts: Mapping[str, Any]
    process: subprocess.Popen[bytes] | None = None
    _done: dict[str, Any] | None = field(default=None, repr=False)

    @property
    def number(self) -> int:
        """Number of the job, in the order of their starts."""
        return int(self.folder.name)

    @property
    def stage(self) -> str:
        """Stage that started the job."""
        return str(self.facts["stage"])

    @property
    def output(self) -> str:
        """Folder or file that the job writes, relative to the project; empty for none."""
        return str(self.facts["output"])

    @property
    def done(self) -> dict[str, Any] | None:
        """End of the job; None while it runs, and after a crash of the worker."""
        if self._done is None:
            with contextlib.suppress(OSError, ValueError):
                self._done = dict(json.loads((self.folder / DONE).read_text(encoding="utf-8")))
        return self._done

    @property
    def running(self) -> bool:
        """Whether its worker lives, started by this server or by one before."""
        if self.done is not None:
            return False
        if self.process is not None:
            return self.process.poll() is None
        handle = lock(self.folder)
        if handle is not None:
            os.close(handle)
        return handle is None

    @property
    def state(self) -> str:
        """One of running, ok, failed, cancelled, lost (worker or computer died)."""
        if self.running:
            return "running"
        if self.done is None:
            return "lost"
        if self.done["cancelled"]:
            return "cancelled"
        accepted = (0, *self.facts["accepted"])
        codes = self.done["codes"]
        return "ok" if len(codes) == len(self.facts["commands"]) and all(code in accepted for code in codes) else "failed"

    def cancel(self) -> None:
        """Interrupt its command, as Ctrl-C does."""
        if self.running:
            os.kill(self.process.pid if self.process is not None else int(self._pid()), signal.SIGTERM)

    def _pid(self) -> str:
        return (self.folder / "pid").read_text(encoding="utf-8")

    def result(self, i: int = -1) -> Any:
        """Return the JSON output of a command, by default the last one; None if it is not complete JSON."""
        names = range(len(self.facts["commands"]))
        try:
            return json.loads((self.folder / f"{names[i]}.out").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None

    def progress(self) -> dict[str, Any]:
        """Return the newest progress of the running command."""
        for line in reversed(self._lines()):
            with contextlib.suppress(ValueError):
                found = json.loads(line)
                if isinstance(found, dict) and isinstance(found.get("progress"), dict):
                    return dict(found["progress"])
        return {}

    def messages(self) -> list[str]:
        """Return the messages of its commands on standard error, without progress."""
        return [line for line in self._lines() if line and not line.startswith('{"progress"')]

    def _lines(self) -> list[str]:
        lines: list[str] = []
        for i in range(len(self.facts["commands"])):
            with contextlib.suppress(OSError), (self.folder / f"{i}.err").open("rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL))
                lines += file.read().decode("utf-8", "replace").splitlines()
        return lines


def shown(words: Sequence[str]) -> str:
    """Return a command as typed in a shell."""
    return shlex.join(["dynident", *words])


class Jobs:
    """All jobs of a project, including those of earlier servers.

    Parameters
    ----------
    folder : path
        Folder of the jobs.
    project : path
        Folder in which commands run.
    """

    def __init__(self, folder: Path, project: Path) -> None:
        self.folder, self.project = folder, project
        self.jobs: list[Job] = []
        for place in sorted(folder.glob("[0-9]*"), key=lambda path: int(path.name) if path.name.isdigit() else -1):
            with contextlib.suppress(OSError, ValueError):
                facts = json.loads((place / "job.json").read_text(encoding="utf-8"))
                if {"stage", "commands", "output", "checksum", "accepted", "attached"} <= set(facts):
                    self.jobs.append(Job(place, facts))

    def start(
        self,
        stage: str,
        commands: Sequence[Sequence[str]],
        *,
        output: str = "",
        checksum: str = "",
        accepted: Sequence[int] = (),
        attached: bool = False,
        facts: Mapping[str, Any] | None = None,
    ) -> Job:
        """Start a job.

        Parameters
        ----------
        stage : str
            Stage that starts the job.
        commands : sequence of sequences of str
            Words of each command, without ``dynident``.
        output : str
            Output of the job, relative to the project.
        checksum : str
            Hash of its inputs.
        accepted : sequence of int
            Exit codes other than 0 that count as a result.
        attached : bool
            Whether the job ends with the server.
        facts : mapping, optional
            Further facts to store.
        """
        number = max((job.number for job in self.jobs), default=0) + 1
        place = self.folder / f"{number:04d}"
        place.mkdir(parents=True)
        known = {
            **(facts or {}),
            "stage": stage,
            "commands": [list(words) for words in commands],
            "output": output,
            "checksum": checksum,
            "accepted": list(accepted),
            "attached": attached,
            "folder": str(self.project),
            "started": time.time(),
        }
        write_atomic(place / "job.json", json.dumps(known, indent=1))
        process = subprocess.Popen(
            [sys.executable, "-m", "dynident_lab.workbench.worker", str(place)],
            stdin=subprocess.PIPE if attached else subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        write_atomic(place / "pid", str(process.pid))
        job = Job(place, known, process)
        self.jobs.append(job)
        return job

    def latest(self, stage: str, state: str | None = None) -> Job | None:
        """Return the newest job of a stage, or the newest in a given state."""
        return next((job for job in reversed(self.jobs) if job.stage == stage and state in (None, job.state)), None)

    def of_output(self, output: str) -> Job | None:
        """Return the job that wrote a folder; None for a folder written from a shell."""
        return next((job for job in reversed(self.jobs) if job.output == output), None)

    def running(self) -> list[Job]:
        """Return the running jobs."""
        return [job for job in self.jobs if job.running]
