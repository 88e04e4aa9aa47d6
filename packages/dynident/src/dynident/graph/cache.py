"""Machine code on disk, so that a robot is compiled once per machine and not once per process.

A file holds a checksum of its key and its object, and the object; it is written to a temporary file and renamed, so that two
processes, a killed run or a full disk leave whole files or none. Only regular files of this user are read. After any error of
the folder or a file, the code is compiled again. The folder stays below `LIMIT`: the least recently used files are removed
first. A process scans the folder with its first object and then after every `LIMIT` / 64 bytes, so that the cost per object
does not grow with the size of the folder.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import stat
import sys
import tempfile
from pathlib import Path

from dynident.files import read_regular

LIMIT = 256 * 2**20  # bytes of all objects
LARGEST = 2**30  # bytes of one
_MAGIC = b"dynident object 2\n"
_unchecked: dict[Path, int] = {}  # bytes written by this process to a folder since its last scan

log = logging.getLogger(__name__)


def cache_folder() -> Path | None:
    """Return the folder of compiled code; None where caching is switched off or no folder can be used.

    ``DYNIDENT_CACHE`` names another folder, and an empty value switches the cache off.
    """
    named = os.environ.get("DYNIDENT_CACHE")
    if named is not None:
        return Path(named) if named else None
    try:
        home = Path.home()
    except RuntimeError:
        return None
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = home / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache")
    return base / "dynident" / "objects"


def key_of(*parts: str) -> str:
    """Return the name of the file for some code: a hash of the text, the processor and the versions."""
    hashed = hashlib.sha256()
    for part in parts:
        hashed.update(len(part).to_bytes(8, "little"))
        hashed.update(part.encode())
    return hashed.hexdigest()


def read(key: str) -> bytes | None:
    """Return the object of a key, or None without a trustworthy one."""
    folder = cache_folder()
    if folder is None or not _private(folder):
        return None
    path = folder / f"{key}.o"
    try:
        content = read_regular(path, LARGEST, own=True)
    except OSError:
        return None
    head = _head(key, body := content[len(_MAGIC) + 32 :])
    if not content.startswith(head):
        with contextlib.suppress(OSError):
            path.unlink()
        return None
    with contextlib.suppress(OSError):
        os.utime(path)  # marks the last use
    return body


def write(key: str, body: bytes) -> None:
    """Store the object of a key; if the folder is not writable, the next process compiles again."""
    folder = cache_folder()
    if folder is None:
        return
    temporary = ""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not _private(folder):
            return
        handle, temporary = tempfile.mkstemp(dir=folder, prefix=".new-")
        with os.fdopen(handle, "wb") as stream:
            stream.write(_head(key, body) + body)
        Path(temporary).replace(folder / f"{key}.o")
        _unchecked[folder] = _unchecked.get(folder, LIMIT) + len(body)
        if _unchecked[folder] > LIMIT // 64:
            _trim(folder)
    except OSError as error:
        log.info("compiled code is not kept in '%s': %s", folder, error.strerror or error)
        if temporary:
            with contextlib.suppress(OSError):
                Path(temporary).unlink()


def _head(key: str, body: bytes) -> bytes:
    """Return the header of a file, which also identifies its key."""
    return _MAGIC + hashlib.sha256(key.encode() + body).digest()


def usage() -> tuple[Path | None, int, int]:
    """Return the folder, the number of objects in it and their bytes."""
    folder = cache_folder()
    sizes = [size for _, size, _ in _files(folder)] if folder is not None else []
    return folder, len(sizes), sum(sizes)


def clear() -> int:
    """Remove all objects and return how many there were."""
    folder = cache_folder()
    files = _files(folder) if folder is not None else []
    for path, _, _ in files:
        with contextlib.suppress(OSError):
            path.unlink()
    return len(files)


def _private(folder: Path) -> bool:
    """Return whether only this user can write to the folder."""
    try:
        found = folder.stat()
    except OSError:
        return False
    if not hasattr(os, "getuid"):
        return True
    return found.st_uid == os.getuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _files(folder: Path) -> list[tuple[Path, int, float]]:
    """Return path, size and time of last use of all our files in the folder."""
    found = []
    with contextlib.suppress(OSError):
        for path in folder.iterdir():
            if path.suffix == ".o" or path.name.startswith(".new-"):
                with contextlib.suppress(OSError):
                    status = path.stat()
                    found.append((path, status.st_size, status.st_mtime))
    return found


def _trim(folder: Path) -> None:
    """Remove the least recently used files until there is room for all objects written before the next scan."""
    files = sorted(_files(folder), key=lambda file: file[2])
    total = sum(size for _, size, _ in files)
    for path, size, _ in files:
        if total <= LIMIT - LIMIT // 64:
            break
        with contextlib.suppress(OSError):
            path.unlink()
        total -= size
    _unchecked[folder] = 0
