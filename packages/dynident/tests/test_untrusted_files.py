"""Files of strangers: nothing outside a robot's folder or a log is read, nothing is waited for, nothing is unpickled."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path

import numpy as np
import pytest

from dynident import Log, Mechanism
from dynident.errors import DescriptionError, LogError
from dynident.files import read_regular
from dynident.mechanism import apply_sidecar, read_robot, write_mjcf
from dynident.mechanism.files import is_mjcf
from dynident.mechanism.xacro.expand import expand

BODY = '<body name="{}"><joint name="j_{}"/><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/></body>'.format
needs_pipes = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")


# ---- what is no file ------------------------------------------------------------------------------------------------


@needs_pipes
@pytest.mark.parametrize("name", ["r.urdf", "r.xacro", "r.XACRO", "r.xml", "r.mjcf"])
def test_a_pipe_as_robot_is_refused_instead_of_waited_for(tmp_path, name):
    os.mkfifo(tmp_path / name)
    with pytest.raises(DescriptionError, match="not a regular file; give"):
        read_robot(tmp_path / name)


@needs_pipes
@pytest.mark.parametrize("name", ["l.csv", "l.csv.gz", "l.npz", "l.mat", "l.h5", "l.parquet"])
def test_a_pipe_as_log_is_refused_instead_of_waited_for(tmp_path, name):
    os.mkfifo(tmp_path / name)
    with pytest.raises(LogError, match="not a regular file"):
        Log.read(tmp_path / name, effort="joint_torque")


@needs_pipes
def test_pipes_that_a_robot_names_are_refused(tmp_path):
    for name in ("part.xacro", "part.xml", "package.xml", "sidecar.toml"):
        os.mkfifo(tmp_path / name)
    (tmp_path / "r.xacro").write_text('<robot xmlns:xacro="x/xacro"><xacro:include filename="part.xacro"/></robot>')
    (tmp_path / "r.xml").write_text('<mujoco><include file="part.xml"/></mujoco>')
    with pytest.raises(DescriptionError, match="not a regular file"):
        expand(tmp_path / "r.xacro")
    with pytest.raises(DescriptionError, match="not a regular file"):
        Mechanism.from_mjcf(tmp_path / "r.xml")
    with pytest.raises(DescriptionError, match="not a regular file"):
        apply_sidecar(Mechanism.from_dh([(1.0, 0.0, 0.0, 0.0)]), tmp_path / "sidecar.toml")


def test_devices_folders_and_large_files_are_told_apart(tmp_path):
    (tmp_path / "file").write_bytes(b"12345")
    assert read_regular(tmp_path / "file", 5) == b"12345"
    with pytest.raises(OSError, match="it has 5 bytes; the limit is 4"):
        read_regular(tmp_path / "file", 4)
    with pytest.raises(OSError, match="No such file"):
        read_regular(tmp_path / "none")
    if Path("/dev/zero").exists():
        with pytest.raises(OSError, match="not a regular file"):
            read_regular("/dev/zero")


# ---- XML ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["<!--" * 1_000_000, "<!-- -->" * 500_000, "<?x?>" * 500_000, "<" * 2_000_000, "<!" * 1_000_000]
)
def test_the_kind_of_a_file_is_found_in_one_pass(tmp_path, text):
    """Megabytes of opened comments: time that grew with the square would be hours."""
    (tmp_path / "r.xml").write_text(text)
    assert not is_mjcf(tmp_path / "r.xml")
    with pytest.raises(DescriptionError, match="not well-formed"):
        read_robot(tmp_path / "r.xml")


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("<mujoco/>", True),
        ('<?xml version="1.0"?>\n<!-- <robot> -->\n<mujoco model="a"/>', True),
        ("<!-- a --><!-- b --><mujoco/>", True),
        ('<robot name="r"><mujoco/></robot>', False),
        ("<!-- <mujoco> --><robot/>", False),
        ("<!--><mujoco/>", False),
        ("", False),
    ],
)
def test_the_root_decides_the_kind(tmp_path, text, kind):
    (tmp_path / "r.xml").write_text(text or " x")
    assert is_mjcf(tmp_path / "r.xml") is kind


@pytest.mark.parametrize("name", ["../part.xml", "{}/part.xml", "sub/../../part.xml", "link.xml"])
def test_includes_of_mjcf_stay_in_the_folder(tmp_path, name):
    (tmp_path / "robot" / "sub").mkdir(parents=True)
    (tmp_path / "part.xml").write_text(f"<mujocoinclude>{BODY('b', 'b')}</mujocoinclude>")
    (tmp_path / "robot" / "link.xml").symlink_to(tmp_path / "part.xml")
    path = tmp_path / "robot" / "r.xml"
    path.write_text(
        f'<mujoco><worldbody>{BODY("a", "a")}<include file="{name.format(tmp_path)}"/></worldbody></mujoco>', encoding="utf-8"
    )
    with pytest.raises(DescriptionError, match=r"r\.xml: <include>: .* outside the robot's folder; move it .* --search"):
        Mechanism.from_mjcf(path)
    robot = Mechanism.from_mjcf(path, search=[tmp_path])
    assert robot.dof == 2
    changed = robot.parameters.replace(robot.parameters.values * np.where(np.char.endswith(robot.parameters.names, "_a"), 2, 1))
    written = write_mjcf(path, robot, changed, tmp_path / "robot" / "new.xml", search=[tmp_path])
    assert Mechanism.from_mjcf(written, search=[tmp_path]).parameters["m_a"] == 2.0


def test_includes_below_the_folder_are_read(tmp_path):
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "part.xml").write_text(f"<mujocoinclude>{BODY('b', 'b')}</mujocoinclude>")
    (tmp_path / "r.xml").write_text('<mujoco><worldbody><include file="parts/part.xml"/></worldbody></mujoco>')
    assert Mechanism.from_mjcf(tmp_path / "r.xml").dof == 1


def test_a_robot_behind_a_link_reads_beside_both_its_places(tmp_path):
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "part.xml").write_text(f"<mujocoinclude>{BODY('b', 'b')}</mujocoinclude>")
    (tmp_path / "source" / "r.xml").write_text('<mujoco><worldbody><include file="part.xml"/></worldbody></mujoco>')
    (tmp_path / "installed").mkdir()
    for name in ("r.xml", "part.xml"):
        (tmp_path / "installed" / name).symlink_to(tmp_path / "source" / name)
    assert Mechanism.from_mjcf(tmp_path / "installed" / "r.xml").dof == 1


def test_meshes_are_never_opened(tmp_path):
    """Whatever file a mesh names, even one that would block, the robot is read without it."""
    link = (
        '<link name="{0}"><visual><geometry><mesh filename="{1}"/></geometry></visual><inertial><mass value="1"/>'
        '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>'
    )
    joint = '<joint name="j" type="revolute"><parent link="a"/><child link="b"/><limit effort="1" velocity="1"/></joint>'
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "mesh.stl")
    path = tmp_path / "r.urdf"
    path.write_text(f'<robot name="r">{link.format("a", "mesh.stl")}{link.format("b", "/dev/zero")}{joint}</robot>')
    assert Mechanism.from_urdf(path).dof == 1


def test_a_search_path_must_be_a_folder(tmp_path):
    (tmp_path / "r.xml").write_text(f"<mujoco><worldbody>{BODY('a', 'a')}</worldbody></mujoco>")
    with pytest.raises(DescriptionError, match=r"search path '.*nowhere' is not a folder"):
        Mechanism.from_mjcf(tmp_path / "r.xml", search=[tmp_path / "nowhere"])
    for wrong in (3, [3], None):
        with pytest.raises(DescriptionError, match=r"search is .*; give a list of folders"):
            Mechanism.from_mjcf(tmp_path / "r.xml", search=wrong)
    (tmp_path / "r.xacro").write_text('<robot name="r"><link name="a"/></robot>')
    with pytest.raises(DescriptionError, match="arguments is 3; give a mapping"):
        Mechanism.from_urdf(tmp_path / "r.xacro", arguments=3)


# ---- logs -----------------------------------------------------------------------------------------------------------


def _external_storage(file, h5py, folder):
    file.create_dataset("q_1", (10,), "f8", external=[(str(folder / "secret"), 0, 80)])


def _external_link(file, h5py, folder):
    file["q_1"] = h5py.ExternalLink(str(folder / "other.h5"), "/q")


def _soft_link_to_external_link(file, h5py, folder):
    file["group/hidden"] = h5py.ExternalLink(str(folder / "other.h5"), "/q")
    file["q_1"] = h5py.SoftLink("/group/hidden")


def _virtual_dataset_of_itself(file, h5py, folder):
    """HDF5 follows it until the stack ends, and the process with it."""
    layout = h5py.VirtualLayout((10,), "f8")
    layout[:] = h5py.VirtualSource(".", "q_1", (10,))
    file.create_virtual_dataset("q_1", layout)


def _virtual_dataset(file, h5py, folder):
    layout = h5py.VirtualLayout((10,), "f8")
    layout[:] = h5py.VirtualSource(str(folder / "other.h5"), "q", (10,))
    file.create_virtual_dataset("deep/q_1", layout)


@pytest.mark.parametrize(
    "make",
    [_external_storage, _external_link, _soft_link_to_external_link, _virtual_dataset, _virtual_dataset_of_itself],
)
@pytest.mark.parametrize("ending", [".h5", ".mat"])
def test_hdf5_never_leaves_its_file(tmp_path, make, ending):
    h5py = pytest.importorskip("h5py")
    (tmp_path / "secret").write_bytes(np.arange(10.0).tobytes())
    with h5py.File(tmp_path / "other.h5", "w") as other:
        other["q"] = np.arange(10.0)
    path = tmp_path / f"log{ending}"
    with h5py.File(path, "w") as file:
        file["t"], file["tau_1"] = np.arange(10.0), np.arange(10.0)
        make(file, h5py, tmp_path)
    with pytest.raises(LogError, match="data in another file or dataset, which is not read; copy"):
        Log.read(path, effort="joint_torque")


@pytest.mark.parametrize("cells", [[pickle.dumps(k) for k in range(3)], [[{"a": 1}]] * 3, [[b"x"]] * 3, [[[1.0]]] * 3])
def test_parquet_columns_of_objects_are_refused(tmp_path, cells):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = {"t": 0.01 * np.arange(3.0), "q_1": np.arange(3.0), "tau_1": np.arange(3.0), "odd": cells}
    pq.write_table(pa.table(table), tmp_path / "log.parquet")
    with pytest.raises(LogError, match=r"column 'odd' holds objects .* never loaded; save"):
        Log.read(tmp_path / "log.parquet", effort="joint_torque")


def test_npz_arrays_of_objects_are_refused(tmp_path):
    odd = np.array([{}, 1, "x"], dtype=object)
    np.savez(tmp_path / "log.npz", t=np.arange(3.0), q_1=np.arange(3.0), tau_1=np.arange(3.0), odd=odd)
    with pytest.raises(LogError, match="array 'odd' is a pickled object, which is never loaded; save"):
        Log.read(tmp_path / "log.npz", effort="joint_torque")


def test_hdf5_groups_in_circles_or_too_deep_are_refused(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "circle.h5", "w") as file:
        group = file.create_group("g")
        for k in range(50):
            group[f"again{k}"] = group
    with h5py.File(tmp_path / "deep.h5", "w") as file:
        file.create_group("/".join("g" * 300))
    for name in ("circle.h5", "deep.h5"):
        with pytest.raises(LogError, match=r"levels deep|groups and datasets"):
            Log.read(tmp_path / name, effort="joint_torque")


def test_a_text_that_parquet_stores_once_is_not_written_out(tmp_path):
    """A hundred thousand rows of one megabyte: 100 GB if every row got its own."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    t = 0.01 * np.arange(100_000.0)
    text = pa.DictionaryArray.from_arrays(pa.array(np.zeros(t.size, np.int32)), pa.array(["a" * 1_000_000]))
    columns = {"t": t, "q_1": np.sin(t), "tau_1": np.cos(t), "note": text}
    pq.write_table(pa.table(columns), tmp_path / "log.parquet")
    assert Log.read(tmp_path / "log.parquet", effort="joint_torque").position.shape == (100_000, 1)


def test_names_of_joints_in_parquet_are_still_read(tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    t = 0.01 * np.arange(200.0)
    rows = np.column_stack([np.sin(t), np.cos(t)]).tolist()
    columns = {"t": t, "name": [["shoulder", "elbow"]] * 200, "position": rows, "effort": rows}
    pq.write_table(pa.table(columns), tmp_path / "log.parquet")
    assert Log.read(tmp_path / "log.parquet", effort="joint_torque").joints == ("shoulder", "elbow")


def test_computed_columns_of_a_database_are_counted(tmp_path):
    """A rosbag2 of 50 kB whose messages are computed: 400 of 60 MB."""
    pytest.importorskip("rosbags.typesys")
    import sqlite3

    base = sqlite3.connect(tmp_path / "log.db3")
    base.executescript(
        "CREATE TABLE topics(id INTEGER PRIMARY KEY, name TEXT, type TEXT, serialization_format TEXT);"
        "INSERT INTO topics VALUES(1, '/j', 'sensor_msgs/msg/JointState', 'cdr');"
        "CREATE TABLE messages(id INTEGER PRIMARY KEY, topic_id INTEGER, timestamp INTEGER,"
        " data BLOB GENERATED ALWAYS AS (zeroblob(60000000)) VIRTUAL);"
    )
    base.executemany("INSERT INTO messages(topic_id, timestamp) VALUES(2, ?)", [(k,) for k in range(400)])
    base.commit()
    base.close()
    with pytest.raises(LogError, match=r"table .messages. has computed columns"):
        Log.read(tmp_path / "log.db3", effort="joint_torque")


def test_rows_that_a_damaged_tree_repeats_are_counted(tmp_path):
    """Empty messages count too: a page that refers to one child a hundred times shows the same rows for ever."""
    pytest.importorskip("rosbags.typesys")
    import sqlite3

    from dynident.signals import bags

    base = sqlite3.connect(tmp_path / "log.db3")
    base.executescript(
        "CREATE TABLE topics(id INTEGER PRIMARY KEY, name TEXT, type TEXT, serialization_format TEXT);"
        "CREATE TABLE messages(id INTEGER PRIMARY KEY, topic_id INTEGER, timestamp INTEGER, data BLOB);"
    )
    base.executemany("INSERT INTO messages(topic_id, timestamp, data) VALUES(1, ?, x'')", [(k,) for k in range(100)])
    base.commit()
    base.close()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(bags, "ROOM", 1000)
        patched.setattr(bags, "GROWTH", 0)
        with pytest.raises(LogError, match=r"its messages would take"):
            Log.read(tmp_path / "log.db3", effort="joint_torque")


def test_a_chunk_of_hdf5_is_counted_as_a_whole(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "log.h5", "w") as file:
        file["t"], file["tau_1"] = np.arange(10.0), np.arange(10.0)
        file.create_dataset("q_1", (10,), maxshape=(None,), chunks=(200_000_000,), dtype="f8")
    with pytest.raises(LogError, match=r"dataset 'q_1', .* would take"):
        Log.read(tmp_path / "log.h5", effort="joint_torque")


def test_bytes_that_parquet_stores_once_count_for_every_row(tmp_path, monkeypatch):
    """20 kB in each of 1 000 rows, out of a file of some kB that may take 1 MB."""
    monkeypatch.setattr("dynident.signals.reading.ROOM", 1 << 20)
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    t = 0.01 * np.arange(1_000.0)
    once = pa.array([bytes(20_000)], type=pa.binary(20_000))
    odd = pa.DictionaryArray.from_arrays(pa.array(np.zeros(t.size, np.int32)), once)
    pq.write_table(pa.table({"t": t, "q_1": t, "tau_1": t, "odd": odd}), tmp_path / "log.parquet")
    with pytest.raises(LogError, match="the table when unpacked would take"):
        Log.read(tmp_path / "log.parquet", effort="joint_torque")


def test_a_message_of_arrays_of_nothing_ends(tmp_path):
    """The definition says a hundred thousand times a hundred thousand parts without a byte."""
    writer = pytest.importorskip("mcap.writer")
    pytest.importorskip("rosbags.typesys")
    line = "\n" + "=" * 80 + "\n"
    text = f"p/A[100000] a{line}MSG: p/A\np/B[100000] b{line}MSG: p/B\nuint8[0] x"
    with (tmp_path / "log.mcap").open("wb") as stream:
        made = writer.Writer(stream)
        made.start()
        channel = made.register_channel("/j", "cdr", made.register_schema("p/msg/JointState", "ros2msg", text.encode()))
        made.add_message(channel, 0, b"\0\1\0\0" + bytes(60), 0)
        made.finish()
    with pytest.raises(LogError, match="more than 100000 parts"):
        Log.read(tmp_path / "log.mcap", effort="joint_torque")


@needs_pipes
@pytest.mark.parametrize("name", ["cycle_0001_1.parquet", "cycle_0001_1.seg", "journal.jsonl"])
def test_a_pipe_in_a_campaign_is_not_waited_for(tmp_path, name):
    controller = {"period": 0.01, "channels": ["a"], "effort_kind": "joint_torque", "gain": None, "position_side": "joint"}
    (tmp_path / "campaign.json").write_text(json.dumps({"format": "dynident-campaign-1", "controller": controller}))
    os.mkfifo(tmp_path / name)
    with pytest.raises(LogError, match="not a regular file"):
        Log.read(tmp_path)


def test_chunks_of_nothing_are_refused(tmp_path):
    """60 chunks of 100 MB zeros, packed into 600 kB: records of no bytes without end."""
    pytest.importorskip("mcap")
    pytest.importorskip("rosbags.typesys")
    import struct

    zstandard = pytest.importorskip("zstandard")
    size = 100 << 20
    packed = zstandard.ZstdCompressor().compress(bytes(size))
    body = struct.pack("<QQQI", 0, 1, size, 0) + struct.pack("<I", 4) + b"zstd" + struct.pack("<Q", len(packed)) + packed
    record = struct.pack("<BQ", 6, len(body)) + body
    (tmp_path / "log.mcap").write_bytes(b"\x89MCAP0\r\n" + 60 * record)
    with pytest.raises(LogError, match="record of no bytes"):
        Log.read(tmp_path / "log.mcap", effort="joint_torque")


def test_more_links_than_any_robot_has_are_refused(tmp_path):
    (tmp_path / "r.urdf").write_text('<robot name="r">' + '<link name="a"/>' * 3001 + "</robot>")
    with pytest.raises(DescriptionError, match="more than 3000 links"):
        Mechanism.from_urdf(tmp_path / "r.urdf")


def test_lists_that_a_map_makes_are_counted(tmp_path):
    text = '<robot name="r" xmlns:xacro="x/xacro"><link name="a${len(map(range, [20000] * 19000))}"/></robot>'
    (tmp_path / "r.xacro").write_text(text)
    with pytest.raises(DescriptionError, match="more than 20000 items"):
        expand(tmp_path / "r.xacro")
