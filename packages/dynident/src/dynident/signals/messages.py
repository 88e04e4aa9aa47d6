"""Serialised ROS messages to numbers, many at a time.

A serialised message is a fixed pattern of bytes as long as its names and array lengths stay the same. The first message
of a kind is walked once by its definition, which gives the offset of every number (a `Layout`); all further messages of
that kind are stacked and their numbers are cut out together::

    (k, bytes) array of messages [:, offset : offset + 8 n]  ->  (k, n) numbers

Columns are called /topic/joint/field or /topic/field[k], as PlotJuggler does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rosbags.typesys import Stores, get_types_from_idl, get_types_from_msg, get_typestore

from dynident.errors import LogError
from dynident.signals.tables import COLUMNS, check_room, decoding

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
    """How the messages of a topic are written."""

    topic: str
    type: str
    definition: str
    encoding: str  # "cdr" or "ros1"


# ---------------------------------------------------------------------- one message
@dataclass
class Layout:
    """Where the numbers of a message are; bytes under `mask` (lengths and names) must be those of the first message."""

    columns: list[str] = field(default_factory=list)
    places: list[tuple[int, str, int]] = field(default_factory=list)  # offset, type, count
    fixed: list[tuple[int, int]] = field(default_factory=list)
    stamp: tuple[int, str] | None = None
    mask: Any = None
    first: Any = None

    def numbers(self, block: Bytes) -> list[NDArray[Any]]:
        """Cut the numbers out of (k, bytes) messages: one (k, n) array per place."""
        return [np.ascontiguousarray(block[:, a : a + int(t[-1]) * n]).view(t) for a, t, n in self.places]

    def stamps(self, block: Bytes) -> NDArray[np.int64] | None:
        """The header's stamps in ns, None if there is no header."""
        if self.stamp is None:
            return None
        parts = np.ascontiguousarray(block[:, self.stamp[0] : self.stamp[0] + 8]).view(self.stamp[1] + "u4")
        return np.asarray(parts[:, 0].astype(np.int64) * 10**9 + parts[:, 1])


class Walk:
    """Follows the definition of a message through its bytes."""

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
        """CDR puts a number at a multiple of its size, counted from the end of the four bytes that begin a message."""
        if not self.ros1:
            self.place += (self.start - self.place) % size

    def length(self) -> int:
        """The length of an array or text, which must stay the same in all messages of a layout."""
        self.align(4)
        self.layout.fixed.append((self.place, self.place + 4))
        count = int.from_bytes(self.raw[self.place : self.place + 4], "little" if self.order == "<" else "big")
        self.place += 4
        if count > len(self.raw) or self.place > len(self.raw):
            raise LogError(f"a message of {len(self.raw)} bytes says that it has an array of {count}; the bag is damaged")
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
    """Rows added at the end of one array, which grows in place: there is never a second copy of what was read."""

    def __init__(self, array: NDArray[Any]) -> None:
        self.array, self.size = array, len(array)

    def add(self, block: NDArray[Any]) -> None:
        """Take more rows."""
        end = self.size + len(block)
        if end > len(self.array):
            self._resize(max(end, self.size + self.size // 16))
        self.array[self.size : end] = block
        self.size = end

    def take(self) -> NDArray[Any]:
        """Give the array away, as large as its content."""
        self._resize(self.size)
        return self.array

    def _resize(self, rows: int) -> None:
        # The system moves the pages of a large array without copying them; nothing else refers to it yet.
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
        """Take more messages; stamps that one of them lacks are used of none."""
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
        """Take one message."""
        size = len(raw)
        self.taken += 1
        group = self.waiting.get(size)
        if group is None:
            group = self.waiting[size] = []
        group.append((time, raw))
        if len(group) >= TOGETHER or len(group) * size > BLOCK:
            self._decode(size, self.waiting.pop(size))

    def finish(self) -> None:
        """Decode what is left."""
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
        if columns in self.streams:  # a new trajectory replaces what an earlier one had planned for later
            before = self.streams[columns]
            planned = before.times.take()
            early = planned < start
            stream.add(planned[early], planned[early], [before.parts[0].take()[early]])
        stream.add(stamps, stamps, [positions])
        self.streams[columns] = stream


def _types(kind: Kind) -> dict[str, Any]:
    """Definitions of a message and of those inside it; those of ROS itself where the bag has none."""
    store = get_typestore(Stores.ROS1_NOETIC if kind.encoding == "ros1" else Stores.LATEST)
    found: dict[str, Any] = dict(store.fielddefs)
    text = kind.definition
    if len(text) > DEFINITION:
        raise LogError(f"the definition of '{kind.type}' has {len(text)} characters; that is no message")
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
