"""ROS bags to columns on one clock: MCAP, rosbag2 (SQLite) and ROS 1, read without ROS as streams, at once or piece by piece.

    x(t_k) = x_i + (x_{i+1} - x_i) (t_k - t_i) / (t_{i+1} - t_i)

The clock t_k is the clock of the first topic; other topics are interpolated to it between their messages i and i + 1. A
long bag is interpolated piece by piece: messages later than the time reached by all topics wait for the next piece.

A serialised message is a fixed pattern of bytes as long as its names and array lengths stay the same. The first message of a
kind is walked once by its definition, which gives the offset of every number (a `Layout`); the numbers of all further messages
of that kind are extracted together, ``(k, bytes) array of messages [:, offset : offset + 8 n] -> (k, n) numbers``. Columns are
named /topic/joint/field or /topic/field[k], as in PlotJuggler. The libraries are an extra, so this module is imported on first
use.
"""

from __future__ import annotations

import bz2
import contextlib
import hashlib
import io
import re
import sqlite3
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import zstandard
from lz4.frame import LZ4FrameDecompressor
from mcap.data_stream import ReadDataStream
from mcap.opcode import Opcode
from mcap.records import Channel, Chunk, Metadata, Schema
from numpy.typing import NDArray
from rosbags.rosbag1 import Reader
from rosbags.typesys import Stores, get_types_from_idl, get_types_from_msg, get_typestore

from dynident.errors import LogError
from dynident.signals.log import FIELDS
from dynident.signals.tables import (
    COLUMNS,
    GROWTH,
    LARGEST,
    NOT_TAKEN,
    ROOM,
    Table,
    check_room,
    decoded,
    decoding,
    own_metadata,
    printable,
)

Bytes = NDArray[np.uint8]
Message = tuple[int, bytes]

#: Largest single message (bytes), and messages and bytes that are decoded together.
MESSAGE, TOGETHER, BLOCK = 64 << 20, 4096, 16 << 20
#: Kinds of messages of one topic (other names, other array lengths) and levels of a message definition.
LAYOUTS, DEPTH = 100, 12
#: Characters of a definition, which are slow to parse, and parts of a message beyond one for each of its bytes.
DEFINITION, PARTS = 100_000, 100_000
_NUMBERS = {
    **{f"{kind}{bits}": f"{kind[0]}{bits // 8}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)},
    **{"float32": "f4", "float64": "f8", "bool": "u1", "byte": "u1", "char": "u1", "octet": "u1"},
}
_LABELS = ("name", "names", "joint_names", "interface_names")


@dataclass(frozen=True)
class Kind:
    """Topic, type, definition and encoding of messages."""

    topic: str
    type: str
    definition: str
    encoding: str  # "cdr" or "ros1"


# ---------------------------------------------------------------------- one message
@dataclass
class Layout:
    """Places of the numbers in a message; bytes under `mask` (lengths and names) must equal the first message's."""

    columns: list[str] = field(default_factory=list)
    places: list[tuple[int, str, int]] = field(default_factory=list)  # offset, type, count
    fixed: list[tuple[int, int]] = field(default_factory=list)
    stamp: tuple[int, str] | None = None
    mask: Any = None
    first: Any = None

    def numbers(self, block: Bytes) -> list[NDArray[Any]]:
        """Extract the numbers of (k, bytes) messages: one (k, n) array per place."""
        return [np.ascontiguousarray(block[:, a : a + int(t[-1]) * n]).view(t) for a, t, n in self.places]

    def stamps(self, block: Bytes) -> NDArray[np.int64] | None:
        """The header's stamps in ns, None if there is no header."""
        if self.stamp is None:
            return None
        parts = np.ascontiguousarray(block[:, self.stamp[0] : self.stamp[0] + 8]).view(self.stamp[1] + "u4")
        return np.asarray(parts[:, 0].astype(np.int64) * 10**9 + parts[:, 1])


class Walk:
    """Traverses the bytes of a message by its definition."""

    def __init__(self, kind: Kind, types: Mapping[str, Any], raw: bytes) -> None:
        self.types, self.raw, self.layout = types, raw, Layout()
        self.left = PARTS + len(raw)
        self.ros1 = kind.encoding == "ros1"
        self.order = "<" if self.ros1 or raw[1] & 1 else ">"
        self.start = 0 if self.ros1 else 4
        self.place = self.start
        if not self.ros1 and (raw[0] != 0 or raw[1] > 1):
            raise LogError(f"topic '{kind.topic}' is serialised as {raw[:2].hex()}, and only plain CDR is read")
        self.message(kind.topic, "", kind.type, (), 0)
        fixed = np.zeros(len(raw), dtype=bool)
        for a, b in self.layout.fixed:
            fixed[a:b] = True
        if not self.ros1:
            fixed[:2] = True
        self.layout.mask, self.layout.first = fixed, np.frombuffer(raw, dtype=np.uint8)[fixed]

    def message(self, path: str, inner: str, type_: str, labels: tuple[str, ...], depth: int) -> None:
        """One message; `path` leads to it, `inner` names it inside a labelled one."""
        if type_ not in self.types:
            raise LogError(f"the definition of message '{type_}' is missing")
        if depth > DEPTH:
            raise LogError(f"message '{type_}' is nested more than {DEPTH} levels deep")
        self.left -= 1 + len(self.types[type_][1])  # arrays of parts without bytes would never end
        if self.left < 0:
            raise LogError(f"a message of {len(self.raw)} bytes has more than {PARTS} parts; its definition is damaged")
        for name, (node, detail) in self.types[type_][1]:
            place = f"{inner}_{name}" if inner else name
            if type_.endswith("msg/Header") and name == "stamp" and self.layout.stamp is None:
                self.stamp(path)
            elif node.name == "BASE":
                self.numbers(path, place, detail[0], 1, (), single=True)
            elif node.name == "NAME":
                self.message(path, place, detail, labels, depth + 1)
            else:
                (item, what), count = detail
                if node.name == "SEQUENCE":
                    count = self.length()
                if item.name == "NAME":
                    for k in range(count):
                        known = len(labels) == count
                        below = f"{path}/{labels[k]}" if known else f"{path}/{place}[{k}]"
                        self.message(below, "", what, () if known else labels, depth + 1)
                elif what[0] == "string":
                    start = self.place
                    texts = tuple(self.string() for _ in range(count))
                    if name in _LABELS:
                        labels = texts
                        self.layout.fixed.append((start, self.place))
                else:
                    self.numbers(path, place, what[0], count, labels)

    def stamp(self, path: str) -> None:
        """The time of the header."""
        self.align(4)
        self.layout.stamp = (self.place, self.order)
        self.place += 8
        if self.place > len(self.raw):
            raise LogError(f"a message of '{path}' ends before its stamp; the bag is damaged")

    def align(self, size: int) -> None:
        """Align to a multiple of the number's size, counted after the first four bytes of a message (CDR)."""
        if not self.ros1:
            self.place += (self.start - self.place) % size

    def length(self) -> int:
        """The length of an array or text, which must stay the same in all messages of a layout."""
        self.align(4)
        self.layout.fixed.append((self.place, self.place + 4))
        count = int.from_bytes(self.raw[self.place : self.place + 4], "little" if self.order == "<" else "big")
        self.place += 4
        if count > len(self.raw) or self.place > len(self.raw):
            raise LogError(f"a message of {len(self.raw)} bytes declares an array of {count}; the bag is damaged")
        return count

    def string(self) -> str:
        """A text; only its length is fixed."""
        count = self.length()
        text = self.raw[self.place : self.place + count]
        self.place += count
        return text.rstrip(b"\0").decode("utf-8", "replace")

    def numbers(self, path: str, name: str, type_: str, count: int, labels: tuple[str, ...], single: bool = False) -> None:
        """One number or an array of them."""
        if type_ == "string":
            self.string()
            return
        if type_ not in _NUMBERS:
            raise LogError(f"field '{name}' of '{path}' is a {type_}, which is not read")
        kind = self.order + _NUMBERS[type_]
        size = int(kind[-1])
        if count:
            self.align(size)
        if self.place + size * count > len(self.raw):
            raise LogError(f"a message of '{path}' ends before its field '{name}'; the bag is damaged")
        if count and count + len(self.layout.columns) <= COLUMNS:
            self.layout.places.append((self.place, kind, count))
            if single:
                self.layout.columns.append(f"{path}/{name}")
            elif len(labels) == count:
                self.layout.columns += [f"{path}/{label}" if name == "values" else f"{path}/{label}/{name}" for label in labels]
            else:
                self.layout.columns += [f"{path}/{name}[{k}]" for k in range(count)]
        self.place += size * count


# ---------------------------------------------------------------------- one topic
class Rows:
    """Rows appended to one array, which grows in place without a second copy."""

    def __init__(self, array: NDArray[Any]) -> None:
        self.array, self.size = array, len(array)

    def add(self, block: NDArray[Any]) -> None:
        """Append rows."""
        end = self.size + len(block)
        if end > len(self.array):
            self._resize(max(end, self.size + self.size // 16))
        self.array[self.size : end] = block
        self.size = end

    def take(self) -> NDArray[Any]:
        """Return the array, cut to its content."""
        self._resize(self.size)
        return self.array

    def _resize(self, rows: int) -> None:
        # The system moves the pages of a large array without copying them; no other reference exists yet.
        self.array.resize((rows, *self.array.shape[1:]), refcheck=False)


class Stream:
    """Messages of one topic with the same columns: times of the recorder, stamps of the headers, one array per field."""

    def __init__(self, widths: list[int], stamped: bool) -> None:
        self.times = Rows(np.empty(0, dtype=np.int64))
        self.stamps = Rows(np.empty(0, dtype=np.int64)) if stamped else None
        self.parts = [Rows(np.empty((0, width))) for width in widths]

    def __len__(self) -> int:
        return self.times.size

    def add(self, times: Any, stamps: Any, parts: list[Any]) -> None:
        """Add messages; stamps are used only if all messages have them."""
        self.times.add(times)
        if stamps is None:
            self.stamps = None
        elif self.stamps is not None:
            self.stamps.add(stamps)
        for rows, part in zip(self.parts, parts, strict=True):
            rows.add(part)


class Topic:
    """Collects the messages of one topic and turns them into columns, a few thousand at a time."""

    def __init__(self, kind: Kind, room: int) -> None:
        self.kind, self.room, self.types = kind, room, _types(kind)
        self.waiting: dict[int, list[Message]] = {}
        self.layouts: dict[int, list[Layout]] = {}
        #: by the names of their columns
        self.streams: dict[tuple[str, ...], Stream] = {}
        self.needed = 0
        #: Messages since the last table
        self.taken = 0

    def add(self, time: int, raw: bytes) -> None:
        """Add one message."""
        size = len(raw)
        self.taken += 1
        group = self.waiting.get(size)
        if group is None:
            group = self.waiting[size] = []
        group.append((time, raw))
        if len(group) >= TOGETHER or len(group) * size > BLOCK:
            self._decode(size, self.waiting.pop(size))

    def finish(self) -> None:
        """Decode the remaining messages."""
        for size, group in self.waiting.items():
            self._decode(size, group)
        self.waiting = {}

    def _decode(self, size: int, group: list[Message]) -> None:
        if size < 4 or size > MESSAGE:
            raise LogError(f"topic '{self.kind.topic}' has a message of {size} bytes; 4 to {MESSAGE} are read")
        if self.kind.type.endswith("/JointTrajectory"):
            for time, raw in group:
                self._trajectory(time, raw)
            return
        block = np.frombuffer(b"".join(raw for _, raw in group), dtype=np.uint8).reshape(len(group), size)
        times = np.array([time for time, _ in group], dtype=np.int64)
        known = self.layouts.setdefault(size, [])
        for k in range(LAYOUTS):
            if k == len(known):
                known.append(Walk(self.kind, self.types, block[0].tobytes()).layout)
            layout = known[k]
            fits = (block[:, layout.mask] == layout.first).all(axis=1)
            if fits.any():
                self._keep(layout, times[fits], block[fits])
                block, times = block[~fits], times[~fits]
            if not len(block):
                return
        raise LogError(f"topic '{self.kind.topic}' has more than {LAYOUTS} kinds of messages (names or lengths change)")

    def _keep(self, layout: Layout, times: Any, block: Bytes) -> None:
        self.needed += 8 * len(times) * (len(layout.columns) + 2)
        check_room(self.needed, self.room, f"topic '{self.kind.topic}'")
        self._stream(tuple(layout.columns), [n for _, _, n in layout.places], layout.stamp is not None).add(
            times, layout.stamps(block), layout.numbers(block)
        )

    def _stream(self, columns: tuple[str, ...], widths: list[int], stamped: bool) -> Stream:
        if columns not in self.streams:
            self.streams[columns] = Stream(widths, stamped)
        return self.streams[columns]

    def _trajectory(self, time: int, raw: bytes) -> None:
        """A planned trajectory is a table of its own: the references at its start plus the times of its points."""
        store = get_typestore(Stores.EMPTY)
        with decoding("a bag"):
            store.register({name: entry for name, entry in self.types.items() if name not in store.fielddefs})
            decode: Any = store.deserialize_ros1 if self.kind.encoding == "ros1" else store.deserialize_cdr
            message: Any = decode(raw, self.kind.type)
            names, stamp = [str(name) for name in message.joint_names], message.header.stamp
            points = [p for p in message.points if len(p.positions) == len(names)]
            start = int(stamp.sec) * 10**9 + int(stamp.nanosec) or time
            after = [int(p.time_from_start.sec) * 10**9 + int(p.time_from_start.nanosec) for p in points]
            positions = np.array([p.positions for p in points], dtype=np.float64)
        if not points:
            return
        columns = tuple(f"{self.kind.topic}/{name}/reference_position" for name in names)
        self.needed += 8 * len(points) * (len(columns) + 2)
        check_room(self.needed, self.room, f"topic '{self.kind.topic}'")
        stamps = start + np.array(after, dtype=np.int64)
        stream = Stream([len(columns)], stamped=True)
        if columns in self.streams:  # a new trajectory replaces the later part of an earlier one
            before = self.streams[columns]
            planned = before.times.take()
            early = planned < start
            stream.add(planned[early], planned[early], [before.parts[0].take()[early]])
        stream.add(stamps, stamps, [positions])
        self.streams[columns] = stream


def _types(kind: Kind) -> dict[str, Any]:
    """Definitions of a message and its parts; ROS's own definitions where the bag has none."""
    store = get_typestore(Stores.ROS1_NOETIC if kind.encoding == "ros1" else Stores.LATEST)
    found: dict[str, Any] = dict(store.fielddefs)
    text = kind.definition
    if len(text) > DEFINITION:
        raise LogError(f"the definition of '{kind.type}' has {len(text)} characters; that is not a message")
    if text.lstrip().startswith(("=" * 80 + "\nIDL", "module ", "#include")):
        for part in text.split("=" * 80 + "\n"):
            body = part.partition("\n")[2] if part.startswith("IDL: ") else part
            if body.strip():
                with decoding("a bag"):
                    found |= get_types_from_idl(body)
    elif text.strip():
        with decoding("a bag"):
            found |= get_types_from_msg(text, kind.type)
    return found


#: Largest chunk or record, when unpacked.
CHUNK = 128 << 20
#: Bytes counted per database row in addition to its message.
ROW = 100
#: Records that are not messages in a chunk.
STRANGE = 100_000
#: Largest number of topics.
TOPICS = 1000
#: Bytes of the definition of a message.
MESSAGE_TEXT = 1 << 20


# ---------------------------------------------------------------------- files
def _records(data: bytes, schemas: dict[int, Any], kinds: dict[int, Kind]) -> Iterator[tuple[Kind, int, bytes]]:
    """Messages among MCAP records; schemas and channels on the way are kept."""
    place, size, strange = 0, len(data), 0
    while place + 9 <= size:
        code, length = struct.unpack_from("<BQ", data, place)
        place += 9
        strange += code != Opcode.MESSAGE
        if not length or strange > STRANGE:
            raise LogError(f"it has a record of no bytes, or over {STRANGE} that are not messages in a chunk; it is damaged")
        if code == Opcode.MESSAGE:
            if not 22 <= length <= size - place:
                raise LogError(f"it has a message of {length} bytes, of which 22 are its head; it is damaged")
            channel, _, time, _ = struct.unpack_from("<HIQQ", data, place)
            if time >= 1 << 63:
                raise LogError(f"it has a message of the time {time} ns, which is not a valid time; it is damaged")
            if channel in kinds:
                yield kinds[channel], time, data[place + 22 : place + length]
        elif code == Opcode.SCHEMA:
            with decoding("MCAP"):
                schema = Schema.read(ReadDataStream(io.BytesIO(data[place : place + length])))
            schemas[schema.id] = schema
        elif code == Opcode.CHANNEL:
            with decoding("MCAP"):
                channel = Channel.read(ReadDataStream(io.BytesIO(data[place : place + length])))
            schema = schemas.get(channel.schema_id)
            if schema and len(schema.data) > MESSAGE_TEXT:
                raise LogError(f"a definition of a message has {len(schema.data)} bytes; at most {MESSAGE_TEXT} are read")
            if channel.id in kinds:  # repeated in the summary, or in every chunk
                place += length
                continue
            name, text = (schema.name, schema.data.decode("utf-8", "replace")) if schema else ("", "")
            name = name if "/msg/" in name else name.replace("/", "/msg/", 1)
            kinds[channel.id] = Kind(channel.topic, name, text, channel.message_encoding)
        place += length


def _mcap(file: Path, own: dict[str, str], notes: list[str]) -> Iterator[tuple[Kind, int, bytes]]:
    """Messages of an MCAP file in file order; a truncated file yields its complete messages."""
    schemas: dict[int, Any] = {}
    kinds: dict[int, Kind] = {}
    # Indices are not needed, and reading them through the library takes longer than all messages.
    taken = (Opcode.SCHEMA, Opcode.CHANNEL, Opcode.MESSAGE, Opcode.CHUNK, Opcode.METADATA)
    room, unpacked = max(ROOM, GROWTH * file.stat().st_size), 0
    with file.open("rb") as stream:
        if stream.read(8) != b"\x89MCAP0\r\n":
            raise LogError("it does not start like an MCAP file")
        while True:
            head = stream.read(9)
            code, length = struct.unpack("<BQ", head) if len(head) == 9 else (Opcode.FOOTER, 0)
            if code not in taken:
                stream.seek(min(length, 1 << 40), 1)  # beyond the end: it is cut short
            elif length > CHUNK:
                raise LogError(f"a record of {length >> 20} MB is in it; at most {CHUNK >> 20} MB are read")
            if code == Opcode.DATA_END:
                return
            data = stream.read(length) if code in taken else b""
            if len(head) < 9 or (code in taken and len(data) < length):
                notes.append(f"'{file.name}' ends early; the messages before that are used")
                return
            if code == Opcode.CHUNK:
                with decoding("MCAP"):
                    chunk = Chunk.read(ReadDataStream(io.BytesIO(data)))
                records = _unpack(chunk)
                unpacked += len(records)
                check_room(unpacked, room, "its chunks")
                yield from _records(records, schemas, kinds)
            elif code == Opcode.METADATA:
                with decoding("MCAP"):
                    found = Metadata.read(ReadDataStream(io.BytesIO(data)))
                own.update(found.metadata if found.name == "dynident_log" else {})
            elif code in taken:
                yield from _records(head + data, schemas, kinds)


def _unpack(chunk: Any) -> bytes:
    """The records of a chunk, at most `CHUNK` bytes."""
    data: bytes = chunk.data
    if chunk.compression == "zstd":
        with decoding("MCAP"):
            size = zstandard.frame_content_size(data)
        check_room(max(size, chunk.uncompressed_size), CHUNK, "a chunk")
        with decoding("MCAP"):
            data = zstandard.ZstdDecompressor().decompress(data, max_output_size=chunk.uncompressed_size)
    elif chunk.compression == "lz4":
        with decoding("MCAP"):
            data = LZ4FrameDecompressor().decompress(data, max_length=CHUNK + 1)
    elif chunk.compression:
        raise LogError(f"a chunk is compressed by '{chunk.compression}'; zstd and lz4 are read")
    check_room(len(data), CHUNK, "a chunk")
    return data


def _sqlite(file: Path, notes: list[str]) -> Iterator[tuple[Kind, int, bytes]]:
    """Messages of a rosbag2 database, opened as it is and never written to."""
    with decoding("a rosbag2 database"):
        base = sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro&immutable=1", uri=True)
    try:
        base.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MESSAGE)
        tables = {name for (name,) in base.execute("SELECT name FROM sqlite_master WHERE type='table'")}
        for name in tables & {"topics", "messages", "message_definitions"}:
            if any(hidden for *_, hidden in base.execute(f"PRAGMA table_xinfo({name})")):
                raise LogError(f"table '{name}' has computed columns, which are never run; it is not a rosbag2")
        if not {"topics", "messages"} <= tables:
            raise LogError("the database has no tables 'topics' and 'messages'; it is not a rosbag2")
        texts: dict[str, str] = {}
        if "message_definitions" in tables:
            texts = dict(base.execute("SELECT topic_type, encoded_message_definition FROM message_definitions"))
        kinds = {
            key: Kind(str(name), str(type_), str(texts.get(type_, "")), str(form))
            for key, name, type_, form in base.execute("SELECT id, name, type, serialization_format FROM topics")
        }
        room, taken = max(ROOM, GROWTH * file.stat().st_size), 0
        for key, time, data in base.execute("SELECT topic_id, timestamp, data FROM messages"):
            taken += ROW + (len(data) if isinstance(data, bytes | str) else 8)
            check_room(taken, room, "its messages")  # a damaged tree may repeat rows endlessly
            if key in kinds and isinstance(data, bytes) and isinstance(time, int):
                yield kinds[key], time, data
    except (sqlite3.Error, UnicodeDecodeError) as error:  # the latter for names and messages that are not text
        if "malformed" not in str(error):
            raise LogError(f"the file is damaged or not a rosbag2 database ({error})") from error
        notes.append(f"'{file.name}' is damaged ({error}); the messages before that are used")
    finally:
        base.close()


def _ros1(file: Path) -> Iterator[tuple[Kind, int, bytes]]:
    """Messages of a ROS 1 bag."""
    room, unpacked = max(ROOM, GROWTH * file.stat().st_size), 0
    reader = Reader(file)
    with decoding("a ROS 1 bag"):
        reader.open()
    with contextlib.closing(reader):
        for chunk in reader.chunks.values():  # the library unpacks chunks of any size
            if chunk.decompressor.__module__ in ("bz2", "lz4.frame"):
                with file.open("rb") as stream:
                    stream.seek(chunk.datapos)
                    data = stream.read(chunk.datasize)
                unpack: Any = bz2.BZ2Decompressor() if chunk.decompressor.__module__ == "bz2" else LZ4FrameDecompressor()
                with decoding("a ROS 1 bag"):
                    size = len(unpack.decompress(data, max_length=CHUNK + 1))
                check_room(size, CHUNK, "a chunk")
                if unpack.unused_data:  # the library would unpack the rest, too
                    raise LogError("a chunk has bytes behind its end; it is damaged")
                unpacked += size
                check_room(unpacked, room, "its chunks")
        with decoding("a ROS 1 bag"):
            connections = reader.connections
        kinds = {c.id: Kind(c.topic, c.msgtype, c.msgdef.data, "ros1") for c in connections}
        taken = 0
        for connection, time, data in decoded(reader.messages(), "a ROS 1 bag"):
            taken += ROW + len(data)
            check_room(taken, max(LARGEST, room), "its messages")  # a damaged index may repeat a message endlessly
            yield kinds[connection.id], time, bytes(data)


def _files(path: Path) -> list[Path]:
    """The data files of a bag, in the order in which they were recorded."""
    if path.is_file():
        return [path]
    if not path.exists():
        raise LogError("No such file or directory")
    if not path.is_dir():
        raise LogError("it is not a regular file")
    entries = sorted(path.iterdir(), key=lambda p: [int(x) if x.isdigit() else x for x in re.split(r"(\d+)", p.name)])
    files = [p for p in entries if p.suffix.lower() in (".mcap", ".db3", ".bag") and p.is_file()]
    if not files:
        if any(p.name == "journal.jsonl" for p in entries):
            raise LogError("it contains recordings of a campaign but no campaign.json; copy that file there")
        packed = [p.name for p in entries if p.suffix == ".zstd"]
        hint = f"unpack {packed[0]} with zstd -d first" if packed else "a bag has files that end in .mcap, .db3 or .bag"
        raise LogError(f"the folder holds neither a campaign (campaign.json) nor a bag; {hint}")
    return files


def bag_tables(path: Path, wanted: list[str] | None, samples: int | None) -> Iterator[Table]:
    """The bag as one table, or as tables of about `samples` rows one after the other, to limit memory."""
    files = _files(path)
    bag = _Bag(path.name, wanted, min(max(ROOM, GROWTH * sum(f.stat().st_size for f in files)), LARGEST), _hash(files))
    for file in files:
        for kind, time, raw in bag.messages(file):
            topic = bag.topics.get(kind.topic)
            if topic is None:
                topic = bag.new_topic(kind)
                if topic is None:
                    continue
            topic.add(time, raw)
            if samples is not None and topic.taken >= samples and bag.is_clock(topic):
                table = bag.table(final=False)
                if table is not None:
                    yield table
    table = bag.table(final=True)
    if table is not None:
        yield table


def _hash(files: list[Path]) -> str:
    hashed = hashlib.sha256()
    for file in files:
        with file.open("rb") as stream:
            hashed.update(hashlib.file_digest(stream, "sha256").digest())
    return hashed.hexdigest()


class _Bag:
    """The selected topics of a bag, and notes about the others."""

    def __init__(self, name: str, wanted: list[str] | None, room: int, sha256: str) -> None:
        self.name, self.wanted, self.room, self.sha256 = name, wanted, room, sha256
        self.names = None if wanted is None else ["/" + w.strip("/") for w in wanted]
        self.topics: dict[str, Topic] = {}
        self.seen: dict[str, str] = {}
        self.own: dict[str, str] = {}
        self.notes: list[str] = []
        self.clock = Clock()

    def messages(self, file: Path) -> Iterator[tuple[Kind, int, bytes]]:
        """Messages of one file of the bag."""
        ending = file.suffix.lower()
        if ending == ".mcap":
            return _mcap(file, self.own, self.notes)
        return _sqlite(file, self.notes) if ending == ".db3" else _ros1(file)

    def new_topic(self, kind: Kind) -> Topic | None:
        """The topic of a first message, None when it is not wanted."""
        if kind.topic in self.seen:
            return None
        self.seen[kind.topic] = kind.type
        chosen = kind.type.endswith("/JointState") if self.names is None else "/" + kind.topic.strip("/") in self.names
        if not chosen and not self.own:
            return None
        if kind.encoding not in ("cdr", "ros1"):
            raise LogError(f"topic '{kind.topic}' is encoded as '{kind.encoding}'; ROS messages (cdr, ros1) are read")
        if len(self.topics) >= TOPICS:
            raise LogError(f"it has more than {TOPICS} topics of joints; choose with topic= (--topic)")
        self.topics[kind.topic] = Topic(kind, self.room)
        return self.topics[kind.topic]

    def is_clock(self, topic: Topic) -> bool:
        """Whether the samples are counted by this topic."""
        if self.names is None:
            return topic.kind.type.endswith("/JointState")
        return "/" + topic.kind.topic.strip("/") == self.names[0]

    def table(self, final: bool) -> Table | None:
        """Data read since the last table, on one clock; None while topics lag behind or at the end of the bag."""
        for topic in self.topics.values():
            topic.finish()
        if not final and any(w not in {"/" + t.strip("/") for t in self.topics} for w in self.names or ()):
            return None
        found = self.clock.columns(_chosen(self.topics, self.wanted, self.seen), self.notes, final)
        if found is None:
            return None
        others = [name for name in self.seen if name not in self.topics]
        if final and self.wanted is None and others:
            self.notes.append(f"{NOT_TAKEN} {', '.join(others[:12])}{' ...' if len(others) > 12 else ''}")
        columns = {printable(name): values for name, values in found.items()}
        notes, self.notes = tuple(printable(n, 1000) for n in self.notes), []
        metadata = own_metadata(self.own.get("json", ""))
        if metadata is not None and self.wanted is None:
            return Table(self.name, _own_columns(columns, metadata), {}, metadata, self.sha256)
        return Table(self.name, columns, {}, None, self.sha256, {"header.stamp": "ns"}, (), notes)


def _chosen(topics: Mapping[str, Topic], wanted: list[str] | None, seen: Mapping[str, str]) -> list[Topic]:
    """Topics in the requested order; LogError lists the topics of the bag if one is missing or the choice is ambiguous."""
    listed = ", ".join(f"{name} ({type_})" for name, type_ in list(seen.items())[:20]) or "no messages"
    if wanted is None:
        found = [t for t in topics.values() if t.kind.type.endswith("/JointState")]
        if len(found) != 1:
            what = "no topic of JointState messages" if not found else f"{len(found)} topics of JointState messages"
            raise LogError(f"it has {what}; choose with topic= (--topic), it holds {listed}")
        return [*found, *(t for t in topics.values() if t is not found[0])]
    by_name = {"/" + name.strip("/"): topic for name, topic in topics.items()}
    missing = [w for w in wanted if "/" + w.strip("/") not in by_name]
    if missing:
        raise LogError(f"it has no messages of the topic {', '.join(missing)}; it holds {listed}")
    return [by_name["/" + w.strip("/")] for w in wanted]


def _own_columns(columns: Mapping[str, Any], metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Columns of a file written by dynident, with the names of its tables; the clock starts as in the log."""
    stamp = columns["header.stamp"]
    start = metadata.get("start_ns", 0)
    result = {"t": (stamp - (start if isinstance(start, int) else 0)) / 1e9}
    for name, values in columns.items():
        match = re.fullmatch(r"/[^/]+/(?P<joint>.+)/(?P<field>[^/]+)", name)
        if match:
            what = "reference" if match["field"] == "reference_position" else match["field"]
            result[f"{FIELDS.get(what, what)}_{match['joint']}"] = values
    return result


#: A topic may pause for this many rows of a piece before the others stop waiting for it.
PATIENCE = 8


class _Stream(NamedTuple):
    """Messages of one topic with the same columns, in the order of time (ns); their numbers are one array per field."""

    topic: Topic
    names: tuple[str, ...]
    times: Any
    parts: list[Any]
    stamped: bool

    def columns(self, parts: list[Any]) -> dict[str, Any]:
        """Columns of arrays as wide as the parts, by name; they are views."""
        return dict(zip(self.names, (part[:, k] for part in parts for k in range(part.shape[1])), strict=True))


class Clock:
    """Interpolates topics to the clock of the first one, at once or piece by piece."""

    def __init__(self) -> None:
        self.order: list[tuple[str, tuple[str, ...]]] = []  # streams of the first piece; the first of them is the clock
        self.last = -(2**62)
        self.waited = 0

    def columns(self, topics: list[Topic], notes: list[str], final: bool) -> dict[str, Any] | None:
        """All columns at the times of the longest stream of the first topic; others are interpolated between messages."""
        streams = self._streams(topics, notes)
        if not streams:
            if self.order:
                return None
            raise LogError("the topics hold no numbers, or a single message")
        clock = streams[0].times
        first, last = max(s.times[0] for s in streams), min(s.times[-1] for s in streams)
        start = int(np.searchsorted(clock, max(first, self.last + 1)))
        stop = int(np.searchsorted(clock, last, "right"))
        if stop - start < 2:
            self._wait(streams, notes, final)
            return None
        out = int(np.sum(clock < first)) + (clock.size - stop if final else 0)
        if out:
            notes.append(f"{out} messages at the ends are ignored because not all topics have messages there")
        at = clock[start:stop]
        columns = {"header.stamp": at, **streams[0].columns([part[start:stop] for part in streams[0].parts])}
        for other in streams[1:]:
            t, known = (at - at[0]).astype(np.float64), (other.times - at[0]).astype(np.float64)
            more = other.columns([_interpolated(t, known, part) for part in other.parts])
            columns |= {name: values for name, values in more.items() if name not in columns}
            where = f"interpolated to the clock of {streams[0].topic.kind.topic}"
            notes.append(f"{other.topic.kind.topic}: {len(other.names)} columns, '{other.names[0]}', ..., {where}")
        self.order = self.order or [(s.topic.kind.topic, s.names) for s in streams]
        self.last, self.waited = int(at[-1]), 0
        if not final:
            self._keep_rest(streams)
        return columns

    def _streams(self, topics: list[Topic], notes: list[str]) -> list[_Stream]:
        found = []
        for topic in topics:
            for names, stream in sorted(topic.streams.items(), key=lambda item: -len(item[1])):
                known = (topic.kind.topic, names) in self.order
                if names and len(stream) > (0 if known else 1):
                    found.append(_in_order(topic, names, stream, notes))
            topic.streams, topic.needed, topic.taken = {}, 0, 0
        if self.order:
            place = {key: k for k, key in enumerate(self.order)}
            found = [s for s in found if (s.topic.kind.topic, s.names) in place]
            found.sort(key=lambda s: place[s.topic.kind.topic, s.names])
            if len(found) < len(self.order):
                return []
        return found

    def _wait(self, streams: list[_Stream], notes: list[str], final: bool) -> None:
        """Wait for topics that lag behind; raise LogError after `PATIENCE` attempts."""
        self.waited += 1
        if final and self.order:
            return
        if final or self.waited > PATIENCE:
            said = ", ".join(dict.fromkeys(s.topic.kind.topic for s in streams))
            raise LogError(f"the topics {said} do not overlap in time; choose one of them")
        notes.clear()
        self._keep_rest(streams)

    def _keep_rest(self, streams: list[_Stream]) -> None:
        """Return messages after the last used time to their topics; interpolated topics keep one earlier message too."""
        for k, (topic, names, times, parts, stamped) in enumerate(streams):
            start = int(np.searchsorted(times, self.last, "right"))
            start = start if k == 0 else max(start - 1, 0)
            rest = Stream([part.shape[1] for part in parts], stamped)
            rest.add(times[start:], times[start:] if stamped else None, [part[start:] for part in parts])
            topic.streams[names] = rest
            topic.taken = 0


def _interpolated(t: Any, known: Any, part: Any) -> Any:
    """The columns of an array at other times."""
    result = np.empty((t.size, part.shape[1]))
    for k in range(part.shape[1]):
        result[:, k] = np.interp(t, known, part[:, k])
    result.flags.writeable = False
    return result


def _in_order(topic: Topic, names: tuple[str, ...], stream: Stream, notes: list[str]) -> _Stream:
    """One stream, ordered by the sensor's own stamps if they increase, else by the recorder's times."""
    times, stamped = stream.times.take(), False
    if stream.stamps is not None:
        stamps = stream.stamps.take()
        if np.all(stamps[1:] > stamps[:-1]) or 2 * np.unique(stamps).size > stamps.size:
            times, stamped = stamps, True
            stream.times = stream.stamps  # the recorder's times are no longer needed
    parts = [rows.take() for rows in stream.parts]
    repeated = ""
    if not np.all(times[1:] > times[:-1]):
        order = np.argsort(times, kind="stable")
        keep = order[np.concatenate([[True], np.diff(times[order]) > 0])]
        repeated = f"; {times.size - keep.size} repeated messages ignored" if keep.size < times.size else ""
        times, parts = times[keep], [part[keep] for part in parts]
    for part in parts:
        part.flags.writeable = False  # a log keeps read-only arrays without copying
    which = "the stamps in the headers" if stamped else "the times of the recorder"
    notes.append(f"{topic.kind.topic}: {times.size} messages by {which}{repeated}")
    return _Stream(topic, names, times, parts, stamped)
