"""The folder of a campaign: campaign.json and plan.json hold the plan, a journal the events, segments the samples.

Frames are written at once with their checksums and synced every second; a crash leaves whole frames and at most one torn
one, which is cut when the campaign continues. The segment of a finished cycle is sealed to Parquet.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import platform
import time
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dynident import __version__
from dynident.errors import DynidentError, LinkError, LogError, MissingExtraError
from dynident.excitation import Plan
from dynident.files import ContentError, to_json, write_atomic
from dynident.results import stored, stored_fields
from dynident_lab.campaigns.log import FORMAT, GAP, REPEATED, campaign_columns, read_about, read_journal
from dynident_lab.campaigns.segments import read_segment, seal_segment, segment_frame, segment_start
from dynident_lab.link.controller import Identity, Samples
from dynident_lab.link.schedule import Settings

SYNC = 1.0  # time between two syncs [s]
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def check_new(folder: Path) -> None:
    """Refuse a folder with other content."""
    if (folder / "campaign.json").exists():
        raise LinkError(
            f"'{folder}' contains a campaign; continue with dynident record --resume {folder}, or give another folder"
        )
    # After a crash the plan may be alone: campaign.json comes last.
    known = ("plan.json", ".plan.json.", ".campaign.json.")
    if folder.exists() and (not folder.is_dir() or any(not p.name.startswith(known) for p in folder.iterdir())):
        raise LinkError(f"'{folder}' is not empty; give a new folder")


def create_folder(folder: Path, plan: Plan, settings: Settings, identity: Identity, address: str) -> None:
    """Write the folder of a new campaign; campaign.json comes last and makes it one."""
    known = identity.to_dict()
    if not identity.coordinates:
        known["coordinates"] = known["channels"] = list(plan.coordinates)
    about = {
        "format": FORMAT,
        "plan": plan.identity,
        "robot": plan.robot,
        "address": address,
        "settings": settings.to_dict(),
        "schedule": plan.schedule(),
        "controller": known,
        "software": {"dynident": __version__, "python": platform.python_version(), "system": platform.system()},
        "created": time.time(),
    }
    plan.save(folder / "plan.json")
    write_atomic(folder / "campaign.json", to_json(about))


def open_folder(folder: Path) -> tuple[dict[str, Any], Settings, Plan]:
    """Return the content of campaign.json, settings and plan."""
    try:
        about = read_about(folder)
        settings = Settings(**stored_fields(Settings, stored(about, "settings", Mapping[str, Any], "campaign"), "settings"))
        stored(about["controller"], "coordinates", list[str], "controller")
        stored(about["controller"], "identity", str, "controller"), stored(about, "plan", str, "campaign")
    except (OSError, ContentError, DynidentError) as error:
        raise LinkError(f"'{folder}' is not a campaign ({error}); start one with dynident record plan/ -o campaign/") from error
    plan = Plan.load(folder / "plan.json")
    if plan.identity != about["plan"]:
        raise LinkError(f"the plan in '{folder}' is {plan.identity}, the campaign's was {about['plan']}")
    return about, settings, plan


def lock_folder(folder: Path) -> int:
    """Return a handle that keeps other processes from recording into the folder; the system frees it after a crash."""
    handle = os.open(folder / "campaign.json", os.O_RDWR)
    try:
        import fcntl  # noqa: PLC0415 - not on every system

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except ImportError:
        pass
    except OSError:
        os.close(handle)
        raise LinkError(f"another process is recording into '{folder}'; stop it first") from None
    return handle


class DiskFullError(LinkError):
    """There is no space for samples; all acknowledged samples are safe."""


class AppendFile:
    """An append-only file: each append is complete, or undone."""

    def __init__(self, path: Path) -> None:
        self.path = path
        new = not path.exists()
        self._handle = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666)
        self.size = os.lseek(self._handle, 0, os.SEEK_END)
        if new:
            sync_folder(path.parent)

    def append(self, data: bytes) -> None:
        """Write all of `data` at the end, or nothing."""
        done = 0
        try:
            os.lseek(self._handle, self.size, os.SEEK_SET)
            while done < len(data):
                done += os.write(self._handle, data[done:])
        except OSError as error:
            os.ftruncate(self._handle, self.size)
            if error.errno in FULL:
                raise DiskFullError(f"no space to write '{self.path}' ({error.strerror}); free some space") from error
            raise
        self.size += len(data)

    def cut(self, size: int) -> None:
        """Cut the file at a size."""
        os.ftruncate(self._handle, size)
        self.size = size

    def sync(self) -> None:
        """Write all data to the disk."""
        try:
            os.fsync(self._handle)
        except OSError as error:
            if error.errno in FULL:
                raise DiskFullError(f"no space to write '{self.path}' ({error.strerror}); free some space") from error
            raise

    def close(self) -> None:
        """Close the file."""
        os.close(self._handle)


def sync_folder(folder: Path) -> None:
    """Write the names in a folder to the disk, if the system supports it."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


class Journal:
    """Events of a campaign, one line with a checksum each, on the disk when `note` returns."""

    def __init__(self, folder: Path) -> None:
        self.events = read_journal(folder)
        self._file = AppendFile(folder / "journal.jsonl")
        whole = b"".join(_line(event) for event in self.events)
        if self._file.size != len(whole):
            self._file.cut(len(whole))

    def note(self, event: str, **facts: Any) -> None:
        """Write an event."""
        entry = {"time": time.time(), "event": event, **facts}
        self._file.append(_line(entry))
        self._file.sync()
        self.events.append(entry)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _line(event: Mapping[str, Any]) -> bytes:
    text = json.dumps(event).encode()
    return text + f" {zlib.crc32(text):08x}\n".encode()


class Recorder:
    """Writes the samples of one campaign.

    Parameters
    ----------
    folder : path-like
        Folder of the campaign, created if missing.
    channels : tuple of str
        Measured channels.
    interval : float
        Time between two syncs [s].
    extras : tuple of str
        Other signals of the samples.

    Attributes
    ----------
    acknowledged : int
        Number of samples on the disk.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        channels: tuple[str, ...],
        interval: float = SYNC,
        extras: tuple[str, ...] = (),
    ) -> None:
        self.folder, self.channels, self.interval = Path(folder), channels, interval
        self.folder.mkdir(parents=True, exist_ok=True)
        self.columns = campaign_columns(channels, extras)
        self.journal = Journal(self.folder)
        self.acknowledged = self.written = 0
        self.gaps = self.repeated = 0
        self._file: AppendFile | None = None
        self._synced = time.monotonic()
        self._last: int | None = None
        self._recover()

    def _recover(self) -> None:
        """Cut and report the torn tails of segments after a crash, and seal them."""
        for file in sorted(self.folder.glob("*.seg")):
            if file.with_suffix(".parquet").exists():
                file.unlink()  # sealed just before the crash
                continue
            try:
                segment = read_segment(file)
            except LogError:
                file.unlink()  # without a complete header
                continue
            if segment.torn:
                handle = AppendFile(file)
                handle.cut(segment.size)
                handle.sync()
                handle.close()
                self.journal.note("torn tail cut", file=file.name, bytes=segment.torn, samples=len(segment.table))
            self._seal(file)

    def open(self, kind: str, cycle: int, attempt: int, session: str) -> Path:
        """Start a segment."""
        self.close_segment(seal=False)
        used = [int(p.name[:5]) for p in self.folder.glob("[0-9]" * 5 + "_*")]
        name = f"{max(used, default=-1) + 1:05d}_{kind}_{cycle:03d}_{attempt}.seg"
        file = AppendFile(self.folder / name)
        facts = {"columns": list(self.columns), "kind": kind, "cycle": cycle, "attempt": attempt, "session": session}
        try:
            file.append(segment_start({**facts, "began": time.time()}))
            file.sync()
        except OSError:
            file.close()
            raise
        self._file = file
        return file.path

    def append(self, host: float, samples: Samples) -> None:
        """Write samples; `acknowledged` counts them after the next sync.

        Parameters
        ----------
        host : float
            Clock of the host at their arrival [s since 1970].
        samples : Samples
            Received samples; gaps and repetitions of their counter are marked.
        """
        if self._file is None:
            raise LinkError("no segment is open; call open first")
        if not len(samples):
            return
        index = samples.index
        known = index[0] - 1 if self._last is None else self._last
        step = index - np.maximum.accumulate(np.concatenate([[known], index[:-1]]))
        flag = np.where(step <= 0, REPEATED, np.where(step > 1, GAP, 0)).astype(np.float64)
        self._last = max(int(known), int(index.max()))
        self.gaps += int(np.sum(flag == GAP))
        self.repeated += int(np.sum(flag == REPEATED))
        table = samples.table
        rows = np.column_stack([np.full(len(samples), host), table[:, :3], flag, table[:, 3:]])
        self._file.append(segment_frame(rows))
        self.written += len(samples)
        self.sync(force=False)

    def sync(self, force: bool = True) -> int:
        """Write the samples to the disk if the interval has passed, or always with `force`."""
        if self._file is not None and (force or time.monotonic() - self._synced >= self.interval):
            self._file.sync()
            self.acknowledged = self.written
            self._synced = time.monotonic()
        return self.acknowledged

    def new_session(self) -> None:
        """Reset the controller's counter, which may start again."""
        self._last = None

    def close_segment(self, seal: bool = True) -> None:
        """Close the open segment, and seal it to Parquet."""
        if self._file is None:
            return
        file, path = self._file, self._file.path
        self.sync()
        self._file = None
        file.close()
        if seal:
            self._seal(path)

    def _seal(self, path: Path) -> None:
        try:
            seal_segment(path)
        except MissingExtraError:
            pass  # readable without sealing
        except (OSError, DynidentError) as error:
            cause = error if isinstance(error, OSError) else error.__cause__
            if isinstance(cause, OSError) and cause.errno in FULL:
                raise DiskFullError(f"no space to close '{path}' ({cause.strerror}); free some space") from error
            raise
        sync_folder(self.folder)

    def close(self) -> None:
        """Close everything."""
        self.close_segment()
        self.journal.close()
