"""Lynx: its state machine spoken to with plain struct, homing, jog, control, limit switches, key, text export."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import socket
import struct
import time
import zlib

import numpy as np
import pytest
from link_process import plan
from warm_robots import warm_arm6

import dynident as di
from dynident.errors import LinkError
from dynident_lab.link import Campaign, Emulator, LynxClient, LynxServer, Settings, open_controller

OPEN, CLOSE, SHUTDOWN, OPENED, CLOSED, REFUSED, HELLO, PROOF = 1, 2, 3, 4, 5, 6, 7, 8
IDENTITY, HOME, JOG, RUN, STOP, ACQUIRE, QUICK_STOP, DONE = 1, 2, 3, 4, 5, 6, 7, 100
CONFIGURATION, HOMING, JOGGING, CONTROL = 1, 2, 3, 4
KEY = b"0123456789abcdef"


def frame(comm: int, kind: int, task: int = 0, sequence: int = 0, data: bytes = b"") -> bytes:
    """LENGTH, COMM, KIND, TASK, SEQUENCE, CRC32, data: little endian."""
    return struct.pack("<IBBHII", 12 + len(data), comm, kind, task, sequence, zlib.crc32(data)) + data


def receive(sock: socket.socket) -> tuple[int, int, int, int, bytes]:
    head = b""
    while len(head) < 16:
        part = sock.recv(16 - len(head))
        if not part:
            raise ConnectionError("closed")
        head += part
    length, comm, kind, task, sequence, crc = struct.unpack("<IBBHII", head)
    body = b""
    while len(body) < length - 12:
        body += sock.recv(length - 12 - len(body))
    assert zlib.crc32(body) == crc
    return comm, kind, task, sequence, body


@pytest.fixture(scope="module")
def machine():
    return warm_arm6(noise=False)


@pytest.fixture
def serve(machine):
    made = []

    def start(**options):
        server = LynxServer(Emulator(machine, speed=20.0), port=0, **options).start()
        made.append(server)
        return server

    yield start
    for server in made:
        server.close()


def test_the_state_machine_as_its_document_draws_it(serve) -> None:
    server = serve()
    with socket.create_connection(("127.0.0.1", server.port), timeout=60.0) as sock:
        comm, kind, _, _, body = receive(sock)
        assert (comm, kind, struct.unpack_from("<IB", body)) == (0, HELLO, (1, 0))

        def ask(*parts) -> tuple[int, int, bytes]:
            sock.sendall(frame(*parts))
            comm, kind, _, _, body = receive(sock)
            return comm, kind, body

        assert ask(4, RUN, CONTROL)[:2] == (0, REFUSED)  # its task is not open
        assert ask(0, OPEN, CONTROL)[:2] == (0, OPENED)
        refused = ask(0, OPEN, JOGGING)
        assert refused[:2] == (0, REFUSED)
        assert b"task control is open" in refused[2]  # one at a time
        assert b"not homed" not in refused[2]
        assert ask(4, HOME, HOMING)[:2] == (0, REFUSED)
        assert b"not homed" in ask(4, RUN, CONTROL)[2]
        assert ask(0, CLOSE, CONTROL)[:2] == (0, CLOSED)
        assert ask(0, OPEN, HOMING)[:2] == (0, OPENED)
        refused = ask(4, HOME, 0)
        assert b"belongs to task 2 (homing), but TASK of the frame is 0; send TASK 2" in refused[2]
        assert ask(4, HOME, HOMING)[:2] == (4, DONE)
        end = time.monotonic() + 60.0
        while server.emulator.setpoints.moving and time.monotonic() < end:
            time.sleep(0.01)
        assert ask(0, CLOSE, HOMING)[:2] == (0, CLOSED)
        assert ask(0, OPEN, CONTROL)[:2] == (0, OPENED)
        t = np.array([0.0, 0.5, 1.0])
        rows = np.zeros((3, 19))
        rows[:, 0] = t
        block = struct.pack("<II", 19, 3) + rows.astype("<f8").tobytes()
        assert ask(2, 1, CONTROL, 0, block)[:2] == (2, 3)
        assert ask(2, 1, CONTROL, 0, block)[:2] == (2, 3)
        assert ask(2, 4, CONTROL, 1)[:2] == (2, 3)
        assert ask(4, RUN, CONTROL)[:2] == (4, DONE)
        sock.sendall(frame(9, 9))  # malformed: counted and dropped
        assert ask(4, QUICK_STOP)[:2] == (4, DONE)
        assert server.emulator.status[1] == 1
        assert ask(0, SHUTDOWN)[:2] == (4, DONE)
    assert server.dropped == 1


def test_a_key_is_proved_and_never_sent(serve) -> None:
    server = serve(key=KEY)
    with socket.create_connection(("127.0.0.1", server.port), timeout=60.0) as sock:
        nonce = receive(sock)[4][5:]
        assert len(nonce) == 16
        sock.sendall(frame(0, PROOF, data=hmac.new(KEY, b"lynx client" + nonce, hashlib.sha256).digest()))
        assert receive(sock)[:2] == (4, DONE)
    for key, sentence in ((b"", "needs a key"), (b"wrong" * 4, "key is wrong")):
        deadline = time.monotonic() + 60.0
        while server.emulator.client and time.monotonic() < deadline:
            time.sleep(0.01)
        with pytest.raises(LinkError, match=sentence):
            LynxClient("127.0.0.1", server.port, key).connect()


@pytest.mark.parametrize("key", [b"", KEY])
def test_idle_connections_neither_keep_the_owner_out_nor_stay(serve, key) -> None:
    now = [0.0]
    server = serve(key=key, clock=lambda: now[0])
    idle = [socket.create_connection(("127.0.0.1", server.port), timeout=60.0) for _ in range(200)]
    client = LynxClient("127.0.0.1", server.port, key)
    client.connect()
    now[0] = 6.0
    for sock in idle:
        with contextlib.suppress(OSError):  # closed, perhaps before its hello was read
            while sock.recv(1000):
                pass
        sock.close()
    assert client.state().alarm == 0
    client.stop()
    client.close()


def test_a_network_address_needs_a_key(machine) -> None:
    with pytest.raises(LinkError, match="needs a shared key"):
        LynxServer(Emulator(machine), host="0.0.0.0", port=0)


def test_a_campaign_runs_on_lynx_too(serve, tmp_path) -> None:
    server = serve(key=KEY)
    client = open_controller(f"lynx://127.0.0.1:{server.port}", key=KEY)
    campaign = Campaign.create(tmp_path / "c", plan(1), Settings(), client)
    assert campaign.run() == 1
    log = di.Log.read(tmp_path / "c")
    cycle = log.cycles()[0]
    np.testing.assert_allclose(np.diff(cycle.t), 0.004, atol=1e-6)
    assert len(log.stages()["excitation"][0]) == 600


def test_the_client_stops_the_drives(serve) -> None:
    server = serve()
    client = LynxClient("127.0.0.1", server.port)
    client.connect()
    try:
        client.quick_stop()
        assert server.emulator.status[1] == 1
        client.release()
        assert server.emulator.status[1] == 0
    finally:
        client.close()


def test_jog_ends_at_a_limit_switch(serve) -> None:
    server = serve()
    client = LynxClient("127.0.0.1", server.port)
    identity = client.connect()
    upper = identity.upper
    for _ in range(20):
        client.jog([0.0, 0.0, 0.5, 0.0, 0.0, 0.0], 3.0)
        if abs(client.position()[2] - upper[2]) < 1e-9:
            break
    deadline = time.monotonic() + 60.0
    while client.limit_switches != ((), ("joint3",)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert client.limit_switches == ((), ("joint3",))
    with pytest.raises(LinkError, match="20 % of the top speed"):
        client.jog([9.0, 0.0, 0.0, 0.0, 0.0, 0.0], 1.0)
    client.home()
    np.testing.assert_allclose(client.position(), identity.home, atol=1e-9)
    client.configure([0.1, 0.0, 0.0, 0.0, 0.0, 0.2], 0.1)
    client.home()
    np.testing.assert_allclose(client.position(), [0.1, 0.0, 0.0, 0.0, 0.0, 0.2], atol=1e-9)
    with pytest.raises(LinkError, match="above its upper limit"):
        client.configure([9.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    with pytest.raises(LinkError, match="up to 20%"):
        client.configure(np.zeros(6), 0.5)
    assert client.indicator in ("receiving data", "executing")
    client.shutdown()


@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        ("serial:///dev/tty0", "is not an address"),
        ("lynx://", "is not an address"),
        ("lynx://127.0.0.1:port", "is not an address"),
        ("lynx://127.0.0.1:1?speed=3", "does not know"),
        ("simple_message://127.0.0.1:1?transport=serial", "transport is 'serial'"),
    ],
)
def test_a_wrong_address_is_one_sentence(address, sentence) -> None:
    with pytest.raises(LinkError, match=sentence):
        open_controller(address)
