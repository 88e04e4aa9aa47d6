"""A controller on simple_message: spoken to by peers that know only the specification, and by our client over a bad network."""

from __future__ import annotations

import random
import socket
import struct
import time

import numpy as np
import pytest
from link_peers import LossyRelay, StyleServer, full_point, point, receive_frame
from warm_robots import balanced_machine

import dynident as di
from dynident.errors import LinkError
from dynident_lab.link import Emulator, Message, Plant, SimpleClient, SimpleServer, decode, encode, simple_client
from dynident_lab.link.simple_server import MotionTask

PERIOD = 0.004
WAY = np.array([0.3, 0.2, -0.2, 0.4, 0.2, 0.5])


@pytest.fixture(scope="module")
def machine():
    return balanced_machine(noise=False)


@pytest.fixture
def serve(machine):
    made = []

    def start(transport="tcp", speed=20.0, **options):
        server = SimpleServer(Emulator(machine, speed=speed, seed=3), transport, motion_port=0, state_port=0, **options).start()
        made.append(server)
        return server

    yield start
    for server in made:
        server.close()


def motion(duration: float = 1.2, way=WAY, step: float = PERIOD) -> di.Motion:
    t = np.arange(round(duration / step) + 1) * step
    u = (t / t[-1])[:, None]
    T = t[-1]
    return di.Motion(
        t,
        way * (10 * u**3 - 15 * u**4 + 6 * u**5),
        way * 30 * u**2 * (1 - u) ** 2 / T,
        way * 60 * u * (1 - u) * (1 - 2 * u) / T**2,
    )


def follow(client: SimpleClient, wanted: di.Motion, timeout: float = 60.0) -> np.ndarray:
    """Run a motion and return the rows recorded while it ran."""
    client.send(wanted)
    client.run()
    rows, end = [], time.monotonic() + timeout
    while time.monotonic() < end:
        rows += [samples.table for _, samples in client.samples(0.05)]
        assert client.failure is None, client.failure
        table = np.concatenate(rows) if rows else np.empty((0, 27))
        over = np.isfinite(table[:, 2]).any() and np.nanmax(table[:, 2]) >= wanted.t[-1] - 1e-9
        if over and not client.sending and not client.state().moving:
            return table[np.isfinite(table[:, 2])]
    raise AssertionError("the motion did not end")


def client_of(server: SimpleServer, **options) -> SimpleClient:
    client = SimpleClient("127.0.0.1", server.motion_port, server.state_port, server.transport, **options)
    client.connect()
    return client


# ---------------------------------------------------------------------- foreign client, our controller
@pytest.mark.parametrize("order", ["little", "big"])
def test_a_ros_industrial_client_streams_points(serve, order) -> None:
    server = serve(order=order)
    mark = "<" if order == "little" else ">"
    with socket.create_connection(("127.0.0.1", server.motion_port), timeout=60.0) as sock:
        wanted = motion(0.8, step=0.02)
        for k in range(len(wanted)):
            frame = full_point(k, wanted.t[k], list(wanted.q[k]), list(wanted.v[k]), list(wanted.a[k]), mark)
            sock.sendall(frame)
            assert receive_frame(sock, mark) == struct.pack(mark + "4i", 12, 14, 3, 1)
        end = time.monotonic() + 60.0
        while server.emulator.setpoints.moving and time.monotonic() < end:
            time.sleep(0.01)
        np.testing.assert_allclose(server.emulator.setpoints.q, WAY, atol=1e-6)
    assert not server.emulator.alarms


def test_a_client_of_short_points_downloads_and_stops(serve) -> None:
    server = serve()
    with socket.create_connection(("127.0.0.1", server.motion_port), timeout=60.0) as sock:

        def ask(frame: bytes) -> int:
            sock.sendall(frame)
            return struct.unpack_from("<4i", receive_frame(sock))[3]

        for sequence, q in ((-1, 0.0), (1, 0.05), (2, 0.10), (-3, 0.10)):
            assert not server.emulator.setpoints.moving  # the robot starts with the end marker
            assert ask(point(sequence, [q], 0.1, 0.2 if sequence != -1 else 0.0)) == 1
        end = time.monotonic() + 60.0
        while abs(server.emulator.setpoints.q[0] - 0.1) > 1e-6 and time.monotonic() < end:
            time.sleep(0.01)
        assert abs(server.emulator.setpoints.q[0] - 0.1) < 1e-6
        assert ask(point(-4, [], 0.0, 0.0)) == 1
        assert ask(struct.pack("<4i", 12, 20, 2, 0)) == 2  # READ_INPUT is not served
        sock.sendall(struct.pack("<4i", 15, 1, 2, 0) + b"abc")
        assert receive_frame(sock)[16:] == b"abc"


def test_feedback_comes_unasked_over_udp_after_the_handshake(serve) -> None:
    server = serve("udp", feedback=0.01)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.settimeout(10.0)
        sock.connect(("127.0.0.1", server.state_port))
        sock.send(b"\x8e")
        assert sock.recv(1000) == b"\x8e"
        kinds = set()
        while kinds != {10, 13}:
            data = sock.recv(1000)
            length, kind, comm, reply = struct.unpack_from("<4i", data)
            assert (len(data), comm, reply) == (length + 4, 1, 0)
            assert length == {10: 56, 13: 40}[kind]
            kinds.add(kind)


def greeted(port: int) -> socket.socket:
    """Return a UDP client after its handshake."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.settimeout(60.0)
    sock.connect(("127.0.0.1", port))
    sock.send(b"\x8e")
    while sock.recv(1000) != b"\x8e":
        pass  # a topic came first
    return sock


class Clock:
    """A clock of the host that a test sets."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_silent_udp_clients_are_served_after_ten_minutes(serve) -> None:
    clock = Clock()
    server = serve("udp", feedback=1.0, clock=clock)
    with greeted(server.state_port) as listener, greeted(server.motion_port) as streamer:
        streamer.send(point(0, [0.0], 0.0, 0.0))
        assert struct.unpack("<4i", streamer.recv(1000)) == (12, 11, 3, 1)
        second, kinds = 0, list[int]()
        while second < 600 or 10 not in kinds:  # positions come once the robot's thread has made its first sample
            second += 1
            clock.now = float(second)
            kinds = []
            while 13 not in kinds:  # STATUS is the last of what comes unasked
                kinds.append(struct.unpack_from("<4i", listener.recv(1000))[1])
        assert kinds == [10, 13]
        streamer.send(point(-4, [], 0.0, 0.0))
        assert struct.unpack("<4i", streamer.recv(1000)) == (12, 11, 3, 1)
    assert not server.dropped


@pytest.mark.parametrize("transport", ["tcp", "udp"])
def test_a_download_sent_as_topics_moves_the_robot(serve, transport) -> None:
    """As ROS-Industrial's downloader sends it: START to END, and no answer is expected."""
    server = serve(transport)
    connect = greeted if transport == "udp" else lambda port: socket.create_connection(("127.0.0.1", port), timeout=60.0)
    with connect(server.motion_port) as sock:
        for sequence, q in ((-1, 0.0), (1, 0.05), (2, 0.10), (-3, 0.15)):
            sock.send(point(sequence, [q], 0.1, 0.3 if sequence != -1 else 0.0, comm=1))
        wait_until(lambda: abs(server.emulator.setpoints.q[0] - 0.15) < 1e-6)
        sock.send(struct.pack("<4i", 12, 1, 2, 0))
        assert struct.unpack_from("<4i", sock.recv(1000)) == (12, 1, 3, 1)  # the first answer is that to the ping
    assert not server.emulator.alarms
    assert not server.dropped


def test_a_download_of_topics_that_lacks_a_point_moves_nothing(machine) -> None:
    said = []
    task = MotionTask(Emulator(machine), ignore=lambda *words: said.append(words))
    for sequence in (-1, 1, 3, 4, -3):
        assert task.receive(point(sequence, [0.01 * max(0, sequence)], 0.1, 0.2 if sequence != -1 else 0.0, comm=1)) == []
    assert not task.emulator.setpoints.moving
    assert [reason for reason, _ in said] == ["refused topic"] * 3
    assert "point 3 came where 2 is expected" in said[0][1]
    assert not task.emulator.alarms
    assert task.receive(struct.pack("<4i", 12, 2, 1, 0)) == []  # GET_VERSION as a topic
    assert said[3] == ("message that is not a request", "type 2, COMM_TYPE 1")


def test_what_is_ignored_is_counted_and_logged(serve, caplog) -> None:
    server = serve("udp")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger, greeted(server.motion_port) as client:
        stranger.connect(("127.0.0.1", server.motion_port))
        for _ in range(10):
            stranger.send(point(0, [0.0], 0.0, 0.0))
        client.send(b"garbage")
        client.send(struct.pack("<4i", 12, 1, 3, 1))
        wait_until(lambda: server.dropped == 12)
    assert dict(server.ignored) == {
        "datagram without a handshake": 10,
        "malformed message": 1,
        "message that is not a request": 1,
    }
    wait_until(lambda: len(caplog.records) == 4)  # the 1st and the 10th, and one of each other reason
    assert "datagram without a handshake" in caplog.text and "(10 so far)" in caplog.text


@pytest.mark.parametrize("transport", ["tcp", "udp"])
def test_idle_connections_do_not_keep_the_owner_out(serve, transport) -> None:
    server = serve(transport)
    connect = greeted if transport == "udp" else lambda port: socket.create_connection(("127.0.0.1", port), timeout=60.0)
    idle = [connect(port) for port in (server.motion_port, server.state_port) for _ in range(100)]
    client = client_of(server)
    assert client.ping(b"x") == b"x"
    more = [connect(port) for port in (server.motion_port, server.state_port) for _ in range(100)]
    assert follow(client, motion(0.4)).shape[0] > 0  # the owner is never the one that makes room
    client.close()
    for sock in (*idle, *more):
        sock.close()


def wait_until(condition, timeout: float = 60.0) -> None:
    end = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)


def test_a_second_client_is_told_who_has_the_controller(serve) -> None:
    server = serve()
    first = client_of(server)
    with pytest.raises(LinkError, match="another client"):
        client_of(server)
    with socket.create_connection(("127.0.0.1", server.motion_port), timeout=60.0) as sock:
        sock.sendall(point(0, [0.0], 0.0, 0.0))
        assert struct.unpack_from("<4i", receive_frame(sock))[3] == 2
        for command, reply in ((2, 1), (3, 2), (1, 2)):  # it may press the emergency stop, and neither release nor reset it
            sock.sendall(struct.pack("<5i", 16, 9003, 2, 0, command))
            assert struct.unpack_from("<4i", receive_frame(sock))[3] == reply
    assert server.emulator.status[:3] == (0, 1, 4012)
    first.close()


# ---------------------------------------------------------------------- our client, foreign controller
@pytest.mark.parametrize("echo", [True, False])
def test_our_client_streams_to_a_ros_industrial_style_server(echo) -> None:
    server = StyleServer(echo)
    client = SimpleClient("127.0.0.1", *server.ports, points="short")
    try:
        identity = client.connect()
        assert identity.robot == ""
        wanted = motion(0.2, step=0.02)
        client.send(wanted)
        client.run()
        end = time.monotonic() + 60.0
        while (client.sending or len(server.points) < len(wanted)) and time.monotonic() < end:
            time.sleep(0.01)
        assert client.failure is None
        assert [sequence for _, sequence, _ in server.points] == list(range(len(wanted)))
        for k, (_, _, frame) in enumerate(server.points):
            joints = struct.unpack_from("<10f", frame, 20)
            np.testing.assert_allclose(joints[:6], wanted.q[k], atol=1e-6)
            assert joints[6:] == (0.0,) * 4
            duration = struct.unpack_from("<f", frame, 64)[0]
            assert duration == pytest.approx(0.02 if k else 0.0, abs=1e-6)
        assert len(client.samples(2.0)) > 0
    finally:
        client.close()
        server.close()


def test_a_refused_point_ends_the_motion_with_a_sentence() -> None:
    server = StyleServer(fail_at=3)
    client = SimpleClient("127.0.0.1", *server.ports)
    try:
        client.connect()
        client.send(motion(0.2, step=0.02))
        client.run()
        end = time.monotonic() + 60.0
        while client.sending and time.monotonic() < end:
            time.sleep(0.01)
        assert client.failure is not None
        assert "point 3" in client.failure
        assert len(server.points) == 4
    finally:
        client.close()
        server.close()


def test_another_version_of_our_own_messages_is_one_sentence(serve, monkeypatch) -> None:
    monkeypatch.setattr(simple_client, "VERSION", (2, 0, 0))
    with pytest.raises(LinkError, match=r"speaks version 1\.2 of these messages, this client 2\.0; update the older one"):
        client_of(serve())


def test_a_foreign_controller_may_have_any_version() -> None:
    server = StyleServer(version=struct.pack("<3i", 7, 1, 0))
    client = SimpleClient("127.0.0.1", *server.ports)
    assert client.connect().robot == ""
    client.close()
    server.close()


def test_a_controller_that_ignores_unknown_messages_is_one_of_the_standard(monkeypatch) -> None:
    monkeypatch.setattr(simple_client, "TIMEOUT", 0.2)
    server = StyleServer(mute=True)
    client = SimpleClient("127.0.0.1", *server.ports)
    assert client.connect().robot == ""
    monkeypatch.undo()
    client.send(motion(0.2, step=0.02))
    client.run()
    wait_until(lambda: not client.sending)
    assert client.failure is None
    assert [k for _, k, _ in server.points] == list(range(11))
    client.close()
    server.close()


def test_download_markers_and_padding() -> None:
    client = SimpleClient(mode="download", points="short")
    two = motion(0.02, step=0.02)
    made = client.messages(two)
    assert [p.sequence for p in made] == [-1, 1, -3]
    assert made[-1].q == made[-2].q


# ---------------------------------------------------------------------- both ours
@pytest.mark.parametrize(
    ("transport", "points", "counts"),
    [("tcp", "auto", 0.0), ("udp", "auto", 0.0), ("tcp", "full", 8.0), ("tcp", "short", 50.0)],
)
def test_the_log_is_that_of_the_simulator(serve, machine, transport, points, counts) -> None:
    """The same readings to the last bit; points of 24 bits, and positions alone, move the robot by some counts."""
    server = serve(transport)
    client = client_of(server, points=points)
    wanted = motion()
    rows = follow(client, wanted)
    client.close()
    truth = Plant(machine, period=PERIOD, seed=3).follow(wanted)
    at = np.round(rows[:, 2] / PERIOD).astype(int)
    np.testing.assert_array_equal(at, np.arange(len(wanted)))  # every sample once, none missing
    count = 2.0 * np.pi / 2**17 / np.array([101.0, 101.0, 101.0, 81.0, 80.0, 51.0])
    assert np.max(np.abs(rows[:, 3:9] - truth.position[at]) / count) <= counts


def test_losses_copies_and_swaps_do_not_change_the_motion(serve) -> None:
    server = serve("udp")
    relay = LossyRelay(server.motion_port, random.Random(4), 0.05)
    client = SimpleClient("127.0.0.1", relay.port, server.state_port, "udp")
    try:
        client.connect()
        wanted = motion(1.2, step=0.01)
        client.send(wanted)
        client.run()
        end = time.monotonic() + 60.0
        while (client.sending or server.emulator.setpoints.moving) and time.monotonic() < end:
            time.sleep(0.01)
        assert client.failure is None
        assert server.emulator.setpoints.count == len(wanted)  # each point once
        np.testing.assert_allclose(server.emulator.setpoints.q, WAY, atol=1e-6)
        assert not server.emulator.alarms
        assert min(relay.lost, relay.doubled, relay.swapped) > 0
    finally:
        client.close()
        relay.close()


def test_limits_emergency_stop_and_reset(serve) -> None:
    server = serve()
    client = client_of(server)
    client.send(motion(1.0, way=np.array([9.0, 0, 0, 0, 0, 0])))
    client.run()
    end = time.monotonic() + 60.0
    while client.failure is None and time.monotonic() < end:
        time.sleep(0.01)
    assert client.failure is not None
    assert "joint1" in client.failure
    assert server.emulator.alarms[-1].code == 4010
    client.reset()
    client.emergency_stop()
    assert server.emulator.status[:4] == (0, 1, 4012, 1)
    with pytest.raises(LinkError, match="emergency stop is pressed"):
        client.reset()
    client.emergency_stop(False)
    client.reset()
    assert follow(client, motion()).shape[0] > 0
    client.close()


def test_alarms_of_the_limits_of_acceleration_and_following(machine) -> None:
    """A jump is refused before the robot moves; an error inside a chunk counts though the robot has caught up at its end."""
    limited = Emulator(machine, acceleration=20.0)
    task = MotionTask(limited)
    replies = [decode(task.receive(point(k, [0.0] * 5 + [0.02 * k], 1.0, 0.02 * (k > 0)))[0]).reply for k in range(3)]
    assert replies == [1, 1, 2]
    assert limited.alarms[-1].code == 4010
    assert "/s^2, above its limit 20/s^2" in limited.alarms[-1].text
    assert not np.any(limited.setpoints.v)
    wanted = motion(0.6)
    lag = Plant(machine, period=PERIOD, seed=0)
    lag.follow(wanted)
    at_end = np.abs(lag.coordinates - wanted.q[-1]).max()
    assert lag.deviation.max() > 2.0 * at_end
    tight = Emulator(machine, speed=20.0, following=float(np.sqrt(lag.deviation.max() * at_end)))
    tight.start()
    tight.load(wanted)
    tight.finish()
    wait_until(lambda: tight.alarms)
    tight.close()
    assert tight.alarms[-1].code == 4011


def test_a_client_that_dies_leaves_a_robot_at_rest(serve) -> None:
    server = serve(speed=1.0)
    client = client_of(server)
    # Few points, so that the buffer holds them all, of a motion far longer than a busy machine takes to notice its end.
    client.send(motion(60.0, step=1.0))
    client.run()
    end = time.monotonic() + 50.0
    while (client.sending or not np.any(server.emulator.setpoints.v)) and time.monotonic() < end:
        time.sleep(0.01)
    client.close()
    while not (server.emulator.alarms and not np.any(server.emulator.setpoints.v)) and time.monotonic() < end:
        time.sleep(0.01)
    assert server.emulator.alarms[-1].code == 4003
    assert not np.any(server.emulator.setpoints.v)
    assert np.abs(server.emulator.setpoints.q - WAY).max() > 0.01  # it did not go on


@pytest.mark.parametrize("watched", [True, False])
def test_a_watchdog_stops_only_clients_that_asked_for_one(machine, watched) -> None:
    emulator = Emulator(machine)
    task = MotionTask(emulator)
    wanted = motion(1.0, step=0.02)
    for k in range(len(wanted)):
        task.receive(full_point(k, wanted.t[k], list(wanted.q[k]), list(wanted.v[k]), list(wanted.a[k])))
    task.receive(struct.pack("<4i", 12, 1, 2, 0))  # a ping asks for nothing
    if watched:
        assert decode(task.receive(struct.pack("<5id", 24, 9003, 2, 0, 7, 2.0))[0]).reply == 1
    emulator.heard -= 600.0
    emulator.start()
    wait_until(lambda: emulator.alarms if watched else np.abs(emulator.setpoints.q - WAY).max() < 1e-6)
    emulator.close()
    assert [alarm.code for alarm in emulator.alarms] == ([4013] if watched else [])


def test_the_same_seed_gives_the_same_log() -> None:
    noisy = balanced_machine()
    logs = []
    for _ in range(2):
        server = SimpleServer(Emulator(noisy, speed=20.0, seed=5), motion_port=0, state_port=0).start()
        client = client_of(server)
        logs.append(follow(client, motion(0.8))[:, 3:21])
        client.close()
        server.close()
    np.testing.assert_array_equal(logs[0], logs[1])


def test_wrong_settings_are_one_sentence(machine) -> None:
    emulator = Emulator(machine)
    with pytest.raises(LinkError, match="alarm 4000"):
        SimpleServer(emulator, host="nowhere", motion_port=0, state_port=0)
    with pytest.raises(LinkError, match="list the allowed addresses"):
        SimpleServer(emulator, host="0.0.0.0", motion_port=0, state_port=0)
    with pytest.raises(LinkError, match="'robot' is not an IP address of a peer"):
        SimpleServer(emulator, host="0.0.0.0", motion_port=0, state_port=0, peers=("robot",))
    with socket.create_server(("127.0.0.1", 0)) as busy, pytest.raises(LinkError, match="alarm 4002"):
        SimpleServer(emulator, motion_port=busy.getsockname()[1], state_port=0)
    with pytest.raises(LinkError, match="no controller answers"):
        SimpleClient("127.0.0.1", 1).connect()
    with pytest.raises(LinkError, match="speed is 0"):
        Emulator(machine, speed=0.0)


# ---------------------------------------------------------------------- noise on the line
def test_random_and_mutated_packets_neither_move_nor_crash_a_task(machine) -> None:
    emulator = Emulator(machine)
    task, rng = MotionTask(emulator), random.Random(1)
    good = [point(0, [0.0], 0.0, 0.0), full_point(1, 0.1, [9e9], [0.0], [0.0]), encode(Message(1, data=b"hello"))]
    for _ in range(20_000):
        data = bytearray(rng.choice(good)) if rng.random() < 0.7 else bytearray(rng.randbytes(rng.randint(0, 200)))
        for _ in range(rng.randint(1, 4)):
            if data:
                data[rng.randrange(len(data))] = rng.randrange(256)
        for answer in task.receive(bytes(data)):
            assert decode(answer).comm == 3
    assert task.malformed > 1000
    assert emulator.setpoints.waiting <= emulator.setpoints.capacity
    assert task.receive(encode(Message(1, data=b"still there")))[0].endswith(b"still there")


def test_a_port_survives_garbage(serve) -> None:
    server = serve()
    rng = random.Random(2)
    for port in (server.motion_port, server.state_port):
        for _ in range(20):
            with socket.create_connection(("127.0.0.1", port), timeout=60.0) as sock:
                sock.sendall(rng.randbytes(300))
    end = time.monotonic() + 60.0
    while server.dropped == 0 and time.monotonic() < end:
        time.sleep(0.01)
    assert server.dropped > 0
    client = client_of(server)
    assert client.ping(b"x") == b"x"
    client.close()
