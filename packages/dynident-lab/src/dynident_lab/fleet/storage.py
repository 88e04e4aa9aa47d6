"""Files on disk or behind an address that fsspec supports (s3://, gs://, az://, http://, memory://)."""

from __future__ import annotations

import glob
import hashlib
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dynident.errors import OURS, LogError, missing_extra

BLOCK = 1 << 20


class StorageError(LogError):
    """A file could not be reached; the error may be temporary."""


def is_address(path: str) -> bool:
    """Return whether a path is an address such as s3://bucket/log.parquet."""
    return "://" in path


def _system(path: str) -> tuple[Any, str]:
    """Return the file system of an address and the path in it."""
    try:
        import fsspec  # noqa: PLC0415
    except ImportError as error:
        raise missing_extra("fsspec", "fleet", "reading logs from object storage") from error
    try:
        system, inside = fsspec.core.url_to_fs(path)
    except ImportError as error:
        raise LogError(f"cannot read '{path}': {error}; install the package that fsspec names for this storage") from error
    except Exception as error:  # every kind of storage raises its own errors
        raise _refused(path, error) from error
    return system, inside


def _refused(path: str, error: Exception) -> StorageError:
    """Return the error for a storage that does not provide a file."""
    kind = type(error).__name__
    if isinstance(error, FileNotFoundError):
        return StorageError(f"cannot read '{path}': there is no such file")
    if isinstance(error, PermissionError) or "redential" in f"{kind} {error}" or "orbidden" in str(error):
        return StorageError(
            f"cannot read '{path}': access denied ({kind}); set the credentials of the storage in this process and on the "
            "workers"
        )
    text = " ".join(str(error).split())[:200]
    return StorageError(f"cannot read '{path}': {text or kind}")


def matching(pattern: str) -> list[str]:
    """Return the paths that match a pattern with * and **, sorted."""
    if not is_address(pattern):
        return sorted(glob.glob(pattern, recursive=True))  # noqa: PTH207 - patterns may be absolute
    system, inside = _system(pattern)
    try:
        return sorted(system.unstrip_protocol(path) for path in system.glob(inside))
    except Exception as error:
        raise _refused(pattern, error) from error


def signature(path: str) -> str:
    """Return a mark that changes with the file, without reading it: size and time, or the tag of its storage."""
    if not is_address(path):
        try:
            state = Path(path).stat()
        except OSError as error:
            raise StorageError(f"cannot read '{path}': {error.strerror or error}") from error
        return f"{state.st_size}:{state.st_mtime_ns}"
    system, inside = _system(path)
    try:
        info = system.info(inside)
    except Exception as error:
        raise _refused(path, error) from error
    names = ("ETag", "etag", "md5Hash", "content_md5", "mtime", "LastModified", "created")
    tags = (str(info[key]) for key in names if key in info)
    return f"{info.get('size')}:{next(tags, '')}"


def size_of(path: str) -> int:
    """Return the number of bytes of a file."""
    return int(signature(path).partition(":")[0]) if not Path(path).is_dir() else 0


@contextmanager
def opened(path: str) -> Iterator[Any]:
    """Yield a file for binary reading with seeking; from object storage only the parts read are transferred."""
    if not is_address(path):
        try:
            with Path(path).open("rb") as stream:
                yield stream
        except OSError as error:
            raise StorageError(f"cannot read '{path}': {error.strerror or error}") from error
        return
    system, inside = _system(path)
    try:
        with system.open(inside, "rb") as stream:
            yield stream
    except Exception as error:
        # The block may fail for other reasons: storages raise system errors, or their own classes.
        if isinstance(error, OSError) or type(error).__module__.partition(".")[0] not in ("builtins", *OURS):
            raise _refused(path, error) from error
        raise


@contextmanager
def local_copy(path: str) -> Iterator[Path]:
    """Yield the path of a file on this machine: itself, or a copy that exists during the block."""
    if not is_address(path):
        yield Path(path)
        return
    with tempfile.TemporaryDirectory(prefix="dynident-") as folder:
        copy = Path(folder) / path.rstrip("/").rpartition("/")[2]
        with opened(path) as stream, copy.open("wb") as target:
            while block := stream.read(BLOCK):
                target.write(block)
        yield copy


def fingerprint(*parts: object) -> str:
    """Return the sha256 of texts and bytes."""
    hashed = hashlib.sha256()
    for part in parts:
        data = part if isinstance(part, bytes) else str(part).encode()
        hashed.update(len(data).to_bytes(8, "little") + data)
    return hashed.hexdigest()
