"""ROS bags to columns on one clock: MCAP, rosbag2 (SQLite) and ROS 1, read without ROS as streams, at once or piece by piece.

    x(t_k) = x_i + (x_{i+1} - x_i) (t_k - t_i) / (t_{i+1} - t_i)

The clock t_k is that of the first topic; what other topics hold is interpolated to it between its messages i and i + 1. A
long bag is brought to its clock piece by piece: what lies beyond the time that all topics have reached waits for the next one.
The libraries are an extra, so this module is loaded on first use.
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
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import zstandard
from lz4.frame import LZ4FrameDecompressor
from mcap.data_stream import ReadDataStream
from mcap.opcode import Opcode
from mcap.records import Channel, Chunk, Metadata, Schema
from rosbags.rosbag1 import Reader

from dynident.errors import LogError
from dynident.files import hash_bytes
from dynident.signals.log import FIELDS
from dynident.signals.messages import MESSAGE, Kind, Stream, Topic
from dynident.signals.tables import (
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

#: Largest chunk or record, when unpacked.
CHUNK = 128 << 20
#: What a row of a database counts beside its message.
ROW = 100
#: Records that are no messages in a chunk.
STRANGE = 100_000
#: Topics that are taken.
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
            raise LogError(f"it has a record of no bytes, or over {STRANGE} that are no messages in a chunk; it is damaged")
        if code == Opcode.MESSAGE:
            if not 22 <= length <= size - place:
                raise LogError(f"it has a message of {length} bytes, of which 22 are its head; it is damaged")
            channel, _, time, _ = struct.unpack_from("<HIQQ", data, place)
            if time >= 1 << 63:
                raise LogError(f"it has a message of the time {time} ns, which no clock shows; it is damaged")
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
            if channel.id in kinds:  # written again beside the summary, or in every chunk
                place += length
                continue
            name, text = (schema.name, schema.data.decode("utf-8", "replace")) if schema else ("", "")
            name = name if "/msg/" in name else name.replace("/", "/msg/", 1)
            kinds[channel.id] = Kind(channel.topic, name, text, channel.message_encoding)
        place += length


def _mcap(file: Path, own: dict[str, str], notes: list[str]) -> Iterator[tuple[Kind, int, bytes]]:
    """Messages of an MCAP file in the order of the file; one that was cut short gives what it has."""
    schemas: dict[int, Any] = {}
    kinds: dict[int, Kind] = {}
    # Indices are not needed, and reading them through the library takes longer than all messages.
    taken = (Opcode.SCHEMA, Opcode.CHANNEL, Opcode.MESSAGE, Opcode.CHUNK, Opcode.METADATA)
    room, unpacked = max(ROOM, GROWTH * file.stat().st_size), 0
    with file.open("rb") as stream:
        if stream.read(8) != b"\x89MCAP0\r\n":
            raise LogError("it does not begin as an MCAP file does")
        while True:
            head = stream.read(9)
            code, length = struct.unpack("<BQ", head) if len(head) == 9 else (Opcode.FOOTER, 0)
            if code not in taken:
                stream.seek(length, 1)
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
    """The records of a chunk, not more than `CHUNK` bytes of them."""
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
                raise LogError(f"table '{name}' has computed columns, which are never run; it is no rosbag2")
        if not {"topics", "messages"} <= tables:
            raise LogError("the database has no tables 'topics' and 'messages'; it is no rosbag2")
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
            check_room(taken, room, "its messages")  # a damaged tree may show the same rows for ever
            if key in kinds and isinstance(data, bytes) and isinstance(time, int):
                yield kinds[key], time, data
    except sqlite3.Error as error:
        if "malformed" not in str(error):
            raise LogError(f"the file is damaged or no rosbag2 database ({error})") from error
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
        for chunk in reader.chunks.values():  # the library unpacks a chunk whatever its size
            if chunk.decompressor.__module__ in ("bz2", "lz4.frame"):
                with file.open("rb") as stream:
                    stream.seek(chunk.datapos)
                    data = stream.read(chunk.datasize)
                unpack: Any = bz2.BZ2Decompressor() if chunk.decompressor.__module__ == "bz2" else LZ4FrameDecompressor()
                with decoding("a ROS 1 bag"):
                    size = len(unpack.decompress(data, max_length=CHUNK + 1))
                check_room(size, CHUNK, "a chunk")
                if unpack.unused_data:  # the library would unpack what follows, too
                    raise LogError("a chunk has bytes behind its end; it is damaged")
                unpacked += size
                check_room(unpacked, room, "its chunks")
        with decoding("a ROS 1 bag"):
            connections = reader.connections
        kinds = {c.id: Kind(c.topic, c.msgtype, c.msgdef.data, "ros1") for c in connections}
        taken = 0
        for connection, time, data in decoded(reader.messages(), "a ROS 1 bag"):
            taken += ROW + len(data)
            check_room(taken, max(LARGEST, room), "its messages")  # a damaged index may name the same message for ever
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
            raise LogError("it holds recordings of a campaign but no campaign.json, which says what they are; copy it there")
        packed = [p.name for p in entries if p.suffix == ".zstd"]
        hint = f"unpack {packed[0]} with zstd -d first" if packed else "a bag has files that end in .mcap, .db3 or .bag"
        raise LogError(f"the folder holds neither a campaign (campaign.json) nor a bag; {hint}")
    return files


def read_bag(path: Path, wanted: list[str] | None) -> Table:
    """Read the topics wanted (the only JointState topic when None) on the clock of the first one."""
    (table,) = bag_tables(path, wanted, None)
    return table


def bag_tables(path: Path, wanted: list[str] | None, samples: int | None) -> Iterator[Table]:
    """The bag as one table, or as tables of about `samples` rows one after the other, so that no more is in memory."""
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
            hashed.update(hash_bytes(hashlib.file_digest(stream, "sha256")))
    return hashed.hexdigest()


class _Bag:
    """The topics that are taken of a bag, and what became of the others."""

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
            raise LogError(f"it has more than {TOPICS} topics of joints; say which with topic= (--topic)")
        self.topics[kind.topic] = Topic(kind, self.room)
        return self.topics[kind.topic]

    def is_clock(self, topic: Topic) -> bool:
        """Whether the samples are counted by this topic."""
        if self.names is None:
            return topic.kind.type.endswith("/JointState")
        return "/" + topic.kind.topic.strip("/") == self.names[0]

    def table(self, final: bool) -> Table | None:
        """What was read since the last table, on one clock; None when topics have yet to catch up, or nothing is left."""
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
    """Topics in the order wanted; the sentence that lists what the bag has if one is missing or none is meant."""
    listed = ", ".join(f"{name} ({type_})" for name, type_ in list(seen.items())[:20]) or "no messages"
    if wanted is None:
        found = [t for t in topics.values() if t.kind.type.endswith("/JointState")]
        if len(found) != 1:
            what = "no topic of JointState messages" if not found else f"{len(found)} topics of JointState messages"
            raise LogError(f"it has {what}; say which with topic= (--topic), it holds {listed}")
        return [*found, *(t for t in topics.values() if t is not found[0])]
    by_name = {"/" + name.strip("/"): topic for name, topic in topics.items()}
    missing = [w for w in wanted if "/" + w.strip("/") not in by_name]
    if missing:
        raise LogError(f"it has no messages of the topic {', '.join(missing)}; it holds {listed}")
    return [by_name["/" + w.strip("/")] for w in wanted]


def _own_columns(columns: Mapping[str, Any], metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Columns of a file that dynident wrote, under the names of its tables; the clock starts where the log's did."""
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
    """Brings topics to the clock of the first one, once or piece by piece."""

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
            notes.append(f"{out} messages at the ends, where not all topics have some, are left out")
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
        """Wait for topics that lag behind; say so when the wait is in vain."""
        self.waited += 1
        if final and self.order:
            return
        if final or self.waited > PATIENCE:
            said = ", ".join(dict.fromkeys(s.topic.kind.topic for s in streams))
            raise LogError(f"the topics {said} do not overlap in time; take one of them")
        notes.clear()
        self._keep_rest(streams)

    def _keep_rest(self, streams: list[_Stream]) -> None:
        """Give back what is beyond the last time used; of interpolated topics one message before it too."""
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
    """One stream by the sensor's own stamps where they run, else by the recorder's times."""
    times, stamped = stream.times.take(), False
    if stream.stamps is not None:
        stamps = stream.stamps.take()
        if np.all(stamps[1:] > stamps[:-1]) or 2 * np.unique(stamps).size > stamps.size:
            times, stamped = stamps, True
            stream.times = stream.stamps  # those of the recorder are not needed any more
    parts = [rows.take() for rows in stream.parts]
    repeated = ""
    if not np.all(times[1:] > times[:-1]):
        order = np.argsort(times, kind="stable")
        keep = order[np.concatenate([[True], np.diff(times[order]) > 0])]
        repeated = f"; {times.size - keep.size} repeated messages left out" if keep.size < times.size else ""
        times, parts = times[keep], [part[keep] for part in parts]
    for part in parts:
        part.flags.writeable = False  # a log keeps what nobody can change as it is
    which = "the stamps in the headers" if stamped else "the times of the recorder"
    notes.append(f"{topic.kind.topic}: {times.size} messages by {which}{repeated}")
    return _Stream(topic, names, times, parts, stamped)
