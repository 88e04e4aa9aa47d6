"""Mutations: a good file becomes one that is nearly good, by a random generator and nothing else."""

from __future__ import annotations

import gzip
import io
import json
import re
import struct
import zipfile
import zlib
from collections.abc import Callable
from typing import Any

from numpy.random import Generator

Mutation = Callable[[bytes, Generator], bytes]

NUMBERS = (
    "nan",
    "inf",
    "-inf",
    "1e308",
    "-1e308",
    "1e-320",
    "1e400",
    "-1",
    "0",
    "-0.0",
    "2.5",
    "1e9",
    "1e-12",
    "0x10",
    "1_0",
    "1,5",
    "0.5",
    "-2",
    "1e3",
    "0.01",
    "3",
    "7",
    "0.2",
    "1.5",
    "9" * 30,
    "9" * 400,
    "9" * 5000,
    "1e",
    "--1",
    "",
    "٣",
    "1e5000",
    "true",
    "null",
    "1d3",
)
WORDS = (
    "",
    " ",
    "ghost",
    "joint1",
    "link1",
    "\u202e",
    "\x9b31m",
    "\u2028",
    "a" * 300,
    "../../etc/hostname",
    "/",
    "~",
    "%s%n",
    "${1}",
    "$(env HOME)",
    "<b>",
    '"',
    "'",
    "\\",
    "\t",
    "\r",
    "\x00",
    "NaN",
    "None",
    "[]",
    "{}",
    "é",
    "🤖",
    ";",
    "#",
    "t",
    "0",
    "-",
)
VALUES: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    1,
    2.5,
    1e308,
    -1e308,
    float("nan"),
    float("inf"),
    10**30,
    10**400,
    "",
    "x",
    "nan",
    "joint1",
    [],
    {},
    [[]],
    [None],
    ["x"],
    [1e308],
    [float("nan")],
    {"a": 1},
    [[1.0, 2.0], [3.0]],
    [0.0] * 50,
    {"": None},
    "\u202e",
    [[[[1]]]],
)
NUMBER = re.compile(rb"(?<![\w.])-?\d+(?:\.\d+)?(?:e[+-]?\d+)?(?![\w.])")
WORD = re.compile(rb'"[^"\n]*"')
MAGIC = b"DYNSEG1\n"  # of a segment
SPECIAL = (0, 1, 127, 128, 255)


def _piece(rng: Generator, size: int) -> tuple[int, int]:
    start = int(rng.integers(0, size + 1))
    return start, min(size, start + int(rng.integers(1, 40)))


def cut(data: bytes, rng: Generator) -> bytes:
    """End the file early."""
    return data[: int(rng.integers(0, len(data) + 1))]


def flip(data: bytes, rng: Generator) -> bytes:
    """Change some bytes."""
    out = bytearray(data)
    for _ in range(int(rng.integers(1, 9)) if out else 0):
        out[int(rng.integers(0, len(out)))] = int(rng.choice(SPECIAL)) if rng.random() < 0.3 else int(rng.integers(0, 256))
    return bytes(out)


def remove(data: bytes, rng: Generator) -> bytes:
    """Leave out a piece."""
    a, b = _piece(rng, len(data))
    return data[:a] + data[b:]


def repeat(data: bytes, rng: Generator) -> bytes:
    """Write a piece several times, seldom very often."""
    a, b = _piece(rng, len(data))
    times = int(rng.choice([2, 3, 50, 5000], p=[0.5, 0.3, 0.17, 0.03]))
    return data[:a] + data[a:b] * times + data[b:]


def move(data: bytes, rng: Generator) -> bytes:
    """Exchange two pieces."""
    (a, b), (c, d) = sorted([_piece(rng, len(data)), _piece(rng, len(data))])
    return data if c < b else data[:a] + data[c:d] + data[b:c] + data[a:b] + data[d:]


def _replace(pattern: re.Pattern[bytes], data: bytes, new: bytes, rng: Generator) -> bytes:
    found = list(pattern.finditer(data))
    if not found:
        return flip(data, rng)
    hit = found[int(rng.integers(0, len(found)))]
    return data[: hit.start()] + new + data[hit.end() :]


def number(data: bytes, rng: Generator) -> bytes:
    """Replace a number."""
    return _replace(NUMBER, data, str(rng.choice(NUMBERS)).encode(), rng)


def word(data: bytes, rng: Generator) -> bytes:
    """Replace a word in quotes."""
    text = WORDS[int(rng.integers(0, len(WORDS)))]
    return _replace(WORD, data, f'"{text}"'.encode(), rng)


def insert(data: bytes, rng: Generator) -> bytes:
    """Insert a word."""
    at = int(rng.integers(0, len(data) + 1))
    return data[:at] + WORDS[int(rng.integers(0, len(WORDS)))].encode() + data[at:]


def lines(data: bytes, rng: Generator) -> bytes:
    """Leave out, double or exchange whole lines."""
    rows = data.split(b"\n")
    i, j = (int(k) for k in rng.integers(0, len(rows), 2))
    what = int(rng.integers(0, 4))
    if what == 0:
        del rows[min(i, j) : max(i, j) + 1 if rng.random() < 0.2 else min(i, j) + 1]
    elif what == 1:
        rows.insert(j, rows[i])
    elif what == 2:
        rows[i], rows[j] = rows[j], rows[i]
    else:
        rows[i] = WORDS[int(rng.integers(0, len(WORDS)))].encode()
    return b"\n".join(rows)


def separators(data: bytes, rng: Generator) -> bytes:
    """Write a table in another dialect."""
    old, new = ((b",", b";"), (b",", b"\t"), (b".", b","), (b"\n", b"\r\n"), (b"\n", b"\r"), (b",", b", "), (b"t,", b"#t,"))[
        int(rng.integers(0, 7))
    ]
    return data.replace(old, new) if rng.random() < 0.5 else data.replace(old, new, 1)


def column(data: bytes, rng: Generator) -> bytes:
    """Scale, hold, drop or spoil one column of a table."""
    rows = [row.split(b",") for row in data.split(b"\n")]
    k, what = int(rng.integers(0, max(len(rows[0]), 1))), int(rng.integers(0, 6))
    factor = 10.0 ** float(rng.integers(-12, 300))
    for i, row in enumerate(rows[1:], 1):
        if k >= len(row) or not row[k]:
            continue
        if what == 0:
            del row[k]
        elif what == 1:
            row[k] = rows[1][k]
        elif what == 2:
            row[k] = b"nan" if i % 7 else row[k]
        elif what == 3:
            row[k] = b"0.0"
        else:
            try:
                row[k] = f"{float(row[k]) * factor:.9g}".encode()
            except ValueError:
                continue
    return b"\n".join(b",".join(row) for row in rows)


def tree(data: bytes, rng: Generator) -> bytes:
    """Replace, leave out or double a value somewhere in JSON."""
    try:
        root = {"root": json.loads(data)}
    except ValueError:
        return flip(data, rng)
    places: list[tuple[Any, Any]] = []

    def walk(node: Any) -> None:
        keys = list(node) if isinstance(node, dict) else range(min(len(node), 8))
        for key in keys:
            places.append((node, key))
            if isinstance(node[key], dict | list):
                walk(node[key])

    walk(root)
    node, key = places[int(rng.integers(0, len(places)))]
    what = rng.random()
    if what < 0.7:
        node[key] = VALUES[int(rng.integers(0, len(VALUES)))]
    elif what < 0.85:
        del node[key]
    elif isinstance(node, list):
        node.append(node[key])
    else:
        node[f"{key}x"] = node[key]
    return json.dumps(root.get("root")).encode()


def packed(data: bytes, rng: Generator) -> bytes:
    """Change one member of a zip archive (npz) and pack it again with the right checksum."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as old:
            members = {name: old.read(name) for name in old.namelist()}
    except (zipfile.BadZipFile, zlib.error, OSError, ValueError, NotImplementedError, EOFError, RuntimeError):
        return flip(data, rng)
    names = sorted(members)
    if not names:
        return data
    name = names[int(rng.integers(0, len(names)))]
    members[name] = (flip, cut, remove, repeat, insert)[int(rng.integers(0, 5))](members[name], rng)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as new:
        for member, content in members.items():
            new.writestr(zipfile.ZipInfo(member), content)
    return buffer.getvalue()


def zipped(data: bytes, rng: Generator) -> bytes:
    """Change the table inside a gzip file."""
    try:
        text = gzip.decompress(data)
    except (OSError, EOFError, zlib.error):
        return flip(data, rng)
    return gzip.compress(TABLE[int(rng.integers(0, len(TABLE)))](text, rng), mtime=0)


def summed(data: bytes, rng: Generator) -> bytes:
    """Change the header of a segment, or a line of a journal, and give it the right checksum."""
    if data.startswith(MAGIC):
        size = int.from_bytes(data[8:12], "little")
        header = tree(data[16 : 16 + size], rng)
        return MAGIC + struct.pack("<II", len(header), zlib.crc32(header)) + header + data[16 + size :]
    rows = [tree(row.rpartition(b" ")[0], rng) for row in data.splitlines()]
    return b"".join(row + b" %08x\n" % zlib.crc32(row) for row in rows)


TEXT: tuple[Mutation, ...] = (number, number, word, word, insert, lines, remove, repeat, cut, flip, move)
TABLE: tuple[Mutation, ...] = (number, number, lines, separators, column, column, column, cut, flip, insert, repeat)
TREE: tuple[Mutation, ...] = (tree, tree, tree, tree, tree, number, word, cut, flip)
BINARY: tuple[Mutation, ...] = (flip, flip, flip, remove, repeat, cut, move, insert)
PACKED: tuple[Mutation, ...] = (packed, packed, packed, *BINARY)
ZIPPED: tuple[Mutation, ...] = (zipped, zipped, zipped, *BINARY)
SUMMED: tuple[Mutation, ...] = (summed, summed, summed, *BINARY)


def mutate(data: bytes, kinds: tuple[Mutation, ...], rng: Generator) -> bytes:
    """Return the data after one to three mutations."""
    for _ in range(int(rng.choice([1, 2, 3], p=[0.7, 0.2, 0.1]))):
        data = kinds[int(rng.integers(0, len(kinds)))](data, rng)
    return data
