"""Writing results: valid JSON, and a temporary file then a rename, so that nothing is ever half-written."""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dynident.errors import DynidentError


def write_atomic(path: str | os.PathLike[str], content: str | bytes) -> Path:
    """Write `content` to `path` so that a reader sees either the old file or the whole new one.

    Parameters
    ----------
    path : path-like
        File to write; missing folders are made.
    content : str or bytes
        What to write; text is encoded as UTF-8.

    Returns
    -------
    pathlib.Path
        The path written.
    """
    target = Path(path)
    if target.is_dir():
        raise DynidentError(f"cannot write '{target}': it is a folder; give a file name")
    data = content.encode("utf-8") if isinstance(content, str) else content
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    except OSError as error:
        raise DynidentError(f"cannot write '{target}': {error.strerror or error}") from error
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        # mkstemp makes private files; give the result the permissions an ordinary new file would have.
        umask = os.umask(0)
        os.umask(umask)
        Path(temporary).chmod(0o666 & ~umask)
        Path(temporary).replace(target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    return target


def to_json(data: Any) -> str:
    """Return JSON text that every reader accepts: NaN and infinities, which JSON does not have, become null.

    Parameters
    ----------
    data : mapping, list, text or number
        Plain data; floats are written exactly.

    Returns
    -------
    str
        JSON text.
    """
    return json.dumps(_plain(data), indent=1, allow_nan=False)


def _plain(data: Any) -> Any:
    if isinstance(data, Mapping):
        return {key: _plain(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_plain(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data
