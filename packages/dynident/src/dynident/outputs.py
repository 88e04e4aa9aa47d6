"""Sets of files that appear together: a folder shows the old set or the whole new one, also after a kill or on a full disk.

The files are written into a hidden sibling folder of the output; then one system call exchanges the two folders. If that is
not possible (the output is the working folder, contains folders, or its file system has no exchange), the finished files are
renamed into place one by one. Without write permission for the parent, as in a home folder, the hidden folder is in the output.
A lock marks a hidden folder in use; the next run removes unlocked ones, which killed runs have left.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from fnmatch import fnmatch
from pathlib import Path

from dynident.errors import DynidentError
from dynident.files import try_lock, umask_of, write_error

MOST_LINKED = 1000  # limit of files of other origin that are kept by links
_EXCHANGE = 2  # RENAME_EXCHANGE of Linux's renameat2, RENAME_SWAP of macOS's renamex_np
_HERE = -100  # AT_FDCWD


@contextmanager
def output_set(folder: str | os.PathLike[str], owns: tuple[str, ...]) -> Iterator[Path]:
    """Yield an empty folder for results; they become the content of `folder` in one step."""
    target = Path(folder).resolve()
    made = [parent for parent in target.parents if not parent.exists()]
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _remove_stale(target)
        stage, lock = _stage(target)
    except OSError as error:
        raise DynidentError(write_error(target, error)) from error
    try:
        try:
            yield stage
        except DynidentError as error:  # the message must name the requested folder
            raise type(error)(str(error).replace(str(stage), str(target))) from error
        try:
            _publish(stage, target, owns)
        except OSError as error:
            raise DynidentError(write_error(target, error)) from error
    finally:
        if lock is not None:
            os.close(lock)
        shutil.rmtree(stage, ignore_errors=True)
        for parent in made:
            with suppress(OSError):  # it now holds the results
                parent.rmdir()


def _place(target: Path) -> Path:
    """Return the parent of hidden folders: that of the output, or the output itself if only it is writable."""
    beside = os.access(target.parent, os.W_OK | os.X_OK)
    return target.parent if beside or not target.is_dir() else target


def _stage(target: Path) -> tuple[Path, int | None]:
    """Return a new hidden folder for `target` and its lock."""
    while True:
        stage = Path(tempfile.mkdtemp(dir=_place(target), prefix=f".{target.name}.new-"))
        with suppress(FileNotFoundError):
            lock = try_lock(stage, wait=True)
            if stage.exists():  # else another run removed it as stale before it was locked
                return stage, lock
            if lock is not None:
                os.close(lock)


def _publish(stage: Path, target: Path, owns: tuple[str, ...]) -> None:
    """Turn the staged files into the set in `target`."""
    stage.chmod(target.stat().st_mode & 0o7777 if target.is_dir() else 0o777 & ~umask_of())
    if not target.exists():
        stage.rename(target)
        return
    new = {path.name for path in stage.iterdir()}
    entries = [entry for entry in os.scandir(target) if entry.name not in new and not _matches(entry.name, owns)]
    if _may_exchange(target, entries):
        try:
            for entry in entries:
                os.link(entry.path, stage / entry.name, follow_symlinks=False)
        except OSError:
            pass  # a file system without links
        else:
            if _exchange(stage, target):
                return
    for path in sorted(path for path in stage.iterdir() if path.name in new):
        path.replace(target / path.name)
    for old in os.scandir(target):
        if old.name not in new and _matches(old.name, owns) and old.is_file(follow_symlinks=False):
            Path(old.path).unlink()


def _matches(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatch(name, pattern) for pattern in patterns)


def _may_exchange(target: Path, entries: list[os.DirEntry[str]]) -> bool:
    """Return whether another folder may replace `target` without side effects; Windows cannot exchange folders."""
    if sys.platform == "win32":
        return False
    plain = all(entry.is_symlink() or entry.is_file() for entry in entries) and len(entries) <= MOST_LINKED
    mine = not hasattr(os, "getuid") or target.stat().st_uid == os.getuid()
    return plain and mine and not target.is_mount() and target not in (Path.cwd(), *Path.cwd().parents)


def _exchange(one: Path, other: Path) -> bool:
    """Exchange two folders in one step; return whether the system supports it."""
    try:
        library = ctypes.CDLL(None, use_errno=True)
        if sys.platform == "darwin":
            return bool(library.renamex_np(os.fsencode(one), os.fsencode(other), _EXCHANGE) == 0)
        return bool(library.renameat2(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE) == 0)
    except (AttributeError, OSError, TypeError):
        return False


def _remove_stale(target: Path) -> None:
    """Remove hidden folders of killed runs."""
    for entry in os.scandir(_place(target)):
        if entry.name.startswith(f".{target.name}.new-") and entry.is_dir(follow_symlinks=False):
            lock = try_lock(entry.path)
            if lock is not None:
                shutil.rmtree(entry.path, ignore_errors=True)
                os.close(lock)
