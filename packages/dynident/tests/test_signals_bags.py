"""Bags written by the libraries of others (mcap-ros2-support, rosbags) are read; what we write, they read."""

from __future__ import annotations

import numpy as np
import pytest

from dynident.errors import LogError
from dynident.signals import Log

pytest.importorskip("mcap", reason="bags are an extra: pip install 'dynident[ros]'")
rosbags = pytest.importorskip("rosbags.typesys", reason="bags are an extra: pip install 'dynident[ros]'")

NAMES = ["shoulder", "elbow", "wrist"]
T = np.arange(500) / 250.0
Q = np.sin(T[:, None] * np.arange(1, 4))
V = np.cos(T[:, None] * np.arange(1, 4)) * np.arange(1, 4)
TAU = 10.0 * np.cos(3.0 * T[:, None] + np.arange(3))
STAMP = 1_700_000_000_000_000_000 + np.round(T * 1e9).astype(np.int64)
LATER = 123_456  # ns between the stamp in the header and the recorder's
JOINT_STATE = "sensor_msgs/msg/JointState"


class Messages:
    """Messages of one distribution, made and serialised by rosbags."""

    def __init__(self, ros1: bool = False) -> None:
        self.ros1 = ros1
        self.store = rosbags.get_typestore(rosbags.Stores.ROS1_NOETIC if ros1 else rosbags.Stores.ROS2_HUMBLE)

    def raw(self, type_: str, message: object) -> bytes:
        return bytes(self.store.serialize_ros1(message, type_) if self.ros1 else self.store.serialize_cdr(message, type_))

    def header(self, stamp: int, frame: str = "") -> object:
        time = self.store.types["builtin_interfaces/msg/Time"](int(stamp) // 10**9, int(stamp) % 10**9)
        more = {"seq": 0} if self.ros1 else {}
        return self.store.types["std_msgs/msg/Header"](stamp=time, frame_id=frame, **more)

    def joint_state(self, stamp: int, names, q, v, tau, frame: str = "") -> bytes:
        rows = {"position": np.asarray(q), "velocity": np.asarray(v), "effort": np.asarray(tau)}
        message = self.store.types[JOINT_STATE](header=self.header(stamp, frame), name=list(names), **rows)
        return self.raw(JOINT_STATE, message)

    def array(self, values) -> bytes:
        layout = self.store.types["std_msgs/msg/MultiArrayLayout"](dim=[], data_offset=0)
        message = self.store.types["std_msgs/msg/Float64MultiArray"](layout=layout, data=np.asarray(values))
        return self.raw("std_msgs/msg/Float64MultiArray", message)


def states(make: Messages, effort=TAU) -> list[tuple[str, str, int, bytes]]:
    effort = np.zeros((len(T), 0)) if effort is None else effort
    raw = [make.joint_state(STAMP[k], NAMES, Q[k], V[k], effort[k]) for k in range(len(T))]
    return [("/joint_states", JOINT_STATE, int(STAMP[k]) + LATER, raw[k]) for k in range(len(T))]


def write(path, records: list[tuple[str, str, int, bytes]], kind: str, make: Messages):
    """Write (topic, type, time, raw) as a bag of the given kind."""
    from rosbags import rosbag1, rosbag2

    if kind == "ros1":
        bag = rosbag1.Writer(path)
        bag.set_compression(rosbag1.Writer.CompressionFormat.BZ2)
    else:
        bag = rosbag2.Writer(path, version=9, storage_plugin=rosbag2.StoragePlugin[kind])
    with bag:
        known = {t: bag.add_connection(t, type_, typestore=make.store) for t, type_ in {r[0]: r[1] for r in records}.items()}
        for topic, _, time, raw in sorted(records, key=lambda r: r[2]):
            bag.write(known[topic], time, raw)
    return path


def check(log: Log) -> None:
    assert log.joints == tuple(NAMES)
    np.testing.assert_allclose(log.t, T, rtol=0, atol=1e-9)
    np.testing.assert_array_equal(log.position, Q)
    np.testing.assert_array_equal(log.velocity, V)
    np.testing.assert_array_equal(log.effort, TAU)


@pytest.mark.parametrize("kind", ["MCAP", "SQLITE3", "ros1"])
def test_bags_of_rosbags(kind, tmp_path):
    make = Messages(ros1=kind == "ros1")
    path = write(tmp_path / ("run.bag" if kind == "ros1" else "run"), states(make), kind, make)
    log = Log.read(path, topic="/joint_states", effort="joint_torque")
    check(log)
    check(Log.read(path, "joint_torque"))
    assert any("stamps in the headers" in note for note in log.provenance["conversions"])
    assert log.provenance["sha256"]
    if kind != "ros1":  # also the file without its folder, as people send it
        check(Log.read(next(p for p in path.iterdir() if p.suffix != ".yaml"), "joint_torque"))
    with pytest.raises(LogError, match=r"no messages of the topic /states; it holds /joint_states \(sensor_msgs"):
        Log.read(path, "joint_torque", topic="/states")


def mcap_file(path, records, definitions, **options):
    """Write an MCAP file with the writer of mcap-ros2-support, which serialises dictionaries by the text of a definition."""
    from mcap_ros2.writer import Writer

    with path.open("wb") as stream:
        writer = Writer(stream, **options)
        schemas = {name: writer.register_msgdef(name, text) for name, text in definitions.items()}
        for topic, type_, time, message in records:
            writer.write_message(topic, schemas[type_], message, int(time), int(time))
        writer.finish()
    return path


BAR = "=" * 80 + "\n"
HEADER = (
    f"{BAR}MSG: std_msgs/Header\nbuiltin_interfaces/Time stamp\nstring frame_id\n{BAR}MSG: builtin_interfaces/Time\n"
    "int32 sec\nuint32 nanosec\n"
)
STATE = f"std_msgs/Header header\nstring[] name\nfloat64[] position\nfloat64[] velocity\nfloat64[] effort\n{HEADER}"
DYNAMIC = (
    "std_msgs/Header header\nstring[] joint_names\ncontrol_msgs/InterfaceValue[] interface_values\n"
    f"{BAR}MSG: control_msgs/InterfaceValue\nstring[] interface_names\nfloat64[] values\n{HEADER}"
)
POINT = (
    f"{BAR}MSG: trajectory_msgs/JointTrajectoryPoint\nfloat64[] positions\nfloat64[] velocities\nfloat64[] accelerations\n"
    f"float64[] effort\nbuiltin_interfaces/Duration time_from_start\n{BAR}MSG: builtin_interfaces/Duration\n"
    "int32 sec\nuint32 nanosec\n"
)
CONTROLLER = (
    "std_msgs/Header header\nstring[] joint_names\ntrajectory_msgs/JointTrajectoryPoint reference\n"
    f"trajectory_msgs/JointTrajectoryPoint feedback\ntrajectory_msgs/JointTrajectoryPoint error\n{POINT}{HEADER}"
)


def stamped(stamp: int, frame: str = "") -> dict:
    return {"stamp": {"sec": int(stamp) // 10**9, "nanosec": int(stamp) % 10**9}, "frame_id": frame}


def state_message(k: int, frame: str = "") -> dict:
    rows = {"position": Q[k].tolist(), "velocity": V[k].tolist(), "effort": TAU[k].tolist()}
    return {"header": stamped(STAMP[k], frame), "name": NAMES, **rows}


@pytest.mark.parametrize("compression", ["NONE", "LZ4", "ZSTD"])
def test_mcap_of_its_own_writer(compression, tmp_path):
    from mcap.writer import CompressionType

    records = [("/joint_states", JOINT_STATE, s, state_message(k)) for k, s in enumerate(STAMP)]
    options = {"compression": CompressionType[compression], "chunk_size": 4096}
    path = mcap_file(tmp_path / "run.mcap", records, {JOINT_STATE: STATE}, **options)
    check(Log.read(path, "joint_torque", topic="/joint_states"))
    # A recorder that was killed: no index, and the last chunk cut.
    (tmp_path / "cut.mcap").write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    log = Log.read(tmp_path / "cut.mcap", "joint_torque")
    assert 100 < len(log) < len(T)
    np.testing.assert_array_equal(log.position, Q[: len(log)])
    assert any("ends early" in note for note in log.provenance["conversions"])


def test_frames_of_any_length_and_repeated_messages(tmp_path):
    order = [*range(500), 17, 18]
    records = [("/js", JOINT_STATE, STAMP[k], state_message(k, "f" * (k % 7))) for k in order]
    log = Log.read(mcap_file(tmp_path / "run.mcap", records, {JOINT_STATE: STATE}), "joint_torque")
    check(log)
    assert any("2 repeated messages" in note for note in log.provenance["conversions"])


def test_arm_and_gripper_on_one_topic(tmp_path):
    make = Messages()
    records = states(make)
    for k in range(0, len(T), 2):
        raw = make.joint_state(STAMP[k] + 10, ["finger"], [T[k]], [1.0], [2.0])
        records.append(("/joint_states", JOINT_STATE, int(STAMP[k]) + LATER + 1, raw))
    log = Log.read(write(tmp_path / "run", records, "MCAP", make), "joint_torque")
    assert log.joints == (*NAMES, "finger")
    np.testing.assert_allclose(log.position[:, 3], log.t + T[1], atol=2e-8)  # the first message is before the gripper's
    assert any("interpolated" in note for note in log.provenance["conversions"])


def test_topics_on_one_clock(tmp_path):
    """Positions, torques without a header at another rate, slow temperatures: all at the times of the first topic."""
    make = Messages()
    records = states(make, effort=None)
    for t in np.arange(-0.1, 2.1, 0.001):
        stamp = 1_700_000_000_000_000_000 + round(t * 1e9)
        records.append(("/joint_torques", "std_msgs/msg/Float64MultiArray", stamp, make.array(3.0 * t + np.arange(3))))
    for t in np.arange(-1.0, 4.0, 0.5):
        stamp = 1_700_000_000_000_000_000 + round(t * 1e9)
        records.append(("/motor_temperatures", "std_msgs/msg/Float64MultiArray", stamp, make.array(40.0 + t + np.arange(3))))
    path = write(tmp_path / "run", records, "SQLITE3", make)
    topics = ["/joint_states", "joint_torques/", "/motor_temperatures"]
    schema = {"position": "/joint_states/{joint}/position", "joints": NAMES}
    schema |= {"effort": [f"/joint_torques/data[{k}]" for k in range(3)]}
    schema |= {"temperature": [f"/motor_temperatures/data[{k}]" for k in range(3)]}
    log = Log.read(path, "joint_torque", topic=topics, schema=schema)
    assert log.joints == tuple(NAMES)
    np.testing.assert_array_equal(log.position, Q)
    np.testing.assert_allclose(log.effort, 3.0 * T[:, None] + np.arange(3), atol=1e-6)
    np.testing.assert_allclose(log.temperature, 40.0 + T[:, None] + np.arange(3), atol=1e-6)
    del schema["temperature"]
    found = Log.read(path, "joint_torque", topic=topics, schema=schema)  # numbered: in the order of the positions
    np.testing.assert_array_equal(found.temperature, log.temperature)
    with pytest.raises(LogError, match="no effort columns"):
        Log.read(path, "joint_torque", topic="/joint_states")


def test_reference_of_a_controller_and_interfaces(tmp_path):
    point = {"velocities": [], "accelerations": [], "effort": [], "time_from_start": {"sec": 0, "nanosec": 0}}
    records = []
    for k, stamp in enumerate(STAMP):
        state = {"reference": Q[k] + 0.5, "feedback": Q[k], "error": 0 * Q[k]}
        points = {name: {**point, "positions": rows.tolist()} for name, rows in state.items()}
        points["feedback"]["effort"] = TAU[k].tolist()
        records.append(
            ("/arm/state", "control_msgs/msg/State", stamp, {"header": stamped(stamp), "joint_names": NAMES, **points})
        )
        values = [{"interface_names": ["temperature", "power"], "values": [30.0 + j + k, 5.0]} for j in range(3)]
        message = {"header": stamped(stamp), "joint_names": NAMES, "interface_values": values}
        records.append(("/dynamic", "control_msgs/msg/DynamicJointState", stamp, message))
    definitions = {"control_msgs/msg/State": CONTROLLER, "control_msgs/msg/DynamicJointState": DYNAMIC}
    path = mcap_file(tmp_path / "run.mcap", records, definitions)
    log = Log.read(path, "joint_torque", topic=["/arm/state", "/dynamic"])
    assert log.joints == tuple(NAMES)
    np.testing.assert_array_equal(log.position, Q)
    np.testing.assert_array_equal(log.reference, Q + 0.5)
    np.testing.assert_array_equal(log.effort, TAU)
    np.testing.assert_array_equal(log.temperature, 30.0 + np.arange(3) + np.arange(500)[:, None])
    with pytest.raises(LogError, match=r"no topic of JointState messages; choose with topic= .*/arm/state"):
        Log.read(path, "joint_torque")


def test_our_mcap_is_read_by_others_and_by_us(tmp_path):
    from mcap.reader import make_reader
    from mcap_ros2.decoder import DecoderFactory

    log = Log(
        T, NAMES, Q, TAU, "joint_torque", velocity=V, acceleration=-Q, temperature=Q + 40, reference=Q + 1, gain=[1, 2, 3]
    )
    path = log.save(tmp_path / "run.mcap")
    back = Log.read(path)
    np.testing.assert_allclose(back.t, log.t, rtol=0, atol=5e-10)
    for name in ("position", "effort", "velocity", "acceleration", "temperature", "reference", "gain"):
        np.testing.assert_array_equal(getattr(back, name), getattr(log, name))
    found: dict[str, list] = {}
    with path.open("rb") as stream:
        for _, channel, _, message in make_reader(stream, decoder_factories=[DecoderFactory()]).iter_decoded_messages():
            found.setdefault(channel.topic, []).append(message)
    assert list(found["/joint_states"][7].name) == NAMES
    np.testing.assert_array_equal([m.position for m in found["/joint_states"]], Q)
    np.testing.assert_array_equal([m.effort for m in found["/joint_states"]], TAU)
    np.testing.assert_array_equal([p.positions for p in found["/joint_trajectory"][0].points], Q + 1)
    seconds = [p.time_from_start.sec + 1e-9 * p.time_from_start.nanosec for p in found["/joint_trajectory"][0].points]
    np.testing.assert_allclose(seconds, T, atol=1e-9)
    dynamic = found["/dynamic_joint_states"][3].interface_values[1]
    assert list(dynamic.interface_names) == ["acceleration", "temperature"]
    np.testing.assert_array_equal(dynamic.values, [-Q[3, 1], Q[3, 1] + 40])
    foreign = Log.read(path, "joint_torque", topic=["/joint_states", "/joint_trajectory"])
    np.testing.assert_array_equal(foreign.reference, Q + 1)
    assert path.read_bytes() == log.save(tmp_path / "again.mcap").read_bytes()


def test_what_is_no_bag(tmp_path):
    from mcap.writer import Writer

    (tmp_path / "empty").mkdir()
    (tmp_path / "packed").mkdir()
    (tmp_path / "packed" / "a.db3.zstd").write_bytes(b"x")
    for name in ("noise.mcap", "noise.db3", "noise.bag"):
        (tmp_path / name).write_bytes(bytes(range(256)) * 30)
    with (tmp_path / "json.mcap").open("wb") as stream:
        writer = Writer(stream)
        writer.start()
        channel = writer.register_channel("/q", "json", writer.register_schema("x", "jsonschema", b"{}"))
        writer.add_message(channel, 1, b"{}", 1)
        writer.finish()
    for name, words in (
        ("empty", "nor a bag"),
        ("packed", "zstd -d"),
        ("noise.mcap", "does not start like an MCAP"),
        ("noise.db3", "noise.db3"),
        ("noise.bag", "noise.bag"),
        ("absent.mcap", "No such file"),
        ("json.mcap", "no topic of JointState"),
    ):
        with pytest.raises(LogError, match=words):
            Log.read(tmp_path / name, "joint_torque")
    with pytest.raises(LogError, match="encoded as 'json'"):
        Log.read(tmp_path / "json.mcap", "joint_torque", topic="/q")
    with pytest.raises(LogError, match="topic is 3"):
        Log.read(tmp_path / "json.mcap", "joint_torque", topic=3)


def test_a_stream_is_the_bag_piece_by_piece(tmp_path):
    """Pieces on the clock of the first topic, the second interpolated, joined: exactly what is read at once."""
    make = Messages()
    temperature = [
        ("/heat", "std_msgs/msg/Float64MultiArray", int(STAMP[k]) + LATER, make.array(np.full(3, k))) for k in range(500)
    ]
    records = sorted([*states(make), *temperature[::7]], key=lambda record: record[2])
    path = tmp_path / "bag"
    path = write(path, records, "MCAP", make)
    schema = {"temperature": [f"/heat/data[{k}]" for k in range(3)], "joints": NAMES}
    schema |= {role: f"/joint_states/{{joint}}/{role}" for role in ("position", "velocity", "effort")}
    options = {"topic": ["/joint_states", "/heat"], "schema": schema}
    whole = Log.read(path, "joint_torque", **options)
    stream = Log.stream(path, "joint_torque", samples=120, **options)
    for _ in range(2):  # it can be read again
        pieces = list(stream)
        assert 4 <= len(pieces) <= 5
        assert max(len(piece) for piece in pieces) < 140
        for field in ("position", "velocity", "effort", "temperature"):
            np.testing.assert_allclose(np.concatenate([getattr(p, field) for p in pieces]), getattr(whole, field), rtol=1e-12)
        np.testing.assert_allclose(np.concatenate([p.t for p in pieces]), whole.t, rtol=0, atol=1e-12)
    with pytest.raises(LogError, match="samples is 3"):
        Log.stream(path, "joint_torque", samples=3)


def test_a_log_is_read_into_arrays_of_its_size(tmp_path):
    """Nothing beside the log itself grows with the number of messages (a million took three and a half times the log)."""
    import tracemalloc

    from mcap.writer import Writer

    count, row = 60_000, np.arange(6.0)
    template = Messages().joint_state(0, map(str, range(6)), row + 0.1, row + 0.2, row + 0.3)
    places = [template.index((row + part).tobytes()) for part in (0.1, 0.2, 0.3)]
    path = tmp_path / "run.mcap"
    with path.open("wb") as stream:
        writer = Writer(stream)
        writer.start("ros2", "test")
        channel = writer.register_channel(
            "/joint_states", "cdr", writer.register_schema(JOINT_STATE, "ros2msg", STATE.encode())
        )
        raw = bytearray(template)
        for k in range(count):
            stamp = int(STAMP[0]) + k * 1_000_000
            raw[4:12] = np.array([stamp // 10**9, stamp % 10**9], dtype="<u4").tobytes()
            for place in places:
                raw[place : place + 48] = (row + k).tobytes()
            writer.add_message(channel, stamp, bytes(raw), stamp)
        writer.finish()
    Log.read(path, "joint_torque")  # libraries are imported
    tracemalloc.start()
    try:
        log = Log.read(path, "joint_torque")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    np.testing.assert_array_equal(log.effort, row + np.arange(count)[:, None])
    size = sum(x.nbytes for x in (log.t, log.position, log.velocity, log.effort))
    assert peak < 1.3 * size + 8e6  # messages that are decoded together, times, and what a growing array has in reserve
    assert log.position.flags.c_contiguous and not log.position.flags.writeable
