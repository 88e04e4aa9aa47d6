"""ROS bags to columns: MCAP, rosbag2 (SQLite) and ROS 1, read without ROS as streams, on one clock.

    x(t_k) = x_i + (x_{i+1} - x_i) (t_k - t_i) / (t_{i+1} - t_i)

The clock t_k is that of the first topic; what other topics hold is interpolated to it between its messages i and i + 1.
"""

from __future__ import annotations

import bz2
import hashlib
import io
import re
import sqlite3
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dynident.errors import LogError, missing_extra
from dynident.files import hash_bytes
from dynident.signals.log import FIELDS
from dynident.signals.messages import MESSAGE, Kind, Topic
from dynident.signals.readers import GROWTH, LARGEST, ROOM, Table, check_room
from dynident.signals.text import own_metadata, printable

#: Largest chunk or record, when unpacked.
CHUNK = 128 << 20


# ---------------------------------------------------------------------- files
def _records(data: bytes, schemas: dict[int, Any], kinds: dict[int, Kind]) -> Iterator[tuple[Kind, int, bytes]]:
    """Messages among MCAP records; schemas and channels on the way are kept."""
    from mcap.data_stream import ReadDataStream  # noqa: PLC0415
    from mcap.opcode import Opcode  # noqa: PLC0415
    from mcap.records import Channel, Schema  # noqa: PLC0415

    place, size = 0, len(data)
    while place + 9 <= size:
        code, length = struct.unpack_from("<BQ", data, place)
        place += 9
        if code == Opcode.MESSAGE:
            channel, _, time, _ = struct.unpack_from("<HIQQ", data, place)
            if channel in kinds:
                yield kinds[channel], time, data[place + 22 : place + length]
        elif code == Opcode.SCHEMA:
            schema = Schema.read(ReadDataStream(io.BytesIO(data[place : place + length])))
            schemas[schema.id] = schema
        elif code == Opcode.CHANNEL:
            channel = Channel.read(ReadDataStream(io.BytesIO(data[place : place + length])))
            schema = schemas.get(channel.schema_id)
            name, text = (schema.name, schema.data.decode("utf-8", "replace")) if schema else ("", "")
            name = name if "/msg/" in name else name.replace("/", "/msg/", 1)
            kinds[channel.id] = Kind(channel.topic, name, text, channel.message_encoding)
        place += length


def _mcap(file: Path, own: dict[str, str], notes: list[str]) -> Iterator[tuple[Kind, int, bytes]]:
    """Messages of an MCAP file in the order of the file; one that was cut short gives what it has."""
    from mcap.data_stream import ReadDataStream  # noqa: PLC0415
    from mcap.opcode import Opcode  # noqa: PLC0415
    from mcap.records import Chunk, Metadata  # noqa: PLC0415

    schemas: dict[int, Any] = {}
    kinds: dict[int, Kind] = {}
    # Indices are not needed, and reading them through the library takes longer than all messages.
    taken = (Opcode.SCHEMA, Opcode.CHANNEL, Opcode.MESSAGE, Opcode.CHUNK, Opcode.METADATA)
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
                yield from _records(_unpack(Chunk.read(ReadDataStream(io.BytesIO(data)))), schemas, kinds)
            elif code == Opcode.METADATA:
                found = Metadata.read(ReadDataStream(io.BytesIO(data)))
                own.update(found.metadata if found.name == "dynident_log" else {})
            elif code in taken:
                yield from _records(head + data, schemas, kinds)


def _unpack(chunk: Any) -> bytes:
    """The records of a chunk, not more than `CHUNK` bytes of them."""
    data: bytes = chunk.data
    if chunk.compression == "zstd":
        import zstandard  # noqa: PLC0415

        check_room(max(zstandard.frame_content_size(data), chunk.uncompressed_size), CHUNK, "a chunk")
        data = zstandard.ZstdDecompressor().decompress(data, max_output_size=chunk.uncompressed_size)
    elif chunk.compression == "lz4":
        from lz4.frame import LZ4FrameDecompressor  # noqa: PLC0415

        data = LZ4FrameDecompressor().decompress(data, max_length=CHUNK + 1)
    elif chunk.compression:
        raise LogError(f"a chunk is compressed by '{chunk.compression}'; zstd and lz4 are read")
    check_room(len(data), CHUNK, "a chunk")
    return data


def _sqlite(file: Path, notes: list[str]) -> Iterator[tuple[Kind, int, bytes]]:
    """Messages of a rosbag2 database, opened as it is and never written to."""
    base = sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro&immutable=1", uri=True)
    try:
        base.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MESSAGE)
        tables = {name for (name,) in base.execute("SELECT name FROM sqlite_master WHERE type='table'")}
        if not {"topics", "messages"} <= tables:
            raise LogError("the database has no tables 'topics' and 'messages'; it is no rosbag2")
        texts: dict[str, str] = {}
        if "message_definitions" in tables:
            texts = dict(base.execute("SELECT topic_type, encoded_message_definition FROM message_definitions"))
        kinds = {
            key: Kind(str(name), str(type_), str(texts.get(type_, "")), str(form))
            for key, name, type_, form in base.execute("SELECT id, name, type, serialization_format FROM topics")
        }
        for key, time, data in base.execute("SELECT topic_id, timestamp, data FROM messages"):
            if key in kinds and isinstance(data, bytes) and isinstance(time, int):
                yield kinds[key], time, data
    except sqlite3.DatabaseError as error:
        if "malformed" not in str(error):
            raise
        notes.append(f"'{file.name}' is damaged ({error}); the messages before that are used")
    finally:
        base.close()


def _ros1(file: Path) -> Iterator[tuple[Kind, int, bytes]]:
    """Messages of a ROS 1 bag."""
    from lz4.frame import LZ4FrameDecompressor  # noqa: PLC0415
    from rosbags.rosbag1 import Reader  # noqa: PLC0415

    with Reader(file) as reader:
        for chunk in reader.chunks.values():  # the library unpacks a chunk whatever its size
            if chunk.decompressor.__module__ in ("bz2", "lz4.frame"):
                with file.open("rb") as stream:
                    stream.seek(chunk.datapos)
                    data = stream.read(chunk.datasize)
                unpack: Any = bz2.BZ2Decompressor() if chunk.decompressor.__module__ == "bz2" else LZ4FrameDecompressor()
                check_room(len(unpack.decompress(data, max_length=CHUNK + 1)), CHUNK, "a chunk")
        kinds = {c.id: Kind(c.topic, c.msgtype, c.msgdef.data, "ros1") for c in reader.connections}
        for connection, time, data in reader.messages():
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
        packed = [p.name for p in entries if p.suffix == ".zstd"]
        hint = f"unpack {packed[0]} with zstd -d first" if packed else "a bag has files that end in .mcap, .db3 or .bag"
        raise LogError(f"the folder holds no bag; {hint}")
    return files


def read_bag(path: Path, wanted: list[str] | None) -> Table:
    """Read the topics wanted (the only JointState topic when None) on the clock of the first one."""
    try:
        import mcap  # noqa: F401, PLC0415
        import rosbags.typesys  # noqa: F401, PLC0415
    except ImportError as error:
        raise missing_extra(error.name or "rosbags", "ros", "reading ROS bags and MCAP files") from error
    files, notes, own, seen = _files(path), [], {}, {}  # type: list[Path], list[str], dict[str, str], dict[str, str]
    hashed = hashlib.sha256()
    room = min(max(ROOM, GROWTH * sum(f.stat().st_size for f in files)), LARGEST)
    topics: dict[str, Topic] = {}
    names = None if wanted is None else {"/" + w.strip("/") for w in wanted}
    refused: set[str] = set()
    for file in files:
        with file.open("rb") as stream:
            hashed.update(hash_bytes(hashlib.file_digest(stream, "sha256")))
        ending = file.suffix.lower()
        source = _mcap(file, own, notes) if ending == ".mcap" else _sqlite(file, notes) if ending == ".db3" else _ros1(file)
        for kind, time, raw in source:
            topic = topics.get(kind.topic)
            if topic is None:
                if kind.topic in refused:
                    continue
                seen[kind.topic] = kind.type
                chosen = kind.type.endswith("/JointState") if names is None else "/" + kind.topic.strip("/") in names
                if not chosen and not own:
                    refused.add(kind.topic)
                    continue
                if kind.encoding not in ("cdr", "ros1"):
                    raise LogError(f"topic '{kind.topic}' is encoded as '{kind.encoding}'; ROS messages (cdr, ros1) are read")
                topic = topics[kind.topic] = Topic(kind, room)
            topic.add(time, raw)
    for topic in topics.values():
        topic.finish()
    columns = {printable(name): values for name, values in _on_one_clock(_chosen(topics, wanted, seen), notes).items()}
    metadata = own_metadata(own.get("json", ""))
    if metadata is not None and wanted is None:
        return Table(path.name, _own_columns(columns, metadata), {}, metadata, hashed.hexdigest())
    return Table(
        path.name, columns, {}, None, hashed.hexdigest(), {"header.stamp": "ns"}, (), tuple(printable(n, 1000) for n in notes)
    )


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


def _on_one_clock(topics: list[Topic], notes: list[str]) -> dict[str, Any]:
    """All columns at the times of the longest stream of the first topic; others are interpolated linearly between messages."""
    streams = []
    for topic in topics:
        parts = sorted(topic.streams.items(), key=lambda item: -sum(len(b[0]) for b in item[1]))
        for names, blocks in parts:
            if names and sum(len(b[0]) for b in blocks) > 1:
                times, values = _in_order(topic.kind.topic, blocks, notes)
                streams.append((topic.kind.topic, names, times, values))
    if not streams:
        raise LogError("the topics hold no numbers, or a single message")
    _, names, clock, values = streams[0]
    first, last = max(s[2][0] for s in streams), min(s[2][-1] for s in streams)
    rows = (clock >= first) & (clock <= last)
    if rows.sum() < 2:
        raise LogError(f"the topics {', '.join(dict.fromkeys(s[0] for s in streams))} do not overlap in time; take one of them")
    if not rows.all():
        notes.append(f"{int(rows.size - rows.sum())} messages at the ends, where not all topics have some, are left out")
        clock, values = clock[rows], values[rows]
    columns: dict[str, Any] = {"header.stamp": clock, **{name: values[:, k] for k, name in enumerate(names)}}
    for topic_name, others, times, numbers in streams[1:]:
        at, known = (clock - clock[0]).astype(np.float64), (times - clock[0]).astype(np.float64)
        columns |= {name: np.interp(at, known, numbers[:, k]) for k, name in enumerate(others) if name not in columns}
        notes.append(f"{topic_name}: {len(others)} columns, '{others[0]}', ..., interpolated to the clock of {streams[0][0]}")
    return columns


def _in_order(topic: str, blocks: list[tuple[Any, Any, Any]], notes: list[str]) -> tuple[Any, Any]:
    """Times (ns) and numbers of one stream, by the sensor's own stamps where they run, else by the recorder's."""
    logged = np.concatenate([b[0] for b in blocks])
    times, which = logged, "the times of the recorder"
    if all(b[1] is not None for b in blocks):
        stamps = np.concatenate([b[1] for b in blocks])
        if np.all(np.diff(stamps) > 0) or 2 * np.unique(stamps).size > stamps.size:
            times, which = stamps, "the stamps in the headers"
    values = np.empty((times.size, blocks[0][2].shape[1]))
    place = times.size
    while blocks:  # from the back, so that every block is freed when it has been copied
        part = blocks.pop()[2]
        values[place - len(part) : place] = part
        place -= len(part)
    repeated = ""
    if not np.all(np.diff(times) > 0):
        order = np.argsort(times, kind="stable")
        keep = order[np.concatenate([[True], np.diff(times[order]) > 0])]
        repeated = f"; {times.size - keep.size} repeated messages left out" if keep.size < times.size else ""
        times, values = times[keep], values[keep]
    notes.append(f"{topic}: {times.size} messages by {which}{repeated}")
    return times, values


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
