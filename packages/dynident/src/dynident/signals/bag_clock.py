"""Topics of a bag on one clock.

    x(t_k) = x_i + (x_{i+1} - x_i) (t_k - t_i) / (t_{i+1} - t_i)

The clock t_k is that of the first topic; what other topics hold is interpolated to it between its messages i and i + 1. A
long bag is brought to its clock piece by piece: what lies beyond the time that all topics have reached waits for the next one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dynident.errors import LogError
from dynident.signals.messages import Stream, Topic

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
