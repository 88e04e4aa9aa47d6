"""MATLAB files (version 5 to 7.2) to arrays, structures and texts.

An element is ``type (4 bytes), size (4 bytes), data, padding to 8 bytes``; a matrix is an element made of elements: flags with
its class, dimensions, name, then numbers, or further matrices for cells and structures.

SciPy's reader uses the type in a damaged file as an index without checking it and crashes the process [SciPy 25349, 25829],
and it unpacks without bound; hence this reader, limited to the contents of logs. SciPy reads version 4, which has no types.
"""

from __future__ import annotations

import io
import math
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import scipy  # its sub-packages load on first use, which keeps the start fast

from dynident.errors import LogError
from dynident.signals.tables import NOT_READ, decoding

#: Remedies in MATLAB for an object {0}; a few classes are never columns of a log.
_REMEDIES = {
    "table": "writetable({0}, 'run.csv')",
    "timetable": "T = timetable2table({0}); T.Time = seconds(T.Time - T.Time(1)); writetable(T, 'run.csv')",  # all digits
    "timeseries": "t = {0}.Time; q = {0}.Data; save('run.mat', 't', 'q', ...)",
    "datetime": "t = seconds({0} - {0}(1)); save('run.mat', 't', ...)",
    "duration": "t = seconds({0}); save('run.mat', 't', ...)",
}
_HARMLESS = ("string", "function_handle", "categorical", "containers.Map")
DEPTH, PARTS = 16, 10_000  #: levels of structures, and cells or fields of one
NOTES = 5  #: largest number of notes about unread variables
_NUMBERS = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
_TEXTS = {1: "latin-1", 2: "utf-8", 4: "utf-16", 16: "utf-8", 17: "utf-16", 18: "utf-32"}
_MATRIX, _PACKED = 14, 15
_CELL, _STRUCT, _CHAR, _NUMERIC, _OPAQUE = 1, 2, 4, range(6, 16), 17
_COMPLEX = 0x0800  # of the flags
_NOTHING = (1, memoryview(b""))  # type and data of an element that is missing


@dataclass(frozen=True)
class Unread:
    """A variable other than array, text, cell or structure: the class of an object, or the size of a structure array."""

    class_: str
    count: int = 1

    def note(self, name: str) -> str:
        """Sentence with the class and the remedy in MATLAB; empty where it cannot be a column of a log."""
        if self.count > 1:
            remedy = f"one = {name}(1); save('run.mat', '-struct', 'one')"
            return f"{NOT_READ} '{name}' is an array of {self.count} structures; save one of them in MATLAB: {remedy}"
        if self.class_ in _HARMLESS:
            return ""
        remedy = _REMEDIES.get(self.class_, "save('run.mat', 't', 'q', 'tau') with arrays of its numbers").format(name)
        return f"{NOT_READ} '{name}' is a {self.class_}, an object that only MATLAB opens; there write {remedy}"


def first_notes(notes: Iterable[str]) -> list[str]:
    """Return the first few notes about unread variables and the number of others: a file may have thousands."""
    told = [note for note in notes if note]
    return (
        told if len(told) <= NOTES else [*told[:NOTES], f"{NOT_READ} {len(told) - NOTES} more objects or arrays of structures"]
    )


def read_matlab(data: bytes, room: int) -> dict[str, Any]:
    """Variables by name: arrays, texts, lists (cells), dictionaries (structures) and `Unread`; `room` bounds their bytes."""
    if 0 in data[:4]:
        with decoding(".mat"):
            found = scipy.io.loadmat(io.BytesIO(data), simplify_cells=True)
        return {name: value for name, value in found.items() if not name.startswith("__")}
    if len(data) < 128 or data[126:128] not in (b"IM", b"MI"):
        raise LogError("it does not start like a MATLAB file; check its type")
    order = "<" if data[126:128] == b"IM" else ">"
    result: dict[str, Any] = {}
    for kind, body in _elements(memoryview(data)[128:], order):
        if kind == _PACKED:
            whole = _unpacked(bytes(body), room)
            room -= len(whole)
            kind, body = next(_elements(memoryview(whole), order), (0, memoryview(b"")))  # noqa: PLW2901
        if kind != _MATRIX:
            raise LogError(f"it has an element of type {kind} where a variable is needed; the file is damaged")
        name, value = _matrix(body, order, 0)
        if name and not name.startswith("__"):
            result[name] = value
    return result


def _unpacked(packed: bytes, room: int) -> bytes:
    """Unpack a compressed variable, piece by piece, as long as there is room."""
    unpacker, whole = zlib.decompressobj(), bytearray()
    while packed and not unpacker.eof:
        with decoding(".mat"):
            whole += unpacker.decompress(packed, 1 << 20)
        if len(whole) > room:
            raise LogError(f"its variables take more than the {room >> 20} MB that are left for a file of this size")
        packed = unpacker.unconsumed_tail
    return bytes(whole)


def _elements(data: memoryview, order: str) -> Iterator[tuple[int, memoryview]]:
    """Type and data of every element."""
    place = 0
    while place + 8 <= len(data):
        kind, size = (int.from_bytes(data[place + k : place + k + 4], "little" if order == "<" else "big") for k in (0, 4))
        if kind >> 16:  # a small element has its data in its tag
            yield kind & 0xFFFF, data[place + 4 : place + 4 + min(kind >> 16, 4)]
            place += 8
            continue
        if place + 8 + size > len(data):
            raise LogError("it is cut short or damaged: an element is longer than the rest of the file")
        yield kind, data[place + 8 : place + 8 + size]
        place += 8 + (size if kind == _PACKED else -(-size // 8) * 8)


def _text(body: memoryview) -> str:
    return bytes(body).decode("latin-1").strip("\0")


def _numbers(kind: int, body: memoryview, order: str) -> Any:
    if kind not in _NUMBERS:
        raise LogError(f"it has an element of type {kind} where numbers are needed; the file is damaged")
    dtype = np.dtype(order + _NUMBERS[kind])
    return np.frombuffer(body[: len(body) // dtype.itemsize * dtype.itemsize], dtype=dtype)


def _matrix(body: memoryview, order: str, depth: int) -> tuple[str, Any]:
    """Name and value of one variable, cell or field; None for types without use in a log (sparse matrices)."""
    if depth > DEPTH:
        raise LogError(f"a structure of it is more than {DEPTH} levels deep")
    parts = _elements(body, order)
    header = [part for _, part in zip(range(3), parts, strict=False)]
    if len(header) < 3:  # an empty field
        return "", None
    flags = int(_numbers(*header[0], order)[0]) if len(header[0][1]) >= 4 else 0
    class_ = flags & 0xFF
    if class_ == _OPAQUE:  # its parts are flags, name, "MCOS", class, and a number in the hidden part of the file
        return _text(header[1][1]), Unread(_text(next(parts, _NOTHING)[1]))
    shape = tuple(int(n) for n in _numbers(*header[1], order)[:32])
    name = _text(header[2][1])
    count = math.prod(shape)
    if class_ == _CELL:
        if not 0 <= count <= PARTS:
            raise LogError(f"'{name}' has {count} cells; at most {PARTS} are read")
        cells = islice(parts, count)
        return name, [_matrix(part, order, depth + 1)[1] for kind, part in cells if kind == _MATRIX]
    if class_ == _STRUCT and count > 1:
        return name, Unread("struct", count)
    if class_ == _STRUCT and count == 1:
        width = int(next(iter(_numbers(*next(parts, _NOTHING), order)), 0))
        names = bytes(next(parts, _NOTHING)[1])
        if not 0 < width <= 1024 or len(names) > width * PARTS:
            raise LogError(f"the fields of '{name}' have names of {width} letters; the file is damaged")
        fields = [names[k : k + width].split(b"\0")[0].decode("latin-1") for k in range(0, len(names), width)]
        own = islice(parts, len(fields))
        values = [_matrix(part, order, depth + 1)[1] if kind == _MATRIX else None for kind, part in own]
        return name, dict(zip(fields, values, strict=False))
    if class_ == _CHAR:
        kind, part = next(parts, _NOTHING)
        end = "-le" if order == "<" else "-be"
        code = _TEXTS.get(kind, "latin-1")
        return name, bytes(part).decode(code + end if code in ("utf-16", "utf-32") else code, "replace")
    if class_ not in _NUMERIC:
        return name, None
    values = _numbers(*next(parts, _NOTHING), order)
    if values.size != count or count < 0:
        raise LogError(f"'{name}' declares shape {shape} but has {values.size} numbers; the file is damaged")
    if flags & _COMPLEX:
        imaginary = _numbers(*next(parts, _NOTHING), order)
        if imaginary.size != count:
            raise LogError(f"'{name}' is declared complex but has {imaginary.size} imaginary parts; the file is damaged")
        values = values + 1j * imaginary
    return name, np.squeeze(values.reshape(shape, order="F"))
