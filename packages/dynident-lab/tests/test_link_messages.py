"""simple_message byte for byte as printed, in both byte orders; whatever else comes is refused in one sentence."""

from __future__ import annotations

import random
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from link_peers import full_point, point

from dynident.errors import LinkError
from dynident_lab.link import Framer, Message, Samples, critical_velocity, decode, encode
from dynident_lab.link.simple_messages import decode_samples, encode_samples

ORDERS = {"little": "<", "big": ">"}
SIZES = {11: (68, 64), 14: (152, 148), 10: (60, 56), 13: (44, 40), 15: (148, 144)}
Q = (0.5, -1.25, 2.0, 0.0, 3.5, -0.125)
PADDED = (*Q, 0.0, 0.0, 0.0, 0.0)


def messages() -> list[Message]:
    return [
        Message(11, sequence=7, q=Q, velocity=0.5, duration=0.25),
        Message(14, sequence=7, valid=15, time=1.5, q=Q, v=Q, a=Q),
        Message(10, comm=1, sequence=3, q=Q),
        Message(13, comm=1, status=(1, 0, 4003, 1, 0, 2, 0)),
        Message(15, comm=1, valid=7, time=2.5, q=Q, v=Q),
    ]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("message", messages(), ids=lambda m: str(m.type))
def test_sizes_are_those_of_the_tables(message, order) -> None:
    frame = encode(message, order)
    assert (len(frame), struct.unpack_from(ORDERS[order] + "i", frame)[0]) == SIZES[message.type]
    assert encode(decode(frame, order), order) == frame


@pytest.mark.parametrize("order", ORDERS)
def test_a_point_is_what_an_independent_encoder_writes(order) -> None:
    mark = ORDERS[order]
    assert encode(Message(11, sequence=-2, q=Q, velocity=0.5, duration=0.25), order) == point(-2, list(Q), 0.5, 0.25, mark)
    full = full_point(9, 1.5, list(Q), list(Q), list(Q), mark)
    assert encode(Message(14, sequence=9, valid=15, time=1.5, q=Q, v=Q, a=Q), order) == full
    read = decode(full, order)
    assert (read.sequence, read.time, read.q, read.v, read.a) == (9, 1.5, PADDED, PADDED, PADDED)


@pytest.mark.parametrize("order", ORDERS)
def test_a_point_of_ours_rounds_nothing(order) -> None:
    mark, third = ORDERS[order], 1.0 / 3.0
    frame = struct.pack(mark + "4i2i7d", 12 + 8 + 56, 9004, 2, 0, -3, 2, third, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
    message = Message(9004, sequence=-3, valid=15, time=third, q=(0.1, 0.2), v=(0.3, 0.4), a=(0.5, 0.6))
    assert encode(message, order) == frame
    assert decode(frame, order) == message
    for bad in (frame[:16], frame[:20] + struct.pack(mark + "i", 3) + frame[24:], frame[:24] + b"\xff" * 8 + frame[32:]):
        with pytest.raises(LinkError):
            decode(struct.pack(mark + "i", len(bad) - 4) + bad[4:], order)


def test_a_reply_is_its_header_and_may_carry_the_data_again() -> None:
    assert encode(Message(11, comm=3, reply=1)) == struct.pack("<4i", 12, 11, 3, 1)
    echoed = struct.pack("<4i", 64, 11, 3, 2) + bytes(52)
    assert (decode(echoed).comm, decode(echoed).reply) == (3, 2)


def test_a_trajectory_ends_with_its_number_of_points() -> None:
    points = tuple(Message(11, sequence=i, q=(0.1 * i,), duration=0.5) for i in range(3))
    frame = encode(Message(12, points=points))
    assert len(frame) == 16 + 3 * 52 + 4
    assert struct.unpack_from("<i", frame, len(frame) - 4)[0] == 3
    assert [p.sequence for p in decode(frame).points] == [0, 1, 2]
    wrong = frame[:-4] + struct.pack("<i", 4)
    with pytest.raises(LinkError, match="declares 4 points but has 3"):
        decode(wrong)


@pytest.mark.parametrize(
    ("frame", "sentence"),
    [
        (b"", "16 at least"),
        (struct.pack("<4i", 13, 11, 2, 0), "check the byte order"),
        (struct.pack("<4i", 12, 11, 2, 0), "needs 52"),
        (struct.pack("<4i", 12, 11, 9, 0), "COMM_TYPE is 9"),
        (point(0, [float("nan")], 0.0, 0.0), "not finite"),
    ],
)
def test_malformed_packets_are_told_in_one_sentence(frame, sentence) -> None:
    with pytest.raises(LinkError, match=sentence):
        decode(frame)


def test_too_many_joints_do_not_fit() -> None:
    with pytest.raises(LinkError, match="11 joints do not fit"):
        encode(Message(10, q=(0.0,) * 11))


@given(st.binary(max_size=200))
def test_random_bytes_are_a_message_or_a_sentence(data) -> None:
    for order in ORDERS:
        try:
            found = decode(data, order)
        except LinkError:
            continue
        assert isinstance(found, Message)


@settings(max_examples=50)
@given(st.integers(0, 2**32 - 1))
def test_a_stream_cut_anywhere_gives_the_same_frames(seed) -> None:
    rng = random.Random(seed)
    frames = [encode(rng.choice(messages())) for _ in range(20)]
    stream, framer, out = b"".join(frames), Framer(), []
    while stream:
        n = rng.randint(1, 100)
        out += framer.feed(stream[:n])
        stream = stream[n:]
    assert out == frames


def test_a_length_that_no_message_has_ends_the_stream() -> None:
    for length in (-1, 0, 11, 1 << 30):
        with pytest.raises(LinkError, match="LENGTH is"):
            Framer().feed(struct.pack("<i", length))


def test_samples_are_exact() -> None:
    rng = np.random.default_rng(0)
    table = rng.standard_normal((5, 3 + 4 * 6))
    table[:, 0] = np.arange(5) + 2**40
    table[2, 2] = np.nan
    for order in ORDERS:
        body = encode_samples(table, order)[16:]
        found = decode_samples(body, order)
        assert np.array_equal(found.table, table, equal_nan=True)
        assert isinstance(found, Samples)
        with pytest.raises(LinkError, match="declares 5 samples"):
            decode_samples(body[:-8], order)


def test_the_velocity_of_a_move_is_that_of_its_critical_joint() -> None:
    assert critical_velocity([1.0, -3.0], [4.0, 6.0]) == 0.5
    assert critical_velocity([1.0], [np.inf]) == 0.0
    assert critical_velocity([9.0], [3.0]) == 1.0
