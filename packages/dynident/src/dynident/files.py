"""Files: safe reading of regular files, and atomic writing by a temporary file and a rename."""

from __future__ import annotations

import errno
import json
import math
import os
import re
import stat
import tempfile
import tomllib
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from html import escape
from pathlib import Path
from typing import Any

from dynident.errors import DynidentError, missing_extra

try:
    import fcntl
except ImportError:  # Windows: temporary files of killed runs remain
    fcntl = None  # type: ignore[assignment]

_TEMPORARY = ".part"
# An integer beyond the range of float; not a part of packed numbers (base64), in which zeros are the letter A.
_HUGE = re.compile(r"(?<![\w.])[\d_]{309}|(?<![\w+/])0[xob][\da-fA-F_]{250}")
_RUN, _BEHIND = b"0" * 250, re.compile(rb"[^0]")  # run in every such number after replacing its digits by zeros, and its end
_DIGITS = bytes.maketrans(b"123456789abcdefABCDEF_", b"0" * 22)
_OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]")
BYTES = 64 << 20  # limit for hand-written text: limits, plans, designs
PACKED = 512 << 20  # limit for a result with packed arrays; the unpacked rest is limited to BYTES
NESTED = 4 << 20  # limit for objects and lists of a text: two characters may take 200 bytes of memory
MOST_YAML = 300_000  # limit for the characters of a YAML file
_ARRAY, _LONG = b'"base64": "', 1024  # start of a packed array in a file, and the length above which it is kept as bytes


def read_regular(path: str | os.PathLike[str], most: int | None = None, own: bool = False) -> bytes:
    """Return the content of a regular file; pipes, sockets and devices, on which reading may block for ever, are refused.

    `own` also refuses files of other users, on systems with file owners.
    """
    # A pipe is opened without waiting for its other end, so that it can be refused.
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    if stat.S_ISDIR(os.fstat(handle).st_mode):
        os.close(handle)
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    with os.fdopen(handle, "rb") as stream:
        state = os.fstat(stream.fileno())
        if not stat.S_ISREG(state.st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        if own and hasattr(os, "getuid") and state.st_uid != os.getuid():
            raise OSError(errno.EPERM, "it belongs to another user")
        if most is not None and state.st_size > most:
            raise OSError(errno.EFBIG, f"it has {state.st_size} bytes; the limit is {most}")
        return stream.read()


def read_text(path: str | os.PathLike[str], what: str, form: str = "text in UTF-8") -> str:
    """Return the content of a plain file of bounded size."""
    return _decoded(_read(path, what, BYTES), path, what, form)


def _read(path: str | os.PathLike[str], what: str, most: int) -> bytes:
    """Return the bytes of a regular file; files above the limit are not read."""
    try:
        file = Path(path)
    except TypeError as error:
        raise DynidentError(f"cannot read {what} from '{path}': {error}") from error
    try:
        info = file.stat()
        if stat.S_ISDIR(info.st_mode):
            reason = "it is a directory; give a file"
        elif not stat.S_ISREG(info.st_mode):  # a pipe would block for ever
            reason = "it is not a regular file"
        elif info.st_size > most:
            reason = f"it is larger than {most >> 20} MB; expected {what}"
        else:
            return read_regular(file, most)
    except OSError as error:
        reason = error.strerror or str(error)
    raise DynidentError(f"cannot read {what} from '{path}': {reason}")


def _decoded(data: bytes, path: str | os.PathLike[str], what: str, form: str) -> str:
    """Return bytes of a file as text with line ends converted to newlines."""
    try:
        return data.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        reason = f"it is not {form} ({error.reason} at byte {error.start})"
    raise DynidentError(f"cannot read {what} from '{path}': {reason}")


def read_json(path: str | os.PathLike[str], what: str) -> Any:
    """Return the plain data of a JSON file."""
    return _parsed_as("JSON", json.loads, read_text(path, what, "valid JSON"), path, what)


def read_packed(path: str | os.PathLike[str], what: str) -> Any:
    """Return the plain data of a JSON file with packed arrays; long arrays stay bytes, which `results.array_of` unpacks."""
    parts, arrays = _cut(_read(path, what, PACKED))
    if sum(map(len, parts)) > BYTES:
        raise DynidentError(f"cannot read {what} from '{path}': it is larger than {BYTES >> 20} MB; expected {what}")

    def whole(found: dict[str, Any]) -> dict[str, Any]:
        number = found.get("base64")
        if isinstance(number, int):
            found["base64"] = arrays.pop(number, number)  # once: a number repeated in a file refers to nothing
        return found

    loads = partial(json.loads, object_hook=whole) if arrays else json.loads
    return _parsed_as("JSON", loads, _decoded(b"".join(parts), path, what, "valid JSON"), path, what)


def too_large(data: bytes) -> bool:
    """Return whether `read_packed` would refuse a file because of its size."""
    return len(data) > PACKED or (len(data) > BYTES and sum(map(len, _cut(data)[0])) > BYTES)


def _cut(data: bytes) -> tuple[list[memoryview | bytes], dict[int, memoryview]]:
    """Return the parts of JSON with numbers in place of long packed arrays, and these arrays by number."""
    view, done, at = memoryview(data), 0, 0
    parts: list[memoryview | bytes] = []
    arrays: dict[int, memoryview] = {}
    while (found := data.find(_ARRAY, at)) >= 0 and (end := data.find(b'"', found + len(_ARRAY))) >= 0:
        begin, at = found + len(_ARRAY), end + 1
        if end - begin >= _LONG:
            parts += view[done : begin - 1], b"%d" % len(arrays)
            arrays[len(arrays)] = view[begin:end]
            done = at
    return [*parts, view[done:]], arrays


def read_toml(path: str | os.PathLike[str], what: str, kind: type[DynidentError] = DynidentError) -> dict[str, Any]:
    """Return the tables of a TOML file; errors are of class `kind`."""
    try:
        tables: dict[str, Any] = _parsed_as("TOML", _toml, read_text(path, what, "valid TOML"), path, what)
    except DynidentError as error:
        raise kind(str(error)) from error
    return tables


def _toml(text: str) -> dict[str, Any]:
    """Parse TOML, which limits integers to 64 bits."""
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ContentError(str(error)) from error
    waiting: list[Any] = [tables]
    while waiting:
        item = waiting.pop()
        if isinstance(item, int) and not -(1 << 63) <= item < 1 << 63:
            raise ContentError(f"it contains the integer {item:.3e}; write numbers beyond 64 bits with a decimal point")
        waiting.extend(item.values() if isinstance(item, dict) else item if isinstance(item, list) else ())
    return tables


def read_yaml(path: str | os.PathLike[str], what: str) -> Any:
    """Return the content of a YAML file: plain values, no merged tables."""
    content = read_text(path, what)
    if len(content) > MOST_YAML or "<<" in content:  # PyYAML takes a second for 50 kB, and merged tables grow without bound
        raise DynidentError(f"{what} '{path}' have more than {MOST_YAML} characters, or merge tables (<<); write them out")
    try:
        import yaml  # noqa: PLC0415 - optional
    except ImportError as error:
        raise missing_extra("pyyaml", "yaml", f"reading {Path(path).name}") from error
    try:
        return yaml.safe_load(content)
    except Exception as error:  # PyYAML raises almost anything for a damaged file
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DynidentError(f"cannot read {what} from '{path}': {first}") from error


def _parsed_as(form: str, loads: Callable[[str], Any], text: str, path: str | os.PathLike[str], what: str) -> Any:
    """Parse the text of a file."""
    if not text.strip():
        raise DynidentError(f"cannot read {what} from '{path}': the file is empty")
    try:
        return parsed(loads, text)
    except ContentError as error:
        raise DynidentError(f"cannot read {what} from '{path}': it is not valid {form} ({error}); correct the file") from error


class ContentError(ValueError):
    """A text is not readable JSON or TOML; the message gives the reason."""


def parsed(loads: Callable[[str], Any], text: str | bytes) -> Any:
    """Return the result of `json.loads` or a TOML parser for a text; errors become `ContentError`."""
    if isinstance(text, bytes):
        try:
            text = text.decode()
        except UnicodeDecodeError as error:
            raise ContentError(str(error)) from error
    if (begin := _huge(text)) is not None:
        before = visible(text[max(begin - 40, 0) : begin + 8].rpartition("\n")[2])
        raise ContentError(f"it contains a number with hundreds of digits: '{before}...'")
    if text.count("{") + text.count("[") > NESTED:
        raise ContentError(f"it contains more than {NESTED} objects and lists")
    try:
        return loads(text)
    except RecursionError:
        raise ContentError("its lists are nested too deeply") from None
    except json.JSONDecodeError as error:
        raise ContentError(str(error)) from error


def _huge(text: str) -> int | None:
    """Return the position of a number with hundreds of digits. Only long runs of digits are examined: the text may be long."""
    runs = text.encode("ascii", "replace").translate(_DIGITS)  # one byte per character
    at = runs.find(_RUN)
    while at >= 0:
        for begin in (at, max(at - 2, 0)):  # 0x precedes its run
            if _HUGE.match(text, begin):
                return begin
        behind = _BEHIND.search(runs, at)
        at = -1 if behind is None else runs.find(_RUN, behind.end())
    return None


def visible(text: str) -> str:
    r"""Return a text with control characters and direction marks, which a terminal would interpret, written as \uXXXX."""
    return _OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def xml_text(text: str) -> str:
    """Return a text for XML that survives reading; characters that a terminal or an editor interprets become references."""

    def reference(found: re.Match[str]) -> str:
        code = ord(found[0])
        return f"&#{code};" if code in (9, 10, 13) or code > 31 else f"\\u{code:04x}"  # XML cannot represent the others

    return re.sub("[\t\n]", reference, _OBEYED.sub(reference, escape(text)))


def check_replaceable(target: Path) -> None:
    """Refuse to replace a folder, device or pipe by a file: a rename would remove it, even /dev/null."""
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        return
    except OSError as error:
        raise DynidentError(write_error(target, error)) from error
    if not stat.S_ISREG(mode):
        what = "a folder" if stat.S_ISDIR(mode) else "a device or pipe, which a file would replace"
        raise DynidentError(f"cannot write '{shortened(target)}': it is {what}; give a file name")


def shortened(path: str | os.PathLike[str]) -> str:
    """Return a path for messages, without the middle of a very long one."""
    text = os.fspath(path)
    return text if len(text) <= 300 else f"{text[:140]}...{text[-140:]}"


def write_atomic(path: str | os.PathLike[str], content: str | bytes) -> Path:
    """Write `content` to `path` so that a reader sees either the old file or the whole new one."""
    target = Path(path)
    check_replaceable(target)
    data = content.encode("utf-8") if isinstance(content, str) else content
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _remove_stale(target)
        handle, temporary = _temporary(target)
    except OSError as error:
        raise DynidentError(write_error(target, error, len(data))) from error
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
            if fcntl is None:
                stream.close()  # Windows does not rename open files
            # mkstemp makes private files; give the result the permissions of an ordinary new file.
            Path(temporary).chmod(0o666 & ~umask_of())
            Path(temporary).replace(target)
    except BaseException as error:
        Path(temporary).unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise DynidentError(write_error(target, error, len(data))) from error
        raise
    return target


def _temporary(target: Path) -> tuple[int, str]:
    """Return the descriptor, which holds the lock, and the path of a new temporary file in the folder of `target`."""
    while True:
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=_TEMPORARY)
        if fcntl is None:
            return handle, temporary
        with suppress(OSError):  # a file system without locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        if os.fstat(handle).st_nlink:
            return handle, temporary
        os.close(handle)  # another run removed it as stale before it was locked


def write_error(path: Path, error: OSError, needed: int | None = None) -> str:
    """Return the message for a file or folder that could not be written, with the space it needs on a full disk."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    space = f"; it needs {needed / 1e6:.3g} MB" if full and needed is not None else ""
    named = f" ('{shortened(str(error.filename))}')" if error.filename and Path(str(error.filename)) != path else ""
    return f"cannot write '{shortened(path)}': {error.strerror or error}{named}{space}" + (
        "; free some space, or give another place" if full else ""
    )


def umask_of() -> int:
    """Return the process's umask."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


def try_lock(path: str | os.PathLike[str], wait: bool = False) -> int | None:
    """Return a descriptor that holds the lock of a file or folder; None while another process has it."""
    if fcntl is None:
        return None
    descriptor = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def _remove_stale(target: Path) -> None:
    """Remove the temporary files of killed runs that wrote the same file."""
    for entry in os.scandir(target.parent):
        if (
            entry.name.startswith(f".{target.name}.")
            and entry.name.endswith(_TEMPORARY)
            and entry.is_file(follow_symlinks=False)
        ):
            lock = try_lock(entry.path)
            if lock is not None:
                Path(entry.path).unlink(missing_ok=True)
                os.close(lock)


def to_json(data: Any) -> str:
    """Return JSON text that every reader accepts: NaN and infinities, which JSON does not have, become null."""
    return json.dumps(jsonable(data, null=True), indent=1, allow_nan=False)


def jsonable(value: Any, other: Callable[[Any], Any] | None = None, null: bool = False) -> Any:
    """Return a value converted to JSON types.

    Mappings and sequences keep their form, arrays become lists and complex numbers pairs; `other` converts all other types,
    which are refused without it. With `null`, NaN and infinities become None.
    """
    if hasattr(value, "dtype"):  # arrays and numbers of NumPy, which this module does not import
        whole = value.dtype.kind in "biu" or (value.dtype.kind == "f" and not null)
        value = value.tolist()
        if whole:
            return value
    if isinstance(value, Mapping):
        return {str(key): jsonable(item, other, null) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(item, other, null) for item in value]
    if isinstance(value, complex):
        return jsonable([value.real, value.imag], other, null)
    if value is None or isinstance(value, str | int | float):
        return None if null and isinstance(value, float) and not math.isfinite(value) else value
    if other is None:
        raise DynidentError(f"a {type(value).__name__} cannot be written to a file; only numbers, texts and arrays can")
    return other(value)
