"""A project: a folder with the files of the commands, and workbench.json with the choices of its user.

    robot.urdf robot.toml limits.toml        description, sidecar, limits of motion
    logs/  plans/N/  campaigns/N/            uploaded, planned and recorded data
    runs/N/                                  results of identify, one folder each
    exports/N/                               files for other programs
    .workbench/jobs/NNNN/                    executed commands, their output and the hash of their inputs

A result is fresh while the hash of its inputs (the words of the command and the content of the files) is unchanged. Results
written from a shell have no hash; they are fresh while they are newer than their input files.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from dynident.errors import DynidentError
from dynident.files import read_json, write_atomic
from dynident_lab.campaigns.log import is_campaign
from dynident_lab.workbench.jobs import Job, Jobs
from dynident_lab.workbench.uploads import DESCRIPTIONS, LOGS

SETTINGS, HIDDEN = "workbench.json", ".workbench"
STAGES = ("robot", "excite", "record", "check", "identify", "validate")
SHARE = 1 << 20  # bytes hashed at once


@dataclass
class LogUse:
    """Use of a log."""

    path: str  # Relative to the project
    use: str = "training"  # training, validation or unused
    training: tuple[float, float] | None = None  # Window to fit [s]; None for the whole log
    validation: tuple[float, float] | None = None  # Window to validate on [s]


@dataclass
class Settings:
    """Choices of the user, kept in workbench.json."""

    robot: str = ""
    sidecar: str = ""
    limits: str = ""
    logs: list[LogUse] = field(default_factory=list)
    effort: str = ""
    joints: str = ""
    gain: str = ""
    unit: str = ""
    plan: str = ""
    run: str = ""
    waived: dict[str, str] = field(default_factory=dict)  # checksum of the accepted stale or bad result, by stage
    choices: dict[str, dict[str, Any]] = field(default_factory=dict)  # other choices by stage


class BusyError(DynidentError):
    """Another server has the project open."""


class Project:
    """A project folder.

    Parameters
    ----------
    folder : path
        Folder of the project, created if missing.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self.hidden = self.folder / HIDDEN
        self.hidden.mkdir(parents=True, exist_ok=True)
        self._lock = self._exclusive()
        self.settings = self._read()
        self.jobs = Jobs(self.hidden / "jobs", self.folder)
        self.version = 0  # counts changes that redraw pages
        self.changes = 0  # counts all changes, including those of single fields
        self._hashes: dict[str, tuple[tuple[int, int], str]] = {}

    def _exclusive(self) -> int:
        """Return a handle that excludes a second server; the system frees it after a kill."""
        handle = os.open(self.hidden / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            import fcntl  # noqa: PLC0415 - not on every system

            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except ImportError:
            pass
        except OSError:
            os.close(handle)
            raise BusyError(f"'{self.folder}' is open in another workbench; use or close that one") from None
        return handle

    def close(self) -> None:
        """Let another server open the project."""
        os.close(self._lock)

    def _read(self) -> Settings:
        path = self.folder / SETTINGS
        if not path.exists():
            return Settings()
        data = read_json(path, "workbench.json")
        known = {f.name: data[f.name] for f in fields(Settings) if isinstance(data, dict) and f.name in data}
        with contextlib.suppress(TypeError, ValueError, KeyError):
            logs = [LogUse(**{**each, **_windows(each)}) for each in known.pop("logs", [])]
            return Settings(**known, logs=logs)
        raise DynidentError(f"'{path}' is not a workbench file; delete it to start with default settings")

    def save(self, field: bool = False) -> None:
        """Write the choices and count the change; the change of a single `field` redraws only the commands."""
        write_atomic(self.folder / SETTINGS, json.dumps(asdict(self.settings), indent=1, default=str))
        self.version += not field
        self.changes += 1

    def choice(self, stage: str, name: str, default: Any) -> Any:
        """Return a choice of a stage."""
        return self.settings.choices.get(stage, {}).get(name, default)

    def choose(self, stage: str, name: str, value: Any, field: bool = False) -> None:
        """Store a choice of a stage; `field` as in `save`."""
        self.settings.choices.setdefault(stage, {})[name] = value
        self.save(field)

    # ------------------------------------------------------------------ files
    def path(self, name: str) -> Path:
        """Return a path inside the project."""
        path = (self.folder / name).resolve()
        if not path.is_relative_to(self.folder):
            raise DynidentError(f"'{name}' is outside the project folder; give a path inside it")
        return path

    def relative(self, path: Path) -> str:
        """Return a path in the form of the commands."""
        return path.resolve().relative_to(self.folder).as_posix()

    def descriptions(self) -> list[str]:
        """Return files that may be robot descriptions."""
        names = []
        for path in sorted([*self.folder.iterdir(), *self.folder.glob("robot/**/*"), *self.folder.glob("*/*")]):
            top = path.relative_to(self.folder).parts[0]
            if path.suffix.lower() not in DESCRIPTIONS or not path.is_file() or top in _OWN or top.startswith("."):
                continue
            if path.name not in (SETTINGS, "campaign.json", "fit.json", "verdict.json"):
                names.append(self.relative(path))
        return list(dict.fromkeys(names))

    def sidecars(self) -> list[str]:
        """Return files that may be sidecars."""
        found = [*self.folder.glob("*.toml"), *self.folder.glob("robot/**/*.toml"), *self.folder.glob("*/*.toml")]
        names = [self.relative(path) for path in sorted(found) if path.name not in ("limits.toml", "pyproject.toml")]
        return [name for name in dict.fromkeys(names) if name.split("/")[0] not in _OWN and not name.startswith(".")]

    def logs(self) -> list[str]:
        """Return logs in the folder: files of logs/ and of the folder itself, and campaigns."""
        found = [*self.folder.iterdir(), *self.folder.glob("logs/*")] if self.folder.exists() else []
        files = [path for path in sorted(found) if path.is_file() and path.name.lower().endswith(LOG_ENDINGS)]
        folders = [path for path in sorted(self.folder.glob("campaigns/*"), key=_natural) if is_campaign(path)]
        return [self.relative(path) for path in (*files, *folders)]

    def numbered(self, kind: str, file: str) -> list[str]:
        """Return complete folders such as runs/1 that contain a file, in the order of their numbers."""
        written = {job.output for job in self.jobs.running()}
        found = [path.parent for path in self.folder.glob(f"{kind}/*/{file}") if self.relative(path.parent) not in written]
        return [self.relative(path) for path in sorted(found, key=_natural)]

    def new_folder(self, kind: str) -> str:
        """Return the name of a new folder such as runs/3, so that existing ones are never overwritten."""
        place = self.folder / kind
        used = [int(path.name) for path in place.iterdir() if path.name.isdigit()] if place.is_dir() else []
        used += [int(job.output.split("/")[1]) for job in self.jobs.jobs if job.output.startswith(f"{kind}/")]
        place.mkdir(exist_ok=True)
        return f"{kind}/{max(used, default=0) + 1}"

    # ------------------------------------------------------------------ commands
    def robot_words(self) -> list[str]:
        """Return robot and sidecar as arguments of a command."""
        s = self.settings
        return [s.robot, *(["--sidecar", s.sidecar] if s.sidecar else [])]

    def log_words(self) -> list[str]:
        """Return the options for reading logs; campaigns describe their signals themselves."""
        s = self.settings
        words = ["--effort", s.effort] if s.effort else []
        words += ["--joints", s.joints] if s.joints else []
        words += [f"--gain={s.gain}"] if s.gain else []
        for unit in filter(None, s.unit.split()):
            words += ["--unit", unit]
        return words

    # ------------------------------------------------------------------ freshness
    def checksum(self, words: Sequence[str], files: Sequence[str]) -> str:
        """Return the hash of a result's inputs: words of the command, and content of files or folders."""
        total = hashlib.sha256(json.dumps(list(words)).encode())
        for name in files:
            if name:
                total.update(f"{name}:{self._hash(self.folder / name)};".encode())
        return total.hexdigest()

    def _hash(self, path: Path) -> str:
        """Return the hash of a file or of all files of a folder; unchanged files are not read again."""
        if path.is_dir():
            inside = [p for p in sorted(path.rglob("*")) if p.is_file() and p.suffix != ".seg"]
            return hashlib.sha256("".join(self._hash(p) for p in inside).encode()).hexdigest()
        try:
            known = path.stat()
        except OSError:
            return "absent"
        key = (known.st_size, known.st_mtime_ns)
        if (found := self._hashes.get(str(path))) is None or found[0] != key:
            total = hashlib.sha256()
            with path.open("rb") as file:
                while part := file.read(SHARE):
                    total.update(part)
            self._hashes[str(path)] = found = (key, total.hexdigest())
        return found[1]

    def robot_files(self) -> list[str]:
        """Return the files that describe the robot."""
        s = self.settings
        return [name for name in (s.robot, s.sidecar) if name and (self.folder / name).exists()]

    def fresh(self, output: str, checksum: str, files: Sequence[str]) -> bool:
        """Return whether a folder of results belongs to inputs with this checksum."""
        job = self.jobs.of_output(output)
        if job is not None:
            return str(job.facts["checksum"]) == checksum
        with contextlib.suppress(OSError, ValueError):
            made = min(path.stat().st_mtime for path in (self.folder / output).iterdir())
            return made >= max((self.folder / name).stat().st_mtime for name in files)
        return False

    def waive(self, stage: str, checksum: str) -> None:
        """Accept a stale or bad result of a stage."""
        self.settings.waived[stage] = checksum
        self.save()

    def waived(self, stage: str, checksum: str) -> bool:
        """Return whether this result was explicitly accepted."""
        return bool(checksum) and self.settings.waived.get(stage) == checksum

    def stamp(self, stage: str = "") -> tuple[Any, ...]:
        """Return a stamp that changes when a stage must be redrawn: choices, its jobs, files possibly written from a shell.

        Without a stage it covers the states of all stages.
        """
        jobs = [(job.number, job.state) for job in self.jobs.jobs[-20:] if not stage or job.stage in JOBS_OF[stage]]
        names: list[str] = []
        for place in ("", "logs", "plans", "campaigns", "runs"):
            with contextlib.suppress(OSError):
                names += sorted(path.name for path in (self.folder / place).iterdir() if not path.name.startswith("."))
        judged = [path.stat().st_mtime_ns for path in sorted(self.folder.glob("runs/*/verdict.json"))]
        return (self.version, *jobs, *names, *judged)


#: Jobs shown by a stage.
JOBS_OF = {
    "robot": ("robot", "example"),
    "excite": ("excite",),
    "record": ("record", "controller", "dry", "read"),
    "check": ("check",),
    "identify": ("identify", "compare"),
    "validate": ("identify", "export", "payload"),
}
LOG_ENDINGS = tuple(ending for ending in LOGS if ending not in (".toml", ".yaml", ".txt"))
_OWN = frozenset({"plans", "campaigns", "runs", "exports", "comparisons", "logs"})


def _natural(path: Path) -> tuple[int, str]:
    return (int(path.name) if path.name.isdigit() else 1 << 30, path.name)


def _windows(each: dict[str, Any]) -> dict[str, Any]:
    """Return the windows of a log in workbench.json as pairs of numbers."""
    found: dict[str, Any] = {}
    for key in ("training", "validation"):
        given = each.get(key)
        found[key] = None if given is None else (float(given[0]), float(given[1]))
    return found


def result_of(job: Job | None) -> Any:
    """Return the JSON result of a job; None without one."""
    return None if job is None or job.state != "ok" else job.result()
